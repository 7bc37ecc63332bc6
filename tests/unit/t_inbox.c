/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the lines to an endpoint may send, on the fake fabric, when its slots are too few for all of
 * them: busy lines share them, silent ones give theirs up, and what was allowed before is accepted.
 */
#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_tagged.h>
#include "base/param.h"
#include "proto/frame.h"
#include "contract/budget.h"
#include "ep_fixture.h"
#include "ep/model/peer.h"
#include "ep/msg/inbox.h"
#include "ep/msg/silent.h"

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

/* So that nobody else does so within the next second. */
static void look_who_is_silent(void)
{
	int64_t end = mrf_now_ms() + MRF_SILENT_MS + 20;
	struct mrf_ep *ep = node_ep(&b);

	while (mrf_now_ms() < end) {
		mrf_lock_take(&ep->lock);
		mrf_silent_look_locked(ep->inbox);
		mrf_lock_release(&ep->lock);
		usleep(1000);
	}
}

/* Others look for other reasons, such as slots that are lost. */
START_TEST(a_silent_line_gives_its_window_up_whoever_has_looked)
{
	unsigned i;

	use_all_slots(&a, a_to);
	for (i = 0; i < 4; i++) {
		look_who_is_silent();
		burst(&c, c_to);
	}
	want_soon(window_of(&a) == FIRST);
	ck_assert_uint_gt(window_of(&c), FIRST);
}
END_TEST

static struct mrf_inlet *any_inlet_locked(void)
{
	return mrf_list_entry(mrf_list_first(&node_ep(&b)->inbox->inlets), struct mrf_inlet, node);
}

/* Whether any is, after so long that it would be if it could be; *was: whether it was confirmed. */
static bool becomes_silent(bool confirmed, bool *was)
{
	struct mrf_ep *ep = node_ep(&b);
	bool silent;
	int i;

	mrf_lock_take(&ep->lock);
	*was = any_inlet_locked()->confirmed;
	any_inlet_locked()->confirmed = confirmed;
	mrf_lock_release(&ep->lock);
	for (i = 0; i < 3; i++)
		look_who_is_silent();
	mrf_lock_take(&ep->lock);
	silent = mrf_silent(any_inlet_locked());
	mrf_lock_release(&ep->lock);
	return silent;
}

