/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of regions. A region whose writes are counted (flag FI_RMA_EVENT, or any
 * writable one in a domain with the capability FI_RMA_EVENT where FI_MR_RMA_EVENT is not
 * in force) has an event number: 32 bits, never 0, not used again before all others were.
 * Its provider key never carries an rkey and its raw key is never complete, so every peer
 * asks, and the answer of an endpoint with FI_RMA_EVENT has the number.
 *
 * The initiator sends it as immediate data with the last bytes that an operation writes to the
 * region: once for each region and operation, however the operation is split. A write that is
 * refused or flushed on its way has not been counted, and carries the number again when it is
 * repeated; one that was acknowledged has its completion in the agent's queue. A write that
 * carried a number is never done twice (ep/tx/fail.c). Since immediate data are taken,
 * FI_REMOTE_CQ_DATA go to such endpoints as a message behind the write. Whether a counter is
 * bound is this side's business alone. Where no endpoint can say so, because neither the domain nor
 * the endpoints have the capability, a counter would wait for ever, so it is not bound.
 *
 * The agent looks up number, region and counters under space->lock. A number of a region
 * that is not served, or not to that endpoint's class, counts nothing, and neither does
 * one that comes with no bytes. The same lookup serves an endpoint's counter of remote
 * writes.
 *
 * The count is exact at the edges: before a connection is destroyed the agent takes in
 * what is in its queue; fi_close of a region has it do the same after the kernel regions
 * are gone, and that of an endpoint first puts its peers' queue pairs into error, so that
 * nothing lands any more. What a job of the agent's has written is counted before the job
 * lets go of the region. So what a peer knows to be done is in the count when fi_close
 * returns. A closing region keeps its authorization key until then, because what comes in
 * late counts only if it comes from a member of the key's group. A pending region counts
 * nothing.
 *
 * A counter or endpoint that closes is unbound up to API version 2.2; from 2.3 on, or by the profile,
 * closing it is refused while a region is bound to it.
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "contract/rules.h"
#include "mr/bind.h"
#include "mr/binding.h"
#include "mr/event.h"
#include "mr/face.h"
#include "mr/profiled.h"
#include "mr/region.h"
#include "mr/serve.h"
#include "mr/space.h"
#include "mr/region_state.h"
#include "obj/cntr.h"

#define NAME_TEXT 128

/* --- numbers ---------------------------------------------------------------------- */

int mrf_mr_event_open_locked(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;
	struct mrf_mr_event *event = malloc(sizeof(*event));
	int ret;

	mrf_lock_held(&space->lock);
	if (!event)
		return -FI_ENOMEM;
	event->mr = mr;
	mrf_list_init(&event->counters);
	/*
	 * No number is used again before all others were given out: a late write finds no
	 * region.
	 */
	do {
		event->number = ++space->last_event;
		ret = event->number ? mrf_idmap_insert(&space->events, event->number, event)
				    : -FI_EALREADY;
	} while (ret == -FI_EALREADY);
	if (ret)
		free(event);
	else
		mr->event = event;
	return ret;
}

void mrf_mr_event_drop_locked(struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	if (!mr->event)
		return;
	mrf_idmap_remove(&mr->space->events, mr->event->number);
	free(mr->event);
	mr->event = NULL;
}

/*
 * Writes that came before the region or the endpoint was closed are counted; neither lets
 * any peer in after that.
 */
static bool may_count_locked(const struct mrf_mr *mr, const struct mrf_mr_port *port)
{
	const struct mrf_mr_query query = { .port = port };
	const struct mrf_mr_face *face;

	mrf_lock_held(&mr->space->lock);
	switch (mrf_mr_may_locked(mr, &query, FI_REMOTE_WRITE, &face)) {
	case MRF_MR_OK:
	case MRF_MR_CLOSED:
		return true;
	case MRF_MR_NOT_BOUND:
		return mrf_list_empty(&port->node);
	case MRF_MR_UNKNOWN:
	case MRF_MR_DISABLED:
	case MRF_MR_OUTSIDE:
	case MRF_MR_NOT_REFRESHED:
	case MRF_MR_NOT_MAPPED:
	case MRF_MR_NO_ROOM:
	case MRF_MR_NO_RIGHT:
		break;
	}
	return false;
}

