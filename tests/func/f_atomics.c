/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3) on a peer's memory: every operation on every datatype, with all bytes of the
 * peer's buffer compared, those around the region among them; several initiators at once;
 * refusals; and a peer that is killed.
 */
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include "atomic/atomic.h"
#include "harness.h"

#define SIZE (3 * PAGE) /* of the peer's buffer */
#define FROM (PAGE + 5) /* a region in it that begins and ends in the middle of words */
#define LEN 4001ul

/* Everybody here has FI_ATOMIC, in whatever mode. */
static void __attribute__((constructor)) with_atomics(void)
{
	func_caps = FI_ATOMIC;
}

struct scene {
	struct fab *f;
	struct peer *p;
	struct region all, part; /* of the peer's slot 0; part grants writing only */
	struct buf *b;		 /* operands, comparands, results, what is read back */
	uint8_t want[SIZE];	 /* what the slot should be */
};

#define OPERAND 0u
#define COMPARE PAGE
#define RESULT (2 * PAGE)
#define BACK (4 * PAGE)

static void scene_open(struct scene *s, struct env *e)
{
	s->f = me(e);
	s->p = target(e);
	peer_alloc(s->p, 0, SIZE, 3);
	s->all = peer_reg(s->p, 0, 0, SIZE, REMOTE_RW, 1);
	s->part = peer_reg(s->p, 0, FROM, LEN, FI_REMOTE_WRITE, 2);
	s->b = buf(e, BACK + SIZE, 1);
	pattern(s->want, 3, 0, SIZE);
	srand(5);
}

/* All of the peer's buffer, against what it should be. */
static void check_all(struct env *e, struct scene *s, const char *what)
{
	struct op op = op_make(e, READ, s->b, BACK, SIZE, &s->all, 0);
	struct done d;
	size_t i;

	op_run(s->f, &op, &d);
	must(!d.err, "reading back: %s", d.text);
	for (i = 0; i < SIZE && s->b->mem[BACK + i] == s->want[i]; i++)
		;
	must(i == SIZE, "%s: byte %zu is 0x%02x instead of 0x%02x", what, i, s->b->mem[BACK + i],
	     s->want[i]);
}

static ssize_t post(struct scene *s, const struct region *r, unsigned family, unsigned type,
		    unsigned op, size_t count, uint64_t at)
{
	uint8_t *m = s->b->mem;
	void *d = s->b->desc;
	struct fid_ep *ep = s->f->ep;
	uint64_t to = r->base + at;

	switch (family) {
	case MRF_ATOMIC_BASE:
		return fi_atomic(ep, m + OPERAND, count, d, s->p->addr, to, r->key, type, op, s);
	case MRF_ATOMIC_FETCH:
		return fi_fetch_atomic(ep, m + OPERAND, count, d, m + RESULT, d, s->p->addr, to,
				       r->key, type, op, s);
	default:
		return fi_compare_atomic(ep, m + OPERAND, count, d, m + COMPARE, d, m + RESULT, d,
					 s->p->addr, to, r->key, type, op, s);
	}
}

static struct done wait_one(struct scene *s)
{
	struct done d;

	must(fab_done(s->f, &d, SOON), "no completion");
	return d;
}

/* off: of the region in the slot, at: in the region. */
static void one(struct scene *s, const struct region *r, size_t off, unsigned family, unsigned type,
		unsigned op, size_t count, uint64_t at)
{
	size_t size = mrf_atomic_size(type), n = size * count, i;
	uint8_t old[PAGE], value[MRF_ATOMIC_MAX_SIZE], *m = s->b->mem, *there = s->want + off + at;
	struct done d;

	for (i = 0; i < n; i++) {
		m[OPERAND + i] = (uint8_t)rand();
		m[COMPARE + i] = rand() % 4 ? there[i] : (uint8_t)rand();
	}
	if (rand() % 2)
		memcpy(m + COMPARE, there, n);
	memset(m + RESULT, 0xcc, 2 * PAGE);
	memcpy(old, there, n);
	must_ok((int)post(s, r, family, type, op, count, at));
	d = wait_one(s);
	must(!d.err, "family %u, datatype %u, op %u: %s", family, type, op, d.text);
	for (i = 0; i < n; i += size) {
		if (mrf_atomic_apply(type, op, there + i, m + OPERAND + i, m + COMPARE + i, value))
			memcpy(there + i, value, size);
	}
	n = family == MRF_ATOMIC_BASE ? 0 : n;
	must(!memcmp(m + RESULT, old, n), "family %u, datatype %u, op %u: results", family, type,
	     op);
	for (i = n; i < 2 * PAGE && m[RESULT + i] == 0xcc; i++)
		;
	must(i == 2 * PAGE, "a byte too many came back");
}