/* Silent lines may be closed; that one's initiator would take it for the end of the endpoint. */
START_TEST(a_line_that_is_being_made_is_not_silent)
{
	bool was;

	burst(&a, a_to);
	node_heard(&b);
	ck_assert(!becomes_silent(false, &was));
	ck_assert(was);
	ck_assert(becomes_silent(true, &was));
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
	size_t head = fake.imm ? 0 : MRF_FRAME_MESSAGE_LEN;

	return atomic_load(&keeps) && !from_target && *len < head + LEN ? FAKE_KEEP : FAKE_DELIVER;
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

/* --- messages that nobody has received ------------------------------------------------------- */

#define KEPT 1000u
#define ROOM (256u << 10)

static void setup_flood(void)
{
	fixture_unexpected("256");
	setup();
	out = pages(KEPT);
	in = pages(KEPT);
	fill(out, KEPT, 5);
}

static void teardown_flood(void)
{
	fixture_unexpected(NULL);
	teardown();
}

/* Until it has to wait: how many. */
static unsigned flood(struct node *n, fi_addr_t to)
{
	struct fi_cq_data_entry entry;
	unsigned sent = 0;

	send_some(n, to, KEPT, 2 * ROOM / KEPT);
	while (fi_cq_sread(n->cq, &entry, 1, NULL, 200) == 1)
		sent++;
	ck_assert_uint_lt(sent, 2 * ROOM / KEPT);
	return sent;
}

/* Bytes of messages. */
static unsigned size_of(unsigned count)
{
	return count * KEPT;
}

static void receive_some(unsigned count)
{
	while (count--) {
		ck_assert_int_eq(fi_recv(b.ep, in, KEPT, NULL, FI_ADDR_UNSPEC, in), 0);
		ck_assert_uint_eq(want_ok(&b, in).len, KEPT);
	}
}

/* Not only offers? */
static bool sends_bytes(struct node *n, fi_addr_t to)
{
	struct mrf_ep *ep = node_ep(n);
	bool sends;

	mrf_lock_take(&ep->lock);
	sends = ep->peers[MRF_CONN_LINE].of[to]->line.eager > MRF_SEND_FEW;
	mrf_lock_release(&ep->lock);
	return sends;
}

START_TEST(who_floods_an_endpoint_does_not_stop_others)
{
	unsigned sent = flood(&a, a_to), others;

	ck_assert_uint_ge(size_of(sent), ROOM / 4);
	ck_assert_uint_lt(size_of(sent), ROOM / 4 + size_of(SLOTS));
	others = flood(&c, c_to);
	ck_assert_uint_ge(size_of(others), (ROOM - size_of(sent)) / 4);
	ck_assert_uint_lt(size_of(others), (ROOM - size_of(sent)) / 4 + size_of(SLOTS));
	/* The first one's are received, and nothing of the second's: its share grows. */
	ck_assert(!sends_bytes(&c, c_to));
	receive_some(sent);
	want_soon((fi_cq_read(c.cq, NULL, 0), sends_bytes(&c, c_to)));
	send_some(&c, c_to, KEPT, 1);
	want_sent(&c, 1);
	/* Nothing has been lost. */
	receive_some(4 * ROOM / KEPT + 1 - sent);
	want_sent(&a, 2 * ROOM / KEPT - sent);
	want_sent(&c, 2 * ROOM / KEPT - others);
}
END_TEST

/* Bytes of a message. Fewer go with their frame even where there is no room. */
#define SHORT (MRF_SEND_FEW + 1)

static void tsend_some(struct node *n, fi_addr_t to, size_t len, uint64_t tag, unsigned count)
{
	while (count--)
		ck_assert_int_eq(fi_tsend(n->ep, out, len, NULL, to, tag, out), 0);
}

static void trecv_short(unsigned count)
{
	while (count--) {
		ck_assert_int_eq(fi_trecv(b.ep, in, KEPT, NULL, FI_ADDR_UNSPEC, 1, 0, in), 0);
		ck_assert_uint_eq(want_ok(&b, in).len, SHORT);
	}
}

static size_t kept(void)
{
	struct mrf_ep *ep = node_ep(&b);
	size_t bytes;

	mrf_lock_take(&ep->lock);
	bytes = ep->inbox->kept;
	mrf_lock_release(&ep->lock);
	return bytes;
}

/* c and d use so many bytes, each with its first window. */
static void fill_up(struct node *d, size_t bytes)
{
	size_t before = kept(), each = bytes / FIRST;
	fi_addr_t d_to;

	node_open(d, NULL);
	d_to = node_insert(d, &b);
	out = pages(MRF_LINE_DATA);
	tsend_some(&c, c_to, MRF_LINE_DATA, 2, FIRST);
	want_sent(&c, FIRST);
	tsend_some(d, d_to, each - MRF_LINE_DATA, 2, FIRST);
	want_sent(d, FIRST);
	want_soon(kept() == before + FIRST * each);
}

/* Next to no room is left by the others; what it has is too little to make room for these. */
START_TEST(who_has_nothing_left_there_goes_on)
{
	struct node d;

	fill_up(&d, ROOM - 11 * SHORT);
	tsend_some(&a, a_to, SHORT, 1, FIRST + 4);
	want_sent(&a, FIRST);
	want_none(&a);
	trecv_short(FIRST + 4);
	want_sent(&a, 4);
	node_close(&d);
}
END_TEST

/* One who has nothing there may send as soon as there is any room. */
START_TEST(who_has_nothing_there_goes_on)
{
	struct node d, e;

	tsend_some(&a, a_to, SHORT, 1, 1);
	want_sent(&a, 1);
	want_soon(kept() == SHORT);
	fill_up(&d, ROOM - SHORT / 2);
	node_open(&e, NULL);
	tsend_some(&e, node_insert(&e, &b), SHORT, 1, 1);
	want_none(&e);
	/* That is looked at whenever the queue is. */
	want_none(&b);
	trecv_short(2);
	want_sent(&e, 1);
	node_close(&d);
	node_close(&e);
}
END_TEST

static void trecv_any_length(uint64_t tag)
{
	ck_assert_int_eq(fi_trecv(b.ep, in, KEPT, NULL, FI_ADDR_UNSPEC, tag, 0, in), 0);
	want_ok(&b, in);
}

static bool is_full(void)
{
	struct mrf_ep *ep = node_ep(&b);
	bool full;

	mrf_lock_take(&ep->lock);
	full = !mrf_list_empty(&ep->inbox->full);
	mrf_lock_release(&ep->lock);
	return full;
}

/* a's messages that are not received have one byte more than its share, which c's make smaller. */
static void fill_share_of_a(size_t goal)
{
	size_t has = 0;

	while (has < goal) {
		size_t len = mrf_min(goal - has, KEPT);

		tsend_some(&a, a_to, len, 6, 1);
		want_sent(&a, 1);
		has += len;
		want_soon(kept() >= has);
	}
}

/*
 * c's messages are received, so there is room for a again, if only just; and that is all that ever
 * happens before a's next message comes.
 */
START_TEST(who_has_a_little_more_room_goes_on)
{
	unsigned n = 100, sent = 0;
	struct fi_cq_data_entry entry;

	tsend_some(&c, c_to, KEPT, 5, 2);
	want_sent(&c, 2);
	want_soon(kept() == size_of(2));
	fill_share_of_a((ROOM - size_of(2)) / 4 + 1);
	tsend_some(&a, a_to, SHORT, 7, n);
	for (; fi_cq_sread(a.cq, &entry, 1, NULL, 200) == 1; sent++)
		trecv_any_length(7);
	ck_assert_uint_lt(sent, n);
	ck_assert(is_full());
	trecv_any_length(5);
	trecv_any_length(5);
	for (; sent < n; sent++) {
		trecv_any_length(7);
		want_sent(&a, 1);
	}
}
END_TEST

#define BEFORE \
	2000u /* messages that are sent before one is received; many more than there is room for */

static const size_t backwards_len[] = { 0, MRF_SEND_FEW, 200, KEPT };

/* The last one first: the bytes of most wait at their sender, those that were injected, too. */
START_TEST(any_order_is_possible_although_there_is_no_room)
{
	size_t len = backwards_len[_i];
	unsigned i, n = BEFORE;

	for (i = 0; i < n; i++) {
		if (len <= 200 && i % 2)
			ck_assert_int_eq(fi_tinject(a.ep, out, len, a_to, i), 0);
		else
			tsend_some(&a, a_to, len, i, 1);
	}
	want_soon((fi_cq_read(b.cq, NULL, 0), kept() >= len * FIRST));
	while (i--) {
		memset(in, 0, KEPT);
		ck_assert_int_eq(fi_trecv(b.ep, in, KEPT, NULL, FI_ADDR_UNSPEC, i, 0, in), 0);
		ck_assert_uint_eq(want_ok(&b, in).len, len);
		ck_assert_int_eq(memcmp(in, out, len), 0);
		ck_assert_uint_le(kept(), ROOM / 4 + MRF_WINDOW_MAX * KEPT);
	}
	want_sent(&a, len <= 200 ? n / 2 : n);
	want_none(&a);
	ck_assert_uint_eq(kept(), 0);
}
END_TEST

static TCase *tcase_inbox(void)
{
	TCase *tc = tcase_create("inbox");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, busy_lines_share_the_slots);
	tcase_add_test(tc, a_silent_line_gives_its_window_up);
	tcase_add_test(tc, a_silent_line_gives_its_window_up_whoever_has_looked);
	tcase_add_test(tc, a_line_that_is_being_made_is_not_silent);
	tcase_add_test(tc, silent_lines_take_no_slots_from_others);
	tcase_add_test(tc, what_was_allowed_before_is_accepted);
	return tc;
}

static TCase *tcase_kept(void)
{
	TCase *tc = tcase_create("kept");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup_flood, teardown_flood);
	tcase_add_test(tc, who_floods_an_endpoint_does_not_stop_others);
	tcase_add_test(tc, who_has_nothing_left_there_goes_on);
	tcase_add_test(tc, who_has_nothing_there_goes_on);
	tcase_add_test(tc, who_has_a_little_more_room_goes_on);
	tcase_add_loop_test(tc, any_order_is_possible_although_there_is_no_room, 0,
			    MRF_ARRAY_SIZE(backwards_len));
	return tc;
}

UNIT_MAIN("inbox", tcase_inbox, tcase_kept)
