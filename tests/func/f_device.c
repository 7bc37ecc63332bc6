/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of devices as the local side of every kind of operation, and what of it can be
 * registered. The processor cannot touch that memory: what is there is compared through the
 * runtime. What goes wrong is in f_device_fail.c.
 */
#include <sched.h>
#include <rdma/fi_atomic.h>
#include "device.h"

#define ODD 12345ul /* an allocation that does not end with a page */

/* --- registering ------------------------------------------------------------------------- */

static void registers(struct scene *s, void *mem, size_t len, uint64_t access, uint64_t flags)
{
	struct fid_mr *mr;

	must_ok(dev_reg(s->f, mem, len, access, flags, &mr));
	must(fi_mr_desc(mr), "no descriptor");
	must_ok(fab_mr_close(s->f, mr));
}

static void refuses(struct scene *s, const struct fi_mr_attr *attr, uint64_t flags, int err)
{
	struct fid_mr *mr = NULL;

	log_mark();
	must_be(fi_mr_regattr(s->f->domain, attr, flags, &mr), err);
	must(log_has("MRF-E"), "no line says why");
	must(!mr, "there is a region nevertheless");
}

static void refuses_range(struct scene *s, const void *mem, size_t len, uint64_t flags, int err)
{
	struct iovec iov = { (void *)(uintptr_t)mem, len };
	struct fi_mr_attr attr = dev_attr(&iov, FI_READ | FI_WRITE);

	refuses(s, &attr, flags, err);
}

IN_MODES(DEVICE_MODES)

