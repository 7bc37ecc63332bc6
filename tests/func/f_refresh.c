/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MR_MMU_NOTIFY: what was there when a region was created is reached, and what fi_mr_refresh has
 * covered, as it was mapped then, and nothing else. The application tells of each change; nobody
 * else does.
 */
#include "harness.h"

#define SIZE (16 * PAGE)

struct scene {
	struct env *e;
	struct peer *p;
	struct buf *b;
	uint64_t at; /* SIZE bytes of the target's */
	struct region r;
	uint64_t seed;
};

/* Registered and enabled, not refreshed. So many bytes of it have memory before. */
static void scene_open_with(struct scene *s, struct env *e, size_t there)
{
	*s = (struct scene){ .e = e, .p = target(e), .b = buf(e, SIZE + 2 * PAGE, 1) };
	s->seed = 100;
	s->at = far_map(s->p, 0, SIZE, RW, ANON);
	if (there)
		far_poke(s->p, s->at, there, ++s->seed, 0);
	must_ok(far_try_reg(s->p, s->at, SIZE, REMOTE_RW, 9, &s->r));
	if (s->p->bits & FI_MR_ENDPOINT) {
		must_ok(far_bind(&s->r));
		must_ok(far_enable(&s->r));
	}
	far_take_key(&s->r);
}

/* Nothing is there, or with FI_MR_ALLOCATED everything. */
static void scene_open(struct scene *s, struct env *e)
{
	scene_open_with(s, e, 0);
}

static void scene_close(struct scene *s)
{
	peer_unreg(&s->r);
	far_unmap(s->p, s->at, SIZE);
}

static int refresh(struct scene *s, uint64_t off, size_t len)
{
	struct iovec iov = { (void *)(s->at + off), len };

	return far_refresh(&s->r, &iov, 1, 0);
}

static void reached(struct scene *s, uint64_t off, size_t len)
{
	far_poke(s->p, s->at + off, len, ++s->seed, 0);
	far_brings(s->e, s->b, PAGE, len, &s->r, off, s->seed, 0);
	far_lands(s->e, s->b, PAGE + 5, len, &s->r, off, s->at + off);
}

static void not_reached(struct scene *s, uint64_t off, size_t len)
{
	if (s->p->bits & FI_MR_ALLOCATED)
		return reached(s, off, len);
	far_refused(s->e, WRITE, s->b, len, &s->r, off, FI_EACCES, "refresh");
	far_refused(s->e, READ, s->b, len, &s->r, off, FI_EACCES, "refresh");
}

#define NOTIFY                                                                  \
	(MODE(MODE_NOTIFY) | MODE(MODE_NOTIFY_VIRT) | MODE(MODE_NOTIFY_ALLOC) | \
	 MODE(MODE_EVERYTHING))

IN_MODES(NOTIFY)

CASE(nothing_is_reached_before_the_first_refresh)
{
	struct scene s;

	scene_open(&s, e);
	not_reached(&s, 0, 100);
	not_reached(&s, SIZE - 1, 1);
	must_ok(far_refresh(&s.r, NULL, 0, 0));
	reached(&s, 0, 100);
	reached(&s, 0, SIZE);
	scene_close(&s);
}

CASE(memory_that_was_there_and_has_not_changed_needs_no_refresh)
{
	struct scene s;

	scene_open_with(&s, e, SIZE);
	far_brings(e, s.b, PAGE, SIZE, &s.r, 0, s.seed, 0);
	reached(&s, 0, 100);
	reached(&s, SIZE - 1, 1);
	reached(&s, 0, SIZE);
	scene_close(&s);
}

CASE(memory_that_came_later_is_not_reached_before_a_refresh)
{
	struct scene s;

	scene_open_with(&s, e, 5 * PAGE);
	far_poke(s.p, s.at, SIZE, ++s.seed, 0);
	reached(&s, 0, 5 * PAGE);
	not_reached(&s, 5 * PAGE, 1);
	not_reached(&s, SIZE - 1, 1);
	not_reached(&s, 5 * PAGE - 1, 2);
	reached(&s, 100, 4 * PAGE);
	must_ok(refresh(&s, 5 * PAGE, SIZE - 5 * PAGE));
	reached(&s, 0, SIZE);
	scene_close(&s);
}

/* What was there is let go, and new pages are told of. */
CASE(memory_that_was_there_and_is_replaced_is_reached_after_a_refresh)
{
	struct scene s;

	scene_open_with(&s, e, SIZE);
	reached(&s, 0, SIZE);
	far_map(s.p, s.at, 4 * PAGE, RW, ANON);
	must_ok(refresh(&s, 0, 4 * PAGE));
	far_brings(e, s.b, PAGE, 4 * PAGE, &s.r, 0, 0, 0);
	reached(&s, 0, SIZE);
	scene_close(&s);
}

