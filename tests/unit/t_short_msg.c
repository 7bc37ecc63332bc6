/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short way of a message (ep/send_short.h) leaves what the long way leaves. Each call is made
 * twice, the second time with the short way closed, while work requests are held: the operation, the
 * frame, and what the endpoint counts have to be the same. Calls that the short way must not take
 * are made once.
 */
#include <rdma/fi_tagged.h>
#include "base/compiler.h"
#include "heads.h"
#include "ep_fixture.h"
#include "ep/tx/send_op.h"
#include "proto/frame.h"

#define MAX MRF_SEND_MAX

static struct node a, b;
static fi_addr_t to;
static uint8_t *out, *in;
static struct fid_mr *out_mr, *in_mr;

/* --- one call ------------------------------------------------------------------------- */

enum what { SEND, SENDDATA, INJECT, INJECTDATA, WHATS };

struct call {
	enum what what;
	bool tagged;
	bool described;
	size_t len;
};

#define DATA 0x11223344u
#define TAG 0x5566778899aabbccull

static void *desc_of(const struct call *c)
{
	return c->described ? fi_mr_desc(out_mr) : NULL;
}

static ssize_t plain_call(const struct call *c)
{
	switch (c->what) {
	case SEND:
		return fi_send(a.ep, out, c->len, desc_of(c), to, out);
	case SENDDATA:
		return fi_senddata(a.ep, out, c->len, desc_of(c), DATA, to, out);
	case INJECT:
		return fi_inject(a.ep, out, c->len, to);
	case INJECTDATA:
		return fi_injectdata(a.ep, out, c->len, DATA, to);
	case WHATS:
		break;
	}
	abort();
}

static ssize_t tagged_call(const struct call *c)
{
	switch (c->what) {
	case SEND:
		return fi_tsend(a.ep, out, c->len, desc_of(c), to, TAG, out);
	case SENDDATA:
		return fi_tsenddata(a.ep, out, c->len, desc_of(c), DATA, to, TAG, out);
	case INJECT:
		return fi_tinject(a.ep, out, c->len, to, TAG);
	case INJECTDATA:
		return fi_tinjectdata(a.ep, out, c->len, DATA, to, TAG);
	case WHATS:
		break;
	}
	abort();
}

static const char *name(const struct call *c)
{
	static const char *const what[] = { "send", "senddata", "inject", "injectdata" };
	static char text[96];

	snprintf(text, sizeof(text), "%s%s of %zu bytes%s", c->tagged ? "t" : "", what[c->what],
		 c->len, c->described ? ", described" : "");
	return text;
}

/* --- what it leaves ------------------------------------------------------------------- */

struct left {
	bool by_long_way;
	struct mrf_op op;
	struct mrf_posted posted;
	unsigned nops, scq_used, in_flight;
	uint64_t clock, frames;
	unsigned nsge;
	bool is_inline, has_imm;
	uint32_t imm;
	struct mrf_sge sge[2];
	uint8_t head[MRF_FRAME_MESSAGE_MAX];
};

static __thread struct left *watching; /* by the thread that calls */

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

static void watch(const struct mrf_sge *sge, int nsge, bool is_inline)
{
	watching->nsge = (unsigned)nsge;
	watching->is_inline = is_inline;
	memcpy(watching->sge, sge, (size_t)nsge * sizeof(*sge));
}

int __real_mrf_vconn_send(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
			  bool is_inline);
int __wrap_mrf_vconn_send(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
			  bool is_inline);

int __wrap_mrf_vconn_send(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
			  bool is_inline)
{
	if (watching) {
		watch(sge, nsge, is_inline);
		memcpy(watching->head, (const void *)sge[0].addr, sge[0].len);
	}
	return __real_mrf_vconn_send(conn, wr_id, sge, nsge, is_inline);
}

int __real_mrf_vconn_send_imm(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
			      bool is_inline, uint32_t imm);
int __wrap_mrf_vconn_send_imm(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
			      bool is_inline, uint32_t imm);

int __wrap_mrf_vconn_send_imm(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
			      bool is_inline, uint32_t imm)
{
	if (watching) {
		watch(sge, nsge, is_inline);
		watching->has_imm = true;
		watching->imm = imm;
	}
	return __real_mrf_vconn_send_imm(conn, wr_id, sge, nsge, is_inline, imm);
}

