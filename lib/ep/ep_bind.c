/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/rules.h"
#include "ep/ep_ops.h"
#include "loop/agent_calls.h"

static int other_domain(const char *what)
{
	return mrf_refuse(FI_EDOMAIN, FI_LOG_EP_CTRL, 4040,
			  "%s belongs to another domain than the endpoint", what);
}

static int bound_already(const char *what)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4041, "%s is bound already", what);
}

static void av_removed(struct mrf_av_watch *watch)
{
	struct mrf_ep *ep = mrf_container_of(watch, struct mrf_ep, av_watch);

	mrf_agent_removed(ep->agent);
}

static int bind_av_locked(struct mrf_ep *ep, struct fid *fid)
{
	struct mrf_av *av = mrf_av_from_fid(fid);

	if (mrf_av_obj(av)->parent.target != &ep->domain->obj)
		return other_domain("the address vector");
	if (ep->av)
		return bound_already("an address vector");
	ep->av = av;
	ep->av_watch.removed = av_removed;
	mrf_av_watch(av, &ep->av_watch);
	mrf_obj_hold(&ep->hold_av, mrf_av_obj(av), &ep->fid.fid, NULL);
	return 0;
}

#define CQ_FLAGS (FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)

static int bind_tx_cq_locked(struct mrf_ep *ep, struct mrf_cq *cq, uint64_t flags)
{
	int ret;

	if (ep->tx_cq)
		return bound_already("a CQ for transmits");
	ret = mrf_wait_link(mrf_cq_obj(cq)->wait, &ep->link_tx, &ep->source);
	if (ret)
		return ret;
	ep->tx_cq = cq;
	ep->selective = flags & FI_SELECTIVE_COMPLETION;
	mrf_obj_hold(&ep->hold_tx, mrf_cq_obj(cq), &ep->fid.fid, NULL);
	return 0;
}

static int bind_cq_locked(struct mrf_ep *ep, struct fid *fid, uint64_t flags)
{
	struct mrf_cq *cq = mrf_cq_from_fid(fid);
	int ret = 0;

	if (mrf_cq_obj(cq)->parent.target != &ep->domain->obj)
		return other_domain("the CQ");
	if (!(flags & (FI_TRANSMIT | FI_RECV)) || (flags & ~CQ_FLAGS))
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_CTRL, 4042,
				  "flags %#lx: a CQ is bound with FI_TRANSMIT, FI_RECV, "
				  "FI_SELECTIVE_COMPLETION",
				  (unsigned long)flags);
	if ((flags & FI_RECV) && ep->rx_cq)
		return bound_already("a CQ for receives");
	if (flags & FI_TRANSMIT)
		ret = bind_tx_cq_locked(ep, cq, flags);
	if (!ret && (flags & FI_RECV)) {
		ep->rx_cq = cq;
		/* One line for each endpoint is enough. */
		if (cq != ep->tx_cq)
			mrf_obj_hold(&ep->hold_rx, mrf_cq_obj(cq), &ep->fid.fid, NULL);
	}
	return ret;
}

#define CNTR_FLAGS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* False: operations are in flight, and the counter would count only a part of them. */
static bool set_cntr(struct mrf_ep *ep, struct mrf_cntr *cntr, uint64_t flags)
{
	bool idle;

	mrf_lock_take(&ep->lock);
	idle = ep->nops == atomic_load(&ep->ended);
	if (idle && (flags & FI_WRITE))
		ep->wr_cntr = cntr;
	if (idle && (flags & FI_READ))
		ep->rd_cntr = cntr;
	mrf_lock_release(&ep->lock);
	return idle;
}

static int link_cntr_locked(struct mrf_ep *ep, struct mrf_cntr *cntr, uint64_t flags)
{
	struct mrf_wait *wait = mrf_cntr_obj(cntr)->wait;
	int ret = flags & FI_WRITE ? mrf_wait_link(wait, &ep->link_wr, &ep->source) : 0;

	if (!ret && (flags & FI_READ))
		ret = mrf_wait_link(wait, &ep->link_rd, &ep->source);
	if (ret || set_cntr(ep, cntr, flags))
		return ret;
	return mrf_refuse(FI_EOPBADSTATE, FI_LOG_EP_CTRL, 4062,
			  "a counter cannot be bound while operations of the endpoint are under "
			  "way: it would count only some of them");
}

/* Events that the endpoint's own operations cause. */
static int bind_own_locked(struct mrf_ep *ep, struct mrf_cntr *cntr, uint64_t flags)
{
	int ret = link_cntr_locked(ep, cntr, flags);

	if (ret && (flags & FI_WRITE))
		mrf_wait_unlink(&ep->link_wr);
	if (ret && (flags & FI_READ))
		mrf_wait_unlink(&ep->link_rd);
	if (ret) {
		/* A thread that has just ended an operation may still look at the links. */
		mrf_lock_take(&ep->lock);
		mrf_lock_release(&ep->lock);
		return ret;
	}
	if (flags & FI_WRITE)
		mrf_obj_hold(&ep->hold_wr, mrf_cntr_obj(cntr), &ep->fid.fid, NULL);
	if (flags & FI_READ)
		mrf_obj_hold(&ep->hold_rd, mrf_cntr_obj(cntr), &ep->fid.fid, NULL);
	return 0;
}

/* Events that peers cause. The device alone sees their reads, and reports them to nobody. */
static void bind_remote_locked(struct mrf_ep *ep, struct mrf_cntr *cntr, uint64_t flags)
{
	if (flags & FI_REMOTE_READ)
		mrf_warn(FI_LOG_EP_CTRL, 4063,
			 "fi_ep_bind(counter, FI_REMOTE_READ): accepted, but it does not count "
			 "reads by peers: the device does not report them");
	if (!(flags & FI_REMOTE_WRITE))
		return;
	mrf_mr_port_count(&ep->domain->space, &ep->port, cntr);
	mrf_obj_hold(&ep->hold_rem, mrf_cntr_obj(cntr), &ep->fid.fid, NULL);
}

