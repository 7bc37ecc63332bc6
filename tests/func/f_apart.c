/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is kept apart is kept apart by the kernel: the other side is no library that plays
 * by the rules, but a program that uses whatever rkeys it has heard of, on whatever
 * connection it has.
 */
#include <netinet/in.h>
#include "harness.h"
#include "stranger.h"

#define SIZE (4 * PAGE)
#define BYTE 0xa5
#define WC_OK 0
#define WC_REM_INV_REQ 9
#define WC_REM_ACCESS 10

/* The driver owns a region and two endpoints. */
struct scene {
	struct fab *f;
	struct fid_ep *second;
	char second_name[NAME_LEN];
	struct buf mem;
	struct fid_mr *mr;
	struct stranger s;
};

static void open_second(struct scene *s)
{
	size_t len = sizeof(s->second_name);

	must_ok(fi_endpoint(s->f->domain, s->f->info, &s->second, NULL));
	must_ok(fi_ep_bind(s->second, &s->f->av->fid, 0));
	must_ok(fi_ep_bind(s->second, &s->f->cq->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(s->second));
	must_ok(fi_getname(&s->second->fid, s->second_name, &len));
}

static void scene_open(struct scene *s, struct env *e)
{
	*s = (struct scene){ .f = me(e) };
	stranger_start(&s->s);
	open_second(s);
	buf_open(&s->mem, SIZE, 1);
	must_ok(fi_mr_reg(s->f->domain, s->mem.mem, SIZE, REMOTE_RW | FI_READ, 0, 0, 0, &s->mr,
			  NULL));
}

/* The second endpoint goes, and with it what holds the region. */
static void scene_close(struct scene *s)
{
	stranger_stop(&s->s);
	must_ok(fi_close(&s->second->fid));
	must_ok(fi_close(&s->mr->fid));
	buf_close(&s->mem);
}

static void bind_to_second(struct scene *s)
{
	must_ok(fi_mr_bind(s->mr, &s->second->fid, 0));
	must_ok(fi_mr_enable(s->mr));
	if (s->f->bits & FI_MR_MMU_NOTIFY)
		must_ok(fi_mr_refresh(s->mr, NULL, 0, 0));
}

/* What peers ask for; a raw key has it in bytes 24 to 31 (docs/WIRE.md). */
static uint64_t key_of(struct scene *s)
{
	uint8_t raw[1024];
	size_t size = sizeof(raw);
	uint64_t base, key;

	if (!(s->f->bits & FI_MR_RAW))
		return fi_mr_key(s->mr);
	must_ok(fi_mr_raw_attr(s->mr, &base, raw, &size, 0));
	memcpy(&key, raw + 24, sizeof(key));
	return key;
}

struct way {
	unsigned status, nseg, rkey, iova_off;
	unsigned long long pos;
};

/* What the library answers to a question for all of the region. */
static struct way ask(struct scene *s, int slot)
{
	struct way w = { 99, 0, 0, 0, 0 };
	const char *said;

	said = stranger_do(&s->s, "ask %d %#lx %#lx %lu", slot, (unsigned long)key_of(s),
			   s->f->virt ? (unsigned long)s->mem.mem : 0ul, SIZE);
	must(sscanf(said, "answer %u %u %x %llx %x", &w.status, &w.nseg, &w.rkey, &w.pos,
		    &w.iova_off) == 5,
	     "%s", said);
	return w;
}

/* What the work request of the kernel, of 100 bytes at this offset of it, would say. */
static int access_at(struct scene *s, bool read, int slot, const struct way *w, size_t off)
{
	uint64_t at = (s->f->virt ? (uint64_t)(uintptr_t)s->mem.mem : w->iova_off) + off;
	const char *said;
	int status = -1;

	said = stranger_do(&s->s, "%s %d %#x %#lx 100 %#x", read ? "read" : "write", slot, w->rkey,
			   (unsigned long)at, BYTE);
	must(sscanf(said, "wc %d", &status) == 1, "%s", said);
	must(!read || status || strstr(said, "same"), "it read something else");
	return status;
}

static void want_bytes(struct scene *s, size_t off)
{
	memset(s->mem.want + off, BYTE, 100);
}

static void must_be_same(struct scene *s)
{
	must(!buf_diff(&s->mem), "own memory: %s", buf_diff(&s->mem));
}

IN_MODES(MODE(MODE_ENDPOINT) | MODE(MODE_EVERYTHING))

CASE(kernel_refuses_rkeys_of_one_endpoint_on_connections_to_another)
{
	struct scene s;
	struct way w, none;

	scene_open(&s, e);
	bind_to_second(&s);
	stranger_do(&s.s, "connect 0 %s -", stranger_addr(s.second_name));
	w = ask(&s, 0);
	must_be(w.status, 0);
	/* It is the right one. */
	must_be(access_at(&s, WRITE, 0, &w, 500), WC_OK);
	want_bytes(&s, 500);
	must_be_same(&s);
	/* The library does not tell it to others, and the kernel does not take it from them. */
	stranger_do(&s.s, "connect 1 %s -", stranger_addr(s.f->name));
	none = ask(&s, 1);
	must_be(none.status, 4);
	must_be(none.nseg, 0);
	must_be(access_at(&s, WRITE, 1, &w, 1000), WC_REM_ACCESS);
	stranger_do(&s.s, "connect 1 %s -", stranger_addr(s.f->name));
	must_be(access_at(&s, READ, 1, &w, 500), WC_REM_ACCESS);
	must_be_same(&s);
	/* Whom it belongs to goes on as before. */
	must_be(access_at(&s, READ, 0, &w, 500), WC_OK);
	must_be(access_at(&s, WRITE, 0, &w, 2000), WC_OK);
	want_bytes(&s, 2000);
	must_be_same(&s);
	scene_close(&s);
}

CASE(region_of_two_endpoints_has_other_rkeys_for_each)
{
	struct scene s;
	struct way w[2];

	scene_open(&s, e);
	must_ok(fi_mr_bind(s.mr, &s.f->ep->fid, 0));
	bind_to_second(&s);
	stranger_do(&s.s, "connect 0 %s -", stranger_addr(s.f->name));
	stranger_do(&s.s, "connect 1 %s -", stranger_addr(s.second_name));
	w[0] = ask(&s, 0);
	w[1] = ask(&s, 1);
	must(w[0].rkey != w[1].rkey, "the same rkey for both");
	for (int i = 0; i < 2; i++) {
		must_be(access_at(&s, WRITE, i, &w[i], 1000 * (size_t)i), WC_OK);
		want_bytes(&s, 1000 * (size_t)i);
	}
	must_be(access_at(&s, WRITE, 0, &w[1], 3000), WC_REM_ACCESS);
	must_be(access_at(&s, WRITE, 1, &w[0], 3000), WC_REM_ACCESS);
	must_be_same(&s);
	stranger_stop(&s.s);
	must_ok(fi_close(&s.second->fid));
	must_ok(fab_mr_close(s.f, s.mr));
	buf_close(&s.mem);
}

IN_MODES(MODE(15))

/* Where the rkey is the key, and so well known, nothing but the queue pair is in the way. */
CASE(target_reaches_nothing_through_the_connection_of_its_initiator)
{
	struct scene s;
	struct sockaddr_in to;
	struct op op;
	struct way w = { 0 };
	struct done d;
	int port = 0, status;

	scene_open(&s, e);
	w.rkey = (unsigned)fi_mr_key(s.mr);
	/* It is the right one: its own connection is let through. */
	stranger_do(&s.s, "connect 0 %s -", stranger_addr(s.f->name));
	must_be(access_at(&s, WRITE, 0, &w, 500), WC_OK);
	want_bytes(&s, 500);
	memcpy(&to, s.f->name, sizeof(to));
	sscanf(stranger_do(&s.s, "listen %s", stranger_addr(s.f->name)), "port %d", &port);
	to.sin_port = htons((uint16_t)port);
	op = (struct op){
		.buf = buf(e, PAGE, 2), .len = 100, .to = fab_insert(s.f, &to), .key = 1
	};
	must_ok(op_post(s.f, &op));
	stranger_do(&s.s, "take 1");
	/* At once, before this side can know what it was accepted with. */
	stranger_do(&s.s, "accept 1 -");
	status = access_at(&s, WRITE, 1, &w, 1000);
	must(status == WC_REM_INV_REQ || status == WC_REM_ACCESS, "wc %d", status);
	must_be_same(&s);
	stranger_stop(&s.s);
	must(fab_done(s.f, &d, SOON) && d.err, "the write did not fail");
	must_be_same(&s);
	must_ok(fi_close(&s.second->fid));
	must_ok(fi_close(&s.mr->fid));
	buf_close(&s.mem);
}
