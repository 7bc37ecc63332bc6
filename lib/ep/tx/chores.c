/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/user.h"
#include "ep/link/conn.h"
#include "ep/model/ep.h"
#include "ep/msg/pull_step.h"
#include "ep/tx/atomic_op.h"
#include "ep/tx/chores.h"
#include "ep/tx/tell.h"
#include "mr/desc.h"

/* --- one native element --------------------------------------------------------------------- */

/* One native element for memory that is pinned, as most are: each buffer has a descriptor. */
static inline bool is_one_pinned(const struct mrf_op *op)
{
	return op->atomic.landed && op->local.ndesc == 1 && op->total == sizeof(uint64_t);
}

/* Copies the result straight out of its cell. */
static inline int deliver_one_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	if (mrf_unlikely(!mrf_desc_live(&ep->domain->space, op->local.desc[0])))
		return -FI_ECANCELED;
	memcpy(op->local.user[0].iov_base, ep->cells->cell[op->number], sizeof(uint64_t));
	return 0;
}

/* --- what a peer has to have done ------------------------------------------------------------- */

static bool has_chores_locked(const struct mrf_peer *peer)
{
	return !mrf_list_empty(&peer->chores.list) || peer->chores.unprepared;
}

/* Has some thread do them, unless one is at it already. */
static void offer_locked(struct mrf_ep *ep, struct mrf_peer *peer)
{
	mrf_lock_held(&ep->lock);
	if (peer->chores.busy || !has_chores_locked(peer) || !mrf_list_empty(&peer->chores.of_ep))
		return;
	mrf_list_add_tail(&peer->chores.of_ep, &ep->chores);
	atomic_store(&ep->source.left, true);
}

static void add_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	struct mrf_peer *peer = op->peer;

	mrf_lock_held(&ep->lock);
	mrf_list_add_tail(&op->node, &peer->chores.list);
	if (!peer->chores.uncompleted++)
		ep->holdups++;
	offer_locked(ep, peer);
}

/* Any thread may do this, whatever the peer's other chores wait for. */
static void add_drop_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	mrf_list_add_tail(&op->node, &ep->drops);
	atomic_fetch_add(&ep->ended, 1);
	atomic_store(&ep->source.left, true);
}

static bool is_behind_locked(const struct mrf_ep *ep, const struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	return op->peer->chores.uncompleted;
}

/* --- the end of an operation ---------------------------------------------------------------- */

/* Inline for the sake of mrf_chores_done_locked and atomic operations. */
static MRF_ALWAYS_INLINE void put_back_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	mrf_list_add_head(&op->node, &ep->free_ops);
	ep->nops--;
}

static __attribute__((noinline)) void let_go_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (op->local.temp) {
		add_drop_locked(ep, op);
		return;
	}
	mrf_local_drop(&ep->buf, &op->local);
	put_back_locked(ep, op);
}

static MRF_ALWAYS_INLINE void free_op_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	if (mrf_likely(!op->local.temp && !op->local.copy))
		put_back_locked(ep, op);
	else
		let_go_locked(ep, op);
}

void mrf_chores_free(struct mrf_ep *ep, struct mrf_op *op)
{
	/* If it has never begun. */
	mrf_tell_unused_locked(ep, op);
	mrf_local_drop(&ep->buf, &op->local);
	mrf_lock_take(&ep->lock);
	put_back_locked(ep, op);
	mrf_lock_release(&ep->lock);
}

/* One native element has neither a copy nor a registration of its own. */
static MRF_ALWAYS_INLINE void complete_one_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	int ret = deliver_one_locked(ep, op);

	if (mrf_unlikely(ret))
		mrf_tell_undelivered_locked(ep, op, ret);
	else
		mrf_tell_ok_locked(ep, op);
	put_back_locked(ep, op);
}

static MRF_ALWAYS_INLINE void complete_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	mrf_tell_ok_locked(ep, op);
	free_op_locked(ep, op);
}

/* Not inline for the sake of mrf_chores_done_locked. */
static __attribute__((noinline)) void done_with_all_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (!ep->holdups && is_one_pinned(op))
		complete_one_locked(ep, op);
	else if (op->local.nuser || is_behind_locked(ep, op))
		add_locked(ep, op);
	else /* The results that are being copied are another peer's. */
		complete_locked(ep, op);
}

/* Most operations end here, so the last call is a jump, and nothing is saved before it. */
void mrf_chores_done_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	bool common = op->plain && !ep->wr_cntr && !ep->rd_cntr;

	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(!common || ep->holdups)) {
		done_with_all_locked(ep, op);
		return;
	}
	put_back_locked(ep, op);
	/* Nobody takes it out while the lock is held. */
	mrf_cq_write_own(ep->tx_cq, op->context, op->comp_flags, op->total);
}

void mrf_chores_failed_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(is_behind_locked(ep, op))) {
		add_locked(ep, op);
		return;
	}
	mrf_tell_error_locked(ep, op);
	free_op_locked(ep, op);
}

