/* SPDX-License-Identifier: BSD-2-Clause */
/* What is behind a peer's key: asked, remembered, contradicted, asked again. */
#include <sys/mman.h>
#include <rdma/fi_atomic.h>
#include "ep_fixture.h"

static struct pair p;

static struct node_opt mode_opt(int mode)
{
	return (struct node_opt){ .mr_mode = mode };
}

/* One access that is done, so that connection and answer are there. */
static void warm_up(void)
{
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
}

static ssize_t write_key(size_t from, size_t len, uint64_t addr, uint64_t key, void *context)
{
	return fi_write(p.a.ep, p.src + from, len, p.desc, p.to, addr, key, context);
}

/* --- what changes at the target
 * ---------------------------------------------------------- */

START_TEST(resolve_finds_the_region_registered_anew_under_the_same_key)
{
	uint8_t *other = pages(PAIR_LEN);

	pair_open(&p, NULL);
	warm_up();
	must_close(&p.mr->fid);
	p.mr = node_reg(&p.b, other, PAIR_LEN, REMOTE_RW, PAIR_KEY);
	pair_write(&p, 0, 5000);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert(filled(other, 5000, 1));
	ck_assert_uint_eq(p.dst[8], 0);
	pair_close(&p);
	munmap(other, PAIR_LEN);
}
END_TEST

START_TEST(resolve_never_refuses_on_an_old_answer)
{
	pair_open(&p, NULL);
	must_close(&p.mr->fid);
	p.mr = NULL;
	ck_assert_int_eq(write_key(0, 8, 0, PAIR_KEY, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, "closed"), 4102);
	ck_assert_int_eq(write_key(0, 8, 0, 4711, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, "unknown"), 4101);
	pair_reg(&p, FI_REMOTE_READ);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "FI_REMOTE_WRITE"), 4104);
	must_close(&p.mr->fid);
	pair_reg(&p, REMOTE_RW);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

/* Through a variable of 32 bits. */
START_TEST(resolve_says_that_a_key_is_too_small_to_be_the_peers)
{
	static const int modes[] = { FI_MR_ALLOCATED, FI_MR_PROV_KEY,
				     FI_MR_PROV_KEY | FI_MR_ALLOCATED,
				     FI_MR_PROV_KEY | FI_MR_VIRT_ADDR };
	struct node_opt opt = mode_opt(modes[_i]);
	uint64_t cut;

	pair_open(&p, &opt);
	cut = _i ? (uint32_t)p.key : 4711;
	ck_assert(cut != p.key);
	ck_assert_int_eq(write_key(0, 8, p.base, cut, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, _i ? "so small" : "no such region"),
			 4101);
	ck_assert_int_eq(write_key(0, 8, p.base, ~p.key, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, "no such region"), 4101);
	pair_close(&p);
}
END_TEST

START_TEST(resolve_says_by_how_much_an_access_is_out_of_bounds)
{
	struct node_opt opt = mode_opt(_i ? FI_MR_VIRT_ADDR : 0);

	pair_open(&p, &opt);
	ck_assert_int_eq(write_key(0, 100, p.base + PAIR_LEN - 40, p.key, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EACCES, "60 bytes past the end"), 4105);
	ck_assert_int_eq(write_key(0, 100, p.base + PAIR_LEN + 40, p.key, &p), 0);
	want_err(&p.a, &p, FI_EACCES, "out of bounds");
	/* Offset and address mixed up. */
	ck_assert_int_eq(write_key(0, 100, _i ? 16 : (uintptr_t)p.dst, p.key, &p), 0);
	want_err(&p.a, &p, FI_EACCES, _i ? "looks like an offset" : "looks like an address");
	warm_up();
	ck_assert_uint_eq(fake.nlog, 1);
	pair_close(&p);
}
END_TEST

/* An address is the application's, in all of its bits, whatever the key says of itself. */
static const int address_modes[] = { FI_MR_ALLOCATED, FI_MR_PROV_KEY | FI_MR_ALLOCATED,
				     FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR };
#define ADDRESS_MODES ((int)MRF_ARRAY_SIZE(address_modes))

