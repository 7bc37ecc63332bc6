/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/ep_name.h"
#include "ep/ep_ops.h"
#include "ep/msg/recv.h"
#include "ep/tx/chores.h"
#include "ep/tx/entry.h"

enum { NO_MSG = 4090, NO_TAGGED, NO_ATOMIC, NO_COLLECTIVE };

static int lacking(unsigned code, const char *call, const char *cap)
{
	if (code != NO_COLLECTIVE)
		return mrf_refuse(FI_ENOSYS, FI_LOG_EP_DATA, code,
				  "%s needs %s, which this endpoint was not opened with", call,
				  cap);
	return mrf_refuse(FI_ENOSYS, FI_LOG_EP_DATA, code,
			  "%s needs %s, which this library does not offer", call, cap);
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	int ret = mrf_obj_check(&ep->obj, "fi_cancel");

	if (ret)
		return ret;
	mrf_lock_take(&ep->lock);
	ret = mrf_entry_cancel_locked(ep, context);
	if (ret == -FI_ENOENT && ep->caps & FI_RECV)
		ret = mrf_recv_cancel_locked(ep, context);
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

static ssize_t ep_rx_size_left(struct fid_ep *fid)
{
	struct mrf_ep *ep = mrf_container_of(fid, struct mrf_ep, fid);
	ssize_t left = mrf_obj_check(&ep->obj, "fi_rx_size_left");
	size_t posted;

	if (left)
		return left;
	if (!(ep->caps & FI_RECV))
		return lacking(NO_MSG, "fi_rx_size_left",
			       ep->caps & MRF_CAPS_MSG_WHATS ? "FI_RECV" : "FI_MSG or FI_TAGGED");
	mrf_lock_take(&ep->lock);
	posted = mrf_recv_posted_locked(ep);
	mrf_lock_release(&ep->lock);
	return posted < ep->max_recvs ? (ssize_t)(ep->max_recvs - posted) : 0;
}

/* --- options -------------------------------------------------------------------------- */

static int check_option(const struct mrf_ep *ep, int level, int optname)
{
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return mrf_refuse(
			FI_ENOPROTOOPT, FI_LOG_EP_CTRL, 4054,
			"option %d of level %d is not known: FI_OPT_MIN_MULTI_RECV (%d) of "
			"FI_OPT_ENDPOINT is the only one",
			optname, level, FI_OPT_MIN_MULTI_RECV);
	if (ep->caps & FI_MULTI_RECV && ep->inbox)
		return 0;
	return mrf_refuse(
		FI_ENOPROTOOPT, FI_LOG_EP_CTRL, 4080,
		"FI_OPT_MIN_MULTI_RECV: the endpoint was opened without FI_MULTI_RECV, or "
		"without messages");
}

static int bad_value(const char *call)
{
	return mrf_refuse(
		FI_EINVAL, FI_LOG_EP_CTRL, 4081,
		"%s: FI_OPT_MIN_MULTI_RECV is a size_t, and neither the value nor its length "
		"may be NULL",
		call);
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	int ret = mrf_obj_check(&ep->obj, "fi_getopt");
	bool fits;

	if (!ret)
		ret = check_option(ep, level, optname);
	if (ret)
		return ret;
	if (!optlen || (!optval && *optlen))
		return bad_value("fi_getopt");
	fits = *optlen >= sizeof(ep->min_multi);
	*optlen = sizeof(ep->min_multi);
	/* Not logged: applications ask with too little room to learn the length. */
	if (!fits)
		return -FI_ETOOSMALL;
	mrf_lock_take(&ep->lock);
	memcpy(optval, &ep->min_multi, sizeof(ep->min_multi));
	mrf_lock_release(&ep->lock);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	int ret = mrf_obj_check(&ep->obj, "fi_setopt");

	if (!ret)
		ret = check_option(ep, level, optname);
	if (ret)
		return ret;
	if (!optval || optlen != sizeof(ep->min_multi))
		return bad_value("fi_setopt");
	mrf_lock_take(&ep->lock);
	memcpy(&ep->min_multi, optval, sizeof(ep->min_multi));
	mrf_lock_release(&ep->lock);
	return 0;
}

/* --- what there is not --------------------------------------------------------------------- */

/* The functions here look at none of their arguments except the name of an option. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

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
	.setname = mrf_ep_setname,
	.getname = mrf_ep_getname,
	.getpeer = cm_getpeer,
	.connect = cm_connect,
	.listen = cm_listen,
	.accept = cm_accept,
	.reject = cm_reject,
	.shutdown = cm_shutdown,
	.join = cm_join,
};

/* --- what needs a capability that there is not ----------------------------------------------- */

/* Defines no_<kind>_<slot>, the function of one slot, and the call that reaches it. */
#define NO(type, kind, slot, code, call, cap, ...)                     \
	static type no_##kind##_##slot(struct fid_ep *ep, __VA_ARGS__) \
	{                                                              \
		return lacking(code, call, cap);                       \
	}

#define MSG(slot, call, ...) NO(ssize_t, msg, slot, NO_MSG, call, "FI_MSG", __VA_ARGS__)
#define TAGGED(slot, call, ...) NO(ssize_t, tagged, slot, NO_TAGGED, call, "FI_TAGGED", __VA_ARGS__)
#define ATOMIC(ret, slot, call, ...) \
	NO(ret, atomic, slot, NO_ATOMIC, call, "FI_ATOMIC", __VA_ARGS__)
#define COLL(slot, call, ...) \
	NO(ssize_t, coll, slot, NO_COLLECTIVE, call, "FI_COLLECTIVE", __VA_ARGS__)

/* Groups of parameters that many calls share. */
#define VEC const struct iovec *iov, void **desc, size_t count
#define SEND const void *buf, size_t len, void *desc
#define FETCHED struct fi_ioc *resv, void **resd, size_t resn
#define COMPARED const struct fi_ioc *cmpv, void **cmpd, size_t cmpn
#define TARGET fi_addr_t peer, uint64_t addr, uint64_t key
#define KIND enum fi_datatype type, enum fi_op op
#define FROM_TO const void *buf, size_t n, void *desc, void *res, void *resd

MSG(recv, "fi_recv", void *buf, size_t len, void *desc, fi_addr_t peer, void *ctx)
MSG(recvv, "fi_recvv", VEC, fi_addr_t peer, void *ctx)
MSG(recvmsg, "fi_recvmsg", const struct fi_msg *msg, uint64_t flags)
MSG(send, "fi_send", SEND, fi_addr_t peer, void *ctx)
MSG(sendv, "fi_sendv", VEC, fi_addr_t peer, void *ctx)
MSG(sendmsg, "fi_sendmsg", const struct fi_msg *msg, uint64_t flags)
MSG(inject, "fi_inject", const void *buf, size_t len, fi_addr_t peer)
MSG(senddata, "fi_senddata", SEND, uint64_t data, fi_addr_t peer, void *ctx)
MSG(injectdata, "fi_injectdata", const void *buf, size_t len, uint64_t data, fi_addr_t peer)

struct fi_ops_msg mrf_no_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = no_msg_recv,
	.recvv = no_msg_recvv,
	.recvmsg = no_msg_recvmsg,
	.send = no_msg_send,
	.sendv = no_msg_sendv,
	.sendmsg = no_msg_sendmsg,
	.inject = no_msg_inject,
	.senddata = no_msg_senddata,
	.injectdata = no_msg_injectdata,
};

