/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys. The driver owns the regions, in a domain of its own for each case; the
 * peer, another process with another key, or the same, or none, reads and writes. What
 * does not get through must fail alike whether or not there is a region. Messages go both ways, if
 * both have the same key.
 */
#include "harness.h"
#include "proto/greeting.h"
#include "stranger.h"

#define SIZE (4 * PAGE)
#define KEY 0x77
#define NONE "" /* no key */
#define ONE "a key of twenty bytes"
#define OTHER "another key"

struct scene {
	struct fab f;
	struct peer *p;
	struct fid_ep *ep;   /* a second endpoint of the driver, or NULL */
	fi_addr_t to, to_ep; /* the driver's endpoints, as the peer calls them */
	struct buf mem;
	struct fid_mr *mr;
};

static struct fab_opt with(const char *key)
{
	struct fab_opt opt = { 0 };

	snprintf(opt.auth_key, sizeof(opt.auth_key), "%s", key);
	return opt;
}

/* mine, its: the keys of the driver's domain and of the peer's. */
static void scene_open(struct scene *s, struct env *e, const char *mine, const char *its)
{
	struct fab_opt a = with(mine), b = with(its);

	memset(s, 0, sizeof(*s));
	fab_open(&s->f, e->mode, &a);
	s->p = target(e);
	peer_reopen(s->p, e->mode, &b);
	s->to = peer_insert(s->p, s->f.name, s->f.name_len);
	peer_alloc(s->p, 0, PAGE, 5);
	buf_open(&s->mem, SIZE, 1);
}

/* key: the region's; NULL: none is given. */
static void reg(struct scene *s, const char *key)
{
	struct iovec iov = { s->mem.mem, SIZE };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = REMOTE_RW,
				   .requested_key = KEY,
				   .auth_key = (uint8_t *)key,
				   .auth_key_size = key ? strlen(key) : 0 };

	must_ok(fi_mr_regattr(s->f.domain, &attr, 0, &s->mr));
	fab_ready(&s->f, s->mr);
}

