/* SPDX-License-Identifier: BSD-2-Clause */
/* As MPI and what is like it do: one queue for everything, tags, and the first of several to come. */
#include "side.h"

#define RANK_BITS 0xffffULL
#define ACK (1ULL << 62)
#define POSTED 1500

/* --- Open MPI, mtl/ofi ----------------------------------------------------------------------------------- */

static void mtl_hints(struct side *s)
{
	side_hints(s, FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV);
	s->hints->mode = FI_CONTEXT | FI_CONTEXT2;
	s->hints->tx_attr->msg_order = s->hints->rx_attr->msg_order = FI_ORDER_SAS;
	s->hints->tx_attr->op_flags = s->hints->rx_attr->op_flags = FI_COMPLETION;
	s->hints->domain_attr->mr_mode = 0;
	s->hints->domain_attr->av_type = FI_AV_MAP;
	s->hints->domain_attr->cq_data_size = 4;
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	s->version = FI_VERSION(1, 5);
	s->nothing_posted = s->one_queue = true;
	s->cq_flags = FI_SELECTIVE_COMPLETION;
	s->cq_size = 100;
	s->format = FI_CQ_FORMAT_TAGGED;
}

/* The rank of the sender is in the data; the highest bits of a tag are the protocol's. */
static void mtl_open(struct side *s)
{
	side_open(s);
	must(s->info->ep_attr->mem_tag_format >> 60, "mem_tag_format 0x%llx",
	     (unsigned long long)s->info->ep_attr->mem_tag_format);
	side_meet_oob(s);
}

static void mtl_send(struct side *s, struct fi_context2 *ctx, uint64_t tag, size_t len)
{
	uint64_t rank = s->client;

	fill(s->out, len, (unsigned)tag);
	if (len <= s->info->tx_attr->inject_size) {
		POST(s, &s->tx, fi_tinjectdata(s->ep, s->out, len, rank, s->peer, tag));
		return;
	}
	POST(s, &s->tx, fi_tsenddata(s->ep, s->out, len, NULL, rank, s->peer, tag, ctx));
	must(entry_next(s, NULL).op_context == ctx, "the send has another context");
}

static void mtl_want(struct side *s, const void *ctx, uint64_t tag, size_t len)
{
	struct fi_cq_tagged_entry e = entry_next(s, NULL);

	must(e.op_context == ctx && e.tag == tag && e.len == len, "tag 0x%llx, %zu bytes",
	     (unsigned long long)e.tag, e.len);
	must(e.flags & FI_RECV && e.flags & FI_REMOTE_CQ_DATA && e.data == 1, "flags 0x%llx",
	     (unsigned long long)e.flags);
}

static struct fi_msg_tagged mtl_msg(struct side *s, struct iovec *iov, void *ctx, uint64_t tag)
{
	return (struct fi_msg_tagged){ .msg_iov = iov,
				       .iov_count = 1,
				       .addr = s->peer,
				       .tag = tag,
				       .ignore = RANK_BITS,
				       .context = ctx };
}

/* MPI_Iprobe: asks until there is one; each time it reads the queue until it has the answer. */
static size_t mtl_probe(struct side *s, uint64_t tag, uint64_t flags, void *ctx)
{
	struct fi_msg_tagged msg = mtl_msg(s, NULL, ctx, tag);
	struct fi_cq_tagged_entry e[100];
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	msg.iov_count = 0;
	for (;;) {
		must_ok(fi_trecvmsg(s->ep, &msg, flags | FI_COMPLETION));
		while ((ret = fi_cq_read(s->tx.cq, e, 100)) == -FI_EAGAIN)
			;
		if (ret == 1)
			break;
		must(ret == -FI_EAVAIL && fi_cq_readerr(s->tx.cq, &err, 0) == 1 &&
			     err.err == FI_ENOMSG && err.op_context == ctx,
		     "fi_cq_read: %zd, err %d", ret, err.err);
	}
	must(e[0].op_context == ctx && e[0].data == 1, "another context, or rank");
	return e[0].len;
}

