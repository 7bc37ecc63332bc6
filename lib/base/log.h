/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: one line per message, on standard error, controlled as in libfabric
 * (FI_LOG_LEVEL, FI_LOG_PROV, FI_LOG_SUBSYS). Level "warn" is on by default, because
 * every refusal logs its reason. Any thread may log; a line is written with one write(2).
 * Repeated lines with the same code are limited (base/flood.h).
 *
 * A refusal is a line with a stable code such as MRF-E1003 that the manual explains, the
 * offending value, and the rule. Codes: 1xxx discovery and negotiation, 2xxx objects and
 * closing, 3xxx registration, 4xxx endpoints and data transfer, 5xxx environment and
 * device.
 */
#ifndef MRF_BASE_LOG_H
#define MRF_BASE_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <rdma/providers/fi_log.h>
#include "base/compiler.h"

/* Does this library, as the provider "mrfab", log at this level for this subsystem? */
bool mrf_log_enabled(enum fi_log_level level, enum fi_log_subsys subsys);

void mrf_log(enum fi_log_level level, enum fi_log_subsys subsys, const char *fmt, ...)
	MRF_PRINTF(3, 4);

/*
 * Logs "code: text (-error, its meaning)" at level warn and returns -err, so that the
 * function that decides an error reads
 * `return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3007, "offset must be 0, not %#lx", offset)`.
 * Leaves errno alone.
 */
#define mrf_refuse(err, subsys, code, ...) \
	mrf_refuse_as(FI_LOG_WARN, NULL, 0, err, subsys, code, __VA_ARGS__)

/*
 * As mrf_refuse, but at level info: for a query whose answer is no. Such a query is not a
 * mistake, and a probing program makes many.
 */
#define mrf_decline(err, subsys, code, ...) \
	mrf_refuse_as(FI_LOG_INFO, NULL, 0, err, subsys, code, __VA_ARGS__)

/*
 * As mrf_refuse, but also leaves "code: text" (without a newline, cut to len) in buf: for
 * errors that are reported through a queue's err_data as well.
 */
#define mrf_refuse_text(buf, len, err, subsys, code, ...) \
	mrf_refuse_as(FI_LOG_WARN, buf, len, err, subsys, code, __VA_ARGS__)

/* The one behind these three. buf: NULL, or for the text. */
int mrf_refuse_as(enum fi_log_level level, char *buf, size_t len, int err,
		  enum fi_log_subsys subsys, unsigned code, const char *fmt, ...) MRF_PRINTF(7, 8);

/* A refusal kept for a later report. */
struct mrf_refusal {
	unsigned code;	/* 0: there was none */
	char text[512]; /* "code: text" */
};

/* From now on this thread's first refusal is also copied to *refusal; NULL: no longer. */
void mrf_refuse_catch(struct mrf_refusal *refusal);

/* What a counted noun ends in: "%zu byte%s", n, MRF_S(n). */
#define MRF_S(n) ((n) == 1 ? "" : "s")
/* Behind a text of which a line has only so many bytes: "%.64s%s", text, MRF_CUT(text, 64). */
#define MRF_CUT(text, most) (strlen(text) > (most) ? "..." : "")

/* A tolerated misuse, or something the user should know: "MRF-Wnnnn: text". */
void mrf_warn(enum fi_log_subsys subsys, unsigned code, const char *fmt, ...) MRF_PRINTF(3, 4);

/*
 * What is allowed, or was not done, but breaks with other providers: as mrf_warn, and then stops the
 * process if FI_MRFAB_STRICT is abort. The caller has found mrf_strict_careful.
 */
void mrf_misuse(enum fi_log_subsys subsys, unsigned code, const char *fmt, ...) MRF_PRINTF(3, 4);

/*
 * The highest level that is on for any subsystem; FI_LOG_DEBUG until the environment has
 * been read. Traces compare their level with it, so that a trace that is off costs a load
 * and a branch.
 */
extern __attribute__((visibility("hidden"))) _Atomic int mrf_log_max;

#define MRF_TRACE(level, subsys, ...)                                                        \
	do {                                                                                 \
		if (mrf_unlikely(atomic_load_explicit(&mrf_log_max, memory_order_relaxed) >= \
				 (level)) &&                                                 \
		    mrf_log_enabled(level, subsys))                                          \
			mrf_log(level, subsys, __VA_ARGS__);                                 \
	} while (0)

/* For events: connections, retries, dropped pins. */
#define mrf_info(subsys, ...) MRF_TRACE(FI_LOG_INFO, subsys, __VA_ARGS__)
/* For details: regions, questions, answers. */
#define mrf_debug(subsys, ...) MRF_TRACE(FI_LOG_DEBUG, subsys, __VA_ARGS__)

/* --- for fi_log and related calls: lines in the name of any provider -------------- */

bool mrf_log_prov_enabled(const char *prov, enum fi_log_level level, enum fi_log_subsys subsys);

/* Writes without checking the level, like fi_log. The text may have several lines. */
void mrf_log_prov(const char *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		  const char *func, int line, const char *fmt, va_list ap) MRF_PRINTF(6, 0);

/*
 * True when the time *showtime (ms, 0 at first) has passed; *showtime is then moved
 * FI_LOG_INTERVAL ahead. If several threads call at once, only one gets true.
 */
bool mrf_log_due(uint64_t *showtime);

/* Reads the environment again, for tests: no other thread may log meanwhile. */
void mrf_log_reload(void);

#endif
