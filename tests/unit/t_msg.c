/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of fi_msg(3) between two endpoints on the fake fabric: what a receive gets, whichever
 * comes first; windows; lines that break; peers that break the protocol.
 */
#include <stdlib.h>
#include <string.h>
#include "contract/budget.h"
#include "heads.h"
#include "two_ends.h"
#include "proto/frame.h"

#define MAX 16384u
#define SEND_FLAGS (FI_MSG | FI_SEND)
#define RECV_FLAGS (FI_MSG | FI_RECV)

static fi_addr_t back;

static void nodes_open(const struct node_opt *opt)
{
	ends_open(opt, 64 * MAX);
	back = node_insert(&b, &a);
}

static void send_at(size_t at, size_t len)
{
	ck_assert_int_eq(fi_send(a.ep, out + at, len, desc_of(out_mr), to, out + at), 0);
}

static void recv_at(size_t at, size_t len)
{
	ck_assert_int_eq(fi_recv(b.ep, in + at, len, desc_of(in_mr), FI_ADDR_UNSPEC, in + at), 0);
}

static void want_sent(size_t at)
{
	struct fi_cq_data_entry entry = want_ok(&a, out + at);

	ck_assert_uint_eq(entry.flags, SEND_FLAGS);
}

static void want_got(size_t at, size_t len)
{
	struct fi_cq_data_entry entry = want_ok(&b, in + at);

	ck_assert_uint_eq(entry.flags, RECV_FLAGS);
	ck_assert_uint_eq(entry.len, len);
	ck_assert(!memcmp(in + at, out + at, len));
}

static struct mrf_inbox *inbox(const struct node *n)
{
	return node_ep(n)->inbox;
}

/* The sum of the windows of all lines to it; 0: there are none. */
static unsigned windows(const struct node *n)
{
	unsigned sum;

	mrf_lock_take(&node_ep(n)->lock);
	sum = inbox(n)->windows;
	mrf_lock_release(&node_ep(n)->lock);
	return sum;
}

/* --- what arrives ----------------------------------------------------------------------- */

static const size_t sizes[] = { 0, 1, 8, 104, 105, 256, 257, 4096, 4097, MAX };

START_TEST(a_receive_gets_what_was_sent)
{
	size_t i, at = 0;

	nodes_open(&(struct node_opt){ .mr_mode = modes[_i] });
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++, at += MAX) {
		recv_at(at, sizes[i]);
		send_at(at, sizes[i]);
		want_got(at, sizes[i]);
		want_sent(at);
	}
	ends_close();
}
END_TEST

START_TEST(a_message_waits_for_its_receive)
{
	size_t i, at = 0;

	nodes_open(&(struct node_opt){ .mr_mode = modes[_i] });
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++, at += MAX)
		send_at(at, sizes[i]);
	for (i = 0, at = 0; i < MRF_ARRAY_SIZE(sizes); i++, at += MAX)
		want_sent(at);
	for (i = 0, at = 0; i < MRF_ARRAY_SIZE(sizes); i++, at += MAX) {
		recv_at(at, sizes[i]);
		want_got(at, sizes[i]);
	}
	ck_assert_uint_eq(inbox(&b)->kept, 0);
	ends_close();
}
END_TEST

START_TEST(many_more_than_a_window_arrive_in_order)
{
	unsigned i, n = 1000, got = 0, sent = 0;
	struct fi_cq_data_entry entry;

	nodes_open(NULL);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(fi_recv(b.ep, in + 8 * i, 8, NULL, FI_ADDR_UNSPEC, in + 8 * i), 0);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(fi_send(a.ep, out + 8 * i, 8, NULL, to, out + 8 * i), 0);
	while (got < n || sent < n) {
		if (fi_cq_read(b.cq, &entry, 1) == 1)
			ck_assert_ptr_eq(entry.op_context, in + 8 * got++);
		if (fi_cq_read(a.cq, &entry, 1) == 1)
			ck_assert_ptr_eq(entry.op_context, out + 8 * sent++);
	}
	ck_assert(!memcmp(in, out, 8 * n));
	ends_close();
}
END_TEST

