/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short ways (ep/rma_short.h, ep/atomic_short.h) leave what the long way leaves. Each call
 * is made twice on one endpoint, the second time with the short ways closed, while work
 * requests are held: the operation, what was posted, and what the endpoint counts have to be
 * the same.
 */
#include <rdma/fi_atomic.h>
#include "base/compiler.h"
#include "ep/model/atomics.h"
#include "ep_fixture.h"

#define SLOT 16384u
#define AT 4096u

static struct pair p;
static struct fid_mr *src_mr; /* of p.src, where the fixture registers it for nobody */
static struct fid_cntr *cntr; /* of the region, or NULL */
static void *src_desc;
static struct {
	_Alignas(8) uint64_t operand, compare, result;
} mine;
static struct fid_mr *mine_mr;
static unsigned compared; /* calls that took the short way */

/* --- what a call leaves --------------------------------------------------------------- */

struct left {
	const struct mrf_op *op;
	struct mrf_op copy;
	struct mrf_posted posted;
	unsigned nposts;
	struct mrf_vwr wr;
	struct mrf_sge sge;
	unsigned nops, scq_used, in_flight;
	uint32_t more;
	uint64_t clock;
	bool by_long_way;
};

static __thread struct left *watching; /* by the thread that calls */

static void note_post(const struct mrf_vwr *wr)
{
	if (!watching)
		return;
	watching->nposts++;
	watching->wr = *wr;
	watching->sge = wr->sge[0];
}

int __real_mrf_vconn_post(struct mrf_vconn *conn, const struct mrf_vwr *wr);
int __wrap_mrf_vconn_post(struct mrf_vconn *conn, const struct mrf_vwr *wr);

int __wrap_mrf_vconn_post(struct mrf_vconn *conn, const struct mrf_vwr *wr)
{
	note_post(wr);
	return __real_mrf_vconn_post(conn, wr);
}

int __real_mrf_vconn_access(struct mrf_vconn *conn, uint64_t wr_id, enum mrf_vwr_op op,
			    bool is_inline, struct mrf_sge *sge, uint64_t remote_addr,
			    uint32_t rkey, uint32_t imm);
int __wrap_mrf_vconn_access(struct mrf_vconn *conn, uint64_t wr_id, enum mrf_vwr_op op,
			    bool is_inline, struct mrf_sge *sge, uint64_t remote_addr,
			    uint32_t rkey, uint32_t imm);

int __wrap_mrf_vconn_access(struct mrf_vconn *conn, uint64_t wr_id, enum mrf_vwr_op op,
			    bool is_inline, struct mrf_sge *sge, uint64_t remote_addr,
			    uint32_t rkey, uint32_t imm)
{
	note_post(&(struct mrf_vwr){ .wr_id = wr_id,
				     .op = op,
				     .is_inline = is_inline,
				     .nsge = 1,
				     .sge = sge,
				     .remote_addr = remote_addr,
				     .rkey = rkey,
				     .imm = imm });
	return __real_mrf_vconn_access(conn, wr_id, op, is_inline, sge, remote_addr, rkey, imm);
}

int __real_mrf_vconn_fetch_add(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge,
			       uint64_t remote_addr, uint32_t rkey, uint64_t add);
int __wrap_mrf_vconn_fetch_add(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge,
			       uint64_t remote_addr, uint32_t rkey, uint64_t add);

int __wrap_mrf_vconn_fetch_add(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge,
			       uint64_t remote_addr, uint32_t rkey, uint64_t add)
{
	note_post(&(struct mrf_vwr){ .wr_id = wr_id,
				     .op = MRF_VWR_FETCH_ADD,
				     .nsge = 1,
				     .sge = sge,
				     .remote_addr = remote_addr,
				     .rkey = rkey,
				     .operand = add });
	return __real_mrf_vconn_fetch_add(conn, wr_id, sge, remote_addr, rkey, add);
}

/* Where the long way begins. */
int __real_mrf_entry_begin(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t addr,
			   struct mrf_op **op);
int __wrap_mrf_entry_begin(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t addr,
			   struct mrf_op **op);

int __wrap_mrf_entry_begin(struct mrf_ep *ep, enum mrf_conn_kind kind, fi_addr_t addr,
			   struct mrf_op **op)
{
	if (watching)
		watching->by_long_way = true;
	return __real_mrf_entry_begin(ep, kind, addr, op);
}

/* The call's work request: messages may have been posted behind it. */
static struct mrf_posted last_posted(const struct mrf_conn *conn)
{
	unsigned at = conn->tail - 1;

