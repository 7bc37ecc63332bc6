/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device.h"
#undef dev_open
#undef dev_close
#undef dev_same
#undef dev_same_outside
#undef dev_reg
#undef scene_open
#undef scene_close
#undef scene_drop
#undef scene_works
#undef AT
#define AT(call) (call)

const struct rig *rig;
struct rig_control control;

static void __attribute__((constructor)) with_devices(void)
{
	env_own.hmem = true;
	func_caps |= FI_ATOMIC;
}

void device_cases(const char *name, const char *file, void (*run)(struct env *))
{
	static const char *const runtimes[RIGS] = { "cuda", "rocr", "ze" };
	static const unsigned most[RIGS] = { ~0u, MODE(0), MODE(15) };
	unsigned set = case_modes(0);
	char *label;

	for (unsigned i = 0; i < RIGS; i++) {
		(void)case_modes(set & most[i] ? set & most[i] : set);
		if (asprintf(&label, "%s_%s", name, runtimes[i]) < 0)
			abort();
		case_group(i);
		case_add_number(label, file, run, i);
	}
	(void)case_modes(set);
}

void device_load(void)
{
	if (!rig)
		rig = rig_load((int)case_number, &control);
}

/* --- allocations ----------------------------------------------------------------------- */

void *dev_alloc(enum rt_kind kind, size_t size)
{
	void *mem = rig->make(kind, DEVICE, size);

	must(mem, "the runtime has no memory");
	return mem;
}

struct fi_mr_attr dev_attr(const struct iovec *iov, uint64_t access)
{
	static uint64_t key = 0xdeull << 32;
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 1, .access = access, .requested_key = key++
	};

	rig_attr(rig, DEVICE, &attr);
	return attr;
}

int dev_regattr(struct fab *f, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	int rc = fi_mr_regattr(f->domain, attr, flags, mr);

	if (!rc)
		fab_ready(f, *mr);
	return rc;
}

int dev_reg(struct fab *f, void *mem, size_t len, uint64_t access, uint64_t flags,
	    struct fid_mr **mr)
{
	struct iovec iov = { mem, len };
	struct fi_mr_attr attr = dev_attr(&iov, access);

	return dev_regattr(f, &attr, flags, mr);
}

void dev_fill(struct dev *d, uint64_t seed)
{
	buf_fill(&d->b, seed);
}

void dev_open(struct fab *f, struct dev *d, enum rt_kind kind, size_t size, uint64_t seed)
{
	*d = (struct dev){ .kind = kind };
	d->b.size = size;
	d->b.rig = rig;
	d->b.fab = f;
	d->b.mem = dev_alloc(kind, size);
	d->b.want = malloc(size);
	must(d->b.want, "no memory");
	dev_fill(d, seed);
	must_ok(dev_reg(f, d->b.mem, size,
			FI_READ | FI_WRITE | (func_caps & FI_MSG ? FI_SEND | FI_RECV : 0), 0,
			&d->b.mr));
	d->b.desc = fi_mr_desc(d->b.mr);
	must(d->b.desc, "fi_mr_desc of a region of device memory is NULL");
}

void dev_close(struct dev *d)
{
	must_ok(fab_mr_close(d->b.fab, d->b.mr));
	if (d->b.mem)
		rig->unmake(d->kind, d->b.mem);
	free(d->b.want);
	*d = (struct dev){ 0 };
}

void dev_same_outside(const struct dev *d, size_t off, size_t len)
{
	const char *text = buf_diff_outside(&d->b, off, len);

	must(!text, "device memory: %s", text);
}

void dev_same(const struct dev *d)
{
	dev_same_outside(d, 0, 0);
}

void dev_put(struct dev *d, size_t off, const void *bytes, size_t len)
{
	memcpy(d->b.want + off, bytes, len);
	buf_put(&d->b, off, bytes, len);
}

/* --- scenes ------------------------------------------------------------------------------ */

void scene_open(struct scene *s, struct env *e, size_t size)
{
	*s = (struct scene){ .e = e, .f = me(e), .t = target(e) };
	dev_open(s->f, &s->d, RT_DEVICE, size, 1);
	peer_alloc(s->t, 0, size + 2 * MARGIN, 2);
	s->r = peer_reg(s->t, 0, MARGIN, size, REMOTE_RW, 3);
}

void scene_drop(struct scene *s)
{
	fab_quiet(s->f);
	peer_unreg(&s->r);
	dev_close(&s->d);
}

void scene_close(struct scene *s)
{
	dev_same(&s->d);
	peer_same(s->t, 0);
	scene_drop(s);
}

const char *const call_names[CALLS] = { "fi_write", "fi_writev", "fi_writemsg",
					"fi_read",  "fi_readv",	 "fi_readmsg" };

ssize_t scene_call(struct scene *s, unsigned which, void *p, size_t len, void *desc, size_t at)
{
	struct iovec iov = { p, len };
	struct fi_rma_iov rma = { s->r.base + at, len, s->r.key };
	fi_addr_t to = s->t->addr;
	struct fi_msg_rma m = { &iov, &desc, 1, to, &rma, 1, s, 0 };

	switch (which) {
	case 0:
		return fi_write(s->f->ep, p, len, desc, to, rma.addr, rma.key, s);
	case 1:
		return fi_writev(s->f->ep, &iov, &desc, 1, to, rma.addr, rma.key, s);
	case 2:
		return fi_writemsg(s->f->ep, &m, FI_COMPLETION);
	case 3:
		return fi_read(s->f->ep, p, len, desc, to, rma.addr, rma.key, s);
	case 4:
		return fi_readv(s->f->ep, &iov, &desc, 1, to, rma.addr, rma.key, s);
	default:
		return fi_readmsg(s->f->ep, &m, FI_COMPLETION);
	}
}

void scene_works(struct scene *s)
{
	dev_fill(&s->d, 1);
	peer_fill(s->t, 0, 2);
	access_ok(s->e, WRITE, &s->d.b, 5, 3000, &s->r, 5);
	peer_same(s->t, 0);
	access_ok(s->e, READ, &s->d.b, 3101, 500, &s->r, 3101);
	dev_same(&s->d);
}
