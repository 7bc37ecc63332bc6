/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/limits.h"
#include "ep/none.h"
#include "ep/peer.h"

static struct mrf_ep *to_ep(struct fid *fid)
{
	return mrf_container_of(fid, struct mrf_ep, fid.fid);
}

/* --- progress ------------------------------------------------------------------------------ */

#define BATCH 16

static void completed(struct mrf_ep *ep, const struct mrf_wc *wc)
{
	if (mrf_unlikely(!ep->last || ep->last->owner.id != wc->wr_id))
		ep->last = mrf_idmap_find(&ep->conns, wc->wr_id);
	if (mrf_likely(ep->last != NULL))
		mrf_peer_completed(ep->last, wc);
}

void mrf_ep_progress(struct mrf_ep *ep)
{
	struct mrf_wc wc[BATCH];
	int i, n;

	do {
		n = mrf_vcq_poll(ep->scq, wc, BATCH);
		for (i = 0; i < n; i++)
			completed(ep, &wc[i]);
	} while (mrf_unlikely(n == BATCH));
}

static void source_poll(struct mrf_source *source)
{
	struct mrf_ep *ep = mrf_container_of(source, struct mrf_ep, source);

	mrf_lock_take(&ep->lock);
	mrf_ep_progress(ep);
	mrf_lock_release(&ep->lock);
}

static void source_arm(struct mrf_source *source)
{
	struct mrf_ep *ep = mrf_container_of(source, struct mrf_ep, source);

	mrf_lock_take(&ep->lock);
	mrf_vcq_ack(ep->scq);
	mrf_vcq_arm(ep->scq);
	mrf_lock_release(&ep->lock);
}

/* --- binding ------------------------------------------------------------------------------- */

static int bind_wait(struct mrf_ep *ep, struct mrf_wait *wait, struct mrf_wait_link *link)
{
	return link->wait ? 0 : mrf_wait_link(wait, link, &ep->source);
}

static int other_domain(const char *what)
{
	return mrf_refuse(FI_EDOMAIN, FI_LOG_EP_CTRL, 4040,
			  "%s is of another domain than the endpoint", what);
}

static int bound_already(const char *what)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4041, "%s is bound already", what);
}

static int bind_av(struct mrf_ep *ep, struct fid *fid)
{
	struct mrf_av *av = mrf_av_from_fid(fid);

	if (mrf_av_domain(av) != &ep->domain->fid)
		return other_domain("the address vector");
	if (ep->av)
		return bound_already("an address vector");
	ep->av = av;
	mrf_obj_hold(&ep->hold_av, mrf_av_obj(av), &ep->fid.fid, NULL);
	return 0;
}

#define CQ_FLAGS (FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)

static int bind_tx_cq(struct mrf_ep *ep, struct mrf_cq *cq, uint64_t flags)
{
	int ret;

	if (ep->tx_cq)
		return bound_already("a CQ for transmits");
	ret = bind_wait(ep, mrf_cq_wait(cq), &ep->link_tx);
	if (ret)
		return ret;
	ep->tx_cq = cq;
	ep->selective = flags & FI_SELECTIVE_COMPLETION;
	mrf_obj_hold(&ep->hold_tx, mrf_cq_obj(cq), &ep->fid.fid, NULL);
	return 0;
}

static int bind_cq(struct mrf_ep *ep, struct fid *fid, uint64_t flags)
{
	struct mrf_cq *cq = mrf_cq_from_fid(fid);
	int ret = 0;

	if (mrf_cq_domain(cq) != &ep->domain->fid)
		return other_domain("the CQ");
	if (!(flags & (FI_TRANSMIT | FI_RECV)) || (flags & ~CQ_FLAGS))
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_CTRL, 4042,
				  "flags %#lx: a CQ is bound with FI_TRANSMIT, FI_RECV, "
				  "FI_SELECTIVE_COMPLETION", (unsigned long)flags);
	if ((flags & FI_RECV) && ep->rx_cq)
		return bound_already("a CQ for receives");
	if (flags & FI_TRANSMIT)
		ret = bind_tx_cq(ep, cq, flags);
	if (!ret && (flags & FI_RECV)) {
		ep->rx_cq = cq;
		/* One line about an endpoint is enough. */
		if (cq != ep->tx_cq)
			mrf_obj_hold(&ep->hold_rx, mrf_cq_obj(cq), &ep->fid.fid, NULL);
	}
	return ret;
}

