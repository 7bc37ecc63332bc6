/* SPDX-License-Identifier: BSD-2-Clause */
/* A process, or a thread of it, changes its credentials. */
#include "ep_fixture.h"
#include "loop/agent.h"

static struct pair p;

/* All of a process; or a single post, which is one of its threads. */
static void deny(struct node *n)
{
	fake_deny(node_agent(n)->cm);
}

static void warm_up(void)
{
	pair_write(&p, 0, 100);
	want_ok(&p.a, pair_ctx(&p, 0));
}

static void want_denied(const void *ctx)
{
	int code = want_err(&p.a, ctx, FI_EACCES, "credentials");

	ck_assert_msg(code == 5203 || code == 5204, "code %d", code);
}

/* Though its work request lies in the queue: nothing moves the queue on. */
static void write_that_is_not_run(size_t at)
{
	fake_hold(true);
	pair_write(&p, at, 100);
	want_soon(!fake_queued());
	fake_hold(false);
}

/* The agent of a has found out. */
static void be_denied(void)
{
	deny(&p.a);
	write_that_is_not_run(1000);
	want_denied(pair_ctx(&p, 1000));
	want_soon(node_agent(&p.a)->denied);
}

/* --- the initiator ---------------------------------------------------------------- */

START_TEST(write_after_a_change_of_credentials_fails_and_says_so)
{
	/* With descriptors it goes the short way. */
	struct node_opt local = { .mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL };
	int64_t begin;

	pair_open(&p, _i ? &local : PLAIN);
	warm_up();
	deny(&p.a);
	begin = mrf_now_ms();
	write_that_is_not_run(1000);
	ck_assert_int_eq(
		want_err(&p.a, pair_ctx(&p, 1000), FI_EACCES, "may or may not have been done"),
		5203);
	/* What lies in the queue was not put there twice. */
	ck_assert_uint_eq(fake.denied, 1);
	ck_assert_int_lt(mrf_now_ms() - begin, 3000);
	/* From here on none is begun, whichever way it takes. */
	pair_write(&p, 2000, 100);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 2000), FI_EACCES, "nothing was done"), 5204);
	pair_read(&p, 3000, 10000);
	want_denied(pair_ctx(&p, 3000));
	want_none(&p.a);
	pair_close(&p);
}
END_TEST

/* What the kernel has goes on, what it was not told of ends with it. */
START_TEST(operations_in_flight_each_complete_once)
{
	unsigned ok = 0, bad = 0, i;

	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	for (i = 0; i < 10; i++) {
		pair_write(&p, i * 100, 100);
		pair_read(&p, 20000 + i * 100, 100);
	}
	deny(&p.a);
	pair_write(&p, 5000, 100);
	pair_write(&p, 6000, 100);
	fake_hold(false);
	for (i = 0; i < 22; i++) {
		struct fi_cq_data_entry entry;
		ssize_t ret = fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS);

		ok += ret == 1;
		if (ret == -FI_EAVAIL)
			want_denied(NULL);
		bad += ret == -FI_EAVAIL;
	}
	ck_assert_uint_eq(ok + bad, 22);
	ck_assert_uint_ge(bad, 1);
	want_none(&p.a);
	pair_close(&p);
}
END_TEST

START_TEST(operation_of_several_pieces_fails_once)
{
	fake.max_msg_size = 1000;
	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	fake_fail(FAKE_POST, 3, FI_EACCES);
	pair_write(&p, 0, 10000);
	want_denied(pair_ctx(&p, 0));
	fake_hold(false);
	want_none(&p.a);
	ck_assert_uint_eq(fake_queued(), 0);
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(nothing_more_is_posted_on_a_connection_that_was_denied)
{
	fake.max_msg_size = 1000;
	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	deny(&p.a);
	pair_write(&p, 0, 10000);
	pair_write(&p, 20000, 10);
	want_denied(pair_ctx(&p, 0));
	want_denied(pair_ctx(&p, 20000));
	fake_hold(false);
	ck_assert_uint_eq(fake.denied, 1);
	pair_close(&p);
}
END_TEST

START_TEST(question_that_is_not_taken_fails_what_waits_for_it)
{
	pair_open(&p, PLAIN);
	fake_fail(FAKE_POST, 1, FI_EACCES);
	pair_write(&p, 0, 100);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "nothing was done"), 5204);
	want_none(&p.a);
	pair_close(&p);
}
END_TEST

START_TEST(credentials_of_one_thread_end_its_operation_but_not_the_endpoint)
{
	pair_open(&p, PLAIN);
	warm_up();
	fake_fail(FAKE_POST, 1, FI_EACCES);
	write_that_is_not_run(1000);
	want_denied(pair_ctx(&p, 1000));
	/* What is queued until then ends with it. */
	want_soon(!node_state(&p.a, p.to).connection);
	/* Such as another thread's. */
	pair_write(&p, 2000, 100);
	want_ok(&p.a, pair_ctx(&p, 2000));
	ck_assert(!memcmp(p.dst + 2000, p.src + 2000, 100));
	ck_assert(!node_agent(&p.a)->denied);
	pair_close(&p);
}
END_TEST

START_TEST(connecting_after_a_change_of_credentials_fails_at_once)
{
	int64_t begin;

	pair_open(&p, PLAIN);
	begin = mrf_now_ms();
	if (_i)
		fake_stop(node_agent(&p.b)->cm, NULL, true);
	else
		deny(&p.a);
	pair_write(&p, 0, 100);
	if (_i) {
		/* The request is on its way, and now the answer. */
		want_soon(fake_live_of(FAKE_CREATE_QP) == 1);
		deny(&p.a);
		fake_stop(node_agent(&p.b)->cm, NULL, false);
	}
	want_denied(pair_ctx(&p, 0));
	/* FI_MRFAB_CONN_TIMEOUT is 15000. */
	ck_assert_int_lt(mrf_now_ms() - begin, 3000);
	pair_write(&p, 100, 100);
	want_denied(pair_ctx(&p, 100));
	pair_close(&p);
}
END_TEST