static void sweep(struct env *e, struct scene *s, unsigned type)
{
	unsigned family, op;
	char what[64];

	for (family = 0; family < 3; family++) {
		for (op = 0; op < FI_ATOMIC_OP_LAST; op++) {
			if (!mrf_atomic_valid(family, type, op))
				continue;
			one(s, &s->all, 0, family, type, op, 1, 512);
			one(s, &s->all, 0, family, type, op, 3, 1028);
			one(s, &s->part, FROM, family, type, op, 2, 0);
			one(s, &s->part, FROM, family, type, op, 2,
			    LEN - 2 * mrf_atomic_size(type));
		}
	}
	snprintf(what, sizeof(what), "datatype %u", type);
	check_all(e, s, what);
}

static void sweep_all(struct env *e, unsigned first, unsigned last)
{
	static struct scene s;

	scene_open(&s, e);
	for (unsigned type = first; type <= last; type++)
		sweep(e, &s, type);
}

CASE(every_operation_on_integers_of_1_and_2_bytes)
{
	sweep_all(e, FI_INT8, FI_UINT16);
}

CASE(every_operation_on_every_other_datatype)
{
	sweep_all(e, FI_FLOAT, FI_UINT128);
}

IN_MODES(MODES_TWO | MODE(MODE_RAW_NATIVE) | MODE(MODE_ENDPOINT))

CASE(every_operation_on_integers_of_4_and_8_bytes)
{
	sweep_all(e, FI_INT32, FI_UINT64);
}

CASE(vectors_as_long_as_promised)
{
	static const unsigned types[] = { FI_UINT8, FI_UINT64, FI_LONG_DOUBLE_COMPLEX };
	static struct scene s;
	size_t count;

	scene_open(&s, e);
	for (int i = 0; i < 3; i++) {
		must_ok(fi_fetch_atomicvalid(s.f->ep, types[i], FI_SUM, &count));
		must(count * mrf_atomic_size(types[i]) == 4096, "%zu elements", count);
		one(&s, &s.all, 0, MRF_ATOMIC_FETCH, types[i], FI_SUM, count, 64);
		one(&s, &s.all, 0, MRF_ATOMIC_COMPARE, types[i], FI_CSWAP, count, 67);
	}
	check_all(e, &s, "vectors");
}

/* --- refused ------------------------------------------------------------------------------ */

/* By err, for a reason that has these words. */
static void refused(struct scene *s, const struct region *r, unsigned op, size_t count, uint64_t at,
		    int err, const char *why)
{
	struct done d;

	must_ok((int)post(s, r, MRF_ATOMIC_FETCH, FI_UINT64, op, count, at));
	d = wait_one(s);
	must(d.err == err, "err %d instead of %d: %s", d.err, err, d.text);
	must(strstr(d.text, why), "the reason \"%s\" does not say \"%s\"", d.text, why);
}

/* Where a region can be closed while its endpoint is open. */
IN_MODES(MODES_TWO | MODE(12) | MODE(MODE_RAW) | MODE(MODE_RAW_NATIVE) | MODE(MODE_NOTIFY))

CASE(refused_ones_change_nothing_and_those_around_them_are_done_once)
{
	static struct scene s;
	struct region none, closed;
	int i;

	scene_open(&s, e);
	none = peer_reg(s.p, 0, 0, PAGE, FI_REMOTE_READ, 3);
	closed = peer_reg(s.p, 0, 0, PAGE, REMOTE_RW, 4);
	for (i = 0; i < 2; i++) {
		unsigned op = i ? FI_BXOR : FI_SUM;

		one(&s, &s.all, 0, MRF_ATOMIC_FETCH, FI_UINT64, op, 1, 64);
		refused(&s, &s.part, op, 1, LEN - 7, FI_EACCES, "past the end");
		refused(&s, &s.part, op, 5, LEN - 32, FI_EACCES, "past the end");
		refused(&s, &none, op, 1, 0, FI_EACCES, "FI_REMOTE_WRITE");
		one(&s, &s.all, 0, MRF_ATOMIC_FETCH, FI_UINT64, op, 1, 64);
	}
	peer_unreg(&closed);
	for (i = 0; i < 2; i++) {
		refused(&s, &closed, i ? FI_BXOR : FI_SUM, 1, 64, FI_EKEYREJECTED, "closed");
		one(&s, &s.all, 0, MRF_ATOMIC_FETCH, FI_UINT64, i ? FI_BXOR : FI_SUM, 1, 64);
	}
	memset(s.b->mem + OPERAND, 1, PAGE);
	/* Without waiting in between: a sum, one that is refused, an agent's, a sum. */
	must_ok((int)post(&s, &s.all, MRF_ATOMIC_BASE, FI_UINT64, FI_SUM, 1, 64));
	must_ok((int)post(&s, &closed, MRF_ATOMIC_BASE, FI_UINT64, FI_SUM, 1, 64));
	must_ok((int)post(&s, &s.all, MRF_ATOMIC_BASE, FI_UINT32, FI_SUM, 2, 64));
	must_ok((int)post(&s, &s.all, MRF_ATOMIC_BASE, FI_UINT64, FI_SUM, 1, 64));
	for (i = 0; i < 4; i++) {
		struct done d = wait_one(&s);

		must(!d.err || d.err == FI_EKEYREJECTED, "err %d: %s", d.err, d.text);
	}
	for (i = 0; i < 3; i++) {
		uint64_t value, add = 0x0101010101010101ull;
		uint32_t half[2];

		memcpy(&value, s.want + 64, 8);
		memcpy(half, s.want + 64, 8);
		value += add;
		half[0] += 0x01010101u;
		half[1] += 0x01010101u;
		memcpy(s.want + 64, i == 1 ? (void *)half : (void *)&value, 8);
	}
	check_all(e, &s, "refusals");
}

