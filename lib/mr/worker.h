/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registering while the call has returned: what fi_mr_reg does when its domain is bound
 * to an event queue with FI_REG_MR. The call checks every argument, takes the key that
 * was asked for and makes the region, pending; the space's worker, a thread, pins, makes
 * the region enabled, disabled or failed, and writes the event, in the order of the
 * calls.
 *
 * State and event change together, under space->lock: whoever has read the event finds
 * the region as it says, and fi_close either finds the event in the queue, unread, and
 * takes it out, or keeps it from being written. No event speaks of a region that is
 * closed.
 */
#ifndef MRF_MR_WORKER_H
#define MRF_MR_WORKER_H

#include "mr/region.h"
#include "obj/eq.h"

/*
 * Of a region that was registered in this way, until it is closed; allocated. From the
 * call until the worker is done with it, it counts in mr->users. All but event:
 * space->lock.
 */
struct mrf_mr_job {
	struct mrf_list node; /* in worker->jobs, while it waits there */
	bool waits;
	bool deferred; /* ends up disabled */
	struct mrf_mr *mr;
	struct mrf_eq_event *event; /* see obj/eq.h; NULL once it is read */
};

/* With all that reporting needs, so that no event is lost for want of memory. NULL: no memory. */
struct mrf_mr_job *mrf_mr_job_new(bool deferred);
/* Leaves the rest of a pending region to the worker. No lock held; space->worker is there. */
void mrf_mr_job_start(struct mrf_mr *mr, struct mrf_mr_job *job);

/*
 * From now on regions are registered by a thread, and eq tells when it is done (FI_REG_MR).
 * Once; eq outlives the space. -FI_EOPBADSTATE: there are regions; -FI_ENOMEM; -FI_EAGAIN:
 * no more threads. Not logged.
 */
int mrf_mr_space_report_to(struct mrf_mr_space *space, struct mrf_eq *eq);
/* Stops the worker, which has nothing to do any more. Harmless without one. */
void mrf_mr_space_report_end(struct mrf_mr_space *space);

/* The region is closed: nothing that waits is begun. The caller holds space->lock. */
void mrf_mr_job_drop_locked(struct mrf_mr *mr);
/* Nobody is inside its region, if it has one; takes back the event if nobody has read it. */
void mrf_mr_job_free(struct mrf_mr_space *space, struct mrf_mr_job *job);

#endif
