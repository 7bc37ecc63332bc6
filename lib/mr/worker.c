/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker of a space. Before it queues the job the call has checked the arguments,
 * taken the requested key, allocated everything that reporting needs (so that no event is
 * lost for want of memory), entered the region as pending and written *mr. The worker
 * pins; then, under space->lock, it puts the kernel regions in, takes a provider key
 * (which may carry the rkey), moves the state and writes the event. A failed job lets go
 * of what it pinned before the event is written, and frees the key; code and reason of
 * its log line become prov_errno and err_data.
 *
 * fi_close of a pending region takes its job out of the queue, or waits while the kernel
 * is at it. Enabling and refreshing are always synchronous. In a space with a worker
 * plain is false, so that the short way of registering never looks for it.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/thread.h"
#include "mr/enable.h"
#include "mr/face.h"
#include "mr/key.h"
#include "mr/pins.h"
#include "mr/region.h"
#include "mr/space.h"
#include "mr/region_state.h"
#include "mr/worker.h"

struct mrf_mr_worker {
	struct mrf_mr_space *space;
	struct mrf_eq *eq;
	pthread_t thread;
	sem_t work;	      /* goes up with each job, and to stop */
	struct mrf_list jobs; /* struct mrf_mr_task.node; guarded by space->lock */
	bool stop;	      /* likewise */
};

/* --- the worker ------------------------------------------------------------------- */

static void report_locked(struct mrf_mr_worker *worker, struct mrf_mr_task *job, int ret,
			  const struct mrf_refusal *why)
{
	struct fid *fid = &job->mr->fid.fid;
	struct fi_eq_entry entry = { .fid = fid, .context = fid->context };
	struct fi_eq_err_entry err = {
		.fid = fid, .context = fid->context, .err = -ret, .prov_errno = (int)why->code
	};

	mrf_lock_held(&worker->space->lock);
	if (!ret)
		mrf_eq_post(worker->eq, &job->event, FI_MR_COMPLETE, &entry);
	else
		mrf_eq_post_err(worker->eq, &job->event, &err, why->text);
}

/* Everything that was made for a region. */
struct made {
	struct mrf_mr_pins pins;
	struct mrf_mr_face *faces;
};

/* Does the part of the work that the synchronous call does before it returns. */
static int make_region(struct mrf_mr_task *job, struct made *made)
{
	struct mrf_mr *mr = job->mr;
	int ret = 0;

	/*
	 * The kernel has nothing of a region without rights that has an authorization
	 * key.
	 */
	if (!mr->device && (job->deferred || mr->back || !(mr->access & MRF_MR_RIGHTS)))
		ret = mrf_mr_check_memory(mr->space, mr->segs, mr->nseg, mr->access);
	if (ret || job->deferred)
		return ret;
	return mrf_mr_make(mr, MRF_STATE_PENDING, &made->pins, &made->faces);
}

/* -FI_ENOMEM: there is no room for the key. */
static int open_locked(struct mrf_mr_task *job, struct made *made)
{
	struct mrf_mr *mr = job->mr;
	int ret;

	mrf_lock_held(&job->mr->space->lock);
	if (made->pins.nseg)
		mrf_mr_put_pins_locked(mr, &made->pins);
	ret = mrf_mr_key_take_own_locked(mr);
	if (ret)
		return ret;
	if (job->deferred) {
		mrf_mr_move_locked(mr, MRF_STATE_DISABLED);
		return 0;
	}
	/*
	 * A region that is bound to endpoints is deferred, so nothing could have changed.
	 */
	mrf_mr_faces_take_locked(mr, &made->faces);
	mrf_mr_open_locked(mr);
	return 0;
}

/* The region cannot be used: unpins its memory and frees its key. */
static void fail_job(struct mrf_mr_worker *worker, struct mrf_mr_task *job, struct made *made,
		     int ret, const struct mrf_refusal *why)
{
	struct mrf_mr_space *space = worker->space;
	struct mrf_mr *mr = job->mr;

	mrf_mr_unpin(&made->pins);
	mrf_mr_faces_undo(mr, &made->faces);
	mrf_lock_take(&space->lock);
	/* If the kernel keeps some of it, closing the region tries again. */
	if (made->pins.nseg)
		mrf_mr_put_pins_locked(mr, &made->pins);
	if (mr->state == MRF_STATE_PENDING) {
		mrf_mr_key_release_locked(mr);
		mrf_mr_move_locked(mr, MRF_STATE_FAILED);
		report_locked(worker, job, ret, why);
	}
	mrf_mr_leave_locked(mr);
	mrf_lock_release(&space->lock);
}

