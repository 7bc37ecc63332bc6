/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages on the fake fabric when an end comes and goes: receivers and senders that close and open
 * again, addresses that are removed, other lines that end; and what a line must not be touched by.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include "contract/budget.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"
#include "ep/msg/lines.h"

#define N 64u
#define LEN 8u

static struct node a, b;
static fi_addr_t to;
static uint8_t *out, *in; /* N messages of LEN bytes; each address is a context */
static uint16_t port;	  /* b's */

static void nodes_open(const struct node_opt *opt)
{
	node_open(&a, opt);
	node_open(&b, opt);
	port = node_port(&b);
	to = node_insert(&a, &b);
	out = pages(N * LEN);
	in = pages(N * LEN);
	fill(out, N * LEN, 3);
	memset(in, 0, N * LEN);
}

static void nodes_close(void)
{
	node_close(&a);
	node_close(&b);
}

static void send_from(struct node *n, unsigned i, fi_addr_t where)
{
	ck_assert_int_eq(fi_send(n->ep, out + i * LEN, LEN, NULL, where, out + i * LEN), 0);
}

static void send_some(unsigned from, unsigned end)
{
	for (; from < end; from++)
		send_from(&a, from, to);
}

static void recv_at(struct fid_ep *ep, unsigned i)
{
	ck_assert_int_eq(fi_recv(ep, in + i * LEN, LEN, NULL, FI_ADDR_UNSPEC, in + i * LEN), 0);
}

static void want_sent(unsigned from, unsigned end)
{
	for (; from < end; from++)
		want_ok(&a, out + from * LEN);
}

/* The message in the ith receive is number `number`. */
static void want_got(unsigned i, unsigned number)
{
	want_ok(&b, in + i * LEN);
	ck_assert(!memcmp(in + i * LEN, out + number * LEN, LEN));
}

/* There is a line, over which message 0 has come. */
static void begin(const struct node_opt *opt)
{
	nodes_open(opt);
	recv_at(b.ep, 0);
	send_some(0, 1);
	want_got(0, 0);
	want_sent(0, 1);
}

/* --- receivers ---------------------------------------------------------------------------- */

/* What was posted is in doubt, whether or not it came; what was not goes to the new one. */
START_TEST(what_was_never_posted_goes_to_the_receiver_that_comes_next)
{
	struct node_opt opt = { 0 };
	unsigned i, n = 12;

	begin(&opt);
	fake_hold_all(true);
	send_some(1, n);
	ck_assert_uint_eq(fake_queued(), MRF_WINDOW_FIRST - 1);
	if (_i)
		fake_run_unacknowledged();
	fake_stop(node_agent(&a)->cm, NULL, true);
	node_close(&b);
	opt.port = port;
	node_open(&b, &opt);
	fake_hold_all(false);
	fake_stop(node_agent(&a)->cm, NULL, false);
	for (i = 1; i < MRF_WINDOW_FIRST; i++)
		want_err(&a, out + i * LEN, FI_ECONNRESET, "may or may not have come");
	want_sent(i, n);
	for (; i < n; i++) {
		recv_at(b.ep, i);
		want_got(i, i);
	}
	want_none(&a);
	recv_at(b.ep, 0);
	want_none(&b);
	nodes_close();
}
END_TEST

static bool has_line(const struct node *n, fi_addr_t dest)
{
	struct mrf_ep *ep = node_ep(n);
	bool has;

	mrf_lock_take(&ep->lock);
	has = ep->peers[MRF_CONN_LINE].of[dest]->conn;
	mrf_lock_release(&ep->lock);
	return has;
}

START_TEST(a_receiver_that_is_gone_refuses_what_comes)
{
	begin(NULL);
	node_close(&b);
	/* What is posted before that is heard may have come. */
	want_soon(!has_line(&a, to));
	send_some(1, 3);
	want_err(&a, out + LEN, FI_ECONNREFUSED, "listens");
	want_err(&a, out + 2 * LEN, FI_ECONNREFUSED, "listens");
	want_idle(&a);
	node_close(&a);
}
END_TEST

static unsigned lines_to(struct fid_ep *fid)
{
	struct mrf_ep *ep = mrf_container_of(fid, struct mrf_ep, fid);
	unsigned n = 0;

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->inbox->inlets)
		n++;
	mrf_lock_release(&ep->lock);
	return n;
}