void mrf_mr_event(struct mrf_mr_space *space, uint32_t number, const struct mrf_mr_port *port)
{
	const struct mrf_mr_event *event;

	mrf_lock_take(&space->lock);
	event = mrf_idmap_find(&space->events, number);
	if (mrf_likely(event && may_count_locked(event->mr, port))) {
		mrf_list_each (node, &event->counters)
			mrf_cntr_add(mrf_list_entry(node, struct mrf_mr_binding, mine)->cntr, 1);
		if (port->writes)
			mrf_cntr_add(port->writes, 1);
	}
	mrf_lock_release(&space->lock);
}

void mrf_mr_port_count(struct mrf_mr_space *space, struct mrf_mr_port *port, struct mrf_cntr *cntr)
{
	mrf_lock_take(&space->lock);
	port->writes = cntr;
	mrf_lock_release(&space->lock);
}

/* --- binding ---------------------------------------------------------------------- */

static int counter_closing(struct mrf_cntr *cntr, void *arg);

static bool is_bound_locked(const struct mrf_mr *mr, const struct mrf_cntr *cntr)
{
	mrf_list_each (node, &mr->event->counters) {
		if (mrf_list_entry(node, struct mrf_mr_binding, mine)->cntr == cntr)
			return true;
	}
	return false;
}

/* Programs bind every region that they make: those that no peer writes to, too. */
static bool is_written(const struct mrf_mr *mr)
{
	return mr->access & FI_REMOTE_WRITE;
}

/*
 * A region that starts enabled can be bound at any time; any other one only before it is
 * enabled, if it has anything to count.
 */
static bool lets_bind_locked(const struct mrf_mr *mr)
{
	if (mrf_mr_state_serves(mr->state))
		return !is_written(mr) || !(mr->space->mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT));
	return mrf_mr_state_lets(mr->state, MRF_CALL_BIND);
}

/* The capability FI_RMA_EVENT is the domain's, or that of an endpoint which is open. */
static bool is_told_locked(const struct mrf_mr_space *space)
{
	if (space->has_events)
		return true;
	mrf_list_each (node, &space->ports) {
		if (mrf_list_entry(node, struct mrf_mr_port, node)->events)
			return true;
	}
	return false;
}

/* Each endpoint that the region is bound to has it. */
static bool ports_told_locked(const struct mrf_mr *mr)
{
	mrf_list_each (node, &mr->bindings) {
		if (!mrf_list_entry(node, struct mrf_mr_binding, mine)->port->events)
			return false;
	}
	return true;
}

/* Can any write to it reach a counter? */
static int can_count_locked(const struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	if (!is_written(mr))
		return 0;
	if (!mr->event)
		return -FI_ENOSYS;
	if (!is_told_locked(mr->space))
		return -FI_EOPNOTSUPP;
	return ports_told_locked(mr) ? 0 : -FI_EBADFLAGS;
}

/* The errors of bind_counter_locked, except those that concern a binding. */
static int check_locked(const struct mrf_mr *mr, struct mrf_cntr *cntr, enum mrf_mr_state *state)
{
	int ret = can_count_locked(mr);

	*state = mr->state;
	if (*state == MRF_STATE_CLOSED)
		return -FI_EOPBADSTATE;
	if (ret)
		return ret;
	if (mrf_cntr_obj(cntr)->parent.target != mr->space->obj)
		return -FI_EDOMAIN;
	return lets_bind_locked(mr) ? 0 : -FI_EOPBADSTATE;
}

/*
 * -FI_EOPBADSTATE: the region is in *state. -FI_ENOSYS: its writes are not counted. -FI_EOPNOTSUPP:
 * nor are any in this domain. -FI_EBADFLAGS: nor are those through an endpoint that it is bound to.
 */
static int bind_counter_locked(struct mrf_mr *mr, struct mrf_cntr *cntr, enum mrf_mr_state *state)
{
	struct mrf_cntr_bindings *bindings = mrf_cntr_bindings(cntr);
	struct mrf_mr_binding *binding;
	int ret = check_locked(mr, cntr, state);

	mrf_lock_held(&mr->space->lock);
	/* A region that is not written to has nothing to count, so no binding is needed. */
	if (ret || !is_written(mr))
		return ret;
	if (is_bound_locked(mr, cntr))
		return -FI_EINVAL;
	if (!mrf_list_empty(&mr->event->counters) &&
	    mrf_mr_profiled_habit(mr->space, MRF_HABIT_ONE_CNTR))
		return -FI_EBUSY;
	binding = mrf_mr_binding_new_locked(mr, &mr->event->counters, &bindings->list);
	if (!binding)
		return -FI_ENOMEM;
	binding->cntr = cntr;
	bindings->closing = counter_closing;
	bindings->arg = mr->space;
	return 0;
}

