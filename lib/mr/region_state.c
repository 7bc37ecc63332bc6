/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/pool.h"
#include "mr/profiled.h"
#include "mr/region.h"
#include "mr/space.h"
#include "mr/region_state.h"

#define BIT(n) (1u << (n))

const uint8_t mrf_mr_state_calls[MRF_STATES] = {
	[MRF_STATE_CLOSED] = 0,
	[MRF_STATE_PENDING] = BIT(MRF_CALL_BIND) | BIT(MRF_CALL_CLOSE),
	[MRF_STATE_DISABLED] = BIT(MRF_CALL_BIND) | BIT(MRF_CALL_ENABLE) | BIT(MRF_CALL_CLOSE),
	[MRF_STATE_ENABLED] = BIT(MRF_CALL_ENABLE) | BIT(MRF_CALL_REFRESH) |
			      BIT(MRF_CALL_RAW_ATTR) | BIT(MRF_CALL_CLOSE),
	[MRF_STATE_REFRESHING] = BIT(MRF_CALL_ENABLE) | BIT(MRF_CALL_REFRESH) |
				 BIT(MRF_CALL_RAW_ATTR) | BIT(MRF_CALL_CLOSE),
	[MRF_STATE_FAILED] = BIT(MRF_CALL_CLOSE),
};

/* --- moving ----------------------------------------------------------------------- */

#ifdef MRF_LOCKRANK

/* The arrows of the diagram: by state, bits of where they lead to. */
static const uint8_t arrows[MRF_STATES] = {
	[MRF_STATE_CLOSED] = BIT(MRF_STATE_PENDING) | BIT(MRF_STATE_DISABLED) |
			     BIT(MRF_STATE_ENABLED) | BIT(MRF_STATE_FAILED),
	[MRF_STATE_PENDING] = BIT(MRF_STATE_DISABLED) | BIT(MRF_STATE_ENABLED) |
			      BIT(MRF_STATE_FAILED) | BIT(MRF_STATE_CLOSED),
	[MRF_STATE_DISABLED] = BIT(MRF_STATE_ENABLED) | BIT(MRF_STATE_CLOSED),
	[MRF_STATE_ENABLED] = BIT(MRF_STATE_REFRESHING) | BIT(MRF_STATE_CLOSED),
	[MRF_STATE_REFRESHING] = BIT(MRF_STATE_ENABLED) | BIT(MRF_STATE_CLOSED),
	[MRF_STATE_FAILED] = BIT(MRF_STATE_CLOSED),
};

void mrf_mr_move_check(enum mrf_mr_state from, enum mrf_mr_state to)
{
	if (arrows[from] & BIT(to))
		return;
	fprintf(stderr, "mrfab: a region went from state %d to %d\n", from, to);
	abort();
}

#endif

/* --- refusing --------------------------------------------------------------------- */

static const char *const call_names[MRF_CALLS] = {
	[MRF_CALL_BIND] = "fi_mr_bind",	      [MRF_CALL_ENABLE] = "fi_mr_enable",
	[MRF_CALL_REFRESH] = "fi_mr_refresh", [MRF_CALL_RAW_ATTR] = "fi_mr_raw_attr",
	[MRF_CALL_CLOSE] = "fi_close",
};

static int refuse_closed(const struct mrf_mr *mr, enum mrf_mr_call call)
{
	unsigned code = 3252;

	if (call == MRF_CALL_CLOSE)
		code = 3031;
	else if (call == MRF_CALL_RAW_ATTR)
		code = 3101;
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, code, "%s(region %p): the region is closed%s",
			  call_names[call], (const void *)mr,
			  call == MRF_CALL_CLOSE ? " already" : "");
}

static int refuse_disabled(const struct mrf_mr *mr, enum mrf_mr_call call)
{
	if (call == MRF_CALL_RAW_ATTR)
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_MR, 3103,
				  "fi_mr_raw_attr(region %p): the region has no key, "
				  "because it is not enabled",
				  (const void *)mr);
	return mrf_refuse(FI_EOPBADSTATE, FI_LOG_MR, 3062,
			  "%s(region %p): the region has to be enabled first", call_names[call],
			  (const void *)mr);
}

int mrf_mr_state_refuse(const struct mrf_mr *mr, enum mrf_mr_state state, enum mrf_mr_call call)
{
	const char *name = call_names[call];
	int err = FI_EOPBADSTATE;

	if (call == MRF_CALL_BIND)
		err = mrf_mr_profiled_error(mr->space, MRF_PROFILE_BIND, err);
	switch (state) {
	case MRF_STATE_CLOSED:
		return refuse_closed(mr, call);
	case MRF_STATE_PENDING:
		return mrf_refuse(err, FI_LOG_MR, 3250,
				  "%s(region %p): the region's registration is under "
				  "way; the domain's event queue reports when it is done",
				  name, (const void *)mr);
	case MRF_STATE_FAILED:
		return mrf_refuse(err, FI_LOG_MR, 3251,
				  "%s(region %p): the region has failed, as was reported "
				  "before, and can only be closed",
				  name, (const void *)mr);
	case MRF_STATE_DISABLED:
		return refuse_disabled(mr, call);
	case MRF_STATE_ENABLED:
	case MRF_STATE_REFRESHING:
	case MRF_STATES:
		break;
	}
	return mrf_refuse(err, FI_LOG_MR, 3054, "%s(region %p): the region is enabled already",
			  name, (const void *)mr);
}

/* --- entering and leaving --------------------------------------------------------- */

/* A thread that closes a region, on its stack. */
struct waiter {
	struct mrf_list node; /* in space->waiters; guarded by space->lock */
	const struct mrf_mr *mr;
	sem_t left;
};

void mrf_mr_enter_locked(struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	mr->users++;
}

int mrf_mr_enter(struct mrf_mr *mr, enum mrf_mr_call call, enum mrf_mr_state *state)
{
	enum mrf_mr_state was;
	bool ok;

	mrf_lock_take(&mr->space->lock);
	was = mr->state;
	ok = mrf_mr_state_lets(was, call);
	if (ok) {
		mrf_mr_enter_locked(mr);
		if (call == MRF_CALL_REFRESH && was == MRF_STATE_ENABLED)
			mrf_mr_move_locked(mr, MRF_STATE_REFRESHING);
	}
	mrf_lock_release(&mr->space->lock);
	if (!ok)
		return mrf_mr_state_refuse(mr, was, call);
	if (state)
		*state = was;
	return 0;
}

void mrf_mr_leave_locked(struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	if (--mr->users)
		return;
	if (mr->state == MRF_STATE_REFRESHING)
		mrf_mr_move_locked(mr, MRF_STATE_ENABLED);
	mrf_list_each (node, &mr->space->waiters) {
		struct waiter *waiter = mrf_list_entry(node, struct waiter, node);

		if (waiter->mr == mr)
			sem_post(&waiter->left);
	}
}

void mrf_mr_leave(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;

	mrf_lock_take(&space->lock);
	mrf_mr_leave_locked(mr);
	mrf_lock_release(&space->lock);
}

void mrf_mr_wait_left(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;
	struct waiter waiter = { .mr = mr };

	sem_init(&waiter.left, 0, 0);
	mrf_lock_take(&space->lock);
	mrf_list_add_tail(&waiter.node, &space->waiters);
	while (mr->users) {
		mrf_lock_release(&space->lock);
		while (sem_wait(&waiter.left) && errno == EINTR)
			;
		mrf_lock_take(&space->lock);
	}
	mrf_list_del(&waiter.node);
	mrf_lock_release(&space->lock);
	sem_destroy(&waiter.left);
}
