/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/rules.h"
#include "ep/ep_ops.h"
#include "ep/msg/recv.h"
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

/* A queue that is bound for both sides polls the endpoint once. */
static int link_cq_locked(struct mrf_ep *ep, struct mrf_cq *cq, struct mrf_wait_link *link)
{
	struct mrf_wait *wait = mrf_cq_obj(cq)->wait;

	if (wait == atomic_load(&ep->link_tx.wait) || wait == atomic_load(&ep->link_rx.wait))
		return 0;
	return mrf_wait_link(wait, link, &ep->source);
}

static int bind_tx_cq_locked(struct mrf_ep *ep, struct mrf_cq *cq, uint64_t flags)
{
	int ret;

	if (ep->tx_cq)
		return bound_already("a CQ for transmits");
	ret = link_cq_locked(ep, cq, &ep->link_tx);
	if (ret)
		return ret;
	ep->tx_cq = cq;
	ep->selective = flags & FI_SELECTIVE_COMPLETION;
	mrf_obj_hold(&ep->hold_tx, mrf_cq_obj(cq), &ep->fid.fid, NULL);
	return 0;
}

/*
 * Without messages the queue has only data of writes by peers, and the agent writes those, so that
 * reading the queue need not poll.
 */
static int bind_rx_cq_locked(struct mrf_ep *ep, struct mrf_cq *cq, uint64_t flags)
{
	int ret = ep->caps & MRF_CAPS_MSG_WHATS ? link_cq_locked(ep, cq, &ep->link_rx) : 0;

	if (ret)
		return ret;
	ep->rx_cq = cq;
	ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
	/* One line for each endpoint is enough. */
	if (cq != ep->tx_cq)
		mrf_obj_hold(&ep->hold_rx, mrf_cq_obj(cq), &ep->fid.fid, NULL);
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
	if (!ret && (flags & FI_RECV))
		ret = bind_rx_cq_locked(ep, cq, flags);
	return ret;
}

#define CNTR_FLAGS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* A counter for what the endpoint itself starts: where the endpoint has it. */
struct own {
	uint64_t flag;
	struct mrf_cntr **cntr;
	struct mrf_wait_link *link;
	struct mrf_hold *hold;
};

#define OWN_COUNTERS 4

/* Those that flags name; returns their number. */
static unsigned own_counters(struct mrf_ep *ep, uint64_t flags, struct own *own)
{
	const struct own all[OWN_COUNTERS] = {
		{ FI_WRITE, &ep->wr_cntr, &ep->link_wr, &ep->hold_wr },
		{ FI_READ, &ep->rd_cntr, &ep->link_rd, &ep->hold_rd },
		{ FI_SEND, &ep->snd_cntr, &ep->link_snd, &ep->hold_snd },
		{ FI_RECV, &ep->rcv_cntr, &ep->link_rcv, &ep->hold_rcv },
	};
	unsigned n = 0;

	for (unsigned i = 0; i < OWN_COUNTERS; i++) {
		if (flags & all[i].flag)
			own[n++] = all[i];
	}
	return n;
}

/* Some of what flags name are in flight, or posted: the counter would count only a part of them. */
static bool is_under_way_locked(const struct mrf_ep *ep, uint64_t flags)
{
	mrf_lock_held(&ep->lock);
	if (flags & FI_RECV && mrf_recv_posted_locked(ep))
		return true;
	return flags & ~(uint64_t)FI_RECV && ep->nops != atomic_load(&ep->ended);
}

/* False: nothing was set. */
static bool set_cntr(struct mrf_ep *ep, struct mrf_cntr *cntr, uint64_t flags)
{
	struct own own[OWN_COUNTERS];
	unsigned i, n = own_counters(ep, flags, own);
	bool idle;

	mrf_lock_take(&ep->lock);
	idle = !is_under_way_locked(ep, flags);
	for (i = 0; idle && i < n; i++)
		*own[i].cntr = cntr;
	mrf_lock_release(&ep->lock);
	return idle;
}