/* Why its writes are not counted. */
static int refuse_region(const struct mrf_mr *mr, const struct fid *cntr)
{
	const void *region = mr, *counter = cntr;

	if (mr->space->mode & FI_MR_RMA_EVENT)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3232,
				  "fi_mr_bind(region %p, counter %p): the region was "
				  "registered without the flag FI_RMA_EVENT, and "
				  "FI_MR_RMA_EVENT is in force",
				  region, counter);
	return mrf_refuse(mrf_mr_profiled_error(mr->space, MRF_PROFILE_BIND, FI_ENOSYS), FI_LOG_MR,
			  3041,
			  "fi_mr_bind(region %p, counter %p): writes to it are not counted: the "
			  "domain was opened without FI_RMA_EVENT, and the region was "
			  "registered without that flag",
			  region, counter);
}

static int refuse_second(const struct mrf_mr *mr, const struct fid *cntr)
{
	const struct mrf_mr_space *space = mr->space;

	return mrf_refuse(
		mrf_mr_profiled_error(space, MRF_PROFILE_SECOND, FI_EBUSY), FI_LOG_MR, 3244,
		"fi_mr_bind(region %p, counter %p): the region has another counter, and "
		"one at most with FI_MRFAB_PROFILE=%s (%s)",
		(const void *)mr, (const void *)cntr, space->profile->name, space->profile->what);
}

static int refuse_cntr(const struct mrf_mr *mr, const struct fid *cntr, int err)
{
	int flags = mrf_mr_profiled_error(mr->space, MRF_PROFILE_BIND, FI_EBADFLAGS);

	switch (err) {
	case -FI_EBUSY:
		return refuse_second(mr, cntr);
	case -FI_ENOSYS:
		return refuse_region(mr, cntr);
	case -FI_EOPNOTSUPP:
		return mrf_refuse(
			flags, FI_LOG_MR, 3240,
			"fi_mr_bind(region %p, counter %p): it would never count: the domain "
			"was opened without FI_RMA_EVENT, and no endpoint has it, so none is "
			"told of writes by peers: ask for it in hints->caps",
			(const void *)mr, (const void *)cntr);
	case -FI_EBADFLAGS:
		return mrf_refuse(
			flags, FI_LOG_MR, 3241,
			"fi_mr_bind(region %p, counter %p): the region is bound to an endpoint "
			"without FI_RMA_EVENT, which is not told of writes by peers: ask for "
			"it in hints->caps",
			(const void *)mr, (const void *)cntr);
	case -FI_EDOMAIN:
		return mrf_refuse(mrf_mr_profiled_error(mr->space, MRF_PROFILE_BIND, FI_EDOMAIN),
				  FI_LOG_MR, 3233,
				  "fi_mr_bind(region %p, counter %p): the counter does "
				  "not belong to the region's domain",
				  (const void *)mr, (const void *)cntr);
	case -FI_EINVAL:
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3238,
				  "fi_mr_bind(region %p, counter %p): the two are bound already",
				  (const void *)mr, (const void *)cntr);
	default:
		return mrf_refuse(-err, FI_LOG_MR, 3022, "there is no memory for a region");
	}
}

