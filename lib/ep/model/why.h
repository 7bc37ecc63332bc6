/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why an operation cannot be or was not done: the content of its completion and its log
 * line.
 */
#ifndef MRF_EP_MODEL_WHY_H
#define MRF_EP_MODEL_WHY_H

#include "base/compiler.h"
#include "obj/cq.h"

struct mrf_op;

struct mrf_why {
	int err;  /* FI_E* */
	int code; /* MRF-E number, also the prov_errno */
	char text[MRF_ERR_TEXT];
};

void mrf_why_set(struct mrf_why *why, int err, int code, const char *fmt, ...) MRF_PRINTF(4, 5);
/* Of an operation that cannot go on because of why: with what was done of it before. */
void mrf_why_rest(const struct mrf_op *op, const struct mrf_why *why, struct mrf_why *more);

#endif
