/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that are pinned on demand, raw keys and endpoint-bound regions, as an initiator
 * meets them: what it asks, remembers, forgets and releases. Memory really comes and goes,
 * and userfaultfd really tells of it where the kernel permits.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "base/param.h"
#include "ep/resolve/ask.h"
#include "ep_fixture.h"
#include "monitor/monitor.h"

#define MIB (1024 * 1024ul)

static struct pair p;
static atomic_uint questions, forgets, releases, releasing_questions;

static enum fake_fate count_notes(uint8_t *msg, size_t *len, bool from_target)
{
	int type = mrf_msg_type(msg, *len);
	struct mrf_ask ask;

	if (type == MRF_MSG_ASK && !from_target)
		atomic_fetch_add(&questions, 1);
	if (!from_target && !mrf_ask_decode(msg, *len, &ask) && ask.flags & MRF_ASK_RELEASE)
		atomic_fetch_add(&releasing_questions, 1);
	if (type == MRF_MSG_FORGET && from_target)
		atomic_fetch_add(&forgets, 1);
	if (type == MRF_MSG_RELEASE && !from_target)
		atomic_fetch_add(&releases, 1);
	return FAKE_DELIVER;
}

/*
 * monitor: false, nobody tells of changes. True, userfaultfd does if this kernel lets us have
 * it; what these tests want to see is the same either way.
 */
static void open_pair(bool monitor, int mode)
{
	struct node_opt opt = { .mr_mode = mode };

	ck_assert_int_eq(setenv("FI_MR_CACHE_MONITOR", "disabled", 1), 0);
	if (monitor)
		unsetenv("FI_MR_CACHE_MONITOR");
	mrf_env_reload();
	atomic_store(&questions, 0);
	atomic_store(&forgets, 0);
	atomic_store(&releases, 0);
	atomic_store(&releasing_questions, 0);
	fake.on_send = count_notes;
	pair_open(&p, &opt);
}

static void put_fresh_pages(void *at, size_t len)
{
	ck_assert_ptr_eq(mmap(at, len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 at);
}

static void write_ok(size_t at, size_t len)
{
	pair_write(&p, at, len);
	want_ok(&p.a, pair_ctx(&p, at));
}

/*
 * The connection is there, and what it allocates, but nothing of dst is pinned: only then does
 * what is unmapped stay unmapped until a test maps it again.
 */
static void connect_first(void)
{
	static uint8_t elsewhere[PAGE];
	struct fid_mr *mr = node_reg(&p.b, elsewhere, sizeof(elsewhere), REMOTE_RW, 4711);
	uint64_t at = p.base ? (uintptr_t)elsewhere : 0;

	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, NULL, p.to, at, fi_mr_key(mr), elsewhere), 0);
	want_ok(&p.a, elsewhere);
	must_close(&mr->fid);
}

/* --- memory that comes and goes --------------------------------------------------------- */

START_TEST(ask_registering_pins_nothing_and_an_access_pins)
{
	unsigned before;

	open_pair(_i, 0);
	before = fake_live_of(FAKE_VMR_REG);
	must_close(&p.mr->fid);
	pair_reg(&p, REMOTE_RW);
	ck_assert_uint_eq(fake_live_of(FAKE_VMR_REG), before);
	write_ok(100, 5000);
	ck_assert(filled(p.dst + 100, 1, 0) || p.dst[100] == p.src[100]);
	ck_assert_int_eq(memcmp(p.dst + 100, p.src + 100, 5000), 0);
	pair_close(&p);
}
END_TEST

START_TEST(ask_memory_that_is_not_there_fails_at_the_peer_only)
{
	open_pair(_i, 0);
	connect_first();
	ck_assert_int_eq(munmap(p.dst, PAIR_LEN), 0);
	pair_write(&p, 0, 100);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EFAULT, "no memory"), 4145);
	put_fresh_pages(p.dst, PAIR_LEN);
	write_ok(0, 100);
	ck_assert_int_eq(memcmp(p.dst, p.src, 100), 0);
	/* The connection was never in question. */
	ck_assert_uint_eq(fake_connects(), 1);
	pair_close(&p);
}
END_TEST

START_TEST(ask_new_pages_are_reached_under_the_same_key)
{
	int round;

	open_pair(_i, 0);
	for (round = 0; round < 20; round++) {
		write_ok(0, PAIR_LEN);
		ck_assert_int_eq(memcmp(p.dst, p.src, PAIR_LEN), 0);
		switch (round % 3) {
		case 0:
			put_fresh_pages(p.dst, PAIR_LEN);
			break;
		case 1:
			munmap(p.dst, PAIR_LEN);
			put_fresh_pages(p.dst, PAIR_LEN);
			break;
		default:
			ck_assert_int_eq(madvise(p.dst, PAIR_LEN, MADV_DONTNEED), 0);
		}
		memset(p.dst, round, PAIR_LEN);
		pair_read(&p, 0, PAIR_LEN);
		want_ok(&p.a, pair_ctx(&p, 0));
		ck_assert(p.src[0] == round && !memcmp(p.src, p.dst, PAIR_LEN));
		fill(p.src, PAIR_LEN, (unsigned)round);
	}
	pair_close(&p);
}
END_TEST

