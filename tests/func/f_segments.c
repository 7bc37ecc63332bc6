/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_mr_regv: several buffers are one region. Without FI_MR_VIRT_ADDR peers see them
 * packed one after the other; with it they use the address of a byte in any of them.
 */
#include "harness.h"

#define SLOT (64 * PAGE)
#define MAX 16

struct scene {
	struct env *e;
	struct peer *p;
	struct buf *b;
	uint64_t at; /* SLOT bytes of the target's, filled with FILL */
	struct iovec iov[MAX + 1];
	size_t n;
	struct region r;
};

#define FILL 7

static void scene_open(struct scene *s, struct env *e)
{
	*s = (struct scene){ .e = e, .p = target(e), .b = buf(e, SLOT, 1) };
	s->at = far_map(s->p, 0, SLOT, RW, ANON);
	far_poke(s->p, s->at, SLOT, FILL, 0);
}

static void add(struct scene *s, size_t off, size_t len)
{
	s->iov[s->n++] = (struct iovec){ (void *)(s->at + off), len };
}

static void reg(struct scene *s)
{
	s->r = far_regv(s->p, s->iov, s->n, REMOTE_RW, 3);
	s->r.base = 0;
}

static void scene_close(struct scene *s)
{
	peer_unreg(&s->r);
	far_unmap(s->p, s->at, SLOT);
}

static size_t off_of(const struct scene *s, size_t i)
{
	return (size_t)((uint64_t)s->iov[i].iov_base - s->at);
}

/* Where packed byte pos is; *left: how much of its segment follows. */
static size_t place(const struct scene *s, size_t pos, size_t *left)
{
	size_t i = 0;

	while (pos >= s->iov[i].iov_len)
		pos -= s->iov[i++].iov_len;
	*left = s->iov[i].iov_len - pos;
	return off_of(s, i) + pos;
}

/* A packed access writes each piece to its place; and reads it back from there. */
static void packed(struct scene *s, size_t pos, size_t len)
{
	struct done d = far_access(s->e, WRITE, s->b, 100, len, &s->r, pos);
	size_t done = 0, left;

	must(!d.err, "write of %zu at %zu: err %d, %s", len, pos, d.err, d.text);
	while (done < len) {
		size_t off = place(s, pos + done, &left);

		left = left < len - done ? left : len - done;
		far_peek(s->p, s->at + off, left, s->b->seed, 100 + done);
		far_poke(s->p, s->at + off, left, FILL, off);
		buf_want(s->b, PAGE + done, left, FILL, off);
		done += left;
	}
	far_peek(s->p, s->at, SLOT, FILL, 0);
	d = far_access(s->e, READ, s->b, PAGE, len, &s->r, pos);
	must(!d.err, "read of %zu at %zu: err %d, %s", len, pos, d.err, d.text);
	buf_same(s->b);
	buf_fill(s->b, s->b->seed);
}

/* By address: in one segment. */
static void addressed(struct scene *s, size_t i, size_t from, size_t len)
{
	size_t off = off_of(s, i) + from;

	far_brings(s->e, s->b, PAGE, len, &s->r, s->at + off, FILL, off);
	far_lands(s->e, s->b, 100, len, &s->r, s->at + off, s->at + off);
	far_poke(s->p, s->at + off, len, FILL, off);
	far_peek(s->p, s->at, SLOT, FILL, 0);
}

static size_t total(const struct scene *s)
{
	size_t sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->iov[i].iov_len;
	return sum;
}

static void outside(struct scene *s, uint64_t at, size_t len)
{
	far_refused(s->e, WRITE, s->b, len, &s->r, at, FI_EACCES, "past|beyond|outside");
	far_refused(s->e, READ, s->b, len, &s->r, at, FI_EACCES, "past|beyond|outside");
	far_peek(s->p, s->at, SLOT, FILL, 0);
}

/* Every segment's first and last bytes, and what lies over each border. */
static void everywhere(struct scene *s)
{
	size_t pos = 0;

	for (size_t i = 0; i < s->n; i++) {
		size_t len = s->iov[i].iov_len;

		if (s->p->virt) {
			addressed(s, i, 0, 1);
			addressed(s, i, len - 1, 1);
			addressed(s, i, 0, len);
			continue;
		}
		packed(s, pos, 1);
		packed(s, pos + len - 1, 1);
		if (i)
			packed(s, pos - 1, 2);
		pos += len;
	}
	if (s->p->virt)
		return;
	packed(s, 0, total(s));
	packed(s, 1, total(s) - 2);
	outside(s, total(s), 1);
	outside(s, total(s) - 1, 2);
	outside(s, 0, total(s) + 1);
}

