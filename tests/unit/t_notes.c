/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes at awkward moments, on the fake fabric: while a line is being made, when they cannot be sent,
 * and when messages of the line before are not copied yet. No sender may wait for ever. And lines that
 * their target ends, which fails nothing.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "contract/budget.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"
#include "loop/agent_calls.h"

#define LEN 1000u
#define KIB 64u		     /* FI_MRFAB_UNEXPECTED */
#define N (KIB * 1024 / LEN) /* more than a sender's share of that */

static struct node a, b;
static fi_addr_t to_b, to_a;
static uint8_t *out, *in;
static struct fid_mr *in_mr; /* pinned, so that what comes is copied at once */

/* --- moments --------------------------------------------------------------------------------- */

static atomic_bool no_room; /* for messages that nobody receives */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	if (atomic_load(&no_room) && size == sizeof(struct mrf_message) + LEN)
		return NULL;
	return __real_malloc(size);
}

/* Called once each, by the agents' threads; NULL again when that is over. */
static void (*_Atomic when_established)(void);
static void (*_Atomic before_accept)(void);

static void call_once(void (*_Atomic *what)(void))
{
	void (*call)(void) = atomic_load(what);

	if (call)
		call();
	atomic_store(what, NULL);
}

int __real_mrf_vconn_establish(struct mrf_vconn *conn);
int __wrap_mrf_vconn_establish(struct mrf_vconn *conn);

int __wrap_mrf_vconn_establish(struct mrf_vconn *conn)
{
	int ret = __real_mrf_vconn_establish(conn);

	call_once(&when_established);
	return ret;
}

int __real_mrf_vconn_accept(struct mrf_vconn *conn, const void *data, size_t len);
int __wrap_mrf_vconn_accept(struct mrf_vconn *conn, const void *data, size_t len);

int __wrap_mrf_vconn_accept(struct mrf_vconn *conn, const void *data, size_t len)
{
	call_once(&before_accept);
	return __real_mrf_vconn_accept(conn, data, len);
}

/* --- the two ends ----------------------------------------------------------------------------- */

static void setup(void)
{
	fixture_setup();
	fixture_unexpected("64");
	fixture_log();
	node_open(&a, NULL);
	node_open(&b, PLAIN);
	to_b = node_insert(&a, &b);
	to_a = node_insert(&b, &a);
	out = pages(LEN);
	in = pages(LEN);
	fill(out, LEN, 5);
	in_mr = node_reg(&b, in, LEN, FI_RECV, 9);
}

static void teardown(void)
{
	must_close(&in_mr->fid);
	node_close(&a);
	node_close(&b);
	fixture_unexpected(NULL);
	fixture_teardown();
}

/* Takes in what has come, and reads nothing. */
static void poll_at(struct node *n)
{
	fi_cq_read(n->cq, NULL, 0);
}

static void send_some(unsigned n)
{
	while (n--)
		ck_assert_int_eq(fi_send(a.ep, out, LEN, NULL, to_b, out), 0);
}

static void post_recv(void)
{
	ck_assert_int_eq(fi_recv(b.ep, in, LEN, fi_mr_desc(in_mr), FI_ADDR_UNSPEC, in), 0);
}

static void receive_some(unsigned n)
{
	while (n--) {
		post_recv();
		ck_assert_uint_eq(want_ok(&b, in).len, LEN);
	}
}

/* Sends so many that b gives no window any more; how many have been sent. */
static unsigned flood(unsigned n)
{
	struct fi_cq_data_entry entry;
	unsigned sent = 0;

	send_some(n);
	while (fi_cq_sread(a.cq, &entry, 1, NULL, 300) == 1)
		sent++;
	ck_assert_uint_lt(sent, n);
	return sent;
}

/* As one that is silent while others need what it may hold. */
static void close_lines_to_b(void)
{
	struct mrf_ep *ep = node_ep(&b);

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->inbox->inlets)
		mrf_list_entry(node, struct mrf_inlet, node)->closing = true;
	mrf_agent_kick(ep->agent, &ep->inbox->kick);
	mrf_lock_release(&ep->lock);
}

/* All that was begun ends, and comes. */
static void want_rest(unsigned sent, unsigned received, unsigned n)
{
	for (; received < n; received++) {
		receive_some(1);
		for (poll_at(&a); mrf_cq_unread(node_ep(&a)->tx_cq); poll_at(&a)) {
			want_ok(&a, out);
			sent++;
		}
	}
	for (; sent < n; sent++)
		want_ok(&a, out);
	want_none(&b);
}

/* --- tests ------------------------------------------------------------------------------------ */

#define RECEIVED 20u

/* By another thread, as this one is an agent. */
static void *receive_twenty(void *arg)
{
	receive_some(RECEIVED);
	poll_at(&b);
	return arg;
}

static void receive_meanwhile(void)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, receive_twenty, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* b's note is there, and an application thread of a takes it in. */
static void receive_and_poll_meanwhile(void)
{
	receive_meanwhile();
	usleep(20000);
	poll_at(&a);
}