START_TEST(ask_peers_are_told_and_need_no_new_connection)
{
	unsigned connects, asks;

	open_pair(true, FI_MR_MMU_NOTIFY);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	write_ok(0, 100);
	connects = fake_connects();
	asks = fake_asks();
	write_ok(0, 100);
	write_ok(200, 100);
	/* The window around the first access serves them all. */
	ck_assert_uint_eq(fake_asks(), asks);
	put_fresh_pages(p.dst, PAIR_LEN);
	ck_assert_uint_gt(node_parts(&p.a, p.to, PAIR_KEY), 0);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	want_soon(atomic_load(&forgets) == 1);
	want_soon(node_parts(&p.a, p.to, PAIR_KEY) == 0);
	write_ok(0, 100);
	ck_assert_int_eq(memcmp(p.dst, p.src, 100), 0);
	ck_assert_uint_eq(fake_connects(), connects);
	ck_assert_uint_eq(fake_asks(), asks + 1);
	pair_close(&p);
}
END_TEST

/* Only what has changed is asked about again. */
START_TEST(ask_peers_are_told_what_has_changed)
{
	enum { N = 6 };
	static uint8_t *there[N];
	struct fid_mr *mr[N];
	unsigned i, asked, change = _i;

	open_pair(true, FI_MR_MMU_NOTIFY);
	for (i = 0; i < N; i++) {
		there[i] = pages(PAGE);
		there[i][0] = 1;
		mr[i] = node_reg(&p.b, there[i], PAGE, REMOTE_RW, 100 + i);
		ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, fi_mr_key(mr[i]), mr),
				 0);
		want_ok(&p.a, mr);
	}
	asked = atomic_load(&questions);
	for (i = 0; i < change; i++) {
		ck_assert_int_eq(fi_mr_refresh(mr[i], NULL, 0, 0), 0);
		want_soon(node_parts(&p.a, p.to, fi_mr_key(mr[i])) == 0);
	}
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, fi_mr_key(mr[i]), mr),
				 0);
		want_ok(&p.a, mr);
		ck_assert_int_eq(memcmp(there[i], p.src, 8), 0);
	}
	ck_assert_uint_eq(atomic_load(&questions) - asked, change);
	for (i = 0; i < N; i++)
		must_close(&mr[i]->fid);
	pair_close(&p);
}
END_TEST

START_TEST(ask_peers_that_are_not_told_are_refused_and_ask_again)
{
	open_pair(true, FI_MR_MMU_NOTIFY);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	write_ok(0, 100);
	/* The agent of the target does not get to tell. */
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	put_fresh_pages(p.dst, PAIR_LEN);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	pair_write(&p, 0, 100);
	usleep(20000);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_int_eq(memcmp(p.dst, p.src, 100), 0);
	pair_close(&p);
}
END_TEST

/* --- pins for single accesses ------------------------------------------------------------- */

START_TEST(ask_leases_end_when_their_accesses_are_done)
{
	unsigned before, deregs;

	open_pair(false, 0);
	deregs = fake_calls(FAKE_VMR_DEREG);
	write_ok(0, 5000);
	want_soon(atomic_load(&releases) == 1);
	want_soon(fake_calls(FAKE_VMR_DEREG) > deregs);
	before = fake_live_of(FAKE_VMR_REG);
	write_ok(8000, 5000);
	want_soon(atomic_load(&releases) == 2);
	want_soon(fake_live_of(FAKE_VMR_REG) == before);
	write_ok(0, 5000);
	ck_assert_int_eq(memcmp(p.dst, p.src, 5000), 0);
	want_soon(atomic_load(&releases) == 3);
	pair_close(&p);
}
END_TEST

/* After an access, when its lease has ended. */
static unsigned live_without_leases(void)
{
	unsigned deregs = fake_calls(FAKE_VMR_DEREG);

	write_ok(0, 100);
	want_soon(atomic_load(&releases) == 1);
	want_soon(fake_calls(FAKE_VMR_DEREG) > deregs);
	return fake_live_of(FAKE_VMR_REG);
}

