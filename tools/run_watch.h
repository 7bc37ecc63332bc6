/* SPDX-License-Identifier: BSD-2-Clause */
/* A program whose log is watched, for mrfab_run --fail-on and --log-file. */
#ifndef TOOLS_RUN_WATCH_H
#define TOOLS_RUN_WATCH_H

#include <stdbool.h>

struct run_watch {
	bool errors;	      /* a line with a code MRF-E is a failure */
	bool warnings;	      /* and one with MRF-W */
	const char *log_file; /* lines with a code are also appended to it; NULL: none */
};

#define RUN_WATCH_FAILED 99    /* exit status: there was such a line */
#define RUN_WATCH_NO_FILE (-2) /* no exit status: the file cannot be written */

/*
 * Runs the program in a child whose standard error comes through here, and waits for it. The exit
 * status: RUN_WATCH_FAILED, or the program's, or 128 and the signal that ended it. RUN_WATCH_NO_FILE, or
 * -1: it was not started; errno says why.
 */
int run_watched(const struct run_watch *watch, char **argv);

#endif
