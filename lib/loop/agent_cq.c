/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "loop/agent.h"
#include "loop/agent_cq.h"
#include "verbs/vcq.h"

#define BATCH 16

/* --- opening and closing --------------------------------------------------------------- */

int mrf_agent_cq_open(struct mrf_agent *agent, bool quiet, struct mrf_agent_cq **out)
{
	struct mrf_agent_cq *cq = calloc(1, sizeof(*cq));
	int ret;

	if (!cq)
		return -FI_ENOMEM;
	cq->size = quiet ? MRF_AGENT_QUIET_CQ : MRF_AGENT_CQ;
	ret = agent->cq ? mrf_vcq_open_beside(agent->cq, cq->size, &cq->vcq)
			: mrf_vcq_open(agent->vdev, cq->size, &cq->vcq);
	if (ret) {
		free(cq);
		return ret;
	}
	cq->quiet = quiet;
	if (!quiet)
		mrf_vcq_arm(cq->vcq);
	mrf_list_add_tail(&cq->node, &agent->cqs);
	agent->ncqs++;
	agent->cq = agent->cq ? agent->cq : cq->vcq;
	*out = cq;
	return 0;
}

static void close_one(struct mrf_agent *agent, struct mrf_agent_cq *cq)
{
	mrf_list_del(&cq->node);
	agent->ncqs--;
	mrf_vcq_close(cq->vcq);
	free(cq);
}

void mrf_agent_cq_close(struct mrf_agent *agent)
{
	/* The first queue has the descriptor, so it is closed last. */
	while (!mrf_list_empty(&agent->cqs))
		close_one(agent, mrf_list_entry(agent->cqs.prev, struct mrf_agent_cq, node));
}

/* --- places ------------------------------------------------------------------------------ */

int mrf_agent_cq_take(struct mrf_agent *agent, unsigned want, bool quiet, struct mrf_agent_cq **out)
{
	struct mrf_agent_cq *cq;
	int ret;

	mrf_list_each (node, &agent->cqs) {
		cq = mrf_list_entry(node, struct mrf_agent_cq, node);
		if (cq->quiet == quiet && cq->used + want <= cq->size)
			goto found;
	}
	ret = mrf_agent_cq_open(agent, quiet, &cq);
	if (ret)
		return ret;
found:
	cq->used += want;
	*out = cq;
	return 0;
}

void mrf_agent_cq_owe(struct mrf_agent_cq *cq, unsigned had)
{
	cq->owed += had;
	cq->owed_until = cq->taken + cq->size;
}

/* Everything that closed connections left in the queue has been taken out. */
static void give_back(struct mrf_agent_cq *cq)
{
	cq->used -= cq->owed;
	cq->owed = 0;
}

/* One empty queue is kept for future connections. */
static void close_spare(struct mrf_agent *agent)
{
	bool kept = false;

	mrf_list_each_safe (node, &agent->cqs) {
		struct mrf_agent_cq *cq = mrf_list_entry(node, struct mrf_agent_cq, node);

		if (cq->vcq == agent->cq || cq->used)
			continue;
		if (kept)
			close_one(agent, cq);
		kept = true;
	}
}

/* --- completions ------------------------------------------------------------------------- */

/* As mrf_agent_cq_handle, for one queue. */
static bool handle_from(struct mrf_agent *agent, struct mrf_agent_cq *cq, unsigned max,
			void (*handle)(struct mrf_agent *agent, const struct mrf_wc *wc))
{
	struct mrf_wc wc[BATCH];
	unsigned taken = 0;
	int i, n;

	while ((n = mrf_vcq_poll(cq->vcq, wc, MRF_ARRAY_SIZE(wc))) > 0) {
		/*
		 * Completions are counted before they are handled: an owner that goes meanwhile has
		 * its last completions behind all of them, in a queue that may have filled up
		 * again.
		 */
		taken += (unsigned)n;
		cq->taken += (unsigned)n;
		for (i = 0; i < n; i++)
			handle(agent, &wc[i]);
		if (cq->taken >= cq->owed_until)
			give_back(cq);
		if (taken >= max)
			return true;
	}
	give_back(cq);
	return false;
}

bool mrf_agent_cq_handle(struct mrf_agent *agent, unsigned max,
			 void (*handle)(struct mrf_agent *agent, const struct mrf_wc *wc))
{
	bool more = false;

	mrf_list_each (node, &agent->cqs)
		more |= handle_from(agent, mrf_list_entry(node, struct mrf_agent_cq, node), max,
				    handle);
	if (mrf_unlikely(agent->ncqs > 2))
		close_spare(agent);
	return more;
}

void mrf_agent_cq_event(struct mrf_agent *agent)
{
	const struct mrf_vcq *vcq = mrf_vcq_ack_one(agent->cq);

	mrf_list_each (node, &agent->cqs) {
		struct mrf_agent_cq *cq = mrf_list_entry(node, struct mrf_agent_cq, node);

		if (cq->vcq != vcq)
			continue;
		cq->listens = false;
		if (!cq->quiet)
			mrf_vcq_arm(cq->vcq);
		return;
	}
}

void mrf_agent_cq_listen(struct mrf_agent *agent, struct mrf_agent_cq *cq)
{
	if (cq->listens)
		return;
	cq->listens = true;
	mrf_vcq_arm(cq->vcq);
	agent->more = true;
}
