/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that does not answer, though its kernel does: what that keeps from others, for how
 * long it is waited for, and how what waits is called back.
 */
#include <rdma/fi_atomic.h>
#include "base/param.h"
#include "ep_fixture.h"

#define OTHER_KEY 5
#define NEW_KEY 4711 /* one that has to be asked about */
#define NO_KEY_THERE FI_EKEYREJECTED

static struct pair p;
static struct node third;
static uint64_t cells[8];
static struct fid_mr *cells_mr;
static fi_addr_t other; /* the third's address */
static atomic_bool keep_replies;
static atomic_bool late; /* the device is, with what p.a has in flight to p.b */

static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	return from_target && mrf_msg_type(msg, *len) == MRF_MSG_REPLY && keep_replies
		       ? FAKE_KEEP
		       : FAKE_DELIVER;
}

/* Until it has been given up: then all of it comes at once. ep->lock is held. */
static bool is_late(const struct mrf_vcq *cq)
{
	const struct mrf_ep *ep;
	const struct mrf_conn *conn;

	if (!atomic_load(&late))
		return false;
	ep = node_ep(&p.a);
	conn = cq == ep->scq ? ep->peers[MRF_CONN_ACCESS].of[p.to]->conn : NULL;
	return conn && conn->head != conn->tail;
}

/* Before there is an agent, which reads it whenever it likes. */
static void answer_within(const char *ms)
{
	ck_assert_int_eq(setenv("FI_MRFAB_ANSWER_TIMEOUT", ms, 1), 0);
	mrf_env_reload();
}

static void setup(void)
{
	fixture_setup();
	answer_within("60000");
	fake.on_send = on_send;
	fake.is_late = is_late;
	late = false;
}

static void open_all(void)
{
	/* Memory that is pinned for good: nothing known has to be asked about again. */
	const struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED,
				      .caps = FI_RMA | FI_ATOMIC,
				      .counters = true };

	memset(cells, 0, sizeof(cells));
	pair_open(&p, &opt);
	node_open(&third, &opt);
	cells_mr = node_reg(&third, cells, sizeof(cells), REMOTE_RW, OTHER_KEY);
	other = node_insert(&p.a, &third);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
}

static void close_all(void)
{
	want_none(&p.a);
	want_idle(&p.a);
	must_close(&cells_mr->fid);
	pair_close(&p);
	node_close(&third);
}

static void stop(bool on)
{
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, on);
}

static int write_unknown(void *context)
{
	return (int)fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, NEW_KEY, context);
}

static int add_one(fi_addr_t to, uint64_t at, uint64_t key)
{
	static const uint64_t one = 1;

	return (int)fi_atomic(p.a.ep, &one, 1, NULL, to, at, key, FI_UINT64, FI_SUM, cells);
}

static uint64_t cell(int i)
{
	uint64_t value;

	fake_copy(&value, &cells[i], sizeof(value));
	return value;
}

/* --- room for others ---------------------------------------------------------------------- */

START_TEST(silent_peer_leaves_room_for_operations_of_others)
{
	static uint64_t old[MRF_EP_FEW_OPS];
	const uint64_t one = 1;
	int i, n = 0;

	open_all();
	stop(true);
	while (!write_unknown(&p))
		n++;
	ck_assert_int_eq(n, MRF_EP_OPS);
	ck_assert_int_eq(write_unknown(&p), -FI_EAGAIN);
	ck_assert_int_eq(p.a.ep->ops->tx_size_left(p.a.ep), 0);
	/* The other has not been reached before; as many at a time as it may have then. */
	fake_hold(true);
	for (i = 0; i < MRF_EP_FEW_OPS; i++)
		ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &one, 1, NULL, &old[i], NULL, other, 0,
						 OTHER_KEY, FI_UINT64, FI_SUM, cells),
				 0);
	ck_assert_int_eq(add_one(other, 0, OTHER_KEY), -FI_EAGAIN);
	ck_assert_int_eq(p.a.ep->ops->tx_size_left(p.a.ep), 0);
	fake_hold(false);
	for (i = 0; i < MRF_EP_FEW_OPS; i++)
		want_ok(&p.a, cells);
	for (i = 0; i < MRF_EP_FEW_OPS; i++)
		ck_assert_uint_eq(old[i], i);
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(add_one(other, 8, OTHER_KEY), 0);
		want_ok(&p.a, cells);
	}
	ck_assert_uint_eq(cell(0), MRF_EP_FEW_OPS);
	ck_assert_uint_eq(cell(1), 100);
	stop(false);
	for (i = 0; i < n; i++)
		want_err(&p.a, &p, NO_KEY_THERE, NULL);
	ck_assert_int_eq(p.a.ep->ops->tx_size_left(p.a.ep), MRF_EP_OPS);
	close_all();
}
END_TEST

