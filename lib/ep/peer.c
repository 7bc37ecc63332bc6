/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's data path: posting in order, completions, and what follows a failure. */
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/peer.h"

/* --- the ring of what is in flight -------------------------------------------------------- */

static unsigned in_flight(const struct mrf_conn *conn)
{
	return conn->tail - conn->head;
}

/* --- posting ------------------------------------------------------------------------------- */

static bool posted_all(const struct mrf_op *op)
{
	return op->pos == op->total && (!op->has_imm || op->imm_posted);
}

/* One work request: bytes from pos on, as many as one segment and one message take. */
static int post_piece(struct mrf_peer *peer, struct mrf_op *op)
{
	const struct mrf_vdev_limits *limits = mrf_vdev_limits(peer->ep->domain->vdev);
	struct mrf_sge sge[MRF_OP_SGE];
	struct mrf_vwr wr = { .sge = sge, .is_inline = op->local == MRF_LOCAL_INLINE };
	uint64_t len = 0;
	bool last;
	int ret;

	if (op->total &&
	    !mrf_resolve_piece(op, op->pos, &wr.rkey, &wr.remote_addr, &len))
		return -FI_ENOKEY;
	len = mrf_min(mrf_min(len, op->total - op->pos), limits->max_msg_size);
	wr.nsge = mrf_op_sges(op, op->pos, &len, sge, MRF_OP_SGE);
	last = op->pos + len == op->total;
	wr.op = op->kind == MRF_OP_READ ? MRF_VWR_READ :
		op->has_imm && last	? MRF_VWR_WRITE_IMM :
					  MRF_VWR_WRITE;
	wr.imm = op->imm;
	ret = mrf_conn_post(peer->conn, &wr, op, len);
	if (ret)
		return ret;
	op->pos += len;
	op->inflight++;
	op->imm_posted = op->has_imm && last;
	return 0;
}

static void leave_queue(struct mrf_op *op)
{
	mrf_list_del(&op->node);
	op->queued = false;
}

static void wait_for_completions(struct mrf_peer *peer)
{
	if (in_flight(peer->conn))
		mrf_agent_watch(peer);
}

#define NOT_TAKEN                                                                        \
	"the device does not take the work request (after a fork or a change of "        \
	"credentials it never will)"

/* Only completions make room; without any to come there will be none. */
static bool is_full(const struct mrf_peer *peer, int ret)
{
	return ret == -FI_EAGAIN && in_flight(peer->conn);
}

static void no_post(struct mrf_peer *peer, struct mrf_op *op, int ret)
{
	leave_queue(op);
	if (op->inflight)
		op->fatal = MRF_WC_OTHER;
	else
		mrf_op_fail(peer->ep, op, ret == -FI_EAGAIN ? FI_EIO : -ret, 4108, NOT_TAKEN);
}

void mrf_peer_no_ask(struct mrf_peer *peer, int ret)
{
	if (is_full(peer, ret))
		mrf_agent_watch(peer);
	else
		mrf_peer_fail(peer, ret == -FI_EAGAIN ? FI_EIO : -ret, 4108, NOT_TAKEN);
}

/* 0 when the queue's first should be looked at (again); -FI_EAGAIN when it has to wait. */
static int post_op(struct mrf_peer *peer, struct mrf_op *op)
{
	while (!posted_all(op)) {
		int ret;

		if (!mrf_conn_room(peer->conn)) {
			mrf_agent_watch(peer);
			return -FI_EAGAIN;
		}
		ret = post_piece(peer, op);
		if (mrf_likely(!ret))
			continue;
		/* What was known of the key has changed: resolve anew, once nothing is in flight. */
		op->resolved = false;
		if (ret == -FI_ENOKEY && !op->inflight)
			return 0;
		if (ret != -FI_ENOKEY && !is_full(peer, ret)) {
			no_post(peer, op, ret);
			return 0;
		}
		wait_for_completions(peer);
		return -FI_EAGAIN;
	}
	leave_queue(op);
	return 0;
}

