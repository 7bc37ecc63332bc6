/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target whose main() has ended by pthread_exit while its other threads go on: /proc/self says
 * nothing of its memory any more, and its peers reach all of it as before. One is told of changes in
 * the usual way, and nobody tells the other.
 */
#include "harness.h"

#define SIZE (16 * PAGE)

struct scene {
	struct env *e;
	struct peer *p;
	struct buf *b;
	uint64_t seed;
};

static struct peer *without_main(struct env *e, unsigned i, const char *monitor)
{
	struct fab_opt opt = { 0 };
	struct peer *p = &e->peer[i];

	if (p->up)
		return p;
	snprintf(opt.monitor, sizeof(opt.monitor), "%s", monitor);
	peer_start(p, e->mode, &opt);
	peer_case(p, e->timeout);
	p->addr = fab_insert(me(e), p->name);
	p->mapper = me(e);
	peer_end_main(p);
	return p;
}

static void each_target(struct env *e, void (*run)(struct scene *s))
{
	struct scene s = { .e = e, .b = buf(e, SIZE + 2 * PAGE, 1), .seed = 100 };

	me(e);
	s.p = without_main(e, 0, "");
	case_note("usual monitors");
	run(&s);
	s.p = without_main(e, 1, "disabled");
	case_note("no monitor");
	run(&s);
}

static void reached(struct scene *s, const struct region *r, uint64_t at)
{
	far_poke(s->p, at + 5, 3 * PAGE, ++s->seed, 0);
	/* What came after the region was made, or since it was refreshed. */
	if (s->p->bits & FI_MR_MMU_NOTIFY)
		must_ok(far_refresh(r, NULL, 0, 0));
	far_brings(s->e, s->b, PAGE, 3 * PAGE, r, 5, s->seed, 0);
	far_lands(s->e, s->b, PAGE + 9, 3 * PAGE, r, 5, at + 5);
}

static void region_reached(struct scene *s, uint64_t at)
{
	struct region r = far_reg(s->p, at, SIZE, REMOTE_RW, 1);

	reached(s, &r, at);
	peer_unreg(&r);
}

IN_MODES(MODE(0) | MODE(1) | MODE(2) | MODE(MODE_RAW) | MODE(MODE_NOTIFY) |
	 MODE(MODE_NOTIFY_ALLOC) | MODE(MODE_ENDPOINT) | MODE(MODE_EVERYTHING))

static void memory_of_its_own(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, SIZE, RW, ANON), brk = far_call(s->p, SYS_brk, 0);

	region_reached(s, at);
	far_unmap(s->p, at, SIZE);
	brk = (brk + PAGE - 1) & ~(PAGE - 1);
	must(far_call(s->p, SYS_brk, brk + SIZE) == brk + SIZE, "brk");
	region_reached(s, brk);
	must(far_call(s->p, SYS_brk, brk) == brk, "brk back");
}

CASE(memory_of_the_process_is_reached)
{
	each_target(e, memory_of_its_own);
}

static void memory_of_files(struct scene *s)
{
	int fd = far_memfd(s->p, SIZE, 0);
	uint64_t shared = far_map_fd(s->p, 0, SIZE, RW, MAP_SHARED, fd);
	uint64_t private = far_map_fd(s->p, 0, SIZE, RW, MAP_PRIVATE, fd);

	region_reached(s, shared);
	region_reached(s, private);
	far_unmap(s->p, shared, SIZE);
	far_unmap(s->p, private, SIZE);
	far_call(s->p, SYS_close, (uint64_t)fd);
}

CASE(memory_of_files_is_reached)
{
	each_target(e, memory_of_files);
}

/* What goes is not reached, for a reason that is true, and what comes in its place is. */
static void changing(struct scene *s)
{
	uint64_t at;
	struct region r;

	if (s->p->bits & (FI_MR_ALLOCATED | FI_MR_MMU_NOTIFY))
		return;
	at = far_hole(SIZE);
	r = far_reg(s->p, at, SIZE, REMOTE_RW, 1);
	for (int i = 0; i < 2; i++) {
		far_refused(s->e, WRITE, s->b, 100, &r, 5, FI_EFAULT, "no memory");
		far_map(s->p, at, SIZE, RW, ANON);
		reached(s, &r, at);
		far_unmap(s->p, at, SIZE);
	}
	peer_unreg(&r);
}

CASE(memory_that_comes_and_goes_is_followed)
{
	each_target(e, changing);
}