#define CNTR_FLAGS (FI_SEND | FI_RECV | FI_READ | FI_WRITE)

static int bind_one_cntr(struct mrf_ep *ep, struct mrf_cntr *cntr, struct mrf_cntr **slot,
			 struct mrf_hold *hold, struct mrf_wait_link *link)
{
	int ret;

	if (*slot)
		return bound_already("a counter for this");
	ret = bind_wait(ep, mrf_cntr_wait(cntr), link);
	if (ret)
		return ret;
	*slot = cntr;
	mrf_obj_hold(hold, mrf_cntr_obj(cntr), &ep->fid.fid, NULL);
	return 0;
}

static int bind_cntr(struct mrf_ep *ep, struct fid *fid, uint64_t flags)
{
	struct mrf_cntr *cntr = mrf_cntr_from_fid(fid);
	int ret = 0;

	if (mrf_cntr_domain(cntr) != &ep->domain->fid)
		return other_domain("the counter");
	if (!flags || (flags & ~CNTR_FLAGS))
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_CTRL, 4043,
				  "flags %#lx: a counter counts FI_READ, FI_WRITE (remote events "
				  "need FI_RMA_EVENT, which is not offered)",
				  (unsigned long)flags);
	if (flags & FI_WRITE)
		ret = bind_one_cntr(ep, cntr, &ep->wr_cntr, &ep->hold_wr, &ep->link_wr);
	if (!ret && (flags & FI_READ))
		ret = bind_one_cntr(ep, cntr, &ep->rd_cntr, &ep->hold_rd, &ep->link_rd);
	return ret;
}

static int bind_eq(struct mrf_ep *ep, struct fid *fid)
{
	if (ep->hold_eq.target)
		return bound_already("an event queue");
	mrf_obj_hold(&ep->hold_eq, mrf_eq_obj(mrf_eq_from_fid(fid)), &ep->fid.fid, NULL);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrf_ep *ep = to_ep(fid);

	if (!bfid)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4044, "nothing to bind (NULL)");
	if (ep->enabled)
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_EP_CTRL, 4045,
				  "bind a %s before the endpoint is enabled",
				  mrf_obj_class_name(bfid->fclass));
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		return bind_av(ep, bfid);
	case FI_CLASS_CQ:
		return bind_cq(ep, bfid, flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, bfid, flags);
	case FI_CLASS_EQ:
		return bind_eq(ep, bfid);
	default:
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4046,
				  "a %s cannot be bound to an endpoint",
				  mrf_obj_class_name(bfid->fclass));
	}
}

static void unlink_all(struct mrf_ep *ep)
{
	mrf_wait_unlink(&ep->link_tx);
	mrf_wait_unlink(&ep->link_wr);
	mrf_wait_unlink(&ep->link_rd);
}

static void drop_all(struct mrf_ep *ep)
{
	mrf_obj_drop(&ep->hold_av);
	mrf_obj_drop(&ep->hold_tx);
	mrf_obj_drop(&ep->hold_rx);
	mrf_obj_drop(&ep->hold_wr);
	mrf_obj_drop(&ep->hold_rd);
	mrf_obj_drop(&ep->hold_eq);
}

/* --- control -------------------------------------------------------------------------------- */

static void allow_short(struct mrf_ep *ep)
{
	size_t max = mrf_vdev_limits(ep->domain->vdev)->max_msg_size;

	ep->short_max[MRF_OP_READ] = ep->caps & FI_READ ? max : 0;
	ep->short_max[MRF_OP_WRITE] = ep->caps & FI_WRITE ? max : 0;
}