/* A second endpoint with a key of its own. */
static void open_ep(struct scene *s, const char *key)
{
	struct fi_info *info = fi_dupinfo(s->f.info);
	char name[NAME_LEN];
	size_t len = sizeof(name);

	info->ep_attr->auth_key = (uint8_t *)strdup(key);
	info->ep_attr->auth_key_size = strlen(key);
	must_ok(fi_endpoint(s->f.domain, info, &s->ep, NULL));
	fi_freeinfo(info);
	must_ok(fi_ep_bind(s->ep, &s->f.av->fid, 0));
	must_ok(fi_ep_bind(s->ep, &s->f.cq->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(s->ep));
	must_ok(fi_getname(&s->ep->fid, name, &len));
	s->to_ep = peer_insert(s->p, name, len);
}

static void scene_close(struct scene *s, struct env *e)
{
	struct fab_opt usual = { 0 };

	if (s->ep)
		must_ok(fi_close(&s->ep->fid));
	if (s->mr)
		must_ok(fab_mr_close(&s->f, s->mr));
	buf_close(&s->mem);
	fab_close(&s->f);
	peer_reset(s->p);
	peer_reopen(s->p, e->mode, &usual);
}

/* The peer's access; the driver's memory is compared whatever comes of it. */
static int access_by(struct scene *s, bool read, fi_addr_t to, uint64_t key, size_t off)
{
	/* What it reads is not what it writes. */
	struct peer_rma rma = { read, 0, read ? 2000 : 0, 100, to, 0, key, 1 };
	int err;

	rma.addr = (s->f.virt ? (uint64_t)(uintptr_t)s->mem.mem : 0) + off;
	err = peer_rma(s->p, &rma);
	if (!err && !read)
		buf_want(&s->mem, off, 100, 5, 0);
	if (!err && read)
		peer_want(s->p, 0, 2000, 100, 1, off);
	must(!buf_diff(&s->mem), "own memory: %s", buf_diff(&s->mem));
	peer_same(s->p, 0);
	return err;
}

/* All that it meets, with a region there, closed, and without one. */
static void learns_nothing(struct scene *s, fi_addr_t to, int err)
{
	uint64_t key = fi_mr_key(s->mr);

	must_be(access_by(s, WRITE, to, key, 100), err);
	must_be(access_by(s, READ, to, key, 100), err);
	must_be(access_by(s, WRITE, to, 0x4711, 100), err);
	must_be(access_by(s, READ, to, 0x4711, 100), err);
	must_ok(fi_close(&s->mr->fid));
	s->mr = NULL;
	must_be(access_by(s, WRITE, to, key, 100), err);
}

IN_MODES(MODES_TWO)

CASE(same_domain_key_reaches_and_brings_the_bytes)
{
	struct scene s;

	scene_open(&s, e, ONE, ONE);
	reg(&s, NULL);
	must_ok(access_by(&s, WRITE, s.to, fi_mr_key(s.mr), 100));
	must_ok(access_by(&s, WRITE, s.to, fi_mr_key(s.mr), 4000));
	must_ok(access_by(&s, READ, s.to, fi_mr_key(s.mr), 8000));
	scene_close(&s, e);
}

CASE(another_key_learns_nothing)
{
	struct scene s;

	scene_open(&s, e, ONE, OTHER);
	reg(&s, NULL);
	learns_nothing(&s, s.to, FI_EACCES);
	scene_close(&s, e);
}

CASE(no_key_learns_nothing)
{
	struct scene s;

	scene_open(&s, e, ONE, NONE);
	reg(&s, NULL);
	learns_nothing(&s, s.to, FI_EACCES);
	scene_close(&s, e);
}

CASE(peer_with_a_key_does_not_talk_to_one_without)
{
	struct scene s;

	scene_open(&s, e, NONE, ONE);
	reg(&s, NULL);
	learns_nothing(&s, s.to, FI_EACCES);
	scene_close(&s, e);
}

CASE(key_of_a_region_keeps_it_from_the_domains_peers)
{
	struct scene s;

	scene_open(&s, e, ONE, ONE);
	reg(&s, OTHER);
	learns_nothing(&s, s.to, FI_EKEYREJECTED);
	scene_close(&s, e);
}

CASE(key_of_an_endpoint_opens_the_regions_of_that_key)
{
	struct scene s;

	scene_open(&s, e, NONE, ONE);
	open_ep(&s, ONE);
	reg(&s, ONE);
	must_ok(access_by(&s, WRITE, s.to_ep, fi_mr_key(s.mr), 100));
	must_ok(access_by(&s, READ, s.to_ep, fi_mr_key(s.mr), 8000));
	/* Through the other endpoint, which has no key, nothing goes. */
	must_be(access_by(&s, WRITE, s.to, fi_mr_key(s.mr), 100), FI_EACCES);
	must_ok(access_by(&s, WRITE, s.to_ep, fi_mr_key(s.mr), 4000));
	scene_close(&s, e);
}

CASE(region_of_the_domains_key_is_nothing_to_an_endpoint_with_its_own)
{
	struct scene s;

	scene_open(&s, e, NONE, ONE);
	open_ep(&s, ONE);
	reg(&s, NULL);
	learns_nothing(&s, s.to_ep, FI_EKEYREJECTED);
	scene_close(&s, e);
}

/* The driver sends to the peer, which has posted a receive of PAGE bytes. */
static void send_to_peer(struct scene *s, fi_addr_t to, struct buf *b, size_t len, struct done *d)
{
	struct msg_part m = { .buf = b, .len = len, .to = to, .ctx = d };

	peer_recv(s->p, 0, 0, PAGE, 1);
	must_ok((int)msg_send(&s->f, &m));
	must(fab_done(&s->f, d, SOON) && d->ctx == d, "the message neither comes nor fails");
}

/* code: of the refusal; 0: it comes. */
static void message_comes_or_not(struct env *e, const char *mine, const char *its, int code)
{
	static const size_t sizes[] = { 0, 8, 300, 4000 };
	struct scene s;
	struct done d;
	struct buf b;
	fi_addr_t to;

	scene_open(&s, e, mine, its);
	to = fab_insert(&s.f, s.p->name);
	fab_buf(&s.f, &b, PAGE, 1);
	for (unsigned i = 0; i < 4; i++) {
		send_to_peer(&s, to, &b, sizes[i], &d);
		must(d.err == (code ? FI_EACCES : 0) && d.prov_errno == code, "err %d, code %d: %s",
		     d.err, d.prov_errno, d.text);
		must(peer_done(s.p, &d, code ? 50 : SOON) == !code, "of %zu bytes, %s", sizes[i],
		     code ? "something comes" : "nothing comes");
		must(code || (!d.err && d.len == sizes[i]), "err %d, %zu bytes", d.err, d.len);
		if (!code)
			peer_want(s.p, 0, 0, sizes[i], 1, 0);
		peer_same(s.p, 0);
	}
	fab_buf_close(&b);
	scene_close(&s, e);
}

CASE(messages_come_where_both_have_the_same_key)
{
	message_comes_or_not(e, ONE, ONE, 0);
}

CASE(messages_do_not_come_where_the_key_is_another)
{
	message_comes_or_not(e, ONE, OTHER, 4203);
}

CASE(messages_do_not_come_where_only_the_receiver_has_a_key)
{
	message_comes_or_not(e, NONE, ONE, 4202);
}

CASE(messages_do_not_come_where_only_the_sender_has_a_key)
{
	message_comes_or_not(e, ONE, NONE, 4205);
}

CASE(messages_come_to_an_endpoint_with_a_key_of_its_own)
{
	struct scene s;
	struct done d;
	struct buf b;

	scene_open(&s, e, NONE, ONE);
	open_ep(&s, ONE);
	fab_buf(&s.f, &b, PAGE, 1);
	must_ok((int)fi_recv(s.f.ep, b.mem, 1000, b.desc, FI_ADDR_UNSPEC, NULL));
	must_ok((int)fi_recv(s.ep, b.mem + 2000, 1000, b.desc, FI_ADDR_UNSPEC, &s));
	must_be(peer_send(s.p, 0, 0, 100, s.to, 1), FI_EACCES);
	must_ok(peer_send(s.p, 0, 0, 100, s.to_ep, 1));
	must(fab_done(&s.f, &d, SOON) && !d.err && d.ctx == &s && d.len == 100,
	     "err %d, context %p, %zu bytes", d.err, d.ctx, d.len);
	must_be(peer_send(s.p, 0, 0, 100, s.to, 1), FI_EACCES);
	buf_want(&b, 2000, 100, 5, 0);
	buf_same(&b);
	fab_quiet(&s.f);
	fab_buf_close(&b);
	scene_close(&s, e);
}

static void __attribute__((constructor)) caps(void)
{
	func_caps = FI_MSG;
}

IN_MODES(MODES_ONE)

/* Why the library refused, and the number of its challenge, if it made one (docs/WIRE.md). */
static unsigned refusal(const char *said, char number[17])
{
	char data[400] = "";
	unsigned version = 0, reason = 0;

	must(sscanf(said, "rejected %*d %399s", data) == 1, "%s", said);
	must(sscanf(data, "6d72666203%2x%*4c%2x", &version, &reason) == 2, "%s", said);
	must(version == MRF_PROTO_VERSION, "version %u", version);
	if (number && strlen(data) >= 48)
		snprintf(number, 17, "%.16s", data + 32);
	return reason;
}

/* A program without the library and without the key: it is turned away at the door. */
CASE(stranger_without_the_key_is_not_let_in)
{
	char number[17] = "", first[17] = "", proof[120];
	struct stranger t;
	struct scene s;

	scene_open(&s, e, ONE, ONE);
	reg(&s, NULL);
	stranger_start(&t);
	for (int i = 0; i < 3; i++) {
		memcpy(first, number, sizeof(first));
		must_be(refusal(stranger_do(&t, "connect 0 %s -", stranger_addr(s.f.name)), number),
			MRF_REFUSE_CHALLENGE);
		must(strlen(number) == 16 && strcmp(number, first), "challenge %s", number);
	}
	/* A proof that is one in form only, of that challenge, and of none. */
	snprintf(proof, sizeof(proof),
		 "6d72666201%02x3800%016d0500000000000000%s0200000000000000"
		 "000102030405060708090a0b0c0d0e0f",
		 MRF_PROTO_VERSION, 0, number);
	must_be(refusal(stranger_do(&t, "connect 0 %s %s", stranger_addr(s.f.name), proof), NULL),
		MRF_REFUSE_KEY);
	memset(proof + 48, 'e', 16);
	must_be(refusal(stranger_do(&t, "connect 0 %s %s", stranger_addr(s.f.name), proof), NULL),
		MRF_REFUSE_CHALLENGE);
	must_ok(access_by(&s, WRITE, s.to, fi_mr_key(s.mr), 100));
	stranger_stop(&t);
	scene_close(&s, e);
}

/* Modes from before API version 1.5. */
IN_MODES(MODE(16) | MODE(17))

CASE(before_api_1_5_keys_are_ignored)
{
	struct scene s;

	scene_open(&s, e, ONE, OTHER);
	reg(&s, "a third one");
	must_ok(access_by(&s, WRITE, s.to, fi_mr_key(s.mr), 100));
	scene_close(&s, e);
}

IN_MODES(MODE(MODE_ENDPOINT))

CASE(region_is_not_bound_to_an_endpoint_with_another_key)
{
	struct iovec iov;
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = REMOTE_RW };
	struct scene s;

	scene_open(&s, e, NONE, ONE);
	open_ep(&s, ONE);
	iov = (struct iovec){ s.mem.mem, SIZE };
	attr.auth_key = (uint8_t *)ONE;
	attr.auth_key_size = strlen(ONE);
	must_ok(fi_mr_regattr(s.f.domain, &attr, 0, &s.mr));
	log_mark();
	must_be(fi_mr_bind(s.mr, &s.f.ep->fid, 0), -FI_EINVAL);
	must(log_has("MRF-E3202"), "no line says why");
	must_ok(fi_mr_bind(s.mr, &s.ep->fid, 0));
	must_ok(fi_mr_enable(s.mr));
	must_ok(access_by(&s, WRITE, s.to_ep, fi_mr_key(s.mr), 100));
	scene_close(&s, e);
}