START_TEST(data_come_with_a_message)
{
	struct fi_cq_data_entry entry;

	nodes_open(NULL);
	recv_at(0, 8);
	recv_at(8, 8);
	ck_assert_int_eq(fi_senddata(a.ep, out, 8, NULL, 0x12345678, to, out), 0);
	ck_assert_int_eq(fi_injectdata(a.ep, out + 8, 8, 77, to), 0);
	entry = want_ok(&b, in);
	ck_assert_uint_eq(entry.flags, RECV_FLAGS | FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(entry.data, 0x12345678);
	entry = want_ok(&b, in + 8);
	ck_assert_uint_eq(entry.data, 77);
	ck_assert(!memcmp(in, out, 16));
	want_sent(0);
	want_none(&a);
	ends_close();
}
END_TEST

START_TEST(injected_bytes_may_change_at_once)
{
	uint8_t bytes[256];

	nodes_open(NULL);
	memcpy(bytes, out, sizeof(bytes));
	recv_at(0, 256);
	ck_assert_int_eq(fi_inject(a.ep, bytes, 256, to), 0);
	memset(bytes, 0, sizeof(bytes));
	want_got(0, 256);
	want_none(&a);
	ends_close();
}
END_TEST

/* Into as many, of other lengths. */
START_TEST(many_buffers_are_one_message)
{
	struct iovec from[128], into[128];
	void *from_desc[128], *into_desc[128];
	size_t i, at;

	nodes_open(&(struct node_opt){ .mr_mode = modes[_i] });
	for (i = 0, at = 0; i < 128; at += i++) {
		from[i] = (struct iovec){ out + at, i };
		from_desc[i] = desc_of(out_mr);
		into_desc[i] = desc_of(in_mr);
	}
	for (i = 0; i < 128; i++)
		into[i] = (struct iovec){ in + 64 * i, 64 };
	ck_assert_int_eq(fi_recvv(b.ep, into, into_desc, 128, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_sendv(a.ep, from, from_desc, 128, to, out), 0);
	want_got(0, at);
	want_sent(0);
	ends_close();
}
END_TEST

START_TEST(an_endpoint_sends_to_itself)
{
	fi_addr_t self;
	struct fi_cq_data_entry entry;
	uint8_t got[8];
	unsigned i;

	nodes_open(NULL);
	self = node_insert(&a, &a);
	ck_assert_int_eq(fi_recv(a.ep, got, 8, NULL, FI_ADDR_UNSPEC, got), 0);
	ck_assert_int_eq(fi_send(a.ep, out, 8, NULL, self, out), 0);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS), 1);
	ck_assert(!memcmp(got, out, 8));
	ends_close();
}
END_TEST

START_TEST(what_does_not_fit_is_cut)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_data_entry entry;

	nodes_open(NULL);
	recv_at(0, 5);
	send_at(0, 8);
	ck_assert_int_eq(fi_cq_sread(b.cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(b.cq, &e, 0), 1);
	ck_assert_int_eq(e.err, FI_ETRUNC);
	ck_assert_ptr_eq(e.op_context, in);
	ck_assert_uint_eq(e.len, 5);
	ck_assert_uint_eq(e.olen, 3);
	ck_assert(!memcmp(in, out, 5) && !in[5]);
	want_sent(0);
	ends_close();
}
END_TEST

START_TEST(a_receive_is_canceled_once)
{
	nodes_open(NULL);
	recv_at(0, 8);
	recv_at(8, 8);
	ck_assert_int_eq(fi_cancel(&b.ep->fid, in + 8), 0);
	want_err(&b, in + 8, FI_ECANCELED, "canceled");
	ck_assert_int_eq(fi_cancel(&b.ep->fid, in + 8), -FI_ENOENT);
	send_at(0, 8);
	want_got(0, 8);
	ck_assert_int_eq(fi_cancel(&b.ep->fid, in), -FI_ENOENT);
	ends_close();
}
END_TEST

START_TEST(a_closed_region_loses_its_message)
{
	nodes_open(&(struct node_opt){ .mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED });
	recv_at(0, 8);
	must_close(&in_mr->fid);
	in_mr = NULL;
	send_at(0, 8);
	want_err(&b, in, FI_ECANCELED, "region");
	ck_assert_uint_eq(in[0], 0);
	want_sent(0);
	ends_close();
}
END_TEST

/* Without FI_DIRECTED_RECV nobody looks at where a receive wants to receive from. */
START_TEST(a_receive_takes_messages_of_any_source)
{
	const fi_addr_t from[] = { back, back + 1000, 0, FI_ADDR_NOTAVAIL, FI_ADDR_UNSPEC };
	size_t i;

	nodes_open(NULL);
	for (i = 0; i < MRF_ARRAY_SIZE(from); i++) {
		ck_assert_int_eq(fi_recv(b.ep, in + 8 * i, 8, NULL, from[i], in + 8 * i), 0);
		send_at(8 * i, 8);
		want_got(8 * i, 8);
		want_sent(8 * i);
	}
	ends_close();
}
END_TEST

