/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tagged messages of fi_tagged(3) on the fake fabric: which receive takes which message, who sent it,
 * and looking at what has come.
 */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_tagged.h>
#include "ep_fixture.h"
#include "ep/msg/inbox.h"

#define RECV_FLAGS (FI_TAGGED | FI_RECV)
#define LABELS (FI_DIRECTED_RECV | FI_SOURCE)
#define CAPS (FI_MSG | FI_TAGGED)

static struct node a, b, c; /* c, a second sender, in some tests */
static fi_addr_t to;
static uint64_t out[16], in[16];

static struct node_opt opt_of(uint64_t caps)
{
	return (struct node_opt){ .caps = caps, .format = FI_CQ_FORMAT_TAGGED };
}

static void nodes_open_as(struct node_opt opt)
{
	unsigned i;

	node_open(&a, &opt);
	node_open(&b, &opt);
	to = node_insert(&a, &b);
	for (i = 0; i < 16; i++) {
		out[i] = 100 + i;
		in[i] = 0;
	}
}

static void nodes_open(uint64_t caps)
{
	nodes_open_as(opt_of(caps));
}

static void nodes_close(void)
{
	node_close(&a);
	node_close(&b);
}

static struct fi_cq_tagged_entry next_of(struct node *n, fi_addr_t *source)
{
	struct fi_cq_tagged_entry entry = { 0 };
	int64_t end = mrf_now_ms() + LONG_MS;
	ssize_t ret;

	while ((ret = fi_cq_readfrom(n->cq, &entry, 1, source)) == -FI_EAGAIN && mrf_now_ms() < end)
		usleep(100);
	ck_assert_int_eq(ret, 1);
	return entry;
}

