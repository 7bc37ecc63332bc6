/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner's part: maps, unmaps, moves, discards, and looks at what peers have done. */
#define CASE_HELPER
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hammer.h"

#define GUARD_WORD 0x6a6a6a6a6a6a6a6aull
/* Where the kernel puts nothing by itself: a hole stays one. */
#define FAR_AWAY (1ull << 44)
#define MOVED 8 /* ranges that were moved away and are still looked at */

struct moved {
	uint64_t *at;
	size_t len;
	uint64_t *copy;
	uint64_t limit; /* writes up to this one were on their way */
};

struct work {
	struct side *s;
	unsigned area;
	uint64_t base; /* of the area */
	struct cell *cell;
	uint64_t state;
	unsigned gen;
	int fd;				   /* shared memory of the size of the area */
	bool is_shared[CELLS];		   /* pages of the file: cannot go and be left alone */
	struct moved moved[MOVED], *fresh; /* fresh: by the change that goes on */
	unsigned nmoved;
};

enum change { DISCARD, FREE, UNMAP, MAP_OVER, MAP_SHARED_OVER, MOVE, CHANGES };

static void *map(void *at, size_t len, int flags, int fd, uint64_t off)
{
	void *p = mmap(at, len, RW, flags | (at ? MAP_FIXED : 0), fd, (off_t)off);

	must(p != MAP_FAILED, "mmap of %zu bytes failed", len);
	return p;
}

static uint64_t *words(const struct work *w, unsigned c)
{
	return (uint64_t *)(w->base + c * CELL);
}

/* --- looking ----------------------------------------------------------------------- */

/* A word on its way may be seen in halves: what is wrong has to stay wrong. */
static bool stays(const volatile uint64_t *at,
		  bool (*bad)(const struct work *, unsigned, size_t, uint64_t),
		  const struct work *w, unsigned c, size_t i)
{
	for (int tries = 0; tries < 50; tries++) {
		if (!bad(w, c, i, *at))
			return false;
		usleep(1000);
	}
	return true;
}

static bool outside_bad(const struct work *w, unsigned c, size_t i, uint64_t word)
{
	unsigned gen = atomic_load(&w->cell[c].gen);
	bool window = i * 8 >= WRITE_LOW && i * 8 < WRITE_HIGH;

	if (word == OWNER_WORD(gen, w->area, c))
		return false;
	return !window || !IS_PEER(word) || NUMBER(word) <= atomic_load(&w->cell[c].floor);
}

static void look_outside(struct work *w, unsigned c)
{
	uint64_t *at = words(w, c);

	for (size_t i = 0; i < WORDS; i++) {
		if (!outside_bad(w, c, i, at[i]) || !stays(&at[i], outside_bad, w, c, i))
			continue;
		hammer_fault(w->s, OUTSIDE, "cell %u/%u gen %u floor %llu: word %zu is 0x%llx",
			     w->area, c, atomic_load(&w->cell[c].gen),
			     atomic_load(&w->cell[c].floor), i, (unsigned long long)at[i]);
		return;
	}
}

static bool lost_bad(const struct work *w, unsigned c, size_t i, uint64_t word)
{
	(void)i;
	return !IS_PEER(word) || NUMBER(word) < atomic_load(&w->cell[c].stable) >> 20;
}

/* seq: as it was while the cell did not change. */
static void look_lost(struct work *w, unsigned c, unsigned seq)
{
	uint64_t stable = atomic_load(&w->cell[c].stable);
	uint64_t *at = words(w, c);
	size_t low, high;

	if (!stable || (stable & 0xfffff) != (seq & 0xfffff))
		return;
	hammer_window(stable >> 20, &low, &high);
	for (size_t i = low / 8; i < high / 8; i++) {
		if (!lost_bad(w, c, i, at[i]) || !stays(&at[i], lost_bad, w, c, i))
			continue;
		hammer_fault(w->s, LOST, "cell %u/%u: write %llu is not there, but 0x%llx", w->area,
			     c, (unsigned long long)(stable >> 20), (unsigned long long)at[i]);
		return;
	}
}

static void look_moved(struct work *w, struct moved *m)
{
	for (size_t i = 0; i < m->len / 8; i++) {
		uint64_t word = m->at[i];

		if (word == m->copy[i])
			continue;
		if (IS_PEER(word) && NUMBER(word) <= m->limit)
			continue;
		hammer_fault(w->s, OUTSIDE,
			     "memory moved away from area %u: word %zu is 0x%llx, was "
			     "0x%llx, limit %llu",
			     w->area, i, (unsigned long long)word, (unsigned long long)m->copy[i],
			     (unsigned long long)m->limit);
		return;
	}
}