/* Of the length len, from out + at and into in + at. */
static struct fi_msg msg_at(const struct node *n, struct iovec *iov, size_t at, size_t len)
{
	*iov = (struct iovec){ (n == &a ? out : in) + at, len };
	return (struct fi_msg){ .msg_iov = iov,
				.iov_count = 1,
				.addr = n == &a ? to : FI_ADDR_UNSPEC,
				.context = iov->iov_base,
				.data = 99 };
}

START_TEST(flags_of_a_call_send_data_and_inject)
{
	struct fi_cq_data_entry entry;
	struct iovec iov;
	struct fi_msg msg;
	uint8_t bytes[8];

	nodes_open(NULL);
	recv_at(0, 8);
	recv_at(8, 8);
	msg = msg_at(&a, &iov, 0, 8);
	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_REMOTE_CQ_DATA), 0);
	entry = want_ok(&b, in);
	ck_assert_uint_eq(entry.flags, RECV_FLAGS | FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(entry.data, 99);
	want_sent(0);
	memcpy(bytes, out + 8, 8);
	msg = msg_at(&a, &iov, 8, 8);
	iov.iov_base = bytes;
	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_INJECT), 0);
	memset(bytes, 0, 8);
	want_got(8, 8);
	/* Unlike fi_inject, it completes. */
	want_sent(8);
	ends_close();
}
END_TEST

static const uint64_t levels[] = { 0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE };

/* Nobody has received the message yet. */
START_TEST(a_buffer_is_free_when_its_send_completes)
{
	struct iovec iov;
	struct fi_msg msg;

	nodes_open(NULL);
	msg = msg_at(&a, &iov, 0, 5000);
	memcpy(out + MAX, out, 5000);
	iov.iov_base = out + MAX;
	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, levels[_i]), 0);
	want_sent(0);
	memset(out + MAX, 0, 5000);
	recv_at(0, 5000);
	want_got(0, 5000);
	ends_close();
}
END_TEST

START_TEST(successes_are_reported_as_asked_for_and_failures_always)
{
	struct iovec iov;
	struct fi_msg msg;

	nodes_open(&(struct node_opt){ .selective = true });
	recv_at(0, 8);
	msg = msg_at(&b, &iov, 8, 8);
	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, FI_COMPLETION), 0);
	recv_at(16, 7);
	send_at(0, 8);
	msg = msg_at(&a, &iov, 8, 8);
	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_COMPLETION), 0);
	send_at(16, 8);
	/* The first and the last are silent. */
	want_sent(8);
	want_none(&a);
	want_got(8, 8);
	want_err(&b, in + 16, FI_ETRUNC, "room for 7");
	want_none(&b);
	ck_assert(!memcmp(in, out, 16));
	ends_close();
}
END_TEST

static struct fid_cntr *count(struct node *n, uint64_t what)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	ck_assert_int_eq(fi_cntr_open(n->domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(n->ep, &cntr->fid, what), 0);
	return cntr;
}

START_TEST(messages_are_counted_at_both_ends)
{
	struct fid_cntr *sent, *got;

	nodes_open(NULL);
	sent = count(&a, FI_SEND);
	got = count(&b, FI_RECV);
	recv_at(0, 8);
	recv_at(8, 8);
	recv_at(16, 7);
	send_at(0, 8);
	ck_assert_int_eq(fi_inject(a.ep, out + 8, 8, to), 0);
	send_at(16, 8);
	ck_assert_int_eq(fi_cntr_wait(sent, 3, LONG_MS), 0);
	want_got(0, 8);
	want_got(8, 8);
	want_err(&b, in + 16, FI_ETRUNC, NULL);
	ck_assert_uint_eq(fi_cntr_read(got), 2);
	ck_assert_uint_eq(fi_cntr_readerr(got), 1);
	ck_assert_uint_eq(fi_cntr_read(sent), 3);
	must_close(&a.ep->fid);
	must_close(&b.ep->fid);
	a.ep = b.ep = NULL;
	must_close(&sent->fid);
	must_close(&got->fid);
	ends_close();
}
END_TEST