static void want_refused(ssize_t (*access)(struct fid_ep *ep, uint64_t addr), uint64_t addr)
{
	ck_assert_int_eq(access(p.a.ep, addr), 0);
	want_err(&p.a, &p, FI_EACCES, "out of bounds");
	ck_assert_msg(!memcmp(p.dst, p.dst + PAIR_LEN / 2, PAIR_LEN / 2), "0x%llx was changed",
		      (unsigned long long)addr);
}

static ssize_t write_at(struct fid_ep *ep, uint64_t addr)
{
	return fi_write(ep, p.src, 64, p.desc, p.to, addr, p.key, &p);
}

static ssize_t read_at(struct fid_ep *ep, uint64_t addr)
{
	return fi_read(ep, p.src, 64, p.desc, p.to, addr, p.key, &p);
}

static ssize_t add_at(struct fid_ep *ep, uint64_t addr)
{
	static uint64_t one = 1;

	return fi_atomic(ep, &one, 1, p.desc, p.to, addr, p.key, FI_UINT64, FI_SUM, &p);
}

START_TEST(resolve_no_bit_of_an_address_means_anything_else)
{
	struct node_opt opt = mode_opt(address_modes[_i]);

	opt.caps = MRF_CAPS;
	pair_open(&p, &opt);
	memset(p.src, 0xab, 64);
	memset(p.dst, 0x11, PAIR_LEN);
	for (int bit = 63; bit > 24; bit -= 3) {
		want_refused(write_at, p.base ^ 1ull << bit);
		want_refused(read_at, p.base ^ 1ull << bit);
		want_refused(add_at, p.base ^ 1ull << bit);
	}
	pair_close(&p);
}
END_TEST

START_TEST(resolve_provider_key_of_a_closed_region_is_asked_about_after_the_kernel_refused)
{
	static const int modes[] = { FI_MR_BASIC, FI_MR_PROV_KEY };
	struct node_opt opt = mode_opt(modes[_i]);
	uint64_t key;

	pair_open(&p, &opt);
	warm_up();
	key = p.key;
	must_close(&p.mr->fid);
	p.mr = NULL;
	pair_write(&p, 0, 100);
	want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "closed");
	pair_reg(&p, FI_REMOTE_READ);
	ck_assert_uint_ne(p.key, key);
	pair_write(&p, 0, 100);
	want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "FI_REMOTE_WRITE");
	must_close(&p.mr->fid);
	pair_reg(&p, REMOTE_RW);
	ck_assert_int_eq(write_key(0, 100, p.base + PAIR_LEN - 10, p.key, &p), 0);
	want_err(&p.a, &p, FI_EACCES, "90 bytes past the end");
	pair_write(&p, 0, 100);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert(filled(p.dst, 100, 1));
	pair_close(&p);
}
END_TEST

START_TEST(resolve_peer_that_starts_again_with_other_keys_is_learnt_anew)
{
	struct node_opt opt = { .port = 4711 };
	struct fid_mr *mr;

	pair_open(&p, NULL);
	node_close(&p.a);
	must_close(&p.mr->fid);
	node_close(&p.b);
	node_open(&p.a, NULL);
	node_open(&p.b, &opt);
	p.to = node_insert(&p.a, &p.b);
	pair_reg(&p, REMOTE_RW);
	warm_up();
	must_close(&p.mr->fid);
	node_close(&p.b);
	opt.mr_mode = FI_MR_BASIC;
	node_open(&p.b, &opt);
	pair_reg(&p, REMOTE_RW);
	mr = node_reg(&p.b, p.dst, 100, REMOTE_RW, 1);
	/* A read: a write may meet the old connection just before it is seen to be gone.
	 */
	memset(p.dst, 7, PAIR_LEN);
	pair_read(&p, 100, 5000);
	want_ok(&p.a, pair_ctx(&p, 100));
	ck_assert_int_eq(memcmp(p.src + 100, p.dst + 100, 5000), 0);
	must_close(&mr->fid);
	pair_close(&p);
}
END_TEST

/* --- refused, with others behind
 * ------------------------------------------------------------ */

#define MANY 40