/* One message says both. */
START_TEST(ask_a_question_releases_what_was_leased_before)
{
	enum { N = 20 };
	unsigned live, i;

	open_pair(false, 0);
	live = live_without_leases();
	/* In slow runs some are released because no question came in time. */
	for (i = 1; i < N || (!atomic_load(&releasing_questions) && i < 100 * N); i++) {
		write_ok(0, 100);
		ck_assert_uint_le(fake_live_of(FAKE_VMR_REG), live + 1);
	}
	ck_assert_uint_eq(atomic_load(&questions), i);
	ck_assert_uint_gt(atomic_load(&releasing_questions), 0);
	want_soon(atomic_load(&releases) + atomic_load(&releasing_questions) == i);
	want_soon(fake_live_of(FAKE_VMR_REG) == live);
	pair_close(&p);
}
END_TEST

/* Of those that begin before the application looks. */
START_TEST(ask_one_question_serves_all_that_began_before_it)
{
	enum { N = 16, LEN = 100 };
	int i, round;

	open_pair(false, 0);
	write_ok(0, 100);
	for (round = 1; round < 5; round++) {
		for (i = 0; i < N; i++)
			pair_write(&p, (size_t)i * LEN, LEN);
		for (i = 0; i < N; i++)
			want_ok(&p.a, NULL);
		/* More in slow runs, where each may find that 2 ms have passed. */
		ck_assert_uint_lt(atomic_load(&questions), 1 + (unsigned)round * N / 2);
	}
	ck_assert_int_eq(memcmp(p.dst, p.src, N * LEN), 0);
	pair_close(&p);
}
END_TEST

/* Nobody looks: they are sent after 2 ms. */
START_TEST(ask_gathered_questions_are_sent_without_a_look)
{
	unsigned live;
	int i;

	open_pair(false, 0);
	live = live_without_leases();
	write_ok(0, 100);
	for (i = 0; i < 3; i++)
		pair_write(&p, 0, 100);
	want_soon(atomic_load(&questions) >= 4);
	want_soon(fake_live_of(FAKE_VMR_REG) == live);
	for (i = 0; i < 3; i++)
		want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

START_TEST(ask_more_accesses_than_leases_all_get_done)
{
	enum { N = 200, LEN = 300 };
	int i;

	open_pair(false, 0);
	for (i = 0; i < N; i++)
		pair_write(&p, (size_t)i * LEN, LEN);
	for (i = 0; i < N; i++)
		want_ok(&p.a, NULL);
	ck_assert_int_eq(memcmp(p.dst, p.src, N * LEN), 0);
	want_none(&p.a);
	want_soon(atomic_load(&releases) >= 1);
	pair_close(&p);
}
END_TEST

/* What is pinned for one access is not what the next one, begun later, has to reach. */
START_TEST(ask_lease_serves_no_access_that_began_later)
{
	open_pair(false, 0);
	fake_hold(true);
	pair_write(&p, 0, 100);
	want_soon(fake_queued() == 1);
	ck_assert_uint_eq(atomic_load(&questions), 1);
	put_fresh_pages(p.dst, PAIR_LEN);
	pair_write(&p, 0, 200);
	want_soon(fake_queued() == 2);
	ck_assert_uint_eq(atomic_load(&releases), 0);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 0));
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_uint_eq(atomic_load(&questions), 2);
	ck_assert_int_eq(memcmp(p.dst, p.src, 200), 0);
	pair_close(&p);
}
END_TEST

static atomic_uint once_asked;

/* What the target says it keeps is refused by its kernel, as if the memory moved again. */
static enum fake_fate spoil_kept_answers(uint8_t *msg, size_t *len, bool from_target)
{
	struct mrf_answer answer;
	struct mrf_ask ask;

	if (!from_target && !mrf_ask_decode(msg, *len, &ask) && (ask.flags & MRF_ASK_ONCE))
		atomic_fetch_add(&once_asked, 1);
	if (from_target && !mrf_answer_decode(msg, *len, &answer) && answer.nseg &&
	    !(answer.flags & MRF_ANSWER_ONCE)) {
		answer.seg[0].rkey ^= 0x5a;
		*len = mrf_answer_encode(&answer, msg);
	}
	return FAKE_DELIVER;
}

START_TEST(ask_memory_that_moves_all_the_time_is_leased_in_the_end)
{
	open_pair(true, 0);
	fake.on_send = spoil_kept_answers;
	write_ok(0, 5000);
	ck_assert_int_eq(memcmp(p.dst, p.src, 5000), 0);
	/* Where nobody tells of changes it was leased in the first place. */
	ck_assert_uint_eq(atomic_load(&once_asked), mrf_monitor_usable());
	pair_close(&p);
}
END_TEST

START_TEST(ask_leases_end_with_the_connection)
{
	open_pair(false, 0);
	fake_hold(true);
	pair_write(&p, 0, 5000);
	want_soon(fake_queued() == 1);
	must_close(&p.a.ep->fid);
	fake_hold(false);
	p.a.ep = NULL;
	must_close(&p.mr->fid);
	p.mr = NULL;
	pair_close(&p);
}
END_TEST

/* --- many pins ------------------------------------------------------------------------------ */

