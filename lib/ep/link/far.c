/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "ep/link/conn.h"
#include "ep/link/far.h"

void mrf_far_want_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	if (conn->far || conn->wants_far)
		return;
	conn->wants_far = true;
	mrf_conn_kick_locked(conn->peer);
}

/* Called without ep->lock. */
static int open_far_pair(struct mrf_conn *conn, struct mrf_vpair **pair)
{
	struct mrf_ep *ep = conn->peer->ep;
	const struct mrf_vpair_attr attr = { .pd = ep->domain->pd,
					     .send_cq = ep->scq,
					     .recv_cq = ep->scq,
					     .send_depth = MRF_PROTO_STAGES,
					     .recv_depth = MRF_FAR_IN,
					     .send_sge = MRF_LOCAL_SGE,
					     .recv_sge = MRF_LOCAL_SGE,
					     .max_inline = MRF_LIMIT_INJECT };

	return mrf_vpair_open(conn->vconn, &attr, pair);
}

static int name_ids_locked(struct mrf_ep *ep, struct mrf_far *far)
{
	int ret;

	mrf_lock_held(&ep->lock);
	far->out_id = mrf_agent_new_id(ep->agent);
	far->in_id = mrf_agent_new_id(ep->agent);
	ret = mrf_idmap_insert(&ep->fars, far->out_id, far);
	if (ret)
		return ret;
	ret = mrf_idmap_insert(&ep->fars, far->in_id, far);
	if (ret)
		mrf_idmap_remove(&ep->fars, far->out_id);
	return ret;
}

static int show_far_locked(struct mrf_conn *conn, struct mrf_vpair *pair)
{
	struct mrf_far *far = calloc(1, sizeof(*far));
	int ret;

	if (!far)
		return -FI_ENOMEM;
	far->pair = pair;
	far->conn = conn;
	ret = name_ids_locked(conn->peer->ep, far);
	if (ret)
		free(far);
	else
		conn->far = far;
	return ret;
}

int mrf_far_open_locked(struct mrf_conn *conn)
{
	struct mrf_vpair *pair = NULL;
	int ret;

	mrf_lock_held(&conn->peer->ep->lock);
	conn->wants_far = false;
	mrf_conn_unlock(conn);
	ret = open_far_pair(conn, &pair);
	mrf_conn_lock(conn);
	if (ret)
		return ret;
	ret = show_far_locked(conn, pair);
	if (!ret)
		return 0;
	mrf_conn_unlock(conn);
	mrf_vpair_close(pair);
	mrf_conn_lock(conn);
	return ret;
}

int mrf_far_connect_locked(struct mrf_conn *conn)
{
	struct mrf_far *far = conn->far;
	struct mrf_vpair_name other = far->other;
	int ret;

	mrf_lock_held(&conn->peer->ep->lock);
	mrf_conn_unlock(conn);
	ret = mrf_vpair_connect(far->pair, conn->vconn, &other);
	mrf_conn_lock(conn);
	far->connected = !ret;
	return ret;
}

void mrf_far_shut_locked(struct mrf_conn *conn)
{
	struct mrf_far *far = conn->far;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!far || !far->pair)
		return;
	far->connected = false;
	mrf_conn_unlock(conn);
	mrf_vpair_close(far->pair);
	mrf_conn_lock(conn);
	far->pair = NULL;
}

void mrf_far_free_locked(struct mrf_conn *conn)
{
	struct mrf_far *far = conn->far;

	mrf_lock_held(&conn->peer->ep->lock);
	if (!far)
		return;
	mrf_idmap_remove(&conn->peer->ep->fars, far->out_id);
	mrf_idmap_remove(&conn->peer->ep->fars, far->in_id);
	free(far);
	conn->far = NULL;
}

void mrf_far_end_locked(struct mrf_conn *conn)
{
	mrf_lock_held(&conn->peer->ep->lock);
	mrf_far_shut_locked(conn);
	mrf_far_free_locked(conn);
}
