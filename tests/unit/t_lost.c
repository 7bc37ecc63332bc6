/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots that are lost with a line, as on Linux 6.12, on the fake fabric: when they are posted again,
 * and when they must not be.
 */
#include <stdatomic.h>
#include <string.h>
#include "contract/budget.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"

#define LEN 1000u /* more than goes inline: such a message may break off */
#define SLOTS MRF_SLOTS_CHUNK

static struct node a, b, c;
static fi_addr_t a_to, c_to;
static uint8_t *out, *in;

static void setup(void)
{
	fixture_setup();
	fake.loses_recvs = true;
	node_open(&a, NULL);
	node_open(&b, NULL);
	node_open(&c, NULL);
	a_to = node_insert(&a, &b);
	c_to = node_insert(&c, &b);
	out = pages(LEN);
	in = pages(LEN);
	fill(out, LEN, 5);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	if (c.fabric)
		node_close(&c);
	fixture_teardown();
}

static void send_from(struct node *n, fi_addr_t to)
{
	ck_assert_int_eq(fi_send(n->ep, out, LEN, NULL, to, out), 0);
}

static void recv_one(void)
{
	memset(in, 0, LEN);
	ck_assert_int_eq(fi_recv(b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
}

/* It arrives whole. */
static void pass(struct node *n, fi_addr_t to)
{
	recv_one();
	send_from(n, to);
	want_ok(n, out);
	want_ok(&b, in);
	ck_assert(filled(in, LEN, 5));
}

static void pass_some(struct node *n, fi_addr_t to, unsigned count)
{
	while (count--)
		pass(n, to);
}

/* It takes a slot with it, and its line. */
static void break_off(struct node *n, fi_addr_t to)
{
	unsigned before = node_lines(&b);

	fake_break_send(1);
	send_from(n, to);
	want_err(n, out, FI_EFAULT, NULL);
	want_soon(node_lines(&b) < before);
}

static unsigned missing(void)
{
	struct mrf_ep *ep = node_ep(&b);
	unsigned count;

	mrf_lock_take(&ep->lock);
	count = ep->inbox->slots.count;
	mrf_lock_release(&ep->lock);
	ck_assert_uint_eq(count, SLOTS);
	return count - fake_shared_recvs();
}

/* The last one is not known to be taken when its line ends; all others are posted again. */
START_TEST(slots_are_posted_again_when_their_lines_are_gone)
{
	unsigned i;

	for (i = 0; i < 3 * SLOTS; i++) {
		pass(&a, a_to);
		break_off(&a, a_to);
		ck_assert_uint_eq(missing(), 1);
	}
	pass(&a, a_to);
}
END_TEST

/* c's line is there all the time, and half of a message may have come over it. */
static void lose_some(unsigned n)
{
	unsigned i;

	pass(&c, c_to);
	pass(&a, a_to);
	for (i = 0; i < n; i++) {
		break_off(&a, a_to);
		pass_some(&a, a_to, 10);
		ck_assert_uint_eq(missing(), i + 1);
	}
}

START_TEST(a_slot_that_a_line_may_hold_is_posted_when_the_line_has_spoken)
{
	lose_some(3);
	pass(&c, c_to);
	/* Whoever is told of messages looks. */
	pass_some(&a, a_to, 8);
	ck_assert_uint_eq(missing(), 0);
}
END_TEST

START_TEST(a_slot_that_a_line_may_hold_is_posted_when_the_line_has_ended)
{
	lose_some(3);
	node_close(&c);
	memset(&c, 0, sizeof(c));
	want_soon(!missing());
	pass_some(&a, a_to, 2 * SLOTS);
}
END_TEST

static atomic_bool keeps; /* the fabric keeps messages of few bytes */

/* For fake.on_send. */
static enum fake_fate keep_short(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	return atomic_load(&keeps) && !from_target && *len < 64 ? FAKE_KEEP : FAKE_DELIVER;
}

static unsigned unheard(void)
{
	struct mrf_ep *ep = node_ep(&b);
	unsigned n = 0;

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->inbox->inlets)
		n += !mrf_list_entry(node, struct mrf_inlet, node)->heard;
	mrf_lock_release(&ep->lock);
	return n;
}

/* Nothing comes over it, but what was taken before it was there it cannot hold. */
START_TEST(a_new_line_holds_up_nothing_older)
{
	fake.on_send = keep_short;
	atomic_store(&keeps, true);
	pass(&a, a_to);
	break_off(&a, a_to);
	pass(&a, a_to);
	ck_assert_int_eq(fi_inject(c.ep, out, 8, c_to), 0);
	want_soon(unheard() == 1);
	break_off(&a, a_to);
	ck_assert_uint_eq(missing(), 1);
	/* But what is taken now it may hold. */
	pass(&a, a_to);
	break_off(&a, a_to);
	ck_assert_uint_eq(missing(), 2);
	ck_assert_uint_eq(unheard(), 1);
	recv_one();
	fake_deliver();
	want_ok(&b, in);
	pass_some(&a, a_to, 8);
	ck_assert_uint_eq(missing(), 0);
}
END_TEST

static atomic_bool no_room; /* for messages that nobody has received yet */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	if (atomic_load(&no_room) && size == sizeof(struct mrf_message) + LEN)
		return NULL;
	return __real_malloc(size);
}

static void send_unexpected(struct node *n, fi_addr_t to, unsigned count)
{
	for (; count; count--) {
		send_from(n, to);
		want_ok(n, out);
	}
}

