/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions of a domain that is bound to an event queue with FI_REG_MR. The driver owns
 * them; the peer reads and writes.
 */
#include <time.h>
#include <unistd.h>
#include "harness.h"

#define SIZE (4 * PAGE)
#define MIB (1ul << 20)
#define KEY 0x77 /* where keys are the application's */

struct scene {
	struct fab f;	/* of this case alone: the domain is bound */
	struct peer *p; /* the initiator; its slot 0 is filled with 5 */
	fi_addr_t to;
	struct buf mem;
};

static int context; /* its address */

static void scene_open(struct scene *s, struct env *e)
{
	struct fab_opt opt = { .async = true };

	s->p = target(e);
	fab_open(&s->f, e->mode, &opt);
	s->to = peer_insert(s->p, s->f.name, s->f.name_len);
	peer_alloc(s->p, 0, PAGE, 5);
	buf_open(&s->mem, SIZE, 1);
}

static void scene_close(struct scene *s)
{
	fab_close(&s->f);
	buf_close(&s->mem);
}

/* --- regions and their events ----------------------------------------------------- */

static struct fid_mr *reg(struct scene *s, void *mem, size_t len, uint64_t key)
{
	struct fid_mr *mr = NULL;

	must_ok(fi_mr_reg(s->f.domain, mem, len, REMOTE_RW, 0, key, 0, &mr, &context));
	must(mr, "fi_mr_reg has returned and there is no region");
	return mr;
}

static void must_complete(struct scene *s, struct fid_mr *mr)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event = 0;
	ssize_t rc;

	rc = fi_eq_sread(s->f.eq, &event, &entry, sizeof(entry), SOON, 0);
	must(rc == sizeof(entry), "no event: %zd (%s)", rc, fi_strerror((int)-rc));
	must(event == FI_MR_COMPLETE, "event %u", event);
	must(entry.fid == &mr->fid, "an event of another region");
	must(entry.context == &context, "an event with another context");
}

static bool is_silent(struct scene *s)
{
	struct fi_eq_entry entry;
	uint32_t event;

	return fi_eq_read(s->f.eq, &event, &entry, sizeof(entry), FI_PEEK) == -FI_EAGAIN;
}

/* A write of the peer to 100 bytes of mem. */
static int access_by_key(struct scene *s, size_t off, uint64_t key)
{
	struct peer_rma rma = { false, 0, 0, 100, s->to, 0, key, 1 };
	int err;

	rma.addr = (s->f.virt ? (uint64_t)(uintptr_t)s->mem.mem : 0) + off;
	err = peer_rma(s->p, &rma);
	if (!err)
		buf_want(&s->mem, off, 100, 5, 0);
	must(!buf_diff(&s->mem), "own memory: %s", buf_diff(&s->mem));
	return err;
}

IN_MODES(MODES_TWO | modes_with(FI_MR_ALLOCATED) | MODE(MODE_NOTIFY) | MODE(MODE_NOTIFY_ALLOC) |
	 MODE(MODE_ENDPOINT))

CASE(region_is_reached_after_its_event)
{
	struct fid_mr *mr;
	struct scene s;

	scene_open(&s, e);
	mr = reg(&s, s.mem.mem, SIZE, KEY);
	must_complete(&s, mr);
	fab_ready(&s.f, mr);
	must(fi_mr_key(mr) != FI_KEY_NOTAVAIL, "no key");
	must(fi_mr_desc(mr), "no descriptor");
	must_ok(access_by_key(&s, 50, fi_mr_key(mr)));
	must_ok(access_by_key(&s, SIZE - 100, fi_mr_key(mr)));
	must(is_silent(&s), "an event too many");
	must_ok(fab_mr_close(&s.f, mr));
	scene_close(&s);
}

/* --- while the kernel is busy ----------------------------------------------------- */

/* Memory that is there, in small pages, so that the kernel takes its time over pinning
 * it. */
static void *large_map(size_t len)
{
	unsigned char *mem = mmap(NULL, len, RW, ANON, -1, 0);

	must(mem != MAP_FAILED, "mmap of %zu MiB", len / MIB);
	madvise(mem, len, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < len; i += PAGE)
		mem[i] = 1;
	return mem;
}

