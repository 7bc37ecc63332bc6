/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a world as they were done, doing them again, and leaving some out. */
#ifndef MODEL_TRACE_H
#define MODEL_TRACE_H

#include "exec.h"

struct failure {
	atomic_int taken;
	unsigned step;
	char kind[64]; /* see model_fail; empty: none */
	char text[700];
};

/* In memory that parent and child share. */
struct trace {
	struct conf conf;
	struct failure failure;	      /* of the last time */
	atomic_uint counts[KINDS][2]; /* done, refused: of all worlds */
	atomic_uint next;
	unsigned n;
	struct step steps[];
};

enum how {
	RECORD,	   /* threads make the steps */
	IN_ORDER,  /* one thread does the steps of all */
	IN_THREADS /* each its own */
};

/* In a child; false: failed, trace->failure says how. */
bool trace_do(struct trace *trace, const struct backend *backend, enum how how, unsigned seconds);
/*
 * Leaves out what is not needed for the same kind of failure. False: it does not come
 * again, or not within budget seconds. *how: what it takes.
 */
bool trace_shorten(struct trace *trace, const struct backend *backend, unsigned seconds,
		   unsigned budget, enum how *how);

#endif
