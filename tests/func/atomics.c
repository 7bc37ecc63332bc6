/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include "atomics.h"

#define ROOM 512u /* for operands, for comparands, for results */
#define FLYING 32

/* --- in the driver
 * ------------------------------------------------------------------------ */

void peer_atomic_start(struct peer *p, const struct peer_atomic *a)
{
	struct ctl m = { .cmd = CTL_ATOMIC };

	memcpy(m.text, a, sizeof(*a));
	peer_tell(p, &m);
}

int peer_atomic_end(struct peer *p, uint64_t *old, char *text)
{
	struct ctl m;

	peer_hear(p, &m);
	if (old)
		*old = m.a[1];
	if (text)
		memcpy(text, m.text, 500);
	return (int)m.a[0];
}

int peer_atomic(struct peer *p, const struct peer_atomic *a, uint64_t *old)
{
	peer_atomic_start(p, a);
	return peer_atomic_end(p, old, NULL);
}

/* --- in the peer
 * -------------------------------------------------------------------------- */

static ssize_t call(struct fab *f, const struct buf *b, const struct peer_atomic *a)
{
	uint8_t *operand = b->mem, *compare = b->mem + ROOM, *result = b->mem + 2 * ROOM;
	void *d = b->desc;

	switch (a->family) {
	case PLAIN:
		return fi_atomic(f->ep, operand, a->count, d, a->to, a->addr, a->key, a->datatype,
				 a->op, NULL);
	case FETCH:
		return fi_fetch_atomic(f->ep, operand, a->count, d, result, d, a->to, a->addr,
				       a->key, a->datatype, a->op, NULL);
	default:
		return fi_compare_atomic(f->ep, operand, a->count, d, compare, d, result, d, a->to,
					 a->addr, a->key, a->datatype, a->op, NULL);
	}
}

static void post(struct fab *f, const struct buf *b, const struct peer_atomic *a)
{
	long end = now_ms() + SOON;
	ssize_t rc;

	while ((rc = call(f, b, a)) == -FI_EAGAIN && now_ms() < end) {
		fi_cq_read(f->cq, NULL, 0);
		sched_yield();
	}
	must(rc == 0, "posting: %zd (%s)", rc, fi_strerror((int)-rc));
}

/* The agent that does the work may be on the same machine: it is left the processor. */
static void take(struct fab *f, struct ctl *m)
{
	long end = now_ms() + SOON;
	struct done d;

	while (!fab_poll(f, &d)) {
		must(now_ms() < end, "no completion after %d ms", SOON);
		usleep(200);
	}
	if (!d.err || m->a[0])
		return;
	m->a[0] = (uint64_t)d.err;
	snprintf(m->text, sizeof(m->text), "%s", d.text);
}

void atomics_serve(struct fab *f, struct buf *b, struct ctl *m)
{
	struct peer_atomic a;
	unsigned i, flying = 0;

	memcpy(&a, m->text, sizeof(a));
	m->text[0] = 0;
	m->a[0] = 0;
	if (!b->mem)
		fab_buf(f, b, 4096, 1);
	for (i = 0; i < ROOM; i += 8) {
		buf_put(b, i, &a.operand, 8);
		buf_put(b, ROOM + i, &a.compare, 8);
	}
	for (i = 0; i < a.times && !m->a[0]; i++) {
		post(f, b, &a);
		if (++flying < FLYING)
			continue;
		take(f, m);
		flying--;
	}
	for (; flying; flying--)
		take(f, m);
	buf_get(b, 2 * ROOM, &m->a[1], 8);
}