START_TEST(a_full_queue_says_again)
{
	unsigned i, n = 0;

	nodes_open(NULL);
	recv_at(0, 8);
	send_at(0, 8);
	want_got(0, 8);
	want_sent(0);
	fake_hold_all(true);
	while (!fi_send(a.ep, out + 8 * n, 8, NULL, to, out + 8 * n))
		n++;
	ck_assert_uint_ge(n, 2048);
	ck_assert_int_eq(fi_send(a.ep, out, 8, NULL, to, NULL), -FI_EAGAIN);
	ck_assert_int_eq(fi_inject(a.ep, out, 8, to), -FI_EAGAIN);
	fake_hold_all(false);
	for (i = 0; i < n; i++)
		recv_at(8 * i, 8);
	for (i = 0; i < n; i++)
		want_sent(8 * i);
	for (i = 0; i < n; i++)
		want_got(8 * i, 8);
	ck_assert_int_eq(fi_inject(a.ep, out, 8, to), 0);
	ends_close();
}
END_TEST

/* --- who takes them in -------------------------------------------------------------------- */

START_TEST(a_sleeping_receiver_is_woken)
{
	struct fi_cq_data_entry entry;

	nodes_open(NULL);
	send_at(0, 8);
	recv_at(0, 8);
	want_got(0, 8);
	/* The line is there, and this thread sleeps before its message comes. */
	recv_at(8, 8);
	ck_assert_int_eq(fi_cq_sread(b.cq, &entry, 1, NULL, 1), -FI_EAGAIN);
	send_at(8, 8);
	want_got(8, 8);
	ends_close();
}
END_TEST

/* Nobody polls at the receiver: the window is given back all the same. */
START_TEST(the_agent_takes_in_where_nobody_polls)
{
	unsigned i, n = 500, sent = 0;
	struct fi_cq_data_entry entry;

	nodes_open(NULL);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(fi_send(a.ep, out + 8 * i, 8, NULL, to, out + 8 * i), 0);
	for (; sent < n; sent++)
		ck_assert_int_eq(fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS), 1);
	for (i = 0; i < n; i++)
		recv_at(8 * i, 8);
	for (i = 0; i < n; i++)
		want_got(8 * i, 8);
	ends_close();
}
END_TEST

/* Does the agent of n take messages in? */
static bool is_on_duty(const struct node *n)
{
	bool on;

	mrf_lock_take(&node_ep(n)->lock);
	on = inbox(n)->on_duty;
	mrf_lock_release(&node_ep(n)->lock);
	return on;
}

/*
 * The agent takes each message in before the application reads, which so finds a completion each
 * time and never has to poll.
 */
START_TEST(reading_ends_the_duty_of_the_agent)
{
	int64_t end = mrf_now_ms() + LONG_MS;
	struct fi_cq_data_entry entry;
	bool on;

	nodes_open(NULL);
	send_at(0, 8);
	recv_at(0, 8);
	want_got(0, 8);
	while (!is_on_duty(&b))
		;
	do {
		recv_at(8, 8);
		send_at(8, 8);
		while (!mrf_cq_unread(node_ep(&b)->rx_cq))
			;
		on = is_on_duty(&b);
		ck_assert_int_eq(fi_cq_read(b.cq, &entry, 1), 1);
		ck_assert_int_lt(mrf_now_ms(), end);
	} while (on);
	ends_close();
}
END_TEST

static struct mrf_inbox *_Atomic counted;
static atomic_uint told; /* how often its agent was told of messages while on duty */

void __real_mrf_duty_rests_locked(struct mrf_inbox *inbox);
void __wrap_mrf_duty_rests_locked(struct mrf_inbox *inbox);

void __wrap_mrf_duty_rests_locked(struct mrf_inbox *inbox)
{
	told += inbox == atomic_load(&counted) && inbox->on_duty;
	__real_mrf_duty_rests_locked(inbox);
}

/* Nobody polls b while many come one after the other. */
START_TEST(the_agent_is_not_told_of_each_message)
{
	int64_t begun;
	unsigned i, n = 500;

	nodes_open(NULL);
	for (i = 0; i < n + 1; i++)
		recv_at(8 * i, 8);
	send_at(0, 8);
	want_sent(0);
	while (!is_on_duty(&b))
		;
	begun = mrf_now_ms();
	atomic_store(&counted, inbox(&b));
	told = 0;
	for (i = 1; i < n + 1; i++) {
		send_at(8 * i, 8);
		want_sent(8 * i);
	}
	ck_assert_int_le(told, (mrf_now_ms() - begun) / MRF_REST_MS + 2);
	atomic_store(&counted, NULL);
	for (i = 0; i < n + 1; i++)
		want_got(8 * i, 8);
	ends_close();
}
END_TEST