#define CROWD 1024

/* Regions of the same large memory, and one that waits behind them. */
struct crowd {
	void *mem;
	unsigned n;
	struct fid_mr *large[CROWD];
	struct fid_mr *mr;
};

static void crowd_in(struct scene *s, struct crowd *c, unsigned n)
{
	c->mem = large_map(64 * MIB);
	for (c->n = 0; c->n < n; c->n++)
		c->large[c->n] = reg(s, c->mem, 64 * MIB, KEY + 1 + c->n);
	c->mr = reg(s, s->mem.mem, SIZE, KEY);
}

/* Most of them have not had their turn, or their events have not been read. */
static void crowd_out(struct crowd *c)
{
	while (c->n)
		must_ok(fi_close(&c->large[--c->n]->fid));
	must_ok(munmap(c->mem, 64 * MIB));
}

typedef void look_fn(struct scene *s, struct crowd *c);

/* False: the machine was too fast, the region was not pending all the time. */
static bool look_while_pending(struct scene *s, unsigned n, look_fn *look)
{
	static struct crowd c;
	bool pending;

	crowd_in(s, &c, n);
	look(s, &c);
	pending = fi_mr_key(c.mr) == FI_KEY_NOTAVAIL;
	crowd_out(&c);
	must_complete(s, c.mr);
	must_ok(access_by_key(s, 300, fi_mr_key(c.mr)));
	must_ok(fi_close(&c.mr->fid));
	return pending;
}

static void look_for_long_enough(struct scene *s, look_fn *look)
{
	unsigned n = 4;

	while (!look_while_pending(s, n, look)) {
		n *= 2;
		must(n <= CROWD, "so much is pinned sooner than anybody can look");
	}
}

/* What was seen; it counts only if the region was pending. */
static int seen_err, seen_calls[3];
static bool seen_key;

static void look_by_peer(struct scene *s, struct crowd *c)
{
	(void)c;
	seen_err = access_by_key(s, 200, KEY);
}

static void look_by_calls(struct scene *s, struct crowd *c)
{
	uint8_t raw[1024];
	size_t size = sizeof(raw);
	uint64_t base;

	(void)s;
	seen_key = fi_mr_key(c->mr) != FI_KEY_NOTAVAIL || fi_mr_desc(c->mr);
	seen_calls[0] = fi_mr_enable(c->mr);
	seen_calls[1] = fi_mr_refresh(c->mr, NULL, 0, 0);
	seen_calls[2] = fi_mr_raw_attr(c->mr, &base, raw, &size, 0);
}

/* The keys of these modes are known to the peer before the region is there. */
IN_MODES(MODE(4) | MODE(6))

CASE(pending_region_is_answered_as_not_enabled)
{
	struct fid_mr *mr;
	struct scene s;

	scene_open(&s, e);
	/* The connection is made by another one. */
	mr = reg(&s, s.mem.mem, SIZE, KEY - 1);
	must_complete(&s, mr);
	must_ok(access_by_key(&s, 50, KEY - 1));
	look_for_long_enough(&s, look_by_peer);
	must_be(seen_err, FI_EACCES);
	must_ok(fi_close(&mr->fid));
	scene_close(&s);
}

IN_MODES(MODE(4) | MODE(15))

CASE(pending_region_has_no_key_and_takes_no_calls)
{
	struct scene s;

	scene_open(&s, e);
	log_mark();
	look_for_long_enough(&s, look_by_calls);
	must(!seen_key, "a pending region shows its key or its descriptor");
	for (int i = 0; i < 3; i++)
		must_be(seen_calls[i], -FI_EOPBADSTATE);
	must(log_has("MRF-E3250"), "no line says why");
	scene_close(&s);
}