static struct mrf_peer *line(void)
{
	return node_ep(&a)->peers[MRF_CONN_LINE].of[to];
}

static void look(struct left *left)
{
	struct mrf_ep *ep = node_ep(&a);
	const struct mrf_conn *conn;

	mrf_lock_take(&ep->lock);
	conn = line()->conn;
	left->posted = conn->ring[(conn->tail - 1) % MRF_CONN_RING];
	ck_assert_ptr_nonnull(left->posted.op);
	left->op = *left->posted.op;
	left->nops = ep->nops;
	left->scq_used = ep->scq_used;
	left->in_flight = conn->tail - conn->head;
	left->clock = ep->clock;
	left->frames = line()->line.posted;
	mrf_lock_release(&ep->lock);
}

static void want_come(const struct call *c)
{
	struct fi_cq_data_entry entry = want_ok(&b, in);

	ck_assert_uint_eq(entry.len, c->len);
	ck_assert_int_eq(memcmp(in, out, c->len), 0);
	if (c->what == SENDDATA || c->what == INJECTDATA)
		ck_assert_uint_eq(entry.data, DATA);
}

static void receive(const struct call *c)
{
	void *desc = in_mr ? fi_mr_desc(in_mr) : NULL;

	memset(in, 0, MAX);
	if (c->tagged)
		ck_assert_int_eq(fi_trecv(b.ep, in, MAX, desc, FI_ADDR_UNSPEC, TAG, 0, in), 0);
	else
		ck_assert_int_eq(fi_recv(b.ep, in, MAX, desc, FI_ADDR_UNSPEC, in), 0);
}

static bool may_send(void)
{
	struct mrf_ep *ep = node_ep(&a);
	bool open;

	mrf_lock_take(&ep->lock);
	open = mrf_outlet_is_open(&line()->line);
	mrf_lock_release(&ep->lock);
	return open;
}

/*
 * Makes the call, and looks while its work request is held. The last note may still be on its way:
 * while the window is closed, the short way is closed, too.
 */
static void make(const struct call *c, struct left *left)
{
	memset(left, 0, sizeof(*left));
	receive(c);
	want_soon(may_send());
	fake_hold_all(true);
	watching = left;
	ck_assert_int_eq(c->tagged ? tagged_call(c) : plain_call(c), 0);
	watching = NULL;
	look(left);
	fake_hold_all(false);
	if (left->op.silent)
		want_idle(&a);
	else
		want_ok(&a, out);
	want_come(c);
}

/* --- the comparison ------------------------------------------------------------------- */

static void same_op(const struct call *c, struct mrf_op x, struct mrf_op y)
{
	size_t at = offsetof(struct mrf_op, type);

	/* Of the frame after, with another stamp. */
	ck_assert_uint_eq(y.psn.from, x.psn.from + 1);
	ck_assert_uint_eq(y.psn.to, x.psn.to + 1);
	y.psn.from = x.psn.from;
	y.psn.to = x.psn.to;
	y.stamp = x.stamp;
	for (; at < offsetof(struct mrf_op, local.sge); at++)
		ck_assert_msg(((uint8_t *)&x)[at] == ((uint8_t *)&y)[at],
			      "%s: the operations differ in byte %zu", name(c), at);
	ck_assert_msg(
		!memcmp(x.local.sge, y.local.sge, (size_t)x.local.nsge * sizeof(*x.local.sge)),
		"%s: pieces", name(c));
	ck_assert_msg(!memcmp(x.local.desc, y.local.desc, (size_t)x.local.ndesc * sizeof(void *)),
		      "%s: descriptors", name(c));
	if (x.local.kind == MRF_LOCAL_INLINE)
		ck_assert_msg(!memcmp(x.local.data, y.local.data, c->len), "%s: data", name(c));
}

static void same_head(const struct left *x, const struct left *y)
{
	struct mrf_frame_message f, g;
	size_t len = x->sge[0].len;

	ck_assert_uint_eq(len, y->sge[0].len);
	ck_assert_int_eq(mrf_frame_message_decode(x->head, len, &f), 0);
	ck_assert_int_eq(mrf_frame_message_decode(y->head, len, &g), 0);
	ck_assert_uint_eq(g.number, f.number + 1);
	ck_assert(f.flags == g.flags && f.tag == g.tag && f.cq_data == g.cq_data);
}