/* It has come back, whatever has come after it. */
START_TEST(a_slot_that_a_message_stays_in_is_left_alone)
{
	unsigned i;

	out[0] ^= 1;
	atomic_store(&no_room, true);
	send_unexpected(&c, c_to, 1);
	want_soon(missing() == 1);
	node_heard(&b);
	want_none(&b);
	atomic_store(&no_room, false);
	out[0] ^= 1;
	send_unexpected(&a, a_to, 1);
	send_unexpected(&c, c_to, 1);
	break_off(&a, a_to);
	send_unexpected(&a, a_to, 2 * SLOTS);
	recv_one();
	want_ok(&b, in);
	in[0] ^= 1;
	ck_assert(filled(in, LEN, 5));
	for (i = 0; i < 2 * SLOTS + 2; i++) {
		recv_one();
		want_ok(&b, in);
		ck_assert(filled(in, LEN, 5));
	}
}
END_TEST

START_TEST(each_line_that_may_hold_a_slot_has_to_speak)
{
	struct node d;
	fi_addr_t d_to;

	node_open(&d, NULL);
	d_to = node_insert(&d, &b);
	pass(&d, d_to);
	lose_some(2);
	pass(&d, d_to);
	pass_some(&a, a_to, 8);
	ck_assert_uint_eq(missing(), 2);
	pass(&c, c_to);
	pass_some(&a, a_to, 8);
	ck_assert_uint_eq(missing(), 0);
	node_close(&d);
}
END_TEST

/* Silent lines do not cost the endpoint its slots, and messages lose nothing by that. */
START_TEST(silent_lines_are_closed_when_many_slots_wait)
{
	int64_t begun = mrf_now_ms();
	unsigned i;

	lose_some(SLOTS / 4 - 1);
	for (i = 0; i < 3; i++) {
		break_off(&a, a_to);
		pass(&a, a_to);
	}
	/* Not before it is silent for a second. */
	ck_assert(node_lines(&b) == 2 || mrf_now_ms() - begun >= MRF_SILENT_MS);
	for (i = 0; i < 2 * SLOTS && node_lines(&b) == 2; i++) {
		usleep(100000);
		break_off(&a, a_to);
		pass(&a, a_to);
	}
	want_soon(node_lines(&b) == 1);
	want_soon(missing() <= 1);
	ck_assert_uint_lt(i, 2 * SLOTS / 3);
	pass(&c, c_to);
	ck_assert_uint_eq(node_lines(&b), 2);
}
END_TEST

/* Nothing comes in between, so no number tells that their slots are lost. */
static void lose_all(unsigned others)
{
	unsigned i;

	for (i = 0; i < SLOTS && fake_shared_recvs(); i++) {
		fake_break_send(1);
		send_from(&a, a_to);
		want_err(&a, out, FI_EFAULT, NULL);
		want_soon(node_lines(&b) <= others);
	}
}

/* The last line has ended: the queue is replaced. */
START_TEST(all_slots_may_be_lost)
{
	unsigned round;

	for (round = 0; round < 3; round++) {
		pass(&a, a_to);
		lose_all(0);
		pass_some(&a, a_to, 2 * SLOTS);
		ck_assert_uint_eq(missing(), 0);
	}
}
END_TEST

/* Another line is silent, since nothing can come over it. It is closed, without losing anything. */
START_TEST(all_slots_may_be_lost_while_another_line_waits)
{
	pass(&c, c_to);
	lose_all(1);
	recv_one();
	send_from(&c, c_to);
	want_ok(&c, out);
	want_ok(&b, in);
	ck_assert(filled(in, LEN, 5));
	pass_some(&a, a_to, 2 * SLOTS);
	pass_some(&c, c_to, 2 * SLOTS);
	ck_assert_uint_eq(missing(), 0);
}
END_TEST

/* Nobody else tells that a silent line is in the way: no other line ends. */
START_TEST(a_silent_line_is_closed_after_a_while)
{
	lose_some(SLOTS / 4 + 1);
	ck_assert_uint_eq(node_lines(&b), 2);
	want_soon(node_lines(&b) == 1);
	want_soon(!missing());
	pass(&c, c_to);
}
END_TEST

/* Its target answers each message, so it has no notes to send. */
START_TEST(slots_are_posted_again_where_messages_go_both_ways)
{
	fi_addr_t to_c = node_insert(&b, &c);
	unsigned i;

	lose_some(3);
	for (i = 0; i < 4; i++) {
		pass(&c, c_to);
		ck_assert_int_eq(fi_recv(c.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
		ck_assert_int_eq(fi_send(b.ep, out, LEN, NULL, to_c, out), 0);
		want_ok(&b, out);
		want_ok(&c, in);
	}
	/* Now c has slots, too. */
	ck_assert_int_eq((int)missing(), -(int)SLOTS);
}
END_TEST

static TCase *tcase_lost(void)
{
	TCase *tc = tcase_create("lost");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, slots_are_posted_again_when_their_lines_are_gone);
	tcase_add_test(tc, all_slots_may_be_lost);
	tcase_add_test(tc, all_slots_may_be_lost_while_another_line_waits);
	tcase_add_test(tc, a_silent_line_is_closed_after_a_while);
	tcase_add_test(tc, slots_are_posted_again_where_messages_go_both_ways);
	tcase_add_test(tc, a_slot_that_a_line_may_hold_is_posted_when_the_line_has_spoken);
	tcase_add_test(tc, a_slot_that_a_line_may_hold_is_posted_when_the_line_has_ended);
	tcase_add_test(tc, a_new_line_holds_up_nothing_older);
	tcase_add_test(tc, a_slot_that_a_message_stays_in_is_left_alone);
	tcase_add_test(tc, each_line_that_may_hold_a_slot_has_to_speak);
	tcase_add_test(tc, silent_lines_are_closed_when_many_slots_wait);
	return tc;
}

UNIT_MAIN("lost", tcase_lost)
