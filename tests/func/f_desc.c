/* SPDX-License-Identifier: BSD-2-Clause */
/* Local buffers: descriptors where FI_MR_LOCAL is in force, none needed where it is not.
 */
#include <sys/mman.h>
#include "harness.h"

struct scene {
	struct env *e;
	struct peer *t;
	struct buf *b; /* with its whole-buffer region when FI_MR_LOCAL */
	struct region r;
};

static void scene_open(struct scene *s, struct env *e)
{
	*s = (struct scene){ .e = e, .t = target(e), .b = buf(e, 4 * 4096, 1) };
	peer_alloc(s->t, 0, 4 * 4096, 2);
	s->r = peer_reg(s->t, 0, 9, 16000, REMOTE_RW, 3);
}

/* Every call that takes a descriptor, with this one for len bytes at p. */
static ssize_t call(struct scene *s, int which, void *p, size_t len, void *desc)
{
	struct fid_ep *ep = me(s->e)->ep;
	struct iovec iov = { p, len };
	struct fi_rma_iov rma = { s->r.base, len, s->r.key };
	fi_addr_t to = s->t->addr;
	struct fi_msg_rma m = { &iov, &desc, 1, to, &rma, 1, s, 0 };

	switch (which) {
	case 0:
		return fi_write(ep, p, len, desc, to, rma.addr, rma.key, s);
	case 1:
		return fi_writev(ep, &iov, &desc, 1, to, rma.addr, rma.key, s);
	case 2:
		return fi_writemsg(ep, &m, FI_COMPLETION);
	case 3:
		return fi_read(ep, p, len, desc, to, rma.addr, rma.key, s);
	case 4:
		return fi_readv(ep, &iov, &desc, 1, to, rma.addr, rma.key, s);
	default:
		return fi_readmsg(ep, &m, FI_COMPLETION);
	}
}

/* Refused by every call, with a line that says why, and nothing moves. */
static void refused(struct scene *s, void *p, size_t len, void *desc, int err)
{
	for (int i = 0; i < 6; i++) {
		log_mark();
		must_be(call(s, i, p, len, desc), err);
		must(log_has("MRF-E"), "call %d: no line says why", i);
	}
	nap(5);
	fab_quiet(me(s->e));
	peer_same(s->t, 0);
	buf_same(s->b);
}

static void works(struct scene *s)
{
	access_ok(s->e, WRITE, s->b, 100, 500, &s->r, 50);
	peer_same(s->t, 0);
}

static void *desc_of(struct scene *s, void *p, size_t len, uint64_t access, struct fid_mr **mr)
{
	static uint64_t key = 5000;

	must_ok(fi_mr_reg(me(s->e)->domain, p, len, access, 0, key++, 0, mr, NULL));
	return fi_mr_desc(*mr);
}

IN_MODES(modes_with(FI_MR_LOCAL))

CASE(missing_descriptor_is_refused)
{
	struct scene s;

	scene_open(&s, e);
	refused(&s, s.b->mem, 100, NULL, -FI_EINVAL);
	works(&s);
}

CASE(garbage_descriptor_is_refused)
{
	static const uintptr_t garbage[] = { 1, 8, 0x1234567890abcdef, UINTPTR_MAX };
	struct scene s;
	int local;

	scene_open(&s, e);
	for (int i = 0; i < 4; i++)
		refused(&s, s.b->mem, 100, (void *)garbage[i], -FI_EINVAL);
	refused(&s, s.b->mem, 100, &local, -FI_EINVAL);
	refused(&s, s.b->mem, 100, s.b->mr, -FI_EINVAL);
	refused(&s, s.b->mem, 100, (char *)s.b->desc + 1, -FI_EINVAL);
	works(&s);
}

CASE(stale_descriptor_is_refused)
{
	struct scene s;
	struct fid_mr *mr, *next;
	void *desc;

	scene_open(&s, e);
	desc = desc_of(&s, s.b->mem, 4096, FI_READ | FI_WRITE, &mr);
	must_ok(call(&s, 0, s.b->mem, 10, desc));
	fab_wait_ok(me(e), 1);
	peer_want(s.t, 0, s.r.off, 10, 1, 0);
	must_ok(fi_close(&mr->fid));
	refused(&s, s.b->mem, 100, desc, -FI_EINVAL);
	desc_of(&s, s.b->mem, 4096, FI_READ | FI_WRITE, &next);
	refused(&s, s.b->mem, 100, desc, -FI_EINVAL);
	must_ok(fi_close(&next->fid));
	works(&s);
}