START_TEST(ask_large_access_goes_over_many_pins)
{
	const size_t len = 24 * MIB;
	uint8_t *src = pages(len), *dst = pages(len);
	struct fid_mr *mr;
	size_t at;

	open_pair(_i, 0);
	mr = node_reg(&p.b, dst, len, REMOTE_RW, 4711);
	for (at = 0; at < len; at += MIB / 2)
		src[at] = src[at + 1] = (uint8_t)(at / MIB + 1);
	/* Pins here and there first, then everything, pins between them included. */
	for (at = MIB; at < len; at += 2 * MIB) {
		ck_assert_int_eq(fi_write(p.a.ep, src, 1, NULL, p.to, at, 4711, NULL), 0);
		want_ok(&p.a, NULL);
	}
	ck_assert_int_eq(fi_write(p.a.ep, src, len, NULL, p.to, 0, 4711, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(src, dst, len), 0);
	memset(src, 0, len);
	ck_assert_int_eq(fi_read(p.a.ep, src, len, NULL, p.to, 0, 4711, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(src, dst, len), 0);
	must_close(&mr->fid);
	pair_close(&p);
	munmap(src, len);
	munmap(dst, len);
}
END_TEST

/* Private pages, of which a peer may be told for good, beside shared ones, of which not. */
START_TEST(ask_access_over_memory_of_several_kinds_gets_done)
{
	enum { KINDS = 48 }; /* more than an answer has room for */
	const size_t piece = 3 * PAGE, len = KINDS * piece;
	uint8_t *src = pages(len), *dst = pages(len);
	struct fid_mr *mr;
	int i;

	open_pair(_i, 0);
	for (i = 0; i < KINDS; i += 2)
		ck_assert_ptr_ne(mmap(dst + (size_t)i * piece, piece, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 MAP_FAILED);
	mr = node_reg(&p.b, dst, len, REMOTE_RW, 4711);
	for (i = 1; i < 4; i++) {
		fill(src, len, (unsigned)i);
		ck_assert_int_eq(fi_write(p.a.ep, src, len - 7, NULL, p.to, 5, 4711, &p), 0);
		ck_assert_int_eq(fi_write(p.a.ep, src, 100, NULL, p.to, 2 * PAGE, 4711, NULL), 0);
		want_ok(&p.a, &p);
		want_ok(&p.a, NULL);
		ck_assert_int_eq(memcmp(dst + 5, src, 2 * PAGE - 5), 0);
		ck_assert_int_eq(memcmp(dst + 2 * PAGE, src, 100), 0);
		ck_assert_int_eq(memcmp(dst + 3 * PAGE, src + 3 * PAGE - 5, len - 7 - 3 * PAGE), 0);
	}
	must_close(&mr->fid);
	pair_close(&p);
	munmap(src, len);
	munmap(dst, len);
}
END_TEST

/* One that can never be whole must not be asked about for ever. */
START_TEST(ask_access_over_too_many_pieces_is_refused)
{
	const size_t count = 200, len = count * PAGE;
	uint8_t *src = pages(len), *dst = pages(len);
	struct fid_mr *mr;
	size_t i;

	open_pair(false, 0);
	for (i = 0; i < count; i += 2)
		ck_assert_ptr_ne(mmap(dst + i * PAGE, PAGE, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 MAP_FAILED);
	mr = node_reg(&p.b, dst, len, REMOTE_RW, 4711);
	node_ep(&p.a)->max_parts = 100;
	ck_assert_int_eq(fi_write(p.a.ep, src, len, NULL, p.to, 0, 4711, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EMSGSIZE, "too many pieces"), 4147);
	/* What came before, or is shorter, does not count. */
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(
			fi_write(p.a.ep, src, 50 * PAGE, NULL, p.to, i * 50 * PAGE, 4711, &p), 0);
		want_ok(&p.a, &p);
	}
	must_close(&mr->fid);
	pair_close(&p);
	munmap(src, len);
	munmap(dst, len);
}
END_TEST

/* n pages, each in a mapping of its own, which nobody watches. */
static uint8_t *scattered(size_t n)
{
	uint8_t *at = pages(n * PAGE);
	size_t i;

	fill(at, n * PAGE, 3);
	for (i = 0; i < n; i += 2)
		ck_assert_int_eq(mprotect(at + i * PAGE, PAGE, PROT_READ), 0);
	return at;
}

#define SCATTERED 700 /* more pages than MRF_LEASES answers have room for */

_Static_assert(SCATTERED > MRF_LEASES * MRF_PROTO_MAX_SEG, "it takes more leases");

static void read_two(uint8_t *to, const struct fi_rma_iov *rma)
{
	struct iovec iov = { .iov_base = to, .iov_len = rma[0].len + rma[1].len };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = p.to,
				  .rma_iov = rma,
				  .rma_iov_count = 2,
				  .context = &p };

	ck_assert_int_eq(fi_readmsg(p.a.ep, &msg, FI_COMPLETION), 0);
}

/* The leases that the first buffer takes are no reason not to ask for the second. */
START_TEST(ask_several_buffers_with_more_leases_than_may_begin_get_done)
{
	const size_t len = SCATTERED * PAGE;
	uint8_t *there = scattered(SCATTERED + 8), *to = pages(len + PAGE);
	struct fi_rma_iov rma[2] = { { .len = len, .key = 4711 },
				     { .addr = len + 4 * PAGE, .len = PAGE, .key = 4711 } };
	struct fid_mr *mr;

	open_pair(false, 0);
	mr = node_reg(&p.b, there, len + 8 * PAGE, FI_REMOTE_READ, 4711);
	read_two(to, rma);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(to, there, len), 0);
	ck_assert_int_eq(memcmp(to + len, there + rma[1].addr, PAGE), 0);
	want_none(&p.a);
	must_close(&mr->fid);
	pair_close(&p);
	munmap(there, len + 8 * PAGE);
	munmap(to, len + PAGE);
}
END_TEST

/* Each buffer alone is not too much, both together are. */
START_TEST(ask_several_buffers_of_too_many_pieces_are_refused)
{
	const size_t half = 60 * PAGE;
	uint8_t *there = scattered(120), *to = pages(2 * half);
	struct fi_rma_iov rma[2] = { { .len = half, .key = 4711 },
				     { .addr = half, .len = half, .key = 4711 } };
	struct fid_mr *mr;

	open_pair(false, 0);
	mr = node_reg(&p.b, there, 2 * half, FI_REMOTE_READ, 4711);
	node_ep(&p.a)->max_parts = 100;
	read_two(to, rma);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EMSGSIZE, "too many pieces"), 4147);
	rma[0].len = rma[1].len = 20 * PAGE;
	read_two(to, rma);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(to + 20 * PAGE, there + half, 20 * PAGE), 0);
	must_close(&mr->fid);
	pair_close(&p);
	munmap(there, 2 * half);
	munmap(to, 2 * half);
}
END_TEST

