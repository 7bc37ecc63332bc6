/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from and to memory of devices: the driver has it, ordinary peers receive and send. Every byte
 * that arrives is compared, and every one beside it.
 */
#include <rdma/fi_tagged.h>
#include "device.h"

#define ROOM (8 * MIB)

static __attribute__((constructor)) void caps(void)
{
	func_caps |= FI_MSG | FI_TAGGED;
}

static const size_t sizes[] = { 0,	 1,	      256,	    257,
				4096,	 16 * KIB,    16 * KIB + 1, 100000,
				MIB / 8, MIB / 8 + 1, MIB / 2,	    MIB / 2 + 3,
				MIB + 13 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void want_done(struct peer *p, size_t len)
{
	struct done d;

	must(peer_done(p, &d, SOON), "the peer receives nothing");
	must(!d.err, "the peer: err %d (%s)", d.err, fi_strerror(d.err));
	must(d.len == len, "%zu bytes", d.len);
}

IN_MODES(DEVICE_MODES)

/* Receives are posted before or after the sends. */
DEVICE_CASE(messages_leave_device_memory)
{
	struct peer *p = target(e);
	size_t off = 3;
	struct dev d;

	dev_open(me(e), &d, RT_DEVICE, ROOM, 1);
	peer_alloc(p, 0, ROOM, 2);
	for (unsigned i = 0; i < SIZES; i++) {
		struct msg_part m = {
			.buf = &d.b, .off = off, .len = sizes[i], .to = target(e)->addr
		};

		if (i % 2)
			peer_recv(p, 0, off, m.len, 1);
		must_ok((int)msg_send(me(e), &m));
		if (!(i % 2))
			peer_recv(p, 0, off, m.len, 1);
		fab_wait_ok(me(e), 1);
		want_done(p, m.len);
		peer_want(p, 0, off, m.len, 1, off);
		off += m.len;
	}
	peer_same(p, 0);
	dev_same(&d);
	dev_close(&d);
}

/* The peer's call ends when its message is sent. */
static void comes(struct env *e, struct dev *d, size_t off, size_t len, bool posted)
{
	struct peer *p = target(e);
	fi_addr_t back = peer_insert(p, me(e)->name, me(e)->name_len);
	struct msg_part m = {
		.buf = &d->b, .off = off, .len = len, .to = FI_ADDR_UNSPEC, .ctx = &m
	};
	struct done done;

	if (posted)
		must_ok((int)msg_recv(me(e), &m));
	must(!peer_send(p, 0, off, len, back, 1), "the peer cannot send");
	if (!posted)
		must_ok((int)msg_recv(me(e), &m));
	must(fab_done(me(e), &done, SOON) && !done.err, "err %d: %s", done.err, done.text);
	must(done.ctx == &m && done.len == len, "%zu bytes", done.len);
	pattern(d->b.want + off, 2, off, len);
}

DEVICE_CASE(messages_come_to_device_memory)
{
	size_t off = 3;
	struct dev d;

	dev_open(me(e), &d, RT_DEVICE, ROOM, 1);
	peer_alloc(target(e), 0, ROOM, 2);
	for (unsigned i = 0; i < SIZES; off += sizes[i++])
		comes(e, &d, off, sizes[i], i % 2 || sizes[i] > 16 * KIB);
	dev_same(&d);
	peer_same(target(e), 0);
	dev_close(&d);
}

/* Each has so many on the way, more than an endpoint has memory for. */
DEVICE_CASE(many_messages_leave_device_memory)
{
	struct peer *p = target(e);
	const size_t len = 200000;
	struct msg_part m = { .len = len, .to = p->addr };
	struct dev d;

	dev_open(me(e), &d, RT_DEVICE, ROOM, 1);
	peer_alloc(p, 0, ROOM, 2);
	m.buf = &d.b;
	for (unsigned i = 0; i < 40; i++, m.off += len)
		must_ok((int)msg_send(me(e), &m));
	peer_recv(p, 0, 0, len, 40);
	fab_wait_ok(me(e), 40);
	for (unsigned i = 0; i < 40; i++)
		want_done(p, len);
	peer_want(p, 0, 0, 40 * len, 1, 0);
	peer_same(p, 0);
	dev_close(&d);
}

/* Both ends are in memory of the device, and the sends come before the receives. */
DEVICE_CASE(messages_go_from_device_to_device)
{
	fi_addr_t self = fab_insert(me(e), me(e)->name);
	struct dev from, upto;
	size_t off = 5;

	dev_open(me(e), &from, RT_DEVICE, ROOM, 1);
	dev_open(me(e), &upto, RT_DEVICE, ROOM, 2);
	for (unsigned i = 0; i < SIZES; off += sizes[i++]) {
		struct msg_part m = {
			.buf = &from.b, .off = off, .len = sizes[i], .to = self, .tagged = true
		};

		must_ok((int)msg_send(me(e), &m));
		must_ok((int)fi_trecv(me(e)->ep, upto.b.mem + off, sizes[i], upto.b.desc,
				      FI_ADDR_UNSPEC, 0, 0, NULL));
		fab_wait_ok(me(e), 2);
		pattern(upto.b.want + off, 1, off, sizes[i]);
	}
	dev_same(&upto);
	dev_same(&from);
	dev_close(&upto);
	dev_close(&from);
}