DEVICE_CASE(what_is_asked_for_is_granted)
{
	struct scene s;

	scene_open(&s, e, ODD);
	must(s.f->info->caps & FI_HMEM, "capabilities 0x%llx", (unsigned long long)s.f->info->caps);
	must(s.f->bits & FI_MR_HMEM, "mr_mode 0x%llx", (unsigned long long)s.f->bits);
	must(s.f->local == !!(mode_bits(e->mode) & FI_MR_LOCAL) || e->mode->required,
	     "FI_MR_LOCAL is another than asked for");
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(any_right_and_any_part_can_be_registered)
{
	static const uint64_t rights[] = { FI_READ,
					   FI_WRITE,
					   FI_SEND,
					   FI_RECV,
					   FI_READ | FI_WRITE | FI_SEND | FI_RECV,
					   FI_REMOTE_READ,
					   FI_REMOTE_WRITE,
					   FI_READ | FI_WRITE | REMOTE_RW };
	struct scene s;

	scene_open(&s, e, ODD);
	for (unsigned i = 0; i < 8; i++)
		registers(&s, s.d.b.mem, ODD, rights[i], 0);
	registers(&s, s.d.b.mem + 1, 1, FI_READ, 0);
	registers(&s, s.d.b.mem + ODD - 1, 1, FI_READ, 0);
	registers(&s, s.d.b.mem + 4095, 4098, FI_READ, 0);
	scene_works(&s);
	scene_close(&s);
}

static void device_is_wrong(struct scene *s, struct fi_mr_attr attr, int device, int err)
{
	struct fid_mr *mr;

	attr.device.reserved = 0;
	attr.device.cuda = device;
	if (rig->numbered) {
		refuses(s, &attr, 0, err);
		return;
	}
	must_ok(dev_regattr(s->f, &attr, 0, &mr));
	must_ok(fab_mr_close(s->f, mr));
}

/* Of one that is there, and of none; ROCR has no numbers. */
DEVICE_CASE(number_of_another_device_is_refused)
{
	static const int none[] = { DEVICE + 1, -1, 1000000 };
	struct iovec iov;
	struct scene s;

	scene_open(&s, e, ODD);
	iov = (struct iovec){ s.d.b.mem, ODD };
	device_is_wrong(&s, dev_attr(&iov, FI_READ), DEVICE - 1, -FI_EINVAL);
	for (unsigned i = 0; i < 3; i++)
		device_is_wrong(&s, dev_attr(&iov, FI_READ), none[i], -FI_ENODEV);
	scene_works(&s);
	scene_close(&s);
}

/* Also where the runtime's memory was a moment ago. */
DEVICE_CASE(memory_that_is_not_the_runtimes_is_refused)
{
	static uint8_t data[64];
	struct buf *h;
	struct scene s;
	void *freed;

	scene_open(&s, e, ODD);
	h = buf(e, 8192, 3);
	refuses_range(&s, h->mem, 100, 0, -FI_EINVAL);
	refuses_range(&s, h->mem, 100, FI_HMEM_DEVICE_ONLY, -FI_EINVAL);
	refuses_range(&s, data, sizeof(data), 0, -FI_EINVAL);
	refuses_range(&s, &s, sizeof(s), 0, -FI_EINVAL);
	freed = dev_alloc(RT_DEVICE, 3 * PAGE);
	rig->unmake(RT_DEVICE, freed);
	refuses_range(&s, freed, 100, 0, -FI_EINVAL);
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(range_that_leaves_the_allocation_is_refused)
{
	struct scene s;

	scene_open(&s, e, ODD);
	refuses_range(&s, s.d.b.mem, ODD + 1, 0, -FI_EINVAL);
	refuses_range(&s, s.d.b.mem + ODD - 1, 2, 0, -FI_EINVAL);
	refuses_range(&s, s.d.b.mem + 100, ODD, 0, -FI_EINVAL);
	refuses_range(&s, s.d.b.mem - 1, 10, 0, -FI_EINVAL);
	refuses_range(&s, s.d.b.mem, MIB, 0, -FI_EINVAL);
	scene_works(&s);
	scene_close(&s);
}

static void refused_as_system(struct scene *s, uint64_t access)
{
	struct iovec iov = { s->d.b.mem + 100, 200 };
	struct fi_mr_attr attr = dev_attr(&iov, access);
	struct fid_domain *domain = s->f->domain;
	struct fid_mr *mr;

	attr.iface = FI_HMEM_SYSTEM;
	refuses(s, &attr, 0, -FI_EINVAL);
	must_be(fi_mr_reg(domain, iov.iov_base, 200, access, 0, 77, 0, &mr, NULL), -FI_EINVAL);
	must_be(fi_mr_regv(domain, &iov, 1, access, 0, 78, 0, &mr, NULL), -FI_EINVAL);
}

DEVICE_CASE(memory_of_a_device_is_not_the_systems)
{
	struct scene s;

	scene_open(&s, e, ODD);
	refused_as_system(&s, FI_READ | FI_WRITE);
	refused_as_system(&s, REMOTE_RW);
	scene_works(&s);
	scene_close(&s);
}

DEVICE_CASE(other_interfaces_are_not_supported)
{
	static const enum fi_hmem_iface ifaces[] = { FI_HMEM_NEURON, FI_HMEM_SYNAPSEAI };
	struct scene s;
	struct buf *h;

	scene_open(&s, e, ODD);
	h = buf(e, 8192, 3);
	for (unsigned i = 0; i < 4; i++) {
		struct iovec iov = { i % 2 ? h->mem : s.d.b.mem, 100 };
		struct fi_mr_attr attr = dev_attr(&iov, FI_READ);

		attr.iface = ifaces[i / 2];
		refuses(&s, &attr, 0, -FI_ENOSYS);
	}
	scene_works(&s);
	scene_close(&s);
}

static bool has_kind(unsigned kind)
{
	return kind != RT_MANAGED || rig->managed;
}

DEVICE_CASE(only_what_a_device_alone_can_touch_is_device_only)
{
	struct scene s;

	scene_open(&s, e, ODD);
	for (unsigned k = RT_DEVICE; k <= RT_HOST; k++) {
		void *mem = has_kind(k) ? dev_alloc((enum rt_kind)k, ODD) : NULL;

		if (k == RT_DEVICE)
			registers(&s, mem, ODD, FI_READ | FI_WRITE, FI_HMEM_DEVICE_ONLY);
		else if (mem)
			refuses_range(&s, mem, ODD, FI_HMEM_DEVICE_ONLY, -FI_EINVAL);
		if (mem)
			rig->unmake((enum rt_kind)k, mem);
	}
	scene_works(&s);
	scene_close(&s);
}

/* The descriptor of a region with the flag is as good. */
DEVICE_CASE(device_only_memory_is_read_and_written)
{
	struct fid_mr *mr;
	struct scene s;

	scene_open(&s, e, ODD);
	must_ok(dev_reg(s.f, s.d.b.mem, ODD, FI_READ | FI_WRITE, FI_HMEM_DEVICE_ONLY, &mr));
	s.d.b.desc = fi_mr_desc(mr);
	scene_works(&s);
	must_ok(fab_mr_close(s.f, mr));
	scene_close(&s);
}

/* --- sizes and kinds ----------------------------------------------------------------------- */

/* From odd addresses to odd addresses, written and read; between them nothing changes. */
static void moves(struct scene *s, struct dev *d, size_t len)
{
	static char note[40];

	snprintf(note, sizeof(note), "%zu bytes", len);
	case_note(note);
	dev_fill(d, 7);
	peer_fill(s->t, 0, 2);
	access_ok(s->e, WRITE, &d->b, 3, len, &s->r, 6);
	access_ok(s->e, READ, &d->b, len + 8, len, &s->r, len + 13);
	dev_same(d);
	peer_same(s->t, 0);
	case_note(NULL);
}

/* Managed memory and the runtime's own memory of the host are registered in the same way. */
DEVICE_CASE(every_kind_of_memory_is_read_and_written)
{
	struct scene s;
	struct dev d;

	scene_open(&s, e, 300 * KIB);
	for (unsigned k = RT_DEVICE; k <= RT_HOST; k++) {
		if (!has_kind(k))
			continue;
		dev_open(s.f, &d, (enum rt_kind)k, 300 * KIB, 10 + k);
		moves(&s, &d, 1);
		moves(&s, &d, 100);
		moves(&s, &d, 70000);
		dev_close(&d);
	}
	scene_close(&s);
}

IN_MODES(MODE(0))

DEVICE_CASE(any_size_from_and_to_any_address)
{
	static const size_t sizes[] = {
		1,   7,		 64, 4 * KIB, 16 * KIB + 1, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1,
		MIB, 3 * MIB + 5
	};
	struct scene s;

	scene_open(&s, e, 6 * MIB + 4096);
	for (unsigned i = 0; i < 10; i++)
		moves(&s, &s.d, sizes[i]);
	scene_close(&s);
}

/* What runtimes have in common is tried with the first of them. */
static size_t very_long(void)
{
	return (case_number ? 8 : 64) * MIB;
}

DEVICE_CASE(very_long_write)
{
	struct scene s;

	scene_open(&s, e, very_long() + 2 * PAGE);
	access_ok(e, WRITE, &s.d.b, 4095, very_long(), &s.r, 2);
	scene_close(&s);
}

DEVICE_CASE(very_long_read)
{
	struct scene s;

	scene_open(&s, e, very_long() + 2 * PAGE);
	access_ok(e, READ, &s.d.b, 4095, very_long(), &s.r, 2);
	scene_close(&s);
}

IN_MODES(DEVICE_MODES)

/* --- vectors ------------------------------------------------------------------------------- */

#define MOST 128 /* iov_limit */

/* Pieces of device memory and of the host's by turns, and one or two ranges at the target. */
struct pieces {
	struct scene *s;
	struct buf *host;
	struct buf *of[MOST];
	size_t off[MOST];
	struct iovec iov[MOST];
	void *desc[MOST];
	size_t n, sum;
	struct fi_rma_iov rma[2];
};

static struct buf *piece_memory(struct pieces *p, unsigned i)
{
	return i % 2 ? p->host : &p->s->d.b;
}

static void pieces_make(struct pieces *p, struct scene *s, size_t n, size_t len)
{
	*p = (struct pieces){ .s = s, .host = buf(s->e, s->d.b.size, 5), .n = n };
	for (unsigned i = 0; i < n; i++) {
		struct buf *b = p->of[i] = piece_memory(p, i);

		p->off[i] = 3 + i / 2 * (len + 120);
		p->iov[i] = (struct iovec){ b->mem + p->off[i], len + i * 37 % 101 };
		p->desc[i] = b->desc;
		p->sum += p->iov[i].iov_len;
	}
	p->rma[0] = (struct fi_rma_iov){ s->r.base + 7, p->sum / 3, s->r.key };
	p->rma[1] = (struct fi_rma_iov){ p->rma[0].addr + p->rma[0].len, p->sum - p->rma[0].len,
					 s->r.key };
}

static ssize_t pieces_post(struct pieces *p, unsigned which)
{
	struct fid_ep *ep = p->s->f->ep;
	fi_addr_t to = p->s->t->addr;
	uint64_t addr = p->rma[0].addr, key = p->rma[0].key;
	struct fi_msg_rma m = { p->iov, p->desc, p->n, to, p->rma, 2, p, 0 };

	switch (which) {
	case 0:
		return fi_writev(ep, p->iov, p->desc, p->n, to, addr, key, p);
	case 1:
		return fi_writemsg(ep, &m, FI_COMPLETION);
	case 2:
		return fi_readv(ep, p->iov, p->desc, p->n, to, addr, key, p);
	default:
		return fi_readmsg(ep, &m, FI_COMPLETION);
	}
}

static void pieces_want(struct pieces *p, bool read)
{
	size_t at = p->s->r.off + 7;

	for (unsigned i = 0; i < p->n; at += p->iov[i++].iov_len) {
		size_t len = p->iov[i].iov_len;

		if (read)
			buf_want(p->of[i], p->off[i], len, 2, at);
		else
			peer_want(p->s->t, 0, at, len, p->of[i]->seed, p->off[i]);
	}
}

/* Each of the four calls, from fresh contents. */
static void pieces_move(struct pieces *p)
{
	for (unsigned which = 0; which < 4; which++) {
		dev_fill(&p->s->d, 1);
		buf_fill(p->host, 5);
		peer_fill(p->s->t, 0, 2);
		must_ok(pieces_post(p, which));
		fab_wait_ok(p->s->f, 1);
		pieces_want(p, which >= 2);
		dev_same(&p->s->d);
		buf_same(p->host);
		peer_same(p->s->t, 0);
	}
}

static void vectors(struct env *e, size_t n, size_t len)
{
	struct pieces p;
	struct scene s;

	scene_open(&s, e, n * (len + 120));
	pieces_make(&p, &s, n, len);
	pieces_move(&p);
	scene_close(&s);
}

DEVICE_CASE(vectors_of_device_and_host_memory)
{
	vectors(e, 2, 5000);
	vectors(e, 8, 1000);
	vectors(e, 100, 50);
	vectors(e, MOST, 64);
}

DEVICE_CASE(vectors_of_long_pieces)
{
	vectors(e, 3, 300 * KIB + 1);
	vectors(e, 5, 20000);
}

/* --- other ways to write ------------------------------------------------------------------- */

/* A message of one piece. */
struct msg {
	struct iovec iov;
	struct fi_rma_iov rma;
	struct fi_msg_rma m;
};

static const struct fi_msg_rma *msg(struct msg *m, struct scene *s, size_t off, size_t len,
				    size_t at)
{
	m->iov = (struct iovec){ s->d.b.mem + off, len };
	m->rma = (struct fi_rma_iov){ s->r.base + at, len, s->r.key };
	m->m = (struct fi_msg_rma){ &m->iov, &s->d.b.desc, 1, s->t->addr, &m->rma, 1, m, 0xdada };
	return &m->m;
}

/* What was there when the call returned is what arrives. */
static void injects(struct scene *s, size_t len)
{
	uint8_t other[4096], was[4096];
	struct msg m;

	must(len <= sizeof(other), "inject_size %zu", len);
	memset(other, 0xee, len);
	pattern(was, 1, 100, len);
	must_ok(fi_writemsg(s->f->ep, msg(&m, s, 100, len, 51), FI_INJECT | FI_COMPLETION));
	dev_put(&s->d, 100, other, len);
	fab_wait_ok(s->f, 1);
	peer_want(s->t, 0, s->r.off + 51, len, 1, 100);
	peer_same(s->t, 0);
	dev_put(&s->d, 100, was, len);
}

DEVICE_CASE(injected_memory_is_free_at_once)
{
	struct scene s;
	struct msg m;
	size_t max;
	ssize_t rc;

	scene_open(&s, e, ODD);
	max = s.f->info->tx_attr->inject_size;
	injects(&s, 1);
	injects(&s, max / 2 + 1);
	injects(&s, max);
	rc = fi_writemsg(s.f->ep, msg(&m, &s, 0, max + 1, 0), FI_INJECT);
	must(rc == -FI_EINVAL || rc == -FI_EMSGSIZE, "more than inject_size: %zd", rc);
	scene_close(&s);
}

static void data_arrives(struct scene *s, uint64_t data)
{
	struct done d;

	must(peer_done(s->t, &d, SOON), "no completion at the target");
	must(!d.err && d.flags & FI_REMOTE_CQ_DATA, "err %d, flags 0x%llx at the target", d.err,
	     (unsigned long long)d.flags);
	must(d.data == data, "data 0x%llx instead of 0x%llx", (unsigned long long)d.data,
	     (unsigned long long)data);
}

/* Whoever sees the data finds the bytes. */
DEVICE_CASE(written_data_tells_the_target)
{
	static const size_t lens[] = { 1, 60, 3000, 300 * KIB };
	struct scene s;
	struct msg m;

	scene_open(&s, e, MIB);
	for (unsigned i = 0; i < 4; i++) {
		size_t n = lens[i];

		must_ok(fi_writedata(s.f->ep, s.d.b.mem + 9, n, s.d.b.desc, 40 + i, s.t->addr,
				     s.r.base + 31, s.r.key, &s));
		peer_want(s.t, 0, s.r.off + 31, n, 1, 9);
		data_arrives(&s, 40 + i);
		peer_same(s.t, 0);
		must_ok(fi_writemsg(s.f->ep, msg(&m, &s, 501 * KIB, n, 500 * KIB),
				    FI_REMOTE_CQ_DATA | FI_COMPLETION));
		peer_want(s.t, 0, s.r.off + 500 * KIB, n, 1, 501 * KIB);
		data_arrives(&s, 0xdada);
		peer_same(s.t, 0);
		fab_wait_ok(s.f, 2);
	}
	scene_close(&s);
}

/* --- order ------------------------------------------------------------------------------- */

static void post_write(struct scene *s, size_t off, size_t len, size_t at)
{
	struct op op = op_make(s->e, WRITE, &s->d.b, off, len, &s->r, at);

	must_ok(op_post(s->f, &op));
}

static void post_read(struct scene *s, size_t off, size_t len, size_t at, uint64_t flags)
{
	long end = now_ms() + SOON;
	struct msg m;
	ssize_t rc;

	while ((rc = fi_readmsg(s->f->ep, msg(&m, s, off, len, at), flags)) == -FI_EAGAIN &&
	       now_ms() < end)
		fi_cq_read(s->f->cq, NULL, 0);
	must_ok(rc);
}

/* The later of two writes is what the read behind them brings, with a fence or without. */
static void write_and_read_back(struct scene *s, size_t len)
{
	for (unsigned i = 0; i < 6; i++) {
		size_t off = i * 1001, back = (i + 6) * (len + 1001);

		post_write(s, off + 500, len, 77);
		post_write(s, off, len, 77);
		post_read(s, back, len, 77, FI_COMPLETION | (i % 2 ? FI_FENCE : 0));
		peer_want(s->t, 0, s->r.off + 77, len, 1, off);
		buf_want(&s->d.b, back, len, 1, off);
	}
	fab_wait_ok(s->f, 18);
	dev_same(&s->d);
	peer_same(s->t, 0);
}

DEVICE_CASE(read_behind_a_write_sees_it)
{
	static const size_t lens[] = { 8, 4000, 70000 };
	struct scene s;

	for (unsigned i = 0; i < 3; i++) {
		scene_open(&s, e, 13 * (lens[i] + 1001));
		write_and_read_back(&s, lens[i]);
		scene_close(&s);
	}
}

/* Into the memory that a write is sent from, once that is done. */
DEVICE_CASE(fence_keeps_a_read_from_what_is_still_being_sent)
{
	const size_t len = 200 * KIB;
	struct scene s;

	scene_open(&s, e, MIB);
	for (unsigned i = 0; i < 5; i++) {
		dev_fill(&s.d, 20 + i);
		post_write(&s, 11, len, 500 * KIB);
		post_read(&s, 11, len, 3, FI_COMPLETION | FI_FENCE);
		peer_want(s.t, 0, s.r.off + 500 * KIB, len, 20 + i, 11);
		buf_want(&s.d.b, 11, len, 2, s.r.off + 3);
		fab_wait_ok(s.f, 2);
		dev_same(&s.d);
		peer_same(s.t, 0);
	}
	scene_close(&s);
}

/* What the write sends has been read just before. */
DEVICE_CASE(fenced_write_sends_what_a_read_before_it_brings)
{
	static const size_t lens[] = { 8, 4000, 200 * KIB };
	struct scene s;
	struct msg m;

	scene_open(&s, e, MIB);
	for (unsigned i = 0; i < 3; i++) {
		dev_fill(&s.d, 30 + i);
		peer_fill(s.t, 0, 2);
		post_read(&s, 11, lens[i], 3, FI_COMPLETION);
		must_ok(fi_writemsg(s.f->ep, msg(&m, &s, 11, lens[i], 500 * KIB),
				    FI_COMPLETION | FI_FENCE));
		buf_want(&s.d.b, 11, lens[i], 2, s.r.off + 3);
		peer_want(s.t, 0, s.r.off + 500 * KIB, lens[i], 2, s.r.off + 3);
		fab_wait_ok(s.f, 2);
		dev_same(&s.d);
		peer_same(s.t, 0);
	}
	scene_close(&s);
}

/* --- many at once -------------------------------------------------------------------------- */

#define MANY 120u
#define STRIDE (10 * KIB)

struct flight {
	struct scene *s;
	const struct region *r[2];
	unsigned posted, done;
};

static void take_one(struct flight *f)
{
	fab_wait_ok(f->s->f, 1);
	f->done++;
}

/* When there is no room, completions are read. */
static void fly(struct flight *f, bool read, size_t off, size_t len, const struct region *r)
{
	struct op op = op_make(f->s->e, read, &f->s->d.b, off, len, r, off);
	void *mem = op.buf->mem + off, *desc = op.buf->desc;
	struct fid_ep *ep = f->s->f->ep;
	ssize_t rc;

	for (;;) {
		rc = read ? fi_read(ep, mem, len, desc, op.to, op.addr, op.key, op.ctx)
			  : fi_write(ep, mem, len, desc, op.to, op.addr, op.key, op.ctx);
		if (rc != -FI_EAGAIN)
			break;
		must(f->done < f->posted, "-FI_EAGAIN with nothing in flight");
		take_one(f);
	}
	must_ok(rc);
	f->posted++;
}

static size_t flight_len(unsigned i)
{
	static const size_t lens[] = { 1, 40, 700, 4096, 9999 };

	return lens[i % 5];
}

/* The first half is written, the second is read; each piece has its place. */
static void fly_many(struct flight *f)
{
	for (unsigned i = 0; i < MANY; i++) {
		const struct region *r = f->r[i % 2];
		bool read = i >= MANY / 2;
		size_t off = i * STRIDE + i % 7, len = flight_len(i);

		fly(f, read, off, len, r);
		if (read)
			buf_want(&f->s->d.b, off, len, r->peer->seed[0], r->off + off);
		else
			peer_want(r->peer, 0, r->off + off, len, 1, off);
	}
	while (f->done < f->posted)
		take_one(f);
}

DEVICE_CASE(many_at_once_to_one_peer)
{
	struct scene s;
	struct flight f = { .s = &s };

	scene_open(&s, e, MANY * STRIDE);
	f.r[0] = f.r[1] = &s.r;
	fly_many(&f);
	scene_close(&s);
}

DEVICE_CASE(many_at_once_to_two_peers)
{
	struct peer *second = peer(e, 1);
	struct scene s;
	struct region other;
	struct flight f = { .s = &s };

	scene_open(&s, e, MANY * STRIDE);
	peer_alloc(second, 0, MANY * STRIDE + 100, 4);
	other = peer_reg(second, 0, 33, MANY * STRIDE, REMOTE_RW, 5);
	f.r[0] = &s.r;
	f.r[1] = &other;
	fly_many(&f);
	peer_same(second, 0);
	peer_unreg(&other);
	scene_close(&s);
}

#define LONG_ONES 40u

/* More than there is room for at a time, in both directions. */
DEVICE_CASE(long_ones_at_once_in_both_directions)
{
	const size_t len = 200 * KIB + 3;
	struct scene s;
	struct flight f = { .s = &s };

	scene_open(&s, e, LONG_ONES * len);
	for (unsigned i = 0; i < LONG_ONES; i++) {
		fly(&f, i % 2, i * len, len, &s.r);
		if (i % 2)
			buf_want(&s.d.b, i * len, len, 2, s.r.off + i * len);
		else
			peer_want(s.t, 0, s.r.off + i * len, len, 1, i * len);
	}
	while (f.done < f.posted)
		take_one(&f);
	scene_close(&s);
}

/* --- atomic operations ----------------------------------------------------------------------- */

#define NUMBERS 5u
#define SPOT 64u /* of the region, which begins so that this is a multiple of 8 */

/* Operands, comparands and results, each in device memory or in the host's. */
enum { OPERAND, COMPARAND, RESULT, PLACES };

struct numbers {
	struct scene s;
	struct buf *host;
	struct region r; /* aligned */
	unsigned places; /* a bit each: in the device's */
	enum fi_datatype type;
	size_t count, bytes;
	uint8_t was[8 * NUMBERS], given[PLACES][8 * NUMBERS]; /* at the target, and here */
};

static struct buf *place(struct numbers *n, unsigned which)
{
	return n->places >> which & 1 ? &n->s.d.b : n->host;
}

/* Odd ones: nothing has to be aligned here. */
static size_t place_off(unsigned which)
{
	return 101 + which * 1000;
}

static uint8_t *place_mem(struct numbers *n, unsigned which)
{
	return place(n, which)->mem + place_off(which);
}

static void host_put(struct numbers *n, size_t off, const void *bytes, size_t len)
{
	memcpy(n->host->mem + off, bytes, len);
	memcpy(n->host->want + off, bytes, len);
}

static void place_put(struct numbers *n, unsigned which)
{
	if (place(n, which) == n->host)
		host_put(n, place_off(which), n->given[which], n->bytes);
	else
		dev_put(&n->s.d, place_off(which), n->given[which], n->bytes);
}

static ssize_t atomic_post(struct numbers *n, enum atomic_family family)
{
	uint8_t *op = place_mem(n, OPERAND), *cmp = place_mem(n, COMPARAND);
	uint8_t *res = place_mem(n, RESULT);
	void *od = place(n, OPERAND)->desc, *cd = place(n, COMPARAND)->desc;
	void *rd = place(n, RESULT)->desc;
	fi_addr_t to = n->s.t->addr;
	struct fid_ep *ep = n->s.f->ep;
	uint64_t addr = n->r.base + SPOT, key = n->r.key;

	switch (family) {
	case PLAIN:
		return fi_atomic(ep, op, n->count, od, to, addr, key, n->type, FI_SUM, n);
	case FETCH:
		return fi_fetch_atomic(ep, op, n->count, od, res, rd, to, addr, key, n->type,
				       FI_SUM, n);
	default:
		return fi_compare_atomic(ep, op, n->count, od, cmp, cd, res, rd, to, addr, key,
					 n->type, FI_CSWAP, n);
	}
}

static void add(struct numbers *n, unsigned i)
{
	size_t size = n->bytes / n->count;
	uint64_t a = 0, b = 0;

	memcpy(&a, n->was + i * size, size);
	memcpy(&b, n->given[OPERAND] + i * size, size);
	a += b;
	memcpy(n->was + i * size, &a, size);
}

static void swap(struct numbers *n, unsigned i)
{
	size_t size = n->bytes / n->count;

	if (!memcmp(n->was + i * size, n->given[COMPARAND] + i * size, size))
		memcpy(n->was + i * size, n->given[OPERAND] + i * size, size);
}

/* What is at the target afterwards, and what came back. */
static void atomic_want(struct numbers *n, enum atomic_family family)
{
	if (family != PLAIN)
		memcpy(place(n, RESULT)->want + place_off(RESULT), n->was, n->bytes);
	for (unsigned i = 0; i < n->count; i++)
		(family == COMPARE ? swap : add)(n, i);
}

/* Read back into memory of the host, with what is around it. */
static void target_is(struct numbers *n)
{
	struct op op = op_make(n->s.e, READ, n->host, 5000, 256, &n->r, 0);
	struct done d;

	op_run(n->s.f, &op, &d);
	must(!d.err, "reading back: %s", d.text);
	buf_want(n->host, 5000, 256, 2, n->r.off);
	memcpy(n->host->want + 5000 + SPOT, n->was, n->bytes);
	buf_same(n->host);
}

/* Every second number is the same as the comparand. */
static void atomic_do(struct numbers *n, enum atomic_family family)
{
	static char note[60];
	static uint64_t serial = 700;

	snprintf(note, sizeof(note), "family %d, %zu of %zu bytes, places %u", family, n->count,
		 n->bytes / n->count, n->places);
	case_note(note);
	for (unsigned i = 0; i < PLACES; i++) {
		pattern(n->given[i], serial++, 0, n->bytes);
		if (i == COMPARAND)
			memcpy(n->given[i], n->was, (n->count + 1) / 2 * (n->bytes / n->count));
		place_put(n, i);
	}
	must_ok(atomic_post(n, family));
	fab_wait_ok(n->s.f, 1);
	atomic_want(n, family);
	target_is(n);
	dev_same(&n->s.d);
}

static void numbers_open(struct numbers *n, struct env *e, enum fi_datatype type, size_t count)
{
	memset(n, 0, sizeof(*n));
	scene_open(&n->s, e, ODD);
	n->host = buf(e, 2 * PAGE, 6);
	n->r = peer_reg(n->s.t, 0, PAGE, 512, REMOTE_RW, 9);
	n->type = type;
	n->count = count;
	n->bytes = count * (type == FI_UINT64 ? 8 : 4);
	pattern(n->was, 2, PAGE + SPOT, n->bytes);
}

/* The target's bytes have been compared one by one. */
static void numbers_close(struct numbers *n)
{
	case_note(NULL);
	peer_same_outside(n->s.t, 0, PAGE + SPOT, n->bytes);
	peer_unreg(&n->r);
	scene_drop(&n->s);
}

static void all_atomics(struct env *e, enum fi_datatype type, size_t count)
{
	static struct numbers n;

	numbers_open(&n, e, type, count);
	for (n.places = 0; n.places < 1 << PLACES; n.places++) {
		for (int family = PLAIN; family <= COMPARE; family++)
			atomic_do(&n, (enum atomic_family)family);
	}
	numbers_close(&n);
}

DEVICE_CASE(atomics_that_the_network_device_does)
{
	all_atomics(e, FI_UINT64, 1);
}

DEVICE_CASE(atomics_that_the_target_does)
{
	all_atomics(e, FI_UINT32, NUMBERS);
	all_atomics(e, FI_UINT64, NUMBERS);
}

/* Two buffers each, one of the device's memory and one of the host's, cut at different numbers. */
static void sum_of_pieces(struct numbers *n)
{
	uint8_t *dev = n->s.d.b.mem, *host = n->host->mem, *given = n->given[OPERAND];
	struct fi_ioc op[2] = { { dev + 101, 2 }, { host + 101, 3 } };
	struct fi_ioc res[2] = { { host + 3001, 1 }, { dev + 3001, 4 } };
	void *od[2] = { n->s.d.b.desc, n->host->desc }, *rd[2] = { od[1], od[0] };

	pattern(given, 900, 0, n->bytes);
	dev_put(&n->s.d, 101, given, 16);
	host_put(n, 101, given + 16, 24);
	must_ok(fi_fetch_atomicv(n->s.f->ep, op, od, 2, res, rd, 2, n->s.t->addr, n->r.base + SPOT,
				 n->r.key, FI_UINT64, FI_SUM, n));
	fab_wait_ok(n->s.f, 1);
	memcpy(n->host->want + 3001, n->was, 8);
	memcpy(n->s.d.b.want + 3001, n->was + 8, 32);
	for (unsigned i = 0; i < NUMBERS; i++)
		add(n, i);
}

DEVICE_CASE(atomics_of_several_buffers)
{
	static struct numbers n;

	numbers_open(&n, e, FI_UINT64, NUMBERS);
	sum_of_pieces(&n);
	target_is(&n);
	dev_same(&n.s.d);
	numbers_close(&n);
}

/* The operand of the message is free when the call returns. */
static void sum_injected(struct numbers *n)
{
	static const uint8_t other[8 * NUMBERS] = { 1 };
	struct fi_ioc op = { place_mem(n, OPERAND), n->count };
	struct fi_rma_ioc to = { n->r.base + SPOT, n->count, n->r.key };
	struct fi_msg_atomic m = { .msg_iov = &op,
				   .desc = &n->s.d.b.desc,
				   .iov_count = 1,
				   .addr = n->s.t->addr,
				   .rma_iov = &to,
				   .rma_iov_count = 1,
				   .datatype = n->type,
				   .op = FI_SUM };

	pattern(n->given[OPERAND], 901, 0, n->bytes);
	place_put(n, OPERAND);
	must_ok(fi_atomicmsg(n->s.f->ep, &m, FI_INJECT | FI_COMPLETION));
	dev_put(&n->s.d, place_off(OPERAND), other, n->bytes);
	fab_wait_ok(n->s.f, 1);
	for (unsigned i = 0; i < n->count; i++)
		add(n, i);
}

DEVICE_CASE(injected_operands_are_free_at_once)
{
	static struct numbers n;

	for (size_t count = 1; count <= NUMBERS; count += NUMBERS - 1) {
		numbers_open(&n, e, FI_UINT64, count);
		n.places = 1 << OPERAND;
		sum_injected(&n);
		target_is(&n);
		dev_same(&n.s.d);
		numbers_close(&n);
	}
}