START_TEST(ask_bounds_are_the_regions_not_the_pins)
{
	open_pair(_i, 0);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, NULL, p.to, PAIR_LEN - 40, p.key, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EACCES, "60 bytes past the end"), 4105);
	write_ok(PAIR_LEN - 100, 100);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, NULL, p.to, UINT64_MAX - 3, p.key, &p),
			 -FI_EINVAL);
	/* Nothing of nothing: inside up to the end. */
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 0, NULL, p.to, PAIR_LEN, p.key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 0, NULL, p.to, PAIR_LEN + 1, p.key, &p), 0);
	want_err(&p.a, &p, FI_EACCES, NULL);
	pair_close(&p);
}
END_TEST

START_TEST(ask_access_of_nothing_at_several_places_gets_done)
{
	struct iovec iov = { .iov_base = p.src, .iov_len = 0 };
	struct fi_rma_iov rma[3];
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = rma, .rma_iov_count = 3, .context = &p
	};
	int i;

	open_pair(_i, 0);
	iov.iov_base = p.src;
	msg.addr = p.to;
	for (i = 0; i < 3; i++)
		rma[i] = (struct fi_rma_iov){ .addr = (uint64_t)i * 100, .key = p.key };
	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, FI_COMPLETION), 0);
	want_ok(&p.a, &p);
	rma[1].addr = PAIR_LEN + 1;
	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, FI_COMPLETION), 0);
	want_err(&p.a, &p, FI_EACCES, NULL);
	pair_close(&p);
}
END_TEST

START_TEST(ask_descriptor_of_a_region_that_is_not_pinned_serves_locally)
{
	open_pair(true, FI_MR_LOCAL);
	ck_assert_ptr_nonnull(p.desc);
	write_ok(8, 40000);
	ck_assert_int_eq(memcmp(p.dst + 8, p.src + 8, 40000), 0);
	write_ok(8, 8);
	ck_assert_int_eq(fi_write(p.a.ep, p.src + PAIR_LEN - 4, 8, p.desc, p.to, 0, p.key, &p),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, p.key, &p), -FI_EINVAL);
	pair_close(&p);
}
END_TEST

/* --- FI_MR_MMU_NOTIFY --------------------------------------------------------------------- */

START_TEST(ask_nothing_is_reached_before_a_refresh_covers_it)
{
	struct iovec half = { .iov_len = PAIR_LEN / 2 };

	open_pair(true, FI_MR_MMU_NOTIFY | _i);
	half.iov_base = p.dst;
	pair_write(&p, 0, 100);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "fi_mr_refresh"), 4144);
	ck_assert_int_eq(fi_mr_refresh(p.mr, &half, 1, 0), 0);
	write_ok(0, 100);
	pair_write(&p, PAIR_LEN / 2 - 1, 2);
	want_err(&p.a, pair_ctx(&p, PAIR_LEN / 2 - 1), FI_EACCES, NULL);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	write_ok(0, PAIR_LEN);
	put_fresh_pages(p.dst, PAIR_LEN);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	write_ok(0, PAIR_LEN);
	ck_assert_int_eq(memcmp(p.dst, p.src, PAIR_LEN), 0);
	pair_close(&p);
}
END_TEST