static fi_addr_t insert_ep(struct node *from, struct fid_ep *ep)
{
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	ck_assert_int_eq(fi_getname(&ep->fid, &addr, &len), 0);
	return node_insert_port(from, ntohs(addr.sin_port));
}

/* Each has its own messages and lines, and the break of a line is one of its endpoint alone. */
START_TEST(endpoints_of_a_domain_receive_apart)
{
	struct fid_ep *second;
	fi_addr_t there;
	unsigned i;

	nodes_open(NULL);
	ck_assert_int_eq(node_try_ep(&b, &(struct node_opt){ 0 }, &second), 0);
	there = insert_ep(&a, second);
	for (i = 0; i < 8; i++) {
		fake_break_frame(1 + i % 2, 1, MRF_WC_FLUSHED, i % 4 < 2);
		send_from(&a, i, i % 2 ? there : to);
	}
	want_soon((fi_cq_read(a.cq, NULL, 0), node_idle(&a)));
	fake_heal();
	for (i = 0; i < 8; i += 2) {
		recv_at(second, i + 1);
		want_got(i + 1, i + 1);
		recv_at(b.ep, i);
		want_got(i, i);
	}
	ck_assert_uint_eq(lines_to(b.ep), 1);
	ck_assert_uint_eq(lines_to(second), 1);
	must_close(&second->fid);
	send_from(&a, 8, to);
	recv_at(b.ep, 8);
	want_got(8, 8);
	nodes_close();
}
END_TEST

/* The message that the fabric holds. */
static struct mrf_op *held_op(struct mrf_ep *ep)
{
	struct mrf_conn *conn = ep->peers[MRF_CONN_LINE].of[to]->conn;

	return conn->ring[(conn->tail - 1) % MRF_CONN_RING].op;
}

/* The welcome says whether it came the last time, so its sender need not be in doubt. */
START_TEST(a_message_that_is_always_flushed_ends_as_the_receiver_says)
{
	struct mrf_ep *ep;
	bool came = _i;

	begin(NULL);
	ep = node_ep(&a);
	fake_hold_all(true);
	send_some(1, 3);
	mrf_lock_take(&ep->lock);
	held_op(ep)->broken.timeouts = MRF_TIMEOUTS;
	mrf_lock_release(&ep->lock);
	fake_break_frame(2, 1, MRF_WC_FLUSHED, came);
	fake_hold_all(false);
	want_sent(1, 2);
	if (came)
		want_sent(2, 3);
	else
		ck_assert_int_eq(want_err(&a, out + 2 * LEN, FI_ECONNRESET, "has not come"), 4116);
	send_some(3, 4);
	want_sent(3, 4);
	recv_at(b.ep, 1);
	want_got(1, 1);
	if (came) {
		recv_at(b.ep, 2);
		want_got(2, 2);
	}
	recv_at(b.ep, 3);
	want_got(3, 3);
	nodes_close();
}
END_TEST

/* --- senders ------------------------------------------------------------------------------ */

/* What it had sent before stays, and comes first. */
START_TEST(a_sender_that_comes_again_begins_anew)
{
	unsigned i;

	nodes_open(NULL);
	send_some(0, 3);
	want_sent(0, 3);
	node_close(&a);
	want_soon(!lines_to(b.ep));
	node_open(&a, &(struct node_opt){ 0 });
	to = node_insert(&a, &b);
	send_some(3, 6);
	want_sent(3, 6);
	for (i = 0; i < 6; i++) {
		recv_at(b.ep, i);
		want_got(i, i);
	}
	ck_assert_uint_eq(node_ep(&b)->inbox->norigins, 2);
	nodes_close();
}
END_TEST

/* What was sent to the address that is gone ends; what is sent then has a line of its own. */
START_TEST(an_address_is_removed_and_inserted_again)
{
	unsigned i, n = 12;

	begin(NULL);
	fake_hold_all(true);
	send_some(1, n);
	ck_assert_int_eq(fi_av_remove(a.av, &to, 1, 0), 0);
	to = node_insert(&a, &b);
	if (_i)
		fake_break_frame(3, 1, MRF_WC_FLUSHED, _i == 2);
	fake_hold_all(false);
	want_sent(1, n);
	for (i = 1; i < n; i++) {
		recv_at(b.ep, i);
		want_got(i, i);
	}
	send_some(n, n + 1);
	want_sent(n, n + 1);
	recv_at(b.ep, n);
	want_got(n, n);
	want_soon(lines_to(b.ep) == 1);
	ck_assert_uint_eq(node_ep(&b)->inbox->norigins, 2);
	nodes_close();
}
END_TEST

