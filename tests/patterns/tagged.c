/* SPDX-License-Identifier: BSD-2-Clause */
/* Peeking, cancelling, data beside the message, injecting, and messages that come too early. */
#include "side.h"

/* --- fi_rdm_tagged_peek ------------------------------------------------------------------------- */

#define TAG 0x900d
#define BAD_TAG 0xbad

static void trecv_op(struct side *s, uint64_t tag, uint64_t flags)
{
	struct iovec iov = { s->in, LARGEST };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .desc = &s->desc,
				     .iov_count = 1,
				     .addr = s->peer,
				     .tag = tag,
				     .context = &s->rx.ctx };

	must_ok(fi_trecvmsg(s->ep, &msg, flags));
}

static void nothing_there(struct side *s, uint64_t tag, uint64_t flags)
{
	struct fi_cq_err_entry err;

	trecv_op(s, tag, flags);
	err = queue_error(s, &s->rx);
	must(err.err == FI_ENOMSG && err.op_context == &s->rx.ctx && err.tag == tag,
	     "err %d, tag 0x%llx", err.err, (unsigned long long)err.tag);
}

static void one(struct side *s, uint64_t tag, uint64_t flags, size_t len)
{
	const struct fi_cq_tagged_entry *e = &s->rx.last;

	trecv_op(s, tag, flags);
	s->rx.posted++;
	queue_wait(s, &s->rx, s->rx.done + 1);
	must(e->op_context == &s->rx.ctx && e->tag == tag && (!len || e->len == len),
	     "flags 0x%llx: tag 0x%llx, %zu bytes", (unsigned long long)flags,
	     (unsigned long long)e->tag, e->len);
	must((e->flags & (FI_TAGGED | FI_RECV)) == (FI_TAGGED | FI_RECV), "entry flags 0x%llx",
	     (unsigned long long)e->flags);
}

/* Until the message has come: a peek that finds nothing says so at once. */
static void peek_until(struct side *s, uint64_t tag, uint64_t flags, size_t len)
{
	ssize_t ret;

	do {
		struct fi_cq_err_entry err = { 0 };

		trecv_op(s, tag, flags);
		while ((ret = fi_cq_read(s->rx.cq, &s->rx.last, 1)) == -FI_EAGAIN)
			;
		if (ret == -FI_EAVAIL)
			must(fi_cq_readerr(s->rx.cq, &err, 0) == 1 && err.err == FI_ENOMSG,
			     "err %d", err.err);
	} while (ret != 1);
	must(s->rx.last.tag == tag && s->rx.last.len == len, "tag 0x%llx, %zu bytes",
	     (unsigned long long)s->rx.last.tag, s->rx.last.len);
	s->rx.posted++;
	s->rx.done++;
}

static void claimed(struct side *s, uint64_t tag, size_t len)
{
	memset(s->in, 0, len);
	one(s, tag, FI_CLAIM, len);
	same(s->in, len, (unsigned)tag);
}

static void peek_server(struct side *s)
{
	nothing_there(s, BAD_TAG, FI_PEEK);
	nothing_there(s, BAD_TAG, FI_PEEK | FI_CLAIM);
	nothing_there(s, BAD_TAG, FI_PEEK | FI_DISCARD);
	oob_sync(s);
	peek_until(s, TAG, FI_PEEK, 100);
	one(s, TAG, FI_PEEK, 100);
	one(s, TAG, FI_PEEK | FI_CLAIM, 100);
	claimed(s, TAG, 100);
	/* The next of the same tag. */
	peek_until(s, TAG, FI_PEEK, 200);
	one(s, TAG, 0, 200);
	same(s->in, 200, TAG);
	peek_until(s, TAG + 1, FI_PEEK | FI_CLAIM, 100);
	one(s, TAG + 1, FI_CLAIM | FI_DISCARD, 0);
	peek_until(s, TAG + 2, FI_PEEK | FI_DISCARD, 5000);
	nothing_there(s, TAG + 1, FI_PEEK);
	nothing_there(s, TAG + 2, FI_PEEK);
	peek_until(s, TAG + 3, FI_PEEK, LARGEST);
	one(s, TAG + 3, 0, LARGEST);
	same(s->in, LARGEST, TAG + 3);
	oob_sync(s);
}