/* Of the peer's region one half is there when it is registered. */
START_TEST(ask_memory_that_was_there_is_reached_before_a_refresh)
{
	open_pair(true, FI_MR_MMU_NOTIFY | _i);
	must_close(&p.mr->fid);
	put_fresh_pages(p.dst, PAIR_LEN);
	memset(p.dst, 1, 2 * PAGE);
	pair_reg(&p, REMOTE_RW);
	memset(p.dst, 2, PAIR_LEN);
	write_ok(0, 2 * PAGE);
	ck_assert_int_eq(memcmp(p.dst, p.src, 2 * PAGE), 0);
	pair_write(&p, 2 * PAGE - 1, 2);
	want_err(&p.a, pair_ctx(&p, 2 * PAGE - 1), FI_EACCES, "fi_mr_refresh");
	pair_close(&p);
}
END_TEST

START_TEST(ask_refreshed_bytes_without_memory_are_refused)
{
	open_pair(true, FI_MR_MMU_NOTIFY | _i);
	connect_first();
	ck_assert_int_eq(munmap(p.dst + PAGE, PAGE), 0);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	write_ok(0, PAGE);
	pair_write(&p, PAGE, 100);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, PAGE), FI_EFAULT, "no memory"), 4145);
	pair_read(&p, PAGE - 1, 2);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, PAGE - 1), FI_EFAULT, "no memory"), 4145);
	put_fresh_pages(p.dst + PAGE, PAGE);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	write_ok(PAGE, 100);
	pair_close(&p);
}
END_TEST

/*
 * What peers have on its way when a region is refreshed is refused, by both rights, and done when
 * they have asked anew. Without the refresh nothing of that happens.
 */
START_TEST(ask_what_is_on_its_way_when_a_region_is_refreshed_is_refused_first)
{
	unsigned connects, asks, round;

	open_pair(true, FI_MR_MMU_NOTIFY | _i);
	ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	for (round = 0; round < 4; round++) {
		write_ok(0, 100);
		connects = fake_connects();
		asks = fake_asks();
		fake_hold(true);
		if (round & 1)
			pair_read(&p, 0, 100);
		else
			pair_write(&p, 0, 100);
		if (round & 2)
			ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
		fake_hold(false);
		want_ok(&p.a, pair_ctx(&p, 0));
		ck_assert_uint_eq(fake_connects() - connects, round >> 1);
		ck_assert_int_eq(fake_asks() - asks > 0, round >> 1);
	}
	pair_close(&p);
}
END_TEST

/* --- raw keys -------------------------------------------------------------------------------- */

struct raw {
	uint64_t base;
	size_t size;
	uint8_t bytes[512];
};

static void raw_of(struct fid_mr *mr, struct raw *raw)
{
	raw->size = sizeof(raw->bytes);
	ck_assert_int_eq(fi_mr_raw_attr(mr, &raw->base, raw->bytes, &raw->size, 0), 0);
}

static uint64_t map_raw(struct node *n, struct raw *raw)
{
	uint64_t key = 0;

	ck_assert_int_eq(fi_mr_map_raw(n->domain, raw->base, raw->bytes, raw->size, &key, 0), 0);
	return key;
}

START_TEST(ask_raw_key_of_a_pinned_region_needs_no_question)
{
	struct raw raw;
	uint64_t key;

	open_pair(true, FI_MR_RAW | FI_MR_ALLOCATED | _i);
	ck_assert_uint_eq(p.key, FI_KEY_NOTAVAIL);
	raw_of(p.mr, &raw);
	key = map_raw(&p.a, &raw);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 5000, p.desc, p.to, raw.base, key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(p.dst, p.src, 5000), 0);
	ck_assert_uint_eq(fake_asks(), 0);
	/* Bounds and rights are refused after a question, as ever. */
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 2, p.desc, p.to, raw.base + PAIR_LEN - 1, key, &p),
			 0);
	want_err(&p.a, &p, FI_EACCES, "past the end");
	ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key), 0);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, raw.base, key, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, "unmapped"), 4142);
	pair_close(&p);
}
END_TEST

START_TEST(ask_where_raw_keys_are_required_no_other_will_do)
{
	open_pair(true, FI_MR_RAW | FI_MR_ALLOCATED | _i);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, 0, PAIR_KEY, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, "FI_MR_RAW"), 4140);
	pair_close(&p);
}
END_TEST

