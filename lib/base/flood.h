/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines that repeat. A loop that does not look at its errors, or a hostile peer, can
 * cause the same refusal many thousand times a second. So of each message code the first
 * MRF_FLOOD_FIRST lines are logged as they come, and after these one for every
 * FI_LOG_INTERVAL milliseconds; what is left out is counted, and the count is told with
 * the next line of that code, or behind a line of another one, or when the process ends.
 * A code that has been quiet for a while starts afresh. FI_LOG_INTERVAL=0 logs all lines.
 *
 * Any thread; no lock; one read of the clock and one atomic exchange for each line.
 */
#ifndef MRF_BASE_FLOOD_H
#define MRF_BASE_FLOOD_H

#include <stdbool.h>
#include <rdma/providers/fi_log.h>

#define MRF_FLOOD_FIRST 10

/* What a line begins with, and where it belongs. */
struct mrf_flood_line {
	char kind;	      /* 'E' or 'W' */
	unsigned char subsys; /* enum fi_log_subsys */
	unsigned code;
};

/*
 * True: the line is to be logged, and *left_out lines of this code were not logged since
 * the last one. False: it was counted.
 */
bool mrf_flood_passes(struct mrf_flood_line line, unsigned *left_out);

/*
 * Hands each count that was not told yet to tell, and forgets it: at the end of the
 * process all of them, else none but once an interval.
 */
void mrf_flood_rest(bool end,
		    void (*tell)(struct mrf_flood_line line, unsigned left_out));

/* Forgets everything, for tests: no other thread may log meanwhile. */
void mrf_flood_reset(void);

#endif