void mrf_chores_prepare_locked(struct mrf_ep *ep, struct mrf_op *op, mrf_prepared *then)
{
	mrf_lock_held(&ep->lock);
	op->peer->chores.unprepared = op;
	op->peer->chores.prepared = then;
	/* In other chores the thread changes op->local, which nobody else looks at meanwhile. */
	op->peer->chores.ahead = op->local.kind == MRF_LOCAL_STAGED;
	op->chore = 1;
	offer_locked(ep, op->peer);
}

/* --- doing them ---------------------------------------------------------------------------- */

/* Ends the peer's first operation; ret says whether its results were delivered. */
static void complete_first_locked(struct mrf_ep *ep, struct mrf_op *op, int ret)
{
	struct mrf_peer *peer = op->peer;

	if (op->failed)
		mrf_tell_error_locked(ep, op);
	else if (mrf_unlikely(ret))
		mrf_tell_undelivered_locked(ep, op, ret);
	else
		mrf_tell_ok_locked(ep, op);
	mrf_list_del(&op->node);
	free_op_locked(ep, op);
	if (--peer->chores.uncompleted)
		return;
	/* All results of the peer are delivered: the agent resumes what waits for that. */
	ep->holdups--;
	if (peer->chores.fenced)
		mrf_conn_kick_locked(peer);
	peer->chores.fenced = false;
}

static void take_reason(struct mrf_why *why, int err, const struct mrf_refusal *said)
{
	mrf_why_said(why, err, said,
		     "the next of its local buffers cannot be reached by the device");
}

/*
 * Copies what came back to the application's buffers. may_wait: for memory that is not there yet;
 * otherwise -FI_EAGAIN is returned for it. Other errors: mrf_op_type.deliver.
 */
static int copy_results(struct mrf_ep *ep, struct mrf_op *op, bool may_wait)
{
	struct mrf_refusal said;
	int ret;

	if (mrf_likely(op->local.kind != MRF_LOCAL_STAGED && op->type->deliver))
		return op->type->deliver(ep, op, may_wait);
	if (mrf_likely(op->local.kind != MRF_LOCAL_STAGED))
		return mrf_user_put(mrf_local_user(&op->local), (size_t)op->local.nuser,
				    op->local.copy, may_wait);
	said = (struct mrf_refusal){ .code = 0 };
	mrf_refuse_catch(&said);
	ret = mrf_stage_deliver(&ep->buf, &op->local, may_wait);
	mrf_refuse_catch(NULL);
	/* The copy was to memory of a device: the operation fails with what the runtime says. */
	if (ret && ret != -FI_EAGAIN) {
		take_reason(&op->why, -ret, &said);
		op->failed = true;
	}
	return ret;
}

/* False: the copy would have to wait for memory. */
static bool deliver_locked(struct mrf_ep *ep, struct mrf_op *op, bool may_wait)
{
	int ret;

	/* This thread will be busy copying; wakes sleepers so that they make progress. */
	if (!mrf_list_empty(&ep->chores)) {
		mrf_wait_call(&ep->link_tx);
		mrf_wait_call(&ep->link_wr);
		mrf_wait_call(&ep->link_rd);
		mrf_wait_call(&ep->link_rx);
		mrf_wait_call(&ep->link_snd);
		mrf_wait_call(&ep->link_rcv);
	}
	mrf_lock_release(&ep->lock);
	ret = copy_results(ep, op, may_wait);
	mrf_lock_take(&ep->lock);
	if (ret == -FI_EAGAIN)
		return false;
	complete_first_locked(ep, op, ret);
	return true;
}

/* The next buffers of the operation are brought within reach, or its next chunk is copied. */
static void prepare_locked(struct mrf_ep *ep, struct mrf_peer *peer)
{
	struct mrf_op *op = peer->chores.unprepared;
	bool staged = peer->chores.ahead;
	uint64_t pos = op->pos, chunk = staged ? mrf_stage_begin(&op->local, op->acked) : 0;
	struct mrf_refusal said = { .code = 0 };
	struct mrf_why why;
	int ret;

	mrf_lock_release(&ep->lock);
	mrf_refuse_catch(&said);
	ret = staged ? mrf_stage_copy(&ep->buf, &op->local, chunk)
		     : mrf_local_reach(&ep->buf, &op->local, pos);
	mrf_refuse_catch(NULL);
	mrf_lock_take(&ep->lock);
	if (ret)
		take_reason(&why, -ret, &said);
	else if (staged)
		mrf_stage_end(&op->local, chunk);
	peer->chores.unprepared = NULL;
	op->chore = 0;
	peer->chores.prepared(peer, op, ret ? &why : NULL);
}

/* Would the thread wait for a device, though it may have other operations to begin? */
static bool is_for_job_locked(const struct mrf_ep *ep, const struct mrf_op *op)
{
	mrf_lock_held(&ep->lock);
	return mrf_unlikely(mrf_local_is_ring(&op->local)) && ep->nops > 1;
}