/* Completions come in any order: each operation's once, and as it should be. */
static void want_each_once(const bool *bad)
{
	bool seen[MANY] = { false };
	int i;

	for (i = 0; i < MANY; i++) {
		struct fi_cq_data_entry e = { 0 };
		struct fi_cq_err_entry err = { 0 };
		ssize_t ret = fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS);
		size_t which;

		if (ret == -FI_EAVAIL) {
			ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
			ck_assert_int_eq(err.err, FI_EKEYREJECTED);
			e.op_context = err.op_context;
		}
		which = (size_t)((uint8_t *)e.op_context - p.src) / 300;
		ck_assert_uint_lt(which, MANY);
		ck_assert(!seen[which]);
		seen[which] = true;
		ck_assert_int_eq(ret, bad[which] ? -FI_EAVAIL : 1);
	}
	want_none(&p.a);
}

/* Each of MANY writes went to its place once, in order, but those of bad. */
static void want_log(size_t from, const bool *bad)
{
	size_t at = from;
	int i;

	for (i = 0; i < MANY; i++) {
		if (bad[i])
			continue;
		ck_assert_uint_lt(at, fake.nlog);
		ck_assert_uint_eq(fake.log[at].addr, (uintptr_t)p.dst + (size_t)i * 300);
		ck_assert_uint_eq(fake.log[at].first, p.src[i * 300]);
		at++;
	}
	ck_assert_uint_eq(at, fake.nlog);
}

START_TEST(resolve_refused_operation_does_not_harm_those_behind_it)
{
	static const int modes[] = { 0, FI_MR_PROV_KEY, FI_MR_LOCAL | FI_MR_PROV_KEY };
	/* What is pinned on demand may take a work request for each of two pages. */
	struct node_opt opt = mode_opt(modes[_i] | FI_MR_ALLOCATED);
	struct fid_mr *doomed;
	uint8_t mem[PAGE];
	bool bad[MANY] = { [7] = true, [8] = true, [20] = true };
	uint64_t key;
	int i;

	pair_open(&p, &opt);
	doomed = node_reg(&p.b, mem, sizeof(mem), REMOTE_RW, 99);
	key = fi_mr_key(doomed);
	ck_assert_int_eq(write_key(0, 8, 0, key, &p), 0);
	want_ok(&p.a, &p);
	warm_up();
	fake_hold(true);
	for (i = 0; i < MANY; i++) {
		if (bad[i])
			ck_assert_int_eq(write_key((size_t)i * 300, 300, 0, key,
						   pair_ctx(&p, (size_t)i * 300)),
					 0);
		else
			pair_write(&p, (size_t)i * 300, 300);
	}
	must_close(&doomed->fid);
	fake_hold(false);
	/* All by itself: nobody reads the CQ. */
	want_soon(fake_nlog() == 2 + MANY - 3);
	want_each_once(bad);
	want_log(2, bad);
	pair_close(&p);
}
END_TEST

/* By kernel and answer in turn: what one learns, those behind it need not learn again. */
START_TEST(resolve_several_accesses_of_a_closed_region_are_all_refused)
{
	static const int modes[] = { 0, FI_MR_PROV_KEY, FI_MR_LOCAL | FI_MR_PROV_KEY };
	struct node_opt opt = mode_opt(modes[_i]);
	int i;

	pair_open(&p, &opt);
	warm_up();
	fake_hold(true);
	for (i = 0; i < 12; i++)
		pair_write(&p, (size_t)i * 100, 100);
	must_close(&p.mr->fid);
	p.mr = NULL;
	fake_hold(false);
	for (i = 0; i < 12; i++)
		want_err(&p.a, NULL, FI_EKEYREJECTED, "closed");
	want_none(&p.a);
	ck_assert_uint_eq(fake.nlog, 1);
	pair_reg(&p, REMOTE_RW);
	warm_up();
	pair_close(&p);
}
END_TEST

/* Two remote pieces, of which the second's region was closed; max_msg_size of one page.
 */
static void write_two(size_t each, uint64_t second)
{
	struct iovec here = { p.src, 2 * each };
	struct fi_rma_iov rma[2] = { { p.base, each, p.key }, { 0, each, second } };
	struct fi_msg_rma msg = { .msg_iov = &here,
				  .iov_count = 1,
				  .addr = p.to,
				  .rma_iov = rma,
				  .rma_iov_count = 2,
				  .context = &p };

	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, 0), 0);
}

