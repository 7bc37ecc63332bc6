/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs: work that may take long, such as writing a file to its storage, and that nobody
 * else is to wait for. An agent has a few threads for them beside its own, which start
 * when there is a first job for them and end with the agent.
 *
 * A job belongs to its starter before mrf_agent_job and again from `over` on. Jobs begin in
 * the order in which they were started; one that has done a part goes to the end of the
 * line, so that long ones take turns.
 */
#ifndef MRF_LOOP_JOB_H
#define MRF_LOOP_JOB_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "base/list.h"
#include "contract/budget.h"

struct mrf_agent;

struct mrf_job {
	struct mrf_list node; /* in crew->waiting or crew->done; guarded by agent->lock */
	/* In a thread of the crew, no lock held. True: a part is done, and it is to be called again. */
	bool (*work)(struct mrf_job *job);
	/* Agent thread, no lock held; the job may be freed. After the agent: the thread that stops it. */
	void (*over)(struct mrf_job *job);
};

/* The threads. Guarded by agent->lock, except told and work. */
struct mrf_crew {
	pthread_t thread[MRF_JOB_THREADS];
	unsigned n;	 /* threads */
	unsigned busy;	 /* those that have a job */
	unsigned queued; /* jobs in waiting */
	struct mrf_list waiting;
	struct mrf_list done;
	atomic_bool told; /* the agent is to look at done */
	sem_t work;	  /* goes up with each job, and for each thread to stop */
};

/*
 * Starts a job. Any thread; no lock of rank AGENT or higher is held. -FI_ENOMEM or -FI_EAGAIN:
 * there is no thread, and cannot be one; nothing was done.
 */
int mrf_agent_job(struct mrf_agent *agent, struct mrf_job *job);

/* For the agent itself. */
void mrf_crew_init(struct mrf_crew *crew);
/* Calls `over` of what has been done. Agent thread. */
void mrf_agent_run_jobs(struct mrf_agent *agent);
/* The agent's thread has ended. All jobs are done when this returns, and crew is ended, too. */
void mrf_crew_stop(struct mrf_agent *agent);
/* One that never had a job. */
void mrf_crew_fini(struct mrf_crew *crew);

#endif