CASE(pending_regions_close_and_leave_nothing)
{
	int before = kernel_objects((uint64_t)getpid(), "mr");
	static struct crowd c;
	struct scene s;

	scene_open(&s, e);
	/* Those that wait, and the one that the kernel is at. */
	crowd_in(&s, &c, 20);
	must_ok(fi_close(&c.mr->fid));
	crowd_out(&c);
	must(is_silent(&s), "an event of a region that is closed");
	/* The key and the thread are there for the next. */
	c.mr = reg(&s, s.mem.mem, SIZE, KEY);
	must_complete(&s, c.mr);
	must_ok(access_by_key(&s, 50, fi_mr_key(c.mr)));
	must_ok(fi_close(&c.mr->fid));
	scene_close(&s);
	must(kernel_objects((uint64_t)getpid(), "mr") == before,
	     "the kernel has %d regions instead of %d", kernel_objects((uint64_t)getpid(), "mr"),
	     before);
}

CASE(memory_that_is_not_there_is_an_error_event_with_its_reason)
{
	char text[300] = "";
	struct fi_eq_err_entry err = { .err_data = text, .err_data_size = sizeof(text) };
	struct fid_mr *mr, *other;
	struct fi_eq_entry entry;
	uint32_t event;
	struct scene s;

	scene_open(&s, e);
	log_mark();
	mr = reg(&s, (void *)far_hole(SIZE), SIZE, KEY);
	other = reg(&s, s.mem.mem, SIZE, KEY + 1);
	must_be(fi_eq_sread(s.f.eq, &event, &entry, sizeof(entry), SOON, 0), -FI_EAVAIL);
	must_be(fi_eq_readerr(s.f.eq, &err, 0), sizeof(err));
	must(err.fid == &mr->fid && err.context == &context, "of another region");
	must_be(err.err, FI_EFAULT);
	must(strstr(text, "not mapped"), "err_data: %s", text);
	must(log_has("not mapped"), "no line says why");
	must(fi_mr_key(mr) == FI_KEY_NOTAVAIL && !fi_mr_desc(mr), "it has a key");
	must_complete(&s, other);
	must_ok(access_by_key(&s, 50, fi_mr_key(other)));
	must_ok(fi_close(&mr->fid));
	must_ok(access_by_key(&s, 500, fi_mr_key(other)));
	must_ok(fi_close(&other->fid));
	scene_close(&s);
}

/* --- how long the call takes ------------------------------------------------------- */

#define LARGE (1024 * MIB)
#define TRIES 15

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t time_reg(struct fid_domain *domain, void *mem, struct fid_mr **mr)
{
	uint64_t start = now_ns();

	must_ok(fi_mr_reg(domain, mem, LARGE, REMOTE_RW, 0, KEY, 0, mr, &context));
	return now_ns() - start;
}

/* Anything may take this process's turn from it: the best of many. */
static uint64_t time_async(struct scene *s, void *mem, uint64_t wait)
{
	uint64_t best = UINT64_MAX, start, ns;
	unsigned pending = 0;
	struct fid_mr *mr;

	for (int i = 0; i < TRIES; i++) {
		start = now_ns();
		ns = time_reg(s->f.domain, mem, &mr);
		best = ns < best ? ns : best;
		if (fi_mr_key(mr) == FI_KEY_NOTAVAIL)
			pending++;
		else
			must(now_ns() - start > wait / 10, "it is not pending");
		must_complete(s, mr);
		must_ok(fi_close(&mr->fid));
	}
	must(pending, "it was never pending");
	return best;
}

IN_MODES(MODE(4))

CASE(call_for_1_gib_takes_less_than_a_hundredth_of_the_synchronous_one)
{
	uint64_t wait, call;
	struct fid_mr *mr;
	struct scene s;
	void *mem;

	mem = large_map(LARGE);
	wait = time_reg(me(e)->domain, mem, &mr);
	must_ok(fi_close(&mr->fid));
	scene_open(&s, e);
	call = time_async(&s, mem, wait);
	must(call * 100 < wait, "the call takes %llu ns, the synchronous one %llu",
	     (unsigned long long)call, (unsigned long long)wait);
	printf("# 1 GiB: the call takes 1/%llu of the synchronous one (%llu us, %llu "
	       "us)\n",
	       (unsigned long long)(wait / call), (unsigned long long)call / 1000,
	       (unsigned long long)wait / 1000);
	scene_close(&s);
	must_ok(munmap(mem, LARGE));
}