/* --- what a line must not be touched by ------------------------------------------------------ */

/* Other memory comes to where the region is, whose pins are dropped. */
static void change_memory(struct fid_mr *mr, void *at)
{
	ck_assert_ptr_eq(mmap(at, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 at);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
}

/* Peers that access regions are told what has ended; a line has no keys. */
START_TEST(memory_that_changes_is_nothing_to_a_line)
{
	struct unit_capture cap;
	struct fid_mr *mr;
	unsigned connects;
	void *dst = pages(PAGE);

	fixture_log();
	begin(&(struct node_opt){ .mr_mode = FI_MR_MMU_NOTIFY });
	mr = node_reg(&b, dst, PAGE, REMOTE_RW, 7);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	ck_assert_int_eq(fi_write(a.ep, out, LEN, NULL, to, 0, 7, out), 0);
	want_sent(0, 1);
	connects = fake_connects();
	unit_capture(&cap);
	change_memory(mr, dst);
	node_heard(&b);
	recv_at(b.ep, 1);
	send_some(1, 2);
	want_got(1, 1);
	want_sent(1, 2);
	unit_captured(&cap);
	ck_assert_str_eq(cap.text, "");
	ck_assert_uint_eq(fake_connects(), connects);
	must_close(&mr->fid);
	nodes_close();
}
END_TEST

static bool hidden; /* what has come to b */

/* For fake.is_late. */
static bool is_hidden(const struct mrf_vcq *cq)
{
	return hidden && cq == node_ep(&b)->inbox->vcq;
}

void __real_mrf_inlet_end(struct mrf_inlet *inlet);
void __wrap_mrf_inlet_end(struct mrf_inlet *inlet);

/* Nobody has looked before the line ends. */
void __wrap_mrf_inlet_end(struct mrf_inlet *inlet)
{
	if (hidden) {
		fake_freeze(true);
		hidden = false;
		fake_freeze(false);
	}
	__real_mrf_inlet_end(inlet);
}

#define OTHERS 9u /* of MRF_WINDOW_FIRST messages each: more than one look takes in */

/* Its last messages are behind those of many others. */
START_TEST(what_came_before_a_line_ended_is_taken_in)
{
	static struct node others[OTHERS];
	unsigned i, j;

	begin(NULL);
	for (i = 0; i < OTHERS; i++) {
		node_open(&others[i], NULL);
		node_insert(&others[i], &b);
	}
	fake_freeze(true);
	hidden = true;
	fake.is_late = is_hidden;
	fake_freeze(false);
	for (i = 0; i < OTHERS; i++) {
		for (j = 0; j < MRF_WINDOW_FIRST; j++)
			send_from(&others[i], 0, 0);
		for (j = 0; j < MRF_WINDOW_FIRST; j++)
			want_ok(&others[i], out);
	}
	send_some(1, 2);
	want_sent(1, 2);
	node_close(&a);
	want_soon(lines_to(b.ep) == OTHERS);
	for (i = 0; i < OTHERS * MRF_WINDOW_FIRST; i++) {
		recv_at(b.ep, 1);
		want_got(1, 0);
	}
	recv_at(b.ep, 1);
	want_got(1, 1);
	for (i = 0; i < OTHERS; i++)
		node_close(&others[i]);
	node_close(&b);
}
END_TEST

static TCase *tcase_again(void)
{
	TCase *tc = tcase_create("again");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, what_was_never_posted_goes_to_the_receiver_that_comes_next, 0, 2);
	tcase_add_test(tc, a_receiver_that_is_gone_refuses_what_comes);
	tcase_add_loop_test(tc, a_message_that_is_always_flushed_ends_as_the_receiver_says, 0, 2);
	tcase_add_test(tc, endpoints_of_a_domain_receive_apart);
	tcase_add_test(tc, a_sender_that_comes_again_begins_anew);
	tcase_add_loop_test(tc, an_address_is_removed_and_inserted_again, 0, 3);
	tcase_add_test(tc, memory_that_changes_is_nothing_to_a_line);
	tcase_add_test(tc, what_came_before_a_line_ended_is_taken_in);
	return tc;
}

UNIT_MAIN("messages again", tcase_again)
