/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why an operation cannot be or was not done: the content of its completion and its log
 * line.
 */
#ifndef MRF_EP_MODEL_WHY_H
#define MRF_EP_MODEL_WHY_H

#include "base/compiler.h"
#include "base/log.h"
#include "obj/cq.h"

struct mrf_why {
	int err;  /* FI_E* */
	int code; /* MRF-E number, also the prov_errno */
	char text[MRF_ERR_TEXT];
};

void mrf_why_set(struct mrf_why *why, int err, int code, const char *fmt, ...) MRF_PRINTF(4, 5);

/* What was refused with this reason (base/log.h), in its words, or if it had none, in these. */
void mrf_why_said(struct mrf_why *why, int err, const struct mrf_refusal *said, const char *text);

#endif