START_TEST(resolve_refused_halfway_sends_nothing_twice)
{
	const size_t each = 5 * PAGE;
	uint8_t *mem = pages(2 * each);
	struct fid_mr *mr;
	size_t i;

	fake.max_msg_size = PAGE;
	pair_open(&p, PLAIN);
	mr = node_reg(&p.b, mem, each, REMOTE_RW, 99);
	write_two(each, 99);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(fake.nlog, 10);
	memset(p.dst, 0, each);
	fake_hold(true);
	write_two(each, 99);
	pair_write(&p, 10 * PAGE, 100);
	must_close(&mr->fid);
	/* There again, elsewhere: the second half goes there. Or not: it fails. */
	mr = _i ? node_reg(&p.b, mem + each, each, REMOTE_RW, 99) : NULL;
	fake_hold(false);
	if (mr)
		want_ok(&p.a, &p);
	else
		want_err(&p.a, &p, FI_EKEYREJECTED, "closed");
	want_ok(&p.a, pair_ctx(&p, 10 * PAGE));
	ck_assert_uint_eq(fake.nlog, mr ? 21 : 16);
	for (i = 0; i < 5; i++)
		ck_assert_uint_eq(fake.log[10 + i].addr, (uintptr_t)p.dst + i * PAGE);
	for (i = 0; mr && i < 5; i++)
		ck_assert_uint_eq(fake.log[15 + i].addr, (uintptr_t)mem + each + i * PAGE);
	ck_assert_int_eq(memcmp(p.dst, p.src, each), 0);
	ck_assert(!mr || !memcmp(mem + each, p.src + each, each));
	if (mr)
		must_close(&mr->fid);
	pair_close(&p);
	munmap(mem, 2 * each);
}
END_TEST

static enum fake_fate wrong_rkey(uint8_t *msg, size_t *len, bool from_target)
{
	struct mrf_answer answer;

	if (from_target && !mrf_answer_decode(msg, *len, &answer) && answer.key == 99) {
		answer.seg[0].rkey ^= 1;
		*len = mrf_answer_encode(&answer, msg);
	}
	return FAKE_DELIVER;
}

START_TEST(resolve_gives_up_when_answers_and_kernel_disagree_for_ever)
{
	struct node_opt opt = mode_opt(FI_MR_ALLOCATED);
	struct fid_mr *mr;
	uint8_t mem[64];

	pair_open(&p, &opt);
	mr = node_reg(&p.b, mem, sizeof(mem), REMOTE_RW, 99);
	fake.on_send = wrong_rkey;
	ck_assert_int_eq(write_key(0, 8, 0, 99, &p), 0);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EACCES, "refused the access 9 times"), 4107);
	want_ok(&p.a, pair_ctx(&p, 0));
	must_close(&mr->fid);
	pair_close(&p);
}
END_TEST

/* --- answers that are late, twofold, lost, wrong
 * ----------------------------------------------- */

static enum fake_fate answers_twice(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	(void)len;
	return from_target ? FAKE_TWICE : FAKE_DELIVER;
}

START_TEST(resolve_second_copy_of_an_answer_is_ignored)
{
	uint64_t key;

	pair_open(&p, NULL);
	fake.on_send = answers_twice;
	for (key = 1000; key < 1040; key++) {
		ck_assert_int_eq(write_key(0, 8, 0, key, &p), 0);
		want_err(&p.a, &p, FI_EKEYREJECTED, NULL);
	}
	warm_up();
	ck_assert_uint_eq(fake.connects, 1);
	pair_close(&p);
}
END_TEST

static enum fake_fate answers_later(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	(void)len;
	return from_target ? FAKE_KEEP : FAKE_DELIVER;
}

START_TEST(resolve_late_answer_of_a_region_that_is_gone_by_then_is_not_believed)
{
	pair_open(&p, NULL);
	fake.on_send = answers_later;
	pair_write(&p, 0, 8);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2 && fake_connects() == 1);
	usleep(20000);
	must_close(&p.mr->fid);
	pair_reg(&p, REMOTE_RW);
	fake_hold(true); /* so that the hook changes while nothing moves */
	fake.on_send = NULL;
	fake_deliver();
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert(filled(p.dst, 8, 1));
	pair_close(&p);
}
END_TEST