static void moved_drop(struct work *w, struct moved *m)
{
	look_moved(w, m);
	munmap(m->at, m->len);
	free(m->copy);
	*m = (struct moved){ 0 };
}

bool hammer_watched(void)
{
	const char *monitor = getenv("FI_MR_CACHE_MONITOR");

	return !monitor || !strcmp(monitor, "userfaultfd");
}

/* --- changing ---------------------------------------------------------------------- */

/* Away to where no region is; what is there now must not change any more. */
static void move_away(struct work *w, unsigned c, size_t len)
{
	struct moved *m = &w->moved[w->nmoved++ % MOVED];
	void *to = map(NULL, len, ANON, -1, 0);

	if (m->at)
		moved_drop(w, m);
	if (mremap(words(w, c), len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) {
		/* What userfaultfd watches in part cannot always be moved (mrfab(7)). */
		must(errno == EFAULT && hammer_watched(), "mremap: %s", strerror(errno));
		map(words(w, c), len, ANON, -1, 0);
		return;
	}
	m->limit = atomic_load(&w->s->own->posted);
	m->at = to;
	m->len = len;
	m->copy = malloc(len);
	must(m->copy, "no memory");
	memcpy(m->copy, to, len);
	w->fresh = m;
	map(words(w, c), len, ANON, -1, 0);
}

/* Without what the cell held when it last was the file's: that would look like stale words. */
static void share(struct work *w, unsigned c, size_t len)
{
	must(!fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, c * CELL, (off_t)len),
	     "no hole in the file");
	map(words(w, c), len, MAP_SHARED, w->fd, c * CELL);
}

static void change_pages(struct work *w, enum change change, unsigned c, size_t len, bool hole)
{
	if ((hole && change != UNMAP) || (change == MOVE && w->is_shared[c]))
		change = MAP_OVER;
	for (unsigned i = 0; i < len / CELL && change >= UNMAP; i++)
		w->is_shared[c + i] = change == MAP_SHARED_OVER;
	switch (change) {
	case DISCARD:
		madvise(words(w, c), len, MADV_DONTNEED);
		break;
	case FREE:
		madvise(words(w, c), len, MADV_FREE);
		break;
	case UNMAP:
		munmap(words(w, c), len);
		break;
	case MAP_SHARED_OVER:
		share(w, c, len);
		break;
	case MOVE:
		move_away(w, c, len);
		break;
	default:
		map(words(w, c), len, ANON, -1, 0);
	}
}

static void refresh(struct work *w, unsigned c, size_t len)
{
	for (int i = 0; i < REGIONS; i++) {
		const struct region_key *k = &w->s->own->region[w->area][i];
		uint64_t from = (uint64_t)words(w, c), to = from + len;
		struct iovec iov;

		if (!k->there)
			continue;
		from = from < k->start ? k->start : from;
		to = to > k->start + k->len ? k->start + k->len : to;
		iov = (struct iovec){ (void *)from, to - from };
		must_ok(fi_mr_refresh(w->s->mr[w->area][i], &iov, 1, 0));
	}
}

static void fill(struct work *w, unsigned c)
{
	uint64_t word = OWNER_WORD(w->gen, w->area, c), *at = words(w, c);

	for (size_t i = 0; i < WORDS; i++)
		at[i] = word;
}

/* In order: nobody trusts the cells, pages change, words come, all is announced. */
static void change(struct work *w)
{
	enum change what = rnd(&w->state) % CHANGES;
	/* One mapping at a time is all that mremap moves. */
	unsigned n = what == MOVE ? 1 : 1 + rnd(&w->state) % 4;
	unsigned c = hammer_cell(&w->state, n);
	bool hole = false;

	atomic_fetch_add(&w->s->own->begun, 1);
	for (unsigned i = c; i < c + n; i++) {
		unsigned seq = atomic_fetch_add(&w->cell[i].seq, 1);

		if (atomic_load(&w->cell[i].gen)) {
			look_outside(w, i);
			look_lost(w, i, seq);
		} else {
			hole = true;
		}
	}
	for (unsigned i = c; i < c + n; i++)
		atomic_store(&w->cell[i].floor, atomic_load(&w->cell[i].done));
	w->gen++;
	change_pages(w, what, c, n * CELL, hole);
	for (unsigned i = c; i < c + n && what != UNMAP; i++)
		fill(w, i);
	if (w->s->notify)
		refresh(w, c, n * CELL);
	/* Until it is told, the library reaches what was mapped before. */
	if (w->s->notify && w->fresh)
		w->fresh->limit = atomic_load(&w->s->own->posted);
	w->fresh = NULL;
	for (unsigned i = c; i < c + n; i++) {
		atomic_store(&w->cell[i].gen, what == UNMAP ? 0 : w->gen);
		atomic_fetch_add(&w->cell[i].seq, 1);
	}
	atomic_fetch_add(&w->s->own->ended, 1);
	atomic_fetch_add(&w->s->shared->counts.changes, 1);
}

