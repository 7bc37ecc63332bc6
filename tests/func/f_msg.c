/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of fi_msg(3) between processes: every byte that arrives, and every one beside it. */
#include "harness.h"

#define MAX 16384u
#define ROOM (2 * BUF_GUARD + 16 * MAX)

static __attribute__((constructor)) void caps(void)
{
	func_caps = FI_MSG;
}

static const size_t sizes[] = { 0, 1, 8, 104, 105, 256, 257, 1000, 4096, 4097, 8192, 12345, MAX };

static struct msg_part part(struct env *e, struct buf *b, size_t off, size_t len)
{
	return (struct msg_part){ .buf = b, .off = off, .len = len, .to = target(e)->addr };
}

/* This side sends; it completes here with success. */
static void send_ok(struct env *e, struct buf *b, size_t off, size_t len)
{
	struct msg_part m = part(e, b, off, len);

	must_ok((int)msg_send(me(e), &m));
	fab_wait_ok(me(e), 1);
}

/* The next completion at the peer is of a receive. */
static void peer_got(struct peer *p, size_t len)
{
	struct done d;

	must(peer_done(p, &d, SOON), "the peer receives nothing");
	must(!d.err, "the peer: err %d (%s)", d.err, fi_strerror(d.err));
	must(d.flags == (FI_MSG | FI_RECV) && d.len == len, "flags 0x%llx, %zu bytes",
	     (unsigned long long)d.flags, d.len);
}

IN_MODES(MODES_ALL | MODE(MODE_RAW_NATIVE) | MODE(MODE_ENDPOINT) | MODE(MODE_EVERYTHING) |
	 MODE(MODE_EVENT_NATIVE))

CASE(messages_arrive)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1);
	size_t off = BUF_GUARD;

	peer_alloc(p, 0, ROOM, 2);
	for (unsigned i = 0; i < 13; i++) {
		size_t len = sizes[i];

		if (i % 2)
			peer_recv(p, 0, off, len, 1);
		send_ok(e, b, off, len);
		if (!(i % 2))
			peer_recv(p, 0, off, len, 1);
		peer_got(p, len);
		peer_want(p, 0, off, len, 1, off);
		off += len;
	}
	peer_same(p, 0);
	buf_same(b);
}

CASE(messages_come_back)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1);
	fi_addr_t back = peer_insert(p, me(e)->name, me(e)->name_len);
	size_t off = BUF_GUARD;
	struct done d;

	peer_alloc(p, 0, ROOM, 2);
	for (unsigned i = 0; i < 13; i++) {
		struct msg_part m = {
			.buf = b, .off = off, .len = sizes[i], .to = FI_ADDR_UNSPEC, .ctx = &m
		};

		must_ok((int)msg_recv(me(e), &m));
		must(!peer_send(p, 0, off, sizes[i], back, 1), "the peer cannot send");
		must(fab_done(me(e), &d, SOON) && !d.err, "err %d: %s", d.err, d.text);
		must(d.ctx == &m && d.len == sizes[i], "%zu bytes", d.len);
		buf_want(b, off, sizes[i], 2, off);
		off += sizes[i];
	}
	buf_same(b);
	peer_same(p, 0);
}

IN_MODES(MODES_TWO | MODE(MODE_EVERYTHING))

#define LONG (16u << 20)

static const size_t long_sizes[] = { MAX + 1, 100000, 1u << 20, (1u << 20) + 1, 4u << 20, 3000000 };

static void long_ones_arrive(struct env *e, bool posted)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, LONG, 1);
	size_t off = BUF_GUARD;

	peer_alloc(p, 0, LONG, 2);
	for (unsigned i = 0; i < 6; i++) {
		struct msg_part m = part(e, b, off, long_sizes[i]);

		if (posted)
			peer_recv(p, 0, off, m.len, 1);
		must_ok((int)msg_send(me(e), &m));
		if (!posted)
			peer_recv(p, 0, off, m.len, 1);
		fab_wait_ok(me(e), 1);
		peer_got(p, m.len);
		peer_want(p, 0, off, m.len, 1, off);
		off += m.len;
	}
	peer_same(p, 0);
	buf_same(b);
}

CASE(long_messages_arrive)
{
	long_ones_arrive(e, true);
}

CASE(long_messages_wait_for_their_receives)
{
	long_ones_arrive(e, false);
}

