/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages; measured by cost_message.c. */
#include <math.h>
#include "cost.h"
#include "parts.h"

/*
 * The targets are of native over raw, and native over libfabric; 0: there is none. From 128 KiB on
 * ofi_rxm reads, which costs rxe less, but takes registrations with remote rights.
 */
static const struct {
	const char *name;
	double raw, other;
} sizes[COST_MESSAGE_SIZES] = {
	{ "8 B", 1.15, 1 },	 { "64 B", 0, 1 },	  { "256 B", 0, 1 },
	{ "1 KiB", 0, 1 },	 { "4 KiB", 0, 1 },	  { "8 KiB", 0, 1 },
	{ "16 KiB", 0, 1 },	 { "64 KiB", 1.18, 1 },	  { "256 KiB", 1.05, 1.04 },
	{ "1 MiB", 1.03, 1.04 }, { "4 MiB", 1.02, 1.04 },
};

static double over_raw(const double *cost, int way)
{
	return cost[way] ? cost[way] / cost[MESSAGE_RAW] : NAN;
}

static void add_row(const char *what, const double *cost)
{
	report_add("| %s | %.0f |", what, cost[MESSAGE_RAW]);
	report_ratio(over_raw(cost, MESSAGE_NATIVE));
	report_ratio(over_raw(cost, MESSAGE_DEFAULT));
	report_ratio(over_raw(cost, MESSAGE_OTHER));
	report_add("\n");
}

static void add_ping_pong(int size, const double *cost)
{
	add_row(sizes[size].name, cost);
	if (sizes[size].raw > 0)
		report_target(sizes[size].raw, over_raw(cost, MESSAGE_NATIVE),
			      "round trip of messages of %s, native / raw", sizes[size].name);
	if (cost[MESSAGE_OTHER])
		report_target(sizes[size].other, cost[MESSAGE_NATIVE] / cost[MESSAGE_OTHER],
			      "round trip of messages of %s, native / libfabric", sizes[size].name);
}

static void add_tagged(const double *cost)
{
	static const char *const others[COST_MESSAGE_OTHERS] = { "no", "1000", "100000" };

	report_add("\nA round trip of tagged messages of 8 B, *native*, where so many receives of "
		   "other tags are\nposted at both ends:\n\n"
		   "| others | instructions |\n| ---: | ---: |\n");
	for (int i = 0; i < COST_MESSAGE_OTHERS; i++) {
		report_add("| %s | %.0f |\n", others[i], cost[i]);
		if (i)
			report_target(1.03, cost[i] / cost[0],
				      "round trip of tagged messages, %s others / none", others[i]);
	}
}

void part_message(void)
{
	double cost[COST_MESSAGE];

	cost_read("cost_message", cost, COST_MESSAGE);
	report_add(
		"\n## Messages\n\n"
		"Instructions of a round trip, and ratios to it, both ends in one thread. *raw*: "
		"a connected queue\n"
		"pair, receives posted to it, and `IBV_SEND_INLINE` up to %d bytes. *libfabric* "
		"is verbs;ofi_rxm.\n\n"
		"| length | raw | native / raw | default / raw | libfabric / raw |\n"
		"| --- | ---: | ---: | ---: | ---: |\n",
		RAW_INLINE);
	for (int i = 0; i < COST_MESSAGE_SIZES; i++)
		add_ping_pong(i, &cost[MESSAGE_PING_PONG + i * COST_MESSAGE_WAYS]);
	report_add("\nOf each message, many in flight in one direction:\n\n"
		   "| | raw | native / raw | default / raw | libfabric / raw |\n"
		   "| --- | ---: | ---: | ---: | ---: |\n");
	add_row("8 B, 64 in flight", &cost[MESSAGE_STREAM]);
	report_target(1.15, over_raw(&cost[MESSAGE_STREAM], MESSAGE_NATIVE),
		      "message of 8 B, 64 in flight, native / raw");
	add_row("64 KiB, 16 in flight", &cost[MESSAGE_STREAM_LONG]);
	report_target(1.18, over_raw(&cost[MESSAGE_STREAM_LONG], MESSAGE_NATIVE),
		      "message of 64 KiB, 16 in flight, native / raw");
	add_tagged(&cost[MESSAGE_TAGGED]);
}
