/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device tells of itself: what it means for connections, and what people are told. */
#include "ep_fixture.h"

static struct pair p;
static struct unit_capture cap;

static void setup(void)
{
	fixture_setup();
	fixture_log();
	pair_open(&p, PLAIN);
}

static void teardown(void)
{
	pair_close(&p);
	fixture_teardown();
}

static void works(void)
{
	memset(p.dst, 0, 100);
	pair_write(&p, 0, 100);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert(filled(p.dst, 100, 1));
}

static void tell(const struct node *n, enum mrf_vdev_event_type type, struct mrf_vcq *cq,
		 void *owner)
{
	fake_tell(node_agent(n)->cq,
		  (struct mrf_vdev_event){ .type = type, .cq = cq, .owner = owner });
}

static void want_line(const char *code)
{
	const char *text = unit_captured(&cap);

	ck_assert_msg(strstr(text, code) && unit_lines(text) == 1, "%s", text);
}

/* At the initiator and at the target, in the agent's queue and in the endpoint's own. */
START_TEST(connections_whose_queue_lost_completions_are_made_anew)
{
	struct node *n = _i == 1 ? &p.b : &p.a;

	works();
	ck_assert_uint_eq(fake_connects(), 1);
	unit_capture(&cap);
	tell(n, MRF_VDEV_CQ_ERR, _i == 2 ? node_ep(n)->scq : node_agent(n)->cq, NULL);
	want_soon(!node_state(&p.a, p.to).connection);
	want_line("4027");
	works();
	ck_assert_uint_eq(fake_connects(), 2);
}
END_TEST

START_TEST(an_unknown_queue_in_error_ends_no_connection)
{
	works();
	unit_capture(&cap);
	tell(&p.a, MRF_VDEV_CQ_ERR, NULL, NULL);
	node_heard(&p.a);
	want_line("4027");
	works();
	ck_assert_uint_eq(fake_connects(), 1);
}
END_TEST

START_TEST(a_connection_whose_queue_pair_is_in_error_is_made_anew)
{
	struct mrf_ep *ep = node_ep(&p.a);
	struct mrf_owner *owner;

	works();
	mrf_lock_take(&ep->lock);
	owner = &ep->peers[MRF_CONN_ACCESS].of[p.to]->conn->owner;
	mrf_lock_release(&ep->lock);
	unit_capture(&cap);
	tell(&p.a, MRF_VDEV_QP_ERR, NULL, _i ? owner : NULL);
	node_heard(&p.a);
	if (_i)
		want_soon(!node_state(&p.a, p.to).connection);
	want_line("4028");
	works();
	ck_assert_uint_eq(fake_connects(), _i ? 2 : 1);
}
END_TEST

START_TEST(what_people_want_to_know_is_said)
{
	works();
	unit_capture(&cap);
	tell(&p.a, MRF_VDEV_OTHER, NULL, NULL);
	tell(&p.a, MRF_VDEV_PORT_DOWN, NULL, NULL);
	node_heard(&p.a);
	want_line("4029");
	works();
	ck_assert_uint_eq(fake_connects(), 1);
}
END_TEST

/* rdma_cm tells each id, verbs the context: it is said once. */
START_TEST(operations_after_the_device_was_removed_say_so)
{
	works();
	unit_capture(&cap);
	if (_i)
		tell(&p.a, MRF_VDEV_GONE, NULL, NULL);
	fake_remove(node_agent(&p.a)->cm);
	want_soon(!node_state(&p.a, p.to).connection);
	want_line("4026");
	pair_write(&p, 0, 100);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_ENODEV, "end the process"), 4132);
}
END_TEST

START_TEST(a_target_whose_device_was_removed_says_so)
{
	works();
	unit_capture(&cap);
	fake_remove(node_agent(&p.b)->cm);
	want_soon(node_agent(&p.b)->gone);
	/* Its agent closes it after it has said so. */
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	want_line("4026");
}
END_TEST

static TCase *tcase_device(void)
{
	TCase *tc = tcase_create("device");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, connections_whose_queue_lost_completions_are_made_anew, 0, 3);
	tcase_add_test(tc, an_unknown_queue_in_error_ends_no_connection);
	tcase_add_loop_test(tc, a_connection_whose_queue_pair_is_in_error_is_made_anew, 0, 2);
	tcase_add_test(tc, what_people_want_to_know_is_said);
	tcase_add_loop_test(tc, operations_after_the_device_was_removed_say_so, 0, 2);
	tcase_add_test(tc, a_target_whose_device_was_removed_says_so);
	return tc;
}

UNIT_MAIN("device", tcase_device)
