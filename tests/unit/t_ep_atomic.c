/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3) between two endpoints on the fake fabric: each operation by whoever does it,
 * the device or the peer's agent, with what it leaves behind compared byte by byte.
 */
#include <rdma/fi_atomic.h>
#include "contract/limits.h"
#include "ep/model/atomics.h"
#include "ep_fixture.h"

#define MAX MRF_LIMIT_ATOMIC_SIZE
#define AT 4096u /* in the middle of the region, far from its ends */

static struct pair p;
static uint8_t shadow[PAIR_LEN]; /* what the region should be */
static struct {
	_Alignas(64) uint8_t operand[MAX], compare[MAX], result[MAX + 64];
	struct fid_mr *mr; /* of all this, with FI_MR_LOCAL */
} mine;

static void setup(void)
{
	fixture_setup();
	memset(&mine, 0, sizeof(mine));
}

static void *desc(void)
{
	return mine.mr ? fi_mr_desc(mine.mr) : NULL;
}

static void open_with(const struct node_opt *opt)
{
	pair_open(&p, opt);
	if (node_ep(&p.a)->domain->space.mode & FI_MR_LOCAL)
		mine.mr = node_reg(&p.a, &mine, sizeof(mine), FI_READ | FI_WRITE, 99);
	srand(3);
	fill(p.dst, PAIR_LEN, 9);
	memcpy(shadow, p.dst, PAIR_LEN);
}

static void open_mode(int mode)
{
	open_with(&(struct node_opt){ .mr_mode = mode });
}

static void close_all(void)
{
	if (mine.mr)
		must_close(&mine.mr->fid);
	pair_close(&p);
}

/* --- one operation -------------------------------------------------------------------- */

/* Which of the calls of a family. */
enum form { PLAIN_CALL, VECTOR, MESSAGE };

struct call {
	unsigned family, datatype, op;
	size_t count;
	size_t at; /* in p.dst */
	enum form form;
	uint64_t flags; /* of a MESSAGE */
};

static size_t bytes(const struct call *c)
{
	return c->count * mrf_atomic_size(c->datatype);
}

static ssize_t call_plain(const struct call *c)
{
	uint64_t to = p.base + c->at;

	switch (c->family) {
	case MRF_ATOMIC_BASE:
		return fi_atomic(p.a.ep, mine.operand, c->count, desc(), p.to, to, p.key,
				 c->datatype, c->op, &p);
	case MRF_ATOMIC_FETCH:
		return fi_fetch_atomic(p.a.ep, mine.operand, c->count, desc(), mine.result, desc(),
				       p.to, to, p.key, c->datatype, c->op, &p);
	default:
		return fi_compare_atomic(p.a.ep, mine.operand, c->count, desc(), mine.compare,
					 desc(), mine.result, desc(), p.to, to, p.key, c->datatype,
					 c->op, &p);
	}
}

/* The same buffer as two, with an empty one between them. */
static size_t split(const struct call *c, uint8_t *buf, struct fi_ioc *iov, void **descs)
{
	size_t first = (c->count + 1) / 2;

	iov[0] = (struct fi_ioc){ buf, first };
	iov[1] = (struct fi_ioc){ NULL, 0 };
	iov[2] = (struct fi_ioc){ buf + first * mrf_atomic_size(c->datatype), c->count - first };
	descs[0] = descs[2] = desc();
	descs[1] = NULL;
	return 3;
}

static ssize_t call_vector(const struct call *c)
{
	struct fi_ioc operand[3], compare[3], result[3];
	void *od[3], *cd[3], *rd[3];
	uint64_t to = p.base + c->at;

	split(c, mine.operand, operand, od);
	split(c, mine.compare, compare, cd);
	split(c, mine.result, result, rd);
	switch (c->family) {
	case MRF_ATOMIC_BASE:
		return fi_atomicv(p.a.ep, operand, od, 3, p.to, to, p.key, c->datatype, c->op, &p);
	case MRF_ATOMIC_FETCH:
		return fi_fetch_atomicv(p.a.ep, operand, od, 3, result, rd, 3, p.to, to, p.key,
					c->datatype, c->op, &p);
	default:
		return fi_compare_atomicv(p.a.ep, operand, od, 3, compare, cd, 3, result, rd, 3,
					  p.to, to, p.key, c->datatype, c->op, &p);
	}
}

static ssize_t call_message(const struct call *c)
{
	struct fi_ioc operand[3], compare[3], result[3];
	void *od[3], *cd[3], *rd[3];
	size_t first = c->count / 2, size = mrf_atomic_size(c->datatype);
	/* The target's bytes in two parts, too. */
	struct fi_rma_ioc rma[] = { { p.base + c->at, first, p.key },
				    { p.base + c->at + first * size, c->count - first, p.key } };
	struct fi_msg_atomic msg = { .msg_iov = operand,
				     .desc = od,
				     .iov_count = split(c, mine.operand, operand, od),
				     .addr = p.to,
				     .rma_iov = rma,
				     .rma_iov_count = 2,
				     .datatype = c->datatype,
				     .op = c->op,
				     .context = &p };

	split(c, mine.compare, compare, cd);
	split(c, mine.result, result, rd);
	switch (c->family) {
	case MRF_ATOMIC_BASE:
		return fi_atomicmsg(p.a.ep, &msg, c->flags);
	case MRF_ATOMIC_FETCH:
		return fi_fetch_atomicmsg(p.a.ep, &msg, result, rd, 3, c->flags);
	default:
		return fi_compare_atomicmsg(p.a.ep, &msg, compare, cd, 3, result, rd, 3, c->flags);
	}
}

static ssize_t call(const struct call *c)
{
	return c->form == PLAIN_CALL ? call_plain(c)
	       : c->form == VECTOR   ? call_vector(c)
				     : call_message(c);
}

/* Small integers in each element, so that sums and products of any type mean something. */
static void put_values(const struct call *c)
{
	size_t size = mrf_atomic_size(c->datatype), i;

	for (i = 0; i < bytes(c); i++) {
		mine.operand[i] = (uint8_t)rand();
		mine.compare[i] = (uint8_t)rand();
	}
	/* So that comparisons hold now and then. */
	for (i = 0; i < c->count; i += 1 + (size_t)rand() % 2)
		memcpy(mine.compare + i * size, shadow + c->at + i * size, size);
	memset(mine.result, 0xcc, sizeof(mine.result));
}

/* Does to the shadow what the call should do to the region; what should come back. */
static void do_reference(const struct call *c, uint8_t *old)
{
	size_t size = mrf_atomic_size(c->datatype), i;
	uint8_t value[MRF_ATOMIC_MAX_SIZE];

	memcpy(old, shadow + c->at, bytes(c));
	for (i = 0; i < bytes(c); i += size) {
		if (mrf_atomic_apply(c->datatype, c->op, old + i, mine.operand + i,
				     mine.compare + i, value))
			memcpy(shadow + c->at + i, value, size);
	}
}

static void check_reference(const struct call *c, const uint8_t *old)
{
	size_t n = c->family == MRF_ATOMIC_BASE ? 0 : bytes(c), i;

	ck_assert_msg(
		!memcmp(p.dst, shadow, PAIR_LEN),
		"family %u, datatype %u, op %u, %zu at %zu: the region is not as it should be",
		c->family, c->datatype, c->op, c->count, c->at);
	ck_assert_msg(!memcmp(mine.result, old, n), "family %u, datatype %u, op %u: results",
		      c->family, c->datatype, c->op);
	for (i = n; i < sizeof(mine.result) && mine.result[i] == 0xcc; i++)
		;
	ck_assert_msg(i == sizeof(mine.result), "a byte too many came back");
}

static void run_call(const struct call *c)
{
	uint8_t old[MAX];
	struct fi_cq_data_entry entry;

	put_values(c);
	ck_assert_int_eq(call(c), 0);
	entry = want_ok(&p.a, &p);
	ck_assert_uint_eq(entry.flags,
			  FI_ATOMIC | (c->family == MRF_ATOMIC_BASE ? FI_WRITE : FI_READ));
	do_reference(c, old);
	check_reference(c, old);
}

static struct call simple(unsigned family, unsigned datatype, unsigned op, size_t count, size_t at)
{
	return (struct call){
		.family = family, .datatype = datatype, .op = op, .count = count, .at = at
	};
}

/* A sum into the 8 bytes at this place; not waited for. */
static void add_u64(size_t at, uint64_t value)
{
	memcpy(mine.operand, &value, sizeof(value));
	ck_assert_int_eq(fi_atomic(p.a.ep, mine.operand, 1, desc(), p.to, p.base + at, p.key,
				   FI_UINT64, FI_SUM, p.src + at),
			 0);
}