IN_MODES(MODES_TWO &modes_with(FI_MR_LOCAL))

CASE(foreign_descriptor_is_refused)
{
	static const struct fab_opt opt;
	struct fab other;
	struct buf b;
	struct scene s;

	scene_open(&s, e);
	fab_open(&other, e->mode, &opt);
	fab_buf(&other, &b, 4096, 1);
	refused(&s, b.mem, 100, b.desc, -FI_EINVAL);
	fab_buf_close(&b);
	fab_close(&other);
	works(&s);
}

CASE(buffer_outside_the_descriptors_region_is_refused)
{
	struct scene s;
	struct fid_mr *mr;
	void *desc;

	scene_open(&s, e);
	desc = desc_of(&s, s.b->mem + 1000, 500, FI_READ | FI_WRITE, &mr);
	refused(&s, s.b->mem + 999, 10, desc, -FI_EINVAL);
	refused(&s, s.b->mem + 1491, 10, desc, -FI_EINVAL);
	refused(&s, s.b->mem + 8000, 10, desc, -FI_EINVAL);
	must_ok(call(&s, 0, s.b->mem + 1490, 10, desc));
	fab_wait_ok(me(e), 1);
	peer_want(s.t, 0, s.r.off, 10, 1, 1490);
	must_ok(fi_close(&mr->fid));
	works(&s);
}

CASE(descriptor_without_the_local_right_is_refused)
{
	struct scene s;
	struct fid_mr *mr;
	void *desc;

	scene_open(&s, e);
	desc = desc_of(&s, s.b->mem, 4096, FI_READ, &mr);
	for (int i = 0; i < 3; i++)
		must_be(call(&s, i, s.b->mem, 100, desc), -FI_EACCES);
	must(log_has("FI_WRITE"), "no line names the missing right");
	must_ok(fi_close(&mr->fid));
	desc = desc_of(&s, s.b->mem, 4096, FI_WRITE, &mr);
	for (int i = 3; i < 6; i++)
		must_be(call(&s, i, s.b->mem, 100, desc), -FI_EACCES);
	must(log_has("FI_READ"), "no line names the missing right");
	must_ok(fi_close(&mr->fid));
	buf_same(s.b);
	works(&s);
}

CASE(each_local_right_serves_its_calls)
{
	struct scene s;
	struct fid_mr *w, *r;
	void *dw, *dr;

	scene_open(&s, e);
	dr = desc_of(&s, s.b->mem + 8192, 4096, FI_READ, &r);
	dw = desc_of(&s, s.b->mem, 4096, FI_WRITE, &w);
	for (int i = 3; i < 6; i++) {
		must_ok(call(&s, i, s.b->mem + 8192, 100, dr));
		fab_wait_ok(me(e), 1);
	}
	buf_want(s.b, 8192, 100, 2, s.r.off);
	buf_same(s.b);
	for (int i = 0; i < 3; i++) {
		must_ok(call(&s, i, s.b->mem, 100, dw));
		fab_wait_ok(me(e), 1);
	}
	peer_want(s.t, 0, s.r.off, 100, 1, 0);
	peer_same(s.t, 0);
	must_ok(fi_close(&r->fid));
	must_ok(fi_close(&w->fid));
}

/* FI_WRITE reads the buffer only: memory that the process may not write will do. */
CASE(source_may_be_read_only_memory)
{
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct scene s;
	struct fid_mr *mr;
	void *desc;

	scene_open(&s, e);
	must(p != MAP_FAILED, "mmap");
	pattern(p, 50, 0, 4096);
	must(!mprotect(p, 4096, PROT_READ), "mprotect");
	desc = desc_of(&s, p, 4096, FI_WRITE, &mr);
	must_ok(call(&s, 0, p, 4096, desc));
	fab_wait_ok(me(e), 1);
	peer_want(s.t, 0, s.r.off, 4096, 50, 0);
	peer_same(s.t, 0);
	must_ok(fi_close(&mr->fid));
	munmap(p, 4096);
}

/* The kernel objects behind unregistered or registered local buffers grant a peer
 * nothing. */