START_TEST(ask_raw_key_of_a_region_pinned_on_demand_is_asked_about)
{
	struct raw raw;
	uint64_t key;

	open_pair(true, _i);
	raw_of(p.mr, &raw);
	key = map_raw(&p.a, &raw);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 5000, p.desc, p.to, raw.base, key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(p.dst, p.src, 5000), 0);
	ck_assert_uint_eq(atomic_load(&questions), 1);
	put_fresh_pages(p.dst, PAIR_LEN);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 5000, p.desc, p.to, raw.base, key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(p.dst, p.src, 5000), 0);
	ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key), 0);
	pair_close(&p);
}
END_TEST

START_TEST(ask_raw_key_is_of_one_registration)
{
	struct raw raw;
	uint64_t key;

	open_pair(true, _i);
	raw_of(p.mr, &raw);
	key = map_raw(&p.a, &raw);
	must_close(&p.mr->fid);
	pair_reg(&p, REMOTE_RW);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, raw.base, key, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, "closed"), 4102);
	ck_assert_uint_eq(p.dst[0], 0);
	ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key), 0);
	pair_close(&p);
}
END_TEST

START_TEST(ask_raw_key_of_another_peer_is_refused)
{
	struct node other;
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED };
	uint8_t *theirs = pages(PAGE);
	struct fid_mr *mr;
	struct raw raw;
	uint64_t key;

	open_pair(true, FI_MR_ALLOCATED);
	node_open(&other, &opt);
	mr = node_reg(&other, theirs, PAGE, REMOTE_RW, PAIR_KEY);
	raw_of(mr, &raw);
	key = map_raw(&p.a, &raw);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, raw.base, key, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, "another peer"), 4141);
	ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key), 0);
	must_close(&mr->fid);
	node_close(&other);
	pair_close(&p);
	munmap(theirs, PAGE);
}
END_TEST

/* The process there is another one, and numbers its regions as the old one did. */
START_TEST(ask_raw_key_of_the_process_before_is_refused)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED };
	struct raw raw;
	uint64_t key;

	open_pair(true, FI_MR_ALLOCATED);
	opt.port = node_port(&p.b);
	raw_of(p.mr, &raw);
	key = map_raw(&p.a, &raw);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, raw.base, key, &p), 0);
	want_ok(&p.a, &p);
	must_close(&p.mr->fid);
	node_close(&p.b);
	node_open(&p.b, &opt);
	memset(p.dst, 0, PAGE);
	pair_reg(&p, REMOTE_RW);
	/* A read: a write may meet the old connection just before it is seen to be gone. */
	ck_assert_int_eq(fi_read(p.a.ep, p.src, 8, p.desc, p.to, raw.base, key, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, "another peer"), 4141);
	pair_write(&p, 16, 8);
	want_ok(&p.a, pair_ctx(&p, 16));
	/* Now that the connection is there. */
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, raw.base, key, &p), 0);
	want_err(&p.a, &p, FI_EKEYREJECTED, "another peer");
	ck_assert_uint_eq(p.dst[0], 0);
	ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key), 0);
	pair_close(&p);
}
END_TEST

/* --- FI_MR_ENDPOINT --------------------------------------------------------------------------- */

START_TEST(ask_endpoint_region_is_reached_through_its_endpoint_only)
{
	struct node_opt opt = { .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | _i };
	struct fid_ep *second;

	open_pair(true, opt.mr_mode);
	ck_assert_int_eq(node_try_ep(&p.b, &opt, &second), 0);
	if (!_i) {
		ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, 0, PAIR_KEY, &p), 0);
		ck_assert_int_eq(want_err(&p.a, &p, FI_EACCES, "not enabled"), 4103);
	}
	ck_assert_int_eq(fi_mr_bind(p.mr, &second->fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(p.mr), 0);
	p.key = fi_mr_key(p.mr);
	if (!_i) {
		pair_write(&p, 0, 8);
		ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "not bound"), 4143);
	}
	must_close(&second->fid);
	must_close(&p.mr->fid);
	pair_reg(&p, REMOTE_RW);
	ck_assert_int_eq(fi_mr_bind(p.mr, &p.b.ep->fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(p.mr), 0);
	p.key = fi_mr_key(p.mr);
	write_ok(0, 5000);
	ck_assert_int_eq(memcmp(p.dst, p.src, 5000), 0);
	/* The endpoint first, then its region. */
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	pair_close(&p);
}
END_TEST

/* ------------------------------------------------------------------------------------------ */