/* --- a deadline ----------------------------------------------------------------------------- */

START_TEST(silent_peer_fails_what_waits_for_its_answer_and_may_answer_later)
{
	int64_t begin;

	answer_within("2500");
	open_all();
	stop(true);
	ck_assert_int_eq(write_unknown(&p), 0);
	ck_assert_int_eq(add_one(p.to, p.base, p.key), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_ETIMEDOUT, "FI_MRFAB_ANSWER_TIMEOUT"), 4133);
	ck_assert_int_eq(want_err(&p.a, cells, FI_ETIMEDOUT, "FI_MRFAB_ANSWER_TIMEOUT"), 4133);
	/* Nor what comes later, which has its own time: a look each second tells when it came. */
	usleep(2600000);
	begin = mrf_now_ms();
	ck_assert_int_eq(write_unknown(&p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_ETIMEDOUT, "FI_MRFAB_ANSWER_TIMEOUT"), 4133);
	ck_assert_int_ge(mrf_now_ms() - begin, 1400);
	stop(false);
	ck_assert_int_eq(write_unknown(&p), 0);
	want_err(&p.a, &p, NO_KEY_THERE, NULL);
	ck_assert_int_eq(add_one(p.to, p.base, p.key), 0);
	want_ok(&p.a, cells);
	ck_assert_uint_eq(*(uint64_t *)(void *)p.dst - *(uint64_t *)(void *)p.src, 1);
	/* One to it, and none anew. */
	ck_assert_uint_eq(fake_connects(), 1);
	close_all();
}
END_TEST

/* The device gives back what the agent has given up, before the connection is gone. */
START_TEST(silent_device_that_answers_late_completes_nothing_twice)
{
	open_all();
	late = true;
	fake_break(1, 1, MRF_WC_TIMEOUT, false);
	fake_hold(true);
	for (size_t i = 0; i < 3; i++)
		pair_write(&p, 8 * i, 8);
	fake_hold(false);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(
			want_err(&p.a, pair_ctx(&p, 8 * i), FI_ETIMEDOUT, "may or may not"), 4111);
	want_soon(!node_state(&p.a, p.to).connection);
	ck_assert_uint_eq(node_state(&p.a, p.to).work_requests, 0);
	late = false;
	pair_write(&p, 100, 8);
	want_ok(&p.a, pair_ctx(&p, 100));
	ck_assert_uint_eq(fake_connects(), 2);
	close_all();
}
END_TEST

/* What the agent may have done is not done again, and what is behind it was not begun. */
START_TEST(silent_peer_fails_a_request_that_it_may_have_done)
{
	const uint32_t bits = 6; /* 4 bytes: no swap by the device does it */
	const uint64_t word = 6;

	answer_within("2000");
	open_all();
	keep_replies = true;
	ck_assert_int_eq(
		fi_atomic(p.a.ep, &bits, 1, NULL, other, 0, OTHER_KEY, FI_UINT32, FI_BXOR, &third),
		0);
	ck_assert_int_eq(fi_write(p.a.ep, &word, 8, NULL, other, 8, OTHER_KEY, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_ETIMEDOUT, "FI_MRFAB_ANSWER_TIMEOUT"), 4133);
	ck_assert_int_eq(want_err(&p.a, &third, FI_ETIMEDOUT, "may or may not"), 4111);
	keep_replies = false;
	ck_assert_int_eq(add_one(other, 0, OTHER_KEY), 0);
	want_ok(&p.a, cells);
	ck_assert_uint_eq(cell(0), bits + 1);
	ck_assert_uint_eq(cell(1), 0);
	close_all();
}
END_TEST

/* Replies that come, each in its time, keep the operation alive: three of them, 4.5 seconds. */
START_TEST(silent_is_nobody_who_answers_now_and_then)
{
	static const uint64_t ones[128] = { 1 }; /* more than one request has room for */
	int i;

	answer_within("4000");
	open_all();
	keep_replies = true;
	ck_assert_int_eq(
		fi_atomic(p.a.ep, ones, 128, NULL, p.to, p.base, p.key, FI_UINT64, FI_BXOR, &p), 0);
	for (i = 0; i < 3; i++) {
		usleep(1500000);
		fake_deliver();
	}
	want_ok(&p.a, &p);
	keep_replies = false;
	close_all();
}
END_TEST

