/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stays pinned between operations, by the kernel's count: with FI_MR_CACHE_MONITOR=disabled
 * nothing, neither a local buffer nor what a peer has reached; with each monitor both.
 */
#include <unistd.h>
#include "harness.h"

#define LEN (16 * PAGE)
#define KINDS 4

static const char *const monitors[KINDS] = { "disabled", "userfaultfd", "memhooks", "" };

static struct peer *start_with(struct env *e, unsigned i)
{
	struct fab_opt opt = { 0 };
	struct peer *p = &e->peer[i];

	me(e);
	if (p->up)
		return p;
	snprintf(opt.monitor, sizeof(opt.monitor), "%s", monitors[i]);
	peer_start(p, e->mode, &opt);
	peer_case(p, e->timeout);
	p->addr = fab_insert(me(e), p->name);
	p->mapper = me(e);
	return p;
}

/* Whatever ends behind an operation has ended. */
static uint64_t pinned(struct peer *p)
{
	uint64_t now = far_pinned(p), before;

	do {
		before = now;
		usleep(200000);
		now = far_pinned(p);
	} while (now != before);
	return now;
}

/* kB that n writes of the peer from a buffer that nobody registered leave behind. */
static uint64_t left_by_writes(struct peer *p, const struct peer_rma *rma)
{
	struct peer_rma first = *rma;
	uint64_t before;

	/* The connection takes some, too. */
	first.len = 8;
	must_ok(peer_rma(p, &first));
	before = pinned(p);
	for (unsigned i = 0; i < 5; i++)
		must_ok(peer_rma(p, rma));
	return pinned(p) - before;
}

static uint64_t left_by_reads(struct env *e, struct peer *p)
{
	uint64_t at = far_map(p, 0, LEN, RW, ANON | MAP_POPULATE), before;
	struct region r = far_reg(p, at, LEN, REMOTE_RW, 7);
	struct region other =
		far_reg(p, far_map(p, 0, PAGE, RW, ANON | MAP_POPULATE), PAGE, REMOTE_RW, 8);
	struct buf *b = buf(e, LEN, 1);

	far_brings(e, b, 0, 0, &other, other.base, 0, 0);
	before = pinned(p);
	for (unsigned i = 0; i < 5; i++)
		far_brings(e, b, 0, LEN, &r, r.base, 0, 0);
	return pinned(p) - before;
}

IN_MODES(MODE(0))

CASE(disabled_keeps_nothing_between_operations)
{
	struct fab *f = me(e);
	static uint8_t mem[LEN] __attribute__((aligned(4096)));
	struct fid_mr *mr;

	must_ok(fi_mr_reg(f->domain, mem, LEN, REMOTE_RW, 0, 4, 0, &mr, NULL));
	for (unsigned i = 0; i < KINDS; i++) {
		struct peer *p = start_with(e, i);
		struct peer_rma rma = { false, 0, 0, LEN, 0, 0, 4, 1 };
		uint64_t writes, reads;

		case_note(monitors[i]);
		rma.to = peer_insert(p, f->name, f->name_len);
		peer_alloc(p, 0, LEN, 1);
		writes = left_by_writes(p, &rma);
		reads = left_by_reads(e, p);
		if (i == 0)
			must(!writes && !reads, "%lu and %lu kB are pinned still", writes, reads);
		else
			must(writes >= LEN / 1024 && reads >= LEN / 1024, "%lu and %lu kB are kept",
			     writes, reads);
	}
	must_ok(fi_close(&mr->fid));
}
