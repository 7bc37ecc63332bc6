/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a peer's agent, the initiator's half.
 *
 * - Requests gather while a message with requests is on the way, up to MRF_REQUESTS in
 *   all, which the target enforces. The requests of one message are together about few
 *   bytes, as a single one is, so that a turn of the target's agent takes hardly longer. A
 *   flush has a message of its own.
 * - While a reply is awaited, nothing is posted that a kernel could refuse. What is in
 *   flight ahead of a request goes on; a request that is flushed behind a refused access
 *   has certainly not been seen and is sent again. A request that the peer may have seen
 *   is never repeated.
 * - Each request has a number (docs/WIRE.md). A request that is refused, fails or is done
 *   in part keeps its number, so that the target does none of those behind it: they all
 *   come back, and go out again behind whatever became of the first. The target keeps no
 *   record of them, since it has not done them.
 * - A write that is to be persistent is alone until it is checked: what it writes goes
 *   out after the reply (commit.h).
 * - A reply with a status is treated like a refusal by the kernel: what is known of the
 *   key is dropped, the key is asked about anew, the request is tried again a bounded
 *   number of times, and then fails with the answer's reason.
 */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "base/errtext.h"
#include "base/log.h"
#include "ep/link/conn.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/cause.h"
#include "ep/tx/fail.h"
#include "ep/tx/held.h"
#include "ep/tx/rpc.h"
#include "ep/tx/settle.h"

/* --- the window ------------------------------------------------------------------------- */

static struct mrf_awaited *awaited_at_locked(struct mrf_window *window, unsigned i)
{
	return &window->awaited[i % MRF_REQUESTS];
}

static bool window_is_full_locked(const struct mrf_window *window)
{
	return window->last - window->first == MRF_REQUESTS;
}

bool mrf_rpc_is_patient_locked(const struct mrf_conn *conn)
{
	const struct mrf_window *window = &conn->window;
	unsigned i;

	mrf_lock_held(&conn->peer->ep->lock);
	for (i = window->first; i != window->last; i++) {
		if (!window->awaited[i % MRF_REQUESTS].rpc->patient)
			return false;
	}
	return mrf_rpc_awaited_locked(conn) && !conn->peer->known.asks;
}

bool mrf_rpc_lets_locked(const struct mrf_conn *conn, const struct mrf_op *op)
{
	const struct mrf_window *window = &conn->window;
	const struct mrf_op *first = window->awaited[window->first % MRF_REQUESTS].op;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!mrf_rpc_awaited_locked(conn))
		return true;
	/* An operation that becomes another type of operation goes alone. */
	if (op->type->done || (first && first->type->done))
		return false;
	return op->type->rpc && !window->stopped && !window_is_full_locked(window);
}

static unsigned count_of_locked(const struct mrf_window *window, unsigned from, unsigned upto,
				const struct mrf_rpc *rpc)
{
	unsigned n = 0;

	for (; from != upto; from++)
		n += window->awaited[from % MRF_REQUESTS].rpc == rpc;
	return n;
}

unsigned mrf_rpc_sent_locked(const struct mrf_conn *conn, const struct mrf_rpc *rpc)
{
	mrf_lock_held(&conn->peer->ep->lock);
	return count_of_locked(&conn->window, conn->window.first, conn->window.sent, rpc);
}

unsigned mrf_rpc_gathered_locked(const struct mrf_conn *conn, const struct mrf_rpc *rpc)
{
	mrf_lock_held(&conn->peer->ep->lock);
	return count_of_locked(&conn->window, conn->window.sent, conn->window.last, rpc);
}

/* Forgets the requests that have gathered and were not sent. */
static void disperse_locked(struct mrf_peer *peer)
{
	struct mrf_window *window = &peer->conn->window;

	while (window->last != window->sent) {
		struct mrf_op *op = awaited_at_locked(window, --window->last)->op;

		window->number--;
		if (!op)
			continue;
		op->awaiting--;
		mrf_settle_again_locked(op);
	}
	window->len = window->reply_len = 0;
}

/*
 * Removes the first request. Returns its operation, which may go on, or NULL if there is none (any
 * more).
 */
static struct mrf_op *take_first_locked(struct mrf_window *window)
{
	struct mrf_awaited *first = awaited_at_locked(window, window->first++);

	window->messages -= first->last;
	if (first->op)
		first->op->awaiting--;
	return first->op;
}

/* --- posting ---------------------------------------------------------------------------- */