	while (!conn->ring[at % MRF_CONN_RING].op && at != conn->head)
		at--;
	return conn->ring[at % MRF_CONN_RING];
}

static void note_left(struct left *left)
{
	struct mrf_ep *ep = node_ep(&p.a);
	const struct mrf_conn *conn;

	mrf_lock_take(&ep->lock);
	conn = ep->peers[MRF_CONN_ACCESS].of[p.to]->conn;
	left->posted = last_posted(conn);
	left->op = left->posted.op;
	ck_assert_ptr_nonnull(left->op);
	left->copy = *left->op;
	left->nops = ep->nops;
	left->scq_used = ep->scq_used;
	left->in_flight = conn->tail - conn->head;
	left->more = conn->more;
	left->clock = ep->clock;
	mrf_lock_release(&ep->lock);
}

/* --- one call ------------------------------------------------------------------------- */

struct call {
	enum { READ, WRITE, INJECT, ATOMIC } what;
	size_t len;
	bool described; /* by a descriptor */
	enum mrf_atomic_family family;
	enum fi_datatype datatype;
	enum fi_op op;
};

static void *mine_desc(void)
{
	return mine_mr ? fi_mr_desc(mine_mr) : NULL;
}

static ssize_t atomic_call(const struct call *c)
{
	void *desc = mine_desc();
	uint64_t to = p.base + AT;

	switch (c->family) {
	case MRF_ATOMIC_BASE:
		return fi_atomic(p.a.ep, &mine.operand, 1, desc, p.to, to, p.key, c->datatype,
				 c->op, &p);
	case MRF_ATOMIC_FETCH:
		return fi_fetch_atomic(p.a.ep, &mine.operand, 1, desc, &mine.result, desc, p.to, to,
				       p.key, c->datatype, c->op, &p);
	default:
		return fi_compare_atomic(p.a.ep, &mine.operand, 1, desc, &mine.compare, desc,
					 &mine.result, desc, p.to, to, p.key, c->datatype, c->op,
					 &p);
	}
}

static ssize_t call(const struct call *c)
{
	void *desc = c->described ? src_desc : NULL;

	switch (c->what) {
	case READ:
		return fi_read(p.a.ep, p.src + AT, c->len, desc, p.to, p.base + AT, p.key, &p);
	case WRITE:
		return fi_write(p.a.ep, p.src + AT, c->len, desc, p.to, p.base + AT, p.key, &p);
	case INJECT:
		return fi_inject_write(p.a.ep, p.src + AT, c->len, p.to, p.base + AT, p.key);
	default:
		return atomic_call(c);
	}
}

/* What the endpoint allows. */
struct allowed {
	size_t max[2];
	bool atomic[3];
};

static struct allowed allow_short_ways(struct allowed now)
{
	struct mrf_ep *ep = node_ep(&p.a);
	struct allowed before;
	unsigned i;

	for (i = 0; i < 2; i++)
		before.max[i] = atomic_exchange(&ep->short_max[i], now.max[i]);
	for (i = 0; i < 3; i++)
		before.atomic[i] = atomic_exchange(&ep->short_atomic[i], now.atomic[i]);
	return before;
}

static size_t bytes(const struct call *c)
{
	return c->what == ATOMIC ? sizeof(uint64_t) : c->len;
}

/* The same memory before each call, at both ends. */
static void reset_memory(void)
{
	mine.operand = 5;
	mine.compare = 0x0909090909090909;
	mine.result = 0;
	fill(p.src, PAIR_LEN, 1);
	memset(p.dst, 9, PAIR_LEN);
}

/* The bytes came over, and none beside them. */
static void check_memory(const struct call *c)
{
	const uint8_t *to = c->what == READ ? p.src : p.dst;
	static uint8_t want[PAIR_LEN];
	uint64_t word = mine.compare;

	fill(want, PAIR_LEN, 1);
	if (c->what != READ)
		memset(want, 9, AT);
	if (c->what == READ)
		memset(want + AT, 9, c->len);
	else
		memset(want + AT + c->len, 9, PAIR_LEN - AT - c->len);
	if (c->what == ATOMIC) {
		word = c->op == FI_SUM ? word + mine.operand : mine.operand;
		memcpy(want + AT, &word, sizeof(word));
		ck_assert_uint_eq(mine.result,
				  c->family == MRF_ATOMIC_BASE ? 0 : 0x0909090909090909);
		memset(want + AT + sizeof(word), 9, PAIR_LEN - AT - sizeof(word));
	}
	ck_assert_int_eq(memcmp(to, want, PAIR_LEN), 0);
}