/* The queue has something to read each time, from elsewhere: nobody polls, but who reads is there. */
START_TEST(a_queue_that_is_never_empty_keeps_no_message_out)
{
	int64_t end = mrf_now_ms() + LONG_MS;

	nodes_open(NULL);
	send_at(0, 8);
	recv_at(0, 8);
	want_got(0, 8);
	recv_at(8, 8);
	send_at(8, 8);
	while (!mrf_cq_unread(node_ep(&b)->rx_cq)) {
		struct fi_cq_err_entry err = { 0 };

		recv_at(16, 8);
		ck_assert_int_eq(fi_cancel(&b.ep->fid, in + 16), 0);
		/* The message may have come just before. */
		if (fi_cq_readerr(b.cq, &err, 0) != 1)
			break;
		ck_assert_int_lt(mrf_now_ms(), end);
	}
	want_got(8, 8);
	ends_close();
}
END_TEST

static size_t kept(const struct node *n)
{
	size_t bytes;

	mrf_lock_take(&node_ep(n)->lock);
	bytes = inbox(n)->kept;
	mrf_lock_release(&node_ep(n)->lock);
	return bytes;
}

/* A sender alone may use a quarter of the memory. What a window has allowed comes all the same. */
START_TEST(senders_wait_while_too_much_is_kept)
{
	size_t room = 16 << 10, len = 1000;
	struct fi_cq_data_entry entry;
	unsigned i, n = 1000, sent = 0;

	fixture_unexpected("64");
	nodes_open(NULL);
	for (i = 0; i < n; i++)
		send_at(len * i, len);
	while (fi_cq_sread(a.cq, &entry, 1, NULL, 200) == 1)
		sent++;
	ck_assert_uint_ge(kept(&b), room);
	ck_assert_uint_lt(kept(&b), room + MRF_WINDOW_MAX * len);
	ck_assert_uint_lt(sent, n);
	for (i = 0; i < n; i++) {
		recv_at(len * i, len);
		want_got(len * i, len);
	}
	for (; sent < n; sent++)
		ck_assert_int_eq(fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS), 1);
	ck_assert_uint_eq(kept(&b), 0);
	ends_close();
	fixture_unexpected(NULL);
}
END_TEST

static unsigned came(void)
{
	unsigned n;

	mrf_lock_take(&node_ep(&b)->lock);
	n = (unsigned)mrf_list_entry(mrf_list_first(&inbox(&b)->origins), struct mrf_origin, node)
		    ->next;
	mrf_lock_release(&node_ep(&b)->lock);
	return n;
}

/*
 * Four messages are told as taken while there is room. Four more, which are too much, come before
 * the note has completed: the sender is not told of them until some are received.
 */
START_TEST(a_sender_waits_while_too_much_is_unexpected)
{
	unsigned i, n = 20, window = MRF_WINDOW_FIRST;

	fixture_unexpected_count("5");
	nodes_open(NULL);
	fake_hold_all(true);
	for (i = 0; i < window / 2; i++)
		send_at(MAX * i, 8);
	want_soon(fake_queued() == window / 2);
	fake_run_unacknowledged();
	want_soon((fi_cq_read(b.cq, NULL, 0), fake_queued()) == window / 2 + 1);
	/* The note is posted before they come. */
	for (; i < n; i++)
		send_at(MAX * i, MAX);
	want_soon(fake_queued() == window + 1);
	fake_run_unacknowledged();
	want_soon(came() == window);
	fake_hold_all(false);
	want_soon(came() == window + window / 2);
	want_none(&b);
	ck_assert_uint_eq(came(), window + window / 2);
	for (i = 0; i < n; i++) {
		recv_at(MAX * i, MAX);
		want_got(MAX * i, i < window / 2 ? 8 : MAX);
	}
	for (i = 0; i < n; i++)
		want_sent(MAX * i);
	ends_close();
	fixture_unexpected_count(NULL);
}
END_TEST

/* Whoever dials anew would otherwise have another window each time. */
START_TEST(a_new_line_waits_while_too_much_is_unexpected)
{
	struct fi_cq_data_entry entry;
	struct node c;
	fi_addr_t c_to;
	unsigned i;

	fixture_unexpected_count("4");
	nodes_open(NULL);
	node_open(&c, NULL);
	c_to = node_insert(&c, &b);
	for (i = 0; i < 4; i++) {
		send_at(MAX * i, MAX);
		want_sent(MAX * i);
	}
	want_soon(came() == 4);
	ck_assert_int_eq(fi_send(c.ep, out + 4 * MAX, 8, NULL, c_to, NULL), 0);
	want_soon(fake_connects() == 2);
	ck_assert_int_eq(fi_cq_sread(c.cq, &entry, 1, NULL, 200), -FI_EAGAIN);
	for (i = 0; i < 4; i++) {
		recv_at(MAX * i, MAX);
		want_got(MAX * i, MAX);
	}
	recv_at(4 * MAX, 8);
	want_got(4 * MAX, 8);
	want_ok(&c, NULL);
	node_close(&c);
	ends_close();
	fixture_unexpected_count(NULL);
}
END_TEST