CASE(region_for_local_use_has_no_key_for_peers)
{
	struct buf *b = buf(e, 4096, 1);
	struct scene s;
	struct op op;
	struct done d;

	scene_open(&s, e);
	op = (struct op){ true,
			  s.b,
			  0,
			  100,
			  fab_insert(me(e), me(e)->name),
			  me(e)->virt ? (uintptr_t)b->mem : 0,
			  fi_mr_key(b->mr),
			  b };
	op_run(me(e), &op, &d);
	must(d.err == FI_EKEYREJECTED || d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	buf_same(s.b);
}

IN_MODES(modes_without(FI_MR_LOCAL))

CASE(descriptor_is_ignored_where_none_is_needed)
{
	static const uintptr_t values[] = { 0, 1, 0x1234567890abcdef, UINTPTR_MAX };
	struct scene s;

	scene_open(&s, e);
	for (int v = 0; v < 4; v++) {
		for (int i = 0; i < 6; i++) {
			must_ok(call(&s, i, s.b->mem + (i < 3 ? 0 : 8192), 100, (void *)values[v]));
			fab_wait_ok(me(e), 1);
			if (i < 3)
				peer_want(s.t, 0, s.r.off, 100, 1, 0);
			else
				buf_want(s.b, 8192, 100, 1, 0);
		}
	}
	peer_same(s.t, 0);
	buf_same(s.b);
}

/* Buffers on the stack, in program text, in a page that is unmapped right afterwards. */
CASE(unregistered_local_memory_of_any_kind)
{
	static const char text[600] = "bytes of the program itself";
	uint8_t stack[600];
	uint8_t *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct scene s;

	scene_open(&s, e);
	must(page != MAP_FAILED, "mmap");
	pattern(page, 50, 0, 4096);
	must_ok(call(&s, 0, page, 4096, NULL));
	fab_wait_ok(me(e), 1);
	munmap(page, 4096);
	peer_want(s.t, 0, s.r.off, 4096, 50, 0);
	peer_same(s.t, 0);
	must_ok(call(&s, 3, stack, sizeof(stack), NULL));
	fab_wait_ok(me(e), 1);
	pattern(s.b->mem, 50, 0, 600);
	must(!memcmp(stack, s.b->mem, 600), "other bytes on the stack");
	must_ok(call(&s, 0, (void *)text, sizeof(text), NULL));
	fab_wait_ok(me(e), 1);
	must_ok(call(&s, 3, stack, sizeof(stack), NULL));
	fab_wait_ok(me(e), 1);
	must(!memcmp(stack, text, sizeof(text)), "other bytes of the program");
}

/* What is read into memory that is not there: at once where it is to be pinned. */
static void unreadable(struct scene *s, void *p, size_t len)
{
	ssize_t ret = call(s, 3, p, len, NULL);
	struct done d;

	if (ret == -FI_EFAULT)
		return;
	must_ok(ret);
	must(fab_done(me(s->e), &d, 5000), "no completion");
	must(d.err == FI_EFAULT, "err %d, %s", d.err, d.text);
}

/* As an error, not as a signal: here, what the call copies is NULL or close to it. */
CASE(local_memory_that_is_not_there)
{
	static const size_t lens[] = { 64, 3000, 8192, 20000 };
	uint8_t *read_only = mmap(NULL, 20000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct scene s;

	scene_open(&s, e);
	must(read_only != MAP_FAILED, "mmap");
	for (size_t i = 0; i < 4; i++) {
		must_be(call(&s, 0, NULL, lens[i], NULL), -FI_EFAULT);
		must_be(call(&s, 1, (void *)0x1000, lens[i], NULL), -FI_EFAULT);
		unreadable(&s, NULL, lens[i]);
		unreadable(&s, read_only, lens[i]);
	}
	must_be(fi_inject_write(me(e)->ep, NULL, 64, s.t->addr, s.r.base, s.r.key), -FI_EFAULT);
	fab_quiet(me(e));
	peer_same(s.t, 0);
	works(&s);
	munmap(read_only, 20000);
}

/* The same address, other memory behind it: what is read now counts. */
CASE(local_address_mapped_anew)
{
	struct scene s;
	uint8_t *p = NULL;

	scene_open(&s, e);
	for (uint64_t i = 0; i < 20; i++) {
		uint8_t *q = mmap(p, 8192, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | (p ? MAP_FIXED : 0), -1, 0);

		must(q != MAP_FAILED, "mmap");
		p = q;
		pattern(p, 60 + i, 0, 8192);
		must_ok(call(&s, 0, p, 8192, NULL));
		fab_wait_ok(me(e), 1);
		peer_want(s.t, 0, s.r.off, 8192, 60 + i, 0);
		peer_same(s.t, 0);
	}
	munmap(p, 8192);
}