/* Makes the call, and looks while its work request is held. */
static void make(const struct call *c, struct left *left)
{
	memset(left, 0, sizeof(*left));
	reset_memory();
	fake_hold(true);
	watching = left;
	ck_assert_int_eq(call(c), 0);
	watching = NULL;
	note_left(left);
	fake_hold(false);
	if (left->copy.silent)
		want_idle(&p.a);
	else
		want_ok(&p.a, c->what == INJECT ? NULL : &p);
	check_memory(c);
}

/* --- the comparison ------------------------------------------------------------------- */

#define FIELD(name)                                  \
	{                                            \
#name, offsetof(struct mrf_op, name) \
	}

/* In the order of the structure. */
static const struct {
	const char *name;
	size_t at;
} fields[] = {
	FIELD(type),	      FIELD(out),	  FIELD(next),	      FIELD(told),
	FIELD(imm),	      FIELD(total),	  FIELD(pos),	      FIELD(acked),
	FIELD(fence),	      FIELD(silent),	  FIELD(ask_first),   FIELD(resolved),
	FIELD(empty_known),   FIELD(broken),	  FIELD(gen),	      FIELD(stamp),
	FIELD(comp_flags),    FIELD(atomic),	  FIELD(context),     FIELD(nrma),
	FIELD(local.kind),    FIELD(local.ntemp), FIELD(local.temp),  FIELD(local.copy),
	FIELD(local.rest),    FIELD(local.nsge),  FIELD(local.ndesc), FIELD(local.nuser),
	FIELD(local.ncached),
};

static const char *field_at(size_t at)
{
	unsigned i = 0;

	while (i + 1 < MRF_ARRAY_SIZE(fields) && fields[i + 1].at <= at)
		i++;
	return fields[i].name;
}

static const char *name(const struct call *c)
{
	static const char *const what[] = { "read", "write", "inject", "atomic" };
	static char text[96];

	snprintf(text, sizeof(text), "%s of %zu bytes, %s, family %u, type %u, op %u",
		 what[c->what], c->len, c->described ? "described" : "not described", c->family,
		 c->datatype, c->op);
	return text;
}

/* All that an operation begins with, and nothing else, is cleared: each byte has to agree. */
static void compare_heads(const struct call *c, struct mrf_op a, struct mrf_op b)
{
	size_t at = offsetof(struct mrf_op, type);

	/* Of use to the long way only, until it has posted. */
	b.gen = a.gen;
	b.stamp = a.stamp;
	for (; at < offsetof(struct mrf_op, local.sge); at++)
		ck_assert_msg(((uint8_t *)&a)[at] == ((uint8_t *)&b)[at], "%s: %s differs", name(c),
			      field_at(at));
}

