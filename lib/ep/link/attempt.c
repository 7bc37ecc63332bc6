/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel looks for the peer's address for MRF_RESOLVE_MS at a time, again and again
 * until FI_MRFAB_CONN_TIMEOUT: an answer that arrives before the kernel waits for one is
 * found only by a new search.
 */
#include <rdma/fi_errno.h>
#include "base/param.h"
#include "ep/link/attempt.h"
#include "ep/link/greet.h"

int mrf_attempt_timeout(void)
{
	return (int)mrf_param_int(MRF_PARAM_CONN_TIMEOUT);
}

/* --- failures ------------------------------------------------------------------------------ */

enum mrf_attempt mrf_attempt_fail_locked(const struct mrf_peer *peer, int err, int code,
					 const char *text, struct mrf_why *why)
{
	mrf_lock_held(&peer->ep->lock);
	/* The error may be about this address, or about everything that this process asks for. */
	peer->ep->agent->suspect |= err == FI_EACCES;
	mrf_why_set(why, err, code, "%s", text);
	return MRF_ATTEMPT_FAILED;
}

enum mrf_attempt mrf_attempt_lost_locked(const struct mrf_peer *peer, struct mrf_why *why)
{
	mrf_lock_held(&peer->ep->lock);
	return mrf_attempt_fail_locked(peer, FI_ECONNRESET, 4127,
				       "the peer went away while the connection was being made",
				       why);
}

/* The kernel has given up. */
static enum mrf_attempt on_failed_locked(const struct mrf_peer *peer, int err, struct mrf_why *why)
{
	const char *text = "the address cannot be reached over this device";

	if (err == FI_EACCES)
		return mrf_attempt_fail_locked(peer, err, 5204, MRF_DENIED_TEXT, why);
	if (err == FI_ETIMEDOUT)
		text = "no answer to the connection request";
	return mrf_attempt_fail_locked(peer, err, 4128, text, why);
}

/* --- LOOKING to ASKING --------------------------------------------------------------------- */

enum mrf_attempt mrf_attempt_resolve_locked(struct mrf_conn *conn, struct mrf_why *why)
{
	const struct mrf_peer *peer = conn->peer;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_resolve(conn->vconn, &peer->ep->domain->addr.sa, &peer->addr.sa,
				mrf_min(mrf_attempt_timeout(), MRF_RESOLVE_MS),
				(unsigned)mrf_param_int(MRF_PARAM_ACK_TIMEOUT));
	mrf_conn_lock(conn);
	if (!ret)
		return MRF_ATTEMPT_GOES_ON;
	return mrf_attempt_fail_locked(peer, -ret, 4121,
				       "there is no route from the domain's address: is its "
				       "interface up, and is the peer in a network that it reaches "
				       "(ip route get)?",
				       why);
}

/* Without ep->lock. */
static int create_conn_qp(struct mrf_conn *conn)
{
	struct mrf_ep *ep = conn->peer->ep;
	struct mrf_vqp_attr attr = { .pd = ep->domain->pd,
				     .send_cq = ep->scq,
				     .recv_cq = conn->owner.cq->vcq,
				     .send_depth = MRF_CONN_RING - 1,
				     .recv_depth = MRF_CONN_SLOTS,
				     .send_sge = MRF_LOCAL_SGE,
				     .max_inline = MRF_LIMIT_INJECT };
	unsigned i;
	int ret = mrf_vconn_create_qp(conn->vconn, &attr);

	for (i = 0; !ret && i < MRF_CONN_SLOTS; i++)
		ret = mrf_conn_post_slot(conn, i);
	return ret;
}

static enum mrf_attempt on_addr_locked(struct mrf_conn *conn, struct mrf_why *why)
{
	int ret;

