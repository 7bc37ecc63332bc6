/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_ORDER_SAW, SAR, RAS and WAS between processes, whose messages and accesses go over two
 * connections. What comes second is short and what comes first takes long, so that it would overtake:
 * a message tells the peer that bytes are written, or that it may change those that were to be read;
 * an access is done when all messages before it have come.
 */
#include "harness.h"

#define LEN (8u << 20)
#define ROOM (LEN + 2 * BUF_GUARD)
#define ROUNDS 4
#define SHORT 8u
#define MESSAGES 64u
#define MESSAGE 16384u

static __attribute__((constructor)) void what(void)
{
	func_caps = FI_MSG;
	func_order = FI_ORDER_SAW | FI_ORDER_SAR | FI_ORDER_RAS | FI_ORDER_WAS;
}

/* Slot 0 of the peer is accessed, slot 1 receives. */
static struct region region_open(struct peer *p, uint64_t seed)
{
	peer_alloc(p, 0, ROOM, seed);
	peer_alloc(p, 1, MESSAGES * MESSAGE + 2 * BUF_GUARD, 3);
	return peer_reg(p, 0, BUF_GUARD, LEN, REMOTE_RW, 4);
}

static void access_start(struct env *e, bool read, struct buf *b, size_t len,
			 const struct region *r)
{
	struct op op = { .read = read,
			 .buf = b,
			 .off = BUF_GUARD,
			 .len = len,
			 .to = target(e)->addr,
			 .addr = r->base,
			 .key = r->key,
			 .ctx = b };

	must_ok((int)op_post(me(e), &op));
}

static void send_start(struct env *e, struct buf *b, size_t off, size_t len)
{
	struct msg_part m = {
		.buf = b, .off = off, .len = len, .to = target(e)->addr, .ctx = NULL
	};

	must_ok((int)msg_send(me(e), &m));
}

static void peer_hears(struct peer *p, size_t len, long ms)
{
	struct done d;

	must(peer_done(p, &d, ms), "the message has not come");
	must(!d.err && d.len == len, "err %d, %zu bytes", d.err, d.len);
}

IN_MODES(MODE(MODE_RAW_NATIVE) | MODE(MODE_ENDPOINT))

CASE(a_message_announces_what_was_written)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1), *note = buf(e, 2 * BUF_GUARD + SHORT, 2);
	struct region r = region_open(p, 7);

	for (uint64_t seed = 10; seed < 10 + ROUNDS; seed++) {
		buf_fill(b, seed);
		peer_recv(p, 1, BUF_GUARD, SHORT, 1);
		peer_want(p, 0, r.off, LEN, seed, BUF_GUARD);
		access_start(e, false, b, LEN, &r);
		send_start(e, note, BUF_GUARD, SHORT);
		peer_hears(p, SHORT, SOON);
		peer_same(p, 0);
		fab_wait_ok(me(e), 2);
	}
}

CASE(a_message_allows_what_was_read_to_change)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1), *note = buf(e, 2 * BUF_GUARD + SHORT, 2);
	struct region r = region_open(p, 20);

	for (uint64_t seed = 20; seed < 20 + ROUNDS; seed++) {
		peer_recv(p, 1, BUF_GUARD, SHORT, 1);
		access_start(e, true, b, LEN, &r);
		send_start(e, note, BUF_GUARD, SHORT);
		peer_hears(p, SHORT, SOON);
		peer_fill(p, 0, seed + 1);
		fab_wait_ok(me(e), 2);
		buf_want(b, BUF_GUARD, LEN, seed, BUF_GUARD);
		buf_same(b);
	}
}

/* The access is done: how far have the messages come? */
static void messages_come_before(struct env *e, bool read)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, ROOM, 1);
	struct region r = region_open(p, 7);
	struct done d;

	for (int round = 0; round < ROUNDS; round++) {
		unsigned sent = 0;
		bool done = false;

		peer_recv(p, 1, BUF_GUARD, MESSAGE, MESSAGES);
		for (unsigned i = 0; i < MESSAGES; i++)
			send_start(e, b, BUF_GUARD + i * MESSAGE, MESSAGE);
		access_start(e, read, b, SHORT, &r);
		while (!done) {
			must(fab_done(me(e), &d, SOON) && !d.err, "err %d: %s", d.err, d.text);
			done = d.ctx == b;
			sent += !done;
		}
		for (unsigned i = 0; i < MESSAGES; i++)
			peer_hears(p, MESSAGE, 0);
		fab_wait_ok(me(e), (int)(MESSAGES - sent));
	}
}

CASE(a_read_is_done_after_the_messages_before_it)
{
	messages_come_before(e, true);
}

CASE(a_write_is_done_after_the_messages_before_it)
{
	messages_come_before(e, false);
}