/* More pieces than one work request takes: they are copied. */
START_TEST(many_segments_are_one_message)
{
	struct iovec segs[16], from[2];
	struct fid_mr *mr[2];
	void *desc[2];
	unsigned i, j;

	nodes_open(&(struct node_opt){ .mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED });
	for (j = 0; j < 2; j++) {
		from[j] = (struct iovec){ out + 1600 * j, 1600 };
		for (i = 0; i < 16; i++)
			segs[i] = (struct iovec){ out + 1600 * j + 100 * i, 100 };
		mr[j] = node_regv(&a, segs, 16, FI_SEND, 10 + j);
		desc[j] = fi_mr_desc(mr[j]);
	}
	recv_at(0, 3200);
	ck_assert_int_eq(fi_sendv(a.ep, from, desc, 2, to, out), 0);
	want_sent(0);
	want_got(0, 3200);
	for (j = 0; j < 2; j++)
		must_close(&mr[j]->fid);
	ends_close();
}
END_TEST

START_TEST(an_endpoint_without_messages_has_nothing_for_them)
{
	nodes_open(NULL);
	ck_assert(inbox(&a) && !inbox(&a)->vcq && !inbox(&a)->slots.count);
	ck_assert_uint_eq(fake_live_of(FAKE_VSRQ_OPEN), 0);
	ends_close();
}
END_TEST

/* --- lines break -------------------------------------------------------------------------- */

START_TEST(a_broken_line_loses_nothing)
{
	unsigned i, n = 200, got = 0, sent = 0;
	struct fi_cq_data_entry entry;

	nodes_open(NULL);
	for (i = 0; i < n; i++)
		recv_at(8 * i, 8);
	for (i = 0; i < n; i++) {
		/* A message that breaks it again and again would be given up. */
		while (i % 20 == 7 && sent < i)
			want_sent(8 * sent++);
		if (i % 20 == 7)
			fake_break_frame(1 + i % 3, 1, MRF_WC_OTHER, i % 40 == 7);
		send_at(8 * i, 8);
		while (fi_cq_read(a.cq, &entry, 1) == 1)
			ck_assert_ptr_eq(entry.op_context, out + 8 * sent++);
	}
	for (; got < n; got++)
		want_got(8 * got, 8);
	while (sent < n)
		want_sent(8 * sent++);
	want_none(&b);
	ends_close();
}
END_TEST

/* --- peers that break the protocol ---------------------------------------------------------- */

static unsigned spoil_nth; /* frame from now on, */
static bool spoil_all;	   /* or all from then on */
static bool of_target;
static size_t spoil_at;
static uint8_t spoil_with;

/* For fake.on_send. */
static enum fake_fate spoil(uint8_t *msg, size_t *len, bool from_target)
{
	(void)len;
	if (from_target != of_target || !spoil_nth)
		return FAKE_DELIVER;
	if (spoil_nth == 1 && fake.imm)
		*fake.imm = (uint32_t)spoil_with << 24;
	else if (spoil_nth == 1)
		msg[spoil_at] = spoil_with;
	spoil_nth -= spoil_nth > 1 || !spoil_all;
	return FAKE_DELIVER;
}

static void spoil_one(unsigned nth, bool target, size_t at, uint8_t with)
{
	fake_freeze(true);
	spoil_nth = nth;
	of_target = target;
	spoil_at = at;
	spoil_with = with;
	fake.on_send = spoil;
	fake_freeze(false);
}

/*
 * What a message is not: another type, another number, another flag. Without a head: a flag that needs
 * one, a tag where none was named, no flag.
 */
static const struct {
	bool bare;
	size_t at; /* with a head */
	uint8_t with;
} lies[] = { { false, 0, MRF_FRAME_OFFER },
	     { false, 8, 77 },
	     { false, 4, 0x80 },
	     { true, 0, MRF_FRAME_CQ_DATA },
	     { true, 0, MRF_FRAME_TAGGED },
	     { true, 0, 0x80 } };

