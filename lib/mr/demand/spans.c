/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/compiler.h"
#include "mr/demand/spans.h"

static int by_start(const void *a, const void *b)
{
	const struct mrf_span *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

void mrf_spans_tidy(struct mrf_spans *spans)
{
	struct mrf_span *span = spans->span;
	unsigned i, n = 0;

	if (spans->count)
		qsort(span, spans->count, sizeof(*span), by_start);
	for (i = 0; i < spans->count; i++) {
		if (span[i].start >= span[i].end)
			continue;
		if (n && span[i].start <= span[n - 1].end)
			span[n - 1].end = mrf_max(span[n - 1].end, span[i].end);
		else
			span[n++] = span[i];
	}
	spans->count = n;
}

/* The first span that ends behind addr, or count. */
static unsigned find_span(const struct mrf_spans *spans, uint64_t addr)
{
	unsigned lo = 0, hi = spans->count, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (spans->span[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct mrf_span *mrf_spans_at(const struct mrf_spans *spans, uint64_t addr)
{
	unsigned i = find_span(spans, addr);

	return i < spans->count && spans->span[i].start <= addr ? &spans->span[i] : NULL;
}

bool mrf_spans_have(const struct mrf_spans *spans, uint64_t start, uint64_t end)
{
	const struct mrf_span *span = mrf_spans_at(spans, start);

	return start >= end || (span && span->end >= end);
}

bool mrf_spans_meet(const struct mrf_spans *spans, uint64_t start, uint64_t end)
{
	unsigned i = find_span(spans, start);

	return start < end && i < spans->count && spans->span[i].start < end;
}
