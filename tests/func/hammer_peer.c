/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's part: reads and writes the other side's cells and judges the results. */
#define CASE_HELPER
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "hammer.h"

#define FLYING 4
#define SPAN 3 /* cells of the longest read */

struct shot {
	bool busy, read, beyond;
	/* The other side's changes that were over when it began. */
	unsigned ended;
	/* Reads of several packets were on their way before it; ended, of the first to begin. */
	bool behind;
	unsigned ahead;
	unsigned area, cell, n;
	size_t low, len; /* bytes from the beginning of the first cell */
	uint64_t number; /* of a write */
	unsigned seq[SPAN], gen[SPAN];
	uint64_t floor[SPAN];
	struct buf buf;
};

struct gun {
	struct side *s;
	fi_addr_t to;
	struct shot shot[FLYING];
	unsigned flying;
	uint64_t state, number;
	uint64_t key[AREAS][REGIONS];
	bool taken[AREAS][CELLS]; /* an access of ours is on its way there */
};

static struct cell *cell_of(const struct gun *g, unsigned area, unsigned c)
{
	return &g->s->other->cell[area][c];
}

/* --- shooting ---------------------------------------------------------------------- */

/* Cells that no other of our accesses is in. */
static bool pick(struct gun *g, struct shot *t)
{
	t->read = rnd(&g->state) % 2;
	t->n = t->read ? 1 + rnd(&g->state) % SPAN : 1;
	t->area = rnd(&g->state) % AREAS;
	t->cell = hammer_cell(&g->state, t->n);
	for (unsigned i = 0; i < t->n; i++) {
		if (g->taken[t->area][t->cell + i])
			return false;
	}
	for (unsigned i = 0; i < t->n; i++)
		g->taken[t->area][t->cell + i] = true;
	return true;
}

/* Whole words; not the bytes of the area that the inner region leaves out. */
static void aim(struct gun *g, struct shot *t)
{
	size_t end = t->n * CELL - INNER;

	if (!t->read) {
		size_t high;

		t->number = ++g->number;
		hammer_window(t->number, &t->low, &high);
		t->len = high - t->low;
		for (size_t i = 0; i < t->len / 8; i++)
			((uint64_t *)t->buf.mem)[i] = PEER_WORD(t->number);
		return;
	}
	t->low = INNER + rnd(&g->state) % (end - INNER) / 8 * 8;
	if (rnd(&g->state) % 2)
		t->low = INNER;
	t->len = 8 + rnd(&g->state) % (end - t->low) / 8 * 8;
	if (t->low + t->len > end)
		t->len = end - t->low;
	memset(t->buf.mem, 0xee, t->len);
}

/* A read that leaves the region by some bytes: never any good. */
static void aim_beyond(struct shot *t)
{
	t->beyond = true;
	t->cell = CELLS - 1;
	t->low = CELL - 48;
	t->len = 56;
}

static struct op op_of(struct gun *g, struct shot *t)
{
	unsigned which = t->beyond ? REGION_AREA : rnd(&g->state) % REGIONS;
	const struct region_key *k = &g->s->other->region[t->area][which];
	uint64_t addr = g->s->other->area[t->area] + t->cell * CELL + t->low;

	if (!k->there) {
		which = REGION_INNER;
		k = &g->s->other->region[t->area][which];
	}
	return (struct op){ .read = t->read,
			    .buf = &t->buf,
			    .len = t->len,
			    .to = g->to,
			    .addr = k->base ? addr : addr - k->start,
			    .key = g->key[t->area][which],
			    .ctx = t };
}

static bool is_long_read(const struct shot *t)
{
	return t->read && t->len > PAGE;
}

static void note_ahead(const struct gun *g, struct shot *t)
{
	t->ended = t->ahead = atomic_load(&g->s->other->ended);
	t->behind = false;
	for (unsigned i = 0; i < FLYING; i++) {
		const struct shot *o = &g->shot[i];

		if (!o->busy || !is_long_read(o))
			continue;
		t->behind = true;
		if (o->ended < t->ahead)
			t->ahead = o->ended;
	}
}

static void shoot(struct gun *g, struct shot *t)
{
	struct op op;

	t->beyond = false;
	if (!pick(g, t))
		return;
	note_ahead(g, t);
	aim(g, t);
	if (t->read && t->cell + t->n == CELLS && rnd(&g->state) % 4 == 0) {
		for (unsigned i = 0; i + 1 < t->n; i++)
			g->taken[t->area][t->cell + i] = false;
		t->n = 1;
		aim_beyond(t);
	}
	for (unsigned i = 0; i < t->n; i++) {
		struct cell *c = cell_of(g, t->area, t->cell + i);

		t->seq[i] = atomic_load(&c->seq);
		t->gen[i] = atomic_load(&c->gen);
		t->floor[i] = atomic_load(&c->floor);
		/* Read in between: of no use, as if it had been changing. */
		if (atomic_load(&c->seq) != t->seq[i])
			t->seq[i] = 1;
	}
	if (!t->read)
		atomic_store(&g->s->other->posted, t->number);
	op = op_of(g, t);
	t->busy = true;
	g->flying++;
	must_ok(op_post(&g->s->fab, &op));
}

/* --- judging ----------------------------------------------------------------------- */

static bool touched(const struct shot *t, unsigned i)
{
	return t->low < (i + 1) * CELL && t->low + t->len > i * CELL;
}

static bool steady(const struct gun *g, const struct shot *t, unsigned i)
{
	const struct cell *c = cell_of(g, t->area, t->cell + i);

	return t->seq[i] % 2 == 0 && atomic_load(&c->seq) == t->seq[i];
}