/* Sends until it is let in again: what it is told meanwhile, and when it is. */
static void send_barred(size_t at, int64_t until)
{
	struct fi_cq_data_entry entry;
	unsigned refused = 0;

	for (send_at(at, 8); fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS) != 1; send_at(at, 8)) {
		ck_assert_int_eq(want_err(&a, out + at, FI_ECONNABORTED, "closed the last"), 4330);
		refused++;
		usleep(100000);
	}
	ck_assert_ptr_eq(entry.op_context, out + at);
	ck_assert_uint_gt(refused, 0);
	ck_assert_int_ge(mrf_now_ms(), until);
}

/* The lost message was its sender's own fault; what it sends a second later arrives. */
START_TEST(who_sends_no_message_is_cut_off)
{
	struct unit_capture cap;
	unsigned connects;
	const char *warned;
	int64_t begun;

	fixture_log();
	nodes_open(NULL);
	recv_at(0, 8);
	send_at(0, 8);
	want_got(0, 8);
	want_sent(0);
	connects = fake_connects();
	begun = mrf_now_ms();
	unit_capture(&cap);
	spoil_one(1, false, lies[_i].at, lies[_i].with);
	if (!lies[_i].bare)
		give_next_a_head(node_ep(&a), to);
	send_at(8, 8);
	want_sent(8);
	recv_at(16, 8);
	want_none(&b);
	want_soon(!windows(&b));
	send_barred(16, begun + MRF_BARRED_MS);
	unit_captured(&cap);
	warned = strstr(cap.text, "MRF-W4326");
	ck_assert(warned && !strstr(warned + 1, "MRF-W4326"));
	want_got(16, 8);
	ck_assert_uint_eq(fake_connects(), connects + 1);
	ends_close();
}
END_TEST

/* Nothing shows in this queue meanwhile; guarded by fake_freeze. */
static const struct mrf_vcq *hidden;

static bool is_hidden(const struct mrf_vcq *cq)
{
	return cq == hidden;
}

static void hide(const struct mrf_vcq *cq)
{
	fake_freeze(true);
	fake.is_late = is_hidden;
	hidden = cq;
	fake_freeze(false);
}

/* A note allows more than the target has said. */
START_TEST(who_sends_too_many_is_cut_off)
{
	struct unit_capture cap;
	unsigned i;

	fixture_log();
	nodes_open(NULL);
	unit_capture(&cap);
	spoil_all = true;
	spoil_one(1, true, 12, 60);
	for (i = 0; i < 8; i++) {
		send_at(8 * i, 8);
		want_sent(8 * i);
	}
	for (i = 0; i < 8; i++) {
		recv_at(8 * i, 8);
		want_got(8 * i, 8);
	}
	/* More than the target's own window of 8 or 16, which nobody takes in meanwhile. */
	hide(inbox(&b)->vcq);
	for (i = 8; i < 36; i++)
		send_at(8 * i, 8);
	for (i = 8; i < 36; i++)
		want_sent(8 * i);
	hide(NULL);
	/* Whoever was told of them has looked already. */
	want_none(&b);
	want_soon(!windows(&b));
	unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W4325"));
	ends_close();
}
END_TEST

/* Notes that cannot be: nothing is lost but the line. */
static const struct {
	size_t at;
	uint8_t with;
} bad_notes[] = { { 0, MRF_FRAME_GRANT }, { 4, 0x80 }, { 8, 200 } };

START_TEST(a_bad_note_breaks_the_line_and_loses_nothing)
{
	unsigned i, n = 100;

	nodes_open(NULL);
	spoil_one(2, true, bad_notes[_i].at, bad_notes[_i].with);
	for (i = 0; i < n; i++)
		recv_at(8 * i, 8);
	for (i = 0; i < n; i++)
		send_at(8 * i, 8);
	for (i = 0; i < n; i++)
		want_sent(8 * i);
	for (i = 0; i < n; i++)
		want_got(8 * i, 8);
	want_none(&b);
	ends_close();
}
END_TEST

/* --- closing ------------------------------------------------------------------------------ */

START_TEST(what_was_injected_arrives_after_closing)
{
	nodes_open(NULL);
	recv_at(0, 8);
	ck_assert_int_eq(fi_inject(a.ep, out, 8, to), 0);
	must_close(&a.ep->fid);
	a.ep = NULL;
	want_got(0, 8);
	ends_close();
}
END_TEST

