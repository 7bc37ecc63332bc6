/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages both ways on the fake fabric: each line's frames say what was taken of the other one. */
#include <string.h>
#include "contract/budget.h"
#include "heads.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"
#include "proto/frame.h"

#define LEN 8u

static struct node a, b;
static fi_addr_t to_b, to_a;
static uint8_t *buf; /* the first half is sent, the second received */

/* Guarded by the fabric: what was sent. */
static unsigned notes, counts;
static bool spoil_ticket;

static enum fake_fate look(uint8_t *msg, size_t *len, bool from_target)
{
	struct mrf_frame_message frame;

	if (from_target) {
		notes += mrf_frame_type(msg, *len) == MRF_FRAME_NOTE;
		return FAKE_DELIVER;
	}
	if (!(flags_of_message(msg, *len) & MRF_FRAME_TAKEN))
		return FAKE_DELIVER;
	counts++;
	if (spoil_ticket && !fake.imm && !mrf_frame_message_decode(msg, *len, &frame))
		msg[frame.data - msg - 1] ^= 1;
	return FAKE_DELIVER;
}

static void nodes_open(void)
{
	node_open(&a, NULL);
	node_open(&b, NULL);
	to_b = node_insert(&a, &b);
	to_a = node_insert(&b, &a);
	buf = pages(2 * LEN);
	memset(buf, 7, 2 * LEN);
	notes = counts = 0;
	spoil_ticket = false;
	fake.on_send = look;
}

static void nodes_close(void)
{
	node_close(&a);
	node_close(&b);
}

static void send_one(struct node *from, fi_addr_t to)
{
	ck_assert_int_eq(fi_send(from->ep, buf, LEN, NULL, to, buf), 0);
}

static void recv_one(struct node *at)
{
	ck_assert_int_eq(fi_recv(at->ep, buf + LEN, LEN, NULL, FI_ADDR_UNSPEC, buf + LEN), 0);
}

static void want_sent(struct node *from)
{
	want_ok(from, buf);
}

static void want_got(struct node *at)
{
	want_ok(at, buf + LEN);
}

/* Nothing is said of lines before. */
static bool established(const struct node *at)
{
	struct mrf_ep *ep = node_ep(at);
	bool all = true;

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->inbox->inlets)
		all = all && mrf_list_entry(node, struct mrf_inlet, node)->vconn;
	mrf_lock_release(&ep->lock);
	return all;
}

static void pass(struct node *from, fi_addr_t to, struct node *at)
{
	recv_one(at);
	send_one(from, to);
	want_sent(from);
	want_got(at);
	want_soon(established(at));
}

/* What b knows of its line to a. */
static struct mrf_outlet outlet_of_b(void)
{
	struct mrf_ep *ep = node_ep(&b);
	struct mrf_outlet outlet;

	mrf_lock_take(&ep->lock);
	outlet = ep->peers[MRF_CONN_LINE].of[to_a]->line;
	mrf_lock_release(&ep->lock);
	return outlet;
}

START_TEST(messages_both_ways_need_no_notes)
{
	unsigned i, n = 10 * MRF_WINDOW_FIRST;

	nodes_open();
	for (i = 0; i < n; i++) {
		pass(&a, to_b, &b);
		pass(&b, to_a, &a);
	}
	ck_assert_uint_eq(notes, 0);
	/* All but the first have something to say. */
	ck_assert_uint_eq(counts, 2 * n - 1);
	ck_assert_uint_eq(outlet_of_b().taken, n - 1);
	nodes_close();
}
END_TEST

/* Who answers each third message has less to say, but in time. */
START_TEST(an_answer_to_some_messages_is_enough)
{
	unsigned i;

	nodes_open();
	for (i = 0; i < 30; i++) {
		pass(&b, to_a, &a);
		if (i % 3 == 2)
			pass(&a, to_b, &b);
	}
	ck_assert_uint_eq(notes, 0);
	nodes_close();
}
END_TEST