/* --- counted ------------------------------------------------------------------------------ */

/* The driver's own region, reached through its own endpoint. */
struct counted {
	struct fab *f;
	fi_addr_t to;
	struct buf mem;
	struct fid_mr *mr;
	struct fid_cntr *cntr;
	struct buf *b;
};

static void counted_open(struct counted *c, struct env *e)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	uint64_t flags;

	*c = (struct counted){ .f = me(e), .b = buf(e, PAGE, 1) };
	flags = c->f->bits & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;
	c->to = fab_insert(c->f, c->f->name);
	buf_open(&c->mem, 2 * PAGE, 7);
	must_ok(fi_cntr_open(c->f->domain, &attr, &c->cntr, NULL));
	must_ok(fi_mr_reg(c->f->domain, c->mem.mem, PAGE, REMOTE_RW, 0, 9, flags, &c->mr, NULL));
	must_ok(fi_mr_bind(c->mr, &c->cntr->fid, FI_REMOTE_WRITE));
	must_ok(fi_mr_enable(c->mr));
	fab_ready(c->f, c->mr);
}

static void counted_close(struct counted *c)
{
	must_ok(fi_close(&c->cntr->fid));
	must_ok(fi_close(&c->mr->fid));
	buf_close(&c->mem);
}

/* Operands, and the value compared with in each of them, from the beginning of b. */
static int counted_do(struct counted *c, unsigned type, unsigned op, size_t count, uint64_t at)
{
	uint64_t to = (c->f->virt ? (uint64_t)(uintptr_t)c->mem.mem : 0) + at;
	uint8_t *m = c->b->mem;
	void *desc = c->b->desc;
	struct done d;

	if (op == FI_CSWAP)
		must_ok((int)fi_compare_atomic(c->f->ep, m, count, desc, m + 1024, desc, m + 2048,
					       desc, c->to, to, fi_mr_key(c->mr), type, op, c));
	else
		must_ok((int)fi_fetch_atomic(c->f->ep, m, count, desc, m + 2048, desc, c->to, to,
					     fi_mr_key(c->mr), type, op, c));
	must(fab_done(c->f, &d, SOON), "no completion");
	return d.err;
}

static void must_count(struct counted *c, uint64_t n)
{
	must_ok(fi_cntr_wait(c->cntr, n, SOON));
	nap(20);
	must(fi_cntr_read(c->cntr) == n, "counted %lu instead of %lu",
	     (unsigned long)fi_cntr_read(c->cntr), (unsigned long)n);
}

IN_MODES(MODE(MODE_EVENT) | MODE(MODE_EVENT_NATIVE) | MODE(MODE_EVENT_NOTIFY))

CASE(those_that_change_a_counted_region_count_once)
{
	struct counted c;
	uint64_t was, *there;
	int i;

	counted_open(&c, e);
	there = (uint64_t *)(void *)(c.mem.mem + 64);
	was = *there;
	memset(c.b->mem, 0, PAGE);
	c.b->mem[0] = 1;
	for (i = 0; i < 50; i++)
		must_ok(counted_do(&c, FI_UINT64, FI_SUM, 1, 64));
	must(*there == was + 50, "not all sums were done");
	must_count(&c, 50);
	/* However many elements it has, of which not all change, and whoever does it. */
	must_ok(counted_do(&c, FI_UINT8, FI_BXOR, 500, 65));
	must_count(&c, 51);
	memcpy(c.b->mem + 1024, there, 8);
	must_ok(counted_do(&c, FI_UINT64, FI_CSWAP, 1, 64));
	must(*there == 1, "not swapped");
	must_count(&c, 52);
	/* What stores nothing, what only reads, and what is refused. */
	must_ok(counted_do(&c, FI_UINT64, FI_CSWAP, 1, 64));
	must_ok(counted_do(&c, FI_UINT64, FI_ATOMIC_READ, 20, 64));
	must_ok(counted_do(&c, FI_UINT16, FI_ATOMIC_READ, 20, 64));
	must_ok(counted_do(&c, FI_UINT64, FI_MAX, 1, 64));
	must_be(counted_do(&c, FI_UINT64, FI_SUM, 1, PAGE - 4), FI_EACCES);
	must(*there == 1, "changed");
	must_count(&c, 52);
	fab_quiet(c.f);
	counted_close(&c);
}

