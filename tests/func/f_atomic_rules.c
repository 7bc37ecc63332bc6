/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations on regions that not everybody reaches, and on regions that count. The
 * driver owns them; its peers operate, by the device (NATIVE) and by asking its agent.
 */
#include <rdma/fi_atomic.h>
#include "harness.h"

#define SIZE (2 * PAGE)
#define KEY 0x77
#define NONE "" /* no authorization key */
#define ONE "a key of twenty bytes"
#define OTHER "another key"

/* Everybody here has FI_ATOMIC, in whatever mode. */
static void __attribute__((constructor)) with_atomics(void)
{
	func_caps = FI_ATOMIC;
}

#define CALLERS 3 /* peers that call the driver */

struct scene {
	struct fab *f, own; /* own: of this case, or not in use */
	struct peer *p[CALLERS];
	fi_addr_t to[CALLERS]; /* the driver's endpoint, as they call it */
	struct fid_ep *ep;     /* a second one, or NULL */
	fi_addr_t to_ep;       /* that, as the first of them calls it */
	struct buf mem;
	struct fid_mr *mr;
	struct fid_cntr *cntr;
};

static void open_mem(struct scene *s)
{
	buf_open(&s->mem, SIZE, 1);
	memset(s->mem.mem, 0, SIZE);
	memset(s->mem.want, 0, SIZE);
}

/* n peers at the driver that all cases have. */
static void scene_open(struct scene *s, struct env *e, unsigned n)
{
	memset(s, 0, sizeof(*s));
	s->f = me(e);
	for (unsigned i = 0; i < n; i++) {
		s->p[i] = peer(e, i);
		s->to[i] = peer_insert(s->p[i], s->f->name, s->f->name_len);
	}
	open_mem(s);
}

static struct fab_opt with(const char *key)
{
	struct fab_opt opt = { 0 };

	snprintf(opt.auth_key, sizeof(opt.auth_key), "%s", key);
	return opt;
}

/* The peer anew, with this authorization key. */
static void peer_with(struct scene *s, struct env *e, const char *key)
{
	struct fab_opt opt = with(key);

	peer_reopen(s->p[0], e->mode, &opt);
	s->to[0] = peer_insert(s->p[0], s->f->name, s->f->name_len);
}

/* A domain of the case's own, with an authorization key, and a peer with another or the
 * same. */
static void keyed_open(struct scene *s, struct env *e, const char *mine, const char *its)
{
	struct fab_opt opt = with(mine);

	memset(s, 0, sizeof(*s));
	fab_open(&s->own, e->mode, &opt);
	s->f = &s->own;
	s->p[0] = target(e);
	peer_with(s, e, its);
	open_mem(s);
}

static void close_fid(struct fid *fid)
{
	if (fid)
		must_ok(fi_close(fid));
}

static void scene_close(struct scene *s)
{
	close_fid(s->cntr ? &s->cntr->fid : NULL);
	close_fid(s->ep ? &s->ep->fid : NULL);
	close_fid(s->mr ? &s->mr->fid : NULL);
	buf_close(&s->mem);
}

static void keyed_close(struct scene *s, struct env *e)
{
	struct fab_opt usual = { 0 };

	scene_close(s);
	fab_close(&s->own);
	peer_reset(s->p[0]);
	peer_reopen(s->p[0], e->mode, &usual);
}

/* key: the region's authorization key; NULL: none is given. */
static void reg_with(struct scene *s, const char *key)
{
	struct iovec iov = { s->mem.mem, SIZE };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = REMOTE_RW,
				   .requested_key = KEY,
				   .auth_key = (uint8_t *)key,
				   .auth_key_size = key ? strlen(key) : 0 };

	must_ok(fi_mr_regattr(s->f->domain, &attr, 0, &s->mr));
}