CASE(many_long_messages_are_on_the_way)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, LONG, 1);
	struct msg_part m = part(e, b, BUF_GUARD, 100000);

	peer_alloc(p, 0, LONG, 2);
	peer_recv(p, 0, BUF_GUARD, m.len, 150);
	for (unsigned i = 0; i < 150; i++, m.off += m.len)
		must_ok((int)msg_send(me(e), &m));
	fab_wait_ok(me(e), 150);
	for (unsigned i = 0; i < 150; i++)
		peer_got(p, m.len);
	peer_want(p, 0, BUF_GUARD, 150 * m.len, 1, BUF_GUARD);
	peer_same(p, 0);
}

static void send_flags(struct env *e, struct buf *b, size_t off, size_t len, uint64_t flags)
{
	struct iovec iov = { b->mem + off, len };
	struct fi_msg msg = {
		.msg_iov = &iov, .desc = &b->desc, .iov_count = 1, .addr = target(e)->addr
	};

	must_ok((int)fi_sendmsg(me(e)->ep, &msg, flags));
}

/* The peer has all that it needs for a while, but for the receive. */
CASE(a_message_completes_when_a_receive_has_taken_it)
{
	static const size_t lens[] = { 0, 8, MAX, 100000 };
	struct peer *p = target(e);
	struct buf *b = buf(e, LONG, 1);
	size_t off = BUF_GUARD;
	struct done d;

	peer_alloc(p, 0, LONG, 2);
	for (unsigned i = 0; i < 4; i++) {
		send_flags(e, b, off, lens[i], FI_COMPLETION | FI_MATCH_COMPLETE);
		must(!fab_done(me(e), &d, 100), "it completes although no receive is posted");
		peer_recv(p, 0, off, lens[i], 1);
		fab_wait_ok(me(e), 1);
		peer_got(p, lens[i]);
		peer_want(p, 0, off, lens[i], 1, off);
		off += lens[i];
	}
	peer_same(p, 0);
	buf_same(b);
}

static void write_fenced(struct env *e, struct buf *b, const struct region *r, size_t len)
{
	struct iovec iov = { b->mem + BUF_GUARD, len };
	struct fi_rma_iov rma = { r->base, len, r->key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &b->desc,
				  .iov_count = 1,
				  .addr = target(e)->addr,
				  .rma_iov = &rma,
				  .rma_iov_count = 1 };

	must_ok((int)fi_writemsg(me(e)->ep, &msg, FI_COMPLETION | FI_FENCE));
}

/* Before it, a long message waits; behind it, a short one. */
CASE(a_fence_is_between_messages_and_writes)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, LONG, 1);
	struct msg_part m = part(e, b, BUF_GUARD, 100000);
	struct region r;
	struct done d;

	peer_alloc(p, 0, LONG, 2);
	peer_alloc(p, 1, 3 * 4096, 3);
	r = peer_reg(p, 1, 4096, 4096, REMOTE_RW, 5);
	access_ok(e, WRITE, b, BUF_GUARD, 8, &r, 0);
	must_ok((int)msg_send(me(e), &m));
	write_fenced(e, b, &r, 1000);
	m.len = 100;
	must_ok((int)msg_send(me(e), &m));
	must(!fab_done(me(e), &d, 100), "something has ended before the long message");
	peer_same(p, 1);
	peer_recv(p, 0, BUF_GUARD, 100000, 1);
	peer_got(p, 100000);
	peer_want(p, 0, BUF_GUARD, 100000, 1, BUF_GUARD);
	fab_wait_ok(me(e), 3);
	peer_want(p, 1, 4096, 1000, 1, BUF_GUARD);
	peer_same(p, 1);
	peer_recv(p, 0, BUF_GUARD, 100, 1);
	peer_got(p, 100);
	peer_same(p, 0);
}

/* The peer's application does nothing meanwhile: its agent gives the window back. */
/* The write takes longer than the message, which goes over another connection. */
CASE(a_fence_is_between_writes_and_messages)
{
	enum { BYTES = 2u << 20 };
	struct peer *p = target(e);
	struct buf *b = buf(e, BYTES + 2 * BUF_GUARD, 1);
	struct region r;

	peer_alloc(p, 0, BYTES + 2 * BUF_GUARD, 2);
	peer_alloc(p, 1, 2 * BUF_GUARD + 8, 3);
	r = peer_reg(p, 0, BUF_GUARD, BYTES, FI_REMOTE_WRITE, 9);
	for (uint64_t seed = 10; seed < 14; seed++) {
		struct op write = { .buf = b,
				    .off = BUF_GUARD,
				    .len = BYTES,
				    .to = p->addr,
				    .addr = r.base,
				    .key = r.key };

		buf_fill(b, seed);
		peer_recv(p, 1, BUF_GUARD, 8, 1);
		peer_want(p, 0, r.off, BYTES, seed, BUF_GUARD);
		must_ok((int)op_post(me(e), &write));
		send_flags(e, b, BUF_GUARD, 8, FI_COMPLETION | FI_FENCE);
		peer_got(p, 8);
		peer_same(p, 0);
		fab_wait_ok(me(e), 2);
	}
}

