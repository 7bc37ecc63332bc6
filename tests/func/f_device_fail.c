/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of devices when something is wrong: descriptors that are missing or not right, regions
 * that are closed and allocations that are freed under transfers, runtimes whose calls fail, and
 * peers that are killed. Nothing hangs or crashes, and what comes afterwards works.
 */
#include <rdma/fi_atomic.h>
#include "device.h"

#define SMALL (16 * KIB)

/* --- descriptors --------------------------------------------------------------------------- */

static void said(ssize_t rc, int err, const char *call)
{
	must(rc == err, "%s: %zd (%s), expected %d", call, rc,
	     rc ? fi_strerror((int)-rc) : "success", err);
	must(log_has("MRF-E"), "%s: no line says why", call);
	log_mark();
}

/* By each call that moves one buffer; nothing moves. */
static void refused(struct scene *s, void *p, size_t len, void *desc, int err)
{
	log_mark();
	for (unsigned i = 0; i < CALLS; i++)
		said(scene_call(s, i, p, len, desc, 0), err, call_names[i]);
	nap(5);
	fab_quiet(s->f);
	dev_same(&s->d);
	peer_same(s->t, 0);
}

/* Calls that have no place for a descriptor, and one that has. */
static void refused_with_data(struct scene *s, void *p)
{
	struct fid_ep *ep = s->f->ep;
	fi_addr_t to = s->t->addr;

	log_mark();
	said(fi_writedata(ep, p, 40, NULL, 7, to, s->r.base, s->r.key, s), -FI_EINVAL,
	     "fi_writedata");
	said(fi_inject_write(ep, p, 40, to, s->r.base, s->r.key), -FI_EINVAL, "fi_inject_write");
	said(fi_inject_writedata(ep, p, 40, 7, to, s->r.base, s->r.key), -FI_EINVAL,
	     "fi_inject_writedata");
	said(fi_inject_atomic(ep, p, 2, to, s->r.base, s->r.key, FI_UINT32, FI_SUM), -FI_EINVAL,
	     "fi_inject_atomic");
}

IN_MODES(DEVICE_MODES)

DEVICE_CASE(memory_without_a_descriptor_is_refused)
{
	static const size_t lens[] = { 1, 64, 4096, 10000 };
	struct scene s;

	scene_open(&s, e, SMALL);
	for (unsigned i = 0; i < 4; i++)
		refused(&s, s.d.b.mem + 9, lens[i], NULL, -FI_EINVAL);
	refused_with_data(&s, s.d.b.mem);
	nap(5);
	scene_works(&s);
	scene_close(&s);
}

/* The device's memory at either end of what an operation has. */
static void mixed(struct scene *s, struct buf *h, unsigned which)
{
	struct iovec iov[2] = { { h->mem, 100 }, { h->mem + 200, 100 } };
	void *desc[2] = { h->desc, h->desc };
	struct fid_ep *ep = s->f->ep;

	iov[which].iov_base = s->d.b.mem;
	desc[which] = NULL;
	said(fi_writev(ep, iov, desc, 2, s->t->addr, s->r.base, s->r.key, s), -FI_EINVAL,
	     "fi_writev");
	said(fi_readv(ep, iov, desc, 2, s->t->addr, s->r.base, s->r.key, s), -FI_EINVAL,
	     "fi_readv");
}

DEVICE_CASE(vector_with_a_piece_without_a_descriptor_is_refused)
{
	struct buf *h = buf(e, SMALL, 4);
	struct scene s;

	scene_open(&s, e, SMALL);
	log_mark();
	mixed(&s, h, 0);
	mixed(&s, h, 1);
	nap(5);
	buf_same(h);
	scene_close(&s);
}

/* One of operand, comparand and result is the device's and has no descriptor. */
static ssize_t atomic_without(struct scene *s, struct buf *h, unsigned which)
{
	uint8_t *mem[3] = { h->mem, h->mem + 100, h->mem + 200 };
	void *desc[3] = { h->desc, h->desc, h->desc };

	mem[which] = s->d.b.mem + 300;
	desc[which] = NULL;
	return fi_compare_atomic(s->f->ep, mem[0], 2, desc[0], mem[1], desc[1], mem[2], desc[2],
				 s->t->addr, s->r.base, s->r.key, FI_UINT32, FI_CSWAP, s);
}

