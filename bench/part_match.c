/* SPDX-License-Identifier: BSD-2-Clause */
/* Matching of messages; measured by cost_match.c. */
#include "cost.h"
#include "parts.h"

void part_match(void)
{
	static const char *const others[COST_MATCH_SIZES] = { "0", "1000", "100000" };
	static const double most[COST_MATCH_SIZES] = { 260, 330, 340 };
	double cost[COST_MATCH];

	cost_read("cost_match", cost, COST_MATCH);
	report_add("\n## Matching\n\n"
		   "Instructions of `lib/match`: to post a receive of an "
		   "exact tag from any\n"
		   "source and to find it for a message; to keep a message for which there is no "
		   "receive; to find\n"
		   "and take one. *Others*: receives and messages with other tags.\n\n"
		   "| others | post and match | keep | find and take |\n"
		   "| ---: | ---: | ---: | ---: |\n");
	for (int i = 0; i < COST_MATCH_SIZES; i++) {
		report_add("| %s | %.0f | %.0f | %.0f |\n", others[i], cost[MATCH_POST + i],
			   cost[MATCH_KEEP + i], cost[MATCH_TAKE + i]);
		report_target(most[i], cost[MATCH_POST + i],
			      "instructions to post and match, %s others", others[i]);
	}
}