/* --- the memory -------------------------------------------------------------------- */

static void reg(struct side *s, unsigned area, int which, uint64_t start, uint64_t len)
{
	struct region_key *k = &s->own->region[area][which];
	struct fid_mr **mr = &s->mr[area][which];

	must_ok(fi_mr_reg(s->fab.domain, (void *)start, len, REMOTE_RW, 0,
			  (uint64_t)area * REGIONS + (uint64_t)which, 0, mr, NULL));
	fab_ready(&s->fab, *mr);
	*k = (struct region_key){ .there = true, .start = start, .len = len };
	k->key = fi_mr_key(*mr);
	k->base = s->fab.virt ? start : 0;
	k->raw.size = sizeof(k->raw.bytes);
	must_ok(fi_mr_raw_attr(*mr, &k->raw.base, k->raw.bytes, &k->raw.size, 0));
}

static void area_open(struct side *s, unsigned area)
{
	uint64_t *guard = map((void *)(FAR_AWAY * (area + 1)), AREA + 2 * PAGE, ANON, -1, 0);
	uint64_t base = (uint64_t)guard + PAGE;

	for (size_t i = 0; i < PAGE / 8; i++) {
		guard[i] = GUARD_WORD;
		guard[(PAGE + AREA) / 8 + i] = GUARD_WORD;
	}
	s->own->area[area] = base;
	for (unsigned c = 0; c < CELLS; c++) {
		uint64_t *at = (uint64_t *)(base + c * CELL);

		for (size_t i = 0; i < WORDS; i++)
			at[i] = OWNER_WORD(1, area, c);
		atomic_store(&s->own->cell[area][c].gen, 1);
	}
	reg(s, area, REGION_AREA, base, AREA);
	reg(s, area, REGION_INNER, base + INNER, AREA - 2 * INNER);
	if (!(s->fab.bits & FI_MR_ALLOCATED))
		reg(s, area, REGION_ALL, 0, UINT64_MAX);
}

void hammer_own(struct side *s)
{
	for (unsigned area = 0; area < AREAS; area++)
		area_open(s, area);
}

static void guard_look(struct side *s, unsigned area)
{
	uint64_t *guard = (uint64_t *)(s->own->area[area] - PAGE);

	for (size_t i = 0; i < PAGE / 8; i++) {
		if (guard[i] == GUARD_WORD && guard[(PAGE + AREA) / 8 + i] == GUARD_WORD)
			continue;
		hammer_fault(s, OUTSIDE, "beside area %u: word %zu", area, i);
		return;
	}
}

void hammer_disown(struct side *s)
{
	for (unsigned area = 0; area < AREAS; area++) {
		guard_look(s, area);
		for (int i = 0; i < REGIONS; i++) {
			if (s->mr[area][i])
				must_ok(fab_mr_close(&s->fab, s->mr[area][i]));
		}
		munmap((void *)(s->own->area[area] - PAGE), AREA + 2 * PAGE);
	}
}

void *hammer_change(void *arg)
{
	const struct owner *owner = arg;
	struct side *s = owner->side;
	struct work w = { .s = s, .area = owner->area, .gen = 1 };

	w.base = s->own->area[w.area];
	w.cell = s->own->cell[w.area];
	w.state = s->seed * 31 + (uint64_t)s->number * 7 + w.area;
	w.fd = memfd_create("hammer", MFD_CLOEXEC);
	must(w.fd >= 0 && !ftruncate(w.fd, AREA), "memfd");
	while (!atomic_load(&s->shared->stop)) {
		change(&w);
		if (s->pace_us)
			usleep(rnd(&w.state) % (2 * s->pace_us));
	}
	/* Nobody accesses any more once both sides have finished. */
	while (!atomic_load(&s->own->finished) || !atomic_load(&s->other->finished))
		usleep(1000);
	for (unsigned c = 0; c < CELLS; c++) {
		if (!atomic_load(&w.cell[c].gen))
			continue;
		look_outside(&w, c);
		look_lost(&w, c, atomic_load(&w.cell[c].seq));
	}
	for (unsigned i = 0; i < MOVED; i++) {
		if (w.moved[i].at)
			moved_drop(&w, &w.moved[i]);
	}
	close(w.fd);
	return NULL;
}