TAGGED(recv, "fi_trecv", void *buf, size_t len, void *desc, fi_addr_t peer, uint64_t tag,
       uint64_t ignore, void *ctx)
TAGGED(recvv, "fi_trecvv", VEC, fi_addr_t peer, uint64_t tag, uint64_t ignore, void *ctx)
TAGGED(recvmsg, "fi_trecvmsg", const struct fi_msg_tagged *msg, uint64_t flags)
TAGGED(send, "fi_tsend", SEND, fi_addr_t peer, uint64_t tag, void *ctx)
TAGGED(sendv, "fi_tsendv", VEC, fi_addr_t peer, uint64_t tag, void *ctx)
TAGGED(sendmsg, "fi_tsendmsg", const struct fi_msg_tagged *msg, uint64_t flags)
TAGGED(inject, "fi_tinject", const void *buf, size_t len, fi_addr_t peer, uint64_t tag)
TAGGED(senddata, "fi_tsenddata", SEND, uint64_t data, fi_addr_t peer, uint64_t tag, void *ctx)
TAGGED(injectdata, "fi_tinjectdata", const void *buf, size_t len, uint64_t data, fi_addr_t peer,
       uint64_t tag)

struct fi_ops_tagged mrf_no_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = no_tagged_recv,
	.recvv = no_tagged_recvv,
	.recvmsg = no_tagged_recvmsg,
	.send = no_tagged_send,
	.sendv = no_tagged_sendv,
	.sendmsg = no_tagged_sendmsg,
	.inject = no_tagged_inject,
	.senddata = no_tagged_senddata,
	.injectdata = no_tagged_injectdata,
};