/* Of all cells that the access touched. */
static bool all_steady(const struct gun *g, const struct shot *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		if (touched(t, i) && !steady(g, t, i))
			return false;
	}
	return true;
}

static bool has_hole(const struct shot *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		if (touched(t, i) && !t->gen[i])
			return true;
	}
	return false;
}

/* gen: what was announced when the read began. */
static bool word_bad(const struct shot *t, unsigned i, uint64_t word, bool is_steady)
{
	if (!word)
		return is_steady;
	if (IS_PEER(word))
		return NUMBER(word) <= t->floor[i];
	if (!IS_OWNER(word) || PLACE(word) != (t->area << 8 | (t->cell + i)))
		return true;
	return is_steady ? GEN(word) != t->gen[i] : GEN(word) < t->gen[i];
}

/*
 * While a cell changes, single words may be seen in halves; a row of equal ones is none of
 * these.
 */
static void judge_words(struct gun *g, struct shot *t)
{
	const uint64_t *at = (const uint64_t *)t->buf.mem;
	unsigned row = 0;

	for (size_t w = 0; w < t->len / 8; w++) {
		unsigned i = (unsigned)((t->low + w * 8) / CELL);
		bool is_steady;

		if (t->seq[i] % 2)
			continue;
		is_steady = steady(g, t, i);
		if (!word_bad(t, i, at[w], is_steady)) {
			row = 0;
			continue;
		}
		row = w && at[w] == at[w - 1] ? row + 1 : 1;
		if (!is_steady && row < 8)
			continue;
		/* It may have begun to change while we looked. */
		if (is_steady && !steady(g, t, i) && !word_bad(t, i, at[w], false))
			continue;
		hammer_fault(g->s, STALE,
			     "cell %u/%u%s: gen %u floor %llu announced, word %zu of the "
			     "read at %zu is 0x%llx",
			     t->area, t->cell + i, is_steady ? "" : " (changing)", t->gen[i],
			     (unsigned long long)t->floor[i], w, t->low, (unsigned long long)at[w]);
		return;
	}
}

/*
 * The kernel does not say why a read of several packets came to no end, and what was posted
 * behind it goes with it. The library gives up all that it has pinned when some of it changes:
 * where does not matter, but a change there must be.
 */
static bool was_cut(const struct gun *g, const struct shot *t)
{
	return (is_long_read(t) || t->behind) && atomic_load(&g->s->other->begun) != t->ahead;
}

static void judge_refusal(struct gun *g, struct shot *t, const struct done *d)
{
	bool lib = d->err == FI_EFAULT || d->err == FI_EACCES || d->err == FI_EKEYREJECTED;

	atomic_fetch_add(lib ? &g->s->shared->counts.refused : &g->s->shared->counts.cut, 1);
	if (t->beyond || !all_steady(g, t) || has_hole(t))
		return;
	if (!lib && was_cut(g, t))
		return;
	hammer_fault(g->s, DENIED, "%s of %zu bytes in cell %u/%u (gen %u): err %d (%s), %s",
		     t->read ? "read" : "write", t->len, t->area, t->cell, t->gen[0], d->err,
		     fi_strerror(d->err), d->text);
}

static void judge(struct gun *g, struct shot *t, const struct done *d)
{
	struct cell *c = cell_of(g, t->area, t->cell);

	if (d->err) {
		judge_refusal(g, t, d);
		return;
	}
	atomic_fetch_add(t->read ? &g->s->shared->counts.reads : &g->s->shared->counts.writes, 1);
	if (t->beyond || (has_hole(t) && all_steady(g, t)))
		hammer_fault(g->s, GHOST, "%s of %zu bytes in cell %u/%u%s",
			     t->read ? "read" : "write", t->len, t->area, t->cell,
			     t->beyond ? ", past the end of the region" : ", a hole");
	if (t->read) {
		judge_words(g, t);
		return;
	}
	if (steady(g, t, 0))
		atomic_store(&c->stable, t->number << 20 | (t->seq[0] & 0xfffff));
	atomic_store(&c->done, t->number);
}

static void take(struct gun *g)
{
	struct shot *t;
	struct done d;

	if (!fab_done(&g->s->fab, &d, SOON))
		case_fail("%u accesses have no completion after %d ms", g->flying, SOON);
	t = d.ctx;
	judge(g, t, &d);
	for (unsigned i = 0; i < t->n; i++)
		g->taken[t->area][t->cell + i] = false;
	t->busy = false;
	g->flying--;
}

static void gun_open(struct gun *g, struct side *s)
{
	*g = (struct gun){ .s = s, .state = s->seed + 1000 + (uint64_t)s->number };
	g->to = fab_insert(&s->fab, s->other->name);
	for (unsigned i = 0; i < FLYING; i++)
		fab_buf(&s->fab, &g->shot[i].buf, SPAN * CELL, 1);
	for (unsigned a = 0; a < AREAS; a++) {
		for (unsigned r = 0; r < REGIONS; r++) {
			const struct region_key *k = &s->other->region[a][r];

			g->key[a][r] = k->key;
			if (k->there && s->fab.bits & FI_MR_RAW)
				g->key[a][r] =
					fab_map(&s->fab, k->raw.base, k->raw.bytes, k->raw.size);
		}
	}
}

void hammer_access(struct side *s)
{
	static struct gun g;

	gun_open(&g, s);
	while (!atomic_load(&s->shared->stop)) {
		for (unsigned i = 0; i < FLYING; i++) {
			if (!g.shot[i].busy)
				shoot(&g, &g.shot[i]);
		}
		if (g.flying)
			take(&g);
	}
	while (g.flying)
		take(&g);
	fab_unmap_all(&s->fab);
	for (unsigned i = 0; i < FLYING; i++)
		fab_buf_close(&g.shot[i].buf);
}
