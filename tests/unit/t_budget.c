/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrfab(7) says how long an operation may take: its table has to be what the numbers of
 * contract/budget.h and the defaults of the variables come to. It also says how much memory
 * the device's queues take, which follows from their lengths.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/rdma_user_rxe.h>
#include "base/param.h"
#include "contract/budget.h"
#include "ep/link/conn.h"
#include "ep/link/passive.h"
#include "loop/agent_cq.h"
#include "unit.h"

static char page[1 << 17];

static void setup(void)
{
	static const char *const names[] = { "FI_MRFAB_ACK_TIMEOUT", "FI_MRFAB_RETRY_COUNT",
					     "FI_MRFAB_CONN_TIMEOUT", "FI_MRFAB_ANSWER_TIMEOUT" };
	const char *dir = getenv("srcdir");
	char path[4096];
	FILE *file;
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	mrf_env_reload();
	snprintf(path, sizeof(path), "%s/docs/man/mrfab.7", dir ? dir : ".");
	file = fopen(path, "r");
	ck_assert_msg(file, "%s cannot be read", path);
	i = fread(page, 1, sizeof(page) - 1, file);
	fclose(file);
	ck_assert_uint_lt(i, sizeof(page) - 1);
	page[i] = '\0';
}

/* Seconds until the device gives up on a packet that nobody acknowledges. */
static double unacknowledged(void)
{
	return (double)(mrf_param_int(MRF_PARAM_RETRY) + 1) * 4.096e-6 *
	       (double)(1ul << mrf_param_int(MRF_PARAM_ACK_TIMEOUT));
}

static double connecting(void)
{
	return (double)mrf_param_int(MRF_PARAM_CONN_TIMEOUT) / 1000;
}

/* A row of the table; its last column is in seconds. */
static void want_row(const char *row, double seconds)
{
	char line[512];

	snprintf(line, sizeof(line), "\n%s\t%.1f\n", row, seconds);
	ck_assert_msg(strstr(page, line), "mrfab(7) has no row \"%s, %.1f\"", row, seconds);
}

static void want_words(const char *words)
{
	ck_assert_msg(strstr(page, words), "mrfab(7) does not say \"%s\"", words);
}

START_TEST(budget_what_a_connection_may_take)
{
	char row[256];

	want_row("the address belongs to no machine", connecting());
	want_row("its machine does not answer the request", connecting());
	want_row("the peer has no room for another connection", connecting());
	want_row("the peer keeps asking for another proof", connecting());
	snprintf(row, sizeof(row), "nobody listens at the address (%d attempts)", MRF_REFUSALS);
	want_row(row, (MRF_REFUSALS - 1) * MRF_RETRY_MS / 1000.0);
	snprintf(row, sizeof(row), "the peer drops the connection each time (%d times)",
		 MRF_LOSSES);
	want_row(row, MRF_LOSSES * connecting());
}
END_TEST

START_TEST(budget_what_a_connected_peer_may_take)
{
	char row[256];
	double gone = unacknowledged();

	want_row("its machine goes down: a write that was sent", gone);
	want_row("its machine goes down: a read, or an operation not yet sent",
		 gone + connecting());
	want_row("its machine goes down while it owes an answer",
		 MRF_PROBE_MS / 1000.0 + gone + connecting());
	snprintf(row, sizeof(row), "its machine goes down and comes back: a read (%d times)",
		 MRF_TIMEOUTS + 1);
	want_row(row, (MRF_TIMEOUTS + 1) * gone + MRF_TIMEOUTS * connecting());
	want_row("its process is stopped, and an answer is needed",
		 (double)(mrf_param_int(MRF_PARAM_ANSWER_TIMEOUT) + MRF_PROBE_MS) / 1000);
	want_row("the device does not give work back", MRF_DRAIN_MS / 1000.0);
}
END_TEST

