/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs: work that may take long, such as writing a file to its storage, and for which nothing
 * else shall wait. An agent has threads for them beside its own, which start with the first job
 * for them and end with the agent. Jobs that may wait for the application itself have threads
 * of their own, so that storage and peers never wait for these.
 *
 * A job belongs to its starter before mrf_agent_job and again from `over` on. Jobs begin in the
 * order in which they were started; a job that has done a part goes to the end of the line, so
 * that long jobs take turns.
 */
#ifndef MRF_LOOP_JOB_H
#define MRF_LOOP_JOB_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include "base/list.h"
#include "contract/budget.h"

struct mrf_agent;

enum mrf_crew_kind {
	MRF_CREW_STORAGE, /* waits for storage */
	MRF_CREW_MEMORY,  /* may wait for the application's memory, however long */
	MRF_CREWS
};

struct mrf_job {
	struct mrf_list node; /* in crew->waiting or agent->done; guarded by agent->lock */
	/* In a thread of the crew, no lock held. True: a part is done; call it again. */
	bool (*work)(struct mrf_job *job);
	/*
	 * Agent thread (or the one that stops the agent), no lock held; the job may be freed.
	 */
	void (*over)(struct mrf_job *job);
};

/* Threads of one kind. Guarded by agent->lock, except work. */
struct mrf_crew {
	struct mrf_agent *agent;
	pthread_t thread[MRF_JOB_THREADS];
	unsigned most; /* threads that there may be; constant */
	unsigned n;    /* threads */
	unsigned jobs; /* those that threads are at, and those in waiting */
	struct mrf_list waiting;
	sem_t work; /* goes up with each job, and for each thread to stop */
};

/*
 * Starts a job. Any thread; no lock of rank AGENT or higher is held. -FI_ENOMEM or -FI_EAGAIN:
 * there is no thread and none can be started; nothing was done.
 */
int mrf_agent_job(struct mrf_agent *agent, enum mrf_crew_kind kind, struct mrf_job *job);

/* For the agent itself. */
void mrf_crews_init(struct mrf_agent *agent);
/* Calls `over` of each job that is done. Agent thread. */
void mrf_agent_run_jobs(struct mrf_agent *agent);
/*
 * Called when the agent's thread has ended. When this returns, all jobs are done and the crews
 * have ended.
 */
void mrf_crews_stop(struct mrf_agent *agent);
/* Frees crews that never had a job. */
void mrf_crews_fini(struct mrf_agent *agent);

#endif
