/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements that get lost. The target has carried out all that was posted; the
 * device sends it again and fails at one of the work requests. What was done already is
 * never done again: it is reported, once, as something that may have been done.
 */
#include <rdma/fi_atomic.h>
#include "ep_fixture.h"

static struct pair p;
static struct fid_mr *local, *remote;
static const uint64_t one = 1;

#define CELL 4096ul /* of dst, for atomic operations */
#define OTHER_KEY 5

static uint64_t cell(void)
{
	uint64_t value;

	fake_copy(&value, p.dst + CELL, sizeof(value));
	return value;
}

/* --- what is behind --------------------------------------------------------------------
 */

static void atomic(enum fi_op op)
{
	ck_assert_int_eq(
		fi_atomic(p.a.ep, &one, 1, NULL, p.to, p.base + CELL, p.key, FI_UINT64, op, &p), 0);
}

static void native(void)
{
	atomic(FI_SUM);
}

static void by_agent(void)
{
	atomic(FI_BXOR);
}

static void write_one(void)
{
	ck_assert_int_eq(fi_write(p.a.ep, &one, sizeof(one), NULL, p.to, p.base + CELL, p.key, &p),
			 0);
}

static void write_data(void)
{
	ck_assert_int_eq(
		fi_writedata(p.a.ep, &one, sizeof(one), NULL, 7, p.to, p.base + CELL, p.key, &p),
		0);
}

static void read_one(void)
{
	ck_assert_int_eq(fi_read(p.a.ep, p.src + PAGE, 8, NULL, p.to, p.base + CELL, p.key, &p), 0);
}

static const struct {
	void (*start)(void);
	uint64_t value; /* of the cell when it was done once */
	bool repeats;
} behind[] = {
	{ native, 1, false },	  { by_agent, 1, false }, { write_one, 1, false },
	{ write_data, 1, false }, { read_one, 0, true },
};

#define BEHIND (int)(sizeof(behind) / sizeof(behind[0]))

/* --- what fails when it is sent again
 * ---------------------------------------------------- */

static void write_ahead(void)
{
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 400, fi_mr_desc(local), p.to, 0, OTHER_KEY, NULL),
			 0);
}

static void read_ahead(void)
{
	ck_assert_int_eq(fi_read(p.a.ep, p.src, 400, NULL, p.to, 0, OTHER_KEY, NULL), 0);
}

static void close_local(void)
{
	must_close(&local->fid);
	local = NULL;
}

static void close_remote(void)
{
	must_close(&remote->fid);
	remote = NULL;
}

static void link_down(void)
{
	fake_break(1, 1, MRF_WC_UNSENT, false);
}

static const struct {
	void (*start)(void);
	void (*spoil)(void);
	bool flush; /* as 6.12 tells it */
	int err;
	int err_behind; /* of what may have been done */
} ahead[] = {
	{ write_ahead, close_local, false, FI_EFAULT, FI_EIO },
	{ write_ahead, close_local, true, FI_EFAULT, FI_EIO },
	{ read_ahead, close_remote, false, FI_EKEYREJECTED, FI_EIO },
	{ write_ahead, link_down, false, FI_ENETDOWN, FI_ENETDOWN },
};

#define AHEAD (int)(sizeof(ahead) / sizeof(ahead[0]))

static atomic_bool no_replies;

static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	return from_target && mrf_msg_type(msg, *len) == MRF_MSG_REPLY && no_replies ? FAKE_DROP
										     : FAKE_DELIVER;
}

static void open_all(void)
{
	int i;

	fake.on_send = on_send;
	pair_open(&p, &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED, .caps = FI_RMA | FI_ATOMIC });
	local = node_reg(&p.a, p.src, PAIR_LEN, FI_READ | FI_WRITE, 2);
	remote = node_reg(&p.b, p.dst + 2 * PAGE, PAGE, REMOTE_RW, OTHER_KEY);
	/* Keys known, queue pairs made. */
	write_ahead();
	read_ahead();
	read_one();
	native();
	by_agent();
	for (i = 0; i < 5; i++)
		want_ok(&p.a, NULL);
	ck_assert_uint_eq(cell(), 0);
}

static void close_all(void)
{
	no_replies = false;
	want_none(&p.a);
	want_idle(&p.a);
	if (local)
		must_close(&local->fid);
	if (remote)
		must_close(&remote->fid);
	local = remote = NULL;
	pair_close(&p);
}

/* Both completions, in whichever order; behind: how the second operation ended. */
static void want_both(int err_ahead, int *err_behind)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct fi_cq_data_entry e = { 0 };
		struct fi_cq_err_entry got = { 0 };

		if (fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS) == -FI_EAVAIL)
			ck_assert_int_eq(fi_cq_readerr(p.a.cq, &got, 0), 1);
		else
			got.op_context = e.op_context;
		if (got.op_context == &p) {
			*err_behind = got.err;
			ck_assert(!got.err || strstr(got.err_data, "may or may not"));
		} else {
			ck_assert_int_eq(got.err, err_ahead);
		}
	}
}