static uint64_t u64_at(size_t at)
{
	uint64_t value;

	memcpy(&value, p.dst + at, sizeof(value));
	return value;
}

/* Not a sum that the device could do: by swaps if it is alone, otherwise by the agent. */
static void xor_u64(size_t at, uint64_t value)
{
	memcpy(mine.operand, &value, sizeof(value));
	ck_assert_int_eq(fi_atomic(p.a.ep, mine.operand, 1, desc(), p.to, p.base + at, p.key,
				   FI_UINT64, FI_BXOR, p.src + at),
			 0);
}

static void want_nothing_left(void)
{
	want_none(&p.a);
	want_idle(&p.a);
}

/* What was started before has been done when this has. */
static void read_behind(void)
{
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, NULL, 1, NULL, mine.result, desc(), p.to,
					 p.base + AT, p.key, FI_UINT64, FI_ATOMIC_READ, &p),
			 0);
	want_ok(&p.a, &p);
}

/* How many device operations the target's memory saw since the log had from entries. */
static unsigned native_since(size_t from)
{
	unsigned n = 0;

	for (; from < fake.nlog; from++)
		n += fake.log[from].op == MRF_VWR_FETCH_ADD || fake.log[from].op == MRF_VWR_CMP_SWP;
	return n;
}

/* --- all of them ---------------------------------------------------------------------- */

static const int modes[] = { FI_MR_ALLOCATED,
			     0,
			     FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
			     FI_MR_PROV_KEY | FI_MR_ALLOCATED,
			     FI_MR_LOCAL | FI_MR_VIRT_ADDR,
			     FI_MR_LOCAL | FI_MR_ALLOCATED };
#define NMODES (int)(sizeof(modes) / sizeof(modes[0]))

static void sweep(size_t count, size_t at, enum form form)
{
	unsigned family, type, op;

	for (family = 0; family < 3; family++) {
		for (type = 0; type < 16; type++) {
			for (op = 0; op < FI_ATOMIC_OP_LAST; op++) {
				struct call c = simple(family, type, op, count, at);

				c.form = form;
				if (mrf_atomic_valid(family, type, op))
					run_call(&c);
			}
		}
	}
}

START_TEST(atomics_every_operation_on_every_datatype)
{
	open_mode(modes[_i]);
	sweep(1, AT, PLAIN_CALL);
	sweep(1, AT + 4, PLAIN_CALL);
	want_nothing_left();
	close_all();
}
END_TEST

START_TEST(atomics_every_operation_on_every_datatype_in_vectors)
{
	open_mode(modes[_i]);
	sweep(5, AT, VECTOR);
	sweep(5, AT + 3, MESSAGE);
	want_nothing_left();
	close_all();
}
END_TEST

/* As many as the calls take at once: in many requests, or many device operations. */
START_TEST(atomics_longest_vectors)
{
	static const unsigned types[] = { FI_UINT8, FI_UINT64, FI_LONG_DOUBLE_COMPLEX };
	size_t count = MAX / mrf_atomic_size(types[_i]);
	struct call c = simple(MRF_ATOMIC_FETCH, types[_i], FI_SUM, count, AT);

	open_mode(FI_MR_ALLOCATED);
	run_call(&c);
	c.at++;
	c.form = VECTOR;
	run_call(&c);
	c = simple(MRF_ATOMIC_COMPARE, types[_i], FI_CSWAP, count, AT);
	run_call(&c);
	c.form = MESSAGE;
	c.at += 4;
	run_call(&c);
	c = simple(MRF_ATOMIC_FETCH, types[_i], FI_ATOMIC_READ, count, AT);
	run_call(&c);
	want_nothing_left();
	close_all();
}
END_TEST

/* --- by whom -------------------------------------------------------------------------- */

START_TEST(atomics_of_64_bits_are_the_devices_where_they_lie_well)
{
	static const unsigned by_device[][2] = { { MRF_ATOMIC_BASE, FI_SUM },
						 { MRF_ATOMIC_FETCH, FI_SUM },
						 { MRF_ATOMIC_FETCH, FI_ATOMIC_READ },
						 { MRF_ATOMIC_COMPARE, FI_CSWAP } };
	unsigned i, type, n = 0;
	size_t log;

	open_mode(modes[_i]);
	add_u64(AT, 0);
	want_ok(&p.a, NULL);
	log = fake_nlog();
	for (type = FI_INT64; type <= FI_UINT64; type++) {
		for (i = 0; i < 4; i++) {
			struct call c = simple(by_device[i][0], type, by_device[i][1], 1, AT);

			run_call(&c);
			c.count = 20;
			run_call(&c);
			n += 21;
		}
	}
	ck_assert_uint_eq(native_since(log), n);
	ck_assert_uint_eq(fake.loops, 0);
	close_all();
}
END_TEST

START_TEST(atomics_that_the_device_cannot_do_are_the_agents)
{
	struct call c = simple(MRF_ATOMIC_FETCH, FI_UINT64, FI_SUM, 3, AT + 4);
	size_t log;

	open_mode(FI_MR_ALLOCATED);
	log = fake_nlog();
	run_call(&c);
	/* Across words: copied, out and back. */
	ck_assert_uint_eq(fake.loops, 6);
	/* In a word: one swap, whether or not something is stored. */
	c = simple(MRF_ATOMIC_FETCH, FI_UINT64, FI_MAX, 2, AT);
	run_call(&c);
	run_call(&c);
	ck_assert_uint_eq(fake.loops, 10);
	c = simple(MRF_ATOMIC_BASE, FI_UINT32, FI_SUM, 2, AT);
	run_call(&c);
	ck_assert_uint_eq(fake.loops, 12);
	ck_assert_uint_eq(native_since(log), 0);
	close_all();
}
END_TEST

START_TEST(atomics_with_a_key_that_carries_its_rkey_ask_nothing)
{
	struct call c = simple(MRF_ATOMIC_FETCH, FI_UINT32, FI_BXOR, 1, AT + 16);
	unsigned asks;

	open_mode(FI_MR_PROV_KEY | FI_MR_ALLOCATED);
	add_u64(AT, 1);
	want_ok(&p.a, NULL);
	ck_assert_uint_eq(fake_asks(), 0);
	asks = fake_asks();
	xor_u64(AT, 1);
	want_ok(&p.a, NULL);
	ck_assert_uint_eq(fake_asks(), asks);
	ck_assert_int_eq(call(&c), 0);
	want_ok(&p.a, &p);
	/* The request alone. */
	ck_assert_uint_eq(fake_asks(), asks + 1);
	close_all();
}
END_TEST

/* --- at once -------------------------------------------------------------------------- */

static uint64_t *contended;
static atomic_int meddle;

/* Just before the agent stores, a peer's device adds 2^32 to the same word. */
static void add_between(enum mrf_vwr_op op, void *remote)
{
	if (op == MRF_VWR_CMP_SWP && remote == contended && meddle-- > 0)
		*contended += 1ull << 32;
}

START_TEST(atomics_of_agent_and_device_on_one_word_lose_nothing)
{
	uint32_t one = 1, old = 7, seen = 0;

	open_mode(FI_MR_ALLOCATED);
	memset(p.dst + AT, 0, 8);
	contended = (uint64_t *)(void *)(p.dst + AT);
	meddle = 5;
	fake.on_loop = add_between;
	/* The lower half, by the agent, while the upper half is added to. */
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &one, 1, NULL, &old, NULL, p.to, p.base + AT,
					 p.key, FI_UINT32, FI_SUM, NULL),
			 0);
	want_ok(&p.a, NULL);
	ck_assert_uint_eq(old, 0);
	ck_assert_uint_eq(u64_at(AT), (5ull << 32) + 1);
	meddle = 1;
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &one, 1, NULL, &seen, NULL, p.to, p.base + AT + 4,
					 p.key, FI_UINT32, FI_BOR, NULL),
			 0);
	want_ok(&p.a, NULL);
	/* What comes back is what was there when it was stored. */
	ck_assert_uint_eq(seen, 6);
	ck_assert_uint_eq(u64_at(AT), (7ull << 32) + 1);
	close_all();
}
END_TEST

/*
 * Of several segments the processor looks at the wrong place; and what it sees there is not used.
 */