/* Whichever step of it is denied. */
START_TEST(connecting_says_that_credentials_have_changed)
{
	static const enum fake_call steps[] = { FAKE_VCONN_OPEN, FAKE_CREATE_QP, FAKE_ROUTE,
						FAKE_CONNECT, FAKE_ESTABLISH };

	pair_open(&p, PLAIN);
	fake_fail(steps[_i], 1, FI_EACCES);
	pair_write(&p, 0, 100);
	want_denied(pair_ctx(&p, 0));
	/* It was only that thread, and only for a moment. */
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(agent_that_is_denied_rests)
{
	unsigned asked;

	pair_open(&p, PLAIN);
	warm_up();
	be_denied();
	asked = fake_cm_asked(node_agent(&p.a)->cm);
	usleep(50000);
	ck_assert_uint_eq(fake_cm_asked(node_agent(&p.a)->cm), asked);
	pair_close(&p);
}
END_TEST

START_TEST(regions_go_on_and_new_domains_work)
{
	static struct unit_capture cap;
	struct fid_ep *ep = NULL;
	struct fid_mr *mr;
	const char *said;
	struct pair own;

	fixture_log();
	unit_capture(&cap);
	pair_open(&p, PLAIN);
	warm_up();
	be_denied();
	mr = node_reg(&p.a, p.src, PAIR_LEN, REMOTE_RW, 99);
	must_close(&mr->fid);
	ck_assert_int_eq(node_try_ep(&p.a, PLAIN, &ep), -FI_EACCES);
	pair_open(&own, PLAIN);
	pair_write(&own, 0, 100);
	want_ok(&own.a, pair_ctx(&own, 0));
	pair_close(&own);
	pair_close(&p);
	said = unit_captured(&cap);
	/* Of the operation, of the agent, of the endpoint. */
	ck_assert_uint_eq(unit_lines(said), 3);
	ck_assert(strstr(said, "MRF-E5203") && strstr(said, "MRF-W5205") &&
		  strstr(said, "MRF-E5204"));
}
END_TEST

/* --- the target ------------------------------------------------------------------- */

/* The peer of a process that is denied hears of it soon, whatever it waits for. */
static void fails_in_time(struct node *n, size_t at)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_data_entry entry;

	pair_write(&p, at, 100);
	ck_assert_int_eq(fi_cq_sread(n->cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(n->cq, &e, 0), 1);
	ck_assert_int_ne(e.err, 0);
}

START_TEST(target_that_cannot_answer_lets_its_peer_know)
{
	pair_open(&p, _i ? NULL : PLAIN);
	warm_up();
	deny(&p.b);
	/* A question about another key, or other bytes. */
	p.key++;
	fails_in_time(&p.a, 8000);
	p.key--;
	fails_in_time(&p.a, 8000);
	want_none(&p.a);
	ck_assert_uint_eq(fake_live_of(FAKE_CREATE_QP), 0);
	pair_close(&p);
}
END_TEST

START_TEST(target_that_cannot_take_a_connection_turns_it_away)
{
	pair_open(&p, PLAIN);
	deny(&p.b);
	fails_in_time(&p.a, 0);
	pair_close(&p);
}
END_TEST

/* The kernel takes nothing on the device, but rdma_cm works: as when it was opened later. */
START_TEST(target_whose_answers_are_not_taken_disconnects)
{
	pair_open(&p, PLAIN);
	warm_up();
	p.key++;
	/* The question, then the answer. */
	fake_fail(FAKE_POST, 2, FI_EACCES);
	pair_write(&p, 100, 100);
	want_err(&p.a, pair_ctx(&p, 100), FI_EKEYREJECTED, NULL);
	p.key--;
	ck_assert_uint_eq(fake_connects(), 2);
	ck_assert(!node_agent(&p.b)->denied);
	warm_up();
	pair_close(&p);
}
END_TEST

static TCase *tcase_initiator(void)
{
	TCase *tc = tcase_create("initiator");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, write_after_a_change_of_credentials_fails_and_says_so, 0, 2);
	tcase_add_test(tc, operations_in_flight_each_complete_once);
	tcase_add_test(tc, operation_of_several_pieces_fails_once);
	tcase_add_test(tc, nothing_more_is_posted_on_a_connection_that_was_denied);
	tcase_add_test(tc, question_that_is_not_taken_fails_what_waits_for_it);
	tcase_add_test(tc, credentials_of_one_thread_end_its_operation_but_not_the_endpoint);
	tcase_add_loop_test(tc, connecting_after_a_change_of_credentials_fails_at_once, 0, 2);
	tcase_add_loop_test(tc, connecting_says_that_credentials_have_changed, 0, 5);
	tcase_add_test(tc, agent_that_is_denied_rests);
	tcase_add_test(tc, regions_go_on_and_new_domains_work);
	return tc;
}

static TCase *tcase_target(void)
{
	TCase *tc = tcase_create("target");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, target_that_cannot_answer_lets_its_peer_know, 0, 2);
	tcase_add_test(tc, target_that_cannot_take_a_connection_turns_it_away);
	tcase_add_test(tc, target_whose_answers_are_not_taken_disconnects);
	return tc;
}

UNIT_MAIN("denied", tcase_initiator, tcase_target)