#define LATER 0x100 /* what the target's own process stores there afterwards */

static void lose(int a, int b)
{
	const uint64_t later = LATER;

	fake.flush_local = ahead[a].flush;
	no_replies = true;
	fake_hold(true);
	ahead[a].start();
	behind[b].start();
	fake_run_unacknowledged();
	want_soon(cell() == behind[b].value);
	fake_copy(p.dst + CELL, &later, sizeof(later));
	ahead[a].spoil();
	fake_hold(false);
}

START_TEST(once_what_is_sent_again_is_not_done_again)
{
	int a = _i / BEHIND, b = _i % BEHIND, err = -1;

	open_all();
	lose(a, b);
	want_both(ahead[a].err, &err);
	ck_assert_int_eq(err, behind[b].repeats ? 0 : ahead[a].err_behind);
	ck_assert_uint_eq(cell(), LATER);
	close_all();
}
END_TEST

START_TEST(once_that_it_may_have_been_done_is_not_forgotten_when_there_is_no_way_back)
{
	int a = _i / BEHIND, b = _i % BEHIND, err = -1;

	if (behind[b].repeats)
		return;
	open_all();
	fake_unreachable(1, FI_EHOSTUNREACH);
	lose(a, b);
	/* Of the first some need to ask why, and cannot. */
	want_both(ahead[a].err == FI_EKEYREJECTED ? FI_EHOSTUNREACH : ahead[a].err, &err);
	ck_assert_int_ne(err, 0);
	ck_assert_uint_eq(cell(), LATER);
	fake_heal();
	fake_unreachable(0, 0);
	close_all();
}
END_TEST

/* A device that does not tell what it has sent again. */
START_TEST(once_what_cannot_be_known_is_not_done_again)
{
	int err = 0;

	fake.retries_unknown = true;
	open_all();
	fake_hold(true);
	write_ahead();
	behind[_i].start();
	close_local();
	fake_hold(false);
	want_both(FI_EFAULT, &err);
	ck_assert_int_eq(!err, behind[_i].repeats);
	close_all();
}
END_TEST

/* Nothing was lost: what was behind the failure was never sent, and is done. */
START_TEST(once_what_was_never_sent_is_done)
{
	int a = _i / BEHIND, b = _i % BEHIND, err = -1;

	open_all();
	fake.flush_local = ahead[a].flush;
	fake_hold(true);
	ahead[a].start();
	behind[b].start();
	ahead[a].spoil();
	fake_hold(false);
	want_both(ahead[a].err, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(cell(), behind[b].value);
	close_all();
}
END_TEST

/* What was acknowledged stays known, too, when the rest cannot be done. */
START_TEST(once_part_that_was_done_is_said)
{
	fake.max_msg_size = PAGE;
	open_all();
	fake_hold(true);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 3 * PAGE, NULL, p.to, p.base, p.key, &p), 0);
	fake_break(2, 1, MRF_WC_REFUSED, false);
	fake_unreachable(1, FI_EHOSTUNREACH);
	fake_hold(false);
	want_err(&p.a, &p, FI_EHOSTUNREACH, "4096 of 12288 bytes were done");
	close_all();
}
END_TEST

/* The device takes its first part only, which is done. */
START_TEST(once_part_that_is_not_taken_says_why_when_the_others_are_back)
{
	fake.max_msg_size = PAGE;
	open_all();
	fake_hold(true);
	fake_fail(FAKE_POST, 2, FI_ENOMEM);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 3 * PAGE, NULL, p.to, p.base, p.key, &p), 0);
	ck_assert(fake_failed());
	want_none(&p.a);
	fake_hold(false);
	ck_assert_int_eq(want_err(&p.a, &p, FI_ENOMEM, "4096 of 12288 bytes were done"), 4108);
	close_all();
}
END_TEST

static TCase *tcase_lost(void)
{
	TCase *tc = tcase_create("lost");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, once_what_is_sent_again_is_not_done_again, 0, AHEAD * BEHIND);
	tcase_add_loop_test(
		tc, once_that_it_may_have_been_done_is_not_forgotten_when_there_is_no_way_back, 0,
		AHEAD * BEHIND);
	tcase_add_loop_test(tc, once_what_cannot_be_known_is_not_done_again, 0, BEHIND);
	tcase_add_loop_test(tc, once_what_was_never_sent_is_done, 0, AHEAD * BEHIND);
	tcase_add_test(tc, once_part_that_was_done_is_said);
	tcase_add_test(tc, once_part_that_is_not_taken_says_why_when_the_others_are_back);
	return tc;
}

UNIT_MAIN("once", tcase_lost)
