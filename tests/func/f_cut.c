/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A long read whose memory changes while it goes on. Linux 6.1 cuts it off without a word, and
 * the initiator sends again for seconds before it connects anew; others refuse it. In either
 * case what is behind the read has nothing to do with it: it is done, once.
 */
#include <rdma/fi_atomic.h>
#include "harness.h"

#define LONG (256 * PAGE)
#define BEHIND 6u     /* of each kind, after each read */
#define CUT_MS 2000   /* nothing else takes so long */
#define TRIES_MS 6000 /* of reads that are not cut */

static uint64_t one = 1, numbers[BEHIND];

struct scene {
	struct env *e;
	struct region moving, still;
	struct buf *to;
	uint64_t at; /* of what moves, in its process */
	uint64_t added, number;
};

static void post(ssize_t ret)
{
	must(!ret, "not posted: %zd", ret);
}

/* A write of a number of its own, an atomic operation, a write of several packets. */
static void post_behind(struct scene *s, unsigned i)
{
	const struct region *r = &s->still;
	struct fid_ep *ep = me(s->e)->ep;

	numbers[i] = ++s->number;
	post(fi_write(ep, &numbers[i], 8, NULL, r->peer->addr, r->base + 8 * (i + 1), r->key,
		      &one));
	post(fi_atomic(ep, &one, 1, NULL, r->peer->addr, r->base, r->key, FI_UINT64, FI_SUM, &one));
	post(fi_write(ep, s->to->mem, 3 * PAGE, NULL, r->peer->addr, r->base + PAGE, r->key, &one));
	s->added++;
}

static long read_and_change(struct scene *s)
{
	const struct region *r = &s->moving;
	long begin = now_ms();
	struct done d;

	post(fi_read(me(s->e)->ep, s->to->mem + LONG, LONG, NULL, r->peer->addr, r->base, r->key,
		     s));
	for (unsigned i = 0; i < BEHIND; i++)
		post_behind(s, i);
	far_map(r->peer, s->at, LONG, RW, ANON | MAP_FIXED | MAP_POPULATE);
	for (unsigned i = 0; i < 3 * BEHIND + 1; i++) {
		must(fab_done(me(s->e), &d, 2 * SOON), "no completion");
		must(!d.err, "%s: err %d, %s", d.ctx == s ? "the read" : "behind it", d.err,
		     d.text);
	}
	return now_ms() - begin;
}

static uint64_t word(struct scene *s, unsigned i)
{
	static uint64_t got;
	const struct region *r = &s->still;

	post(fi_read(me(s->e)->ep, &got, 8, NULL, r->peer->addr, r->base + 8 * i, r->key, &got));
	fab_wait_ok(me(s->e), 1);
	return got;
}

static void look(struct scene *s)
{
	uint64_t sum = word(s, 0);

	must(sum == s->added, "%lu added, the sum is %lu", s->added, sum);
	for (unsigned i = 0; i < BEHIND; i++)
		must(word(s, i + 1) == numbers[i], "write %lu is not there", numbers[i]);
}

static void __attribute__((constructor)) want_atomics(void)
{
	func_caps = FI_ATOMIC;
}

IN_MODES(MODE(0))

CASE(what_is_behind_a_read_that_is_cut_is_done_once)
{
	struct peer *p = peer(e, 0);
	struct scene s = { .e = e, .to = buf(e, 2 * LONG, 1) };
	uint64_t at = far_map(p, 0, LONG, RW, ANON | MAP_POPULATE);
	long end = now_ms() + TRIES_MS;
	unsigned cuts = 0, reads = 0;

	s.at = at;
	s.moving = far_reg(p, at, LONG, REMOTE_RW, 1);
	at = far_map(p, 0, 8 * PAGE, RW, ANON | MAP_POPULATE);
	s.still = far_reg(p, at, 8 * PAGE, REMOTE_RW, 2);
	while (now_ms() < end && !cuts) {
		cuts += read_and_change(&s) > CUT_MS;
		reads++;
		look(&s);
	}
	printf("# %u reads, %u cut\n", reads, cuts);
}