ATOMIC(ssize_t, write, "fi_atomic", SEND, TARGET, KIND, void *ctx)
ATOMIC(ssize_t, writev, "fi_atomicv", const struct fi_ioc *iov, void **desc, size_t n, TARGET, KIND,
       void *ctx)
ATOMIC(ssize_t, writemsg, "fi_atomicmsg", const struct fi_msg_atomic *msg, uint64_t flags)
ATOMIC(ssize_t, inject, "fi_inject_atomic", const void *buf, size_t n, TARGET, KIND)
ATOMIC(ssize_t, readwrite, "fi_fetch_atomic", FROM_TO, TARGET, KIND, void *ctx)
ATOMIC(ssize_t, readwritev, "fi_fetch_atomicv", const struct fi_ioc *iov, void **desc, size_t n,
       FETCHED, TARGET, KIND, void *ctx)
ATOMIC(ssize_t, readwritemsg, "fi_fetch_atomicmsg", const struct fi_msg_atomic *msg, FETCHED,
       uint64_t flags)
ATOMIC(ssize_t, compwrite, "fi_compare_atomic", SEND, const void *cmp, void *cmpd, void *res,
       void *resd, TARGET, KIND, void *ctx)
ATOMIC(ssize_t, compwritev, "fi_compare_atomicv", const struct fi_ioc *iov, void **desc, size_t n,
       COMPARED, FETCHED, TARGET, KIND, void *ctx)
ATOMIC(ssize_t, compwritemsg, "fi_compare_atomicmsg", const struct fi_msg_atomic *msg, COMPARED,
       FETCHED, uint64_t flags)
ATOMIC(int, writevalid, "fi_atomicvalid", KIND, size_t *n)
ATOMIC(int, readwritevalid, "fi_fetch_atomicvalid", KIND, size_t *n)
ATOMIC(int, compwritevalid, "fi_compare_atomicvalid", KIND, size_t *n)

struct fi_ops_atomic mrf_no_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = no_atomic_write,
	.writev = no_atomic_writev,
	.writemsg = no_atomic_writemsg,
	.inject = no_atomic_inject,
	.readwrite = no_atomic_readwrite,
	.readwritev = no_atomic_readwritev,
	.readwritemsg = no_atomic_readwritemsg,
	.compwrite = no_atomic_compwrite,
	.compwritev = no_atomic_compwritev,
	.compwritemsg = no_atomic_compwritemsg,
	.writevalid = no_atomic_writevalid,
	.readwritevalid = no_atomic_readwritevalid,
	.compwritevalid = no_atomic_compwritevalid,
};

COLL(barrier, "fi_barrier", fi_addr_t coll, void *ctx)
COLL(barrier2, "fi_barrier2", fi_addr_t coll, uint64_t flags, void *ctx)
COLL(broadcast, "fi_broadcast", void *buf, size_t n, void *desc, fi_addr_t coll, fi_addr_t root,
     enum fi_datatype type, uint64_t flags, void *ctx)
COLL(alltoall, "fi_alltoall", FROM_TO, fi_addr_t coll, enum fi_datatype type, uint64_t flags,
     void *ctx)
COLL(allreduce, "fi_allreduce", FROM_TO, fi_addr_t coll, KIND, uint64_t flags, void *ctx)
COLL(allgather, "fi_allgather", FROM_TO, fi_addr_t coll, enum fi_datatype type, uint64_t flags,
     void *ctx)
COLL(reduce_scatter, "fi_reduce_scatter", FROM_TO, fi_addr_t coll, KIND, uint64_t flags, void *ctx)
COLL(reduce, "fi_reduce", FROM_TO, fi_addr_t coll, fi_addr_t root, KIND, uint64_t flags, void *ctx)
COLL(scatter, "fi_scatter", FROM_TO, fi_addr_t coll, fi_addr_t root, enum fi_datatype type,
     uint64_t flags, void *ctx)
COLL(gather, "fi_gather", FROM_TO, fi_addr_t coll, fi_addr_t root, enum fi_datatype type,
     uint64_t flags, void *ctx)
COLL(msg, "a collective message", const struct fi_msg_collective *msg, FETCHED, uint64_t flags)

struct fi_ops_collective mrf_no_collective = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = no_coll_barrier,
	.broadcast = no_coll_broadcast,
	.alltoall = no_coll_alltoall,
	.allreduce = no_coll_allreduce,
	.allgather = no_coll_allgather,
	.reduce_scatter = no_coll_reduce_scatter,
	.reduce = no_coll_reduce,
	.scatter = no_coll_scatter,
	.gather = no_coll_gather,
	.msg = no_coll_msg,
	.barrier2 = no_coll_barrier2,
};
