/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys: the application's where it may choose, the provider's where it may not. */
#include "harness.h"

#define SIZE (16 * PAGE)

static const uint64_t chosen[] = { 0,	       1ull << 63, 1ull << 62, 3ull << 62, UINT64_MAX - 1,
				   UINT32_MAX, 0x100 };
#define NCHOSEN (sizeof(chosen) / sizeof(*chosen))

/* Several kinds of region; the provider does not choose in any. */
#define CHOSEN (MODE(0) | MODE(2) | MODE(4) | MODE(MODE_NOTIFY) | MODE(MODE_NOTIFY_ALLOC))

IN_MODES(CHOSEN)

CASE(every_key_but_the_last_may_be_chosen)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, PAGE, 1);
	uint64_t at = far_map(p, 0, SIZE, RW, ANON);
	struct region r[NCHOSEN], bad;

	for (size_t i = 0; i < NCHOSEN; i++) {
		r[i] = far_reg(p, at + i * PAGE + i, 4000, REMOTE_RW, chosen[i]);
		must(r[i].key == chosen[i], "key 0x%lx", (unsigned long)r[i].key);
	}
	for (size_t i = 0; i < NCHOSEN; i++)
		far_lands(e, b, i * 50, 40, &r[i], 100, at + i * PAGE + i + 100);
	log_mark();
	must_be(far_try_reg(p, at, PAGE, REMOTE_RW, FI_KEY_NOTAVAIL, &bad), -FI_EKEYREJECTED);
	must(log_has("MRF-E"), "no line says why");
	for (size_t i = 0; i < NCHOSEN; i++)
		must_be(far_try_reg(p, at, PAGE, REMOTE_RW, chosen[i], &bad), -FI_ENOKEY);
	for (size_t i = 0; i < NCHOSEN; i++)
		peer_unreg(&r[i]);
	far_unmap(p, at, SIZE);
}

/* What peers learnt of the old region does not get them into the new one, or past it. */
CASE(same_key_again_is_the_new_region)
{
	static const struct {
		size_t off, len;
		uint64_t access;
	} turn[] = { { 0, 4 * PAGE, REMOTE_RW },
		     { 8 * PAGE + 50, PAGE, REMOTE_RW },
		     { 2 * PAGE + 7, 6 * PAGE, FI_REMOTE_READ },
		     { 9 * PAGE, 100, FI_REMOTE_WRITE },
		     { 0, SIZE, REMOTE_RW } };
	struct peer *p = target(e);
	struct buf *b = buf(e, SIZE + PAGE, 1);
	uint64_t at = far_map(p, 0, SIZE, RW, ANON);

	for (size_t i = 0; i < 10; i++) {
		size_t off = turn[i % 5].off, len = turn[i % 5].len;
		uint64_t access = turn[i % 5].access;
		struct region r = far_reg(p, at + off, len, access, 0);

		far_poke(p, at, SIZE, 9, 0);
		if (access & FI_REMOTE_READ)
			far_brings(e, b, 5, len, &r, 0, 9, off);
		else
			far_refused(e, READ, b, 1, &r, 0, FI_EACCES, "FI_REMOTE_READ");
		if (access & FI_REMOTE_WRITE)
			far_lands(e, b, 5, len, &r, 0, at + off);
		else
			far_refused(e, WRITE, b, 1, &r, 0, FI_EACCES, "FI_REMOTE_WRITE");
		far_refused(e, access & FI_REMOTE_WRITE ? WRITE : READ, b, 2, &r, len - 1,
			    FI_EACCES, "past|beyond|outside");
		far_peek(p, at, off, 9, 0);
		far_peek(p, at + off + len, SIZE - off - len, 9, off + len);
		peer_unreg(&r);
		far_refused(e, WRITE, b, 1, &r, 0, FI_EKEYREJECTED, "closed");
	}
	far_unmap(p, at, SIZE);
}

/* A key is taken from the registration on, before anybody can use it. */
IN_MODES(MODE(MODE_NOTIFY))

CASE(key_of_a_region_that_is_not_refreshed_is_taken)
{
	struct peer *p = target(e);
	uint64_t at = far_map(p, 0, SIZE, RW, ANON);
	struct region r, bad;

	must_ok(far_try_reg(p, at, PAGE, REMOTE_RW, 5, &r));
	must_be(far_try_reg(p, at, PAGE, REMOTE_RW, 5, &bad), -FI_ENOKEY);
	peer_unreg(&r);
	must_ok(far_try_reg(p, at, PAGE, REMOTE_RW, 5, &r));
	peer_unreg(&r);
	far_unmap(p, at, SIZE);
}

/* Keys come from the library, are the device's rkey, or that of one endpoint's domain. */
IN_MODES(MODE(8) | MODE(15) | MODE(MODE_ENDPOINT))

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* One after the other, the same bytes each time: what invites to take the old key. */
CASE(provider_keys_are_never_zero_and_not_used_again_soon)
{
	enum { N = 400 };
	static uint64_t keys[N];
	struct peer *p = target(e);
	uint64_t at = far_map(p, 0, SIZE, RW, ANON);
	struct region r;

	for (unsigned i = 0; i < N; i++) {
		must_ok(far_try_reg(p, at, PAGE, REMOTE_RW, 0, &r));
		if (p->bits & FI_MR_ENDPOINT) {
			must_ok(far_bind(&r));
			must_ok(far_enable(&r));
		}
		keys[i] = far_key(&r, NULL);
		must(keys[i] && keys[i] != FI_KEY_NOTAVAIL, "key %u is 0x%lx", i,
		     (unsigned long)keys[i]);
		peer_unreg(&r);
	}
	qsort(keys, N, sizeof(*keys), by_value);
	for (unsigned i = 1; i < N; i++)
		must(keys[i] != keys[i - 1], "key 0x%lx came twice", (unsigned long)keys[i]);
	far_unmap(p, at, SIZE);
}

/* A region bound to an endpoint closes after that: no peer is left to try. */
IN_MODES(MODE(8) | MODE(10) | MODE(12) | MODE(15) | MODE(MODE_NOTIFY_VIRT))

CASE(provider_key_of_a_closed_region_does_not_reach_the_next)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, PAGE, 1);
	uint64_t at = far_map(p, 0, SIZE, RW, ANON);
	struct region old, r;

	for (unsigned i = 0; i < 5; i++) {
		old = far_reg(p, at, SIZE, REMOTE_RW, 0);
		far_lands(e, b, 0, 100, &old, 50, at + 50);
		peer_unreg(&old);
		r = far_reg(p, at, SIZE, REMOTE_RW, 0);
		far_poke(p, at, SIZE, 9, 0);
		far_refused(e, WRITE, b, 100, &old, 50, FI_EKEYREJECTED, "closed");
		far_peek(p, at, SIZE, 9, 0);
		far_lands(e, b, 0, 100, &r, 50, at + 50);
		peer_unreg(&r);
	}
	far_unmap(p, at, SIZE);
}
