/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MR_CACHE_MONITOR=memhooks: the hooks hear of what the C library does to mappings, in
 * its own free and realloc too, before it is done, in whatever thread. So a peer never
 * reads what was there before, not even if another thread has mapped the same address
 * again at once. Nothing else tells the library of changes here: a change that goes
 * around the C library shows that.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include "harness.h"

#define ROUNDS 8
#define LEN (16 * PAGE)
#define WHOLE (256 * PAGE)
#define KEY 4

static __attribute__((constructor)) void memhooks_only(void)
{
	setenv("FI_MR_CACHE_MONITOR", "memhooks", 1);
	/* So that an allocation of WHOLE bytes is a mapping of its own. */
	mallopt(M_MMAP_THRESHOLD, WHOLE / 2);
}

/* --- ways to change memory ------------------------------------------------------- */

struct area {
	char *all; /* WHOLE bytes, as they were allocated or mapped */
	char *at;  /* LEN bytes of these, from the beginning of a page on */
};

/* In the second half of all, which realloc gives back, on pages that belong to nothing
 * else. */
static struct area area_of(void *all)
{
	uintptr_t half = (uintptr_t)all + WHOLE / 2 + 2 * PAGE;

	must(all && all != MAP_FAILED, "no memory");
	return (struct area){ all, (char *)(half & ~(PAGE - 1)) };
}

static struct area mapped(void)
{
	return area_of(mmap(NULL, WHOLE, RW, ANON, -1, 0));
}

static struct area allocated(void)
{
	return area_of(malloc(WHOLE));
}

static void *unmaps(void *arg)
{
	struct area *a = arg;

	return munmap(a->all, WHOLE) ? a : NULL;
}

static void *frees(void *arg)
{
	struct area *a = arg;

	free(a->all);
	return NULL;
}

static void *shrinks(void *arg)
{
	struct area *a = arg;

	return realloc(a->all, WHOLE / 2) == a->all ? NULL : a;
}

static void *maps_over(void *arg)
{
	struct area *a = arg;

	return mmap(a->at, LEN, RW, ANON | MAP_FIXED, -1, 0) == a->at ? NULL : a;
}

static void *discards(void *arg)
{
	struct area *a = arg;

	return madvise(a->at, LEN, MADV_DONTNEED) ? a : NULL;
}

static void *unmaps_by_itself(void *arg)
{
	struct area *a = arg;

	return syscall(SYS_munmap, a->all, WHOLE) ? a : NULL;
}

/* What is left of it at the end, with LEN bytes that were mapped at its place. */
static void leave_anew(struct area *a)
{
	munmap(a->at, LEN);
}

static void leave_shrunk(struct area *a)
{
	munmap(a->at, LEN);
	free(a->all);
}

static void leave_mapped(struct area *a)
{
	munmap(a->all, WHOLE);
}

struct way {
	const char *name;
	struct area (*make)(void);
	void *(*change)(void *area); /* NULL: done */
	void (*leave)(struct area *a);
	bool stays; /* other memory is there when it is done */
};

static const struct way ways[] = {
	{ "munmap", mapped, unmaps, leave_anew, false },
	{ "free", allocated, frees, leave_anew, false },
	{ "realloc", allocated, shrinks, leave_shrunk, false },
	{ "mmap", mapped, maps_over, leave_mapped, true },
	{ "madvise", mapped, discards, leave_mapped, true },
};

static const struct way around = { "a system call", mapped, unmaps_by_itself, leave_anew, false };

/* --- a round --------------------------------------------------------------------- */

struct scene {
	struct env *e;
	struct fid_mr *mr;
	struct peer *reader, *beside;
	fi_addr_t reader_to, beside_to;
	uint64_t seed;
};

static void scene_open(struct scene *s, struct env *e)
{
	struct fab *f = me(e);

	*s = (struct scene){ .e = e, .seed = 100 };
	must_ok(fi_mr_reg(f->domain, NULL, UINT64_MAX, FI_REMOTE_READ, 0, KEY, 0, &s->mr, NULL));
	s->reader = peer(e, 0);
	s->beside = peer(e, 1);
	peer_alloc(s->reader, 0, LEN, 1);
	peer_alloc(s->beside, 0, PAGE, 1);
	s->reader_to = peer_insert(s->reader, f->name, f->name_len);
	s->beside_to = peer_insert(s->beside, f->name, f->name_len);
}

static void scene_close(struct scene *s)
{
	must_ok(fi_close(&s->mr->fid));
}