/* Requests of one message whose bytes go over the pair: those of the next ones arrive meanwhile. */
#define STAGES (MRF_PROTO_STAGES / MRF_STAGE_MESSAGES)
#define STAGE_ROOM (MRF_PROTO_MAX_REPLY / STAGES)

_Static_assert(STAGE_ROOM >= MRF_PROTO_REPLY_HEAD + MRF_PROTO_PAIR_NAME, "the replies fit");

/*
 * How much of a message with replies it takes up. A flush, which takes as long as the storage
 * does, takes up all: it goes alone, so that the target's agent can serve others before the
 * next one.
 */
static size_t reply_room(const struct mrf_request *request)
{
	switch (mrf_request_kind(request->type)) {
	case MRF_REQUEST_ATOMIC:
	case MRF_REQUEST_BYTES:
	case MRF_REQUEST_SYNC:
		return MRF_PROTO_REPLY_HEAD + request->len;
	case MRF_REQUEST_STAGE:
		return STAGE_ROOM;
	case MRF_REQUEST_FLUSH:
	case MRF_NO_REQUEST:
		break;
	}
	return MRF_PROTO_MAX_REPLY;
}

/* May its reply go into a message with others? */
static bool shares_message(const struct mrf_request *request)
{
	return mrf_request_kind(request->type) == MRF_REQUEST_STAGE ||
	       request->len <= MRF_PROTO_REPLY_BODY;
}

int mrf_rpc_post_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	struct mrf_window *window = &peer->conn->window;
	uint8_t body[MRF_PROTO_REQUEST_BODY];
	struct mrf_request request = { .type = op->type->rpc->type,
				       .number = window->number,
				       .body = body };

	mrf_lock_held(&peer->ep->lock);
	if (op->nrma && !mrf_resolve_request_locked(op, op->pos, &request))
		return -FI_ENOKEY;
	request.len = op->type->rpc->fill(op, request.len, &request, body);
	/* It and its reply are to go into the messages of those that have gathered. */
	if (window->len &&
	    (window->len + MRF_PROTO_REQUEST_HEAD + request.body_len > MRF_PROTO_MAX_REQUEST ||
	     !shares_message(&request) ||
	     window->reply_len + reply_room(&request) > MRF_PROTO_MAX_REPLY))
		return -FI_EAGAIN;
	window->len += mrf_request_encode(&request, peer->conn->outgoing + window->len);
	window->reply_len += reply_room(&request);
	*awaited_at_locked(window, window->last++) =
		(struct mrf_awaited){ .op = op,
				      .rpc = op->type->rpc,
				      .what = request.what,
				      .carries = op->type->rpc->carry && !request.body_len,
				      .number = request.number,
				      .pos = op->pos,
				      .len = request.len,
				      .stood = MRF_AHEAD };
	window->number++;
	op->awaiting++;
	op->pos += request.len;
	return 0;
}

/* The device did not take the requests that have gathered: all operations in them fail. */
static void not_taken_locked(struct mrf_peer *peer, int ret)
{
	struct mrf_window *window = &peer->conn->window;

	while (window->last != window->sent) {
		struct mrf_op *op = awaited_at_locked(window, window->last - 1)->op;

		if (op)
			mrf_fail_post_locked(op, ret);
		window->last--;
		window->number--;
	}
	window->len = window->reply_len = 0;
}

static void was_sent_locked(struct mrf_conn *conn)
{
	struct mrf_window *window = &conn->window;

	for (; window->sent != window->last; window->sent++)
		awaited_at_locked(window, window->sent)->at = conn->tail - 1;
	awaited_at_locked(window, window->last - 1)->last = true;
	window->messages++;
	window->len = window->reply_len = 0;
	/* The next one has another place: this one is on its way, and may be sent again. */
	conn->outgoing += MRF_PROTO_MAX_REQUEST;
	if (conn->outgoing == mrf_conn_outgoing(conn) + MRF_CONN_OUTGOING * MRF_PROTO_MAX_REQUEST)
		conn->outgoing = mrf_conn_outgoing(conn);
	mrf_conn_probe_locked(conn);
}

/* Has any that has gathered bytes that go over the pair? */
static bool carries_locked(struct mrf_window *window)
{
	unsigned i;

	for (i = window->sent; i != window->last; i++) {
		if (awaited_at_locked(window, i)->carries)
			return true;
	}
	return false;
}

/* May what has gathered go, in view of what is on the way? */
static bool may_go_locked(struct mrf_window *window)
{
	return window->len && (!window->messages || (window->messages < MRF_STAGE_MESSAGES &&
						     !window->stopped && carries_locked(window)));
}