int mrf_mr_bind_cntr(struct mrf_mr *mr, struct fid *fid, uint64_t flags)
{
	struct mrf_cntr *cntr = mrf_cntr_from_fid(fid);
	enum mrf_mr_state state;
	int ret;

	if (flags != FI_REMOTE_WRITE &&
	    (flags || !mrf_mr_profiled_habit(mr->space, MRF_HABIT_LOOSE_BIND)))
		return mrf_refuse(mrf_mr_profiled_error(mr->space, MRF_PROFILE_BIND, FI_EBADFLAGS),
				  FI_LOG_MR, 3234,
				  "fi_mr_bind(region %p, counter %p): flags=%#lx, but must "
				  "be FI_REMOTE_WRITE, because nothing else is counted",
				  (void *)mr, (void *)fid, flags);
	mrf_lock_take(&mr->space->lock);
	ret = bind_counter_locked(mr, cntr, &state);
	mrf_lock_release(&mr->space->lock);
	if (!ret && !is_written(mr) && mrf_mr_space_first(mr->space, MRF_WARNED_UNWRITTEN))
		mrf_warn(
			FI_LOG_MR, 3242,
			"fi_mr_bind(region %p, counter %p): accepted, but it counts nothing: the region "
			"was registered without FI_REMOTE_WRITE (said once per domain)",
			(void *)mr, (void *)fid);
	if (ret == -FI_EOPBADSTATE)
		return mrf_mr_state_refuse(mr, state, MRF_CALL_BIND);
	return ret ? refuse_cntr(mr, fid, ret) : 0;
}

/* --- closing ---------------------------------------------------------------------- */

int mrf_mr_event_busy_locked(const struct mrf_mr *mr)
{
	const struct mrf_mr_binding *binding;

	mrf_lock_held(&mr->space->lock);
	if (!mr->event || mrf_list_empty(&mr->event->counters) ||
	    mrf_mr_profiled_region_first(mr->space) || mrf_mr_lets_go(mr, "counter"))
		return 0;
	binding = mrf_list_entry(mr->event->counters.next, struct mrf_mr_binding, mine);
	return mrf_refuse(FI_EBUSY, FI_LOG_MR, 3239,
			  "fi_close(region %p): the region is bound to counter %p, which has to be "
			  "closed first (before API version 2.3; FI_MRFAB_STRICT=off allows it)",
			  (const void *)mr, (void *)mrf_cntr_obj(binding->cntr)->fid);
}

/* Does any endpoint count what is written through it? */
static bool ports_count_locked(const struct mrf_mr_space *space)
{
	mrf_lock_held(&space->lock);
	mrf_list_each (node, &space->ports) {
		if (mrf_list_entry(node, struct mrf_mr_port, node)->writes)
			return true;
	}
	return false;
}

/*
 * Counts everything that peers know to be written, before the region's number is gone. The
 * region can still have a counter only where regions close first.
 */
static void settle_bindings(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;
	void (*call)(void *arg) = NULL;
	void *arg = NULL;

	mrf_lock_take(&space->lock);
	if (!mrf_list_empty(&mr->event->counters) || ports_count_locked(space)) {
		call = space->settle;
		arg = space->settle_arg;
	}
	mrf_lock_release(&space->lock);
	if (call)
		call(arg);
}

void mrf_mr_event_close(struct mrf_mr *mr)
{
	struct mrf_list *counters = &mr->event->counters;

	settle_bindings(mr);
	mrf_lock_take(&mr->space->lock);
	while (!mrf_list_empty(counters))
		mrf_mr_binding_end_locked(
			mrf_list_entry(counters->next, struct mrf_mr_binding, mine));
	mrf_mr_event_drop_locked(mr);
	mrf_lock_release(&mr->space->lock);
}

static int refuse_counter_close(struct mrf_cntr *cntr, const char *region)
{
	return mrf_refuse(FI_EBUSY, FI_LOG_MR, 3231,
			  "fi_close(counter %p): region %s is bound to it and has to be closed "
			  "first (from API version 2.3 on, or by FI_MRFAB_PROFILE)",
			  (void *)mrf_cntr_obj(cntr)->fid, region);
}

static int counter_closing(struct mrf_cntr *cntr, void *arg)
{
	struct mrf_list *bindings = &mrf_cntr_bindings(cntr)->list;
	struct mrf_mr_space *space = arg;
	char region[NAME_TEXT];
	bool busy = false;

	mrf_lock_take(&space->lock);
	while (!busy && !mrf_list_empty(bindings)) {
		struct mrf_mr_binding *binding =
			mrf_list_entry(bindings->next, struct mrf_mr_binding, theirs);

		busy = mrf_mr_profiled_region_first(space);
		if (busy)
			mrf_mr_name(binding->mr, region, sizeof(region));
		else
			mrf_mr_binding_end_locked(binding);
	}
	mrf_lock_release(&space->lock);
	return busy ? refuse_counter_close(cntr, region) : 0;
}
