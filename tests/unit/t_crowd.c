/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many lines of one endpoint, to it and from it, on the fake fabric: the queue on which all that
 * they carry completes is short at first, and grows with them. None of them is dropped for another
 * once messages have come over it.
 */
#include "ep_fixture.h"
#include "ep/msg/inbox.h"

#define CROWD 40
/* As many as may be on the way behind the first one. */
#define EACH (MRF_WINDOW_FIRST - 1)
#define LEN 16u

static struct node a, b;
static struct fid_ep *crowd[CROWD]; /* of a */
static fi_addr_t to, from[CROWD];
static uint8_t *out, *in;

static void setup(void)
{
	struct sockaddr_in addr;

	fixture_setup();
	node_open(&a, NULL);
	node_open(&b, NULL);
	to = node_insert(&a, &b);
	for (int i = 0; i < CROWD; i++) {
		size_t len = sizeof(addr);

		ck_assert_int_eq(node_try_ep(&a, &(struct node_opt){ 0 }, &crowd[i]), 0);
		ck_assert_int_eq(fi_getname(&crowd[i]->fid, &addr, &len), 0);
		from[i] = node_insert_port(&b, ntohs(addr.sin_port));
	}
	out = pages(LEN);
	in = pages(LEN);
	fill(out, LEN, 5);
	memset(in, 0, LEN);
}

static void teardown(void)
{
	for (int i = 0; i < CROWD; i++)
		must_close(&crowd[i]->fid);
	node_close(&a);
	node_close(&b);
	fixture_teardown();
}

/* Of b: how long the queue is, and how much may be in it. */
static unsigned depth(size_t *room)
{
	struct mrf_ep *ep = node_ep(&b);
	unsigned most;

	mrf_lock_take(&ep->lock);
	most = ep->inbox->places + ep->inbox->slots.count;
	*room = fake_depth(ep->inbox->vcq);
	mrf_lock_release(&ep->lock);
	return most;
}

static void queue_fits(void)
{
	size_t room;
	unsigned most = depth(&room);

	ck_assert_uint_ge(room, most);
	ck_assert_uint_lt(room, 2 * most + MRF_INBOX_CQ_FIRST);
}

static void send_by(struct fid_ep *ep, fi_addr_t dest)
{
	ck_assert_int_eq(fi_send(ep, out, LEN, NULL, dest, out), 0);
}

static void all_send(unsigned each)
{
	for (unsigned i = 0; i < each * CROWD; i++)
		send_by(crowd[i % CROWD], to);
	for (unsigned i = 0; i < each * CROWD; i++)
		want_ok(&a, out);
}

static void receive_all(unsigned each)
{
	for (unsigned i = 0; i < each * CROWD; i++) {
		memset(in, 0, LEN);
		ck_assert_int_eq(fi_recv(b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
		want_ok(&b, in);
		ck_assert(filled(in, LEN, 5));
	}
}

static void stop_queue(bool stop)
{
	fake_stop(NULL, node_ep(&b)->inbox->vcq, stop);
}

START_TEST(one_line_has_a_short_queue)
{
	size_t room;

	send_by(a.ep, to);
	want_ok(&a, out);
	ck_assert_uint_le(depth(&room), MRF_INBOX_CQ_FIRST);
	ck_assert_uint_eq(room, MRF_INBOX_CQ_FIRST);
	ck_assert_uint_eq(fake_calls(FAKE_VCQ_GROW), 0);
}
END_TEST

/* All that may come comes while nobody looks; that nothing overflows, the fixture sees to. */
START_TEST(the_queue_has_room_for_all_that_peers_may_send)
{
	all_send(1);
	receive_all(1);
	queue_fits();
	stop_queue(true);
	all_send(EACH);
	stop_queue(false);
	receive_all(EACH);
	queue_fits();
}
END_TEST

/* What has completed is in the queue when it is made longer. */
START_TEST(a_queue_that_is_not_empty_grows)
{
	send_by(crowd[0], to);
	want_ok(&a, out);
	stop_queue(true);
	all_send(1);
	queue_fits();
	stop_queue(false);
	for (int i = 0; i <= CROWD; i++) {
		ck_assert_int_eq(fi_recv(b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
		want_ok(&b, in);
	}
}
END_TEST

START_TEST(the_queue_has_room_for_all_that_comes_back)
{
	for (int i = 0; i < CROWD; i++)
		send_by(b.ep, from[i]);
	for (int i = 0; i < CROWD; i++)
		want_ok(&b, out);
	queue_fits();
	for (int i = 0; i < CROWD; i++) {
		ck_assert_int_eq(fi_recv(crowd[i], in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
		want_ok(&a, in);
	}
}
END_TEST

/* There is no memory for a longer one, at first: who needs it tries again. */
START_TEST(a_queue_that_cannot_grow_costs_no_message)
{
	fake_fail(FAKE_VCQ_GROW, 1 + (unsigned)_i, FI_ENOMEM);
	all_send(2);
	ck_assert(fake_failed());
	receive_all(2);
	queue_fits();
}
END_TEST

static void lose_confirmations(void)
{
	fake_freeze(true);
	fake.loses_confirmations = true;
	fake_freeze(false);
}

/*
 * More than may be half open, from one address: those give way to others after a while over which
 * nothing has come, and these are as good as confirmed.
 */
START_TEST(a_line_that_has_carried_a_message_is_not_half_open)
{
	lose_confirmations();
	all_send(1);
	receive_all(1);
	usleep((MRF_HALF_GRACE_MS + 100) * 1000);
	send_by(a.ep, to);
	want_ok(&a, out);
	ck_assert_uint_eq(node_lines(&b), CROWD + 1);
	all_send(1);
	ck_assert_uint_eq(fake_connects(), CROWD + 1);
}
END_TEST

static TCase *tcase_crowd(void)
{
	TCase *tc = tcase_create("crowd");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, one_line_has_a_short_queue);
	tcase_add_test(tc, the_queue_has_room_for_all_that_peers_may_send);
	tcase_add_test(tc, a_queue_that_is_not_empty_grows);
	tcase_add_test(tc, the_queue_has_room_for_all_that_comes_back);
	tcase_add_test(tc, a_line_that_has_carried_a_message_is_not_half_open);
	tcase_add_loop_test(tc, a_queue_that_cannot_grow_costs_no_message, 0, 3);
	return tc;
}

UNIT_MAIN("crowd", tcase_crowd)