/* Offset and address, pinned and on demand, several kinds of key. */
#define SEVERAL                                                                         \
	(MODE(0) | MODE(2) | MODE(4) | MODE(6) | MODE(12) | MODE(15) | MODE(MODE_RAW) | \
	 MODE(MODE_RAW_NATIVE) | MODE(MODE_NOTIFY) | MODE(MODE_NOTIFY_VIRT) | MODE(MODE_ENDPOINT))
#define OFFSETS (MODE(0) | MODE(4) | MODE(12) | MODE(MODE_RAW) | MODE(MODE_NOTIFY))
#define ADDRESSES (SEVERAL & ~OFFSETS)

IN_MODES(SEVERAL)

CASE(two_segments_are_one_region)
{
	struct scene s;

	scene_open(&s, e);
	add(&s, PAGE, PAGE);
	add(&s, 5 * PAGE, 2 * PAGE);
	reg(&s);
	everywhere(&s);
	scene_close(&s);
}

CASE(sixteen_unaligned_segments_are_one_region)
{
	struct scene s;

	scene_open(&s, e);
	for (size_t i = 0; i < MAX; i++)
		add(&s, 3 * i * PAGE + 17 * i + 1, 1 + 200 * i + (i % 3) * PAGE);
	reg(&s);
	everywhere(&s);
	scene_close(&s);
}

/* In the order of the vector, not of the addresses. */
CASE(segments_need_not_be_in_order)
{
	struct scene s;

	scene_open(&s, e);
	add(&s, 40 * PAGE + 5, 3000);
	add(&s, 10 * PAGE + 9, 5000);
	add(&s, 20 * PAGE, PAGE);
	add(&s, 2 * PAGE - 3, 7);
	reg(&s);
	everywhere(&s);
	scene_close(&s);
}

CASE(more_than_sixteen_segments_are_refused)
{
	struct scene s;

	scene_open(&s, e);
	for (size_t i = 0; i <= MAX; i++)
		add(&s, 2 * i * PAGE, PAGE);
	log_mark();
	must_be(far_try_regv(s.p, s.iov, s.n, REMOTE_RW, 3, 0, &s.r), -FI_EINVAL);
	must(log_has("16"), "the line does not say how many there may be");
	s.n = MAX;
	reg(&s);
	far_peek(s.p, s.at, SLOT, FILL, 0);
	scene_close(&s);
}

IN_MODES(OFFSETS)

/* Each offset is a place of its own, even when the memory is the same. */
CASE(repeated_and_overlapping_segments_are_reached_by_offset)
{
	struct scene s;

	scene_open(&s, e);
	add(&s, PAGE + 5, 3000);
	add(&s, PAGE + 5, 3000);
	add(&s, PAGE + 1000, 5000);
	reg(&s);
	packed(&s, 10, 100);
	packed(&s, 3010, 100);
	packed(&s, 6000 + 10, 100);
	packed(&s, 2999, 2);
	packed(&s, 5999, 2);
	outside(&s, 11000, 1);
	scene_close(&s);
}

/* Empty ones among others have no place. */
CASE(empty_segments_take_no_room)
{
	struct scene s;

	scene_open(&s, e);
	add(&s, PAGE, 100);
	add(&s, 2 * PAGE, 0);
	add(&s, 3 * PAGE, 100);
	reg(&s);
	packed(&s, 90, 20);
	outside(&s, 199, 2);
	scene_close(&s);
}

CASE(gap_between_segments_is_not_reached)
{
	struct scene s;

	scene_open(&s, e);
	add(&s, PAGE, 5000);
	add(&s, 30 * PAGE, 5000);
	reg(&s);
	packed(&s, 0, 10000);
	outside(&s, 9999, 2);
	outside(&s, 29 * PAGE, 100);
	scene_close(&s);
}

IN_MODES(ADDRESSES)

CASE(addresses_between_segments_are_not_reached)
{
	struct scene s;

	scene_open(&s, e);
	add(&s, PAGE, 5000);
	add(&s, 30 * PAGE, 5000);
	reg(&s);
	addressed(&s, 0, 0, 5000);
	addressed(&s, 1, 4999, 1);
	outside(&s, s.at + PAGE + 5000, 1);
	outside(&s, s.at + PAGE + 4999, 2);
	outside(&s, s.at + 30 * PAGE - 1, 1);
	outside(&s, s.at + 30 * PAGE + 4999, 2);
	outside(&s, 0, 100);
	scene_close(&s);
}

/* Neighbours in memory are one stretch of addresses. */
CASE(access_over_adjacent_segments_is_one_access)
{
	struct scene s;

	scene_open(&s, e);
	add(&s, PAGE + 5, 3000);
	add(&s, PAGE + 3005, 3000);
	add(&s, PAGE + 2000, 100);
	reg(&s);
	addressed(&s, 0, 10, 5900);
	addressed(&s, 0, 2990, 20);
	addressed(&s, 2, 0, 100);
	addressed(&s, 1, 0, 3000);
	scene_close(&s);
}
