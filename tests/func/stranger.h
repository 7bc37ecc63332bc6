/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program `foreign` as a child of the driver: a peer that does not use the library.
 */
#ifndef FUNC_STRANGER_H
#define FUNC_STRANGER_H

#include <sys/types.h>
#include "fab.h"

struct stranger {
	pid_t pid;
	int in, out;
	char said[1024]; /* its last line */
};

void stranger_start(struct stranger *s);
/* A command, and what it says then; fails the case when it says "error". */
const char *stranger_do(struct stranger *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The two halves of that. */
void stranger_tell(struct stranger *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *stranger_hear(struct stranger *s);
void stranger_stop(struct stranger *s);

/* "10.99.1.1 4711": an endpoint's name as the commands take it. */
const char *stranger_addr(const void *name);

#endif
