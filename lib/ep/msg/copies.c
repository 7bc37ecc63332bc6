/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "buf/stage.h"
#include "ep/model/ep.h"
#include "ep/msg/copies.h"
#include "ep/msg/inbox.h"
#include "loop/agent_calls.h"

static struct mrf_ep *ep_of(const struct mrf_copies *copies)
{
	return copies->inbox->ep;
}

void mrf_copies_init(struct mrf_inbox *inbox)
{
	struct mrf_copies *copies = &inbox->copies;
	unsigned i;

	copies->inbox = inbox;
	mrf_list_init(&copies->waiting);
	mrf_list_init(&copies->ringless);
	for (i = 0; i < MRF_COPIERS; i++)
		copies->copier[i].copies = copies;
}

/* --- what is to be done --------------------------------------------------------------- */

void mrf_copies_add_locked(struct mrf_copies *copies, struct mrf_copy *copy)
{
	mrf_lock_held(&ep_of(copies)->lock);
	mrf_list_add_tail(&copy->node, &copies->waiting);
	copies->nwaiting++;
	atomic_store(&ep_of(copies)->source.left, true);
}

bool mrf_copies_drop_locked(struct mrf_copies *copies, struct mrf_copy *copy)
{
	mrf_lock_held(&ep_of(copies)->lock);
	mrf_list_each (node, &copies->waiting)
		copies->nwaiting -= node == &copy->node;
	if (mrf_list_empty(&copy->node))
		return false;
	mrf_list_del(&copy->node);
	return true;
}

struct mrf_stage_ring *mrf_copies_ring_locked(struct mrf_copies *copies,
					      struct mrf_stage_pool *pool)
{
	mrf_lock_held(&ep_of(copies)->lock);
	return mrf_stage_ring_try(pool);
}

/* Those that wait for a ring try again: there is one, or none will be given back. */
static void try_again_locked(struct mrf_copies *copies)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&copies->ringless)))
		mrf_copies_add_locked(copies, mrf_list_entry(node, struct mrf_copy, node));
}

void mrf_copies_give_ring_locked(struct mrf_copies *copies, struct mrf_stage_pool *pool,
				 struct mrf_stage_ring *ring)
{
	mrf_lock_held(&ep_of(copies)->lock);
	mrf_stage_ring_give(pool, ring);
	try_again_locked(copies);
}

/* --- doing it ------------------------------------------------------------------------- */

/* No lock is held. */
static int do_copy(struct mrf_buf *buf, struct mrf_copy *copy)
{
	switch (copy->kind) {
	case MRF_COPY_BYTES:
		break;
	case MRF_COPY_RING:
		return mrf_stage_ring_take(copy->pool, buf->space->pd, &copy->ring);
	}
	return mrf_stage_part(buf, copy->local, copy->from, copy->len, copy->host);
}

/*
 * It may have been given back before the copy could say that it waits; or whoever was making the other
 * one could not, so that this copy tries again, and fails if it is alone.
 */
static void wait_for_ring_locked(struct mrf_copies *copies, struct mrf_copy *copy)
{
	copy->ring = mrf_copies_ring_locked(copies, copy->pool);
	if (copy->ring)
		copy->over(copy, NULL);
	else if (mrf_stage_ring_is_used(copy->pool))
		mrf_list_add_tail(&copy->node, &copies->ringless);
	else
		mrf_copies_add_locked(copies, copy);
}

static void did_locked(struct mrf_copies *copies, struct mrf_copy *copy, int ret,
		       const struct mrf_refusal *said)
{
	struct mrf_why why;

	if (ret == -FI_EAGAIN) {
		wait_for_ring_locked(copies, copy);
		return;
	}
	if (ret)
		mrf_why_said(&why, -ret, said, "the device's memory could not be copied");
	if (ret && copy->kind == MRF_COPY_RING)
		try_again_locked(copies);
	copy->over(copy, ret ? &why : NULL);
}

/* False: there is none. */
static bool do_first_copy_locked(struct mrf_copies *copies)
{
	struct mrf_list *node = mrf_list_pop(&copies->waiting);
	struct mrf_ep *ep = ep_of(copies);
	struct mrf_refusal said = { .code = 0 };
	struct mrf_copy *copy;
	int ret;

	if (!node)
		return false;
	copy = mrf_list_entry(node, struct mrf_copy, node);
	copies->nwaiting--;
	copies->inbox->copying++;
	mrf_lock_release(&ep->lock);
	mrf_refuse_catch(&said);
	ret = do_copy(&ep->buf, copy);
	mrf_refuse_catch(NULL);
	mrf_lock_take(&ep->lock);
	copies->inbox->copying--;
	did_locked(copies, copy, ret, &said);
	return true;
}

static void do_all_copies_locked(struct mrf_copies *copies)
{
	while (do_first_copy_locked(copies))
		;
	mrf_inbox_tell_locked(copies->inbox);
}

/* --- by jobs -------------------------------------------------------------------------- */

static struct mrf_copier *copier_of(struct mrf_job *job)
{
	return mrf_container_of(job, struct mrf_copier, job);
}

static bool work_copies(struct mrf_job *job)
{
	struct mrf_copies *copies = copier_of(job)->copies;

	mrf_lock_take(&ep_of(copies)->lock);
	copies->called--;
	do_all_copies_locked(copies);
	mrf_lock_release(&ep_of(copies)->lock);
	return false;
}

static void copies_over(struct mrf_job *job)
{
	struct mrf_copies *copies = copier_of(job)->copies;
	struct mrf_ep *ep = ep_of(copies);

	mrf_lock_take(&ep->lock);
	copier_of(job)->busy = false;
	copies->inbox->copying--;
	mrf_copies_go_locked(copies);
	mrf_lock_release(&ep->lock);
}

static struct mrf_copier *idle_copier_locked(struct mrf_copies *copies)
{
	unsigned i;

	for (i = 0; i < MRF_COPIERS; i++) {
		if (!copies->copier[i].busy)
			return &copies->copier[i];
	}
	return NULL;
}

/* False: there is no thread for it. */
static bool begin_locked(struct mrf_copies *copies, struct mrf_copier *copier)
{
	int ret;

	copier->job = (struct mrf_job){ .work = work_copies, .over = copies_over };
	mrf_list_init(&copier->job.node);
	copier->busy = true;
	copies->called++;
	copies->inbox->copying++;
	mrf_lock_release(&ep_of(copies)->lock);
	ret = mrf_agent_job(ep_of(copies)->agent, MRF_CREW_MEMORY, &copier->job);
	mrf_lock_take(&ep_of(copies)->lock);
	if (!ret)
		return true;
	copier->busy = false;
	copies->called--;
	copies->inbox->copying--;
	return false;
}

bool mrf_copies_may_begin_locked(const struct mrf_copies *copies)
{
	unsigned i, busy = 0;

	mrf_lock_held(&ep_of(copies)->lock);
	for (i = 0; i < MRF_COPIERS; i++)
		busy += copies->copier[i].busy;
	return copies->nwaiting > copies->called && busy < MRF_COPIERS;
}

void mrf_copies_go_locked(struct mrf_copies *copies)
{
	mrf_lock_held(&ep_of(copies)->lock);
	while (mrf_copies_may_begin_locked(copies)) {
		if (!begin_locked(copies, idle_copier_locked(copies)))
			do_all_copies_locked(copies);
	}
}
