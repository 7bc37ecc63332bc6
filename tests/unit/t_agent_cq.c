/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places in a completion queue of the agent: those of an owner that is gone are free once
 * its completions have been taken out, and no sooner. And which queues are armed.
 */
#include <limits.h>
#include "ep_fixture.h"
#include "loop/agent_cq.h"

#define BATCH 16 /* what one poll returns */
#define OWED 3

static struct mrf_agent agent;
static struct mrf_agent_cq cq;
static unsigned waiting; /* completions in the queue */
static unsigned handled;
static unsigned leaves_at; /* the owner goes when so many have been handled, */
static unsigned behind;	   /* and so many are in the queue then, its own last */

int __wrap_mrf_vcq_poll(struct mrf_vcq *vcq, struct mrf_wc *wc, int n);

int __wrap_mrf_vcq_poll(struct mrf_vcq *vcq, struct mrf_wc *wc, int n)
{
	(void)vcq;
	n = (int)mrf_min((unsigned)n, waiting);
	memset(wc, 0, (size_t)n * sizeof(*wc));
	waiting -= (unsigned)n;
	return n;
}

static unsigned armed; /* so often */
static struct mrf_vcq *fired;

void __wrap_mrf_vcq_arm(struct mrf_vcq *vcq);

void __wrap_mrf_vcq_arm(struct mrf_vcq *vcq)
{
	(void)vcq;
	armed++;
}

struct mrf_vcq *__wrap_mrf_vcq_ack_one(struct mrf_vcq *first);

struct mrf_vcq *__wrap_mrf_vcq_ack_one(struct mrf_vcq *first)
{
	(void)first;
	return fired;
}

static void handle(struct mrf_agent *a, const struct mrf_wc *wc)
{
	(void)a;
	(void)wc;
	/* If nothing is left, its last completion is among those that were polled. */
	if (handled > leaves_at && waiting && behind <= MRF_AGENT_CQ)
		ck_assert_uint_eq(cq.used, OWED);
	if (++handled != leaves_at)
		return;
	mrf_agent_cq_owe(&cq, OWED);
	waiting = behind;
}

static void setup(void)
{
	memset(&agent, 0, sizeof(agent));
	memset(&cq, 0, sizeof(cq));
	mrf_list_init(&agent.cqs);
	mrf_list_add_tail(&cq.node, &agent.cqs);
	agent.ncqs = 1;
	cq.size = MRF_AGENT_CQ;
	cq.used = OWED;
	cq.vcq = (struct mrf_vcq *)&cq;
	fired = NULL;
	handled = armed = 0;
}

/* The owner goes within a batch. What was handled of the batch has filled the queue again. */
START_TEST(places_are_free_when_nothing_of_the_owner_is_left)
{
	waiting = BATCH;
	leaves_at = (unsigned)_i;
	behind = MRF_AGENT_CQ - (BATCH - leaves_at);
	while (mrf_agent_cq_handle(&agent, BATCH, handle))
		if (waiting)
			ck_assert_uint_eq(cq.used, OWED);
	ck_assert_uint_eq(handled, BATCH + behind);
	ck_assert_uint_eq(cq.used, 0);
}
END_TEST

/* Others' completions do not stop coming: the owner's are behind no more than a queue holds. */
START_TEST(places_are_free_though_the_queue_is_never_empty)
{
	waiting = BATCH;
	leaves_at = 1;
	behind = UINT_MAX;
	for (unsigned i = 0; i < MRF_AGENT_CQ / BATCH + 2; i++)
		ck_assert(mrf_agent_cq_handle(&agent, BATCH, handle));
	ck_assert_uint_eq(cq.used, 0);
}
END_TEST

START_TEST(queue_is_armed_again_when_it_has_fired)
{
	mrf_agent_cq_event(&agent);
	ck_assert_uint_eq(armed, 0);
	fired = cq.vcq;
	mrf_agent_cq_event(&agent);
	ck_assert_uint_eq(armed, 1);
}
END_TEST

/* The turn after that sees what was there before. */
START_TEST(quiet_queue_is_armed_when_it_is_listened_to)
{
	cq.quiet = true;
	fired = cq.vcq;
	for (unsigned i = 1; i <= 2; i++) {
		agent.more = false;
		mrf_agent_cq_listen(&agent, &cq);
		ck_assert(agent.more);
		mrf_agent_cq_listen(&agent, &cq);
		ck_assert_uint_eq(armed, i);
		mrf_agent_cq_event(&agent);
		ck_assert_uint_eq(armed, i);
	}
}
END_TEST

static TCase *tcase_arming(void)
{
	TCase *tc = tcase_create("arming");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, queue_is_armed_again_when_it_has_fired);
	tcase_add_test(tc, quiet_queue_is_armed_when_it_is_listened_to);
	return tc;
}

static TCase *tcase_places(void)
{
	TCase *tc = tcase_create("places");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, places_are_free_when_nothing_of_the_owner_is_left, 1, BATCH + 1);
	tcase_add_test(tc, places_are_free_though_the_queue_is_never_empty);
	return tc;
}

UNIT_MAIN("agent_cq", tcase_places, tcase_arming)
