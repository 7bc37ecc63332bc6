/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <stdlib.h>
#include <string.h>
#include "env.h"

static const struct fab_opt usual;
struct fab_opt env_own;

struct env *env_new(const struct mode *mode)
{
	struct env *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	e->mode = mode;
	return e;
}

void env_free(struct env *e)
{
	for (int i = 0; i < PEERS; i++)
		peer_stop(&e->peer[i]);
	fab_close(&e->fab);
	free(e);
}

void env_case(struct env *e, int timeout)
{
	e->timeout = timeout;
	for (int i = 0; i < PEERS; i++) {
		if (e->peer[i].up)
			peer_case(&e->peer[i], timeout);
	}
}

void env_reset(struct env *e)
{
	if (e->open)
		fab_quiet(&e->fab);
	if (e->open)
		fab_unmap_all(&e->fab);
	for (unsigned i = 0; i < e->nbuf; i++)
		fab_buf_close(&e->buf[i]);
	e->nbuf = 0;
	for (int i = 0; i < PEERS; i++) {
		if (e->peer[i].up)
			peer_reset(&e->peer[i]);
	}
}

struct fab *me(struct env *e)
{
	if (!e->open)
		fab_open(&e->fab, e->mode, &env_own);
	e->open = true;
	return &e->fab;
}

struct peer *peer(struct env *e, unsigned i)
{
	struct peer *p = &e->peer[i];

	if (p->up)
		return p;
	peer_start(p, e->mode, &usual);
	peer_case(p, e->timeout);
	p->addr = fab_insert(me(e), p->name);
	p->mapper = me(e);
	return p;
}

struct buf *buf(struct env *e, size_t size, uint64_t seed)
{
	if (e->nbuf == BUFS)
		case_fail("too many buffers for the harness");
	fab_buf(me(e), &e->buf[e->nbuf], size, seed);
	return &e->buf[e->nbuf++];
}

void buf_same(const struct buf *b)
{
	const char *text = buf_diff(b);

	if (text)
		case_fail("own memory: %s", text);
}

struct op op_make(struct env *e, bool read, struct buf *b, size_t off, size_t len,
		  const struct region *r, size_t at)
{
	static uintptr_t serial;

	(void)e;
	return (struct op){
		read, b, off, len, r->peer->addr, r->base + at, r->key, (void *)++serial
	};
}

static void note(bool read, struct buf *b, size_t off, size_t len, const struct region *r,
		 size_t at)
{
	if (read)
		buf_want(b, off, len, r->peer->seed[r->slot], r->off + at);
	else
		peer_want(r->peer, r->slot, r->off + at, len, b->seed, off);
}

void start(struct env *e, bool read, struct buf *b, size_t off, size_t len, const struct region *r,
	   size_t at)
{
	struct op op = op_make(e, read, b, off, len, r, at);
	ssize_t rc = op_post(me(e), &op);

	if (rc)
		case_fail("posting %s of %zu bytes at %zu: %zd (%s)", read ? "a read" : "a write",
			  len, at, rc, fi_strerror((int)-rc));
	note(read, b, off, len, r, at);
}

void access_ok(struct env *e, bool read, struct buf *b, size_t off, size_t len,
	       const struct region *r, size_t at)
{
	struct op op = op_make(e, read, b, off, len, r, at);
	struct done d;

	op_run(me(e), &op, &d);
	if (d.err)
		case_fail("%s of %zu bytes at %zu: err %d (%s), %s", read ? "read" : "write", len,
			  at, d.err, fi_strerror(d.err), d.text);
	note(read, b, off, len, r, at);
}

uint64_t rnd(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}