START_TEST(atomics_do_not_depend_on_what_the_processor_sees)
{
	struct iovec there[] = { { NULL, PAGE }, { NULL, PAGE } };
	uint64_t value, at = PAGE + 16, wrong = 0x55, old = 0;
	struct fid_mr *mr;

	open_mode(FI_MR_ALLOCATED);
	there[0].iov_base = p.dst + 8 * PAGE;
	there[1].iov_base = p.dst + 2 * PAGE;
	mr = node_regv(&p.b, there, 2, REMOTE_RW, 5);
	value = 7;
	memcpy(p.dst + 2 * PAGE + 16, &value, sizeof(value));
	memcpy(p.dst + 8 * PAGE + at, &wrong, sizeof(wrong));
	value = 5;
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &value, 1, NULL, &old, NULL, p.to, at, 5,
					 FI_UINT32, FI_MIN, NULL),
			 0);
	want_ok(&p.a, NULL);
	ck_assert_uint_eq(old, 7);
	ck_assert_uint_eq(u64_at(2 * PAGE + 16), 5);
	ck_assert_uint_eq(u64_at(8 * PAGE + at), wrong);
	ck_assert_uint_eq(fake.loops, 2);
	must_close(&mr->fid);
	close_all();
}
END_TEST

/* Zeros, which a peer's device changes just before so many of the agent's swaps. */
static void contend(int times)
{
	open_mode(FI_MR_ALLOCATED);
	memset(p.dst + AT, 0, 8);
	memcpy(shadow, p.dst, PAIR_LEN);
	contended = (uint64_t *)(void *)(p.dst + AT);
	meddle = times;
	fake.on_loop = add_between;
}

/* left: of its swaps those that nobody overtook. */
static void contended_call(const struct call *c, int left)
{
	put_values(c);
	ck_assert_int_eq(call(c), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(meddle, -left);
	want_nothing_left();
}

START_TEST(atomics_of_an_agent_that_others_overtake_all_the_time_go_on)
{
	struct call c = simple(MRF_ATOMIC_BASE, FI_UINT8, FI_BXOR, 8, AT);

	contend(3000);
	contended_call(&c, 8);
	close_all();
}
END_TEST

static atomic_uint replies;

static enum fake_fate count_replies(uint8_t *msg, size_t *len, bool from_target)
{
	replies += from_target && mrf_msg_type(msg, *len) == MRF_MSG_REPLY;
	return FAKE_DELIVER;
}

/* The agent serves others in between; it is asked once, and replies once. */
START_TEST(atomics_of_one_element_do_not_keep_the_agent)
{
	struct call c = simple(MRF_ATOMIC_BASE, FI_UINT8, FI_BXOR, 1, AT);

	contend(5 * MRF_SWAPS);
	replies = 0;
	fake.on_send = count_replies;
	contended_call(&c, 1);
	ck_assert_uint_eq(replies, 1);
	close_all();
}
END_TEST

/* --- the ends of regions -------------------------------------------------------------- */

/*
 * A region that begins and ends in the middle of words. What is outside belongs to others,
 * who change it whenever they like.
 */
static uint8_t *outside;

static void change_outside(enum mrf_vwr_op op, void *remote)
{
	(void)op;
	(void)remote;
	outside[2]++;
	outside[31]++;
}

static void call_small(unsigned family, unsigned type, unsigned op, size_t count, size_t from)
{
	uint8_t old[64];

	ck_assert_uint_eq(family, MRF_ATOMIC_FETCH);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, mine.operand, count, NULL, old, NULL, p.to, from,
					 5, type, op, &p),
			 0);
	want_ok(&p.a, &p);
}

START_TEST(atomics_at_the_ends_of_a_region_touch_nothing_outside)
{
	struct fid_mr *mr;
	unsigned i;

	open_mode(_i ? FI_MR_ALLOCATED : 0);
	outside = p.dst + AT;
	memset(outside, 0, 64);
	/* [3, 31) of eight words. */
	mr = node_reg(&p.b, outside + 3, 28, REMOTE_RW, 5);
	fake.on_loop = change_outside;
	memset(mine.operand, 1, sizeof(mine.operand));
	for (i = 0; i < 28; i++)
		call_small(MRF_ATOMIC_FETCH, FI_UINT8, FI_SUM, 1, i);
	for (i = 0; i + 4 <= 28; i++)
		call_small(MRF_ATOMIC_FETCH, FI_UINT32, FI_BXOR, 1, i);
	for (i = 0; i + 8 <= 28; i++)
		call_small(MRF_ATOMIC_FETCH, FI_UINT64, FI_SUM, 1, i);
	call_small(MRF_ATOMIC_FETCH, FI_UINT8, FI_SUM, 28, 0);
	call_small(MRF_ATOMIC_FETCH, FI_UINT128, FI_SUM, 1, 12);
	/* Each hook call was seen, none was overwritten. */
	ck_assert_uint_eq(outside[2], outside[31]);
	ck_assert_uint_eq(outside[2], (uint8_t)fake.loops);
	for (i = 0; i < 2; i++)
		ck_assert_uint_eq(outside[i], 0);
	for (i = 32; i < 64; i++)
		ck_assert_uint_eq(outside[i], 0);
	must_close(&mr->fid);
	close_all();
}
END_TEST

START_TEST(atomics_past_the_end_are_refused_and_nothing_is_done)
{
	static const int ats[] = { 1, 4, 7 };
	struct call c;
	unsigned i;

	open_mode(modes[_i]);
	for (i = 0; i < 3; i++) {
		/* By the device, or it would be. */
		c = simple(MRF_ATOMIC_FETCH, FI_UINT64, FI_SUM, 1, PAIR_LEN - (size_t)ats[i]);
		ck_assert_int_eq(call(&c), 0);
		ck_assert_int_eq(want_err(&p.a, &p, FI_EACCES, "past the end"), 4105);
		/* Several, of which only the last is outside. */
		c = simple(MRF_ATOMIC_FETCH, FI_UINT64, FI_SUM, 100,
			   PAIR_LEN - 99 * 8 - (size_t)ats[i]);
		ck_assert_int_eq(call(&c), 0);
		want_err(&p.a, &p, FI_EACCES, "past the end");
		c.op = FI_BXOR;
		ck_assert_int_eq(call(&c), 0);
		want_err(&p.a, &p, FI_EACCES, "past the end");
		c = simple(MRF_ATOMIC_FETCH, FI_UINT128, FI_SUM, 1, PAIR_LEN - 8);
		ck_assert_int_eq(call(&c), 0);
		want_err(&p.a, &p, FI_EACCES, "past the end");
	}
	ck_assert_int_eq(memcmp(p.dst, shadow, PAIR_LEN), 0);
	run_call(&(struct call){
		.family = 1, .datatype = FI_INT64, .op = FI_SUM, .count = 1, .at = PAIR_LEN - 8 });
	want_nothing_left();
	close_all();
}
END_TEST

/* What is known of a key may be of the region that had it before, a larger one. */
START_TEST(atomics_past_the_end_of_a_smaller_successor_do_nothing)
{
	static const size_t counts[] = { 16, 1000 };
	struct call c;
	unsigned i;

	open_mode(modes[_i] & ~FI_MR_PROV_KEY);
	for (i = 0; i < 2; i++) {
		struct fid_mr *mr = node_reg(&p.b, p.dst, 2 * counts[i], REMOTE_RW, 5);

		p.key = 5;
		c = simple(MRF_ATOMIC_FETCH, FI_UINT8, FI_BXOR, counts[i], 0);
		run_call(&c);
		must_close(&mr->fid);
		mr = node_reg(&p.b, p.dst, counts[i] - 1, REMOTE_RW, 5);
		ck_assert_int_eq(call(&c), 0);
		want_err(&p.a, &p, FI_EACCES, "past the end");
		ck_assert_int_eq(memcmp(p.dst, shadow, PAIR_LEN), 0);
		must_close(&mr->fid);
	}
	want_nothing_left();
	close_all();
}
END_TEST

