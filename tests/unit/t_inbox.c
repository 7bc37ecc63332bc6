/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the lines to an endpoint may send, on the fake fabric, when its slots are too few for all of
 * them: busy lines share them, silent ones give theirs up, and what was allowed before is accepted.
 */
#include <stdatomic.h>
#include <string.h>
#include "base/param.h"
#include "contract/budget.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"

#define LEN 16u
#define SLOTS MRF_SLOTS_CHUNK /* and there are no more */
#define FIRST MRF_WINDOW_FIRST
#define SILENT 5u
#define BURST (4 * MRF_WINDOW_MAX)

static struct node a, b, c;
static fi_addr_t a_to, c_to;
static uint8_t *out, *in;

static void setup(void)
{
	fixture_setup();
	ck_assert_int_eq(setenv("FI_MRFAB_RX_SLOTS", "32", 1), 0);
	mrf_env_reload();
	node_open(&a, NULL);
	node_open(&b, NULL);
	node_open(&c, NULL);
	a_to = node_insert(&a, &b);
	c_to = node_insert(&c, &b);
	out = pages(LEN);
	in = pages(LEN);
	fill(out, LEN, 5);
	memset(in, 0, LEN);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	node_close(&c);
	fixture_teardown();
	unsetenv("FI_MRFAB_RX_SLOTS");
	mrf_env_reload();
}

/* --- sending ------------------------------------------------------------------------------ */

static void send_some(struct node *n, fi_addr_t to, size_t len, unsigned count)
{
	while (count--)
		ck_assert_int_eq(fi_send(n->ep, out, len, NULL, to, out), 0);
}

static void want_sent(struct node *n, unsigned count)
{
	while (count--)
		want_ok(n, out);
}

static void receive(size_t len)
{
	memset(in, 0, LEN);
	ck_assert_int_eq(fi_recv(b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_uint_eq(want_ok(&b, in).len, len);
	ck_assert(filled(in, len, 5));
}

/* So many at a time that the window is used up. */
static void burst(struct node *n, fi_addr_t to)
{
	unsigned i;

	send_some(n, to, LEN, BURST);
	for (i = 0; i < BURST; i++)
		receive(LEN);
	want_sent(n, BURST);
}

/* --- windows ------------------------------------------------------------------------------ */

/* As the sender knows it; 0: it has no line. */
static unsigned window_of(const struct node *n)
{
	struct mrf_ep *ep = node_ep(n);
	unsigned window = 0;

	mrf_lock_take(&ep->lock);
	if (ep->peers[MRF_CONN_LINE].of[0]->conn)
		window = ep->peers[MRF_CONN_LINE].of[0]->line.window;
	mrf_lock_release(&ep->lock);
	return window;
}

/* The sum that the endpoint allows, of all lines; all: of those, too, that do not count. */
static unsigned sum_of(bool all)
{
	struct mrf_ep *ep = node_ep(&b);
	unsigned sum = 0;

	mrf_lock_take(&ep->lock);
	ck_assert_uint_eq(ep->inbox->slots.count, SLOTS);
	mrf_list_each (node, &ep->inbox->inlets) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		sum += all || inlet->counts ? inlet->origin->window : 0;
	}
	ck_assert(all || sum == ep->inbox->windows);
	mrf_lock_release(&ep->lock);
	return sum;
}

static void use_all_slots(struct node *n, fi_addr_t to)
{
	want_soon((burst(n, to), window_of(n) == SLOTS));
}

START_TEST(busy_lines_share_the_slots)
{
	use_all_slots(&a, a_to);
	want_soon((burst(&c, c_to), burst(&a, a_to),
		   window_of(&a) > FIRST && window_of(&c) > FIRST && sum_of(true) <= SLOTS));
	ck_assert_uint_le(sum_of(false), SLOTS);
	ck_assert_uint_eq(fake_connects(), 2);
}
END_TEST

/* It is told, although it does nothing. */
START_TEST(a_silent_line_gives_its_window_up)
{
	use_all_slots(&a, a_to);
	want_soon((burst(&c, c_to), window_of(&a) == FIRST && window_of(&c) > FIRST));
	ck_assert_uint_gt(sum_of(true), sum_of(false));
	use_all_slots(&c, c_to);
	ck_assert_uint_eq(sum_of(true), SLOTS + FIRST);
	/* It counts again as soon as it speaks. */
	burst(&a, a_to);
	ck_assert_uint_eq(sum_of(true), sum_of(false));
	ck_assert_uint_eq(fake_connects(), 2);
}
END_TEST

/* Otherwise many that have nothing to say would keep the windows of all others small. */
START_TEST(silent_lines_take_no_slots_from_others)
{
	struct node others[SILENT];
	unsigned i;

	for (i = 0; i < SILENT; i++) {
		node_open(&others[i], NULL);
		send_some(&others[i], node_insert(&others[i], &b), LEN, 1);
		want_sent(&others[i], 1);
		receive(LEN);
	}
	ck_assert_uint_gt(sum_of(false), SLOTS);
	use_all_slots(&a, a_to);
	for (i = 0; i < SILENT; i++)
		node_close(&others[i]);
}
END_TEST

static atomic_bool keeps; /* the fabric keeps messages of 8 bytes */

/* For fake.on_send. */
static enum fake_fate keep_short(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	return atomic_load(&keeps) && !from_target && *len < 24 + LEN ? FAKE_KEEP : FAKE_DELIVER;
}

/* The sender has sent them before it was told of its smaller window. */
START_TEST(what_was_allowed_before_is_accepted)
{
	unsigned i, n = 2 * SLOTS, sent = 0;
	struct fi_cq_data_entry entry;

	fake.on_send = keep_short;
	use_all_slots(&a, a_to);
	atomic_store(&keeps, true);
	send_some(&a, a_to, 8, n);
	while (fi_cq_sread(a.cq, &entry, 1, NULL, 200) == 1)
		sent++;
	ck_assert_uint_gt(sent, FIRST);
	want_soon((burst(&c, c_to), window_of(&a) == FIRST));
	atomic_store(&keeps, false);
	fake_deliver();
	for (i = 0; i < n; i++)
		receive(8);
	want_sent(&a, n - sent);
	ck_assert_uint_eq(fake_connects(), 2);
	burst(&a, a_to);
}
END_TEST

static TCase *tcase_inbox(void)
{
	TCase *tc = tcase_create("inbox");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, busy_lines_share_the_slots);
	tcase_add_test(tc, a_silent_line_gives_its_window_up);
	tcase_add_test(tc, silent_lines_take_no_slots_from_others);
	tcase_add_test(tc, what_was_allowed_before_is_accepted);
	return tc;
}

UNIT_MAIN("inbox", tcase_inbox)
