/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/errtext.h"
#include "base/log.h"
#include "base/random.h"
#include "contract/limits.h"
#include "contract/rules.h"
#include "ep/ep_open.h"
#include "ep/eps.h"
#include "ep/link/greet.h"
#include "ep/ep_ops.h"
#include "ep/msg/intake.h"
#include "ep/msg/lines.h"
#include "ep/rx/cut.h"
#include "ep/short.h"
#include "ep/tx/atomic_op.h"
#include "ep/tx/chores.h"
#include "ep/tx/note.h"
#include "ep/tx/order.h"
#include "ep/tx/send_op.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/idle.h"
#include "ep/tx/peers.h"
#include "ep/tx/service.h"

/* --- progress ------------------------------------------------------------------------------ */

static void source_arm(struct mrf_source *source, bool fired)
{
	struct mrf_ep *ep = mrf_container_of(source, struct mrf_ep, source);

	mrf_lock_take(&ep->lock);
	mrf_vcq_rearm(ep->scq, fired);
	if (ep->lines)
		mrf_vcq_rearm(ep->lines->vcq, fired);
	mrf_lock_release(&ep->lock);
}

static void source_finish(struct mrf_source *source)
{
	mrf_chores_run(mrf_container_of(source, struct mrf_ep, source));
}

/* --- control -------------------------------------------------------------------------------- */

static void allow_short_locked(struct mrf_ep *ep)
{
	/* It does not look at the limits of a profile. */
	bool may = ep->enabled && !(ep->op_flags & ~MRF_SHORT_FLAGS) &&
		   !ep->domain->space.careful && !ep->domain->space.faults &&
		   ep->domain->promise == &mrf_promise_all;
	bool reads = may && ep->caps & FI_READ && !(ep->orders & FI_ORDER_RAS);
	bool writes = may && ep->caps & FI_WRITE && !(ep->orders & FI_ORDER_WAS);
	/* Atomic operations may have their values in memory of a device. */
	bool device = ep->domain->space.mode & FI_MR_HMEM;
	bool atomics = ep->caps & FI_ATOMIC && !device && !(ep->orders & MRF_ORDER_AFTER_SENDS);
	bool sends = may && ep->inbox && ep->caps & FI_SEND && !device && !ep->orders &&
		     !(ep->op_flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE));
	size_t max = ep->caps & FI_RMA ? mrf_vdev_limits(ep->domain->vdev)->max_msg_size : 0;

	ep->short_send = sends ? MRF_SEND_MAX + 1 : 0;
	ep->short_recv = ep->enabled && ep->inbox && ep->caps & FI_RECV && !device;
	ep->short_silent = ep->selective && !(ep->op_flags & FI_COMPLETION);
	ep->short_max[MRF_OP_READ] = reads ? max : 0;
	ep->short_max[MRF_OP_WRITE] = writes ? max : 0;
	ep->short_atomic[MRF_ATOMIC_BASE] = atomics && writes;
	ep->short_atomic[MRF_ATOMIC_FETCH] = atomics && writes && reads;
	ep->short_atomic[MRF_ATOMIC_COMPARE] = atomics && writes && reads;
}

static int no_queue(const char *what, const char *queue, const char *cntr)
{
	return mrf_refuse(FI_ENOCQ, FI_LOG_EP_CTRL, 4049,
			  "completions of %s have nowhere to go: bind a CQ with %s, or a counter "
			  "with %s",
			  what, queue, cntr);
}

static int check_queues_locked(const struct mrf_ep *ep)
{
	if (ep->caps & (FI_READ | FI_WRITE) && !ep->tx_cq && !ep->wr_cntr && !ep->rd_cntr)
		return no_queue("reads and writes", "FI_TRANSMIT", "FI_READ or FI_WRITE");
	if (ep->caps & FI_SEND && !ep->tx_cq && !ep->snd_cntr)
		return no_queue("sends", "FI_TRANSMIT", "FI_SEND");
	if (ep->caps & FI_RECV && !ep->rx_cq && !ep->rcv_cntr)
		return no_queue("receives", "FI_RECV", "FI_RECV");
	return 0;
}

static int ep_enable_locked(struct mrf_ep *ep)
{
	int ret;

	mrf_lock_held(&ep->setup);
	if (ep->enabled)
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_EP_CTRL, 4047,
				  "the endpoint is enabled already");
	if (!ep->av)
		return mrf_refuse(FI_ENOAV, FI_LOG_EP_CTRL, 4048,
				  "an FI_EP_RDM endpoint needs an address vector");
	ret = check_queues_locked(ep);
	if (ret)
		return ret;
	ret = mrf_eps_listen(ep);
	if (ret)
		return mrf_refuse(-ret, FI_LOG_EP_CTRL, 4050,
				  "the endpoint cannot listen for peers");
	ep->enabled = true;
	mrf_mr_port_enable(&ep->domain->space, &ep->port);
	allow_short_locked(ep);
	return 0;
}