START_TEST(atomics_cross_the_segments_of_a_region)
{
	struct iovec iov[] = { { NULL, 13 }, { NULL, 1 }, { NULL, 3 }, { NULL, 47 } };
	uint8_t flat[64], want[64], old[64];
	struct fid_mr *mr;
	unsigned i, from, at = 0;

	open_mode(FI_MR_ALLOCATED);
	for (i = 0; i < 4; i++) {
		iov[i].iov_base = p.dst + AT + i * 500 + i;
		memset(iov[i].iov_base, (int)i + 1, iov[i].iov_len);
		memset(flat + at, (int)i + 1, iov[i].iov_len);
		at += (unsigned)iov[i].iov_len;
	}
	mr = node_regv(&p.b, iov, 4, REMOTE_RW, 5);
	for (from = 0; from + 16 <= 64; from++) {
		unsigned type = from % 2 ? FI_UINT128 : from % 4 ? FI_UINT64 : FI_UINT16;
		size_t size = mrf_atomic_size(type);

		memset(mine.operand, (int)from, 16);
		memcpy(want, flat, sizeof(want));
		for (i = 0; i < 16; i += (unsigned)size)
			mrf_atomic_apply(type, FI_SUM, flat + from + i, mine.operand + i, NULL,
					 want + from + i);
		ck_assert_int_eq(fi_fetch_atomic(p.a.ep, mine.operand, 16 / size, NULL, old, NULL,
						 p.to, from, 5, type, FI_SUM, &p),
				 0);
		want_ok(&p.a, &p);
		ck_assert_msg(!memcmp(old, flat + from, 16), "from %u, size %zu", from, size);
		memcpy(flat, want, sizeof(flat));
		for (i = 0, at = 0; i < 4; i++) {
			ck_assert_int_eq(memcmp(iov[i].iov_base, flat + at, iov[i].iov_len), 0);
			at += (unsigned)iov[i].iov_len;
		}
	}
	must_close(&mr->fid);
	close_all();
}
END_TEST

/* --- refused -------------------------------------------------------------------------- */

START_TEST(atomics_need_the_right_to_write_remotely)
{
	int err;

	open_mode(modes[_i]);
	must_close(&p.mr->fid);
	pair_reg(&p, FI_REMOTE_READ);
	add_u64(AT, 1);
	err = want_err(&p.a, NULL, FI_EACCES, "without FI_REMOTE_WRITE");
	ck_assert_int_eq(err, 4104);
	xor_u64(AT, 1);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_EACCES, "without FI_REMOTE_WRITE"), 4104);
	ck_assert_int_eq(memcmp(p.dst, shadow, PAIR_LEN), 0);
	/* That is all they need. */
	must_close(&p.mr->fid);
	pair_reg(&p, FI_REMOTE_WRITE);
	run_call(&(struct call){
		.family = 1, .datatype = FI_INT64, .op = FI_SUM, .count = 1, .at = AT });
	run_call(&(struct call){
		.family = 1, .datatype = FI_INT128, .op = FI_SUM, .count = 2, .at = AT + 1 });
	run_call(&(struct call){
		.family = 1, .datatype = FI_INT32, .op = FI_ATOMIC_READ, .count = 2, .at = AT });
	close_all();
}
END_TEST

START_TEST(atomics_of_closed_and_unknown_keys_are_refused)
{
	open_mode(modes[_i]);
	add_u64(AT, 0);
	want_ok(&p.a, NULL);
	must_close(&p.mr->fid);
	p.mr = NULL;
	add_u64(AT, 1);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_EKEYREJECTED, "was closed"), 4102);
	xor_u64(AT, 1);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_EKEYREJECTED, "was closed"), 4102);
	p.key = 0x7777;
	xor_u64(AT, 1);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_EKEYREJECTED, "unknown"), 4101);
	ck_assert_int_eq(memcmp(p.dst, shadow, PAIR_LEN), 0);
	want_nothing_left();
	close_all();
}
END_TEST

static struct fid_mr *doomed;

/* The region goes between the reading of a word and its being stored. */
static void close_midway(enum mrf_vwr_op op, void *remote)
{
	(void)remote;
	if (op == MRF_VWR_CMP_SWP && meddle == 1)
		meddle = 2;
}

START_TEST(atomics_of_a_region_that_is_closed_midway_stop_there)
{
	struct call c = simple(MRF_ATOMIC_BASE, FI_UINT32, FI_SUM, 1000, AT);

	open_mode(_i ? FI_MR_ALLOCATED : 0);
	meddle = 1;
	fake.on_loop = close_midway;
	put_values(&c);
	ck_assert_int_eq(call(&c), 0);
	want_soon(meddle == 2);
	must_close(&p.mr->fid);
	p.mr = NULL;
	memcpy(shadow, p.dst, PAIR_LEN);
	if (fi_cq_sread(p.a.cq, &(struct fi_cq_data_entry){ 0 }, 1, NULL, LONG_MS) != 1)
		want_err(&p.a, &p, FI_EKEYREJECTED, "was closed");
	/* Nothing of it is done later. */
	usleep(10000);
	ck_assert_int_eq(memcmp(p.dst, shadow, PAIR_LEN), 0);
	(void)doomed;
	close_all();
}
END_TEST

START_TEST(atomics_behind_a_refused_access_are_done_exactly_once)
{
	struct fid_mr *other;

	open_mode(FI_MR_ALLOCATED);
	memset(p.dst + AT, 0, 16);
	other = node_reg(&p.b, p.dst, PAGE, REMOTE_RW, 5);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 5, &p), 0);
	want_ok(&p.a, &p);
	add_u64(AT, 0);
	want_ok(&p.a, NULL);
	fake_hold(true);
	add_u64(AT, 1);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 5, &p), 0);
	add_u64(AT, 10);
	xor_u64(AT + 8, 3);
	add_u64(AT, 100);
	must_close(&other->fid);
	fake_hold(false);
	want_ok(&p.a, p.src + AT);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EKEYREJECTED, NULL), 4102);
	want_ok(&p.a, p.src + AT);
	want_ok(&p.a, NULL);
	want_ok(&p.a, NULL);
	ck_assert_uint_eq(u64_at(AT), 111);
	ck_assert_uint_eq(u64_at(AT + 8), 3);
	want_nothing_left();
	close_all();
}
END_TEST

/* The kernel says no to a native one; the key lives on. */
START_TEST(atomics_of_a_region_registered_again_go_on)
{
	open_mode(modes[_i]);
	memset(p.dst + AT, 0, 8);
	add_u64(AT, 1);
	want_ok(&p.a, NULL);
	if (modes[_i] & FI_MR_PROV_KEY) {
		close_all();
		return;
	}
	/* Of a region that is closed and not yet registered again a question would be told so. */
	fake_hold_all(true);
	add_u64(AT, 10);
	xor_u64(AT, 0);
	add_u64(AT, 100);
	must_close(&p.mr->fid);
	pair_reg(&p, REMOTE_RW);
	fake_hold_all(false);
	want_ok(&p.a, NULL);
	want_ok(&p.a, NULL);
	want_ok(&p.a, NULL);
	ck_assert_uint_eq(u64_at(AT), 111);
	want_nothing_left();
	close_all();
}
END_TEST

/* --- what may have been done ---------------------------------------------------------- */

START_TEST(atomics_without_an_answer_are_never_repeated)
{
	bool ran = _i;
	struct call c = simple(MRF_ATOMIC_FETCH, FI_UINT64, FI_SUM, 20, AT);

	open_mode(FI_MR_ALLOCATED);
	memset(p.dst + AT, 0, 8);
	add_u64(AT, 1);
	want_ok(&p.a, NULL);
	fake_hold(true);
	add_u64(AT, 10);
	add_u64(AT, 100);
	fake_break(1, 1, MRF_WC_TIMEOUT, ran);
	fake_hold(false);
	want_err(&p.a, NULL, FI_ETIMEDOUT, "may or may not");
	want_err(&p.a, NULL, FI_ETIMEDOUT, "may or may not");
	ck_assert_uint_eq(u64_at(AT), ran ? 11 : 1);
	/* Halfway through many. */
	memset(p.dst + AT, 0, 20 * 8);
	memset(mine.operand, 1, 20 * 8);
	fake_break(13, 1, MRF_WC_TIMEOUT, ran);
	ck_assert_int_eq(call(&c), 0);
	want_err(&p.a, &p, FI_ETIMEDOUT, "may or may not");
	ck_assert_uint_eq(u64_at(AT + 11 * 8), 0x0101010101010101ull);
	ck_assert_uint_eq(u64_at(AT + 12 * 8), ran ? 0x0101010101010101ull : 0);
	ck_assert_uint_eq(u64_at(AT + 13 * 8), 0);
	want_nothing_left();
	close_all();
}
END_TEST

START_TEST(atomics_behind_a_read_to_a_closed_buffer_are_not_repeated)
{
	struct fid_mr *gone;
	int i, bad = 0;

	open_mode(FI_MR_ALLOCATED);
	memset(p.dst + AT, 0, 8);
	add_u64(AT, 0);
	want_ok(&p.a, NULL);
	gone = node_reg(&p.a, p.src, PAIR_LEN, FI_READ, 2);
	fake.flush_local = _i;
	fake_hold(true);
	ck_assert_int_eq(fi_read(p.a.ep, p.src, 400, fi_mr_desc(gone), p.to, p.base, p.key, &p), 0);
	add_u64(AT, 1);
	must_close(&gone->fid);
	fake_hold(false);
	for (i = 0; i < 2; i++) {
		struct fi_cq_err_entry e = { 0 };

		ck_assert_int_eq(
			fi_cq_sread(p.a.cq, &(struct fi_cq_data_entry){ 0 }, 1, NULL, LONG_MS),
			-FI_EAVAIL);
		ck_assert_int_eq(fi_cq_readerr(p.a.cq, &e, 0), 1);
		bad += e.op_context != &p;
	}
	ck_assert_int_eq(bad, 1);
	ck_assert_uint_eq(u64_at(AT), 0);
	want_nothing_left();
	close_all();
}
END_TEST