CASE(many_wait_for_their_receives)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1);
	struct msg_part m = part(e, b, BUF_GUARD, 100);

	peer_alloc(p, 0, ROOM, 2);
	for (unsigned i = 0; i < 2000; i++, m.off += m.len) {
		must_ok((int)msg_send(me(e), &m));
		fab_wait_ok(me(e), 1);
	}
	peer_recv(p, 0, BUF_GUARD, 100, 2000);
	for (unsigned i = 0; i < 2000; i++)
		peer_got(p, 100);
	peer_want(p, 0, BUF_GUARD, 200000, 1, BUF_GUARD);
	peer_same(p, 0);
}

/* Both ways at a time, and accesses between them. */
CASE(messages_and_writes_do_not_disturb_each_other)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1);
	struct region r;
	struct done d;
	struct op op;

	peer_alloc(p, 0, ROOM, 2);
	peer_alloc(p, 1, 3 * 4096, 3);
	r = peer_reg(p, 1, 4096, 4096, REMOTE_RW, 5);
	for (unsigned i = 0; i < 20; i++) {
		access_ok(e, WRITE, b, BUF_GUARD + 100 * i, 100, &r, 100 * i);
		peer_recv(p, 0, BUF_GUARD + 100 * i, 100, 1);
		send_ok(e, b, BUF_GUARD + 100 * i, 100);
		peer_got(p, 100);
	}
	peer_want(p, 0, BUF_GUARD, 2000, 1, BUF_GUARD);
	/* A refused access ends a connection, but not the line. */
	op = op_make(e, WRITE, b, BUF_GUARD, 100, &r, 4096);
	op_run(me(e), &op, &d);
	must(d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	peer_recv(p, 0, BUF_GUARD + 2000, 100, 1);
	send_ok(e, b, BUF_GUARD + 2000, 100);
	peer_got(p, 100);
	peer_want(p, 0, BUF_GUARD + 2000, 100, 1, BUF_GUARD + 2000);
	peer_same(p, 0);
	peer_same(p, 1);
}

CASE(what_is_too_long_is_cut)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1);
	struct done d;

	peer_alloc(p, 0, ROOM, 2);
	peer_recv(p, 0, BUF_GUARD, 100, 1);
	send_ok(e, b, BUF_GUARD, 5000);
	must(peer_done(p, &d, SOON) && d.err == FI_ETRUNC && d.len == 100, "err %d, %zu bytes",
	     d.err, d.len);
	peer_want(p, 0, BUF_GUARD, 100, 1, BUF_GUARD);
	peer_same(p, 0);
}

CASE(data_and_injected_bytes_arrive)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1);
	struct done d;
	uint8_t bytes[200];

	peer_alloc(p, 0, ROOM, 2);
	peer_recv(p, 0, BUF_GUARD, 200, 2);
	must_ok((int)fi_senddata(me(e)->ep, b->mem + BUF_GUARD, 200, b->desc, 0x87654321, p->addr,
				 NULL));
	fab_wait_ok(me(e), 1);
	pattern(bytes, 1, BUF_GUARD + 200, 200);
	must_ok((int)fi_inject(me(e)->ep, bytes, 200, p->addr));
	memset(bytes, 0, sizeof(bytes));
	must(peer_done(p, &d, SOON) && d.data == 0x87654321, "data 0x%llx",
	     (unsigned long long)d.data);
	must(d.flags == (FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA), "flags 0x%llx",
	     (unsigned long long)d.flags);
	peer_got(p, 200);
	peer_want(p, 0, BUF_GUARD, 400, 1, BUF_GUARD);
	peer_same(p, 0);
}

/* What was sent before fails or has arrived; the next peer at that address is another one. */
CASE(a_peer_that_dies_fails_what_is_sent)
{
	struct peer *p = peer(e, 1);
	struct buf *b = buf(e, ROOM, 1);
	struct msg_part m = { .buf = b, .off = BUF_GUARD, .len = 100, .to = p->addr };
	struct done d;

	must_ok((int)msg_send(me(e), &m));
	fab_wait_ok(me(e), 1);
	peer_kill(p);
	for (unsigned i = 0; i < 5; i++) {
		must_ok((int)msg_send(me(e), &m));
		must(fab_done(me(e), &d, SOON), "a send to a dead peer never ends");
		must(d.err, "a send to a dead peer succeeds");
	}
}