static int next_err(struct node *n, struct fi_cq_err_entry *e)
{
	struct fi_cq_tagged_entry entry;

	ck_assert_int_eq(fi_cq_sread(n->cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(n->cq, e, 0), 1);
	return e->err;
}

static void send_from(struct node *n, fi_addr_t dest, unsigned i, uint64_t tag)
{
	struct fi_cq_tagged_entry entry;

	ck_assert_int_eq(fi_tsend(n->ep, &out[i], 8, NULL, dest, tag, &out[i]), 0);
	entry = next_of(n, NULL);
	ck_assert_ptr_eq(entry.op_context, &out[i]);
	ck_assert_uint_eq(entry.flags, FI_TAGGED | FI_SEND);
}

static void send_tag(unsigned i, uint64_t tag)
{
	send_from(&a, to, i, tag);
}

static void recv_tag(unsigned i, uint64_t tag, uint64_t ignore, fi_addr_t from)
{
	ck_assert_int_eq(fi_trecv(b.ep, &in[i], 8, NULL, from, tag, ignore, &in[i]), 0);
}

/* Receive i has got message m. */
static struct fi_cq_tagged_entry want_got(unsigned i, unsigned m, uint64_t tag)
{
	struct fi_cq_tagged_entry entry = next_of(&b, NULL);

	ck_assert_ptr_eq(entry.op_context, &in[i]);
	ck_assert_uint_eq(entry.flags & ~FI_CLAIM, RECV_FLAGS);
	ck_assert_uint_eq(entry.tag, tag);
	ck_assert_uint_eq(entry.len, 8);
	ck_assert_uint_eq(in[i], out[m]);
	return entry;
}

/* Has so many messages come that nothing has taken? The agent or this thread takes them in. */
static bool has_come(size_t n)
{
	struct mrf_ep *ep = node_ep(&b);
	size_t msgs;

	fi_cq_read(b.cq, NULL, 0);
	mrf_lock_take(&ep->lock);
	msgs = ep->inbox->tagged.msgs;
	mrf_lock_release(&ep->lock);
	return msgs == n;
}

/* --- matching --------------------------------------------------------------------------- */

START_TEST(tags_decide)
{
	nodes_open(0);
	recv_tag(0, 1, 0, FI_ADDR_UNSPEC);
	recv_tag(1, UINT64_MAX, 0, FI_ADDR_UNSPEC);
	recv_tag(2, 0xf0, 0xf, FI_ADDR_UNSPEC);
	send_tag(0, 0xf7);
	want_got(2, 0, 0xf7);
	send_tag(1, UINT64_MAX);
	want_got(1, 1, UINT64_MAX);
	send_tag(2, 1);
	want_got(0, 2, 1);
	nodes_close();
}
END_TEST

START_TEST(messages_wait_by_tag)
{
	nodes_open(0);
	send_tag(0, 10);
	send_tag(1, 20);
	send_tag(2, 10);
	want_soon(has_come(3));
	recv_tag(0, 20, 0, FI_ADDR_UNSPEC);
	want_got(0, 1, 20);
	recv_tag(1, 0, UINT64_MAX, FI_ADDR_UNSPEC);
	want_got(1, 0, 10);
	recv_tag(2, 10, 0, FI_ADDR_UNSPEC);
	want_got(2, 2, 10);
	nodes_close();
}
END_TEST

START_TEST(messages_without_a_tag_are_others)
{
	struct fi_cq_tagged_entry entry;

	nodes_open(0);
	recv_tag(0, 0, UINT64_MAX, FI_ADDR_UNSPEC);
	ck_assert_int_eq(fi_recv(b.ep, &in[1], 8, NULL, FI_ADDR_UNSPEC, &in[1]), 0);
	ck_assert_int_eq(fi_send(a.ep, &out[1], 8, NULL, to, NULL), 0);
	entry = next_of(&b, NULL);
	ck_assert_ptr_eq(entry.op_context, &in[1]);
	ck_assert_uint_eq(entry.flags, FI_MSG | FI_RECV);
	next_of(&a, NULL);
	send_tag(0, 5);
	want_got(0, 0, 5);
	nodes_close();
}
END_TEST

START_TEST(each_call_sends_its_tag)
{
	struct iovec one = { &out[0], 8 };
	struct fi_msg_tagged msg = {
		.msg_iov = &one, .iov_count = 1, .addr = to, .tag = 3, .context = &out[0]
	};
	unsigned i;

	nodes_open(0);
	msg.addr = to;
	for (i = 0; i < 5; i++)
		recv_tag(i, i + 1, 0, FI_ADDR_UNSPEC);
	ck_assert_int_eq(fi_tinjectdata(a.ep, &out[4], 8, 77, to, 5), 0);
	ck_assert_int_eq(fi_tsenddata(a.ep, &out[3], 8, NULL, 78, to, 4, NULL), 0);
	ck_assert_int_eq(fi_tsendmsg(a.ep, &msg, FI_COMPLETION), 0);
	ck_assert_int_eq(fi_tsendv(a.ep, &one, NULL, 1, to, 2, NULL), 0);
	ck_assert_int_eq(fi_tinject(a.ep, &out[0], 8, to, 1), 0);
	for (i = 0; i < 5; i++) {
		struct fi_cq_tagged_entry entry = next_of(&b, NULL);

		ck_assert_uint_eq(entry.tag, 5 - i);
		ck_assert_ptr_eq(entry.op_context, &in[4 - i]);
		ck_assert_uint_eq(entry.flags, RECV_FLAGS | (i < 2 ? FI_REMOTE_CQ_DATA : 0));
		ck_assert_uint_eq(entry.data, i < 2 ? 77 + i : 0);
	}
	ck_assert_uint_eq(in[4], out[4]);
	ck_assert_uint_eq(in[3], out[3]);
	ck_assert_uint_eq(in[0], out[0]);
	for (i = 0; i < 3; i++)
		next_of(&a, NULL);
	nodes_close();
}
END_TEST

/* Also those with other tags and masks, of which the first that matches counts. */
START_TEST(tagged_receives_are_searched_in_the_order_posted)
{
	nodes_open(0);
	recv_tag(0, 9, 0, FI_ADDR_UNSPEC);
	recv_tag(1, 0, UINT64_MAX, FI_ADDR_UNSPEC);
	recv_tag(2, 7, 0, FI_ADDR_UNSPEC);
	recv_tag(3, 7, 0, FI_ADDR_UNSPEC);
	send_tag(0, 7);
	want_got(1, 0, 7);
	send_tag(1, 7);
	want_got(2, 1, 7);
	send_tag(2, 7);
	want_got(3, 2, 7);
	nodes_close();
}
END_TEST

START_TEST(tagged_buffers_of_a_list_are_one_message)
{
	struct iovec from[2] = { { &out[0], 8 }, { &out[2], 8 } };
	struct iovec into[2] = { { &in[1], 8 }, { &in[3], 8 } };
	struct fi_cq_tagged_entry entry;

	nodes_open(0);
	ck_assert_int_eq(fi_trecvv(b.ep, into, NULL, 2, FI_ADDR_UNSPEC, 7, 0, into), 0);
	ck_assert_int_eq(fi_tsendv(a.ep, from, NULL, 2, to, 7, from), 0);
	entry = next_of(&b, NULL);
	ck_assert_ptr_eq(entry.op_context, into);
	ck_assert_uint_eq(entry.len, 16);
	ck_assert(in[1] == out[0] && in[3] == out[2]);
	ck_assert_ptr_eq(next_of(&a, NULL).op_context, from);
	nodes_close();
}
END_TEST

/* 0: taken; otherwise refused. */
static const struct {
	uint64_t flag;
	int ret;
} send_flags[] = { { FI_COMPLETION, 0 },
		   { FI_MORE, 0 },
		   { FI_INJECT, 0 },
		   { FI_INJECT_COMPLETE, 0 },
		   { FI_TRANSMIT_COMPLETE, 0 },
		   { FI_REMOTE_CQ_DATA, 0 },
		   { FI_DELIVERY_COMPLETE, 0 },
		   { FI_COMMIT_COMPLETE, -FI_EOPNOTSUPP },
		   { FI_FENCE, 0 },
		   { FI_MULTI_RECV, -FI_EBADFLAGS } };

START_TEST(tagged_sendmsg_takes_the_flags_that_are_for_it)
{
	uint64_t flag = send_flags[_i].flag, bytes;
	struct iovec one = { &bytes, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &one, .iov_count = 1, .tag = 7, .data = 5 };
	struct fi_cq_tagged_entry entry;

	nodes_open(0);
	msg.addr = to;
	bytes = 77;
	ck_assert_int_eq(fi_tsendmsg(a.ep, &msg, flag), send_flags[_i].ret);
	if (flag == FI_INJECT)
		bytes = 0;
	if (!send_flags[_i].ret) {
		next_of(&a, NULL);
		recv_tag(0, 7, 0, FI_ADDR_UNSPEC);
		entry = next_of(&b, NULL);
		ck_assert_uint_eq(entry.flags, RECV_FLAGS | (flag & FI_REMOTE_CQ_DATA));
		ck_assert_uint_eq(entry.data, flag == FI_REMOTE_CQ_DATA ? 5 : 0);
		ck_assert_uint_eq(in[0], 77);
	}
	nodes_close();
}
END_TEST

START_TEST(tagged_calls_need_an_endpoint_that_is_enabled)
{
	struct fid_ep *ep;

	nodes_open(0);
	ck_assert_int_eq(fi_endpoint(a.domain, a.info, &ep, NULL), 0);
	ck_assert_int_eq(fi_tsend(ep, &out[0], 8, NULL, to, 1, NULL), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_tinject(ep, &out[0], 8, to, 1), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_trecv(ep, &in[0], 8, NULL, to, 1, 0, NULL), -FI_EOPBADSTATE);
	must_close(&ep->fid);
	nodes_close();
}
END_TEST

START_TEST(a_tagged_receive_is_canceled)
{
	struct fi_cq_err_entry e = { 0 };

	nodes_open(0);
	recv_tag(0, 1, 0, FI_ADDR_UNSPEC);
	recv_tag(1, 1, 0, FI_ADDR_UNSPEC);
	ck_assert_int_eq(fi_cancel(&b.ep->fid, &in[0]), 0);
	ck_assert_int_eq(next_err(&b, &e), FI_ECANCELED);
	ck_assert_ptr_eq(e.op_context, &in[0]);
	ck_assert_uint_eq(e.flags, RECV_FLAGS);
	ck_assert_int_eq(fi_cancel(&b.ep->fid, &in[0]), -FI_ENOENT);
	send_tag(0, 1);
	want_got(1, 0, 1);
	nodes_close();
}
END_TEST

START_TEST(a_peer_without_tags_says_so)
{
	struct node_opt with = opt_of(0), without = opt_of(FI_MSG);
	struct fi_cq_err_entry e = { 0 };

	node_open(&a, &with);
	node_open(&b, &without);
	to = node_insert(&a, &b);
	ck_assert_int_eq(fi_tsend(a.ep, &out[0], 8, NULL, to, 1, NULL), 0);
	ck_assert_int_eq(next_err(&a, &e), FI_EOPNOTSUPP);
	ck_assert_int_eq(e.prov_errno, 4324);
	/* The line is there all the same. */
	ck_assert_int_eq(fi_recv(b.ep, &in[0], 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	ck_assert_int_eq(fi_send(a.ep, &out[0], 8, NULL, to, NULL), 0);
	next_of(&b, NULL);
	next_of(&a, NULL);
	nodes_close();
}
END_TEST

/* --- who sent it -------------------------------------------------------------------------- */

START_TEST(a_directed_receive_takes_its_sender_only)
{
	struct node_opt opt = opt_of(CAPS | LABELS);
	fi_addr_t from_a, from_c, c_to, source;

	nodes_open(CAPS | LABELS);
	node_open(&c, &opt);
	c_to = node_insert(&c, &b);
	from_a = node_insert(&b, &a);
	from_c = node_insert(&b, &c);
	recv_tag(0, 1, 0, from_c);
	recv_tag(1, 1, 0, FI_ADDR_UNSPEC);
	send_tag(0, 1);
	ck_assert_ptr_eq(next_of(&b, &source).op_context, &in[1]);
	ck_assert_uint_eq(source, from_a);
	ck_assert_uint_eq(in[1], out[0]);
	send_from(&c, c_to, 2, 1);
	ck_assert_ptr_eq(next_of(&b, &source).op_context, &in[0]);
	ck_assert_uint_eq(source, from_c);
	ck_assert_uint_eq(in[0], out[2]);
	node_close(&c);
	nodes_close();
}
END_TEST

START_TEST(a_directed_receive_needs_no_tag)
{
	struct node_opt opt = opt_of(CAPS | LABELS);
	struct fi_cq_tagged_entry entry;
	fi_addr_t from_c, c_to, source;

	nodes_open(CAPS | LABELS);
	node_open(&c, &opt);
	c_to = node_insert(&c, &b);
	node_insert(&b, &a);
	from_c = node_insert(&b, &c);
	ck_assert_int_eq(fi_recv(b.ep, &in[0], 8, NULL, from_c, &in[0]), 0);
	ck_assert_int_eq(fi_recv(b.ep, &in[1], 8, NULL, FI_ADDR_UNSPEC, &in[1]), 0);
	ck_assert_int_eq(fi_send(a.ep, &out[0], 8, NULL, to, NULL), 0);
	next_of(&a, NULL);
	ck_assert_ptr_eq(next_of(&b, NULL).op_context, &in[1]);
	ck_assert_int_eq(fi_send(c.ep, &out[1], 8, NULL, c_to, NULL), 0);
	next_of(&c, NULL);
	entry = next_of(&b, &source);
	ck_assert_ptr_eq(entry.op_context, &in[0]);
	ck_assert_uint_eq(source, from_c);
	ck_assert(in[0] == out[1] && in[1] == out[0]);
	node_close(&c);
	nodes_close();
}
END_TEST

START_TEST(a_message_that_came_before_its_sender_was_inserted)
{
	fi_addr_t from_a, source;

	nodes_open(CAPS | LABELS);
	send_tag(0, 1);
	send_tag(1, 1);
	want_soon(has_come(2));
	from_a = node_insert(&b, &a);
	recv_tag(0, 1, 0, from_a);
	next_of(&b, &source);
	ck_assert_uint_eq(source, from_a);
	ck_assert_uint_eq(in[0], out[0]);
	/* What comes from now on, too. */
	recv_tag(1, 1, 0, from_a);
	want_got(1, 1, 1);
	recv_tag(2, 1, 0, from_a);
	send_tag(2, 1);
	want_got(2, 2, 1);
	nodes_close();
}
END_TEST

START_TEST(a_sender_that_is_removed_is_a_stranger)
{
	fi_addr_t from_a, source;

	nodes_open(CAPS | LABELS);
	from_a = node_insert(&b, &a);
	send_tag(0, 1);
	want_soon(has_come(1));
	ck_assert_int_eq(fi_av_remove(b.av, &from_a, 1, 0), 0);
	ck_assert_int_eq(fi_trecv(b.ep, &in[0], 8, NULL, from_a, 1, 0, NULL), -FI_EADDRNOTAVAIL);
	recv_tag(0, 1, 0, FI_ADDR_UNSPEC);
	next_of(&b, &source);
	ck_assert_uint_eq(source, FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(in[0], out[0]);
	nodes_close();
}
END_TEST

START_TEST(a_stranger_is_told_by_its_address)
{
	struct sockaddr_in addr, name;
	struct fi_cq_err_entry e = { .err_data = &addr, .err_data_size = sizeof(addr) };
	size_t len = sizeof(name);
	fi_addr_t source;

	nodes_open(CAPS | LABELS | FI_SOURCE_ERR);
	recv_tag(0, 1, 0, FI_ADDR_UNSPEC);
	send_tag(0, 1);
	ck_assert_int_eq(next_err(&b, &e), FI_EADDRNOTAVAIL);
	ck_assert_ptr_eq(e.op_context, &in[0]);
	ck_assert_uint_eq(e.len, 8);
	ck_assert_uint_eq(e.tag, 1);
	ck_assert_uint_eq(in[0], out[0]);
	ck_assert_uint_eq(e.err_data_size, sizeof(addr));
	ck_assert_int_eq(fi_getname(&a.ep->fid, &name, &len), 0);
	ck_assert_uint_eq(addr.sin_port, name.sin_port);
	ck_assert_uint_eq(addr.sin_addr.s_addr, name.sin_addr.s_addr);
	ck_assert_ptr_nonnull(
		strstr(fi_cq_strerror(b.cq, e.prov_errno, e.err_data, NULL, 0), "address"));
	ck_assert_int_eq(fi_av_insert(b.av, &addr, 1, &source, 0, NULL), 1);
	recv_tag(1, 1, 0, source);
	send_tag(1, 1);
	want_got(1, 1, 1);
	nodes_close();
}
END_TEST

/* --- looking ------------------------------------------------------------------------------ */

static ssize_t about(uint64_t flags, uint64_t tag, uint64_t ignore, void *context, void *buf)
{
	struct iovec one = { buf, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &one,
				     .iov_count = 1,
				     .addr = FI_ADDR_UNSPEC,
				     .tag = tag,
				     .ignore = ignore,
				     .context = context };

	return fi_trecvmsg(b.ep, &msg, flags);
}

static void want_nothing(void *context, uint64_t tag)
{
	struct fi_cq_err_entry e = { 0 };

	ck_assert_int_eq(next_err(&b, &e), FI_ENOMSG);
	ck_assert_ptr_eq(e.op_context, context);
	ck_assert_uint_eq(e.tag, tag);
	ck_assert_int_eq(e.prov_errno, 4328);
}

static void want_seen(void *context, uint64_t flags, uint64_t tag)
{
	struct fi_cq_tagged_entry entry = next_of(&b, NULL);

	ck_assert_ptr_eq(entry.op_context, context);
	ck_assert_uint_eq(entry.flags, RECV_FLAGS | flags);
	ck_assert_uint_eq(entry.tag, tag);
	ck_assert_uint_eq(entry.len, 8);
	ck_assert_ptr_null(entry.buf);
}

START_TEST(peeking_takes_nothing)
{
	struct fi_context x;

	nodes_open(0);
	ck_assert_int_eq(about(FI_PEEK, 7, 0, &x, NULL), 0);
	want_nothing(&x, 7);
	send_tag(0, 7);
	want_soon(has_come(1));
	ck_assert_int_eq(about(FI_PEEK, 7, 0, &x, NULL), 0);
	want_seen(&x, FI_PEEK, 7);
	ck_assert_int_eq(about(FI_PEEK, 8, 0, &x, NULL), 0);
	want_nothing(&x, 8);
	ck_assert_int_eq(about(FI_PEEK, 0, UINT64_MAX, &x, NULL), 0);
	want_seen(&x, FI_PEEK, 7);
	recv_tag(0, 7, 0, FI_ADDR_UNSPEC);
	want_got(0, 0, 7);
	nodes_close();
}
END_TEST

/* A program that only peeks never finds the queue empty, so that reading it polls nothing. */
START_TEST(peeking_takes_in_what_has_come)
{
	struct fi_context x;

	nodes_open(0);
	for (unsigned i = 0; i < 16; i++) {
		/* The agent leaves it to this thread for some milliseconds. */
		fi_cq_read(b.cq, NULL, 0);
		send_tag(i, 7);
		ck_assert_int_eq(about(FI_PEEK | FI_DISCARD, 7, 0, &x, NULL), 0);
		want_seen(&x, FI_PEEK, 7);
	}
	nodes_close();
}
END_TEST

START_TEST(a_claimed_message_is_for_its_context)
{
	struct fi_context x, y;

	nodes_open(0);
	send_tag(0, 7);
	send_tag(1, 7);
	want_soon(has_come(2));
	ck_assert_int_eq(about(FI_PEEK | FI_CLAIM, 7, 0, &x, NULL), 0);
	want_seen(&x, FI_PEEK | FI_CLAIM, 7);
	/* Another receive gets the next one. */
	recv_tag(0, 7, 0, FI_ADDR_UNSPEC);
	want_got(0, 1, 7);
	ck_assert_int_eq(about(FI_CLAIM, 0, 0, &y, &in[1]), -FI_EINVAL);
	ck_assert_int_eq(about(FI_CLAIM, 0, 0, &x, &in[1]), 0);
	want_seen(&x, FI_CLAIM, 7);
	ck_assert_uint_eq(in[1], out[0]);
	ck_assert_int_eq(about(FI_CLAIM, 0, 0, &x, &in[1]), -FI_EINVAL);
	nodes_close();
}
END_TEST

START_TEST(discarded_messages_are_gone)
{
	struct fi_context x;

	nodes_open(0);
	send_tag(0, 7);
	send_tag(1, 7);
	want_soon(has_come(2));
	ck_assert_int_eq(about(FI_PEEK | FI_DISCARD, 7, 0, &x, NULL), 0);
	want_seen(&x, FI_PEEK, 7);
	ck_assert_int_eq(about(FI_PEEK | FI_CLAIM, 7, 0, &x, NULL), 0);
	want_seen(&x, FI_PEEK | FI_CLAIM, 7);
	ck_assert_int_eq(about(FI_CLAIM | FI_DISCARD, 7, 0, &x, NULL), 0);
	want_seen(&x, FI_CLAIM, 7);
	ck_assert_int_eq(about(FI_CLAIM | FI_DISCARD, 7, 0, &x, NULL), -FI_EINVAL);
	ck_assert_int_eq(about(FI_PEEK, 7, 0, &x, NULL), 0);
	want_nothing(&x, 7);
	ck_assert_uint_eq(node_ep(&b)->inbox->kept, 0);
	nodes_close();
}
END_TEST

START_TEST(flags_that_make_no_sense_are_refused)
{
	struct fi_context x;

	nodes_open(0);
	ck_assert_int_eq(about(FI_DISCARD, 7, 0, &x, NULL), -FI_EBADFLAGS);
	ck_assert_int_eq(about(FI_PEEK | FI_CLAIM | FI_DISCARD, 7, 0, &x, NULL), -FI_EBADFLAGS);
	ck_assert_int_eq(about(FI_PEEK | FI_CLAIM, 7, 0, NULL, NULL), -FI_EINVAL);
	ck_assert_int_eq(about(FI_MULTI_RECV, 7, 0, &x, NULL), -FI_EBADFLAGS);
	nodes_close();
}
END_TEST

/* As those of messages without a tag. */
START_TEST(tagged_buffers_need_rights)
{
	struct node_opt opt = opt_of(0);
	struct fid_mr *sends, *recvs;
	struct fid_mr *wrong;

	opt.mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
	node_open(&a, &opt);
	node_open(&b, &opt);
	to = node_insert(&a, &b);
	sends = node_reg(&a, out, sizeof(out), FI_SEND, 1);
	recvs = node_reg(&b, in, sizeof(in), FI_RECV, 2);
	wrong = node_reg(&b, in, sizeof(in), FI_SEND | FI_READ | FI_WRITE, 3);
	out[0] = 4711;
	in[0] = 0;
	ck_assert_int_eq(fi_tsend(a.ep, out, 8, NULL, to, 1, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_trecv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, in), -FI_EINVAL);
	ck_assert_int_eq(fi_trecv(b.ep, in, 8, fi_mr_desc(wrong), FI_ADDR_UNSPEC, 1, 0, in),
			 -FI_EACCES);
	ck_assert_int_eq(fi_trecv(b.ep, in, 8, fi_mr_desc(recvs), FI_ADDR_UNSPEC, 1, 0, in), 0);
	ck_assert_int_eq(fi_tsend(a.ep, out, 8, fi_mr_desc(sends), to, 1, NULL), 0);
	next_of(&a, NULL);
	want_got(0, 0, 1);
	must_close(&sends->fid);
	must_close(&recvs->fid);
	must_close(&wrong->fid);
	nodes_close();
}
END_TEST

/* What is claimed, unexpected or posted when the endpoint closes leaves nothing behind. */
START_TEST(closing_drops_what_is_left)
{
	struct fi_context x;

	nodes_open(0);
	send_tag(0, 1);
	send_tag(1, 2);
	want_soon(has_come(2));
	ck_assert_int_eq(about(FI_PEEK | FI_CLAIM, 1, 0, &x, NULL), 0);
	want_seen(&x, FI_PEEK | FI_CLAIM, 1);
	recv_tag(0, 3, 0, FI_ADDR_UNSPEC);
	nodes_close();
}
END_TEST

/* --- the flags of a call, and those of the endpoint ----------------------------------------- */

static void nodes_open_selective(uint64_t op_flags)
{
	struct node_opt opt = opt_of(0);

	opt.selective = true;
	opt.op_flags = op_flags;
	nodes_open_as(opt);
}

static void post_with(uint64_t flags, bool sends, unsigned i)
{
	struct iovec iov = { sends ? &out[i] : &in[i], 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .iov_count = 1,
				     .addr = sends ? to : FI_ADDR_UNSPEC,
				     .tag = i,
				     .context = iov.iov_base };

	ck_assert_int_eq(sends ? fi_tsendmsg(a.ep, &msg, flags) : fi_trecvmsg(b.ep, &msg, flags),
			 0);
}

/* Message 0 is that of the call without flags, and message 1 that of the call with these. */
static void exchange_two(uint64_t flags)
{
	recv_tag(0, 0, 0, FI_ADDR_UNSPEC);
	post_with(flags, false, 1);
	ck_assert_int_eq(fi_tsend(a.ep, &out[0], 8, NULL, to, 0, &out[0]), 0);
	post_with(flags, true, 1);
}

/* Of the two, only this one has told of its success. */
static void want_told(unsigned told)
{
	ck_assert_ptr_eq(next_of(&a, NULL).op_context, &out[told]);
	want_got(told, told, told);
	want_idle(&a);
	want_none(&a);
	want_none(&b);
	ck_assert_uint_eq(in[0], out[0]);
	ck_assert_uint_eq(in[1], out[1]);
}

START_TEST(tagged_flags_of_a_call_take_the_place_of_the_endpoints)
{
	uint64_t flags = FI_RECV | FI_COMPLETION;

	nodes_open_selective(FI_COMPLETION);
	ck_assert_int_eq(fi_control(&b.ep->fid, FI_SETOPSFLAG, &flags), 0);
	exchange_two(0);
	want_told(0);
	nodes_close();
}
END_TEST

START_TEST(tagged_successes_are_reported_as_asked_for)
{
	nodes_open_selective(0);
	exchange_two(FI_COMPLETION);
	want_told(1);
	nodes_close();
}
END_TEST

START_TEST(tagged_messages_that_are_injected_have_a_greatest_length)
{
	struct iovec iov = { out, MRF_LIMIT_INJECT };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1 };

	nodes_open(0);
	iov.iov_base = pages(PAGE);
	msg.addr = to;
	ck_assert_int_eq(fi_tsendmsg(a.ep, &msg, FI_INJECT), 0);
	next_of(&a, NULL);
	iov.iov_len++;
	ck_assert_int_eq(fi_tsendmsg(a.ep, &msg, FI_INJECT), -FI_EMSGSIZE);
	ck_assert_int_eq(fi_tsendmsg(a.ep, &msg, 0), 0);
	next_of(&a, NULL);
	nodes_close();
}
END_TEST

/* It says 7, which is nobody's address. */
START_TEST(a_source_is_not_looked_at_without_the_capability)
{
	nodes_open(0);
	recv_tag(0, 5, 0, 7);
	send_tag(0, 5);
	want_got(0, 0, 5);
	nodes_close();
}
END_TEST

static TCase *tcase_tagged(void)
{
	TCase *tc = tcase_create("tagged");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_test(tc, tags_decide);
	tcase_add_test(tc, messages_wait_by_tag);
	tcase_add_test(tc, messages_without_a_tag_are_others);
	tcase_add_test(tc, each_call_sends_its_tag);
	tcase_add_test(tc, tagged_receives_are_searched_in_the_order_posted);
	tcase_add_test(tc, tagged_buffers_of_a_list_are_one_message);
	tcase_add_loop_test(tc, tagged_sendmsg_takes_the_flags_that_are_for_it, 0,
			    MRF_ARRAY_SIZE(send_flags));
	tcase_add_test(tc, tagged_flags_of_a_call_take_the_place_of_the_endpoints);
	tcase_add_test(tc, tagged_successes_are_reported_as_asked_for);
	tcase_add_test(tc, tagged_messages_that_are_injected_have_a_greatest_length);
	tcase_add_test(tc, a_source_is_not_looked_at_without_the_capability);
	tcase_add_test(tc, tagged_calls_need_an_endpoint_that_is_enabled);
	tcase_add_test(tc, a_tagged_receive_is_canceled);
	tcase_add_test(tc, a_peer_without_tags_says_so);
	tcase_add_test(tc, a_directed_receive_takes_its_sender_only);
	tcase_add_test(tc, a_directed_receive_needs_no_tag);
	tcase_add_test(tc, a_message_that_came_before_its_sender_was_inserted);
	tcase_add_test(tc, a_sender_that_is_removed_is_a_stranger);
	tcase_add_test(tc, a_stranger_is_told_by_its_address);
	tcase_add_test(tc, peeking_takes_nothing);
	tcase_add_test(tc, peeking_takes_in_what_has_come);
	tcase_add_test(tc, a_claimed_message_is_for_its_context);
	tcase_add_test(tc, discarded_messages_are_gone);
	tcase_add_test(tc, flags_that_make_no_sense_are_refused);
	tcase_add_test(tc, tagged_buffers_need_rights);
	tcase_add_test(tc, closing_drops_what_is_left);
	return tc;
}

UNIT_MAIN("tagged", tcase_tagged)
