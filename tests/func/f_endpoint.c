/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MR_ENDPOINT: regions belong to endpoints. The driver owns them here, and has two
 * endpoints; the peer reads and writes.
 */
#include "harness.h"

#define SIZE (4 * PAGE)

struct scene {
	struct fab *f;
	struct peer *p; /* the initiator; its slot 0 is filled with 5 */
	struct fid_ep *second;
	fi_addr_t to[2]; /* the driver's endpoints, as the peer calls them */
	struct buf mem;
	struct fid_mr *mr;
};

/* In the same domain, with the same queues. */
static struct fid_ep *open_second(struct scene *s)
{
	char name[NAME_LEN];
	size_t len = sizeof(name);
	struct fid_ep *ep;

	must_ok(fi_endpoint(s->f->domain, s->f->info, &ep, NULL));
	must_ok(fi_ep_bind(ep, &s->f->av->fid, 0));
	must_ok(fi_ep_bind(ep, &s->f->cq->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(ep));
	must_ok(fi_getname(&ep->fid, name, &len));
	s->to[1] = peer_insert(s->p, name, len);
	return ep;
}

static void scene_open(struct scene *s, struct env *e)
{
	*s = (struct scene){ .f = me(e), .p = target(e) };
	s->to[0] = peer_insert(s->p, s->f->name, s->f->name_len);
	peer_alloc(s->p, 0, PAGE, 5);
	s->second = open_second(s);
	buf_open(&s->mem, SIZE, 1);
	must_ok(fi_mr_reg(s->f->domain, s->mem.mem, SIZE, REMOTE_RW, 0, 0, 0, &s->mr, NULL));
}

/* The second endpoint goes, and with it what holds the region. */
static void scene_close(struct scene *s)
{
	must_ok(fi_close(&s->second->fid));
	must_ok(fi_close(&s->mr->fid));
	buf_close(&s->mem);
}

static int access_by(struct scene *s, int ep, size_t off)
{
	struct peer_rma rma = { false, 0, 0, 100, s->to[ep], 0, fi_mr_key(s->mr), 1 };
	int err;

	rma.addr = (s->f->virt ? (uint64_t)(uintptr_t)s->mem.mem : 0) + off;
	err = peer_rma(s->p, &rma);
	if (!err)
		buf_want(&s->mem, off, 100, 5, 0);
	must(!buf_diff(&s->mem), "own memory: %s", buf_diff(&s->mem));
	return err;
}

IN_MODES(MODE(MODE_ENDPOINT))

CASE(region_is_enabled_only_when_it_is_bound_to_an_endpoint)
{
	struct scene s;

	scene_open(&s, e);
	log_mark();
	must_be(fi_mr_enable(s.mr), -FI_EINVAL);
	must(log_has("endpoint"), "the line does not say what is missing");
	must(fi_mr_key(s.mr) == FI_KEY_NOTAVAIL, "a key");
	must_ok(fi_mr_bind(s.mr, &s.second->fid, 0));
	must(fi_mr_key(s.mr) == FI_KEY_NOTAVAIL, "a key");
	must_ok(fi_mr_enable(s.mr));
	must(fi_mr_key(s.mr) != FI_KEY_NOTAVAIL, "no key");
	must_ok(access_by(&s, 1, 50));
	scene_close(&s);
}

CASE(region_is_reached_through_its_endpoints_only)
{
	struct scene s;

	scene_open(&s, e);
	must_ok(fi_mr_bind(s.mr, &s.second->fid, 0));
	must_ok(fi_mr_enable(s.mr));
	must_ok(access_by(&s, 1, 50));
	must_be(access_by(&s, 0, 500), FI_EACCES);
	must_ok(access_by(&s, 1, 1000));
	must_be(access_by(&s, 0, 500), FI_EACCES);
	scene_close(&s);
}

CASE(binding_an_endpoint_takes_no_flags)
{
	struct scene s;
	int rc;

	scene_open(&s, e);
	log_mark();
	rc = fi_mr_bind(s.mr, &s.second->fid, FI_REMOTE_WRITE);
	must(rc == -FI_EBADFLAGS || rc == -FI_EINVAL, "flags: %d", rc);
	must(log_has("MRF-E"), "no line says why");
	must_be(fi_mr_enable(s.mr), -FI_EINVAL);
	scene_close(&s);
}

CASE(nothing_is_bound_to_an_enabled_region)
{
	struct scene s;

	scene_open(&s, e);
	must_ok(fi_mr_bind(s.mr, &s.second->fid, 0));
	must_ok(fi_mr_enable(s.mr));
	log_mark();
	must(fi_mr_bind(s.mr, &s.f->ep->fid, 0) < 0, "bound after fi_mr_enable");
	must(log_has("MRF-E"), "no line says why");
	must_be(access_by(&s, 0, 500), FI_EACCES);
	must_ok(access_by(&s, 1, 50));
	scene_close(&s);
}

CASE(region_of_an_open_endpoint_does_not_close)
{
	struct scene s;

	scene_open(&s, e);
	must_ok(fi_mr_bind(s.mr, &s.second->fid, 0));
	must_ok(fi_mr_enable(s.mr));
	log_mark();
	must_be(fi_close(&s.mr->fid), -FI_EBUSY);
	must(log_has("endpoint"), "the line does not say what holds it");
	must_ok(access_by(&s, 1, 50));
	scene_close(&s);
}
