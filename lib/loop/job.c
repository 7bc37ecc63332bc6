/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/thread.h"
#include "loop/agent_calls.h"
#include "loop/job.h"

/* --- the threads ------------------------------------------------------------------------- */

static void queue_job_locked(struct mrf_crew *crew, struct mrf_job *job)
{
	mrf_lock_held(&crew->agent->lock);
	mrf_list_add_tail(&job->node, &crew->waiting);
	sem_post(&crew->work);
}

/* The first job of the list; NULL: the list is empty. */
static struct mrf_job *job_pop(struct mrf_agent *agent, struct mrf_list *list)
{
	struct mrf_list *node;

	mrf_lock_take(&agent->lock);
	node = mrf_list_pop(list);
	mrf_lock_release(&agent->lock);
	return node ? mrf_list_entry(node, struct mrf_job, node) : NULL;
}

/* NULL: there is no job left, and the thread has to end. */
static struct mrf_job *job_waiting(struct mrf_crew *crew)
{
	while (sem_wait(&crew->work) && errno == EINTR)
		;
	return job_pop(crew->agent, &crew->waiting);
}

static void job_returned(struct mrf_crew *crew, struct mrf_job *job, bool more)
{
	struct mrf_agent *agent = crew->agent;

	mrf_lock_take(&agent->lock);
	if (more) {
		queue_job_locked(crew, job);
	} else {
		mrf_list_add_tail(&job->node, &agent->done);
		crew->jobs--;
	}
	mrf_lock_release(&agent->lock);
	if (!more && !atomic_exchange(&agent->done_told, true))
		mrf_agent_wake(agent);
}

static void *crew_main(void *arg)
{
	struct mrf_crew *crew = arg;
	struct mrf_job *job;

	mrf_thread_own();
	mrf_thread_no_rush();
	while ((job = job_waiting(crew)))
		job_returned(crew, job, job->work(job));
	return NULL;
}

/* Starts one more thread if all are busy. If that fails, the others do the jobs. */
static int enlist_locked(struct mrf_crew *crew)
{
	int ret;

	mrf_lock_held(&crew->agent->lock);
	if (crew->jobs < crew->n || crew->n == crew->most)
		return 0;
	ret = mrf_thread_start(&crew->thread[crew->n], crew_main, crew, "mrfab-job");
	crew->n += !ret;
	return crew->n ? 0 : ret;
}

/* --- jobs -------------------------------------------------------------------------------- */

int mrf_agent_job(struct mrf_agent *agent, enum mrf_crew_kind kind, struct mrf_job *job)
{
	struct mrf_crew *crew = &agent->crew[kind];
	int ret;

	mrf_lock_take(&agent->lock);
	ret = enlist_locked(crew);
	if (!ret) {
		queue_job_locked(crew, job);
		crew->jobs++;
	}
	mrf_lock_release(&agent->lock);
	return ret;
}

void mrf_agent_run_jobs(struct mrf_agent *agent)
{
	struct mrf_job *job;

	if (mrf_likely(!atomic_load(&agent->done_told)))
		return;
	atomic_store(&agent->done_told, false);
	while ((job = job_pop(agent, &agent->done)))
		job->over(job);
}

/* --- starting and stopping --------------------------------------------------------------- */

void mrf_crews_init(struct mrf_agent *agent)
{
	static const unsigned most[MRF_CREWS] = {
		[MRF_CREW_STORAGE] = MRF_FLUSH_THREADS, [MRF_CREW_MEMORY] = MRF_JOB_THREADS
	};
	unsigned i;

	mrf_list_init(&agent->done);
	for (i = 0; i < MRF_CREWS; i++) {
		agent->crew[i].agent = agent;
		agent->crew[i].most = most[i];
		mrf_list_init(&agent->crew[i].waiting);
		sem_init(&agent->crew[i].work, 0, 0);
	}
}

/* A thread ends when it is woken and no job is left, so all jobs are done before. */
static void stop_crew(struct mrf_crew *crew)
{
	unsigned i;

	for (i = 0; i < crew->n; i++)
		sem_post(&crew->work);
	for (i = 0; i < crew->n; i++)
		pthread_join(crew->thread[i], NULL);
}

void mrf_crews_stop(struct mrf_agent *agent)
{
	unsigned i;

	for (i = 0; i < MRF_CREWS; i++)
		stop_crew(&agent->crew[i]);
	mrf_agent_run_jobs(agent);
	mrf_crews_fini(agent);
}

void mrf_crews_fini(struct mrf_agent *agent)
{
	unsigned i;

	for (i = 0; i < MRF_CREWS; i++)
		sem_destroy(&agent->crew[i].work);
}