static void run_job(struct mrf_mr_worker *worker, struct mrf_mr_task *job)
{
	struct mrf_mr_space *space = worker->space;
	struct mrf_mr *mr = job->mr;
	struct mrf_refusal why;
	struct made made = { .faces = NULL };
	int ret;

	mrf_refuse_catch(&why);
	ret = make_region(job, &made);
	mrf_lock_take(&space->lock);
	if (!ret && mr->state != MRF_STATE_PENDING) {
		ret = -FI_ECANCELED;
	} else if (!ret) {
		ret = open_locked(job, &made);
		if (ret)
			mrf_refuse(-ret, FI_LOG_MR, 3022, "there is no memory for a region");
	}
	if (!ret) {
		report_locked(worker, job, 0, &why);
		mrf_mr_leave_locked(mr);
	}
	mrf_lock_release(&space->lock);
	mrf_refuse_catch(NULL);
	if (ret)
		fail_job(worker, job, &made, ret, &why);
}

/* NULL: there is none (any more). */
static struct mrf_mr_task *next_job(struct mrf_mr_worker *worker, bool *stop)
{
	struct mrf_mr_task *job = NULL;
	struct mrf_list *node;

	mrf_lock_take(&worker->space->lock);
	*stop = worker->stop;
	node = mrf_list_pop(&worker->jobs);
	if (node) {
		job = mrf_list_entry(node, struct mrf_mr_task, node);
		job->waits = false;
	}
	mrf_lock_release(&worker->space->lock);
	return job;
}

static void *worker_main(void *arg)
{
	struct mrf_mr_worker *worker = arg;
	struct mrf_mr_task *job;
	bool stop = false;

	mrf_thread_own();
	mrf_thread_no_rush();
	while (!stop) {
		while (sem_wait(&worker->work) && errno == EINTR)
			;
		job = next_job(worker, &stop);
		if (job)
			run_job(worker, job);
	}
	return NULL;
}

/* --- starting and stopping it ----------------------------------------------------- */

/* -FI_EOPBADSTATE: there are regions. */
static int install_worker(struct mrf_mr_space *space, struct mrf_mr_worker *worker)
{
	bool empty;

	mrf_lock_take(&space->lock);
	empty = mrf_list_empty(&space->regions.holds);
	if (empty) {
		space->worker = worker;
		space->plain = false;
	}
	mrf_lock_release(&space->lock);
	return empty ? 0 : -FI_EOPBADSTATE;
}

static void worker_free(struct mrf_mr_worker *worker)
{
	sem_destroy(&worker->work);
	free(worker);
}

static void worker_stop(struct mrf_mr_worker *worker)
{
	mrf_lock_take(&worker->space->lock);
	worker->stop = true;
	mrf_lock_release(&worker->space->lock);
	sem_post(&worker->work);
	pthread_join(worker->thread, NULL);
	worker_free(worker);
}

int mrf_mr_space_report_to(struct mrf_mr_space *space, struct mrf_eq *eq)
{
	struct mrf_mr_worker *worker = calloc(1, sizeof(*worker));
	int ret;

	if (!worker)
		return -FI_ENOMEM;
	worker->space = space;
	worker->eq = eq;
	mrf_list_init(&worker->jobs);
	sem_init(&worker->work, 0, 0);
	ret = mrf_thread_start(&worker->thread, worker_main, worker, "mrfab-reg");
	if (ret) {
		worker_free(worker);
		return ret;
	}
	ret = install_worker(space, worker);
	if (ret)
		worker_stop(worker);
	return ret;
}

void mrf_mr_space_report_end(struct mrf_mr_space *space)
{
	if (!space->worker)
		return;
	worker_stop(space->worker);
	space->worker = NULL;
}

/* --- jobs ------------------------------------------------------------------------- */

struct mrf_mr_task *mrf_mr_task_new(bool deferred)
{
	struct mrf_mr_task *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->deferred = deferred;
	job->event = mrf_eq_event_new();
	if (job->event)
		return job;
	free(job);
	return NULL;
}

void mrf_mr_task_free(struct mrf_mr_space *space, struct mrf_mr_task *job)
{
	mrf_eq_retract(space->worker->eq, &job->event);
	free(job);
}

void mrf_mr_task_start(struct mrf_mr *mr, struct mrf_mr_task *job)
{
	struct mrf_mr_worker *worker = mr->space->worker;

	mrf_lock_take(&worker->space->lock);
	mr->job = job;
	mrf_mr_enter_locked(mr);
	job->mr = mr;
	job->waits = true;
	mrf_list_add_tail(&job->node, &worker->jobs);
	mrf_lock_release(&worker->space->lock);
	sem_post(&worker->work);
}

void mrf_mr_task_drop_locked(struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	if (!mr->job || !mr->job->waits)
		return;
	mrf_list_del(&mr->job->node);
	mr->job->waits = false;
	mrf_mr_leave_locked(mr);
}