/* A second endpoint of the driver's, with an authorization key of its own. */
static void second_open(struct scene *s, const char *key)
{
	struct fi_info *info = fi_dupinfo(s->f->info);
	char name[NAME_LEN];
	size_t len = sizeof(name);

	must(info, "no memory");
	if (key[0]) {
		info->ep_attr->auth_key = (uint8_t *)strdup(key);
		info->ep_attr->auth_key_size = strlen(key);
	}
	must_ok(fi_endpoint(s->f->domain, info, &s->ep, NULL));
	fi_freeinfo(info);
	must_ok(fi_ep_bind(s->ep, &s->f->av->fid, 0));
	must_ok(fi_ep_bind(s->ep, &s->f->cq->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(s->ep));
	must_ok(fi_getname(&s->ep->fid, name, &len));
	s->to_ep = peer_insert(s->p[0], name, len);
}

static uint64_t addr_of(const struct scene *s, size_t at)
{
	return (s->f->virt ? (uint64_t)(uintptr_t)s->mem.mem : 0) + at;
}

static void same(const struct scene *s)
{
	must(!buf_diff(&s->mem), "own memory: %s", buf_diff(&s->mem));
}

/* --- who may ---------------------------------------------------------------------------
 */

#define AT_NATIVE 512u
#define AT_AGENT 1028u

/*
 * The first peer adds 3 to 8 bytes, which the device does, and to 4 bytes. All memory is
 * compared, whatever comes of it.
 */
static int adds(struct scene *s, fi_addr_t to, uint64_t key)
{
	struct peer_atomic a = { .family = FETCH,
				 .op = FI_SUM,
				 .count = 1,
				 .to = to,
				 .key = key,
				 .operand = 3,
				 .times = 1 };
	uint64_t old, was;
	uint32_t half;
	int native, agent;

	a.datatype = FI_UINT64;
	a.addr = addr_of(s, AT_NATIVE);
	memcpy(&was, s->mem.want + AT_NATIVE, 8);
	native = peer_atomic(s->p[0], &a, &old);
	must(native || old == was, "fetched %lu", (unsigned long)old);
	was += native ? 0 : 3;
	memcpy(s->mem.want + AT_NATIVE, &was, 8);
	a.datatype = FI_UINT32;
	a.addr = addr_of(s, AT_AGENT);
	memcpy(&half, s->mem.want + AT_AGENT, 4);
	agent = peer_atomic(s->p[0], &a, &old);
	must(agent || (uint32_t)old == half, "fetched %u", (uint32_t)old);
	half += agent ? 0 : 3;
	memcpy(s->mem.want + AT_AGENT, &half, 4);
	same(s);
	must(native == agent, "by the device: %d (%s), by the agent: %d (%s)", native,
	     fi_strerror(native), agent, fi_strerror(agent));
	return native;
}

/* The same error whether the region is there, or another, or none. */
static void learns_nothing(struct scene *s, int err)
{
	must_be(adds(s, s->to[0], fi_mr_key(s->mr)), err);
	must_be(adds(s, s->to[0], 0x4711), err);
}

IN_MODES(MODES_TWO)

CASE(atomics_of_another_authorization_key_change_and_learn_nothing)
{
	struct scene s;
	uint64_t key;

	keyed_open(&s, e, ONE, ONE);
	reg_with(&s, NULL);
	key = fi_mr_key(s.mr);
	must_ok(adds(&s, s.to[0], key));
	must_ok(adds(&s, s.to[0], key));
	peer_with(&s, e, OTHER);
	learns_nothing(&s, FI_EACCES);
	peer_with(&s, e, NONE);
	learns_nothing(&s, FI_EACCES);
	close_fid(&s.mr->fid);
	s.mr = NULL;
	must_be(adds(&s, s.to[0], key), FI_EACCES);
	reg_with(&s, NULL);
	peer_with(&s, e, ONE);
	must_ok(adds(&s, s.to[0], fi_mr_key(s.mr)));
	keyed_close(&s, e);
}

CASE(atomics_reach_a_region_with_a_key_through_an_endpoint_of_that_key_only)
{
	struct scene s;

	keyed_open(&s, e, ONE, ONE);
	second_open(&s, OTHER);
	reg_with(&s, OTHER);
	learns_nothing(&s, FI_EKEYREJECTED);
	/* The peer has not that endpoint's key. */
	must_be(adds(&s, s.to_ep, fi_mr_key(s.mr)), FI_EACCES);
	peer_with(&s, e, OTHER);
	must_be(adds(&s, s.to[0], fi_mr_key(s.mr)), FI_EACCES);
	close_fid(&s.ep->fid);
	second_open(&s, OTHER);
	must_ok(adds(&s, s.to_ep, fi_mr_key(s.mr)));
	must_ok(adds(&s, s.to_ep, fi_mr_key(s.mr)));
	keyed_close(&s, e);
}

IN_MODES(MODE(MODE_ENDPOINT))

CASE(atomics_reach_a_region_through_its_endpoints_only)
{
	struct scene s;

	scene_open(&s, e, 1);
	second_open(&s, NONE);
	must_ok(fi_mr_reg(s.f->domain, s.mem.mem, SIZE, REMOTE_RW, 0, KEY, 0, &s.mr, NULL));
	must_ok(fi_mr_bind(s.mr, &s.ep->fid, 0));
	must_ok(fi_mr_enable(s.mr));
	must_ok(adds(&s, s.to_ep, fi_mr_key(s.mr)));
	must_be(adds(&s, s.to[0], fi_mr_key(s.mr)), FI_EACCES);
	must_ok(adds(&s, s.to_ep, fi_mr_key(s.mr)));
	must_be(adds(&s, s.to[0], fi_mr_key(s.mr)), FI_EACCES);
	scene_close(&s);
}

/* --- counting --------------------------------------------------------------------------
 */

static void reg_counted(struct scene *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };

	must_ok(fi_mr_reg(s->f->domain, s->mem.mem, SIZE, REMOTE_RW, 0, KEY,
			  s->f->bits & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0, &s->mr, NULL));
	must_ok(fi_cntr_open(s->f->domain, &attr, &s->cntr, NULL));
	must_ok(fi_mr_bind(s->mr, &s->cntr->fid, FI_REMOTE_WRITE));
	if (s->f->bits & FI_MR_RMA_EVENT)
		must_ok(fi_mr_enable(s->mr));
}

