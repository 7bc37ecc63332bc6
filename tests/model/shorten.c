/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delta debugging: parts are left out, large ones first, as long as the same kind of
 * failure comes, in one thread if it fails there, otherwise in threads; then mode bits
 * and segments. What is left is printed as calls, with the seed.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "trace.h"

/* What depends on the order of threads does not fail each time. */
#define FIRST_TRIES 300
#define LEAST_TRIES 12
#define FEW 16 /* steps, of which each two are left out */

struct hunt {
	struct trace *trace;
	const struct backend *backend;
	enum how how;
	unsigned tried, tries; /* how often it is done before it counts as good */
	unsigned seconds;
	char kind[64];
	time_t end;
	struct step *steps; /* as they were before something was left out */
	struct failure failure;
};

static bool fails(struct hunt *h)
{
	for (h->tried = 1; h->tried <= h->tries; h->tried++) {
		if (!trace_do(h->trace, h->backend, h->how, h->seconds) &&
		    !strcmp(h->trace->failure.kind, h->kind))
			return true;
	}
	return false;
}

/* Without [from, from + len): true, and so it stays, if that fails as well. */
static bool leave_out(struct hunt *h, unsigned from, unsigned len)
{
	struct trace *t = h->trace;
	unsigned n = t->n;

	memcpy(h->steps, t->steps, n * sizeof(*t->steps));
	h->failure = t->failure;
	memmove(t->steps + from, t->steps + from + len, (n - from - len) * sizeof(*t->steps));
	t->n = n - len;
	if (fails(h))
		return true;
	t->n = n;
	memcpy(t->steps, h->steps, n * sizeof(*t->steps));
	t->failure = h->failure;
	return false;
}

static bool leave_out_two(struct hunt *h, unsigned i, unsigned j)
{
	struct trace *t = h->trace;
	struct step kept[FEW];
	struct failure failure = t->failure;
	unsigned n = t->n, to = 0;

	memcpy(kept, t->steps, n * sizeof(*kept));
	for (unsigned from = 0; from < n; from++) {
		if (from != i && from != j)
			t->steps[to++] = kept[from];
	}
	t->n = to;
	if (fails(h))
		return true;
	t->n = n;
	memcpy(t->steps, kept, n * sizeof(*kept));
	t->failure = failure;
	return false;
}

static bool in_time(const struct hunt *h)
{
	return time(NULL) < h->end;
}

/* True when something could be left out. */
static bool pass(struct hunt *h, unsigned len)
{
	unsigned from = h->trace->n;
	bool any = false;

	/* From the end: what comes late more often has nothing to do with it. */
	while (from && in_time(h)) {
		unsigned n = len < from ? len : from;

		from -= n;
		any |= leave_out(h, from, n);
	}
	return any;
}

static void shorten(struct hunt *h)
{
	unsigned len = h->trace->n / 2;

	while (len && in_time(h)) {
		if (!pass(h, len) || len > 1)
			len /= 2;
	}
}

/* Some steps are needed only because of each other: opened, and closed again. */
static void leave_out_pairs(struct hunt *h)
{
	struct trace *t = h->trace;
	unsigned i = 0, j;

	while (t->n <= FEW && i < t->n) {
		bool out = false;

		for (j = i + 1; j < t->n && in_time(h) && !out; j++)
			out = leave_out_two(h, i, j);
		i += !out;
	}
}

/* The world, too: fewer bits of mr_mode, steps of fewer threads. */
static void simplify_flag(struct hunt *h, bool *flag)
{
	h->failure = h->trace->failure;
	if (!*flag || !in_time(h))
		return;
	*flag = false;
	if (fails(h))
		return;
	*flag = true;
	h->trace->failure = h->failure;
}

static void simplify_mode(struct hunt *h)
{
	uint64_t *mode = &h->trace->conf.mode;

	for (uint64_t bit = 1; bit <= *mode && in_time(h); bit <<= 1) {
		uint64_t old = *mode;

		h->failure = h->trace->failure;
		*mode &= ~bit;
		if (*mode == old || fails(h))
			continue;
		*mode = old;
		h->trace->failure = h->failure;
	}
}

/* Steps that need not overlap, have no segments beside the first. */
static void simplify_steps(struct hunt *h)
{
	for (unsigned i = 0; i < h->trace->n && in_time(h); i++) {
		struct step *step = &h->trace->steps[i], old = *step;

		h->failure = h->trace->failure;
		step->overlap = 0;
		step->n = step->n > 1 ? 1 : step->n;
		if (!memcmp(step, &old, sizeof(old)) || fails(h))
			continue;
		*step = old;
		h->trace->failure = h->failure;
	}
}

static bool comes_again(struct hunt *h)
{
	unsigned all = h->trace->n;

	/* What came after it was done by other threads meanwhile, or not at all. */
	if (h->failure.step + 1 < all)
		h->trace->n = h->failure.step + 1;
	h->how = IN_ORDER;
	h->tries = 1;
	if (fails(h))
		return true;
	h->trace->n = all;
	if (fails(h))
		return true;
	h->how = IN_THREADS;
	h->tries = FIRST_TRIES;
	if (!fails(h))
		return false;
	h->tries = h->tried * 4 > LEAST_TRIES ? h->tried * 4 : LEAST_TRIES;
	return true;
}

bool trace_shorten(struct trace *trace, const struct backend *backend, unsigned seconds,
		   unsigned budget, enum how *how)
{
	struct hunt h = { .trace = trace,
			  .backend = backend,
			  .seconds = seconds,
			  .end = time(NULL) + budget,
			  .failure = trace->failure };
	bool again;

	memcpy(h.kind, trace->failure.kind, sizeof(h.kind));
	h.steps = malloc((trace->n + 1) * sizeof(*h.steps));
	if (!h.steps)
		return false;
	again = comes_again(&h);
	if (again) {
		shorten(&h);
		simplify_flag(&h, &trace->conf.async);
		simplify_flag(&h, &trace->conf.auth);
		simplify_flag(&h, &trace->conf.messages);
		simplify_flag(&h, &trace->conf.directed);
		simplify_flag(&h, &trace->conf.source);
		simplify_flag(&h, &trace->conf.far);
		simplify_flag(&h, &trace->conf.device);
		simplify_mode(&h);
		simplify_steps(&h);
		shorten(&h);
		leave_out_pairs(&h);
	}
	free(h.steps);
	*how = h.how;
	return again;
}
