/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/ep_calls.h"
#include "ep/tx/chores.h"
#include "ep/tx/entry.h"

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	int ret = mrf_obj_check(&ep->obj, "fi_cancel");

	if (ret)
		return ret;
	mrf_lock_take(&ep->lock);
	ret = mrf_entry_cancel_locked(ep, context);
	mrf_chores_unlock(ep);
	return ret;
}

static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct mrf_ep *ep = mrf_container_of(fid, struct mrf_ep, fid);
	ssize_t left = mrf_obj_check(&ep->obj, "fi_tx_size_left");

	if (left)
		return left;
	mrf_lock_take(&ep->lock);
	left = ep->nops < ep->max_ops ? (ssize_t)(ep->max_ops - ep->nops) : 0;
	mrf_lock_release(&ep->lock);
	return left;
}

static int cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	size_t room, len = mrf_addr_len(&ep->addr);
	int ret = mrf_obj_check(&ep->obj, "fi_getname");

	if (ret)
		return ret;
	if (!addrlen || (!addr && *addrlen))
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4055,
				  "the address or its length is NULL");
	room = *addrlen;
	*addrlen = len;
	if (room)
		memcpy(addr, &ep->addr, mrf_min(room, len));
	/* Not logged: applications ask with too little room to learn the length. */
	return room < len ? -FI_ETOOSMALL : 0;
}

/* --- what there is not --------------------------------------------------------------------- */

/* The functions here look at none of their arguments, but at what names an option. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int no_option(int level, int optname)
{
	return mrf_refuse(FI_ENOPROTOOPT, FI_LOG_EP_CTRL, 4054,
			  "option %d of level %d is not known: there are no options", optname,
			  level);
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return no_option(level, optname);
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return no_option(level, optname);
}

/* Defines the function of a call for endpoints of other types. */
#define NO_CALL(type, name, call, ...)                                                \
	static type name(__VA_ARGS__)                                                 \
	{                                                                             \
		return mrf_refuse(FI_ENOSYS, FI_LOG_EP_CTRL, 4053,                    \
				  "%s is not offered for FI_EP_RDM endpoints", call); \
	}

NO_CALL(int, ep_tx_ctx, "fi_tx_context", struct fid_ep *sep, int index, struct fi_tx_attr *attr,
	struct fid_ep **tx_ep, void *context)
NO_CALL(int, ep_rx_ctx, "fi_rx_context", struct fid_ep *sep, int index, struct fi_rx_attr *attr,
	struct fid_ep **rx_ep, void *context)
NO_CALL(ssize_t, ep_rx_size_left, "fi_rx_size_left", struct fid_ep *ep)
NO_CALL(int, cm_setname, "fi_setname", fid_t fid, void *addr, size_t addrlen)
NO_CALL(int, cm_getpeer, "fi_getpeer", struct fid_ep *ep, void *addr, size_t *addrlen)
NO_CALL(int, cm_connect, "fi_connect", struct fid_ep *ep, const void *addr, const void *param,
	size_t paramlen)
NO_CALL(int, cm_listen, "fi_listen", struct fid_pep *pep)
NO_CALL(int, cm_accept, "fi_accept", struct fid_ep *ep, const void *param, size_t paramlen)
NO_CALL(int, cm_reject, "fi_reject", struct fid_pep *pep, fid_t handle, const void *param,
	size_t paramlen)
NO_CALL(int, cm_shutdown, "fi_shutdown", struct fid_ep *ep, uint64_t flags)
NO_CALL(int, cm_join, "fi_join", struct fid_ep *ep, const void *addr, uint64_t flags,
	struct fid_mc **mc, void *context)

struct fi_ops_ep mrf_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = ep_tx_ctx,
	.rx_ctx = ep_rx_ctx,
	.rx_size_left = ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};

struct fi_ops_cm mrf_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cm_setname,
	.getname = cm_getname,
	.getpeer = cm_getpeer,
	.connect = cm_connect,
	.listen = cm_listen,
	.accept = cm_accept,
	.reject = cm_reject,
	.shutdown = cm_shutdown,
	.join = cm_join,
};