/* MPI_Mprobe and MPI_Mrecv. */
static void mtl_mrecv(struct side *s)
{
	struct iovec iov = { s->in, 9000 };
	struct fi_context2 ctx;
	struct fi_msg_tagged msg = mtl_msg(s, &iov, &ctx, 0);

	must(mtl_probe(s, 0xb0000, FI_PEEK | FI_CLAIM, &ctx) == 9000, "another length");
	must_ok(fi_trecvmsg(s->ep, &msg, FI_CLAIM | FI_COMPLETION));
	must(entry_next(s, NULL).op_context == &ctx, "another context");
	same(s->in, 9000, 0xb0001);
}

static void mtl_cancel(struct side *s, struct fi_context2 *ctx)
{
	struct fi_cq_err_entry err = { 0 };

	must_ok(fi_cancel(&s->ep->fid, ctx));
	must(fi_cq_read(s->tx.cq, &s->tx.last, 1) == -FI_EAVAIL, "no entry of one cancelled");
	must(fi_cq_readerr(s->tx.cq, &err, 0) == 1 && err.err == FI_ECANCELED &&
		     err.op_context == ctx,
	     "err %d", err.err);
}

static void mtl_receiver(struct side *s)
{
	static struct fi_context2 ctx[POSTED], any;
	size_t i;

	for (i = 0; i < POSTED; i++)
		POST(s, &s->rx,
		     fi_trecv(s->ep, s->in, 9000, NULL, s->peer, 0x10000 + i, 0, &ctx[i]));
	POST(s, &s->rx,
	     fi_trecv(s->ep, s->in, 9000, NULL, FI_ADDR_UNSPEC, 0xa0000, RANK_BITS, &any));
	oob_sync(s);
	mtl_want(s, &ctx[POSTED - 1], 0x10000 + POSTED - 1, 100);
	mtl_want(s, &ctx[7], 0x10007, 9000);
	mtl_want(s, &any, 0xa0001, 50);
	same(s->in, 50, 0xa0001);
	/* Of MPI_Ssend the receiver tells that it has begun. */
	must_ok(fi_tinject(s->ep, NULL, 0, s->peer, ACK | 0xa0001));
	mtl_mrecv(s);
	for (i = 0; i < POSTED; i++) {
		if (i != 7 && i != POSTED - 1)
			mtl_cancel(s, &ctx[i]);
	}
	oob_sync(s);
}

static void mtl_sender(struct side *s)
{
	struct fi_context2 ctx, ack;

	POST(s, &s->rx, fi_trecv(s->ep, NULL, 0, NULL, s->peer, ACK | 0xa0001, 0, &ack));
	oob_sync(s);
	mtl_send(s, &ctx, 0x10000 + POSTED - 1, 100);
	mtl_send(s, &ctx, 0x10007, 9000);
	mtl_send(s, &ctx, 0xa0001, 50);
	must(entry_next(s, NULL).op_context == &ack, "another context");
	mtl_send(s, &ctx, 0xb0001, 9000);
	oob_sync(s);
}

/* A rank sends to itself, too. */
static void mtl_self(struct side *s)
{
	struct fi_context2 ctx[2];
	char name[64];
	size_t len = sizeof(name);
	fi_addr_t self;
	void *first;

	must_ok(fi_getname(&s->ep->fid, name, &len));
	must(fi_av_insert(s->av, name, 1, &self, 0, NULL) == 1, "fi_av_insert");
	must_ok(fi_trecv(s->ep, s->in, 5000, NULL, self, 3, 0, &ctx[0]));
	fill(s->out, 5000, 3);
	POST(s, &s->tx, fi_tsend(s->ep, s->out, 5000, NULL, self, 3, &ctx[1]));
	first = entry_next(s, NULL).op_context;
	must(entry_next(s, NULL).op_context != first, "one completes twice");
	same(s->in, 5000, 3);
}

static void mtl(struct side *s)
{
	mtl_hints(s);
	mtl_open(s);
	(s->client ? mtl_sender : mtl_receiver)(s);
	mtl_self(s);
	side_close(s);
}

