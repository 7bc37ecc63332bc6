/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "ep/link/bulk.h"
#include "ep/link/conn.h"
#include "ep/msg/lines.h"

void mrf_bulk_want_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	if (conn->bulk || conn->wants_bulk)
		return;
	conn->wants_bulk = true;
	mrf_conn_kick_locked(conn->peer);
}

/* The pair, and the receives for what its target asks for. Called without ep->lock. */
static int open_bulk_pair(struct mrf_conn *conn, struct mrf_vpair **pair)
{
	struct mrf_ep *ep = conn->peer->ep;
	const struct mrf_vpair_attr attr = { .pd = ep->domain->pd,
					     .send_cq = ep->scq,
					     .recv_cq = ep->lines->vcq,
					     .send_depth = MRF_GRANTS,
					     .recv_depth = 1,
					     .send_sge = MRF_LOCAL_SGE,
					     .recv_sge = 1,
					     .max_inline = MRF_LIMIT_INJECT };
	int ret = mrf_vpair_open(conn->vconn, &attr, pair);

	/* An attempt that failed may have posted them. */
	for (; !ret && conn->backs < MRF_GRANTS; conn->backs += !ret)
		ret = mrf_conn_post_slot(conn, MRF_LINE_NOTES + conn->backs);
	return ret;
}

/* Called without ep->lock. */
static int open_in_places(struct mrf_conn *conn, struct mrf_vpair **pair)
{
	struct mrf_inbox *inbox = conn->peer->ep->inbox;
	int ret = mrf_inbox_take_places(inbox, MRF_GRANTS);

	if (ret)
		return ret;
	ret = open_bulk_pair(conn, pair);
	if (!ret)
		return 0;
	if (*pair)
		mrf_vpair_close(*pair);
	mrf_inbox_give_places(inbox, MRF_GRANTS);
	return ret;
}

static int show_locked(struct mrf_conn *conn, struct mrf_vpair *pair)
{
	struct mrf_ep *ep = conn->peer->ep;
	struct mrf_bulk *bulk = calloc(1, sizeof(*bulk));
	int ret;

	if (!bulk)
		return -FI_ENOMEM;
	bulk->pair = pair;
	bulk->conn = conn;
	bulk->id = mrf_agent_new_id(ep->agent);
	ret = mrf_idmap_insert(&ep->bulks, bulk->id, bulk);
	if (ret)
		free(bulk);
	else
		conn->bulk = bulk;
	return ret;
}

int mrf_bulk_open_locked(struct mrf_conn *conn)
{
	struct mrf_vpair *pair = NULL;
	int ret;

	mrf_lock_held(&conn->peer->ep->lock);
	conn->wants_bulk = false;
	mrf_conn_unlock(conn);
	ret = open_in_places(conn, &pair);
	mrf_conn_lock(conn);
	if (ret)
		return ret;
	ret = show_locked(conn, pair);
	if (!ret)
		return 0;
	mrf_conn_unlock(conn);
	mrf_vpair_close(pair);
	mrf_inbox_give_places(conn->peer->ep->inbox, MRF_GRANTS);
	mrf_conn_lock(conn);
	return ret;
}

int mrf_bulk_connect_locked(struct mrf_conn *conn)
{
	struct mrf_bulk *bulk = conn->bulk;
	struct mrf_vpair_name other = bulk->other;
	int ret;

	mrf_lock_held(&conn->peer->ep->lock);
	mrf_conn_unlock(conn);
	ret = mrf_vpair_connect(bulk->pair, conn->vconn, &other);
	mrf_conn_lock(conn);
	bulk->connected = !ret;
	return ret;
}

void mrf_bulk_shut_locked(struct mrf_conn *conn)
{
	struct mrf_bulk *bulk = conn->bulk;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!bulk || !bulk->pair)
		return;
	bulk->connected = false;
	mrf_conn_unlock(conn);
	mrf_vpair_close(bulk->pair);
	mrf_inbox_give_places(conn->peer->ep->inbox, MRF_GRANTS);
	mrf_conn_lock(conn);
	bulk->pair = NULL;
}

void mrf_bulk_free_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	if (!conn->bulk)
		return;
	mrf_idmap_remove(&conn->peer->ep->bulks, conn->bulk->id);
	free(conn->bulk);
	conn->bulk = NULL;
}

void mrf_bulk_end_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	mrf_bulk_shut_locked(conn);
	mrf_bulk_free_locked(conn);
}

struct mrf_frame_bulk mrf_bulk_name(const struct mrf_conn *conn)
{
	struct mrf_vpair_name name;

	if (!conn->bulk || conn->bulk->named)
		return (struct mrf_frame_bulk){ .qp = 0 };
	name = mrf_vpair_name(conn->bulk->pair);
	return (struct mrf_frame_bulk){ .qp = name.qpn, .psn = name.psn };
}