CASE(refreshed_ranges_are_reached_and_no_others)
{
	struct scene s;

	scene_open(&s, e);
	must_ok(refresh(&s, 2 * PAGE + 100, 3 * PAGE));
	reached(&s, 2 * PAGE + 100, 3 * PAGE);
	not_reached(&s, 2 * PAGE + 99, 1);
	not_reached(&s, 5 * PAGE + 100, 1);
	not_reached(&s, 2 * PAGE, 3 * PAGE);
	not_reached(&s, 0, SIZE);
	must_ok(refresh(&s, 5 * PAGE + 100, PAGE));
	reached(&s, 2 * PAGE + 100, 4 * PAGE);
	not_reached(&s, 6 * PAGE + 100, 1);
	must_ok(refresh(&s, 0, SIZE));
	reached(&s, 0, SIZE);
	scene_close(&s);
}

CASE(several_ranges_are_refreshed_at_once)
{
	struct iovec iov[3];
	struct scene s;

	scene_open(&s, e);
	for (size_t i = 0; i < 3; i++)
		iov[i] = (struct iovec){ (void *)(s.at + 5 * i * PAGE), PAGE };
	must_ok(far_refresh(&s.r, iov, 3, 0));
	for (size_t i = 0; i < 3; i++) {
		reached(&s, 5 * i * PAGE, PAGE);
		not_reached(&s, 5 * i * PAGE + PAGE, 1);
	}
	scene_close(&s);
}

CASE(refresh_outside_the_region_is_refused_and_changes_nothing)
{
	struct iovec iov[2];
	struct scene s;

	scene_open(&s, e);
	must_ok(refresh(&s, 0, PAGE));
	log_mark();
	must_be(refresh(&s, SIZE - 1, 2), -FI_EINVAL);
	must(log_has("MRF-E"), "no line says why");
	must_be(refresh(&s, SIZE, 1), -FI_EINVAL);
	must_be(refresh(&s, (uint64_t)-1, 2), -FI_EINVAL);
	must_be(refresh(&s, 0, SIZE_MAX), -FI_EINVAL);
	iov[0] = (struct iovec){ (void *)(s.at + 4 * PAGE), PAGE };
	iov[1] = (struct iovec){ (void *)(s.at + SIZE - PAGE), PAGE + 1 };
	must_be(far_refresh(&s.r, iov, 2, 0), -FI_EINVAL);
	not_reached(&s, 4 * PAGE, PAGE);
	reached(&s, 0, PAGE);
	scene_close(&s);
}

CASE(refresh_with_wrong_arguments_is_refused)
{
	struct iovec iov;
	struct scene s;

	scene_open(&s, e);
	iov = (struct iovec){ (void *)s.at, PAGE };
	must_be(far_refresh(&s.r, &iov, 0, 0), -FI_EINVAL);
	must_be(far_refresh(&s.r, NULL, 1, 0), -FI_EINVAL);
	log_mark();
	must_be(far_refresh(&s.r, NULL, 0, 1), -FI_EBADFLAGS);
	must(log_has("MRF-E"), "no line says why");
	not_reached(&s, 0, 100);
	scene_close(&s);
}

/* The peer knew the old pages; it needs no hint to reach the new ones. */
CASE(new_pages_are_reached_after_a_refresh_with_the_same_key)
{
	struct scene s;
	uint64_t key;

	scene_open(&s, e);
	must_ok(far_refresh(&s.r, NULL, 0, 0));
	key = far_key(&s.r, NULL);
	for (int i = 0; i < 5; i++) {
		reached(&s, 0, 4 * PAGE);
		far_map(s.p, s.at, SIZE, RW, ANON);
		far_poke(s.p, s.at, SIZE, ++s.seed, 0);
		if (i % 2)
			must_ok(refresh(&s, 0, SIZE));
		else
			must_ok(far_refresh(&s.r, NULL, 0, 0));
		far_brings(e, s.b, PAGE, 4 * PAGE, &s.r, 0, s.seed, 0);
		far_lands(e, s.b, 3, 4 * PAGE, &s.r, 0, s.at);
		must(far_key(&s.r, NULL) == key, "the key changed");
	}
	scene_close(&s);
}

/* Parts that no refresh names go on as they were. */
CASE(refresh_of_a_part_leaves_the_rest_reachable)
{
	struct scene s;

	scene_open(&s, e);
	must_ok(far_refresh(&s.r, NULL, 0, 0));
	reached(&s, 0, SIZE);
	for (unsigned i = 0; i < 4; i++) {
		far_map(s.p, s.at + i * 3 * PAGE, PAGE, RW, ANON);
		must_ok(refresh(&s, i * 3 * PAGE, PAGE));
		far_brings(e, s.b, PAGE, PAGE, &s.r, i * 3 * PAGE, 0, 0);
		reached(&s, 0, SIZE);
	}
	scene_close(&s);
}