DEVICE_CASE(atomics_without_a_descriptor_are_refused)
{
	static const char *const what[] = { "operand", "comparand", "result" };
	struct buf *h = buf(e, SMALL, 4);
	struct scene s;

	scene_open(&s, e, SMALL);
	log_mark();
	for (unsigned i = 0; i < 3; i++)
		said(atomic_without(&s, h, i), -FI_EINVAL, what[i]);
	nap(5);
	buf_same(h);
	scene_close(&s);
}

/* Also for memory of the host: a descriptor is valid, or NULL. */
DEVICE_CASE(garbage_is_no_descriptor)
{
	static const uintptr_t garbage[] = { 1, 8, 0x1234567890abcdef, UINTPTR_MAX };
	struct buf *h = buf(e, SMALL, 4);
	struct scene s;

	scene_open(&s, e, SMALL);
	for (unsigned i = 0; i < 4; i++) {
		refused(&s, s.d.b.mem, 100, (void *)garbage[i], -FI_EINVAL);
		refused(&s, h->mem, 100, (void *)garbage[i], -FI_EINVAL);
	}
	refused(&s, s.d.b.mem, 100, s.d.b.mem, -FI_EINVAL);
	refused(&s, s.d.b.mem, 100, s.d.b.mr, -FI_EINVAL);
	refused(&s, s.d.b.mem, 100, (char *)s.d.b.desc + 1, -FI_EINVAL);
	buf_same(h);
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(descriptor_of_other_memory_is_refused)
{
	struct buf *h = buf(e, SMALL, 4);
	struct scene s;
	struct dev other;

	scene_open(&s, e, SMALL);
	dev_open(s.f, &other, RT_DEVICE, SMALL, 5);
	refused(&s, s.d.b.mem, 100, other.b.desc, -FI_EINVAL);
	refused(&s, h->mem, 100, other.b.desc, -FI_EINVAL);
	refused(&s, s.d.b.mem + SMALL - 50, 51, s.d.b.desc, -FI_EINVAL);
	if (h->desc)
		refused(&s, s.d.b.mem, 100, h->desc, -FI_EINVAL);
	dev_same(&other);
	buf_same(h);
	dev_close(&other);
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(descriptor_of_another_domain_is_refused)
{
	struct fab f;
	struct scene s;
	struct fid_mr *mr;

	scene_open(&s, e, SMALL);
	fab_open(&f, e->mode, &env_own);
	must_ok(dev_reg(&f, s.d.b.mem, SMALL, FI_READ | FI_WRITE, 0, &mr));
	refused(&s, s.d.b.mem, 100, fi_mr_desc(mr), -FI_EINVAL);
	must_ok(fab_mr_close(&f, mr));
	fab_close(&f);
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(descriptor_without_the_right_is_refused)
{
	struct fid_mr *reads, *writes;
	struct scene s;

	scene_open(&s, e, SMALL);
	must_ok(dev_reg(s.f, s.d.b.mem, SMALL, FI_READ, 0, &reads));
	must_ok(dev_reg(s.f, s.d.b.mem, SMALL, FI_WRITE, 0, &writes));
	log_mark();
	for (unsigned i = 0; i < CALLS; i++)
		said(scene_call(&s, i, s.d.b.mem, 100, fi_mr_desc(i < FIRST_READ ? reads : writes),
				0),
		     -FI_EACCES, call_names[i]);
	nap(5);
	must_ok(fab_mr_close(s.f, reads));
	must_ok(fab_mr_close(s.f, writes));
	scene_close(&s);
}

/* Where a region can be closed while its endpoint is open. */
IN_MODES(MODES_TWO)

DEVICE_CASE(stale_descriptor_is_refused)
{
	struct fid_mr *mr, *next;
	struct scene s;
	void *desc;

	scene_open(&s, e, SMALL);
	must_ok(dev_reg(s.f, s.d.b.mem, SMALL, FI_READ | FI_WRITE, 0, &mr));
	desc = fi_mr_desc(mr);
	must_ok(scene_call(&s, 0, s.d.b.mem, 100, desc, 0));
	fab_wait_ok(s.f, 1);
	peer_want(s.t, 0, s.r.off, 100, 1, 0);
	must_ok(fi_close(&mr->fid));
	refused(&s, s.d.b.mem, 100, desc, -FI_EINVAL);
	must_ok(dev_reg(s.f, s.d.b.mem, SMALL, FI_READ | FI_WRITE, 0, &next));
	refused(&s, s.d.b.mem, 100, desc, -FI_EINVAL);
	must_ok(fi_close(&next->fid));
	scene_works(&s);
	scene_close(&s);
}

/* --- gone under a transfer --------------------------------------------------------------- */

#define LONG (16 * MIB)

static const char *copies(bool read)
{
	return read ? rig->put_call : rig->get_call;
}

/* Posts a long one and returns in the middle of it, when n calls have moved bytes of the device. */
static void begin(struct fab *f, const struct op *op, unsigned n)
{
	unsigned long before = control.calls(copies(op->read));
	long end = now_ms() + SOON;
	struct done d;

	must_ok(op_post(f, op));
	while (control.calls(copies(op->read)) < before + n) {
		must(!fab_poll(f, &d), "it ended before it was in the middle, with %d", d.err);
		must(now_ms() < end, "it never came to the middle");
	}
}

static struct done ends(struct fab *f, const struct op *op)
{
	struct done d;

	must(fab_done(f, &d, op_patience(op)), "no completion");
	must(d.ctx == op->ctx, "the completion of another");
	return d;
}

/* Whether it completes or fails, nobody comes back to the memory. */
static void nothing_is_copied(struct scene *s, const struct op *op)
{
	uint8_t *was = malloc(LONG), *is = malloc(LONG);
	unsigned long calls;

	must(was && is, "no memory");
	rig->get(was, s->d.b.mem, LONG);
	calls = control.calls(copies(op->read));
	ends(s->f, op);
	nap(50);
	fab_quiet(s->f);
	must(control.calls(copies(op->read)) == calls, "copies after the region was closed");
	rig->get(is, s->d.b.mem, LONG);
	must(!memcmp(was, is, LONG), "other bytes after the region was closed");
	free(was);
	free(is);
}

static void close_in_the_middle(struct env *e, bool read)
{
	struct scene s;
	struct op op;

	scene_open(&s, e, LONG);
	op = op_make(e, read, &s.d.b, 0, LONG, &s.r, 0);
	begin(s.f, &op, 2);
	must_ok(fi_close(&s.d.b.mr->fid));
	nothing_is_copied(&s, &op);
	if (read)
		peer_same(s.t, 0);
	else
		peer_same_outside(s.t, 0, s.r.off, LONG);
	must_ok(dev_reg(s.f, s.d.b.mem, LONG, FI_READ | FI_WRITE, 0, &s.d.b.mr));
	s.d.b.desc = fi_mr_desc(s.d.b.mr);
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(region_closed_in_the_middle_of_a_write)
{
	close_in_the_middle(e, WRITE);
}

DEVICE_CASE(region_closed_in_the_middle_of_a_read)
{
	close_in_the_middle(e, READ);
}

static void closed_with(struct env *e, struct fab *f, struct dev *d, fi_addr_t to)
{
	struct peer *t = target(e);
	struct region r;

	peer_alloc(t, 1, MIB, 6);
	r = peer_reg(t, 1, 0, MIB, REMOTE_RW, 6);
	for (unsigned i = 0; i < 8; i++) {
		struct op op = op_make(e, i % 2, &d->b, i * 100 * KIB, 100 * KIB, &r, 0);

		op.to = to;
		must_ok(op_post(f, &op));
	}
	must_ok(fi_close(&f->ep->fid));
	f->ep = NULL;
	peer_same_outside(t, 1, 0, 100 * KIB);
	peer_unreg(&r);
}

DEVICE_CASE(endpoint_closes_with_transfers_in_flight)
{
	struct scene s;
	struct fab f;
	struct dev d;

	scene_open(&s, e, SMALL);
	fab_open(&f, e->mode, &env_own);
	dev_open(&f, &d, RT_DEVICE, MIB, 1);
	closed_with(e, &f, &d, fab_insert(&f, s.t->name));
	dev_close(&d);
	fab_close(&f);
	scene_works(&s);
	scene_close(&s);
}

IN_MODES(DEVICE_MODES)

/* From the call or as a completion. */
static int result(struct scene *s, ssize_t posted)
{
	struct done d;

	if (posted)
		return (int)-posted;
	must(fab_done(s->f, &d, SOON), "no completion");
	return d.err;
}

static void free_it(struct scene *s)
{
	rig->unmake(RT_DEVICE, s->d.b.mem);
}

/* It has been freed; the region is still there, and can be closed. */
static void close_freed(struct scene *s)
{
	s->d.b.mem = NULL;
	dev_close(&s->d);
	dev_open(s->f, &s->d, RT_DEVICE, SMALL, 1);
	scene_works(s);
	scene_close(s);
}

DEVICE_CASE(freed_memory_is_an_error_of_every_call)
{
	struct scene s;

	scene_open(&s, e, SMALL);
	scene_works(&s);
	free_it(&s);
	for (unsigned i = 0; i < CALLS; i++) {
		int err = result(&s, scene_call(&s, i, s.d.b.mem, 5000, s.d.b.desc, 9));

		must(err == FI_EFAULT, "%s: err %d (%s)", call_names[i], err, fi_strerror(err));
	}
	peer_same(s.t, 0);
	close_freed(&s);
}

/* Another allocation at the same address is not what was registered. */
DEVICE_CASE(memory_allocated_where_registered_memory_was_is_left_alone)
{
	struct scene s;
	struct dev next;
	uint8_t *old;

	scene_open(&s, e, SMALL);
	scene_works(&s);
	old = s.d.b.mem;
	free_it(&s);
	dev_open(s.f, &next, RT_DEVICE, SMALL, 8);
	must(next.b.mem == old, "the runtime chose another address");
	for (unsigned i = 0; i < CALLS; i++) {
		int err = result(&s, scene_call(&s, i, old, 5000, s.d.b.desc, 9));

		must(err == FI_EFAULT, "%s: err %d (%s)", call_names[i], err, fi_strerror(err));
	}
	dev_same(&next);
	peer_same(s.t, 0);
	peer_fill(s.t, 0, 2);
	access_ok(e, READ, &next.b, 77, 5000, &s.r, 100);
	dev_same(&next);
	dev_close(&next);
	close_freed(&s);
}

static void free_in_the_middle(struct env *e, bool read)
{
	struct scene s;
	struct done d;
	struct op op;

	scene_open(&s, e, LONG);
	op = op_make(e, read, &s.d.b, 0, LONG, &s.r, 0);
	begin(s.f, &op, 2);
	free_it(&s);
	d = ends(s.f, &op);
	must(d.err == FI_EFAULT, "err %d (%s), %s", d.err, fi_strerror(d.err), d.text);
	must(d.text[3], "an error without a reason");
	if (read)
		peer_same(s.t, 0);
	else
		peer_same_outside(s.t, 0, s.r.off, LONG);
	close_freed(&s);
}

DEVICE_CASE(memory_freed_in_the_middle_of_a_write)
{
	free_in_the_middle(e, WRITE);
}

DEVICE_CASE(memory_freed_in_the_middle_of_a_read)
{
	free_in_the_middle(e, READ);
}

/* --- calls that fail --------------------------------------------------------------------- */

#define PART 5000ul
#define BACK (PART + 51)
#define ZEROS (3 * PART) /* operands: they change nothing */
#define OLD (ZEROS + 64)
#define ROUNDS 500u

IN_MODES(MODES_TWO)

static void fresh(struct scene *s)
{
	static const uint8_t zeros[12];

	dev_fill(&s->d, 1);
	peer_fill(s->t, 0, 2);
	dev_put(&s->d, ZEROS, zeros, sizeof(zeros));
}

static ssize_t sums(struct scene *s, void *desc)
{
	return fi_fetch_atomic(s->f->ep, s->d.b.mem + ZEROS, 3, desc, s->d.b.mem + OLD, desc,
			       s->t->addr, s->r.base, s->r.key, FI_UINT32, FI_SUM, s);
}

/* A region, a write, a read, sums: the first error, positive, or 0. */
static int do_all(struct scene *s)
{
	uint8_t *mem = s->d.b.mem;
	struct fid_mr *mr;
	int rc = -dev_reg(s->f, mem, s->d.b.size, FI_READ | FI_WRITE, 0, &mr);

	if (rc)
		return rc;
	rc = result(s, scene_call(s, 0, mem + 7, PART, fi_mr_desc(mr), 5));
	if (!rc)
		rc = result(s, scene_call(s, 3, mem + BACK, PART, fi_mr_desc(mr), PART + 9));
	if (!rc)
		rc = result(s, sums(s, fi_mr_desc(mr)));
	must_ok(fi_close(&mr->fid));
	return rc;
}

static void all_is_done(struct scene *s)
{
	peer_want(s->t, 0, s->r.off + 5, PART, 1, 7);
	buf_want(&s->d.b, BACK, PART, 2, s->r.off + PART + 9);
	peer_same(s->t, 0);
	pattern(s->d.b.want + OLD, 2, s->r.off, 5);
	pattern(s->d.b.want + OLD + 5, 1, 7, 7);
	dev_same(&s->d);
}

static void done_again(struct scene *s)
{
	fresh(s);
	must_ok(do_all(s));
	all_is_done(s);
}

/* Not every call matters; but one that fails does no harm that is not told. */
static unsigned walk(struct scene *s, unsigned nth)
{
	static char note[40];
	int rc;

	snprintf(note, sizeof(note), "call %u fails", nth);
	case_note(note);
	fresh(s);
	control.fail_next("*", nth, rig->lost);
	rc = do_all(s);
	must(!rc || !control.fails_left(), "err %d (%s) without a call that failed", rc,
	     fi_strerror(rc));
	if (control.fails_left())
		return 0;
	control.fail_next("*", 0, 0);
	if (!rc)
		all_is_done(s);
	done_again(s);
	return rc ? 2 : 1;
}

DEVICE_CASE(any_call_of_the_runtime_may_fail)
{
	unsigned nth, how, failed = 0;
	struct scene s;

	scene_open(&s, e, SMALL);
	done_again(&s);
	for (nth = 1; nth < ROUNDS && (how = walk(&s, nth)); nth++)
		failed += how == 2;
	control.fail_next("*", 0, 0);
	case_note(NULL);
	must(nth < ROUNDS, "%u calls and no end", ROUNDS);
	must(failed >= 4, "only %u of %u calls mattered", failed, nth - 1);
	done_again(&s);
	scene_close(&s);
}

/* The reason, in the log or in the completion, names the runtime. */
static int long_one(struct scene *s, const struct op *op)
{
	struct done d;
	ssize_t rc;

	log_mark();
	rc = op_post(s->f, op);
	if (rc) {
		must(log_has(rig->says), "%zd without a reason", rc);
		return (int)-rc;
	}
	d = ends(s->f, op);
	must(!d.err || strstr(d.text, rig->says), "\"%s\" does not name the runtime", d.text);
	return d.err;
}

static void is_moved(struct scene *s, bool read, size_t len)
{
	if (read)
		buf_want(&s->d.b, 3, len, 2, s->r.off + 6);
	else
		peer_want(s->t, 0, s->r.off + 6, len, 1, 3);
	dev_same(&s->d);
	peer_same(s->t, 0);
}

/* Of a long one, the nth call that moves bytes; false: there were not as many. */
static bool copy_fails(struct scene *s, bool read, unsigned nth)
{
	struct op op = op_make(s->e, read, &s->d.b, 3, MIB, &s->r, 6);
	bool reached;
	int err;

	control.fail_next(copies(read), nth, rig->lost);
	err = long_one(s, &op);
	reached = !control.fails_left();
	control.fail_next(copies(read), 0, 0);
	must(err == (reached ? FI_EIO : 0), "copy %u: err %d (%s)", nth, err, fi_strerror(err));
	dev_same_outside(&s->d, 3, read ? MIB : 0);
	peer_same_outside(s->t, 0, s->r.off + 6, read ? 0 : MIB);
	if (!reached)
		is_moved(s, read, MIB);
	return reached;
}

static void copies_fail(struct env *e, bool read)
{
	unsigned nth = 1;
	struct scene s;

	scene_open(&s, e, MIB + 4 * KIB);
	while (nth < 100000 && copy_fails(&s, read, nth))
		nth = nth < 3 ? nth + 1 : nth * 3;
	must(nth > 1, "no call of the runtime moves bytes");
	must(nth < 100000, "no end of copies");
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(write_of_which_a_part_cannot_be_copied_fails)
{
	copies_fail(e, WRITE);
}

DEVICE_CASE(read_of_which_a_part_cannot_be_copied_fails)
{
	copies_fail(e, READ);
}

/* The numberth of equal pieces; -FI_EIO: it is not even posted. */
#define PIECES 12u

static bool piece_posted(struct scene *s, uintptr_t number)
{
	size_t off = number * PAGE;
	struct op op = op_make(s->e, WRITE, &s->d.b, off, 3000, &s->r, off);
	ssize_t rc;

	op.ctx = (void *)number;
	rc = op_post(s->f, &op);
	must(!rc || rc == -FI_EIO, "posting: %zd", rc);
	if (!rc)
		peer_want(s->t, 0, s->r.off + off, 3000, 1, off);
	return !rc;
}

/* One that fails has changed nothing. */
static bool piece_done(struct scene *s)
{
	struct done d;
	size_t off;

	must(fab_done(s->f, &d, SOON), "no completion");
	must(!d.err || d.err == FI_EIO, "err %d, %s", d.err, d.text);
	off = (uintptr_t)d.ctx * PAGE;
	if (d.err)
		peer_want(s->t, 0, s->r.off + off, 3000, 2, s->r.off + off);
	return !d.err;
}

DEVICE_CASE(others_are_done_when_one_fails)
{
	unsigned posted = 0, done = 0;
	struct scene s;

	scene_open(&s, e, PIECES * PAGE);
	control.fail_next(rig->get_call, 5, rig->lost);
	for (unsigned i = 0; i < PIECES; i++)
		posted += piece_posted(&s, i);
	for (unsigned i = 0; i < posted; i++)
		done += piece_done(&s);
	must(done == PIECES - 1, "%u of %u are done", done, PIECES);
	scene_close(&s);
}

/* --- killed peers ------------------------------------------------------------------------ */

IN_MODES(DEVICE_MODES)

/* What runtimes have in common is tried with the first of them. */
static size_t very_long(void)
{
	return (case_number ? 16 : 64) * MIB;
}

/* Short ones to the same peer, if there is room for them. */
static unsigned post_more(struct scene *s, bool read, const struct region *r)
{
	unsigned posted = 0;

	for (unsigned i = 0; i < 3; i++) {
		uint8_t *mem = s->d.b.mem + i * 100;
		ssize_t rc = read ? fi_read(s->f->ep, mem, 100, s->d.b.desc, r->peer->addr, r->base,
					    r->key, s)
				  : fi_write(s->f->ep, mem, 100, s->d.b.desc, r->peer->addr,
					     r->base, r->key, s);

		must(!rc || rc == -FI_EAGAIN, "posting: %zd", rc);
		posted += !rc;
	}
	return posted;
}

static void all_fail(struct fab *f, unsigned n)
{
	struct done d;

	for (unsigned i = 0; i < n; i++) {
		must(fab_done(f, &d, SOON), "%u of %u completions", i, n);
		must(d.err && d.text[3], "err %d, %s", d.err, d.text);
	}
}

static void killed_in_the_middle(struct env *e, bool read)
{
	struct peer *victim = peer(e, 2);
	struct scene s;
	struct region r;
	struct dev d;
	struct op op;
	unsigned posted;

	scene_open(&s, e, SMALL);
	dev_open(s.f, &d, RT_DEVICE, very_long(), 3);
	peer_alloc(victim, 0, very_long(), 4);
	r = peer_reg(victim, 0, 0, very_long(), REMOTE_RW, 5);
	op = op_make(e, read, &d.b, 0, very_long(), &r, 0);
	begin(s.f, &op, 3);
	posted = 1 + post_more(&s, !read, &r);
	peer_kill(victim);
	all_fail(s.f, posted);
	dev_close(&d);
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(target_killed_in_the_middle_of_a_write)
{
	killed_in_the_middle(e, WRITE);
}

DEVICE_CASE(target_killed_in_the_middle_of_a_read)
{
	killed_in_the_middle(e, READ);
}