START_TEST(notes_go_on_where_nothing_goes_back)
{
	unsigned i;

	nodes_open();
	pass(&a, to_b, &b);
	for (i = 0; i < 10 * MRF_WINDOW_FIRST; i++)
		pass(&b, to_a, &a);
	ck_assert_uint_gt(notes, 0);
	/* b's first frame alone has something to say. */
	ck_assert_uint_eq(counts, 1);
	nodes_close();
}
END_TEST

/* What was said by frames that are lost is said again: b must not wait for ever. */
START_TEST(a_lost_frame_has_said_nothing)
{
	unsigned i;

	nodes_open();
	pass(&a, to_b, &b);
	for (i = 0; i < MRF_WINDOW_FIRST / 2; i++) {
		pass(&b, to_a, &a);
		pass(&b, to_a, &a);
		fake_break_frame(1, 1, MRF_WC_OTHER, false);
		pass(&a, to_b, &b);
	}
	for (i = 0; i < 2 * MRF_WINDOW_FIRST; i++)
		pass(&b, to_a, &a);
	nodes_close();
}
END_TEST

/* A third endpoint may claim any address, but does not know the ticket. */
START_TEST(a_count_with_another_ticket_is_not_taken)
{
	unsigned i;

	nodes_open();
	spoil_ticket = true;
	for (i = 0; i < 3; i++) {
		pass(&b, to_a, &a);
		pass(&a, to_b, &b);
	}
	/* Three of a, and two of b. */
	ck_assert_uint_eq(counts, 5);
	ck_assert_uint_eq(outlet_of_b().taken, 0);
	ck_assert_uint_eq(outlet_of_b().posted, 3);
	nodes_close();
}
END_TEST

/* As if b knew a by another of its host's addresses: it does not find the two lines. */
static void part_at_b(void)
{
	struct mrf_ep *ep = node_ep(&b);
	struct mrf_outlet *outlet;

	mrf_lock_take(&ep->lock);
	outlet = &ep->peers[MRF_CONN_LINE].of[to_a]->line;
	outlet->reverse->reverse = NULL;
	outlet->reverse = NULL;
	mrf_lock_release(&ep->lock);
}

START_TEST(the_ticket_shows_whose_line_it_is)
{
	unsigned i;

	nodes_open();
	pass(&a, to_b, &b);
	pass(&b, to_a, &a);
	part_at_b();
	for (i = 0; i < 3 * MRF_WINDOW_FIRST; i++) {
		pass(&a, to_b, &b);
		pass(&b, to_a, &a);
	}
	ck_assert_uint_eq(notes, 0);
	ck_assert_ptr_nonnull(outlet_of_b().reverse);
	nodes_close();
}
END_TEST

/* Either end may go and come again, or be removed, while the other one knows it. */
START_TEST(lines_forget_each_other)
{
	unsigned i;

	nodes_open();
	for (i = 0; i < 3; i++) {
		pass(&b, to_a, &a);
		pass(&a, to_b, &b);
		ck_assert_int_eq(fi_av_remove(b.av, &to_a, 1, 0), 0);
		pass(&a, to_b, &b);
		to_a = node_insert(&b, &a);
		pass(&b, to_a, &a);
		pass(&a, to_b, &b);
		ck_assert_ptr_nonnull(outlet_of_b().reverse);
		node_close(&a);
		want_soon(!outlet_of_b().reverse);
		node_open(&a, NULL);
		to_b = node_insert(&a, &b);
		ck_assert_int_eq(fi_av_remove(b.av, &to_a, 1, 0), 0);
		to_a = node_insert(&b, &a);
	}
	nodes_close();
}
END_TEST

static TCase *tcase_reverse(void)
{
	TCase *tc = tcase_create("reverse");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_test(tc, messages_both_ways_need_no_notes);
	tcase_add_test(tc, an_answer_to_some_messages_is_enough);
	tcase_add_test(tc, notes_go_on_where_nothing_goes_back);
	tcase_add_test(tc, a_lost_frame_has_said_nothing);
	tcase_add_test(tc, a_count_with_another_ticket_is_not_taken);
	tcase_add_test(tc, the_ticket_shows_whose_line_it_is);
	tcase_add_test(tc, lines_forget_each_other);
	return tc;
}

UNIT_MAIN("reverse lines", tcase_reverse)