/* Refreshed, and then there is nothing: said so, and mended by the next refresh. */
CASE(refreshed_range_without_memory_is_not_reached)
{
	struct scene s;

	scene_open(&s, e);
	far_unmap(s.p, s.at + 4 * PAGE, PAGE);
	must_ok(far_refresh(&s.r, NULL, 0, 0));
	reached(&s, 0, 4 * PAGE);
	far_refused(e, WRITE, s.b, PAGE, &s.r, 4 * PAGE, FI_EFAULT, "no memory");
	far_refused(e, READ, s.b, 2 * PAGE, &s.r, 3 * PAGE + 9, FI_EFAULT, "no memory");
	far_map(s.p, s.at + 4 * PAGE, PAGE, RW, ANON);
	must_ok(refresh(&s, 4 * PAGE, PAGE));
	reached(&s, 0, SIZE);
	scene_close(&s);
}

/*
 * A second initiator that has asked on its own recovers on its own. Not under FI_MR_RAW, where
 * the key that the first one has is its own.
 */
IN_MODES(NOTIFY & ~MODE(MODE_EVERYTHING))

CASE(refresh_is_noticed_by_every_peer)
{
	struct scene s;
	struct peer *second = peer(e, 1);
	struct peer_rma rma = { .len = 100, .count = 1 };

	scene_open(&s, e);
	must_ok(far_refresh(&s.r, NULL, 0, 0));
	peer_alloc(second, 0, PAGE, 5);
	rma.to = peer_insert(second, s.p->name, s.p->name_len);
	rma.addr = s.r.base;
	rma.key = s.r.key;
	for (int i = 0; i < 4; i++) {
		reached(&s, 0, PAGE);
		must_ok(peer_rma(second, &rma));
		far_peek(s.p, s.at, 100, 5, 0);
		far_map(s.p, s.at, SIZE, RW, ANON);
		must_ok(far_refresh(&s.r, NULL, 0, 0));
		must_ok(peer_rma(second, &rma));
		far_peek(s.p, s.at, 100, 5, 0);
		far_peek(s.p, s.at + 100, PAGE, 0, 0);
	}
	scene_close(&s);
}

IN_MODES(NOTIFY)

/*
 * "Any operations from peers that attempt to access the region will fail while the
 * refresh is occurring": or be done whole. What arrives never has a part of another.
 */
static unsigned storm(struct scene *s, bool read, unsigned *failed)
{
	struct op op = op_make(s->e, read, s->b, PAGE, 3 * PAGE, &s->r, 100);
	unsigned good = 0;
	struct done d;

	for (unsigned i = 0; i < 4; i++)
		must_ok(op_post(me(s->e), &op));
	must_ok(far_refresh(&s->r, NULL, 0, 0));
	for (unsigned i = 0; i < 4; i++) {
		must(fab_done(me(s->e), &d, SOON), "no completion");
		good += !d.err;
		*failed += d.err != 0;
		must(!d.err || d.err == FI_EACCES || d.err == FI_EKEYREJECTED ||
			     d.err == FI_EFAULT || (read && d.err != FI_EINVAL),
		     "err %d (%s), %s", d.err, fi_strerror(d.err), d.text);
	}
	return good;
}

CASE(accesses_during_a_refresh_fail_or_are_whole)
{
	unsigned good = 0, failed = 0;
	struct scene s;

	scene_open(&s, e);
	must_ok(far_refresh(&s.r, NULL, 0, 0));
	for (unsigned i = 0; i < 30; i++) {
		bool read = i % 2;

		far_poke(s.p, s.at, SIZE, 50, 0);
		good += storm(&s, read, &failed);
		if (read) {
			must(!buf_diff_outside(s.b, PAGE, 3 * PAGE), "read elsewhere");
			buf_fill(s.b, 1);
		} else {
			buf_same(s.b);
			far_peek(s.p, s.at, 100, 50, 0);
			far_peek(s.p, s.at + 100 + 3 * PAGE, PAGE, 50, 100 + 3 * PAGE);
		}
		reached(&s, 100, 3 * PAGE);
	}
	must(good, "%u accesses, and none was done", failed);
	scene_close(&s);
}

/* A library with nothing to pin anew says so; the region is as before. */
IN_MODES(MODE(15))

CASE(refresh_of_a_pinned_region_is_not_supported_and_harmless)
{
	struct scene s;

	scene_open(&s, e);
	log_mark();
	must_be(far_refresh(&s.r, NULL, 0, 0), -FI_ENOSYS);
	must(log_has("MRF-E"), "no line says why");
	reached(&s, 0, SIZE);
	scene_close(&s);
}

IN_MODES(MODE(0) | MODE(2))

CASE(refresh_is_allowed_where_it_is_not_needed)
{
	struct scene s;

	scene_open(&s, e);
	reached(&s, 0, SIZE);
	must_ok(far_refresh(&s.r, NULL, 0, 0));
	reached(&s, 0, SIZE);
	must_ok(refresh(&s, PAGE, PAGE));
	reached(&s, 0, SIZE);
	must_be(refresh(&s, SIZE, 1), -FI_EINVAL);
	reached(&s, 0, SIZE);
	scene_close(&s);
}