static void same_frame(const struct call *c, const struct left *x, const struct left *y, bool head)
{
	ck_assert_int_eq(x->has_imm, !head);
	ck_assert_int_eq(y->has_imm, !head);
	ck_assert_uint_eq(x->imm, y->imm);
	ck_assert_uint_eq(x->nsge, (unsigned)head + !!c->len);
	ck_assert_uint_eq(x->nsge, y->nsge);
	ck_assert_int_eq(x->is_inline, y->is_inline);
	if (head)
		same_head(x, y);
	if (!c->len)
		return;
	ck_assert_uint_eq(x->sge[head].len, c->len);
	ck_assert_uint_eq(y->sge[head].len, c->len);
	/* What is described goes from where it is; of everything else there is a copy. */
	if (x->is_inline)
		return;
	ck_assert_uint_eq(x->sge[head].addr, y->sge[head].addr);
	ck_assert_uint_eq(x->sge[head].lkey, y->sge[head].lkey);
}

static void same(const struct call *c, const struct left *x, const struct left *y, bool head)
{
	ck_assert_ptr_eq(x->posted.op, y->posted.op);
	ck_assert_uint_eq(x->posted.bytes, y->posted.bytes);
	ck_assert_uint_eq(x->posted.more, y->posted.more);
	ck_assert_uint_eq(x->nops, y->nops);
	ck_assert_uint_eq(x->scq_used, y->scq_used);
	ck_assert_uint_eq(x->in_flight, y->in_flight);
	ck_assert_uint_eq(y->clock, x->clock + 1);
	ck_assert_uint_eq(y->frames, x->frames + 1);
	same_op(c, x->op, y->op);
	same_frame(c, x, y, head);
}

static size_t allow_short(size_t now)
{
	return atomic_exchange(&node_ep(&a)->short_send, now);
}

/* With a head, or without one where that is possible: the message before has named the tag. */
static void check_one(const struct call *c, bool is_short, bool head)
{
	static struct left x, y;
	size_t allowed;

	if (head)
		give_next_a_head(node_ep(&a), to);
	make(c, &x);
	ck_assert_msg(x.by_long_way == !is_short, "%s: %s", name(c), is_short ? "long" : "short");
	allowed = allow_short(0);
	if (head)
		give_next_a_head(node_ep(&a), to);
	make(c, &y);
	allow_short(allowed);
	ck_assert(y.by_long_way);
	same(c, &x, &y, head || c->what == SENDDATA || c->what == INJECTDATA);
}

static void check(const struct call *c, bool is_short)
{
	check_one(c, is_short, true);
	check_one(c, is_short, false);
}

/* --- worlds --------------------------------------------------------------------------- */

static const struct world {
	int mr_mode;
	bool selective;
	uint64_t op_flags;
} worlds[] = {
	{ .mr_mode = FI_MR_ALLOCATED },
	{ .mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL },
	{ .mr_mode = FI_MR_ALLOCATED, .selective = true },
	{ .mr_mode = FI_MR_ALLOCATED, .selective = true, .op_flags = FI_COMPLETION },
	{ .mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL, .op_flags = FI_TRANSMIT_COMPLETE },
};

static void open_world(const struct world *world)
{
	struct call first = { .what = SEND, .len = 8, .described = true };
	struct node_opt opt = { .mr_mode = world->mr_mode,
				.selective = world->selective,
				.op_flags = world->op_flags };
	struct left left;
	unsigned i;

	node_open(&a, &opt);
	node_open(&b, &(struct node_opt){ .mr_mode = world->mr_mode });
	to = node_insert(&a, &b);
	node_insert(&b, &a);
	out = pages(MAX);
	in = pages(MAX);
	fill(out, MAX, 3);
	out_mr = node_reg(&a, out, MAX, FI_SEND, 1);
	in_mr = node_reg(&b, in, MAX, FI_RECV, 2);
	/* The line, operations to be used again, and a slot. */
	for (i = 0; i < 4; i++) {
		first.len = i % 2 ? 8 : 1000;
		first.described = i < 2 || world->mr_mode & FI_MR_LOCAL;
		receive(&first);
		ck_assert_int_eq(plain_call(&first), 0);
		want_come(&first);
		want_idle(&a);
	}
	while (fi_cq_read(a.cq, &left, 1) == 1)
		;
}

