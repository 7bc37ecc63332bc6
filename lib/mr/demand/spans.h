/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of addresses: sorted spans that neither overlap nor touch. Pure; the caller
 * serialises.
 */
#ifndef MRF_MR_DEMAND_SPANS_H
#define MRF_MR_DEMAND_SPANS_H

#include <stdbool.h>
#include <stdint.h>

/* Addresses [start, end). */
struct mrf_span {
	uint64_t start;
	uint64_t end;
};

struct mrf_spans {
	unsigned count;
	struct mrf_span *span;
};

/* Turns count spans in any order into a set; empty spans are removed. */
void mrf_spans_tidy(struct mrf_spans *spans);
/* The span that contains this address, or NULL. */
const struct mrf_span *mrf_spans_at(const struct mrf_spans *spans, uint64_t addr);
/* Is all of [start, end) in the set? */
bool mrf_spans_have(const struct mrf_spans *spans, uint64_t start, uint64_t end);
/* Is any of [start, end) in the set? */
bool mrf_spans_meet(const struct mrf_spans *spans, uint64_t start, uint64_t end);

#endif