/* True when the next operation may be looked at. */
static bool step(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_why why;

	if ((op->fence && in_flight(peer->conn) && !op->pos) ||
	    (!op->resolved && op->inflight)) {
		wait_for_completions(peer);
		return false;
	}
	switch (mrf_resolve_op(op, &why)) {
	case MRF_RESOLVE_WAIT:
		return false;
	case MRF_RESOLVE_FAIL:
		leave_queue(op);
		mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
		mrf_op_fail(peer->ep, op, why.err, why.code, why.text);
		return true;
	case MRF_RESOLVED:
		break;
	}
	if (!op->total && !op->has_imm) {
		leave_queue(op);
		mrf_op_done(peer->ep, op);
		return true;
	}
	return !post_op(peer, op);
}

/* Questions for operations that are not yet first, so that answers come together. */
static void ask_ahead(struct mrf_peer *peer)
{
	struct mrf_why why;
	int n = 0;

	mrf_list_each(node, &peer->queue) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		if (++n > MRF_ASKS)
			break;
		mrf_resolve_op(op, &why);
	}
	mrf_ask_send(peer);
}

/* One that was removed from the address vector has done its last. */
static void retire(struct mrf_peer *peer)
{
	if (mrf_unlikely(peer->gone && mrf_list_empty(&peer->queue) && !in_flight(peer->conn)))
		mrf_agent_kick(peer);
}

void mrf_peer_advance(struct mrf_peer *peer)
{
	struct mrf_list *node;

	if (peer->state != MRF_PEER_READY) {
		if (peer->state == MRF_PEER_IDLE && !mrf_list_empty(&peer->queue))
			mrf_agent_kick(peer);
		return;
	}
	do {
		while ((node = mrf_list_first(&peer->queue)) &&
		       step(peer, mrf_list_entry(node, struct mrf_op, node)))
			;
		if (!mrf_list_empty(&peer->queue))
			ask_ahead(peer);
		else
			mrf_ask_unwant(peer);
	} while (mrf_ask_release(peer) && !mrf_list_empty(&peer->queue));
	/* The leases end when all is done, whether or not the application looks. */
	if (mrf_unlikely(peer->leases && in_flight(peer->conn)))
		mrf_agent_watch(peer);
	retire(peer);
}

/* --- completions --------------------------------------------------------------------------- */

static void fail_fatal(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_why why = { .err = FI_EIO, .code = 4113 };
	char addr[64];

	mrf_addr_text(&peer->addr, addr, sizeof(addr));
	switch (op->fatal) {
	case MRF_WC_LOCAL:
		why = (struct mrf_why){ FI_EFAULT, 4110, "" };
		snprintf(why.text, sizeof(why.text),
			 "the local buffer's registration does not allow this access (closed, "
			 "or of another size)");
		break;
	case MRF_WC_TIMEOUT:
		why = (struct mrf_why){ FI_ETIMEDOUT, 4111, "" };
		snprintf(why.text, sizeof(why.text),
			 "no answer from %s: the access may or may not have been done", addr);
		break;
	case MRF_WC_FLUSHED:
		why = (struct mrf_why){ FI_ECONNRESET, 4112, "" };
		snprintf(why.text, sizeof(why.text),
			 "%s went away: the access may or may not have been done", addr);
		break;
	default:
		snprintf(why.text, sizeof(why.text),
			 "the device reported an error on the connection to %s: the access may or "
			 "may not have been done", addr);
	}
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_op_fail(peer->ep, op, why.err, why.code, why.text);
}

static void requeue(struct mrf_peer *peer, struct mrf_op *op)
{
	op->pos = op->acked;
	op->resolved = false;
	op->empty_known = 0;
	op->imm_posted = false;
	if (op->queued)
		return;
	op->queued = true;
	mrf_list_add_tail(&op->node, &peer->redo);
}

#define MAX_TIMEOUTS 2

/* A read may be done again; what a write did is not known, so it is not. */
static void lost(struct mrf_peer *peer, struct mrf_op *op, enum mrf_wc_status status)
{
	if (op->kind == MRF_OP_READ && op->timeouts < MAX_TIMEOUTS) {
		op->timeouts += status != MRF_WC_OK;
		op->ask_first = true;
		op->stamp = ++peer->ep->clock;
		mrf_resolve_forget(op);
		requeue(peer, op);
		return;
	}
	op->fatal = status == MRF_WC_OK ? peer->conn->cause : status;
}