static int ep_enable(struct mrf_ep *ep)
{
	int ret;

	if (ep->enabled)
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_EP_CTRL, 4047,
				  "the endpoint is enabled already");
	if (!ep->av)
		return mrf_refuse(FI_ENOAV, FI_LOG_EP_CTRL, 4048,
				  "an FI_EP_RDM endpoint needs an address vector");
	if ((ep->caps & (FI_READ | FI_WRITE)) && !ep->tx_cq && !ep->wr_cntr && !ep->rd_cntr)
		return mrf_refuse(FI_ENOCQ, FI_LOG_EP_CTRL, 4049,
				  "bind a CQ with FI_TRANSMIT, or a counter: completions have "
				  "nowhere to go");
	ret = mrf_agent_ep_enable(ep->agent, ep);
	if (ret)
		return mrf_refuse(-ret, FI_LOG_EP_CTRL, 4050, "cannot listen for peers");
	ep->enabled = true;
	allow_short(ep);
	return 0;
}

static int opsflag(struct mrf_ep *ep, int command, uint64_t *flags)
{
	bool tx = flags && (*flags & FI_TRANSMIT), rx = flags && (*flags & FI_RECV);

	if (tx == rx)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4051,
				  "operation flags need exactly one of FI_TRANSMIT, FI_RECV");
	if (command == FI_GETOPSFLAG)
		*flags = tx ? ep->op_flags : 0;
	else if (tx && (*flags & ~(FI_TRANSMIT | MRF_OP_FLAGS_TX)))
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_CTRL, 4052, "operation flags %#lx",
				  (unsigned long)*flags);
	else if (tx)
		ep->op_flags = *flags & ~FI_TRANSMIT;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct mrf_ep *ep = to_ep(fid);

	switch (command) {
	case FI_ENABLE:
		return ep_enable(ep);
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return opsflag(ep, command, arg);
	default:
		return mrf_no_control(fid, command, arg);
	}
}

/* --- the small calls of fi_endpoint(3) and fi_cm(3) ------------------------------------------ */

static int no_call(const char *call)
{
	return mrf_refuse(FI_ENOSYS, FI_LOG_EP_CTRL, 4053, "%s: not for an FI_EP_RDM endpoint here",
			  call);
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	(void)fid;
	(void)context;
	/* Once posted, a one-sided access cannot be called back. */
	return -FI_ENOENT;
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	(void)fid;
	(void)optval;
	(void)optlen;
	return mrf_refuse(FI_ENOPROTOOPT, FI_LOG_EP_CTRL, 4054, "option %d of level %d", optname,
			  level);
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	(void)fid;
	(void)optval;
	(void)optlen;
	return mrf_refuse(FI_ENOPROTOOPT, FI_LOG_EP_CTRL, 4054, "option %d of level %d", optname,
			  level);
}

static int ep_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **tx_ep, void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)tx_ep;
	(void)context;
	return no_call("fi_tx_context");
}

static int ep_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		     struct fid_ep **rx_ep, void *context)
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
	ssize_t left;

	mrf_lock_take(&ep->lock);
	left = MRF_EP_OPS - (ssize_t)ep->nops;
	mrf_lock_release(&ep->lock);
	return left;
}

static struct fi_ops_ep ep_ops = {
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
	struct mrf_ep *ep = to_ep(fid);
	size_t room, len = mrf_addr_len(&ep->addr);

	if (!addrlen || (!addr && *addrlen))
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4055, "NULL address or length");
	room = *addrlen;
	*addrlen = len;
	if (room)
		memcpy(addr, &ep->addr, mrf_min(room, len));
	/* No line: asking with too little room is how one learns the length. */
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

static struct fi_ops_cm cm_ops = {
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

/* --- open and close --------------------------------------------------------------------------- */

static void free_ops(struct mrf_ep *ep)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&ep->free_ops)))
		free(mrf_list_entry(node, struct mrf_op, node));
}

static int ep_close(struct fid *fid)
{
	struct mrf_ep *ep = to_ep(fid);
	int ret = mrf_obj_busy(&ep->obj);

	if (ret)
		return ret;
	/* First nobody polls it any more, then the agent lets go of it, then it of its CQs. */
	unlink_all(ep);
	mrf_agent_ep_close(ep->agent, ep);
	drop_all(ep);
	mrf_vcq_close(ep->scq);
	free_ops(ep);
	mrf_bounce_fini(&ep->bounce);
	mrf_idmap_fini(&ep->conns);
	free(ep->peers);
	mrf_lock_fini(&ep->lock);
	mrf_obj_drop(&ep->parent);
	mrf_obj_fini(&ep->obj);
	free(ep);
	return 0;
}