START_TEST(atomics_of_a_killed_peer_end)
{
	open_mode(FI_MR_ALLOCATED);
	add_u64(AT, 0);
	want_ok(&p.a, NULL);
	fake_hold(true);
	add_u64(AT, 1);
	xor_u64(AT, 1);
	fake_kill(node_agent(&p.b)->cm);
	fake_hold(false);
	want_err(&p.a, NULL, FI_ECONNRESET, "may or may not");
	want_err(&p.a, NULL, FI_ECONNRESET, NULL);
	want_nothing_left();
	close_all();
}
END_TEST

/* --- calls ---------------------------------------------------------------------------- */

START_TEST(atomics_inject_copies_and_tells_of_failures_only)
{
	uint64_t one = 1;
	uint8_t bytes[257] = { 0 };

	open_mode(modes[_i]);
	memset(p.dst + AT, 0, 8);
	ck_assert_int_eq(
		fi_inject_atomic(p.a.ep, &one, 1, p.to, p.base + AT, p.key, FI_UINT64, FI_SUM), 0);
	one = 0xdead;
	read_behind();
	ck_assert_uint_eq(u64_at(AT), 1);
	one = 2;
	ck_assert_int_eq(
		fi_inject_atomic(p.a.ep, &one, 1, p.to, p.base + AT, p.key, FI_UINT64, FI_BOR), 0);
	one = 0xdead;
	read_behind();
	ck_assert_uint_eq(u64_at(AT), 3);
	ck_assert_int_eq(
		fi_inject_atomic(p.a.ep, bytes, 256, p.to, p.base + AT, p.key, FI_UINT8, FI_SUM),
		0);
	want_none(&p.a);
	ck_assert_int_eq(
		fi_inject_atomic(p.a.ep, bytes, 257, p.to, p.base + AT, p.key, FI_UINT8, FI_SUM),
		-FI_EMSGSIZE);
	ck_assert_int_eq(fi_inject_atomic(p.a.ep, bytes, 1, p.to, p.base + PAIR_LEN, p.key,
					  FI_UINT8, FI_SUM),
			 0);
	want_err(&p.a, NULL, FI_EACCES, NULL);
	close_all();
}
END_TEST

START_TEST(atomics_count_as_writes_or_reads_by_whether_something_comes_back)
{
	struct call c;

	open_with(&(struct node_opt){
		.mr_mode = FI_MR_ALLOCATED, .counters = true, .selective = true });
	c = simple(MRF_ATOMIC_BASE, FI_UINT64, FI_SUM, 1, AT);
	put_values(&c);
	ck_assert_int_eq(call(&c), 0);
	want_soon(fi_cntr_read(p.a.wr) == 1);
	c.op = FI_MIN;
	ck_assert_int_eq(call(&c), 0);
	want_soon(fi_cntr_read(p.a.wr) == 2);
	c.family = MRF_ATOMIC_FETCH;
	ck_assert_int_eq(call(&c), 0);
	want_soon(fi_cntr_read(p.a.rd) == 1);
	c = simple(MRF_ATOMIC_COMPARE, FI_UINT64, FI_CSWAP, 1, AT);
	ck_assert_int_eq(call(&c), 0);
	want_soon(fi_cntr_read(p.a.rd) == 2);
	/* Nobody asked for a completion. */
	want_none(&p.a);
	c.form = MESSAGE;
	c.flags = FI_COMPLETION;
	ck_assert_int_eq(call(&c), 0);
	want_ok(&p.a, &p);
	c.at = PAIR_LEN;
	c.form = PLAIN_CALL;
	ck_assert_int_eq(call(&c), 0);
	want_soon(fi_cntr_readerr(p.a.rd) == 1);
	want_err(&p.a, &p, FI_EACCES, NULL);
	ck_assert_uint_eq(fi_cntr_read(p.a.wr), 2);
	close_all();
}
END_TEST

START_TEST(atomics_flags_that_mean_something_are_taken)
{
	struct call c = simple(MRF_ATOMIC_COMPARE, FI_UINT64, FI_CSWAP, 4, AT);

	open_mode(FI_MR_ALLOCATED);
	c.form = MESSAGE;
	c.flags = FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
		  FI_DELIVERY_COMPLETE | FI_FENCE;
	run_call(&c);
	c.op = FI_CSWAP_GT;
	run_call(&c);
	c.flags = FI_REMOTE_CQ_DATA;
	ck_assert_int_eq(call(&c), -FI_EBADFLAGS);
	close_all();
}
END_TEST

#define SUM8 FI_UINT64, FI_SUM

