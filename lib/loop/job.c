/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/thread.h"
#include "loop/agent_calls.h"
#include "loop/job.h"

/* --- the threads ------------------------------------------------------------------------- */

static void queue_job_locked(struct mrf_agent *agent, struct mrf_job *job)
{
	mrf_lock_held(&agent->lock);
	mrf_list_add_tail(&job->node, &agent->crew.waiting);
	agent->crew.queued++;
	sem_post(&agent->crew.work);
}

/* NULL: there is none, and the thread is to end. */
static struct mrf_job *job_waiting(struct mrf_agent *agent)
{
	struct mrf_crew *crew = &agent->crew;
	struct mrf_list *node;

	while (sem_wait(&crew->work) && errno == EINTR)
		;
	mrf_lock_take(&agent->lock);
	node = mrf_list_pop(&crew->waiting);
	if (node) {
		crew->queued--;
		crew->busy++;
	}
	mrf_lock_release(&agent->lock);
	return node ? mrf_list_entry(node, struct mrf_job, node) : NULL;
}

static void job_returned(struct mrf_agent *agent, struct mrf_job *job, bool more)
{
	mrf_lock_take(&agent->lock);
	agent->crew.busy--;
	if (more)
		queue_job_locked(agent, job);
	else
		mrf_list_add_tail(&job->node, &agent->crew.done);
	mrf_lock_release(&agent->lock);
	if (!more && !atomic_exchange(&agent->crew.told, true))
		mrf_agent_wake(agent);
}

static void *crew_main(void *arg)
{
	struct mrf_agent *agent = arg;
	struct mrf_job *job;

	mrf_thread_no_rush();
	while ((job = job_waiting(agent)))
		job_returned(agent, job, job->work(job));
	return NULL;
}

/* One more, if all have something to do. Without it the jobs are the others'. */
static int enlist_locked(struct mrf_agent *agent)
{
	struct mrf_crew *crew = &agent->crew;
	int ret;

	mrf_lock_held(&agent->lock);
	if (crew->busy + crew->queued < crew->n || crew->n == MRF_JOB_THREADS)
		return 0;
	ret = mrf_thread_start(&crew->thread[crew->n], crew_main, agent, "mrfab-job");
	crew->n += !ret;
	return crew->n ? 0 : ret;
}

/* --- jobs -------------------------------------------------------------------------------- */

int mrf_agent_job(struct mrf_agent *agent, struct mrf_job *job)
{
	int ret;

	mrf_lock_take(&agent->lock);
	ret = enlist_locked(agent);
	if (!ret)
		queue_job_locked(agent, job);
	mrf_lock_release(&agent->lock);
	return ret;
}

static struct mrf_job *job_done(struct mrf_agent *agent)
{
	struct mrf_list *node;

	mrf_lock_take(&agent->lock);
	node = mrf_list_pop(&agent->crew.done);
	mrf_lock_release(&agent->lock);
	return node ? mrf_list_entry(node, struct mrf_job, node) : NULL;
}

void mrf_agent_run_jobs(struct mrf_agent *agent)
{
	struct mrf_job *job;

	if (mrf_likely(!atomic_load(&agent->crew.told)))
		return;
	atomic_store(&agent->crew.told, false);
	while ((job = job_done(agent)))
		job->over(job);
}

/* --- starting and stopping --------------------------------------------------------------- */

void mrf_crew_init(struct mrf_crew *crew)
{
	mrf_list_init(&crew->waiting);
	mrf_list_init(&crew->done);
	sem_init(&crew->work, 0, 0);
}

void mrf_crew_stop(struct mrf_agent *agent)
{
	struct mrf_crew *crew = &agent->crew;
	unsigned i;

	/* A thread ends when it is woken and no job is left, so all jobs are done before. */
	for (i = 0; i < crew->n; i++)
		sem_post(&crew->work);
	for (i = 0; i < crew->n; i++)
		pthread_join(crew->thread[i], NULL);
	mrf_agent_run_jobs(agent);
	mrf_crew_fini(crew);
}

void mrf_crew_fini(struct mrf_crew *crew)
{
	sem_destroy(&crew->work);
}