	mrf_peer_move_locked(conn->peer, MRF_PEER_FOUND);
	mrf_conn_unlock(conn);
	ret = create_conn_qp(conn);
	if (!ret)
		ret = mrf_vconn_route(conn->vconn, mrf_attempt_timeout());
	mrf_conn_lock(conn);
	if (!ret)
		return MRF_ATTEMPT_GOES_ON;
	return mrf_attempt_fail_locked(conn->peer, -ret, 4122,
				       "no queue pair can be made, or there is no route", why);
}

static enum mrf_attempt on_route_locked(struct mrf_conn *conn, struct mrf_why *why)
{
	struct mrf_hello hello = { .ticket = conn->peer->target.ticket,
				   .lost = conn->peer->target.lost };
	uint8_t data[MRF_PROTO_HELLO_MAX];
	int ret;

	mrf_greet_hello_locked(conn, &hello);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_connect(conn->vconn, data, mrf_hello_encode(&hello, data),
				(unsigned)mrf_param_int(MRF_PARAM_RETRY));
	mrf_conn_lock(conn);
	if (ret)
		return mrf_attempt_fail_locked(conn->peer, -ret, 4123,
					       "the connection request was not accepted", why);
	mrf_peer_move_locked(conn->peer, MRF_PEER_ASK);
	return MRF_ATTEMPT_ASKED;
}

/* --- ASKING to READY ----------------------------------------------------------------------- */

/* Before anything is posted on it; without ep->lock. */
static void begin_counting(struct mrf_conn *conn)
{
	uint32_t mtu;

	mrf_vdev_retries(conn->peer->ep->domain->vdev, &conn->retries);
	/* Messages are counted as one packet each. */
	if (!mrf_vconn_psn(conn->vconn, &conn->psn, &mtu) && mtu >= MRF_PROTO_MAX_REQUEST)
		conn->mtu = mtu;
}

enum mrf_attempt mrf_attempt_establish_locked(struct mrf_conn *conn, struct mrf_why *why)
{
	struct mrf_peer *peer = conn->peer;
	int ret;

	mrf_lock_held(&peer->ep->lock);
	mrf_conn_unlock(conn);
	ret = mrf_vconn_establish(conn->vconn);
	if (!ret)
		begin_counting(conn);
	mrf_conn_lock(conn);
	if (ret == -FI_ECONNRESET)
		return mrf_attempt_lost_locked(peer, why);
	if (ret)
		return mrf_attempt_fail_locked(peer, -ret, 4201,
					       "the connection cannot be completed", why);
	mrf_timer_stop(peer->ep->agent, &conn->timer);
	mrf_peer_move_locked(peer, MRF_PEER_UP);
	return MRF_ATTEMPT_GOES_ON;
}

enum mrf_attempt mrf_attempt_event_locked(struct mrf_conn *conn, const struct mrf_cm_event *event,
					  struct mrf_why *why)
{
	uint32_t reason;

	mrf_lock_held(&conn->peer->ep->lock);
	switch (event->type) {
	case MRF_CM_ADDR_RESOLVED:
		return on_addr_locked(conn, why);
	case MRF_CM_UNRESOLVED:
		return MRF_ATTEMPT_NOT_FOUND;
	case MRF_CM_ROUTE_RESOLVED:
		return on_route_locked(conn, why);
	case MRF_CM_RESPONSE:
		return mrf_greet_welcomed_locked(conn, event, why) ? MRF_ATTEMPT_WELCOMED
								   : MRF_ATTEMPT_FAILED;
	case MRF_CM_REJECTED:
		/* Did an endpoint refuse, or does none listen? */
		return mrf_refuse_decode(event->data, event->len, &reason) ? MRF_ATTEMPT_NOBODY
									   : MRF_ATTEMPT_REFUSED;
	case MRF_CM_FAILED:
		return on_failed_locked(conn->peer, event->err, why);
	case MRF_CM_DISCONNECTED:
	case MRF_CM_REMOVED:
		return mrf_attempt_lost_locked(conn->peer, why);
	default:
		return MRF_ATTEMPT_GOES_ON;
	}
}