static int link_cntr_locked(struct mrf_ep *ep, struct mrf_cntr *cntr, uint64_t flags)
{
	struct own own[OWN_COUNTERS];
	unsigned i, n = own_counters(ep, flags, own);
	int ret = 0;

	for (i = 0; !ret && i < n; i++)
		ret = mrf_wait_link(mrf_cntr_obj(cntr)->wait, own[i].link, &ep->source);
	if (ret || set_cntr(ep, cntr, flags))
		return ret;
	return mrf_refuse(FI_EOPBADSTATE, FI_LOG_EP_CTRL, 4062,
			  "a counter cannot be bound while operations of the endpoint are under "
			  "way: it would count only some of them");
}

/* Events that the endpoint's own operations cause. */
static int bind_own_locked(struct mrf_ep *ep, struct mrf_cntr *cntr, uint64_t flags)
{
	struct own own[OWN_COUNTERS];
	unsigned i, n = own_counters(ep, flags, own);
	int ret = link_cntr_locked(ep, cntr, flags);

	for (i = 0; i < n; i++) {
		if (ret)
			mrf_wait_unlink(own[i].link);
		else
			mrf_obj_hold(own[i].hold, mrf_cntr_obj(cntr), &ep->fid.fid, NULL);
	}
	if (ret) {
		/* A thread that has just ended an operation may still look at the links. */
		mrf_lock_take(&ep->lock);
		mrf_lock_release(&ep->lock);
	}
	return ret;
}

static bool has_counter_locked(struct mrf_ep *ep, uint64_t flags)
{
	struct own own[OWN_COUNTERS];
	unsigned i, n = own_counters(ep, flags, own);

	for (i = 0; i < n; i++) {
		if (*own[i].cntr)
			return true;
	}
	return flags & FI_REMOTE_WRITE && ep->hold_rem.target;
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

/* Says what of messages the counter will not count; returns the other flags. */
static uint64_t without_messages(const struct mrf_ep *ep, uint64_t flags)
{
	uint64_t lacks = flags & MRF_CAPS_MSG_WAYS & ~ep->caps;
	bool any = ep->caps & MRF_CAPS_MSG_WHATS;
	const char *cap = !any ? "FI_MSG or FI_TAGGED" : lacks & FI_SEND ? "FI_SEND" : "FI_RECV";
	const char *what = !any ? "messages" : lacks & FI_SEND ? "sends" : "receives";

	if (lacks && lacks == flags)
		mrf_warn(FI_LOG_EP_CTRL, 4068,
			 "fi_ep_bind(counter, flags=%#lx): accepted, but it counts nothing: the "
			 "endpoint was opened without %s",
			 (unsigned long)flags, cap);
	else if (lacks)
		mrf_info(FI_LOG_EP_CTRL,
			 "fi_ep_bind(counter, flags=%#lx): it counts no %s, because the endpoint "
			 "was opened without %s",
			 (unsigned long)flags, what, cap);
	return flags & ~lacks;
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
	if (has_counter_locked(ep, flags))
		return bound_already("a counter for one of these flags");
	if (flags & FI_REMOTE_WRITE && !(ep->caps & FI_RMA_EVENT)) {
		ret = tell_unreported();
		if (ret)
			return ret;
		flags &= ~(uint64_t)FI_REMOTE_WRITE;
	}
	flags = without_messages(ep, flags);
	ret = bind_own_locked(ep, cntr, flags);
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
	mrf_wait_unlink(&ep->link_rx);
	mrf_wait_unlink(&ep->link_snd);
	mrf_wait_unlink(&ep->link_rcv);
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
	mrf_obj_drop(&ep->hold_snd);
	mrf_obj_drop(&ep->hold_rcv);
	mrf_obj_drop(&ep->hold_rem);
	mrf_obj_drop(&ep->hold_eq);
}
