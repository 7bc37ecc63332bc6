/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tagged messages of fi_tagged(3) between processes. The driver receives, peers send: which receive
 * takes which message is seen by the bytes. Receive i has bytes ROOM * i and following, message i the
 * same bytes of the peer.
 */
#include <rdma/fi_tagged.h>
#include "harness.h"

#define RECVS 8u
#define ROOM 6000u
#define SIZE (2 * BUF_GUARD + RECVS * ROOM)
#define SEED(p) (2 + (p)) /* of the messages of that peer */

static struct fi_context contexts[RECVS]; /* of receives */

static __attribute__((constructor)) void caps(void)
{
	func_caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
	env_own.format = FI_CQ_FORMAT_TAGGED;
}

struct scene {
	struct env *e;
	struct buf *b;
	fi_addr_t back[2]; /* the driver, as peers call it */
};

static size_t place(unsigned i)
{
	return BUF_GUARD + i * ROOM;
}

static void scene_open(struct scene *s, struct env *e, unsigned peers)
{
	*s = (struct scene){ .e = e, .b = buf(e, SIZE, 1) };
	for (unsigned i = 0; i < peers; i++) {
		struct peer *p = peer(e, i);

		s->back[i] = peer_insert(p, me(e)->name, me(e)->name_len);
		peer_alloc(p, 0, SIZE, SEED(i));
	}
}

/* Message m of peer p; it is with the driver's kernel then. */
static void sent(struct scene *s, unsigned p, unsigned m, size_t len, uint64_t tag)
{
	must(!peer_tsend(peer(s->e, p), 0, place(m), len, s->back[p], tag), "peer %u cannot send",
	     p);
}

/* Receive i, or what else flags make of it. */
static int recv_with(struct scene *s, unsigned i, uint64_t tag, uint64_t ignore, fi_addr_t from,
		     uint64_t flags)
{
	struct iovec iov = { s->b->mem + place(i), ROOM };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .desc = &s->b->desc,
				     .iov_count = flags & FI_PEEK ? 0 : 1,
				     .addr = from,
				     .tag = tag,
				     .ignore = ignore,
				     .context = &contexts[i] };

	return (int)fi_trecvmsg(me(s->e)->ep, &msg, FI_COMPLETION | flags);
}

static void receive(struct scene *s, unsigned i, uint64_t tag, uint64_t ignore)
{
	must_ok(recv_with(s, i, tag, ignore, FI_ADDR_UNSPEC, 0));
}

/* The next completion; its source. */
static fi_addr_t next(struct scene *s, struct fi_cq_tagged_entry *entry)
{
	fi_addr_t source = FI_ADDR_NOTAVAIL;
	long end = now_ms() + SOON;
	ssize_t n;

	while ((n = fi_cq_readfrom(me(s->e)->cq, entry, 1, &source)) == -FI_EAGAIN)
		must(now_ms() < end, "nothing comes");
	must(n == 1, "fi_cq_readfrom: %zd", n);
	return source;
}

/* The next completion is of receive i, which has message m of peer p. */
static void got(struct scene *s, unsigned i, unsigned p, unsigned m, size_t len, uint64_t tag)
{
	struct fi_cq_tagged_entry entry = { 0 };
	fi_addr_t source = next(s, &entry);

	must(entry.op_context == &contexts[i], "it is receive %td, not %u",
	     (struct fi_context *)entry.op_context - contexts, i);
	must((entry.flags & ~FI_CLAIM) == (FI_TAGGED | FI_RECV), "flags 0x%llx",
	     (unsigned long long)entry.flags);
	must(entry.tag == tag && entry.len == len, "tag 0x%llx, %zu bytes",
	     (unsigned long long)entry.tag, entry.len);
	must(source == peer(s->e, p)->addr, "it says that somebody else has sent it");
	buf_want(s->b, place(i), len, SEED(p), place(m));
	buf_same(s->b);
}

/* What the next completion says of receive i: an error. */
static void fails(struct scene *s, unsigned i, int err)
{
	struct done d;

	must(fab_done(me(s->e), &d, SOON) && d.ctx == &contexts[i] && d.err == err, "err %d, %s",
	     d.err, d.text);
	buf_same(s->b);
}