#define SAME_OF(field, count)                                                                 \
	ck_assert_msg(!memcmp(&a->field, &b->field, (size_t)(count) * sizeof((a->field)[0])), \
		      "%s: " #field " differs", name(c))

static void compare_tails(const struct call *c, const struct mrf_op *a, const struct mrf_op *b)
{
	SAME_OF(rma, a->nrma);
	SAME_OF(local.user, a->local.nuser);
	SAME_OF(local.desc, a->local.ndesc);
	if (c->what == ATOMIC)
		SAME_OF(local.data, c->family == MRF_ATOMIC_COMPARE ? 16 : 8);
	SAME_OF(local.sge, a->local.nsge);
	if (a->local.kind == MRF_LOCAL_INLINE && c->what != ATOMIC)
		SAME_OF(local.data, c->len);
}

/* A few bytes to be written are sent along, though a descriptor says where they are. */
static void compare_posts(const struct call *c, const struct left *a, const struct left *b)
{
	bool few = c->what == WRITE && c->described && c->len <= MRF_LIMIT_INJECT;

	ck_assert_uint_eq(a->nposts, 1);
	ck_assert_uint_eq(b->nposts, 1);
	ck_assert_int_eq(a->wr.nsge, b->wr.nsge);
	ck_assert_int_eq(a->wr.op, b->wr.op);
	ck_assert_int_eq(a->wr.fence, b->wr.fence);
	ck_assert_uint_eq(a->wr.wr_id, b->wr.wr_id);
	ck_assert_uint_eq(a->wr.remote_addr, b->wr.remote_addr);
	ck_assert_uint_eq(a->wr.rkey, b->wr.rkey);
	ck_assert_uint_eq(a->wr.operand, b->wr.operand);
	ck_assert_uint_eq(a->wr.compare, b->wr.compare);
	if (a->wr.op == MRF_VWR_WRITE_IMM)
		ck_assert_uint_eq(a->wr.imm, b->wr.imm);
	ck_assert_uint_eq(a->sge.len, b->sge.len);
	if (few)
		return;
	ck_assert_int_eq(a->wr.is_inline, b->wr.is_inline);
	if (a->wr.is_inline)
		return;
	ck_assert_uint_eq(a->sge.addr, b->sge.addr);
	ck_assert_uint_eq(a->sge.lkey, b->sge.lkey);
}

static void compare(const struct call *c, const struct left *a, const struct left *b)
{
	ck_assert_ptr_eq(a->op, b->op);
	ck_assert_ptr_eq(a->posted.op, b->posted.op);
	ck_assert_uint_eq(a->posted.bytes, b->posted.bytes);
	ck_assert_uint_eq(a->posted.more, b->posted.more);
	ck_assert_ptr_eq(a->copy.peer, b->copy.peer);
	ck_assert_uint_eq(a->nops, b->nops);
	ck_assert_uint_eq(a->scq_used, b->scq_used);
	ck_assert_uint_eq(a->in_flight, b->in_flight);
	/* Packets beside the first of each work request. */
	ck_assert_uint_eq(b->more - a->more, (bytes(c) - 1) / FAKE_MTU);
	ck_assert_uint_eq(a->copy.stamp, a->clock);
	ck_assert_uint_eq(b->copy.stamp, b->clock);
	ck_assert_uint_eq(b->clock, a->clock + 1);
	compare_heads(c, a->copy, b->copy);
	compare_tails(c, &a->copy, &b->copy);
	compare_posts(c, a, b);
}

static void check_call(const struct call *c, bool is_short)
{
	static struct left a, b;
	const struct mrf_ep *ep = node_ep(&p.a);
	uint32_t more = ep->peers[MRF_CONN_ACCESS].of[p.to]->conn->more;
	struct allowed allowed;
	uint64_t clock = ep->clock;

	make(c, &a);
	ck_assert_msg(a.by_long_way == !is_short, "%s: %s", name(c), is_short ? "long" : "short");
	if (!is_short)
		return;
	ck_assert_uint_eq(a.more - more, (bytes(c) - 1) / FAKE_MTU);
	ck_assert_uint_eq(a.clock, clock + 1);
	allowed = allow_short_ways((struct allowed){ .max = { 0 } });
	make(c, &b);
	allow_short_ways(allowed);
	ck_assert(b.by_long_way);
	compare(c, &a, &b);
	compared++;
}

/* --- worlds --------------------------------------------------------------------------- */

/*
 * All regions are pinned for good: what is pinned on demand may go at any time, and then the
 * next access takes the long way.
 */
static const struct world {
	int mr_mode;
	bool selective;
	uint64_t op_flags;
	bool counts; /* the region counts writes */
} worlds[] = {
	{ .mr_mode = FI_MR_ALLOCATED },
	{ .mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL },
	{ .mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL, .op_flags = FI_DELIVERY_COMPLETE },
	{ .mr_mode = FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR },
	{ .mr_mode = FI_MR_ALLOCATED, .selective = true },
	{ .mr_mode = FI_MR_ALLOCATED, .selective = true, .op_flags = FI_COMPLETION },
	{ .mr_mode = FI_MR_ALLOCATED, .counts = true },
};

static void count_writes(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	must_close(&p.mr->fid);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	pair_reg(&p, REMOTE_RW);
	ck_assert_int_eq(fi_mr_bind(p.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
}

/* The connection, what is known of the key, a slot, and cells for results. */
static void warm_up(void)
{
	struct call some[] = { { .what = WRITE, .len = 8 },
			       { .what = READ, .len = 300 },
			       { .what = ATOMIC,
				 .len = 8,
				 .family = MRF_ATOMIC_FETCH,
				 .datatype = FI_UINT64,
				 .op = FI_SUM } };
	struct left left;
	unsigned i;

	for (i = 0; i < 2 * MRF_ARRAY_SIZE(some); i++) {
		some[i % 3].described = p.desc;
		memset(&left, 0, sizeof(left));
		ck_assert_int_eq(call(&some[i % 3]), 0);
		want_idle(&p.a);
	}
}

static void drain(void)
{
	struct fi_cq_data_entry entry;

	while (fi_cq_read(p.a.cq, &entry, 1) == 1)
		;
}

static void open_world(const struct world *world)
{
	fake.packets = true;
	pair_open(&p, &(struct node_opt){ .mr_mode = world->mr_mode,
					  .selective = world->selective,
					  .op_flags = world->op_flags,
					  .caps = world->counts ? MRF_CAPS | FI_RMA_EVENT : 0 });
	src_mr = p.src_mr ? NULL : node_reg(&p.a, p.src, PAIR_LEN, FI_READ | FI_WRITE, 0);
	src_desc = p.desc ? p.desc : fi_mr_desc(src_mr);
	mine_mr = p.desc ? node_reg(&p.a, &mine, sizeof(mine), FI_READ | FI_WRITE, 0) : NULL;
	cntr = NULL;
	if (world->counts)
		count_writes();
	warm_up();
	drain();
	compared = 0;
}

static void close_world(void)
{
	if (src_mr)
		must_close(&src_mr->fid);
	if (mine_mr)
		must_close(&mine_mr->fid);
	if (cntr)
		must_close(&cntr->fid);
	pair_close(&p);
}

/* --- reads and writes ----------------------------------------------------------------- */

static bool rma_is_short(const struct call *c)
{
	if (c->what == INJECT)
		return c->len <= MRF_LIMIT_INJECT;
	return c->described || c->len <= SLOT;
}

static void check_len(const struct world *world, size_t len)
{
	struct call c = { .len = len };

	for (c.what = READ; c.what <= INJECT; c.what++) {
		if (c.what == INJECT && len > MRF_LIMIT_INJECT)
			continue;
		for (unsigned i = 0; i < 2; i++) {
			c.described = i && c.what != INJECT;
			if (c.what == INJECT || c.described || !(world->mr_mode & FI_MR_LOCAL))
				check_call(&c, rma_is_short(&c));
		}
	}
}

START_TEST(short_reads_and_writes_leave_what_long_ones_leave)
{
	static const size_t lens[] = { 511, 4095, 4096, 4097, SLOT - 1, SLOT, SLOT + 1, 32768 };
	const struct world *world = &worlds[_i];
	size_t len;

	open_world(world);
	for (len = 1; len <= MRF_LIMIT_INJECT + 1; len += len > MRF_LIMIT_INJECT + 1 && _i ? 19 : 1)
		check_len(world, len);
	for (unsigned i = 0; i < MRF_ARRAY_SIZE(lens); i++)
		check_len(world, lens[i]);
	/* Each length that takes a short way, of reads, writes, and what is injected. */
	ck_assert_uint_ge(compared, world->mr_mode & FI_MR_LOCAL ? 200 : 300);
	close_world();
}
END_TEST

/* --- atomic operations ---------------------------------------------------------------- */

static bool atomic_is_short(const struct world *world, const struct call *c)
{
	bool known = c->op == (c->family == MRF_ATOMIC_COMPARE ? FI_CSWAP : FI_SUM);

	return known && (c->datatype == FI_UINT64 || c->datatype == FI_INT64) && !world->counts;
}

/* Whatever does not take the short way has tests of its own. */
static void check_kind(const struct world *world, const struct call *c)
{
	struct left left = { 0 };

	if (atomic_is_short(world, c)) {
		check_call(c, true);
		return;
	}
	watching = &left;
	ck_assert_int_eq(call(c), 0);
	watching = NULL;
	ck_assert_msg(left.by_long_way, "%s: short", name(c));
	want_idle(&p.a);
	drain();
}

START_TEST(short_atomics_leave_what_long_ones_leave)
{
	const struct world *world = &worlds[_i];
	struct call c = { .what = ATOMIC, .len = sizeof(uint64_t) };

	open_world(world);
	for (c.family = MRF_ATOMIC_BASE; c.family <= MRF_ATOMIC_COMPARE; c.family++) {
		for (c.datatype = FI_INT8; c.datatype <= FI_UINT64; c.datatype++) {
			for (c.op = FI_MIN; c.op <= FI_MSWAP; c.op++) {
				if (mrf_atomic_valid(c.family, c.datatype, c.op))
					check_kind(world, &c);
			}
		}
	}
	ck_assert_uint_eq(compared, world->counts ? 0 : 6);
	close_world();
}
END_TEST

static TCase *short_ways(void)
{
	TCase *tc = tcase_create("short ways");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, short_reads_and_writes_leave_what_long_ones_leave, 0,
			    (int)MRF_ARRAY_SIZE(worlds));
	tcase_add_loop_test(tc, short_atomics_leave_what_long_ones_leave, 0,
			    (int)MRF_ARRAY_SIZE(worlds));
	return tc;
}

UNIT_MAIN("short", short_ways)
