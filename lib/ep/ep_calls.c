/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/ep_calls.h"
#include "ep/tx/chores.h"
#include "ep/tx/entry.h"

static int no_call(const char *call)
{
	return mrf_refuse(FI_ENOSYS, FI_LOG_EP_CTRL, 4053,
			  "%s is not offered for FI_EP_RDM endpoints", call);
}

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

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	(void)fid;
	(void)optval;
	(void)optlen;
	return mrf_refuse(FI_ENOPROTOOPT, FI_LOG_EP_CTRL, 4054,
			  "option %d of level %d is not known: there are no options", optname,
			  level);
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	(void)fid;
	(void)optval;
	(void)optlen;
	return mrf_refuse(FI_ENOPROTOOPT, FI_LOG_EP_CTRL, 4054,
			  "option %d of level %d is not known: there are no options", optname,
			  level);
}

static int ep_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		     void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)tx_ep;
	(void)context;
	return no_call("fi_tx_context");
}

static int ep_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		     void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)rx_ep;
	(void)context;
	return no_call("fi_rx_context");
}

static ssize_t ep_rx_size_left(struct fid_ep *ep)
{
	(void)ep;
	return no_call("fi_rx_size_left");
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

static int cm_setname(fid_t fid, void *addr, size_t addrlen)
{
	(void)fid;
	(void)addr;
	(void)addrlen;
	return no_call("fi_setname");
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

static int cm_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep;
	(void)addr;
	(void)addrlen;
	return no_call("fi_getpeer");
}

static int cm_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	(void)ep;
	(void)addr;
	(void)param;
	(void)paramlen;
	return no_call("fi_connect");
}

static int cm_listen(struct fid_pep *pep)
{
	(void)pep;
	return no_call("fi_listen");
}

static int cm_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	(void)ep;
	(void)param;
	(void)paramlen;
	return no_call("fi_accept");
}

static int cm_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	(void)pep;
	(void)handle;
	(void)param;
	(void)paramlen;
	return no_call("fi_reject");
}

static int cm_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep;
	(void)flags;
	return no_call("fi_shutdown");
}

static int cm_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		   void *context)
{
	(void)ep;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return no_call("fi_join");
}

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