/* side: FI_TRANSMIT or FI_RECV, which is among flags. */
static int set_opsflag_locked(struct mrf_ep *ep, uint64_t side, uint64_t flags)
{
	uint64_t known = side == FI_TRANSMIT ? MRF_OP_FLAGS_TX : MRF_OP_FLAGS_RX;

	mrf_lock_held(&ep->setup);
	if (!(ep->caps & FI_MULTI_RECV))
		known &= ~FI_MULTI_RECV;
	flags &= ~side;
	if (flags & ~known)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_CTRL, 4052,
				  "operation flags %#lx: %#lx cannot be set for all %s of an "
				  "endpoint",
				  (unsigned long)flags, (unsigned long)(flags & ~known),
				  side == FI_TRANSMIT ? "transmits" : "receives");
	if (side == FI_RECV) {
		ep->rx_flags = flags;
		return 0;
	}
	ep->op_flags = flags;
	allow_short_locked(ep);
	return 0;
}

static int opsflag_locked(struct mrf_ep *ep, int command, uint64_t *flags)
{
	bool tx = flags && (*flags & FI_TRANSMIT), rx = flags && (*flags & FI_RECV);

	mrf_lock_held(&ep->setup);
	if (tx == rx)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4051,
				  "operation flags need exactly one of FI_TRANSMIT, FI_RECV");
	if (command == FI_SETOPSFLAG)
		return set_opsflag_locked(ep, tx ? FI_TRANSMIT : FI_RECV, *flags);
	*flags = tx ? ep->op_flags : ep->rx_flags;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	int ret = mrf_obj_check(&ep->obj, "fi_control");

	if (ret)
		return ret;
	if (command != FI_ENABLE && command != FI_GETOPSFLAG && command != FI_SETOPSFLAG)
		return mrf_no_control(fid, command, arg);
	mrf_lock_take(&ep->setup);
	ret = command == FI_ENABLE ? ep_enable_locked(ep) : opsflag_locked(ep, command, arg);
	mrf_lock_release(&ep->setup);
	return ret;
}

/* --- open and close --------------------------------------------------------------------------- */

static void free_ops(struct mrf_ep *ep)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&ep->free_ops)))
		free(mrf_list_entry(node, struct mrf_op, node));
}

static void close_port(struct mrf_ep *ep)
{
	mrf_mr_port_free(&ep->port);
	mrf_nonces_fini(&ep->nonces);
	mrf_obj_fini(&ep->obj);
}

static int ep_close(struct fid *fid)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	int ret = mrf_obj_busy(&ep->obj);

	if (!ret)
		ret = mrf_mr_port_close(&ep->domain->space, &ep->port);
	if (ret)
		return ret;
	/*
	 * First the endpoint is no longer polled, then the agent lets go of it. Its queues and its
	 * domain are released last, when only the endpoint's own memory is left: other threads may
	 * be waiting to close them.
	 */
	mrf_eps_linger(ep);
	mrf_ep_unlink_all(ep);
	mrf_eps_remove(ep);
	mrf_inbox_free(ep->inbox);
	mrf_vcq_close(ep->scq);
	free_ops(ep);
	mrf_atomic_cells_free(ep);
	mrf_buf_fini(&ep->buf);
	mrf_peers_fini(ep);
	mrf_lock_fini(&ep->lock);
	mrf_lock_fini(&ep->setup);
	close_port(ep);
	mrf_ep_drop_all(ep);
	mrf_obj_drop(&ep->parent);
	free(ep);
	return 0;
}

static struct fi_ops ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = mrf_ep_bind,
	.control = ep_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_obj_tostr,
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
	ep->fid.ops = &mrf_ep_ops;
	ep->fid.cm = &mrf_ep_cm_ops;
	ep->fid.msg = &mrf_no_msg;
	ep->fid.rma = &mrf_ep_rma_ops;
	ep->fid.tagged = &mrf_no_tagged;
	ep->fid.atomic = &mrf_no_atomic;
	ep->fid.collective = &mrf_no_collective;
}

/*
 * No capability means all of them, and no direction means every direction. Directions of messages
 * without messages ask for nothing: programs name FI_RECV so that a queue for receives makes progress.
 */
static uint64_t all_caps(uint64_t caps, uint64_t offered)
{
	if (!(caps & MRF_CAPS_MSG_WHATS))
		caps &= ~MRF_CAPS_MSG_WAYS;
	if (!caps)
		return MRF_CAPS & offered;
	if (caps & MRF_CAPS_MSG_WHATS && !(caps & MRF_CAPS_MSG_WAYS))
		caps |= MRF_CAPS_MSG_WAYS;
	if (caps & (FI_RMA | FI_ATOMIC) && !(caps & MRF_CAPS_RMA_WAYS))
		caps |= MRF_CAPS_RMA_WAYS;
	return caps;
}

