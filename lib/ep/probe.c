/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer with an outstanding answer or reply is probed every second, in a way that
 * its kernel answers: its machine may go without a word. ep->lock is held throughout.
 */
#include "ep/msg.h"
#include "ep/peer_int.h"

#define PROBE_MS 1000

void mrf_conn_probe(struct mrf_conn *conn)
{
	if (conn->probed)
		return;
	conn->probed = true;
	mrf_agent_kick(conn->peer);
}

void mrf_probe_begin(struct mrf_peer *peer)
{
	struct mrf_conn *conn = peer->conn;

	if (peer->state == MRF_PEER_READY && conn->probed && mrf_list_empty(&conn->timer.node))
		mrf_conn_set_deadline(conn, PROBE_MS);
}

void mrf_probe(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_vwr wr = { .op = MRF_VWR_WRITE };

	conn->probed = mrf_msg_awaited(conn) || peer->asks;
	if (!conn->probed)
		return;
	mrf_conn_set_deadline(conn, PROBE_MS);
	mrf_ep_progress(peer->ep);
	/* What is in flight is acknowledged or not: that tells as much. */
	if (peer->state == MRF_PEER_READY && conn->head == conn->tail && mrf_conn_room(conn))
		mrf_conn_post(conn, &wr, NULL, 0);
	mrf_agent_watch(peer);
}
