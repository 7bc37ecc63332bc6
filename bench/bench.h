/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the benchmark share: time, rounds taken in turn, and the report.
 * Failures end the process: a benchmark has nothing to recover.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_ADDRESS "10.99.1.1" /* what scripts/with-rxe gives the device */
#define BENCH_MAX_LEN ((size_t)1 << 20)
#define BENCH_MAX_ROUNDS 25

/* For calls that return 0 or an error number of either sign. */
void bench_must(const char *call, long ret);
/* For calls that return NULL or -1 and set errno. */
void bench_must_errno(const char *call, int ok);
/*
 * From here on a kernel thread that has work (rxe's is done by one) runs at once, and not
 * sooner or later depending on what ran before. For this thread and those it starts.
 */
void bench_yield(void);
/* The same of this thread, and of those it starts from now on: they run when they are woken. */
void bench_eager(void);
void *bench_alloc(size_t len); /* whole pages, all present */
uint64_t bench_now(void);      /* ns; under with-rxe --icount: instructions */

/* --- series: the same work done in different ways, in turn ----------------------- */

struct bench_series {
	void (*work)(void *arg); /* one round; timed from outside */
	void *arg;
	double ns[BENCH_MAX_ROUNDS];	   /* elapsed */
	double children[BENCH_MAX_ROUNDS]; /* ns of processor time of processes waited for
					    */
};

/*
 * A B C, B C A, C A B, ...: a drift hits all alike. One round each goes before and is
 * not counted. rounds <= BENCH_MAX_ROUNDS.
 */
void bench_rounds(struct bench_series *series, int n, int rounds);
/* The mean without the lowest and the highest quarter. */
double bench_middle(const double *values, int n);

/* --- report: Markdown ------------------------------------------------------------ */

void report_begin(void);
/* Headings and table rows, after the targets; on stderr at once, to watch. */
void report_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One cell with a ratio; NAN prints as a dash. */
void report_ratio(double ratio);
/* A line in the table of targets: met when value, as printed, is at most limit. */
void report_target(double limit, double value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Writes it all; the number of targets missed. */
int report_end(FILE *out);

#endif