/* The counter gets there, and stays there. */
static void must_count(struct scene *s, uint64_t n)
{
	must_ok(fi_cntr_wait(s->cntr, n, SOON));
	nap(20);
	must(fi_cntr_read(s->cntr) == n, "counted %lu instead of %lu",
	     (unsigned long)fi_cntr_read(s->cntr), (unsigned long)n);
	must(fi_cntr_readerr(s->cntr) == 0, "errors are counted");
}

static struct peer_atomic on(const struct scene *s, enum atomic_family family, unsigned datatype,
			     unsigned op, size_t at)
{
	return (struct peer_atomic){ .family = family,
				     .datatype = datatype,
				     .op = op,
				     .count = 1,
				     .to = s->to[0],
				     .addr = addr_of(s, at),
				     .key = fi_mr_key(s->mr),
				     .times = 1 };
}

static void want_word(struct scene *s, size_t at, uint64_t value)
{
	memcpy(s->mem.want + at, &value, 8);
}

/* What modifies nothing, at zeros. */
static void idle(struct scene *s, unsigned datatype)
{
	struct peer_atomic a = on(s, FETCH, datatype, FI_ATOMIC_READ, 0);

	a.times = 5;
	must_ok(peer_atomic(s->p[0], &a, NULL));
	a = on(s, COMPARE, datatype, FI_CSWAP, 0);
	a.operand = a.compare = 9;
	a.times = 5;
	must_ok(peer_atomic(s->p[0], &a, NULL));
	a = on(s, PLAIN, datatype, FI_MIN, 0);
	a.operand = 9;
	must_ok(peer_atomic(s->p[0], &a, NULL));
	a = on(s, FETCH, datatype, FI_SUM, SIZE - 1);
	must_be(peer_atomic(s->p[0], &a, NULL), FI_EACCES);
	a = on(s, PLAIN, datatype, FI_SUM, 0);
	a.key += 1;
	must_be(peer_atomic(s->p[0], &a, NULL), FI_EKEYREJECTED);
}

IN_MODES(MODE(MODE_EVENT_FLAG))

CASE(atomics_count_once_each_and_not_what_modifies_nothing)
{
	struct peer_atomic a;
	struct scene s;

	scene_open(&s, e, 1);
	reg_counted(&s);
	a = on(&s, FETCH, FI_UINT64, FI_SUM, 64);
	a.operand = 2;
	a.times = 10;
	must_ok(peer_atomic(s.p[0], &a, NULL));
	want_word(&s, 64, 20);
	must_count(&s, 10);
	a = on(&s, COMPARE, FI_UINT64, FI_CSWAP, 64);
	a.operand = 7;
	a.compare = 20;
	must_ok(peer_atomic(s.p[0], &a, NULL));
	want_word(&s, 64, 7);
	must_count(&s, 11);
	/* 50 elements are one operation. */
	a = on(&s, PLAIN, FI_UINT64, FI_ATOMIC_WRITE, 1024);
	a.count = 50;
	a.operand = 0x1234;
	must_ok(peer_atomic(s.p[0], &a, NULL));
	for (size_t i = 0; i < 50; i++)
		want_word(&s, 1024 + 8 * i, 0x1234);
	must_count(&s, 12);
	idle(&s, FI_UINT64);
	idle(&s, FI_UINT16);
	must_count(&s, 12);
	same(&s);
	scene_close(&s);
}

#define EACH 500
#define UNCOUNTED 300

/*
 * All three at the same 8 bytes: two peers' operations count, one by whole words and one
 * by their lower halves. The third's go through another region, which does not count, so
 * that it is the device that does them.
 */
CASE(thousand_atomics_of_two_peers_count_a_thousand_beside_a_third)
{
	struct fid_mr *silent;
	struct peer_atomic a[CALLERS];
	struct scene s;

	scene_open(&s, e, CALLERS);
	reg_counted(&s);
	must_ok(fi_mr_reg(s.f->domain, s.mem.mem, SIZE, REMOTE_RW, 0, KEY + 1, 0, &silent, NULL));
	a[0] = on(&s, PLAIN, FI_UINT64, FI_SUM, 64);
	a[0].operand = 1ull << 32;
	a[1] = on(&s, FETCH, FI_UINT32, FI_SUM, 64);
	a[1].operand = 1;
	a[2] = on(&s, FETCH, FI_UINT64, FI_SUM, 64);
	a[2].operand = 1ull << 48;
	a[2].key = fi_mr_key(silent);
	for (int i = 0; i < CALLERS; i++) {
		a[i].to = s.to[i];
		a[i].times = i < 2 ? EACH : UNCOUNTED;
		peer_atomic_start(s.p[i], &a[i]);
	}
	for (int i = 0; i < CALLERS; i++)
		must_ok(peer_atomic_end(s.p[i], NULL, NULL));
	must_count(&s, 2 * EACH);
	want_word(&s, 64, (uint64_t)UNCOUNTED << 48 | (uint64_t)EACH << 32 | EACH);
	same(&s);
	must_ok(fi_close(&silent->fid));
	scene_close(&s);
}