/* The peer's first chore, without ep->lock where it takes time. False: it is for a job. */
static bool do_first_locked(struct mrf_ep *ep, struct mrf_peer *peer, bool may_wait)
{
	struct mrf_op *op;

	if (mrf_list_empty(&peer->chores.list)) {
		if (may_wait)
			prepare_locked(ep, peer);
		return may_wait;
	}
	op = mrf_list_entry(mrf_list_first(&peer->chores.list), struct mrf_op, node);
	/* The operation may only have been waiting for those before it. */
	if (!op->local.nuser || op->failed) {
		complete_first_locked(ep, op, 0);
		return true;
	}
	/* The agent waits for nobody's memory: others copy, even if it would be there. */
	if (!may_wait &&
	    (pthread_equal(pthread_self(), ep->agent->thread) || is_for_job_locked(ep, op)))
		return false;
	return deliver_locked(ep, op, may_wait);
}

static bool do_all_locked(struct mrf_ep *ep, struct mrf_peer *peer, bool may_wait)
{
	mrf_lock_held(&ep->lock);
	while (has_chores_locked(peer)) {
		if (!do_first_locked(ep, peer, may_wait))
			return false;
	}
	return true;
}

static void rest_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	peer->chores.busy = false;
	if (peer->gone)
		mrf_conn_kick_locked(peer);
}

static void run_locked(struct mrf_ep *ep, struct mrf_peer *peer)
{
	int ret;

	peer->chores.busy = true;
	if (!do_all_locked(ep, peer, false)) {
		mrf_lock_release(&ep->lock);
		ret = mrf_agent_job(ep->agent, MRF_CREW_MEMORY, &peer->chores.job);
		mrf_lock_take(&ep->lock);
		if (!ret)
			return;
		/* If there is no thread for the job, this one does it. */
		do_all_locked(ep, peer, true);
	}
	rest_locked(peer);
}

static bool work(struct mrf_job *job)
{
	struct mrf_peer *peer = mrf_container_of(job, struct mrf_peer, chores.job);
	struct mrf_ep *ep = peer->ep;

	mrf_lock_take(&ep->lock);
	do_all_locked(ep, peer, true);
	mrf_lock_release(&ep->lock);
	return false;
}

/* More may have come meanwhile. */
static void over(struct mrf_job *job)
{
	struct mrf_peer *peer = mrf_container_of(job, struct mrf_peer, chores.job);
	struct mrf_ep *ep = peer->ep;

	mrf_lock_take(&ep->lock);
	rest_locked(peer);
	offer_locked(ep, peer);
	mrf_chores_unlock(ep);
}

void mrf_chores_init(struct mrf_peer *peer)
{
	mrf_list_init(&peer->chores.list);
	mrf_list_init(&peer->chores.of_ep);
	mrf_list_init(&peer->chores.job.node);
	peer->chores.job.work = work;
	peer->chores.job.over = over;
}

static void drop_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	mrf_lock_release(&ep->lock);
	mrf_local_drop(&ep->buf, &op->local);
	mrf_lock_take(&ep->lock);
	put_back_locked(ep, op);
	atomic_fetch_sub(&ep->ended, 1);
}

static void look_what_is_left_locked(struct mrf_ep *ep)
{
	if (mrf_list_empty(&ep->chores) && mrf_list_empty(&ep->drops) &&
	    !mrf_pull_step_has_late_locked(ep->inbox))
		atomic_store(&ep->source.left, false);
}

/* NULL: the list is empty. */
static struct mrf_list *take_left_locked(struct mrf_ep *ep, struct mrf_list *list)
{
	struct mrf_list *node = mrf_list_pop(list);

	if (node)
		look_what_is_left_locked(ep);
	return node;
}

static bool run_one_locked(struct mrf_ep *ep)
{
	struct mrf_list *node;

	mrf_lock_held(&ep->lock);
	if ((node = take_left_locked(ep, &ep->chores)))
		run_locked(ep, mrf_list_entry(node, struct mrf_peer, chores.of_ep));
	else if ((node = take_left_locked(ep, &ep->drops)))
		drop_locked(ep, mrf_list_entry(node, struct mrf_op, node));
	return node;
}

void mrf_chores_run(struct mrf_ep *ep)
{
	mrf_lock_take(&ep->lock);
	while (run_one_locked(ep))
		;
	if (mrf_pull_step_has_late_locked(ep->inbox))
		mrf_pull_step_late_locked(ep->inbox);
	look_what_is_left_locked(ep);
	mrf_lock_release(&ep->lock);
}

static bool is_any_busy(struct mrf_ep *ep)
{
	bool busy = false;

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->all_peers)
		busy |= mrf_list_entry(node, struct mrf_peer, node)->chores.busy;
	busy |= ep->inbox && ep->inbox->copying;
	mrf_lock_release(&ep->lock);
	return busy;
}

void mrf_chores_wait(struct mrf_ep *ep)
{
	while (is_any_busy(ep))
		usleep(1000);
}

void mrf_chores_unlock(struct mrf_ep *ep)
{
	mrf_lock_release(&ep->lock);
	if (atomic_load(&ep->source.left))
		mrf_chores_run(ep);
}