/* Room for the message, and for the bytes that its requests carry. */
static bool has_room_locked(const struct mrf_conn *conn)
{
	unsigned n = conn->window.last - conn->window.sent;

	mrf_lock_held(&conn->peer->ep->lock);
	return mrf_conn_room_locked(conn) && conn->peer->ep->scq_used + n < MRF_EP_SCQ;
}

/* Has an operation failed whose bytes were to go with the gathered requests? */
static bool lacks_bytes_locked(struct mrf_window *window)
{
	unsigned i;

	for (i = window->sent; i != window->last; i++) {
		const struct mrf_awaited *awaited = awaited_at_locked(window, i);

		if (awaited->carries && !awaited->op)
			return true;
	}
	return false;
}

/* The bytes of the gathered requests. */
static int carry_all_locked(struct mrf_conn *conn)
{
	struct mrf_window *window = &conn->window;
	unsigned i;
	int ret = 0;

	for (i = window->sent; !ret && i != window->last; i++) {
		const struct mrf_awaited *awaited = awaited_at_locked(window, i);

		if (awaited->carries)
			ret = awaited->rpc->carry(conn, awaited);
	}
	return ret;
}

static int send_gathered_locked(struct mrf_conn *conn)
{
	struct mrf_sge sge = { .addr = (uintptr_t)conn->outgoing,
			       .len = (uint32_t)conn->window.len,
			       .lkey = conn->slots_mr.lkey };
	struct mrf_vwr wr = { .op = MRF_VWR_SEND, .nsge = 1, .sge = &sge };

	mrf_lock_held(&conn->peer->ep->lock);
	return mrf_conn_send_locked(conn, &wr);
}

bool mrf_rpc_flush_locked(struct mrf_peer *peer)
{
	struct mrf_conn *conn = peer->conn;
	bool carries = carries_locked(&conn->window);
	int ret;

	mrf_lock_held(&peer->ep->lock);
	if (peer->state != MRF_PEER_READY || !may_go_locked(&conn->window))
		return true;
	if (!has_room_locked(conn)) {
		mrf_conn_await_room_locked(peer);
		return true;
	}
	if (!carries && mrf_held_begin_locked(peer))
		return true;
	mrf_list_del(&peer->held);
	/* Nothing of it has been sent: the others gather again. */
	if (carries && lacks_bytes_locked(&conn->window)) {
		disperse_locked(peer);
		return false;
	}
	if (carries && carry_all_locked(conn)) {
		mrf_conn_break_locked(peer);
		return true;
	}
	ret = send_gathered_locked(conn);
	if (!ret)
		was_sent_locked(conn);
	else if (carries)
		mrf_conn_break_locked(peer);
	else if (ret == -FI_EAGAIN && conn->head != conn->tail)
		mrf_conn_await_room_locked(peer);
	else
		not_taken_locked(peer, ret);
	/* More may go at once. */
	return conn->window.first != conn->window.last && !(carries && !ret);
}

/* --- the connection is lost --------------------------------------------------------------- */

void mrf_rpc_unsent_locked(struct mrf_conn *conn, unsigned at, enum mrf_standing stood)
{
	struct mrf_window *window = &conn->window;
	unsigned i;

	mrf_lock_held(&conn->peer->ep->lock);
	for (i = window->first; i != window->sent; i++) {
		if (awaited_at_locked(window, i)->at == at)
			awaited_at_locked(window, i)->stood = stood;
	}
}

/* A request of op is lost that stood there. */
static void lost_request_locked(struct mrf_op *op, enum mrf_wc_status cause,
				enum mrf_standing stood)
{
	struct mrf_fate fate;

	if (mrf_rpc_again(op))
		fate = mrf_fail_fate_locked(op, cause, stood, MRF_OP_READ, false);
	else
		fate = mrf_fate(cause, stood, MRF_OP_RPC, false, false);
	op->broken.refused += fate.refused;
	if (fate.deed == MRF_FATAL)
		mrf_cause_fail_doubt_locked(op, fate.status);
	else
		mrf_settle_again_locked(op);
}

enum mrf_wc_status mrf_rpc_cause(const struct mrf_conn *conn)
{
	if (conn->cause != MRF_WC_OK)
		return conn->cause;
	return conn->far && conn->far->cause != MRF_WC_OK ? conn->far->cause : MRF_WC_FLUSHED;
}