static void tsend(struct side *s, uint64_t tag, size_t len)
{
	fill(s->out, len, (unsigned)tag);
	POST(s, &s->tx, fi_tsend(s->ep, s->out, len, s->desc, s->peer, tag, &s->tx.ctx));
	queue_wait(s, &s->tx, s->tx.posted);
}

static void peek_client(struct side *s)
{
	oob_sync(s);
	tsend(s, TAG, 100);
	tsend(s, TAG, 200);
	tsend(s, TAG + 1, 100);
	tsend(s, TAG + 2, 5000);
	tsend(s, TAG + 3, LARGEST);
	oob_sync(s);
}

static void tagged_peek(struct side *s)
{
	side_hints(s, FI_TAGGED);
	s->hints->tx_attr->msg_order = FI_ORDER_SAS;
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	side_start(s, FI_TAGGED);
	if (s->client)
		peek_client(s);
	else
		peek_server(s);
	side_end(s);
}

/* --- fi_recv_cancel ------------------------------------------------------------------------------- */

static void cancel_server(struct side *s)
{
	struct fi_context2 ctx[2];
	struct fi_cq_err_entry err;
	char *in = s->in + ADDRESS;

	must_ok(fi_trecv(s->ep, in, 100, s->desc, s->peer, 0xCAFE, 0, &ctx[0]));
	POST(s, &s->rx, fi_trecv(s->ep, in, 100, s->desc, s->peer, 0xCAFE, 0, &ctx[1]));
	must_ok(fi_cancel(&s->ep->fid, &ctx[0]));
	err = queue_error(s, &s->rx);
	must(err.err == FI_ECANCELED && err.op_context == &ctx[0], "err %d", err.err);
	must(fi_cancel(&s->ep->fid, &ctx[0]) == -FI_ENOENT, "it was cancelled twice");
	oob_sync(s);
	queue_wait(s, &s->rx, s->rx.done + 1);
	must(s->rx.last.op_context == &ctx[1], "the one that was cancelled has completed");
	same(in, 100, 0xCAFE);
}

static void recv_cancel(struct side *s)
{
	s->wait = FI_WAIT_UNSPEC;
	side_start(s, FI_TAGGED);
	if (s->client) {
		oob_sync(s);
		tsend(s, 0xCAFE, 100);
	} else {
		cancel_server(s);
	}
	side_end(s);
}

/* --- fi_cq_data --------------------------------------------------------------------------------------- */

#define DATA 0x12345678

static void data_server(struct side *s)
{
	const struct fi_cq_data_entry *e = (void *)&s->rx.last;

	queue_wait(s, &s->rx, s->rx.posted);
	must(e->flags & FI_REMOTE_CQ_DATA && e->data == DATA && e->len == 1000,
	     "flags 0x%llx, data 0x%llx, %zu bytes", (unsigned long long)e->flags,
	     (unsigned long long)e->data, e->len);
	same(s->in, 1000, 3);
	post_recv(s, LARGEST);
}

static void data_client(struct side *s)
{
	struct queue *q = &s->tx;

	fill(s->out, 1000, 3);
	if (side_is_tagged(s))
		POST(s, q,
		     fi_tsenddata(s->ep, s->out, 1000, s->desc, DATA, s->peer, q->tag, &q->ctx));
	else
		POST(s, q, fi_senddata(s->ep, s->out, 1000, s->desc, DATA, s->peer, &q->ctx));
	q->tag++;
	queue_wait(s, q, q->posted);
}