static unsigned garbles;

static enum fake_fate garble(uint8_t *msg, size_t *len, bool from_target)
{
	if (from_target && garbles) {
		garbles--;
		msg[1] = 0x7f;
		*len = 20;
	}
	return FAKE_DELIVER;
}

START_TEST(resolve_malformed_answer_costs_the_connection_only)
{
	garbles = 2;
	pair_open(&p, NULL);
	fake.on_send = garble;
	pair_write(&p, 0, 8);
	pair_write(&p, 8, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	want_ok(&p.a, pair_ctx(&p, 8));
	ck_assert_uint_eq(fake.connects, 3);
	pair_close(&p);
}
END_TEST

START_TEST(resolve_malformed_answers_for_ever_end_in_an_error)
{
	garbles = UINT32_MAX;
	pair_open(&p, NULL);
	fake.on_send = garble;
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_ECONNRESET, "drops"), 4131);
	ck_assert_uint_eq(fake.connects, 5);
	pair_close(&p);
}
END_TEST

static enum fake_fate foreign_cookie(uint8_t *msg, size_t *len, bool from_target)
{
	struct mrf_answer answer;

	if (from_target && !mrf_answer_decode(msg, *len, &answer)) {
		answer.cookie ^= 0x100;
		*len = mrf_answer_encode(&answer, msg);
	}
	return FAKE_DELIVER;
}

static enum fake_fate drop_answers(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	(void)len;
	return from_target ? FAKE_DROP : FAKE_DELIVER;
}

/* Whoever never answers keeps the operations that depend on it, and nothing else. */
START_TEST(resolve_without_an_answer_others_go_on_and_the_endpoint_closes)
{
	struct fid_mr *mr;
	uint8_t mem[64] = { 0 };
	struct node third;
	fi_addr_t other;

	pair_open(&p, PLAIN);
	node_open(&third, PLAIN);
	other = node_insert(&third, &p.a);
	mr = node_reg(&p.a, mem, sizeof(mem), REMOTE_RW, 5);
	ck_assert_int_eq(fi_write(third.ep, p.src, 8, NULL, other, 0, 5, mem), 0);
	want_ok(&third, mem);
	fake.on_send = _i ? drop_answers : foreign_cookie;
	pair_write(&p, 0, 8);
	ck_assert_int_eq(fi_write(third.ep, p.src, 16, NULL, other, 0, 5, mem), 0);
	want_ok(&third, mem);
	want_none(&p.a);
	ck_assert_uint_eq(fake.nlog, 2);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	must_close(&mr->fid);
	node_close(&third);
	pair_close(&p);
}
END_TEST

static enum fake_fate no_segments(uint8_t *msg, size_t *len, bool from_target)
{
	struct mrf_answer answer;

	if (from_target && !mrf_answer_decode(msg, *len, &answer)) {
		answer.nseg = 0;
		answer.len = UINT64_MAX;
		answer.base = UINT64_MAX;
		*len = mrf_answer_encode(&answer, msg);
	}
	return FAKE_DELIVER;
}

START_TEST(resolve_answer_without_segments_refuses_every_byte)
{
	struct node_opt opt = mode_opt(_i);

	pair_open(&p, &opt);
	fake.on_send = no_segments;
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, NULL);
	/* Of a region that is pinned on demand an answer about no bytes has no segments. */
	pair_write(&p, 0, 0);
	if (_i)
		want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, NULL);
	else
		want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

START_TEST(resolve_remembers_a_bounded_number_of_keys)
{
	const uint64_t keys = 16384 + 600;
	struct mrf_peer *peer;
	uint64_t key, done;

	pair_open(&p, NULL);
	warm_up();
	for (key = done = 0; done < keys;) {
		if (key < keys && key - done < 256) {
			ck_assert_int_eq(write_key(0, 8, 0, 1000 + key, &p), 0);
			key++;
			continue;
		}
		want_err(&p.a, &p, FI_EKEYREJECTED, NULL);
		done++;
	}
	peer = node_ep(&p.a)->peers[MRF_CONN_ACCESS].of[p.to];
	ck_assert_uint_eq(peer->known.remotes.count, 16384);
	warm_up();
	pair_close(&p);
}
END_TEST