/* --- MPICH, ch4:ofi ---------------------------------------------------------------------------------------- */

/* First without hints; then with what is wanted of what was found. */
static void mpich_hints(struct side *s)
{
	struct fi_info *found = NULL;
	uint64_t want = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV;

	must_ok(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, NULL, &found));
	must((found->caps & want) == want && found->ep_attr->type == FI_EP_RDM, "caps 0x%llx",
	     (unsigned long long)found->caps);
	side_hints(s, want | FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ |
			      FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_MULTI_RECV);
	s->hints->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA;
	s->hints->fabric_attr->prov_name = strdup(found->fabric_attr->prov_name);
	s->hints->domain_attr->name = strdup(found->domain_attr->name);
	s->hints->domain_attr->mr_mode = BASIC;
	s->hints->domain_attr->av_type = FI_AV_TABLE;
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	s->hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	s->hints->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_WAW;
	s->hints->rx_attr->msg_order = s->hints->tx_attr->msg_order;
	s->hints->ep_attr->mem_tag_format = 0x7fffffffffffffff;
	fi_freeinfo(found);
	s->one_queue = s->nothing_posted = true;
	s->format = FI_CQ_FORMAT_TAGGED;
	s->version = FI_VERSION(1, 14);
}

#define AM 3024u

/* For active messages: buffers without tags, each for many. */
static void mpich_post(struct side *s, struct fi_context2 *ctx)
{
	size_t min = AM;

	must_ok(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	for (unsigned i = 0; i < 2; i++) {
		const struct iovec iov = { s->in + i * 2 * AM, 2 * AM };
		const struct fi_msg msg = {
			.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &ctx[i]
		};

		must_ok((int)fi_recvmsg(s->ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
	}
}

static void mpich_am_got(struct side *s, struct fi_context2 *ctx)
{
	for (unsigned i = 0; i < 3; i++) {
		struct fi_cq_tagged_entry e = entry_next(s, NULL);

		must(e.len == AM && e.buf == s->in + i * AM && e.op_context == &ctx[i / 2],
		     "active message %u: %zu bytes", i, e.len);
		must(!(e.flags & FI_MULTI_RECV) == !(i % 2), "flags 0x%llx",
		     (unsigned long long)e.flags);
		same(e.buf, AM, i);
	}
}

/* A head and a payload. */
static void mpich_am(struct side *s, struct fi_context2 *ctx)
{
	struct iovec iov[2] = { { s->out, 24 }, { s->out + 24, AM - 24 } };

	if (!s->client) {
		mpich_am_got(s, ctx);
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		fill(s->out, AM, i);
		POST(s, &s->tx, fi_sendv(s->ep, iov, NULL, 2, s->peer, ctx));
		must(entry_next(s, NULL).op_context == ctx, "another context");
	}
}

/* Tagged messages of a communicator: the sender's rank is data, not tag. */
static void mpich_tagged(struct side *s, struct fi_context2 *ctx)
{
	struct fi_cq_tagged_entry e;

	if (s->client) {
		fill(s->out, 4000, 4);
		must_ok(fi_tinjectdata(s->ep, s->out, 64, 1, s->peer, 0x5500000001));
		POST(s, &s->tx,
		     fi_tsenddata(s->ep, s->out, 4000, NULL, 1, s->peer, 0x5500000001, ctx));
		must(entry_next(s, NULL).op_context == ctx, "another context");
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		POST(s, &s->rx, fi_trecv(s->ep, s->in, 4000, NULL, s->peer, 0x5500000001, 0, ctx));
		e = entry_next(s, NULL);
		must(e.op_context == ctx && e.data == 1 && e.len == (i ? 4000 : 64), "%zu bytes",
		     e.len);
		same(s->in, e.len, 4);
	}
}

static void mpich(struct side *s)
{
	struct fi_context2 ctx[2];

	mpich_hints(s);
	side_open(s);
	side_meet_oob(s);
	mpich_post(s, ctx);
	oob_sync(s);
	mpich_am(s, ctx);
	oob_sync(s);
	mpich_tagged(s, &ctx[1]);
	oob_sync(s);
	/* What was posted for active messages is cancelled in the end, the first of it too if it is there. */
	must(fi_cancel(&s->ep->fid, &ctx[1]) == 0, "it cannot be cancelled");
	oob_sync(s);
	side_close(s);
}

/* --- aws-ofi-nccl, sendrecv ------------------------------------------------------------------------------- */

#define CONTROL (1ULL << 40)
#define REQUESTS 8

static void nccl_hints(struct side *s)
{
	side_hints(s, FI_TAGGED | FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM);
	s->hints->mode = FI_CONTEXT | FI_CONTEXT2;
	s->hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT;
	s->hints->domain_attr->threading = FI_THREAD_SAFE;
	s->hints->tx_attr->msg_order = s->hints->rx_attr->msg_order = FI_ORDER_SAS;
	s->one_queue = s->nothing_posted = true;
	s->format = FI_CQ_FORMAT_TAGGED;
}

/* The one that connects sends its name to a tag of its own, for which the other one listens. */
static void nccl_connect(struct side *s, struct fi_context2 *ctx)
{
	size_t len = 56;

	oob_sync(s);
	if (!s->client) {
		must_ok(fi_trecv(s->ep, s->in, 56, s->desc, FI_ADDR_UNSPEC, 1 | CONTROL, 0, ctx));
		must(entry_next(s, NULL).op_context == ctx, "another context");
		must(fi_av_insert(s->av, s->in, 1, &s->peer, 0, NULL) == 1, "fi_av_insert");
		return;
	}
	must(fi_av_insert(s->av, s->info->dest_addr, 1, &s->peer, 0, NULL) == 1, "fi_av_insert");
	must_ok(fi_getname(&s->ep->fid, s->out, &len));
	POST(s, &s->tx, fi_tsend(s->ep, s->out, 56, s->desc, s->peer, 1 | CONTROL, ctx));
	must(entry_next(s, NULL).op_context == ctx, "another context");
}

static void nccl_requests(struct side *s, struct fi_context2 *ctx, size_t len)
{
	unsigned done = 0;

	for (unsigned i = 0; i < REQUESTS; i++) {
		if (s->client)
			POST(s, &s->tx, fi_tsend(s->ep, s->out, len, s->desc, s->peer, 1, &ctx[i]));
		else
			POST(s, &s->rx,
			     fi_trecv(s->ep, s->in, LARGEST, s->desc, FI_ADDR_UNSPEC, 1, 0,
				      &ctx[i]));
	}
	for (unsigned i = 0; i < REQUESTS; i++) {
		struct fi_cq_tagged_entry e = entry_next(s, NULL);

		/* Receives of one tag complete in their order. */
		must(s->client || (e.op_context == &ctx[i] && e.len == len),
		     "receive %u, %zu bytes", i, e.len);
		done += e.op_context >= (void *)ctx && e.op_context < (void *)(ctx + REQUESTS);
	}
	must(done == REQUESTS, "%u completions are of others", REQUESTS - done);
	must(s->client || (same(s->in, len, 8), true), "other bytes");
}

static void nccl(struct side *s)
{
	struct fi_context2 ctx[REQUESTS];

	nccl_hints(s);
	side_open(s);
	must(s->info->ep_attr->mem_tag_format >> 41, "a bit for control has no room in a tag");
	nccl_connect(s, ctx);
	fill(s->out, LARGEST, 8);
	for (unsigned i = 0; i < 5; i++)
		nccl_requests(s, ctx, i % 2 ? LARGEST : 1000);
	side_close(s);
}

const struct pattern mpi_patterns[] = {
	{ "openmpi_mtl", mtl, mtl, false },
	{ "mpich", mpich, mpich, false },
	{ "aws_ofi_nccl", nccl, nccl, false },
	{ NULL, NULL, NULL, false },
};
