/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions that are closed while a peer accesses them. */
#include <sched.h>
#include "harness.h"

#define WINDOW 4
#define LEN 20000ul
#define FIRST (4096ul + 100)
#define PIECE 4200ul /* more than a packet */

struct storm {
	struct env *e;
	bool read;
	struct buf *b;
	struct region r;
	uint64_t state;
	unsigned flying, refused;
};

/*
 * Only these may come: the key is refused; a read that was cut in two by fi_close may
 * also end with the connection's error, as the target's kernel then gives no answer.
 */
static void storm_take(struct storm *s)
{
	struct done d;
	bool cut;

	must(fab_done(me(s->e), &d, SOON), "no completion of %u", s->flying);
	s->flying--;
	if (!d.err)
		return;
	cut = d.err == FI_ETIMEDOUT || d.err == FI_ECONNRESET || d.err == FI_ECONNABORTED ||
	      d.err == FI_EIO;
	must(d.err == FI_EKEYREJECTED || (s->read && cut), "err %d (%s), %s", d.err,
	     fi_strerror(d.err), d.text);
	s->refused++;
}

static void storm_post(struct storm *s)
{
	size_t at = rnd(&s->state) % (LEN - PIECE);
	struct op op = op_make(s->e, s->read, s->b, 4096 + at, PIECE, &s->r, at);

	must_ok(op_post(me(s->e), &op));
	s->flying++;
}

/* Accesses go on from before fi_close until one is refused; then all are awaited. */
static void storm_round(struct storm *s, unsigned round)
{
	long end = now_ms() + SOON;

	s->refused = 0;
	for (unsigned i = 0; i < WINDOW; i++)
		storm_post(s);
	for (unsigned i = 0; i < round % 7; i++) {
		storm_take(s);
		storm_post(s);
	}
	peer_unreg(&s->r);
	while (!s->refused && now_ms() < end) {
		storm_take(s);
		storm_post(s);
	}
	while (s->flying)
		storm_take(s);
	must(s->refused, "accesses go on after fi_close returned");
}

static void storm(struct env *e, bool read)
{
	struct storm s = { .e = e, .read = read, .state = 5 };
	struct peer *p = target(e);
	struct region check;

	s.b = buf(e, LEN + 2 * 4096, 1);
	peer_alloc(p, 0, LEN + 3 * 4096, 2);
	peer_alloc(p, 1, 2 * 4096, 3);
	check = peer_reg(p, 1, 5, 4096, REMOTE_RW, 999);
	for (unsigned round = 0; round < 25; round++) {
		s.r = peer_reg(p, 0, FIRST, LEN, REMOTE_RW, round % 2);
		storm_round(&s, round);
		peer_same_outside(p, 0, FIRST, read ? 0 : LEN);
		access_ok(e, WRITE, s.b, 0, 100, &check, round * 100);
	}
	peer_same(p, 1);
	if (read) {
		must(!buf_diff_outside(s.b, 4096, LEN), "read outside its buffer");
		peer_same(p, 0);
	} else {
		buf_same(s.b);
	}
}

CASE(region_closed_while_written_is_safe)
{
	storm(e, WRITE);
}

CASE(region_closed_while_read_is_safe)
{
	storm(e, READ);
}

/* As soon as fi_close returned at the target, nothing gets in any more. */
CASE(nothing_lands_after_close_returned)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 2 * 4096, 1);
	struct region r;
	struct done d;
	struct op op;

	peer_alloc(p, 0, 3 * 4096, 2);
	for (unsigned i = 0; i < 10; i++) {
		r = peer_reg(p, 0, 4096, 4096, REMOTE_RW, 5);
		access_ok(e, WRITE, b, i, 50, &r, i * 50);
		peer_unreg(&r);
		op = op_make(e, WRITE, b, 2000, 50, &r, 1000 + i * 50);
		op_run(me(e), &op, &d);
		must(d.err == FI_EKEYREJECTED, "err %d, %s", d.err, d.text);
		peer_same(p, 0);
	}
}

/* Other regions and other peers go on while one is closed. */
CASE(closing_one_region_leaves_the_others)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 4 * 4096, 1);
	struct region r[8];

	peer_alloc(p, 0, 16 * 4096, 2);
	for (unsigned i = 0; i < 8; i++)
		r[i] = peer_reg(p, 0, i * 8192, 5000, REMOTE_RW, i);
	for (unsigned i = 0; i < 8; i++) {
		for (unsigned j = i + 1; j < 8; j++)
			start(e, WRITE, b, i * 400 + j * 20, 20, &r[j], i * 20);
		peer_unreg(&r[i]);
		fab_wait_ok(me(e), 7 - i);
	}
	peer_same(p, 0);
}

/* Without FI_MR_LOCAL. */
IN_MODES(MODE(0) | MODE(2) | MODE(4) | MODE(10))

/*
 * The target reads into memory that it has registered for us, too, but uses without a
 * descriptor, so that its cache may have a registration of its own there. That one stays;
 * ours goes with fi_close, in the kernel and for us.
 */
CASE(closed_is_closed_whatever_the_cache_keeps)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 16 * 4096, 1);
	struct peer_rma rma = { .read = true, .off = 4096, .len = 12 * 4096, .count = 1 };
	struct region r, part;
	struct fid_mr *mr;
	struct done d;
	struct op op;
	int before;

	must_ok(fi_mr_reg(me(e)->domain, b->mem, b->size, REMOTE_RW, 0, 7, 0, &mr, NULL));
	rma.to = peer_insert(p, me(e)->name, me(e)->name_len);
	rma.addr = me(e)->virt ? (uintptr_t)b->mem : 0;
	rma.key = fi_mr_key(mr);
	peer_alloc(p, 0, 16 * 4096, 2);
	must_ok(peer_rma(p, &rma));
	/* The connection has regions of its own. */
	r = peer_reg(p, 0, 0, 4096, FI_REMOTE_READ, 5);
	access_ok(e, READ, b, 0, 4096, &r, 0);
	peer_unreg(&r);
	before = kernel_objects(p->os_pid, "mr");
	r = peer_reg(p, 0, 4096, 8 * 4096, REMOTE_RW, 5);
	part = peer_reg(p, 0, 2 * 4096, 4096, FI_REMOTE_READ, 6);
	access_ok(e, READ, b, 0, 3 * 4096, &r, 0);
	access_ok(e, READ, b, 0, 4096, &part, 0);
	must_ok(peer_rma(p, &rma));
	peer_unreg(&part);
	peer_unreg(&r);
	must(before < 0 || kernel_objects(p->os_pid, "mr") == before,
	     "%d kernel regions before, %d after", before, kernel_objects(p->os_pid, "mr"));
	op = op_make(e, READ, b, 0, 50, &r, 100);
	op_run(me(e), &op, &d);
	must(d.err == FI_EKEYREJECTED, "err %d, %s", d.err, d.text);
	op = op_make(e, READ, b, 0, 50, &part, 100);
	op_run(me(e), &op, &d);
	must(d.err == FI_EKEYREJECTED, "err %d, %s", d.err, d.text);
	must_ok(peer_rma(p, &rma));
	must_ok(fi_close(&mr->fid));
}