/* What peers write is not reported to it. */
static int tell_unreported(void)
{
	if (mrf_rule_strict())
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_CTRL, 4064,
				  "fi_ep_bind(counter, FI_REMOTE_WRITE): the endpoint was opened "
				  "without FI_RMA_EVENT, so it is not told of writes by peers: ask "
				  "for it in hints->caps");
	mrf_warn(
		FI_LOG_EP_CTRL, 4067,
		"fi_ep_bind(counter, FI_REMOTE_WRITE): accepted, but it does not count writes by peers: "
		"the endpoint was opened without FI_RMA_EVENT (FI_MRFAB_STRICT=off)");
	return 0;
}

/* Of messages, which are not offered. */
static void tell_no_messages(uint64_t flags)
{
	if (flags && !(flags & ~(uint64_t)(FI_SEND | FI_RECV)))
		mrf_warn(
			FI_LOG_EP_CTRL, 4068,
			"fi_ep_bind(counter, flags=%#lx): accepted, but it counts nothing: messages are "
			"not offered",
			(unsigned long)flags);
	else if (flags & (FI_SEND | FI_RECV))
		mrf_info(
			FI_LOG_EP_CTRL,
			"fi_ep_bind(counter, flags=%#lx): it counts no messages, which are not offered",
			(unsigned long)flags);
}

static int bind_cntr_locked(struct mrf_ep *ep, struct fid *fid, uint64_t flags)
{
	struct mrf_cntr *cntr = mrf_cntr_from_fid(fid);
	int ret;

	if (mrf_cntr_obj(cntr)->parent.target != &ep->domain->obj)
		return other_domain("the counter");
	if (!flags || (flags & ~CNTR_FLAGS))
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_CTRL, 4043,
				  "flags %#lx: an endpoint's counter is bound with FI_READ, "
				  "FI_WRITE, FI_SEND, FI_RECV, FI_REMOTE_READ, FI_REMOTE_WRITE",
				  (unsigned long)flags);
	if ((flags & FI_WRITE && ep->wr_cntr) || (flags & FI_READ && ep->rd_cntr) ||
	    (flags & FI_REMOTE_WRITE && ep->hold_rem.target))
		return bound_already("a counter for one of these flags");
	if (flags & FI_REMOTE_WRITE && !(ep->caps & FI_RMA_EVENT)) {
		ret = tell_unreported();
		if (ret)
			return ret;
		flags &= ~(uint64_t)FI_REMOTE_WRITE;
	}
	tell_no_messages(flags);
	ret = bind_own_locked(ep, cntr, flags & (FI_READ | FI_WRITE));
	if (!ret)
		bind_remote_locked(ep, cntr, flags);
	return ret;
}

static int bind_eq_locked(struct mrf_ep *ep, struct fid *fid)
{
	int ret = mrf_obj_check(mrf_eq_obj(mrf_eq_from_fid(fid)), "fi_ep_bind");

	if (ret)
		return ret;
	if (ep->hold_eq.target)
		return bound_already("an event queue");
	mrf_info(FI_LOG_EP_CTRL,
		 "fi_ep_bind(event queue): accepted; no event is ever written to it");
	mrf_obj_hold(&ep->hold_eq, mrf_eq_obj(mrf_eq_from_fid(fid)), &ep->fid.fid, NULL);
	return 0;
}

static int bind_any_locked(struct mrf_ep *ep, struct fid *bfid, uint64_t flags)
{
	mrf_lock_held(&ep->setup);
	if (ep->enabled && bfid->fclass != FI_CLASS_CNTR)
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_EP_CTRL, 4045,
				  "the %s has to be bound before the endpoint is enabled",
				  mrf_obj_class_name(bfid->fclass));
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		return bind_av_locked(ep, bfid);
	case FI_CLASS_CQ:
		return bind_cq_locked(ep, bfid, flags);
	case FI_CLASS_CNTR:
		return bind_cntr_locked(ep, bfid, flags);
	case FI_CLASS_EQ:
		return bind_eq_locked(ep, bfid);
	default:
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4046,
				  "objects of class \"%s\" cannot be bound to an endpoint",
				  mrf_obj_class_name(bfid->fclass));
	}
}

int mrf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	int ret = mrf_obj_check(&ep->obj, "fi_ep_bind");

	if (ret)
		return ret;
	if (!bfid)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4044,
				  "fi_ep_bind: bfid=NULL: there is nothing to bind");
	mrf_lock_take(&ep->setup);
	ret = bind_any_locked(ep, bfid, flags);
	mrf_lock_release(&ep->setup);
	return ret;
}

void mrf_ep_unlink_all(struct mrf_ep *ep)
{
	mrf_wait_unlink(&ep->link_tx);
	mrf_wait_unlink(&ep->link_wr);
	mrf_wait_unlink(&ep->link_rd);
}

void mrf_ep_drop_all(struct mrf_ep *ep)
{
	if (ep->av)
		mrf_av_unwatch(ep->av, &ep->av_watch);
	mrf_obj_drop(&ep->hold_av);
	mrf_obj_drop(&ep->hold_tx);
	mrf_obj_drop(&ep->hold_rx);
	mrf_obj_drop(&ep->hold_wr);
	mrf_obj_drop(&ep->hold_rd);
	mrf_obj_drop(&ep->hold_rem);
	mrf_obj_drop(&ep->hold_eq);
}