/* Nothing lasts, and each message is there or its send has failed. */
START_TEST(each_call_of_the_device_may_fail)
{
	unsigned n = 1;
	bool met = true;

	for (; met; n++) {
		struct fi_cq_data_entry entry;
		int ret;

		nodes_open(&(struct node_opt){ .mr_mode = FI_MR_ALLOCATED });
		recv_at(0, 8);
		fake_fail_any(n, FI_ENOMEM);
		ret = (int)fi_send(a.ep, out, 8, NULL, to, out);
		if (!ret && fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS) != 1) {
			struct fi_cq_err_entry e = { 0 };

			ck_assert_int_eq(fi_cq_readerr(a.cq, &e, 0), 1);
			ret = -e.err;
		}
		met = fake_fail_none();
		if (ret)
			ck_assert_int_eq(fi_send(a.ep, out, 8, NULL, to, out), 0);
		want_got(0, 8);
		if (ret)
			want_sent(0);
		ends_close();
	}
	ck_assert_uint_gt(n, 10);
}
END_TEST

START_TEST(a_peer_that_takes_no_messages_says_so)
{
	struct node_opt opt = { .caps = FI_RMA };

	node_open(&a, NULL);
	node_open(&b, &opt);
	to = node_insert(&a, &b);
	out = pages(8);
	ck_assert_int_eq(fi_send(a.ep, out, 8, NULL, to, out), 0);
	ck_assert_int_eq(want_err(&a, out, FI_EOPNOTSUPP, "no messages"), 4324);
	node_close(&a);
	node_close(&b);
}
END_TEST

static TCase *tcase_msg(void)
{
	TCase *tc = tcase_create("msg");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, a_receive_gets_what_was_sent, 0, MRF_ARRAY_SIZE(modes));
	tcase_add_loop_test(tc, a_message_waits_for_its_receive, 0, MRF_ARRAY_SIZE(modes));
	tcase_add_test(tc, many_more_than_a_window_arrive_in_order);
	tcase_add_test(tc, data_come_with_a_message);
	tcase_add_test(tc, injected_bytes_may_change_at_once);
	tcase_add_loop_test(tc, many_buffers_are_one_message, 0, MRF_ARRAY_SIZE(modes));
	tcase_add_test(tc, an_endpoint_sends_to_itself);
	tcase_add_test(tc, what_does_not_fit_is_cut);
	tcase_add_test(tc, a_receive_is_canceled_once);
	tcase_add_test(tc, a_closed_region_loses_its_message);
	tcase_add_test(tc, a_receive_takes_messages_of_any_source);
	tcase_add_test(tc, flags_of_a_call_send_data_and_inject);
	tcase_add_loop_test(tc, a_buffer_is_free_when_its_send_completes, 0,
			    MRF_ARRAY_SIZE(levels));
	tcase_add_test(tc, successes_are_reported_as_asked_for_and_failures_always);
	tcase_add_test(tc, messages_are_counted_at_both_ends);
	tcase_add_test(tc, a_full_queue_says_again);
	tcase_add_test(tc, a_sleeping_receiver_is_woken);
	tcase_add_test(tc, the_agent_takes_in_where_nobody_polls);
	tcase_add_test(tc, reading_ends_the_duty_of_the_agent);
	tcase_add_test(tc, the_agent_is_not_told_of_each_message);
	tcase_add_test(tc, a_queue_that_is_never_empty_keeps_no_message_out);
	tcase_add_test(tc, senders_wait_while_too_much_is_kept);
	tcase_add_test(tc, a_sender_waits_while_too_much_is_unexpected);
	tcase_add_test(tc, a_new_line_waits_while_too_much_is_unexpected);
	tcase_add_test(tc, many_segments_are_one_message);
	tcase_add_test(tc, an_endpoint_without_messages_has_nothing_for_them);
	tcase_add_test(tc, a_broken_line_loses_nothing);
	tcase_add_loop_test(tc, who_sends_no_message_is_cut_off, 0, MRF_ARRAY_SIZE(lies));
	tcase_add_test(tc, who_sends_too_many_is_cut_off);
	tcase_add_loop_test(tc, a_bad_note_breaks_the_line_and_loses_nothing, 0,
			    MRF_ARRAY_SIZE(bad_notes));
	tcase_add_test(tc, what_was_injected_arrives_after_closing);
	tcase_add_test(tc, each_call_of_the_device_may_fail);
	tcase_add_test(tc, a_peer_that_takes_no_messages_says_so);
	return tc;
}

UNIT_MAIN("msg", tcase_msg)