static TCase *tcase_ask(void)
{
	TCase *tc = tcase_create("ask");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, ask_registering_pins_nothing_and_an_access_pins, 0, 2);
	tcase_add_loop_test(tc, ask_memory_that_is_not_there_fails_at_the_peer_only, 0, 2);
	tcase_add_loop_test(tc, ask_new_pages_are_reached_under_the_same_key, 0, 2);
	tcase_add_test(tc, ask_peers_are_told_and_need_no_new_connection);
	tcase_add_loop_test(tc, ask_peers_are_told_what_has_changed, 1, 5);
	tcase_add_test(tc, ask_peers_that_are_not_told_are_refused_and_ask_again);
	tcase_add_test(tc, ask_leases_end_when_their_accesses_are_done);
	tcase_add_test(tc, ask_a_question_releases_what_was_leased_before);
	tcase_add_test(tc, ask_one_question_serves_all_that_began_before_it);
	tcase_add_test(tc, ask_gathered_questions_are_sent_without_a_look);
	tcase_add_test(tc, ask_more_accesses_than_leases_all_get_done);
	tcase_add_test(tc, ask_lease_serves_no_access_that_began_later);
	tcase_add_test(tc, ask_memory_that_moves_all_the_time_is_leased_in_the_end);
	tcase_add_test(tc, ask_leases_end_with_the_connection);
	tcase_add_loop_test(tc, ask_large_access_goes_over_many_pins, 0, 2);
	tcase_add_loop_test(tc, ask_access_over_memory_of_several_kinds_gets_done, 0, 2);
	tcase_add_test(tc, ask_access_over_too_many_pieces_is_refused);
	tcase_add_test(tc, ask_several_buffers_with_more_leases_than_may_begin_get_done);
	tcase_add_test(tc, ask_several_buffers_of_too_many_pieces_are_refused);
	tcase_add_loop_test(tc, ask_bounds_are_the_regions_not_the_pins, 0, 2);
	tcase_add_loop_test(tc, ask_access_of_nothing_at_several_places_gets_done, 0, 2);
	tcase_add_test(tc, ask_descriptor_of_a_region_that_is_not_pinned_serves_locally);
	return tc;
}

#define PROV_VIRT (FI_MR_PROV_KEY | FI_MR_VIRT_ADDR)

static TCase *tcase_modes(void)
{
	TCase *tc = tcase_create("modes");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, ask_nothing_is_reached_before_a_refresh_covers_it, 0, 1);
	tcase_add_loop_test(tc, ask_nothing_is_reached_before_a_refresh_covers_it, PROV_VIRT,
			    PROV_VIRT + 1);
	tcase_add_loop_test(tc, ask_memory_that_was_there_is_reached_before_a_refresh, 0, 1);
	tcase_add_loop_test(tc, ask_memory_that_was_there_is_reached_before_a_refresh, PROV_VIRT,
			    PROV_VIRT + 1);
	tcase_add_loop_test(tc, ask_refreshed_bytes_without_memory_are_refused, 0, 1);
	tcase_add_loop_test(tc, ask_refreshed_bytes_without_memory_are_refused, PROV_VIRT,
			    PROV_VIRT + 1);
	tcase_add_loop_test(tc, ask_what_is_on_its_way_when_a_region_is_refreshed_is_refused_first,
			    0, 1);
	tcase_add_loop_test(tc, ask_what_is_on_its_way_when_a_region_is_refreshed_is_refused_first,
			    PROV_VIRT, PROV_VIRT + 1);
	tcase_add_loop_test(tc, ask_raw_key_of_a_pinned_region_needs_no_question, 0, 1);
	tcase_add_loop_test(tc, ask_raw_key_of_a_pinned_region_needs_no_question, PROV_VIRT,
			    PROV_VIRT + 1);
	tcase_add_loop_test(tc, ask_where_raw_keys_are_required_no_other_will_do, 0, 1);
	tcase_add_loop_test(tc, ask_where_raw_keys_are_required_no_other_will_do, PROV_VIRT,
			    PROV_VIRT + 1);
	tcase_add_loop_test(tc, ask_raw_key_of_a_region_pinned_on_demand_is_asked_about, 0, 1);
	tcase_add_loop_test(tc, ask_raw_key_of_a_region_pinned_on_demand_is_asked_about, PROV_VIRT,
			    PROV_VIRT + 1);
	tcase_add_loop_test(tc, ask_raw_key_is_of_one_registration, 0, 1);
	tcase_add_loop_test(tc, ask_raw_key_is_of_one_registration, FI_MR_ALLOCATED,
			    FI_MR_ALLOCATED + 1);
	tcase_add_test(tc, ask_raw_key_of_another_peer_is_refused);
	tcase_add_test(tc, ask_raw_key_of_the_process_before_is_refused);
	tcase_add_loop_test(tc, ask_endpoint_region_is_reached_through_its_endpoint_only, 0, 1);
	tcase_add_loop_test(tc, ask_endpoint_region_is_reached_through_its_endpoint_only, PROV_VIRT,
			    PROV_VIRT + 1);
	return tc;
}

UNIT_MAIN("ask", tcase_ask, tcase_modes)