static void init_own(struct mrf_ep *ep, struct mrf_domain *domain, const struct fi_info *info)
{
	union mrf_addr src;

	ep->domain = domain;
	ep->kicked = mrf_service_kicked;
	ep->caps = all_caps(info->caps, domain->promise->caps);
	ep->orders = mrf_order_asked(info);
	ep->max_parts = MRF_EP_PARTS;
	ep->inject = mrf_promise_inject(domain->promise, info->tx_attr);
	ep->op_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->max_ops = MRF_EP_OPS;
	if (info->tx_attr && info->tx_attr->size > MRF_EP_OPS)
		ep->max_ops = (unsigned)mrf_min(info->tx_attr->size, MRF_LIMIT_SIZE);
	ep->min_multi = MRF_SEND_MAX;
	ep->max_recvs = MRF_LIMIT_RX_SIZE;
	if (info->rx_attr && info->rx_attr->size)
		ep->max_recvs = (unsigned)mrf_min(info->rx_attr->size, MRF_LIMIT_SIZE);
	ep->addr = domain->addr; /* the port is the one that the application asked for, if any */
	if (mrf_form_take(domain->form, info->src_addr, info->src_addrlen, &src) &&
	    src.sa.sa_family == ep->addr.sa.sa_family)
		mrf_addr_set_port(&ep->addr, mrf_addr_port(&src));
	mrf_peers_init(ep);
	mrf_idle_init(ep);
	mrf_list_init(&ep->free_ops);
	mrf_list_init(&ep->chores);
	mrf_list_init(&ep->drops);
	mrf_list_init(&ep->passive);
	mrf_list_init(&ep->of_agent);
	mrf_lock_init(&ep->setup, MRF_RANK_SETUP);
	mrf_lock_init(&ep->lock, MRF_RANK_EP);
}

static int check_info(const struct fi_info *info, struct fid_ep **out)
{
	if (!info || !out)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4056,
				  "fi_endpoint: %s must not be NULL", info ? "ep" : "info");
	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM &&
	    info->ep_attr->type != FI_EP_UNSPEC)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4057,
				  "endpoint type %d: only FI_EP_RDM (%d) is offered",
				  info->ep_attr->type, FI_EP_RDM);
	if (info->ep_attr && (info->ep_attr->tx_ctx_cnt > MRF_LIMIT_CTX_CNT ||
			      info->ep_attr->rx_ctx_cnt > MRF_LIMIT_CTX_CNT))
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4058,
				  "%zu transmit and %zu receive contexts: an endpoint "
				  "has at most one of each",
				  info->ep_attr->tx_ctx_cnt, info->ep_attr->rx_ctx_cnt);
	return 0;
}

static int check_caps(const struct mrf_domain *domain, uint64_t caps)
{
	if (caps & ~domain->promise->caps)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4059, "caps=%#lx: %#lx is not offered",
				  caps, caps & ~domain->promise->caps);
	if (caps & FI_HMEM && !(domain->space.mode & FI_MR_HMEM))
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4065,
				  "caps=%#lx: the domain was opened without FI_HMEM", caps);
	return 0;
}

/* Once per domain: others of its endpoints may be meant to be the only targets. */
static void tell_uncounted(struct mrf_ep *ep)
{
	struct mrf_mr_space *space = &ep->domain->space;

	if (space->has_events && ep->caps & FI_REMOTE_WRITE && !(ep->caps & FI_RMA_EVENT) &&
	    mrf_mr_space_first(space, MRF_WARNED_UNCOUNTED))
		mrf_warn(FI_LOG_EP_CTRL, 4066,
			 "fi_endpoint: caps=%#lx: the domain was opened with FI_RMA_EVENT and this "
			 "endpoint is not: writes by peers through it are not counted (said once "
			 "per domain)",
			 (unsigned long)ep->caps);
}

/* The key that the application gives the endpoint; size 0: none, so the domain's applies. */
static int take_key(const struct mrf_domain *domain, const struct fi_info *info, const void **key,
		    size_t *size)
{
	const struct fi_ep_attr *attr = info->ep_attr;

	*key = NULL;
	*size = 0;
	if (!attr || !attr->auth_key_size || !mrf_rule_auth_key(domain->fabric->api_version))
		return 0;
	if (!attr->auth_key)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4206,
				  "auth_key must not be NULL, because auth_key_size is %zu",
				  attr->auth_key_size);
	if (attr->auth_key_size > MRF_LIMIT_AUTH_KEY)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4207,
				  "auth_key_size=%zu: an authorization key has at most %d bytes",
				  attr->auth_key_size, MRF_LIMIT_AUTH_KEY);
	*key = attr->auth_key;
	*size = attr->auth_key_size;
	return 0;
}