START_TEST(budget_what_is_counted_and_not_timed)
{
	char words[256];

	snprintf(words, sizeof(words),
		 "After %d refusals, or %d if the memory is pinned on "
		 "demand,",
		 MRF_OP_REFUSED, MRF_OP_REFUSED_ON_DEMAND);
	want_words(words);
	snprintf(words, sizeof(words), "At most %d proofs are given", MRF_CHALLENGES);
	want_words(words);
	snprintf(words, sizeof(words), "is repeated after %d seconds", MRF_DIAL_MS / 1000);
	want_words(words);
	snprintf(words, sizeof(words), "asked again after %d to %d milliseconds",
		 MRF_RETRY_FIRST_MS, MRF_RETRY_MS);
	want_words(words);
	snprintf(words, sizeof(words), "%d peers at a time are connected to at any one host",
		 MRF_PERMITS);
	want_words(words);
	/* Whoever has a turn gives it back then; only that lets others see the silence. */
	ck_assert_int_lt(MRF_PERMIT_SILENT_MS, MRF_DIAL_MS);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------- */

#define CQE_LEN 128 /* rxe's; the header has no structure for it */
#define QUEUE_HEAD 128

static unsigned long power_of_two(unsigned long n)
{
	unsigned long p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* KiB that a queue of soft-RoCE takes: one place stays empty. */
static unsigned long queue_kib(unsigned long places, unsigned long len)
{
	unsigned long bytes = power_of_two(places + 1) * power_of_two(len) + QUEUE_HEAD;

	return (bytes + 4095) / 4096 * 4;
}

static unsigned long send_kib(unsigned long depth, unsigned long pieces, unsigned long inlined)
{
	unsigned long data = pieces * sizeof(struct mrf_sge);

	return queue_kib(depth, sizeof(struct rxe_send_wqe) + (inlined > data ? inlined : data));
}

static unsigned long recv_kib(unsigned long depth)
{
	return queue_kib(depth, sizeof(struct rxe_recv_wqe) + sizeof(struct mrf_sge));
}

/* The first figure of a row. */
static void want_kib(const char *row, unsigned long kib)
{
	char line[256];

	snprintf(line, sizeof(line), "\n%s\t%lu\t", row, kib);
	ck_assert_msg(strstr(page, line), "mrfab(7) has no row \"%s, %lu\"", row, kib);
}

START_TEST(budget_what_queues_take)
{
	char words[256];

	want_kib("a domain with endpoints", queue_kib(MRF_AGENT_CQ, CQE_LEN));
	want_kib("an endpoint", queue_kib(MRF_EP_SCQ, CQE_LEN));
	want_kib("a peer that the endpoint accesses",
		 send_kib(MRF_CONN_RING - 1, MRF_LOCAL_SGE, MRF_LIMIT_INJECT) +
			 recv_kib(MRF_CONN_SLOTS));
	want_kib("a peer that accesses the endpoint",
		 send_kib(MRF_PASSIVE_SENDS, 1, MRF_PROTO_NOTE_LEN) + recv_kib(MRF_PASSIVE_SLOTS));
	snprintf(words, sizeof(words), "a queue of %lu KiB for each %d peers that access a domain",
		 queue_kib(MRF_AGENT_QUIET_CQ, CQE_LEN), MRF_AGENT_QUIET_CQ / MRF_PASSIVE_SENDS);
	want_words(words);
	snprintf(words, sizeof(words), "another one of %lu KiB for each %d",
		 queue_kib(MRF_AGENT_CQ, CQE_LEN), MRF_AGENT_CQ / MRF_PASSIVE_SLOTS);
	want_words(words);
}
END_TEST

static TCase *tcase_budget(void)
{
	TCase *tc = tcase_create("budget");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, budget_what_a_connection_may_take);
	tcase_add_test(tc, budget_what_a_connected_peer_may_take);
	tcase_add_test(tc, budget_what_is_counted_and_not_timed);
	tcase_add_test(tc, budget_what_queues_take);
	return tc;
}

UNIT_MAIN("budget", tcase_budget)