static void close_world(void)
{
	must_close(&out_mr->fid);
	must_close(&in_mr->fid);
	node_close(&a);
	node_close(&b);
}

static void check_len(const struct world *world, size_t len)
{
	struct call c = { .len = len };
	unsigned i;

	for (i = 0; i < 2 * WHATS * 2; i++) {
		c.what = i % WHATS;
		c.tagged = i / WHATS % 2;
		c.described = i / WHATS / 2;
		if (c.what == INJECT || c.what == INJECTDATA) {
			if (!c.described && len <= MRF_LIMIT_INJECT)
				check(&c, true);
		} else if (c.described || !len || !(world->mr_mode & FI_MR_LOCAL)) {
			check(&c, true);
		}
	}
}

START_TEST(short_messages_leave_what_long_ones_leave)
{
	static const size_t lens[] = { 0, 1, 8, 63, 255, 256, 257, 1000, 4095, 4096, 4097, MAX };
	const struct world *world = &worlds[_i];

	open_world(world);
	for (unsigned i = 0; i < MRF_ARRAY_SIZE(lens); i++)
		check_len(world, lens[i]);
	close_world();
}
END_TEST

/* Flags of the endpoint that the short way does not look at. */
static const uint64_t others[] = { FI_INJECT, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE };

START_TEST(other_flags_of_the_endpoint_take_the_long_way)
{
	struct node_opt opt = { .op_flags = others[_i] };

	node_open(&a, &opt);
	ck_assert_uint_eq(node_ep(&a)->short_send, 0);
	node_close(&a);
}
END_TEST

/* The window is closed, or something waits: the short way must not overtake it. */
START_TEST(what_waits_is_not_overtaken)
{
	unsigned i, round, n = 3 * MRF_WINDOW_FIRST;

	open_world(&worlds[0]);
	/* The first round leaves operations that the short way uses again. */
	for (round = 0; round < 2; round++) {
		memset(in, 0, 8 * n);
		fake_hold_all(true);
		for (i = 0; i < n; i++)
			ck_assert_int_eq(fi_send(a.ep, out + 8 * i, 8, NULL, to, out + 8 * i), 0);
		ck_assert_uint_le(fake_queued(), line()->line.window);
		fake_hold_all(false);
		for (i = 0; i < n; i++)
			ck_assert_int_eq(
				fi_recv(b.ep, in + 8 * i, 8, NULL, FI_ADDR_UNSPEC, in + 8 * i), 0);
		for (i = 0; i < n; i++)
			want_ok(&b, in + 8 * i);
		for (i = 0; i < n; i++)
			want_ok(&a, out + 8 * i);
		ck_assert_int_eq(memcmp(in, out, 8 * n), 0);
	}
	close_world();
}
END_TEST

/* What the long way refuses, the short way does not take. */
START_TEST(too_long_messages_are_refused)
{
	struct fid_mr *mr;
	uint8_t *more;

	open_world(&worlds[_i]);
	more = pages(2 * MAX);
	mr = node_reg(&a, more, 2 * MAX, FI_SEND, 3);
	ck_assert_int_eq(fi_inject(a.ep, more, MRF_LIMIT_INJECT + 1, to), -FI_EMSGSIZE);
	ck_assert_int_eq(fi_send(a.ep, more, MRF_LIMIT_MSG_SIZE + 1, fi_mr_desc(mr), to, NULL),
			 -FI_EMSGSIZE);
	must_close(&mr->fid);
	close_world();
}
END_TEST

static TCase *tcase_short_msg(void)
{
	TCase *tc = tcase_create("short_msg");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, short_messages_leave_what_long_ones_leave, 0,
			    MRF_ARRAY_SIZE(worlds));
	tcase_add_loop_test(tc, other_flags_of_the_endpoint_take_the_long_way, 0,
			    MRF_ARRAY_SIZE(others));
	tcase_add_test(tc, what_waits_is_not_overtaken);
	tcase_add_loop_test(tc, too_long_messages_are_refused, 0, 2);
	return tc;
}

UNIT_MAIN("short messages", tcase_short_msg)
