/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous registration: fi_mr_reg in a domain that is bound to an event queue with
 * FI_REG_MR. The call checks every argument, takes the requested key and makes the
 * region, in state pending; the space's worker thread then pins it, moves it to enabled,
 * disabled or failed, and writes the event, in the order of the calls.
 *
 * State and event change together, under space->lock: a thread that has read the event
 * finds the region in that state, and fi_close either takes the unread event out of the
 * queue or keeps it from being written. No event is about a region that is closed.
 */
#ifndef MRF_MR_WORKER_H
#define MRF_MR_WORKER_H

#include "mr/region.h"
#include "obj/eq.h"

/*
 * The job of a region that was registered asynchronously, until the region is closed;
 * allocated. From the call until the worker is done with it, the job counts in mr->users.
 * All fields but event are guarded by space->lock.
 */
struct mrf_mr_task {
	struct mrf_list node; /* in worker->jobs while it waits there */
	bool waits;
	bool deferred; /* ends up disabled */
	struct mrf_mr *mr;
	struct mrf_eq_event *event; /* see obj/eq.h; NULL once it is read */
};

/*
 * Makes a job with everything that reporting needs, so that no event is lost for lack of
 * memory. NULL: no memory.
 */
struct mrf_mr_task *mrf_mr_task_new(bool deferred);
/*
 * Leaves the rest of a pending region to the worker. No lock held; space->worker is set.
 */
void mrf_mr_task_start(struct mrf_mr *mr, struct mrf_mr_task *job);

/*
 * From now on a thread registers regions and reports them to eq (FI_REG_MR). Called at
 * most once; eq outlives the space. -FI_EOPBADSTATE: there are regions already;
 * -FI_ENOMEM; -FI_EAGAIN: no more threads. Not logged.
 */
int mrf_mr_space_report_to(struct mrf_mr_space *space, struct mrf_eq *eq);
/* Stops the worker, which has no job left. Harmless without a worker. */
void mrf_mr_space_report_end(struct mrf_mr_space *space);

/* The region is being closed: a waiting job is not begun. space->lock is held. */
void mrf_mr_task_drop_locked(struct mrf_mr *mr);
/*
 * Frees the job and takes back its event if it is unread. No thread is between enter and
 * leave of its region, if it has one.
 */
void mrf_mr_task_free(struct mrf_mr_space *space, struct mrf_mr_task *job);

#endif