/* Looks for a message of any source, and with FI_CLAIM or FI_DISCARD does that. */
static void peek(struct scene *s, unsigned i, uint64_t tag, uint64_t flags, size_t len)
{
	struct fi_cq_tagged_entry entry = { 0 };

	must_ok(recv_with(s, i, tag, 0, FI_ADDR_UNSPEC, FI_PEEK | flags));
	must(next(s, &entry) == peer(s->e, 0)->addr, "it says that somebody else has sent it");
	must(entry.op_context == &contexts[i] && entry.tag == tag && entry.len == len,
	     "tag 0x%llx, %zu bytes", (unsigned long long)entry.tag, entry.len);
	buf_same(s->b);
}

static void is_not_there(struct scene *s, unsigned i, uint64_t tag)
{
	must_ok(recv_with(s, i, tag, 0, FI_ADDR_UNSPEC, FI_PEEK));
	fails(s, i, FI_ENOMSG);
}

IN_MODES(MODES_TWO | MODE(MODE_EVERYTHING))

CASE(tags_and_masks_decide_which_receive_takes_a_message)
{
	struct scene s;

	scene_open(&s, e, 1);
	receive(&s, 0, 1, 0);
	receive(&s, 1, 0xf0, 0xf);
	receive(&s, 2, UINT64_MAX, 0);
	receive(&s, 3, 0, UINT64_MAX);
	sent(&s, 0, 0, 100, 0xf7);
	got(&s, 1, 0, 0, 100, 0xf7);
	sent(&s, 0, 1, 5000, UINT64_MAX);
	got(&s, 2, 0, 1, 5000, UINT64_MAX);
	sent(&s, 0, 2, ROOM, 0xf8);
	got(&s, 3, 0, 2, ROOM, 0xf8);
	sent(&s, 0, 3, 0, 1);
	got(&s, 0, 0, 3, 0, 1);
}

CASE(messages_wait_for_a_receive_with_their_tag)
{
	struct scene s;

	scene_open(&s, e, 1);
	sent(&s, 0, 0, 100, 10);
	sent(&s, 0, 1, 5000, 20);
	sent(&s, 0, 2, 300, 10);
	receive(&s, 0, 20, 0);
	got(&s, 0, 0, 1, 5000, 20);
	receive(&s, 1, 0, UINT64_MAX);
	got(&s, 1, 0, 0, 100, 10);
	receive(&s, 2, 10, 0);
	got(&s, 2, 0, 2, 300, 10);
}

CASE(directed_receives_take_what_their_source_sends)
{
	struct scene s;

	scene_open(&s, e, 2);
	must_ok(recv_with(&s, 0, 7, 0, peer(e, 1)->addr, 0));
	must_ok(recv_with(&s, 1, 7, 0, peer(e, 0)->addr, 0));
	sent(&s, 0, 0, 100, 7);
	got(&s, 1, 0, 0, 100, 7);
	sent(&s, 0, 1, 200, 7);
	sent(&s, 1, 2, 5000, 7);
	got(&s, 0, 1, 2, 5000, 7);
	/* One that waits is found by its source. */
	sent(&s, 1, 3, 300, 7);
	must_ok(recv_with(&s, 2, 7, 0, peer(e, 1)->addr, 0));
	got(&s, 2, 1, 3, 300, 7);
	receive(&s, 3, 7, 0);
	got(&s, 3, 0, 1, 200, 7);
}

CASE(messages_are_looked_at_set_aside_and_dropped)
{
	struct scene s;

	scene_open(&s, e, 1);
	is_not_there(&s, 0, 5);
	sent(&s, 0, 0, 5000, 5);
	sent(&s, 0, 1, 100, 5);
	sent(&s, 0, 2, 200, 6);
	peek(&s, 0, 5, 0, 5000);
	peek(&s, 0, 5, FI_CLAIM, 5000);
	/* The one behind it. */
	receive(&s, 1, 5, 0);
	got(&s, 1, 0, 1, 100, 5);
	is_not_there(&s, 2, 5);
	must_ok(recv_with(&s, 0, 5, 0, FI_ADDR_UNSPEC, FI_CLAIM));
	got(&s, 0, 0, 0, 5000, 5);
	peek(&s, 3, 6, FI_DISCARD, 200);
	is_not_there(&s, 3, 6);
}

CASE(a_canceled_receive_takes_nothing)
{
	struct scene s;

	scene_open(&s, e, 1);
	receive(&s, 0, 9, 0);
	receive(&s, 1, 9, 0);
	must_ok((int)fi_cancel(&me(e)->ep->fid, &contexts[0]));
	fails(&s, 0, FI_ECANCELED);
	sent(&s, 0, 0, 5000, 9);
	got(&s, 1, 0, 0, 5000, 9);
	must_be((int)fi_cancel(&me(e)->ep->fid, &contexts[1]), -FI_ENOENT);
}