/* The work request that broke the connection. */
static void culprit(struct mrf_peer *peer, struct mrf_op *op, enum mrf_wc_status cause)
{
	switch (cause) {
	case MRF_WC_REFUSED:
		peer->losses = 0;
		op->refused++;
		op->ask_first = true;
		op->stamp = ++peer->ep->clock;
		mrf_resolve_forget(op);
		requeue(peer, op);
		break;
	case MRF_WC_LOCAL:
		op->fatal = cause;
		break;
	default:
		lost(peer, op, cause);
	}
}

/* One that was flushed behind it. After a refusal it has certainly not run. */
static void follower(struct mrf_peer *peer, struct mrf_op *op)
{
	switch (peer->conn->cause) {
	case MRF_WC_REFUSED:
	case MRF_WC_LOCAL:
		requeue(peer, op);
		break;
	default:
		lost(peer, op, MRF_WC_OK);
	}
}

/*
 * Linux 6.12 reports a bad local buffer as a flush, and with it all that was in flight, be it
 * done already. Nobody else broke the queue pair: find out whose buffer it was. The first
 * completion that failed is off the ring already.
 */
static void blame(struct mrf_conn *conn)
{
	const struct mrf_ep *ep = conn->peer->ep;
	unsigned i;

	for (i = conn->head - 1; i != conn->tail; i++) {
		struct mrf_op *op = conn->ring[i % MRF_CONN_RING].op;

		if (!op || mrf_op_local_open(ep, op))
			continue;
		conn->cause = MRF_WC_LOCAL;
		conn->blamed = op;
		return;
	}
}

/* One that came back; the first of all decides. */
static void flushed(struct mrf_conn *conn, struct mrf_op *op, bool first)
{
	struct mrf_peer *peer = conn->peer;

	if (conn->blamed && conn->blamed != op) {
		/* Ahead of the one to blame: it may have run. */
		lost(peer, op, MRF_WC_OTHER);
	} else if (first || conn->blamed) {
		culprit(peer, op, conn->cause);
		conn->blamed = NULL;
	} else {
		follower(peer, op);
	}
}

static void failed(struct mrf_conn *conn, struct mrf_op *op, const struct mrf_wc *wc)
{
	bool first = conn->cause == MRF_WC_OK;

	if (first) {
		conn->cause = wc->status;
		mrf_info(FI_LOG_EP_DATA, "connection broken: %s",
			 mrf_wc_status_text(wc->raw_status));
		if (wc->status == MRF_WC_FLUSHED && !conn->disconnected)
			blame(conn);
	}
	if (op && op->fatal == MRF_WC_OK)
		flushed(conn, op, first);
	mrf_peer_break(conn->peer);
}

static void settle(struct mrf_peer *peer, struct mrf_op *op)
{
	if (op->inflight)
		return;
	if (mrf_unlikely(op->fatal != MRF_WC_OK)) {
		if (op->queued)
			leave_queue(op);
		peer->losses = 0;
		fail_fatal(peer, op);
	} else if (!op->queued && op->acked == op->total) {
		mrf_op_done(peer->ep, op);
	}
}

void mrf_peer_completed(struct mrf_conn *conn, const struct mrf_wc *wc)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_posted *posted = &conn->ring[conn->head % MRF_CONN_RING];
	struct mrf_op *op = posted->op;

	conn->head++;
	peer->ep->scq_used--;
	if (op)
		op->inflight--;
	if (mrf_unlikely(wc->status != MRF_WC_OK)) {
		failed(conn, op, wc);
	} else if (op) {
		op->acked += posted->len;
		peer->losses = 0;
	}
	if (op)
		settle(peer, op);
	if (mrf_unlikely(peer->state == MRF_PEER_BROKEN)) {
		if (!in_flight(conn))
			mrf_agent_kick(peer);
	} else if (mrf_unlikely(!mrf_list_empty(&peer->queue) || peer->gone || peer->leases)) {
		mrf_peer_advance(peer);
	}
}

void mrf_peer_break(struct mrf_peer *peer)
{
	if (peer->state != MRF_PEER_READY)
		return;
	peer->state = MRF_PEER_BROKEN;
	mrf_agent_kick(peer);
}

static void unresolve(struct mrf_op *op)
{
	op->resolved = false;
	op->empty_known = 0;
}