/* The bytes that a peer has now are those of that pattern. */
static void reads(struct scene *s, const struct area *a, uint64_t seed)
{
	struct peer_rma rma = { true, 0, 0, LEN, s->reader_to, (uintptr_t)a->at, KEY, 1 };

	must_ok(peer_rma(s->reader, &rma));
	peer_want(s->reader, 0, 0, LEN, seed, 0);
	peer_same(s->reader, 0);
}

/* Another one reads all the time, single packets; what, is not looked at. */
static void beside_starts(struct scene *s, const struct area *a)
{
	struct peer_rma rma = { true, 0, 0, 8, s->beside_to, (uintptr_t)a->at, KEY, 200 };

	peer_rma_start(s->beside, &rma);
}

static void beside_ends(struct scene *s)
{
	int err = peer_rma_end(s->beside);

	must(!err || err == FI_EFAULT, "a read beside the change: %s", fi_strerror(err));
	peer_fill(s->beside, 0, 1);
}

/* As soon as the kernel lets us. */
static void map_anew(const struct area *a)
{
	while (mmap(a->at, LEN, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) {
		must(errno == EEXIST, "mmap: %s", strerror(errno));
		sched_yield();
	}
}

/* The change, in another thread; when it returns, the new bytes are there. */
static void change(const struct way *way, struct area *a, uint64_t seed)
{
	pthread_t thread;
	void *failed;

	must_ok(pthread_create(&thread, NULL, way->change, a));
	if (way->stays)
		must_ok(pthread_join(thread, &failed));
	else
		map_anew(a);
	pattern(a->at, seed, 0, LEN);
	if (!way->stays)
		must_ok(pthread_join(thread, &failed));
	must(!failed, "%s failed", way->name);
}

/*
 * Old and new bytes have the next two seeds; new_bytes: which of them a
 * peer reads after the change.
 */
static void round_of(struct scene *s, const struct way *way, bool new_bytes)
{
	uint64_t before = ++s->seed, after = ++s->seed;
	struct area a = way->make();

	pattern(a.at, before, 0, LEN);
	reads(s, &a, before);
	beside_starts(s, &a);
	change(way, &a, after);
	reads(s, &a, new_bytes ? after : before);
	beside_ends(s);
	way->leave(&a);
}

IN_MODES(MODES_ONE)

CASE(what_the_c_library_changes_is_never_read_as_it_was)
{
	struct scene s;
	unsigned i;

	scene_open(&s, e);
	for (i = 0; i < ROUNDS * sizeof(ways) / sizeof(*ways); i++) {
		const struct way *way = &ways[i / ROUNDS];

		case_note(way->name);
		round_of(&s, way, true);
	}
	scene_close(&s);
}

/* Or else the case above would show nothing: somebody else would have told. */
CASE(with_memhooks_what_goes_around_the_c_library_is_not_heard_of)
{
	struct scene s;

	scene_open(&s, e);
	round_of(&s, &around, false);
	scene_close(&s);
}

/* --- a local buffer that nobody registers ---------------------------------------- */

/* What the peer has after a write of the buffer, in which that pattern is. */
static uint8_t sent(struct env *e, const struct region *r, char *mem, uint8_t byte)
{
	struct fid_ep *ep = me(e)->ep;
	uint8_t got = 0;

	memset(mem, byte, LEN);
	must_ok((int)fi_write(ep, mem, LEN, NULL, r->peer->addr, r->base, r->key, e));
	fab_wait_ok(me(e), 1);
	must_ok((int)fi_read(ep, &got, 1, NULL, r->peer->addr, r->base, r->key, e));
	fab_wait_ok(me(e), 1);
	return got;
}

CASE(with_memhooks_a_local_buffer_that_changes_around_the_c_library_is_sent_as_it_was)
{
	struct peer *p = peer(e, 0);
	struct region r = far_reg(p, far_map(p, 0, LEN, RW, ANON), LEN, REMOTE_RW, 7);
	char *mem = mmap(NULL, LEN, RW, ANON, -1, 0);

	must(sent(e, &r, mem, 1) == 1 && sent(e, &r, mem, 2) == 2, "other bytes came");
	must(mmap(mem, LEN, RW, ANON | MAP_FIXED, -1, 0) == mem, "mmap");
	must(sent(e, &r, mem, 3) == 3, "a change by the C library was not heard of");
	must(!syscall(SYS_munmap, mem, LEN), "munmap");
	must((char *)syscall(SYS_mmap, mem, LEN, RW, ANON | MAP_FIXED, -1, 0) == mem, "mmap");
	must(sent(e, &r, mem, 4) == 3, "somebody has told of a system call");
	munmap(mem, LEN);
}