void mrf_rpc_lost_locked(struct mrf_conn *conn)
{
	struct mrf_window *window = &conn->window;
	enum mrf_wc_status cause = mrf_rpc_cause(conn);

	mrf_lock_held(&conn->peer->ep->lock);
	disperse_locked(conn->peer);
	while (mrf_rpc_awaited_locked(conn)) {
		enum mrf_standing stood = awaited_at_locked(window, window->first)->stood;
		struct mrf_op *op = take_first_locked(window);

		if (op)
			lost_request_locked(op, cause, stood);
	}
}

/* --- replies -------------------------------------------------------------------------- */

static void fail_locked(struct mrf_op *op, const struct mrf_reply *reply)
{
	/* What came over the wire must become an error number, whatever it is. */
	int err = reply->err && reply->err < FI_ERRNO_MAX ? (int)reply->err : FI_EIO;
	struct mrf_why why;

	if (op->type->rpc->explain)
		op->type->rpc->explain(op, err, &why);
	else
		mrf_why_set(&why, err, 4240,
			    "key 0x%" PRIx64 ": the peer could not carry out the operation: %s%s",
			    op->rma[0].key, mrf_errtext(err),
			    err == FI_EIO ? " (it may or may not have been done)" : "");
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_settle_fail_locked(op, &why);
}

static void conclude_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_reply *reply)
{
	if (!op->type->rpc->comes)
		op->acked += reply->done;
	switch (reply->status) {
	case MRF_REPLY_DONE:
	case MRF_REPLY_NOT_NEXT:
		break;
	case MRF_REPLY_FAILED:
		fail_locked(op, reply);
		return;
	default:
		/* As if the peer's kernel had refused the operation: asks the peer why. */
		mrf_fail_refused_locked(peer, op);
	}
	op->again |= !op->awaiting &&
		     (peer->conn->window.stopped ||
		      (!mrf_rpc_repeats(op) && (op->type->done || op->pos != op->total)));
	mrf_settle_locked(op);
}

static bool belongs_locked(struct mrf_window *window, const struct mrf_reply *reply)
{
	const struct mrf_awaited *awaited = awaited_at_locked(window, window->first);

	if (window->first == window->sent || reply->number != awaited->number ||
	    window->stopped != (reply->status == MRF_REPLY_NOT_NEXT))
		return false;
	if (reply->status == MRF_REPLY_NOT_NEXT)
		return !reply->done;
	/*
	 * A target that was prevented from doing it has done nothing yet. After a refusal something
	 * is left to do.
	 */
	return reply->status == MRF_REPLY_DONE ? reply->done <= awaited->len
					       : reply->done < awaited->len;
}

static int replied_locked(struct mrf_peer *peer, const struct mrf_reply *reply)
{
	struct mrf_window *window = &peer->conn->window;
	const struct mrf_awaited *first = awaited_at_locked(window, window->first);
	struct mrf_op *op = first->op;

	if (!belongs_locked(window, reply))
		return -FI_EINVAL;
	if (first->rpc->hear && !first->rpc->hear(peer->conn, first, reply))
		return -FI_EINVAL;
	if (op && reply->status != MRF_REPLY_NOT_NEXT && op->type->rpc->take &&
	    !op->type->rpc->take(op, reply))
		return -FI_EINVAL;
	/*
	 * The first request has not been done completely, so the target does none of those behind
	 * it.
	 */
	if (!window->stopped && !(reply->status == MRF_REPLY_DONE && reply->done == first->len)) {
		disperse_locked(peer);
		window->stopped = true;
		window->number -= window->last - window->first;
	}
	op = take_first_locked(window);
	if (op)
		conclude_locked(peer, op, reply);
	window->stopped &= mrf_rpc_awaited_locked(peer->conn);
	return 0;
}

int mrf_rpc_replied_locked(struct mrf_peer *peer, const uint8_t *msg, size_t len)
{
	struct mrf_reply reply;
	size_t one;
	int ret = 0;

	mrf_lock_held(&peer->ep->lock);
	for (; !ret && len; msg += one, len -= one) {
		ret = mrf_reply_decode(msg, len, &reply);
		one = ret ? len : mrf_msg_len(msg);
		if (!ret)
			ret = replied_locked(peer, &reply);
	}
	if (ret)
		return ret;
	/* One that names a pair does nothing for anybody yet. */
	if (reply.done || reply.status != MRF_REPLY_DONE)
		peer->dial.losses = 0;
	return 0;
}