static struct fi_ops ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_no_tostr,
	.ops_set = mrf_no_ops_set,
};

static void describe(const struct fid *fid, char *buf, size_t len)
{
	mrf_addr_text(&mrf_container_of(fid, struct mrf_ep, fid.fid)->addr, buf, len);
}

static void init_fid(struct mrf_ep *ep, void *context)
{
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fi_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &mrf_no_msg;
	ep->fid.rma = &mrf_ep_rma_ops;
	ep->fid.tagged = &mrf_no_tagged;
	ep->fid.atomic = &mrf_no_atomic;
	ep->fid.collective = &mrf_no_collective;
}

static void init_own(struct mrf_ep *ep, struct mrf_domain *domain, const struct fi_info *info)
{
	ep->domain = domain;
	ep->caps = info->caps ? info->caps : MRF_CAPS;
	ep->op_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->addr = domain->addr;
	mrf_list_init(&ep->all_peers);
	mrf_list_init(&ep->free_ops);
	mrf_list_init(&ep->passive);
	mrf_idmap_init(&ep->conns);
	mrf_bounce_init(&ep->bounce);
	mrf_lock_init(&ep->lock, MRF_RANK_EP);
}

static int check_info(const struct fi_info *info)
{
	if (!info)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4056, "info is NULL");
	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM &&
	    info->ep_attr->type != FI_EP_UNSPEC)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4057,
				  "endpoint type %d: only FI_EP_RDM (%d)", info->ep_attr->type,
				  FI_EP_RDM);
	if (info->ep_attr && (info->ep_attr->tx_ctx_cnt > MRF_LIMIT_CTX_CNT ||
			      info->ep_attr->rx_ctx_cnt > MRF_LIMIT_CTX_CNT))
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4058,
				  "%zu transmit and %zu receive contexts: at most one each",
				  info->ep_attr->tx_ctx_cnt, info->ep_attr->rx_ctx_cnt);
	if (info->caps & ~MRF_CAPS)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4059, "caps %#lx: %#lx not offered",
				  (unsigned long)info->caps,
				  (unsigned long)(info->caps & ~MRF_CAPS));
	return 0;
}

/* The port that the application asked for, if any; the address is the domain's. */
static void take_port(struct mrf_ep *ep, const struct fi_info *info)
{
	const union mrf_addr *src = info->src_addr;

	if (!src || src->sa.sa_family != ep->addr.sa.sa_family)
		return;
	if (src->sa.sa_family == AF_INET)
		ep->addr.in.sin_port = src->in.sin_port;
	else
		ep->addr.in6.sin6_port = src->in6.sin6_port;
}

int mrf_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		void *context)
{
	struct mrf_domain *domain = mrf_domain_from_fid(fid);
	struct mrf_ep *ep;
	int ret = check_info(info);

	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	init_fid(ep, context);
	init_own(ep, domain, info);
	take_port(ep, info);
	if (getrandom(&ep->instance, sizeof(ep->instance), 0) != sizeof(ep->instance)) {
		ret = -FI_EIO;
		goto err_free;
	}
	ret = mrf_agent_get(domain, &ep->agent);
	if (ret)
		goto err_free;
	ret = mrf_vcq_open(domain->vdev,
			   mrf_min(MRF_EP_SCQ, mrf_vdev_limits(domain->vdev)->max_cqe),
			   &ep->scq);
	if (ret)
		goto err_free;
	ep->source = (struct mrf_source){ source_poll, source_arm, mrf_vcq_fd(ep->scq) };
	ret = mrf_agent_ep_open(ep->agent, ep);
	if (ret) {
		char addr[64];

		ret = mrf_refuse(-ret, FI_LOG_EP_CTRL, 4060, "cannot bind %s",
				 mrf_addr_text(&ep->addr, addr, sizeof(addr)));
		goto err_cq;
	}
	mrf_obj_init(&ep->obj, &ep->fid.fid, describe);
	mrf_obj_hold(&ep->parent, &domain->obj, &ep->fid.fid, describe);
	*out = &ep->fid;
	return 0;

err_cq:
	mrf_vcq_close(ep->scq);
err_free:
	mrf_lock_fini(&ep->lock);
	free(ep);
	return ret;
}