START_TEST(atomics_default_flags_that_change_apply_to_the_next_call)
{
	uint64_t flags[] = { FI_TRANSMIT, FI_TRANSMIT | FI_COMPLETION };
	struct call c = simple(MRF_ATOMIC_FETCH, SUM8, 1, AT);
	uint64_t unregistered = 1;

	open_with(&(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL,
				      .selective = true,
				      .op_flags = FI_COMPLETION });
	ck_assert_int_eq(call(&c), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(fi_control(&p.a.ep->fid, FI_SETOPSFLAG, &flags[0]), 0);
	ck_assert_int_eq(call(&c), 0);
	want_none(&p.a);
	ck_assert_int_eq(fi_control(&p.a.ep->fid, FI_SETOPSFLAG, &flags[1]), 0);
	ck_assert_int_eq(call(&c), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(
		fi_atomic(p.a.ep, &unregistered, 1, NULL, p.to, p.base + AT, p.key, SUM8, &p),
		-FI_EINVAL);
	/* What is injected needs no descriptor. */
	flags[1] |= FI_INJECT;
	ck_assert_int_eq(fi_control(&p.a.ep->fid, FI_SETOPSFLAG, &flags[1]), 0);
	ck_assert_int_eq(
		fi_atomic(p.a.ep, &unregistered, 1, NULL, p.to, p.base + AT, p.key, SUM8, &p), 0);
	want_ok(&p.a, &p);
	close_all();
}
END_TEST

START_TEST(atomics_arguments_that_make_no_sense_are_refused)
{
	struct fi_ioc one = { mine.operand, 1 }, two = { mine.operand, 2 }, null = { NULL, 1 },
		      huge = { mine.operand, SIZE_MAX }, many[MRF_LIMIT_IOV + 1];
	struct fi_rma_ioc rma = { 0, 1, 1 }, wraps = { UINT64_MAX - 4, 1, 1 };
	struct fi_msg_atomic msg = { .msg_iov = &one,
				     .iov_count = 1,
				     .rma_iov = &rma,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_SUM };
	struct fid_ep *ep;
	size_t n, i;

	open_mode(0);
	ep = p.a.ep;
	msg.addr = p.to;
	for (i = 0; i <= MRF_LIMIT_IOV; i++)
		many[i] = one;
	/* Operations that there are not, in this family or for this datatype. */
	ck_assert_int_eq(fi_atomic(ep, &one, 1, NULL, p.to, 0, 1, FI_UINT64, FI_CSWAP, NULL),
			 -FI_EOPNOTSUPP);
	ck_assert_int_eq(fi_atomic(ep, &one, 1, NULL, p.to, 0, 1, FI_UINT64, FI_ATOMIC_READ, NULL),
			 -FI_EOPNOTSUPP);
	ck_assert_int_eq(fi_atomic(ep, &one, 1, NULL, p.to, 0, 1, FI_DOUBLE, FI_BOR, NULL),
			 -FI_EOPNOTSUPP);
	ck_assert_int_eq(fi_atomic(ep, &one, 1, NULL, p.to, 0, 1, FI_VOID, FI_SUM, NULL),
			 -FI_EOPNOTSUPP);
	ck_assert_int_eq(fi_compare_atomic(ep, &one, 1, NULL, &one, NULL, &two, NULL, p.to, 0, 1,
					   FI_UINT64, FI_SUM, NULL),
			 -FI_EOPNOTSUPP);
	/* Counts. */
	ck_assert_int_eq(fi_atomic(ep, mine.operand, 0, NULL, p.to, 0, 1, SUM8, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_atomic(ep, mine.operand, 513, NULL, p.to, 0, 1, SUM8, NULL),
			 -FI_EMSGSIZE);
	ck_assert_int_eq(fi_atomic(ep, mine.operand, SIZE_MAX / 4, NULL, p.to, 0, 1, SUM8, NULL),
			 -FI_EMSGSIZE);
	ck_assert_int_eq(fi_atomicv(ep, many, NULL, MRF_LIMIT_IOV + 1, p.to, 0, 1, SUM8, NULL),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_atomicv(ep, &huge, NULL, 1, p.to, 0, 1, SUM8, NULL), -FI_EMSGSIZE);
	ck_assert_int_eq(fi_atomicv(ep, NULL, NULL, 1, p.to, 0, 1, SUM8, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_atomicv(ep, &one, NULL, 0, p.to, 0, 1, SUM8, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_fetch_atomicv(ep, &one, NULL, 1, &two, NULL, 1, p.to, 0, 1, SUM8, NULL),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_compare_atomicv(ep, &one, NULL, 1, &two, NULL, 1, &one, NULL, 1, p.to,
					    0, 1, FI_UINT64, FI_CSWAP, NULL),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_fetch_atomicv(ep, &one, NULL, 1, NULL, NULL, 0, p.to, 0, 1, SUM8, NULL),
			 -FI_EINVAL);
	/* Buffers. */
	ck_assert_int_eq(fi_atomic(ep, NULL, 1, NULL, p.to, 0, 1, SUM8, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_atomicv(ep, &null, NULL, 1, p.to, 0, 1, SUM8, NULL), -FI_EINVAL);
	ck_assert_int_eq(
		fi_fetch_atomic(ep, mine.operand, 1, NULL, NULL, NULL, p.to, 0, 1, SUM8, NULL),
		-FI_EINVAL);
	ck_assert_int_eq(fi_fetch_atomic(ep, NULL, 1, NULL, NULL, NULL, p.to, 0, 1, FI_INT8,
					 FI_ATOMIC_READ, NULL),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_compare_atomic(ep, mine.operand, 1, NULL, NULL, NULL, mine.result, NULL,
					   p.to, 0, 1, FI_UINT64, FI_CSWAP, NULL),
			 -FI_EINVAL);
	/* The target. */
	ck_assert_int_eq(fi_atomic(ep, mine.operand, 1, NULL, p.to, UINT64_MAX - 4, 1, SUM8, NULL),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_atomic(ep, mine.operand, 1, NULL, 77, 0, 1, SUM8, NULL),
			 -FI_EADDRNOTAVAIL);
	/* Messages. */
	ck_assert_int_eq(fi_atomicmsg(ep, NULL, 0), -FI_EINVAL);
	msg.rma_iov_count = 0;
	ck_assert_int_eq(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 9;
	ck_assert_int_eq(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 1;
	msg.rma_iov = NULL;
	ck_assert_int_eq(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov = &wraps;
	ck_assert_int_eq(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL);
	rma.count = SIZE_MAX / 8 + 2;
	msg.rma_iov = &rma;
	ck_assert_int_eq(fi_atomicmsg(ep, &msg, 0), -FI_EMSGSIZE);
	rma.count = 2;
	ck_assert_int_eq(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL);
	rma.count = 1;
	ck_assert_int_eq(fi_atomicmsg(ep, &msg, FI_TAGGED), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_atomicvalid(ep, SUM8, NULL), -FI_EINVAL);
	/* None of it left anything behind. */
	ck_assert_uint_eq(node_ep(&p.a)->nops, 0);
	(void)n;
	close_all();
}
END_TEST

START_TEST(atomics_valid_calls_and_query_tell_what_there_is)
{
	static const uint64_t flags[] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	static struct unit_capture cap;
	struct fi_atomic_attr attr;
	unsigned family, type, op;
	size_t count;
	int ret, query;

	open_mode(0);
	unit_capture(&cap);
	for (family = 0; family < 3; family++) {
		for (type = 0; type < 20; type++) {
			for (op = 0; op < 25; op++) {
				bool there = mrf_atomic_valid(family, type, op);

				count = 77;
				attr = (struct fi_atomic_attr){ 77, 77 };
				ret = family == 0 ? fi_atomicvalid(p.a.ep, type, op, &count)
				      : family == 1
					      ? fi_fetch_atomicvalid(p.a.ep, type, op, &count)
					      : fi_compare_atomicvalid(p.a.ep, type, op, &count);
				query = fi_query_atomic(p.a.domain, type, op, &attr, flags[family]);
				ck_assert_int_eq(ret, there ? 0 : -FI_EOPNOTSUPP);
				ck_assert_int_eq(query, ret);
				ck_assert_uint_eq(count, there ? MAX / mrf_atomic_size(type) : 77);
				ck_assert_uint_eq(attr.count, count);
				ck_assert_uint_eq(attr.size, there ? mrf_atomic_size(type) : 77);
			}
		}
	}
	ck_assert_str_eq(unit_captured(&cap), ""); /* asking is no mistake */
	ck_assert_int_eq(fi_query_atomic(p.a.domain, SUM8, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_query_atomic(p.a.domain, SUM8, &attr, FI_TAGGED), -FI_EOPNOTSUPP);
	ck_assert_int_eq(
		fi_query_atomic(p.a.domain, SUM8, &attr, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
		-FI_EBADFLAGS);
	ck_assert_int_eq(fi_query_atomic(p.a.domain, SUM8, &attr, FI_MORE), -FI_EBADFLAGS);
	close_all();
}
END_TEST

/* --- capabilities --------------------------------------------------------------------- */

static struct fid_ep *ep_with_caps(uint64_t caps)
{
	struct fid_ep *ep;

	p.a.info->caps = caps;
	ck_assert_int_eq(node_try_ep(&p.a, &(struct node_opt){ 0 }, &ep), 0);
	return ep;
}

START_TEST(atomics_need_the_capability_and_its_direction)
{
	struct fid_ep *ep;
	uint64_t value = 1;
	uint32_t half = 0;

	open_mode(0);
	ep = ep_with_caps(FI_RMA);
	ck_assert_int_eq(fi_atomic(ep, &value, 1, NULL, p.to, AT, p.key, SUM8, NULL), -FI_ENOSYS);
	must_close(&ep->fid);
	ep = ep_with_caps(FI_ATOMIC | FI_READ);
	ck_assert_int_eq(fi_atomic(ep, &value, 1, NULL, p.to, AT, p.key, SUM8, NULL),
			 -FI_EOPNOTSUPP);
	ck_assert_int_eq(
		fi_fetch_atomic(ep, &value, 1, NULL, &value, NULL, p.to, AT, p.key, SUM8, NULL),
		-FI_EOPNOTSUPP);
	ck_assert_int_eq(fi_fetch_atomic(ep, NULL, 1, NULL, &value, NULL, p.to, AT, p.key, FI_INT64,
					 FI_ATOMIC_READ, NULL),
			 0);
	want_ok(&p.a, NULL);
	ck_assert_int_eq(memcmp(&value, p.dst + AT, 8), 0);
	ck_assert_int_eq(fi_read(ep, &value, 8, NULL, p.to, 0, p.key, NULL), -FI_EOPNOTSUPP);
	must_close(&ep->fid);
	ep = ep_with_caps(FI_ATOMIC | FI_WRITE);
	ck_assert_int_eq(fi_atomic(ep, &value, 1, NULL, p.to, AT, p.key, SUM8, NULL), 0);
	want_ok(&p.a, NULL);
	ck_assert_int_eq(fi_fetch_atomic(ep, NULL, 1, NULL, &value, NULL, p.to, AT, p.key, FI_INT64,
					 FI_ATOMIC_READ, NULL),
			 -FI_EOPNOTSUPP);
	must_close(&ep->fid);
	/* Neither direction is both. */
	ep = ep_with_caps(FI_ATOMIC);
	ck_assert_int_eq(fi_fetch_atomic(ep, &half, 1, NULL, &half, NULL, p.to, AT, p.key,
					 FI_UINT32, FI_SUM, NULL),
			 0);
	want_ok(&p.a, NULL);
	must_close(&ep->fid);
	p.a.info->caps = 0;
	close_all();
}
END_TEST

START_TEST(atomics_on_a_domain_without_them_fail_and_say_so)
{
	open_mode(FI_MR_ALLOCATED | (_i ? FI_MR_PROV_KEY : 0));
	must_close(&p.mr->fid);
	node_close(&p.b);
	/* As if opened with FI_RMA only. */
	node_open(&p.b, &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | (_i ? FI_MR_PROV_KEY : 0),
					    .caps = FI_RMA });
	p.to = node_insert(&p.a, &p.b);
	pair_reg(&p, REMOTE_RW);
	add_u64(AT, 1);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_EOPNOTSUPP, "without FI_ATOMIC"), 4258);
	xor_u64(AT, 1);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_EOPNOTSUPP, "without FI_ATOMIC"), 4258);
	ck_assert_int_eq(memcmp(p.dst, shadow, PAIR_LEN), 0);
	pair_write(&p, 0, 8);
	want_ok(&p.a, NULL);
	close_all();
}
END_TEST

/* --- local descriptors ---------------------------------------------------------------- */

START_TEST(atomics_with_fi_mr_local_want_a_descriptor_for_each_buffer)
{
	struct fid_mr *read_only, *write_only;
	void *good, *rd, *wr;

	open_mode(FI_MR_LOCAL | FI_MR_ALLOCATED);
	read_only = node_reg(&p.a, &mine, sizeof(mine), FI_READ, 1);
	write_only = node_reg(&p.a, &mine, sizeof(mine), FI_WRITE, 2);
	good = desc();
	rd = fi_mr_desc(read_only);
	wr = fi_mr_desc(write_only);
#define CMP(o, c, r)                                                                         \
	fi_compare_atomic(p.a.ep, mine.operand, 1, o, mine.compare, c, mine.result, r, p.to, \
			  p.base + AT, p.key, FI_UINT64, _i ? FI_CSWAP : FI_CSWAP_LT, &p)
	ck_assert_int_eq(CMP(NULL, good, good), -FI_EINVAL);
	ck_assert_int_eq(CMP(good, NULL, good), -FI_EINVAL);
	ck_assert_int_eq(CMP(good, good, NULL), -FI_EINVAL);
	ck_assert_int_eq(CMP(rd, good, good), -FI_EACCES);
	ck_assert_int_eq(CMP(good, rd, good), -FI_EACCES);
	ck_assert_int_eq(CMP(good, good, wr), -FI_EACCES);
	ck_assert_int_eq(CMP((void *)0x1234, good, good), -FI_EINVAL);
	ck_assert_int_eq(CMP(wr, wr, rd), 0);
	want_ok(&p.a, &p);
	/* A buffer outside of its region. */
	ck_assert_int_eq(fi_atomic(p.a.ep, p.src, 1, good, p.to, p.base + AT, p.key, SUM8, NULL),
			 -FI_EINVAL);
	/* What is injected needs none, and what is only read has no operand. */
	ck_assert_int_eq(fi_inject_atomic(p.a.ep, mine.operand, 1, p.to, p.base + AT, p.key, SUM8),
			 0);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, NULL, 1, NULL, mine.result, good, p.to,
					 p.base + AT, p.key, FI_INT64, FI_ATOMIC_READ, &p),
			 0);
	want_ok(&p.a, &p);
	must_close(&read_only->fid);
	must_close(&write_only->fid);
	close_all();
}
END_TEST

/* Whatever stands there: what is no descriptor, and one of something else. */
START_TEST(atomics_without_fi_mr_local_look_at_no_descriptor)
{
	static const unsigned ops[] = { FI_CSWAP, FI_CSWAP_LT };
	struct fid_mr *read_only;
	uint64_t was;
	void *d[3];
	unsigned i;

	open_mode(_i ? 0 : FI_MR_ALLOCATED);
	read_only = node_reg(&p.a, p.src, PAGE, FI_READ, 1);
	d[0] = (void *)0x1234;
	d[1] = fi_mr_desc(read_only);
	d[2] = (void *)-1;
	for (i = 0; i < 6; i++) {
		was = u64_at(AT);
		memset(mine.operand, 0x70 + (int)i, 8);
		memcpy(mine.compare, &was, 8);
		mine.compare[0] -= i % 2;
		memset(mine.result, 0xcc, 8);
		ck_assert_int_eq(fi_compare_atomic(p.a.ep, mine.operand, 1, d[i % 3], mine.compare,
						   d[(i + 1) % 3], mine.result, d[(i + 2) % 3],
						   p.to, p.base + AT, p.key, FI_UINT64, ops[i % 2],
						   &p),
				 0);
		want_ok(&p.a, &p);
		ck_assert_mem_eq(mine.result, &was, 8);
		ck_assert_mem_eq(p.dst + AT, mine.operand, 8);
	}
	must_close(&read_only->fid);
	close_all();
}
END_TEST

/* Nothing is written where somebody has taken his memory back, and nobody else suffers. */
START_TEST(atomics_whose_local_region_is_closed_meanwhile_fail_alone)
{
	struct fid_mr *gone;
	uint64_t before;

	open_mode(FI_MR_LOCAL | FI_MR_ALLOCATED);
	add_u64(AT, 0);
	want_ok(&p.a, NULL);
	before = u64_at(AT);
	gone = node_reg(&p.a, &mine, sizeof(mine), FI_READ | FI_WRITE, 2);
	memset(mine.operand, 1, 8);
	memset(mine.result, 0xcc, 8);
	fake_hold(true);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, mine.operand, 1, desc(), mine.result,
					 fi_mr_desc(gone), p.to, p.base + AT, p.key, SUM8, &p),
			 0);
	add_u64(AT, 1);
	must_close(&gone->fid);
	fake_hold(false);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EFAULT, "was closed meanwhile"), 4260);
	want_ok(&p.a, p.src + AT);
	ck_assert_uint_eq(mine.result[0], 0xcc);
	ck_assert_uint_eq(u64_at(AT), before + 0x0101010101010101ull + 1);
	ck_assert_uint_eq(fake_connects(), 1);
	want_nothing_left();
	close_all();
}
END_TEST