/* --- fi_cancel ------------------------------------------------------------------------------ */

START_TEST(silent_peer_what_waits_for_it_is_canceled)
{
	struct fi_cq_err_entry got = { 0 };
	int ctx[3];

	open_all();
	stop(true);
	ck_assert_int_eq(write_unknown(&ctx[0]), 0);
	ck_assert_int_eq(write_unknown(&ctx[1]), 0);
	ck_assert_int_eq(fi_read(p.a.ep, p.src, 8, NULL, p.to, p.base, p.key, &ctx[2]), 0);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &p), -FI_ENOENT);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &ctx[1]), 0);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &ctx[1]), -FI_ENOENT);
	ck_assert_int_eq(fi_cq_readerr(p.a.cq, &got, 0), 1);
	ck_assert_ptr_eq(got.op_context, &ctx[1]);
	ck_assert_int_eq(got.err, FI_ECANCELED);
	ck_assert_int_eq(got.prov_errno, 4134);
	ck_assert_uint_eq(got.flags, FI_RMA | FI_WRITE);
	ck_assert_uint_eq(fi_cntr_readerr(p.a.wr), 1);
	/* With what it asked for gone, what was behind it goes on at once. */
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &ctx[0]), 0);
	want_err(&p.a, &ctx[0], FI_ECANCELED, "nothing was done");
	want_ok(&p.a, &ctx[2]);
	ck_assert_uint_eq(fi_cntr_readerr(p.a.rd), 0);
	stop(false);
	close_all();
}
END_TEST

/* Two with one context: one call, one of them. */
START_TEST(silent_peer_one_call_cancels_one)
{
	open_all();
	stop(true);
	ck_assert_int_eq(write_unknown(&p), 0);
	ck_assert_int_eq(write_unknown(&p), 0);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &p), 0);
	want_err(&p.a, &p, FI_ECANCELED, NULL);
	stop(false);
	want_err(&p.a, &p, NO_KEY_THERE, NULL);
	close_all();
}
END_TEST

START_TEST(silent_what_was_posted_is_not_canceled)
{
	fake.max_msg_size = 8;
	open_all();
	fake_hold(true);
	pair_write(&p, 0, 8);
	/* More work requests than the connection takes: the first of them are posted. */
	pair_write(&p, 8, 8 * MRF_CONN_RING);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, pair_ctx(&p, 0)), -FI_ENOENT);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, pair_ctx(&p, 8)), -FI_ENOENT);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 0));
	want_ok(&p.a, pair_ctx(&p, 8));
	close_all();
}
END_TEST

/* A request that is on its way, and one whose turn has not come. */
START_TEST(silent_what_was_requested_is_not_canceled)
{
	const uint32_t bits = 6; /* 4 bytes: no swap by the device does it */
	const uint64_t word = 6;
	int ctx[2];

	open_all();
	keep_replies = true;
	ck_assert_int_eq(
		fi_atomic(p.a.ep, &bits, 1, NULL, other, 0, OTHER_KEY, FI_UINT32, FI_BXOR, &ctx[0]),
		0);
	ck_assert_int_eq(fi_write(p.a.ep, &word, 8, NULL, other, 8, OTHER_KEY, &ctx[1]), 0);
	want_soon(cell(0) == bits);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &ctx[0]), -FI_ENOENT);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &ctx[1]), 0);
	want_err(&p.a, &ctx[1], FI_ECANCELED, NULL);
	keep_replies = false;
	fake_deliver();
	want_ok(&p.a, &ctx[0]);
	close_all();
}
END_TEST

static TCase *tcase_silent(void)
{
	TCase *tc = tcase_create("silent");

	tcase_add_checked_fixture(tc, setup, fixture_teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, silent_peer_leaves_room_for_operations_of_others);
	tcase_add_test(tc, silent_peer_fails_what_waits_for_its_answer_and_may_answer_later);
	tcase_add_test(tc, silent_device_that_answers_late_completes_nothing_twice);
	tcase_add_test(tc, silent_peer_fails_a_request_that_it_may_have_done);
	tcase_add_test(tc, silent_is_nobody_who_answers_now_and_then);
	tcase_add_test(tc, silent_peer_what_waits_for_it_is_canceled);
	tcase_add_test(tc, silent_peer_one_call_cancels_one);
	tcase_add_test(tc, silent_what_was_posted_is_not_canceled);
	tcase_add_test(tc, silent_what_was_requested_is_not_canceled);
	return tc;
}

UNIT_MAIN("silent", tcase_silent)