static uint64_t asked_for;

/* The target knows one key only, and gives the same answer for whichever is asked for. */
static enum fake_fate one_for_all(uint8_t *msg, size_t *len, bool from_target)
{
	struct mrf_answer answer;
	struct mrf_ask ask;

	if (!from_target && !mrf_ask_decode(msg, *len, &ask)) {
		asked_for = ask.key;
		ask.key = p.key;
		*len = mrf_ask_encode(&ask, msg);
	} else if (from_target && !mrf_answer_decode(msg, *len, &answer)) {
		answer.key = asked_for;
		*len = mrf_answer_encode(&answer, msg);
	}
	return FAKE_DELIVER;
}

/* A few more keys than are remembered, used in turn: most of them are known each time. */
START_TEST(resolve_forgets_no_more_keys_than_it_has_to)
{
	const unsigned keys = 16384 + 600;
	unsigned round, asks = 0, key;

	pair_open(&p, PLAIN);
	fake.on_send = one_for_all;
	for (round = 0; round < 2; round++) {
		asks = fake_asks();
		for (key = 1000; key < 1000 + keys; key++) {
			ck_assert_int_eq(write_key(0, 8, 0, key, &p), 0);
			want_ok(&p.a, &p);
		}
	}
	ck_assert_uint_lt(fake_asks() - asks, keys / 4);
	pair_close(&p);
}
END_TEST

static TCase *tcase_changes(void)
{
	TCase *tc = tcase_create("changes");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, resolve_finds_the_region_registered_anew_under_the_same_key);
	tcase_add_test(tc, resolve_never_refuses_on_an_old_answer);
	tcase_add_loop_test(tc, resolve_says_that_a_key_is_too_small_to_be_the_peers, 0, 4);
	tcase_add_loop_test(tc, resolve_says_by_how_much_an_access_is_out_of_bounds, 0, 2);
	tcase_add_loop_test(tc, resolve_no_bit_of_an_address_means_anything_else, 0, ADDRESS_MODES);
	tcase_add_loop_test(
		tc, resolve_provider_key_of_a_closed_region_is_asked_about_after_the_kernel_refused,
		0, 2);
	tcase_add_test(tc, resolve_peer_that_starts_again_with_other_keys_is_learnt_anew);
	tcase_add_loop_test(tc, resolve_refused_operation_does_not_harm_those_behind_it, 0, 3);
	tcase_add_loop_test(tc, resolve_several_accesses_of_a_closed_region_are_all_refused, 0, 3);
	tcase_add_loop_test(tc, resolve_refused_halfway_sends_nothing_twice, 0, 2);
	tcase_add_test(tc, resolve_gives_up_when_answers_and_kernel_disagree_for_ever);
	return tc;
}

static TCase *tcase_answers(void)
{
	TCase *tc = tcase_create("answers");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, resolve_second_copy_of_an_answer_is_ignored);
	tcase_add_test(tc, resolve_late_answer_of_a_region_that_is_gone_by_then_is_not_believed);
	tcase_add_test(tc, resolve_malformed_answer_costs_the_connection_only);
	tcase_add_test(tc, resolve_malformed_answers_for_ever_end_in_an_error);
	tcase_add_loop_test(tc, resolve_without_an_answer_others_go_on_and_the_endpoint_closes, 0,
			    2);
	tcase_add_loop_test(tc, resolve_answer_without_segments_refuses_every_byte, 0, 1);
	tcase_add_loop_test(tc, resolve_answer_without_segments_refuses_every_byte, FI_MR_ALLOCATED,
			    FI_MR_ALLOCATED + 1);
	tcase_add_test(tc, resolve_remembers_a_bounded_number_of_keys);
	tcase_add_test(tc, resolve_forgets_no_more_keys_than_it_has_to);
	return tc;
}

UNIT_MAIN("resolve", tcase_changes, tcase_answers)
