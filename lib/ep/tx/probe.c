/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer with an outstanding answer or reply is probed every second by a write of no
 * bytes. A request that was acknowledged has nothing in flight that could time out, and
 * nothing reports that a machine has gone. No kernel refuses that write, and only the
 * peer's kernel acknowledges it.
 *
 * A peer's process may have been stopped while its kernel goes on. So what is awaited of
 * its agent has a deadline, too (FI_MRFAB_ANSWER_TIMEOUT, from the last answer on). Then
 * what waits fails. Questions stay open, because they may be answered later; a request is
 * given up together with its connection, because its reply would be taken for another's.
 * ep->lock is held throughout.
 */
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/param.h"
#include "ep/resolve/ask.h"
#include "ep/tx/fail.h"
#include "ep/tx/peer.h"
#include "ep/tx/probe.h"
#include "ep/tx/rpc.h"

void mrf_probe_begin_locked(struct mrf_peer *peer)
{
	struct mrf_conn *conn = peer->conn;

	mrf_lock_held(&peer->ep->lock);
	if (peer->state == MRF_PEER_READY && conn->probed && !mrf_timer_runs(&conn->timer))
		mrf_conn_set_deadline_locked(conn, MRF_PROBE_MS);
}

/* Nothing was answered for so long, while somebody waited. */
static bool is_silent_locked(struct mrf_conn *conn)
{
	int64_t now = mrf_now_ms();

	if (mrf_list_empty(&conn->peer->queue))
		conn->heard = now;
	return now - conn->heard >= mrf_param_int(MRF_PARAM_ANSWER_TIMEOUT);
}

/*
 * The peer's agent has not answered for too long: what waits for it fails. Answers may come
 * still; a reply that is given up may not, and ends the connection. READY.
 */
static void unanswered_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;

	conn->heard = mrf_now_ms();
	mrf_fail_addr_locked(peer, FI_ETIMEDOUT, 4133,
			     "the peer's machine is there, but its process has not answered for "
			     "FI_MRFAB_ANSWER_TIMEOUT milliseconds: was it stopped?");
	mrf_ask_unwant_locked(peer);
	if (!mrf_rpc_awaited_locked(conn))
		return;
	conn->cause = MRF_WC_TIMEOUT;
	mrf_conn_gone_locked(conn);
}

void mrf_probe_locked(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_vwr wr = { .op = MRF_VWR_WRITE };

	mrf_lock_held(&conn->peer->ep->lock);
	conn->probed = mrf_rpc_awaited_locked(conn) || peer->known.asks;
	if (!conn->probed)
		return;
	mrf_conn_set_deadline_locked(conn, MRF_PROBE_MS);
	mrf_peer_progress_locked(peer->ep);
	if (peer->state == MRF_PEER_READY && is_silent_locked(conn))
		unanswered_locked(conn);
	/* Work requests in flight tell as much: they are acknowledged or not. */
	if (peer->state == MRF_PEER_READY && conn->head == conn->tail && mrf_conn_room_locked(conn))
		mrf_conn_post_locked(conn, &wr, NULL, 0);
	mrf_conn_watch_locked(peer);
}