static void cq_data_of(struct side *s, uint64_t caps)
{
	s->format = caps & FI_TAGGED ? FI_CQ_FORMAT_TAGGED : FI_CQ_FORMAT_DATA;
	side_hints(s, caps);
	s->hints->mode |= FI_RX_CQ_DATA;
	s->hints->domain_attr->cq_data_size = 4;
	side_start(s, caps);
	(s->client ? data_client : data_server)(s);
	side_end(s);
}

static void cq_data(struct side *s)
{
	cq_data_of(s, FI_MSG);
}

static void tagged_cq_data(struct side *s)
{
	cq_data_of(s, FI_TAGGED);
}

/* --- fi_inject_test -------------------------------------------------------------------------------------- */

static void inject_by_msg(struct side *s, size_t len, uint64_t flags)
{
	struct iovec iov = { s->out, len };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = s->peer,
			      .context = &s->tx.ctx,
			      .data = DATA };
	struct fi_msg_tagged tmsg = { .msg_iov = &iov,
				      .iov_count = 1,
				      .addr = s->peer,
				      .tag = s->tx.tag,
				      .context = &s->tx.ctx,
				      .data = DATA };

	if (side_is_tagged(s))
		POST(s, &s->tx, fi_tsendmsg(s->ep, &tmsg, FI_INJECT | flags));
	else
		POST(s, &s->tx, fi_sendmsg(s->ep, &msg, FI_INJECT | flags));
	s->tx.tag++;
}

static void inject_data(struct side *s, size_t len)
{
	if (side_is_tagged(s))
		POST(s, &s->tx, fi_tinjectdata(s->ep, s->out, len, DATA, s->peer, s->tx.tag));
	else
		POST(s, &s->tx, fi_injectdata(s->ep, s->out, len, DATA, s->peer));
	s->tx.tag++;
	s->tx.done++;
}

/* In five ways; the buffer is another one's at once. */
static void inject_client(struct side *s, unsigned i)
{
	size_t len = i % 5 ? 1 + i * 5 % 250 : 256;

	fill(s->out, len, i);
	switch (i % 5) {
	case 0:
		inject(s, len);
		break;
	case 1:
		inject_data(s, len);
		break;
	case 2:
		inject_by_msg(s, len, 0);
		break;
	case 3:
		inject_by_msg(s, len, FI_REMOTE_CQ_DATA | FI_COMPLETION);
		break;
	default:
		post_send(s, len); /* FI_INJECT is the endpoint's flag */
	}
	memset(s->out, 0xff, len);
}

static void inject_server(struct side *s, unsigned i)
{
	size_t len = i % 5 ? 1 + i * 5 % 250 : 256;

	queue_wait(s, &s->rx, s->rx.posted);
	same(s->in, len, i);
	post_recv(s, LARGEST);
}

static void inject_of(struct side *s, uint64_t caps)
{
	s->counted = true;
	s->wait = FI_WAIT_UNSPEC;
	side_hints(s, caps);
	s->hints->tx_attr->op_flags = FI_INJECT;
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	side_start(s, caps);
	for (unsigned i = 0; i < 60; i++)
		(s->client ? inject_client : inject_server)(s, i);
	queue_wait(s, &s->tx, s->tx.posted);
	must_ok(fi_cntr_wait(s->tx.cntr, s->tx.posted, WAIT_MS));
	must(fi_cntr_read(s->tx.cntr) == s->tx.posted && s->tx.done == s->tx.posted,
	     "%llu counted, %llu completed of %llu", (unsigned long long)fi_cntr_read(s->tx.cntr),
	     (unsigned long long)s->tx.done, (unsigned long long)s->tx.posted);
	side_end(s);
}

static void inject_test(struct side *s)
{
	inject_of(s, FI_MSG);
}

static void tagged_inject_test(struct side *s)
{
	inject_of(s, FI_TAGGED);
}

