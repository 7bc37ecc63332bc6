/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits repeated log lines. A loop that ignores its errors, or a hostile peer, can cause
 * the same refusal many thousand times a second. So the first MRF_FLOOD_FIRST lines of
 * each message code are logged at once, and after these one line in every FI_LOG_INTERVAL
 * milliseconds. Omitted lines are counted, and the count is logged with the next line of
 * that code, or after a line of another code, or when the process ends. A code that has
 * been quiet for a while starts afresh. FI_LOG_INTERVAL=0 logs all lines.
 *
 * Any thread; no lock; one read of the clock and one atomic exchange for each line.
 */
#ifndef MRF_BASE_FLOOD_H
#define MRF_BASE_FLOOD_H

#include <stdbool.h>

#define MRF_FLOOD_FIRST 10

/* The beginning and the subsystem of a line. */
struct mrf_flood_line {
	char kind;	      /* 'E' or 'W' */
	unsigned char subsys; /* enum fi_log_subsys */
	unsigned code;
};

/*
 * True: log the line; *left_out lines of this code were omitted since the last one.
 * False: omit the line, which has been counted.
 */
bool mrf_flood_passes(struct mrf_flood_line line, unsigned *left_out);

/*
 * Calls tell for each count that was not reported yet, and resets it: with end, at the
 * end of the process, for all counts; otherwise at most once per interval.
 */
void mrf_flood_rest(bool end, void (*tell)(struct mrf_flood_line line, unsigned left_out));

/* Forgets everything, for tests: no other thread may log meanwhile. */
void mrf_flood_reset(void);

#endif