/* The welcome gives no window, and the note that gives one comes before the initiator is ready. */
START_TEST(a_note_may_come_while_the_line_is_being_made)
{
	unsigned n = 2 * N, sent = flood(n);

	atomic_store(&when_established, receive_and_poll_meanwhile);
	close_lines_to_b();
	want_soon(!atomic_load(&when_established) && fake_connects() == 2);
	want_rest(sent, RECEIVED, n);
}
END_TEST

/* The welcome is written, and then there is room: nothing can be sent before it is on its way. */
START_TEST(a_note_waits_until_its_line_is_accepted)
{
	unsigned n = 2 * N, sent = flood(n);

	atomic_store(&before_accept, receive_meanwhile);
	close_lines_to_b();
	want_soon(!atomic_load(&before_accept) && fake_connects() == 2);
	want_rest(sent, RECEIVED, n);
	ck_assert_uint_eq(fake_connects(), 2);
}
END_TEST

/* The device, or the kernel, refuses the one note of a whole window. */
static const int errors[] = { FI_EACCES, FI_EINVAL, FI_EAGAIN };

START_TEST(a_note_that_cannot_be_sent_is_made_up_by_a_welcome)
{
	unsigned n = MRF_WINDOW_FIRST + 12, i;

	send_some(1);
	want_ok(&a, out);
	receive_some(1);
	for (i = 0; i < n; i++)
		post_recv();
	fake_hold_frames(true);
	send_some(n);
	fake_fail(FAKE_POST, 1, errors[_i]);
	fake_hold_frames(false);
	for (i = 0; i < n; i++)
		want_ok(&b, in);
	for (i = 0; i < n; i++)
		want_ok(&a, out);
	ck_assert(fake_failed());
}
END_TEST

static void pass_back(void)
{
	ck_assert_int_eq(fi_recv(a.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_send(b.ep, out, LEN, NULL, to_a, out), 0);
	want_ok(&b, out);
	want_ok(&a, in);
}

/*
 * The welcome says that all have come. Three of them are in their slots still when a note has to be
 * sent for another reason: it must not say less.
 */
START_TEST(a_note_takes_back_nothing_that_the_welcome_said)
{
	unsigned connects, i;

	send_some(1);
	want_ok(&a, out);
	receive_some(1);
	pass_back();
	atomic_store(&no_room, true);
	send_some(3);
	for (i = 0; i < 3; i++)
		want_ok(&a, out);
	poll_at(&b);
	atomic_store(&no_room, false);
	close_lines_to_b();
	want_soon(!node_lines(&b));
	send_some(1);
	want_ok(&a, out);
	connects = fake_connects();
	/* Frames of b's line may have said what was taken: a note says it again. */
	fake_break_frame(1, 1, MRF_WC_OTHER, false);
	pass_back();
	want_none(&b);
	send_some(1);
	want_ok(&a, out);
	ck_assert_uint_eq(fake_connects(), connects + 1);
	receive_some(5);
}
END_TEST

/* --- lines that their target ends ------------------------------------------------------------- */

/* Its sender waits for a window all the time: nothing is lost, however often that happens. */
START_TEST(a_line_that_is_closed_now_and_then_fails_nothing)
{
	unsigned n = 2 * N, sent = flood(n), i;

	for (i = 0; i < MRF_LOSSES + 1; i++) {
		usleep((MRF_SILENT_MS + 50) * 1000);
		close_lines_to_b();
		want_soon(fake_connects() == 2 + i);
	}
	want_rest(sent, 0, n);
}
END_TEST

/* A message is in flight each time. */
START_TEST(a_message_survives_lines_that_are_closed)
{
	unsigned i;

	send_some(1);
	want_ok(&a, out);
	receive_some(1);
	fake_hold_frames(true);
	send_some(1);
	for (i = 0; i < MRF_LOSSES - 1; i++) {
		want_soon(node_lines(&b) == 1 && fake_queued() == 1);
		close_lines_to_b();
		want_soon(fake_connects() == 2 + i);
	}
	fake_hold_frames(false);
	want_ok(&a, out);
	receive_some(1);
	want_none(&b);
}
END_TEST

static TCase *tcase_notes(void)
{
	TCase *tc = tcase_create("notes");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_note_may_come_while_the_line_is_being_made);
	tcase_add_test(tc, a_note_waits_until_its_line_is_accepted);
	tcase_add_loop_test(tc, a_note_that_cannot_be_sent_is_made_up_by_a_welcome, 0,
			    MRF_ARRAY_SIZE(errors));
	tcase_add_test(tc, a_note_takes_back_nothing_that_the_welcome_said);
	tcase_add_test(tc, a_line_that_is_closed_now_and_then_fails_nothing);
	tcase_add_test(tc, a_message_survives_lines_that_are_closed);
	return tc;
}

UNIT_MAIN("notes", tcase_notes)