/* --- fi_unexpected_msg --------------------------------------------------------------------------------- */

#define TURNS 20
#define AT_ONCE 8
#define UNEXPECTED 512
#define SHORT 512

static void unexpected_send(struct side *s, unsigned turn)
{
	for (unsigned j = 0; j < AT_ONCE; j++) {
		char *buf = s->out + j * SHORT;

		fill(buf, SHORT, turn + j);
		if (side_is_tagged(s))
			POST(s, &s->tx,
			     fi_tsend(s->ep, buf, SHORT, s->desc, s->peer, TAG + j, &s->tx.ctx));
		else
			POST(s, &s->tx, fi_send(s->ep, buf, SHORT, s->desc, s->peer, &s->tx.ctx));
	}
}

/* Tagged ones are received in the opposite order. */
static void unexpected_recv(struct side *s)
{
	for (unsigned j = 0; j < AT_ONCE; j++) {
		unsigned at = side_is_tagged(s) ? AT_ONCE - 1 - j : j;
		char *buf = s->in + at * SHORT;

		if (side_is_tagged(s))
			POST(s, &s->rx,
			     fi_trecv(s->ep, buf, SHORT, s->desc, s->peer, TAG + at, 0,
				      &s->rx.ctx));
		else
			POST(s, &s->rx, fi_recv(s->ep, buf, SHORT, s->desc, s->peer, &s->rx.ctx));
	}
}

static void unexpected_turn(struct side *s, unsigned turn)
{
	unexpected_send(s, turn);
	oob_sync(s);
	unexpected_recv(s);
	queue_wait(s, &s->rx, s->rx.posted);
	for (unsigned j = 0; j < AT_ONCE; j++)
		same(s->in + j * SHORT, SHORT, turn + j);
	queue_wait(s, &s->tx, s->tx.posted);
	oob_sync(s);
}

/* Then many at once, before the first of them is received. */
static void unexpected_many(struct side *s)
{
	for (unsigned i = 0; s->client && i < UNEXPECTED; i++) {
		fill(s->out, 60, i);
		inject(s, 60);
	}
	oob_sync(s);
	for (unsigned i = 0; !s->client && i < UNEXPECTED; i++) {
		post_recv(s, LARGEST);
		queue_wait(s, &s->rx, s->rx.posted);
		same(s->in, 60, i);
	}
	oob_sync(s);
}

static void unexpected_of(struct side *s, uint64_t caps)
{
	s->nothing_posted = true;
	side_hints(s, caps);
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	if (!getenv("FI_MRFAB_MR_MODE"))
		s->hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
	side_open(s);
	side_meet_oob(s);
	for (unsigned turn = 0; turn < TURNS; turn++)
		unexpected_turn(s, turn);
	unexpected_many(s);
	side_close(s);
}

static void unexpected_msg(struct side *s)
{
	unexpected_of(s, FI_MSG);
}

static void unexpected_tagged(struct side *s)
{
	unexpected_of(s, FI_TAGGED);
}

static void unexpected_directed(struct side *s)
{
	unexpected_of(s, FI_TAGGED | FI_DIRECTED_RECV);
}

const struct pattern tagged_patterns[] = {
	{ "rdm_tagged_peek", tagged_peek, tagged_peek, true },
	{ "recv_cancel", recv_cancel, recv_cancel, false },
	{ "cq_data", cq_data, cq_data, false },
	{ "tagged_cq_data", tagged_cq_data, tagged_cq_data, false },
	{ "inject_test", inject_test, inject_test, false },
	{ "tagged_inject_test", tagged_inject_test, tagged_inject_test, false },
	{ "unexpected_msg", unexpected_msg, unexpected_msg, false },
	{ "unexpected_tagged", unexpected_tagged, unexpected_tagged, true },
	{ "unexpected_directed", unexpected_directed, unexpected_directed, false },
	{ NULL, NULL, NULL, false },
};