/* --- everything fails once ------------------------------------------------------------ */

/* Any end will do, if there is one, and just one. */
static void want_end(void)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS);

	if (ret == -FI_EAVAIL)
		ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
	else
		ck_assert_int_eq(ret, 1);
}

/*
 * An operation that failed may be done just now, by the peer's agent: it is over when the agent
 * has done one that was sent behind it.
 */
static void settle(void)
{
	struct call look = simple(MRF_ATOMIC_FETCH, FI_UINT16, FI_ATOMIC_READ, 1, AT);
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };

	for (;;) {
		ck_assert_int_eq(call(&look), 0);
		if (fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS) == 1)
			return;
		ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
	}
}

/* The nth call of the device, at either end, until an operation does without so many. */
START_TEST(atomics_that_any_call_of_the_device_fails_end_and_leave_all_in_order)
{
	struct call c = simple(MRF_ATOMIC_FETCH, FI_UINT64, _i ? FI_SUM : FI_BXOR, 3,
			       _i == 2 ? AT + 4 : AT);
	unsigned nth;
	bool failed = true;

	for (nth = 1; failed; nth++) {
		open_mode(nth % 2 ? FI_MR_ALLOCATED : 0);
		put_values(&c);
		fake_fail_any(nth, nth % 3 ? FI_ENOMEM : FI_EIO);
		if (!call(&c))
			want_end();
		failed = fake_failed();
		fake_heal();
		settle();
		fake_freeze(true);
		memcpy(shadow, p.dst, PAIR_LEN);
		fake_freeze(false);
		run_call(&c);
		want_nothing_left();
		close_all();
	}
	ck_assert_uint_gt(nth, 8);
}
END_TEST

/* --- counted -------------------------------------------------------------------------- */

static struct fid_cntr *cntr;

static struct fid_mr *reg_counted(size_t at, size_t len, uint64_t key)
{
	struct fid_mr *mr;

	ck_assert_int_eq(
		fi_mr_reg(p.b.domain, p.dst + at, len, REMOTE_RW, 0, key, FI_RMA_EVENT, &mr, NULL),
		0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	return mr;
}

static void open_counted(int mode)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	open_with(&(struct node_opt){ .mr_mode = mode | FI_MR_RMA_EVENT,
				      .caps = MRF_CAPS | FI_RMA_EVENT });
	must_close(&p.mr->fid);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	p.mr = reg_counted(0, PAIR_LEN, PAIR_KEY);
	p.key = fi_mr_key(p.mr);
}

static void close_counted_with(struct fid_mr *one, struct fid_mr *two)
{
	/* Counters before regions, up to version 2.2. */
	must_close(&cntr->fid);
	must_close(&p.mr->fid);
	p.mr = NULL;
	if (one)
		must_close(&one->fid);
	if (two)
		must_close(&two->fid);
	close_all();
}