void mrf_peer_rewind(struct mrf_peer *peer)
{
	struct mrf_list *node;

	/* Back to front, so that the order stays. */
	while (!mrf_list_empty(&peer->redo)) {
		node = peer->redo.prev;
		mrf_list_del(node);
		mrf_list_add_head(node, &peer->queue);
	}
	/* What was known may be another endpoint's by the time of the next connection. */
	mrf_list_each(pos, &peer->queue)
		unresolve(mrf_list_entry(pos, struct mrf_op, node));
	mrf_ask_lost(peer);
}

void mrf_peer_fail(struct mrf_peer *peer, int err, int code, const char *text)
{
	struct mrf_list *node;

	if (!mrf_list_empty(&peer->queue))
		mrf_refuse(err, FI_LOG_EP_DATA, (unsigned)code, "%s", text);
	while ((node = mrf_list_first(&peer->queue))) {
		struct mrf_op *op = mrf_list_entry(node, struct mrf_op, node);

		leave_queue(op);
		if (op->inflight)
			op->fatal = MRF_WC_OTHER;
		else
			mrf_op_fail(peer->ep, op, err, code, text);
	}
	if (peer->gone)
		mrf_agent_kick(peer);
}

/* --- making and freeing ---------------------------------------------------------------------- */

/* NULL: no memory, or the address went away meanwhile. */
static struct mrf_peer *peer_new(struct mrf_ep *ep, fi_addr_t fi_addr, uint64_t gen)
{
	struct mrf_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	if (mrf_av_get(ep->av, fi_addr, &peer->addr) || mrf_av_gen(ep->av, fi_addr) != gen) {
		free(peer);
		return NULL;
	}
	peer->ep = ep;
	peer->fi_addr = fi_addr;
	peer->gen = gen;
	peer->gen_word = mrf_av_gen_word(ep->av, fi_addr);
	mrf_list_init(&peer->queue);
	mrf_list_init(&peer->redo);
	mrf_list_init(&peer->to_ask);
	mrf_list_init(&peer->asked);
	mrf_list_init(&peer->kick);
	mrf_idmap_init(&peer->remotes);
	mrf_list_add_tail(&peer->node, &ep->all_peers);
	return peer;
}

void mrf_peer_free(struct mrf_peer *peer)
{
	mrf_agent_unkick(peer);
	mrf_list_del(&peer->node);
	mrf_remote_fini(peer);
	free(peer);
}

static int grow(struct mrf_ep *ep, fi_addr_t fi_addr)
{
	size_t n = mrf_max(ep->npeers * 2, fi_addr + 16);
	struct mrf_peer **peers = realloc(ep->peers, n * sizeof(*peers));

	if (!peers)
		return -FI_ENOMEM;
	while (ep->npeers < n)
		peers[ep->npeers++] = NULL;
	ep->peers = peers;
	return 0;
}

static int get_slow(struct mrf_ep *ep, fi_addr_t fi_addr, struct mrf_peer **out)
{
	uint64_t gen = mrf_av_gen(ep->av, fi_addr);
	struct mrf_peer *peer;

	if (!gen)
		return mrf_refuse(FI_EADDRNOTAVAIL, FI_LOG_EP_DATA, 4002,
				  "fi_addr %#lx is not in the endpoint's address vector",
				  (unsigned long)fi_addr);
	if (fi_addr >= ep->npeers && grow(ep, fi_addr))
		return -FI_ENOMEM;
	/* The address was removed, and its number is in use again. */
	if (ep->peers[fi_addr]) {
		ep->peers[fi_addr]->gone = true;
		mrf_agent_kick(ep->peers[fi_addr]);
	}
	peer = peer_new(ep, fi_addr, gen);
	ep->peers[fi_addr] = peer;
	if (!peer)
		return -FI_ENOMEM;
	*out = peer;
	return 0;
}

int mrf_peer_get(struct mrf_ep *ep, fi_addr_t fi_addr, struct mrf_peer **out)
{
	if (mrf_likely(fi_addr < ep->npeers && ep->peers[fi_addr] &&
		       ep->peers[fi_addr]->gen == mrf_av_gen(ep->av, fi_addr))) {
		*out = ep->peers[fi_addr];
		return 0;
	}
	return get_slow(ep, fi_addr, out);
}