/* Sets up the port: what regions are bound to. */
static int open_port(struct mrf_ep *ep, const void *key, size_t key_size)
{
	int ret;

	mrf_obj_init(&ep->obj, &ep->fid.fid, describe);
	ret = mrf_mr_port_open(&ep->domain->space, &ep->port, &ep->obj, ep->caps & FI_RMA_EVENT,
			       key, key_size);
	if (ret) {
		mrf_obj_fini(&ep->obj);
		return mrf_refuse(-ret, FI_LOG_EP_CTRL, 4200,
				  "there is no protection domain for another endpoint");
	}
	if (mrf_greet_auth(ep))
		mrf_nonces_init(&ep->nonces);
	return 0;
}

/* There was no memory, there were no random bytes, or there was no completion queue. */
static int cannot(int ret)
{
	return mrf_refuse(-ret, FI_LOG_EP_CTRL, 4061, "the endpoint cannot be opened: %s",
			  mrf_limit_text(-ret));
}

static const struct mrf_inbox_calls inbox_calls = {
	.heard = mrf_note_heard_locked,
	.told = mrf_note_told_locked,
	.grant = mrf_intake_grant_locked,
	.cut = mrf_passive_cut,
};

static void init_calls(struct mrf_ep *ep)
{
	if (ep->caps & FI_MSG)
		ep->fid.msg = &mrf_ep_msg_ops;
	if (ep->caps & FI_TAGGED)
		ep->fid.tagged = &mrf_ep_tagged_ops;
	if (ep->caps & FI_ATOMIC)
		ep->fid.atomic = &mrf_ep_atomic_ops;
}

/* All that needs no device; mrf_inbox_free undoes it. */
static int make_parts(struct mrf_ep *ep)
{
	int ret;

	if (!mrf_random(&ep->instance, sizeof(ep->instance)))
		return cannot(-FI_EIO);
	ret = mrf_eps_get(ep->domain, &ep->agent);
	if (ret)
		return ret;
	if (ep->caps & MRF_CAPS_MSG_WHATS)
		ret = mrf_inbox_new(ep, &inbox_calls);
	if (ret)
		return cannot(ret);
	mrf_buf_init(&ep->buf, &ep->domain->space, mrf_eps_of(ep->agent)->cache);
	return 0;
}

static int open_source(struct mrf_ep *ep)
{
	struct mrf_vdev *vdev = ep->domain->vdev;
	int ret = mrf_vcq_open(vdev, mrf_min(MRF_EP_SCQ, mrf_vdev_limits(vdev)->max_cqe), &ep->scq);

	if (ret)
		return cannot(ret);
	ep->source = (struct mrf_source){ .poll = mrf_peer_poll,
					  .arm = source_arm,
					  .finish = source_finish,
					  .fd = mrf_vcq_fd(ep->scq) };
	return 0;
}

/* Peers find it from now on. */
static int listen_at_address(struct mrf_ep *ep)
{
	int ret = mrf_eps_add(ep);
	char addr[64];

	if (!ret)
		return 0;
	if (ep->agent->denied)
		return mrf_agent_refuse();
	return mrf_refuse(-ret, FI_LOG_EP_CTRL, 4060, "the endpoint cannot be bound to %s",
			  mrf_addr_text(&ep->addr, addr, sizeof(addr)));
}

int mrf_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct mrf_domain *domain = mrf_domain_from_fid(fid);
	const void *key;
	size_t key_size;
	struct mrf_ep *ep;
	int ret = check_info(info, out);

	if (!ret)
		ret = check_caps(domain, info->caps);
	if (!ret)
		ret = take_key(domain, info, &key, &key_size);
	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return cannot(-FI_ENOMEM);
	init_fid(ep, context);
	init_own(ep, domain, info);
	init_calls(ep);
	ret = make_parts(ep);
	if (ret)
		goto err_free;
	ret = open_source(ep);
	if (ret)
		goto err_free;
	ret = open_port(ep, key, key_size);
	if (ret)
		goto err_cq;
	ret = listen_at_address(ep);
	if (ret)
		goto err_port;
	mrf_obj_hold(&ep->parent, &domain->obj, &ep->fid.fid, describe);
	tell_uncounted(ep);
	*out = &ep->fid;
	return 0;

err_port:
	mrf_mr_port_close(&domain->space, &ep->port);
	close_port(ep);
err_cq:
	mrf_vcq_close(ep->scq);
err_free:
	mrf_inbox_free(ep->inbox);
	mrf_lock_fini(&ep->lock);
	mrf_lock_fini(&ep->setup);
	free(ep);
	return ret;
}