/* --- at once ------------------------------------------------------------------------------ */

IN_MODES(MODES_TWO | MODE(12) | MODE(MODE_RAW_NATIVE) | MODE(MODE_NOTIFY))

#define SUMS 400
#define HALVES 150

struct hand {
	struct scene *s;
	struct fid_ep *ep;
	struct fid_cq *cq;
	bool halves;
	int bad;
};

static bool take_one(struct hand *h)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	do {
		ret = fi_cq_read(h->cq, &entry, 1);
	} while (ret == -FI_EAGAIN);
	return ret == 1;
}

/* 2^32 each to the whole word, or 1 to its lower and 3 to its upper half. */
static void *hammer(void *arg)
{
	struct hand *h = arg;
	struct scene *s = h->s;
	uint64_t whole = 1ull << 32;
	uint32_t low = 1, high = 3;
	int i, n = h->halves ? HALVES : SUMS;

	for (i = 0; i < n; i++) {
		uint64_t to = s->all.base + 64 + (h->halves && i % 2 ? 4 : 0);
		const void *operand = !h->halves ? (void *)&whole : i % 2 ? &high : &low;
		ssize_t ret;

		do {
			ret = fi_inject_atomic(h->ep, operand, 1, s->p->addr, to, s->all.key,
					       h->halves ? FI_UINT32 : FI_UINT64, FI_SUM);
		} while (ret == -FI_EAGAIN);
		h->bad += ret != 0;
	}
	/* It tells when all are done. */
	h->bad += fi_fetch_atomic(h->ep, NULL, 1, NULL, s->b->mem + RESULT + (h->halves ? 8 : 0),
				  s->b->desc, s->p->addr, s->all.base + 64, s->all.key, FI_UINT64,
				  FI_ATOMIC_READ, NULL) != 0;
	h->bad += !take_one(h);
	return NULL;
}

static struct fid_ep *another(struct fab *f, struct fid_cq **cq)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA };
	struct fid_ep *ep;

	must_ok(fi_cq_open(f->domain, &attr, cq, NULL));
	must_ok(fi_endpoint(f->domain, f->info, &ep, NULL));
	must_ok(fi_ep_bind(ep, &f->av->fid, 0));
	must_ok(fi_ep_bind(ep, &(*cq)->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(ep));
	return ep;
}

CASE(sums_by_the_device_and_halves_by_the_agent_lose_nothing)
{
	static struct scene s;
	struct hand h[2] = { { .s = &s }, { .s = &s, .halves = true } };
	pthread_t thread[2];
	uint32_t word[2];
	int i;

	scene_open(&s, e);
	for (i = 0; i < 2; i++)
		h[i].ep = another(s.f, &h[i].cq);
	memcpy(word, s.want + 64, 8);
	for (i = 0; i < 2; i++)
		must(!pthread_create(&thread[i], NULL, hammer, &h[i]), "no thread");
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	must(!h[0].bad && !h[1].bad, "%d and %d calls failed", h[0].bad, h[1].bad);
	word[0] += (HALVES + 1) / 2;
	word[1] += SUMS + HALVES / 2 * 3;
	memcpy(s.want + 64, word, 8);
	check_all(e, &s, "sums and halves");
	for (i = 0; i < 2; i++) {
		must_ok(fi_close(&h[i].ep->fid));
		must_ok(fi_close(&h[i].cq->fid));
	}
}

/* --- a peer that goes ---------------------------------------------------------------------- */

IN_MODES(MODE(15))

CASE(operations_of_a_killed_peer_end_in_time)
{
	static struct scene s;
	long begin;
	int i;

	scene_open(&s, e);
	one(&s, &s.all, 0, MRF_ATOMIC_FETCH, FI_UINT32, FI_SUM, 1, 64);
	must_ok((int)post(&s, &s.all, MRF_ATOMIC_FETCH, FI_UINT64, FI_BXOR, 512, 64));
	must_ok((int)post(&s, &s.all, MRF_ATOMIC_FETCH, FI_UINT64, FI_SUM, 1, 64));
	begin = now_ms();
	peer_kill(s.p);
	for (i = 0; i < 2; i++)
		wait_one(&s);
	must(now_ms() - begin < 10000, "%ld ms", now_ms() - begin);
}
