/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/ask.h"
#include "ep/conn.h"
#include "ep/denied.h"
#include "ep/fail.h"

void mrf_agent_suspect(struct mrf_agent *agent)
{
	if (!agent->suspect_said)
		mrf_warn(FI_LOG_EP_CTRL, 5205,
			 "the credentials of this process have changed since it opened "
			 "the domain: the kernel takes no more of its work requests, "
			 "and its connections end (open fabric, domain and endpoints "
			 "after such changes)");
	agent->suspect_said = true;
	agent->suspect = true;
}

/* --- letting go ----------------------------------------------------------------------- */

/* The first owner that is not done with yet; what it takes may change the map. */
struct search {
	struct mrf_pasv *pasv;
	struct mrf_conn *conn;
};

static bool has_to_end(struct mrf_conn *conn)
{
	struct mrf_ep *ep = conn->peer->ep;
	enum mrf_peer_state state;

	mrf_lock_take(&ep->lock);
	state = conn->peer->state;
	mrf_lock_release(&ep->lock);
	return state == MRF_PEER_READY || state == MRF_PEER_CONNECTING;
}

static void search_one(void *value, void *arg)
{
	struct mrf_owner *owner = value;
	struct search *found = arg;

	if (owner->kind == MRF_OWNER_PASV)
		found->pasv = mrf_pasv_of(owner);
	else if (owner->kind == MRF_OWNER_CONN && !found->conn &&
		 has_to_end(mrf_container_of(owner, struct mrf_conn, owner)))
		found->conn = mrf_container_of(owner, struct mrf_conn, owner);
}

static void end_conn(struct mrf_conn *conn)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_ep *ep = peer->ep;

	mrf_lock_take(&ep->lock);
	if (peer->state == MRF_PEER_READY) {
		mrf_conn_denied(conn);
	} else {
		mrf_conn_destroy(conn);
		mrf_peer_rewind(peer);
		mrf_peer_denied(peer);
	}
	mrf_lock_release(&ep->lock);
}

void mrf_agent_denied(struct mrf_agent *agent)
{
	struct search found;

	if (atomic_exchange(&agent->denied, true))
		return;
	mrf_agent_suspect(agent);
	epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, mrf_vcm_fd(agent->cm), NULL);
	mrf_vcm_abandon(agent->cm);
	do {
		found = (struct search){ 0 };
		mrf_idmap_each(&agent->owners, search_one, &found);
		if (found.pasv)
			mrf_pasv_gone(found.pasv);
		if (found.conn)
			end_conn(found.conn);
	} while (found.pasv || found.conn);
}

int mrf_agent_refuse(void)
{
	return mrf_refuse(FI_EACCES, FI_LOG_EP_CTRL, 5204, "%s", MRF_DENIED_TEXT);
}