static void want_count(uint64_t n)
{
	want_soon(fi_cntr_read(cntr) >= n);
	usleep(1000);
	ck_assert_uint_eq(fi_cntr_read(cntr), n);
}

START_TEST(atomics_that_change_a_counted_region_count_once)
{
	struct call c = simple(MRF_ATOMIC_BASE, FI_UINT64, FI_SUM, 1, AT);
	uint64_t n = 0, huge = UINT64_MAX, zero = 0;
	size_t log;

	open_counted(modes[_i] & (FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY));
	run_call(&c);
	want_count(++n);
	log = fake_nlog();
	run_call(&c);
	want_count(++n);
	c = simple(MRF_ATOMIC_FETCH, FI_INT8, FI_ATOMIC_WRITE, 4096, AT);
	run_call(&c);
	want_count(++n);
	c.at++;
	c.form = VECTOR;
	run_call(&c);
	want_count(++n);
	/* In two parts of the same region. */
	c.form = MESSAGE;
	run_call(&c);
	want_count(++n);
	ck_assert_uint_eq(native_since(log), 0);
	/* What stores nothing, and what only reads. */
	c = simple(MRF_ATOMIC_FETCH, FI_UINT64, FI_ATOMIC_READ, 20, AT);
	run_call(&c);
	ck_assert_uint_eq(native_since(log), 20);
	c.datatype = FI_UINT16;
	run_call(&c);
	memcpy(mine.operand, &huge, 8);
	ck_assert_int_eq(fi_atomic(p.a.ep, mine.operand, 1, NULL, p.to, p.base + AT, p.key,
				   FI_UINT64, FI_MIN, &p),
			 0);
	want_ok(&p.a, &p);
	memcpy(p.dst + AT, &zero, 8);
	memcpy(mine.compare, &huge, 8);
	ck_assert_int_eq(fi_compare_atomic(p.a.ep, mine.operand, 1, NULL, mine.compare, NULL,
					   mine.result, NULL, p.to, p.base + AT, p.key, FI_UINT64,
					   FI_CSWAP, &p),
			 0);
	want_ok(&p.a, &p);
	want_count(n);
	/* Many, of which only one somewhere at the beginning does. */
	memset(p.dst + AT, 0, 4096);
	memset(mine.operand, 0, 4096);
	mine.operand[100] = 1;
	ck_assert_int_eq(fi_atomic(p.a.ep, mine.operand, 4096, NULL, p.to, p.base + AT, p.key,
				   FI_UINT8, FI_MAX, &p),
			 0);
	want_ok(&p.a, &p);
	want_count(++n);
	/* Refused. */
	ck_assert_int_eq(fi_atomic(p.a.ep, mine.operand, 1, NULL, p.to, p.base + PAIR_LEN, p.key,
				   FI_UINT64, FI_SUM, &p),
			 0);
	want_err(&p.a, &p, FI_EACCES, NULL);
	want_count(n);
	close_counted_with(NULL, NULL);
}
END_TEST

START_TEST(atomics_over_several_counted_regions_count_in_each)
{
	struct fid_mr *one, *two;
	struct fi_rma_ioc rma[] = { { 0, 8, 5 }, { 0, 8, 6 }, { 64, 8, 5 } };
	struct fi_ioc operand = { mine.operand, 24 };
	struct fi_msg_atomic msg = { .msg_iov = &operand,
				     .iov_count = 1,
				     .rma_iov = rma,
				     .rma_iov_count = 3,
				     .datatype = FI_UINT64,
				     .op = FI_SUM,
				     .context = &p };

	open_counted(FI_MR_ALLOCATED);
	one = reg_counted(0, PAGE, 5);
	two = reg_counted(PAGE, PAGE, 6);
	msg.addr = p.to;
	ck_assert_int_eq(fi_atomicmsg(p.a.ep, &msg, 0), 0);
	want_ok(&p.a, &p);
	want_count(2);
	/* Only in the first of the ranges of a region. */
	memset(p.dst, 0, PAGE * 2);
	memset(mine.operand, 0, 24 * 8);
	mine.operand[0] = 1;
	msg.op = FI_MAX;
	ck_assert_int_eq(fi_atomicmsg(p.a.ep, &msg, 0), 0);
	want_ok(&p.a, &p);
	want_count(3);
	close_counted_with(one, two);
}
END_TEST

static TCase *tcase_new(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, setup, fixture_teardown);
	tcase_set_timeout(tc, 120);
	return tc;
}

static TCase *tcase_all(void)
{
	TCase *tc = tcase_new("all");

	tcase_add_loop_test(tc, atomics_every_operation_on_every_datatype, 0, NMODES);
	tcase_add_loop_test(tc, atomics_every_operation_on_every_datatype_in_vectors, 0, NMODES);
	tcase_add_loop_test(tc, atomics_longest_vectors, 0, 3);
	tcase_add_loop_test(tc, atomics_of_64_bits_are_the_devices_where_they_lie_well, 0, NMODES);
	tcase_add_test(tc, atomics_that_the_device_cannot_do_are_the_agents);
	tcase_add_test(tc, atomics_with_a_key_that_carries_its_rkey_ask_nothing);
	tcase_add_test(tc, atomics_of_agent_and_device_on_one_word_lose_nothing);
	tcase_add_test(tc, atomics_do_not_depend_on_what_the_processor_sees);
	tcase_add_test(tc, atomics_of_an_agent_that_others_overtake_all_the_time_go_on);
	tcase_add_test(tc, atomics_of_one_element_do_not_keep_the_agent);
	return tc;
}

static TCase *tcase_bounds(void)
{
	TCase *tc = tcase_new("bounds");

	tcase_add_loop_test(tc, atomics_at_the_ends_of_a_region_touch_nothing_outside, 0, 2);
	tcase_add_loop_test(tc, atomics_past_the_end_are_refused_and_nothing_is_done, 0, NMODES);
	tcase_add_loop_test(tc, atomics_past_the_end_of_a_smaller_successor_do_nothing, 0, NMODES);
	tcase_add_test(tc, atomics_cross_the_segments_of_a_region);
	tcase_add_loop_test(tc, atomics_need_the_right_to_write_remotely, 0, NMODES);
	tcase_add_loop_test(tc, atomics_of_closed_and_unknown_keys_are_refused, 0, NMODES);
	tcase_add_loop_test(tc, atomics_of_a_region_that_is_closed_midway_stop_there, 0, 2);
	tcase_add_test(tc, atomics_behind_a_refused_access_are_done_exactly_once);
	tcase_add_loop_test(tc, atomics_of_a_region_registered_again_go_on, 0, NMODES);
	tcase_add_loop_test(tc, atomics_without_an_answer_are_never_repeated, 0, 2);
	tcase_add_loop_test(tc, atomics_behind_a_read_to_a_closed_buffer_are_not_repeated, 0, 2);
	tcase_add_test(tc, atomics_of_a_killed_peer_end);
	return tc;
}

static TCase *tcase_calls(void)
{
	TCase *tc = tcase_new("calls");

	tcase_add_loop_test(tc, atomics_inject_copies_and_tells_of_failures_only, 0, NMODES);
	tcase_add_test(tc, atomics_count_as_writes_or_reads_by_whether_something_comes_back);
	tcase_add_test(tc, atomics_flags_that_mean_something_are_taken);
	tcase_add_test(tc, atomics_default_flags_that_change_apply_to_the_next_call);
	tcase_add_test(tc, atomics_arguments_that_make_no_sense_are_refused);
	tcase_add_test(tc, atomics_valid_calls_and_query_tell_what_there_is);
	tcase_add_test(tc, atomics_need_the_capability_and_its_direction);
	tcase_add_loop_test(tc, atomics_on_a_domain_without_them_fail_and_say_so, 0, 2);
	tcase_add_loop_test(tc, atomics_with_fi_mr_local_want_a_descriptor_for_each_buffer, 0, 2);
	tcase_add_loop_test(tc, atomics_without_fi_mr_local_look_at_no_descriptor, 0, 2);
	tcase_add_test(tc, atomics_whose_local_region_is_closed_meanwhile_fail_alone);
	return tc;
}

static TCase *tcase_counted(void)
{
	TCase *tc = tcase_new("counted");

	tcase_add_loop_test(tc, atomics_that_change_a_counted_region_count_once, 0, NMODES);
	tcase_add_test(tc, atomics_over_several_counted_regions_count_in_each);
	tcase_add_loop_test(
		tc, atomics_that_any_call_of_the_device_fails_end_and_leave_all_in_order, 0, 3);
	return tc;
}

UNIT_MAIN("ep_atomic", tcase_all, tcase_bounds, tcase_calls, tcase_counted)
