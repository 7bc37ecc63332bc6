/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that ask a target's agent for work without a pause: the target's own calls, and peers
 * that come later, get their turns all the same.
 */
#include <string.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include "atomics.h"
#include "harness.h"

static __attribute__((constructor)) void caps(void)
{
	func_caps = FI_ATOMIC;
}

#define TIMES 60u
#define ELEMENTS 384u /* as many as one request takes */
#define LATE 4096u    /* where the peer writes that comes later */

static void in_time(long since, const char *what)
{
	must(now_ms() - since <= SOON, "%s took %ld ms", what, now_ms() - since);
}

static uint8_t memory[2 * 4096] __attribute__((aligned(4096)));

static uint8_t first(void)
{
	return __atomic_load_n(memory, __ATOMIC_RELAXED);
}

static uint64_t base(struct env *e)
{
	return me(e)->virt ? (uintptr_t)memory : 0;
}

static void go(struct env *e, struct peer *p, struct fid_mr *mr)
{
	struct peer_atomic a = { .family = PLAIN,
				 .datatype = FI_UINT8,
				 .op = FI_SUM,
				 .count = ELEMENTS,
				 .addr = base(e),
				 .key = fi_mr_key(mr),
				 .operand = 0x0101010101010101,
				 .times = TIMES };

	a.to = peer_insert(p, me(e)->name, me(e)->name_len);
	peer_atomic_start(p, &a);
}

static void open_and_close(struct env *e)
{
	struct fid_ep *ep = NULL;
	long since = now_ms();

	must_ok(fi_endpoint(me(e)->domain, me(e)->info, &ep, NULL));
	in_time(since, "fi_endpoint");
	since = now_ms();
	must_ok(fi_close(&ep->fid));
	in_time(since, "fi_close");
}

static void comes_late(struct env *e, struct fid_mr *mr)
{
	struct peer *p = peer(e, 2);
	struct peer_rma rma = { false, 0, 0, 100, 0, 0, 0, 1 };
	long since;

	peer_alloc(p, 0, 4096, 3);
	rma.to = peer_insert(p, me(e)->name, me(e)->name_len);
	rma.addr = base(e) + LATE;
	rma.key = fi_mr_key(mr);
	since = now_ms();
	peer_rma_start(p, &rma);
	must_ok(peer_rma_end(p));
	in_time(since, "a new peer's first write");
}

IN_MODES(MODES_ONE)
CASE(calls_and_new_peers_do_not_wait_for_peers_that_never_pause)
{
	struct fid_mr *mr;
	unsigned i;

	memset(memory, 0, sizeof(memory));
	must_ok(fi_mr_reg(me(e)->domain, memory, sizeof(memory), REMOTE_RW, 0, 4, 0, &mr, NULL));
	/* The third one is there before they begin, but has never met this target. */
	peer(e, 2);
	for (i = 0; i < 2; i++)
		go(e, peer(e, i), mr);
	while (!first())
		usleep(1000);
	for (i = 0; i < 3; i++)
		open_and_close(e);
	comes_late(e, mr);
	must(first() < 2 * TIMES, "the peers have long paused");
	for (i = 0; i < 2; i++)
		must_ok(peer_atomic_end(peer(e, i), NULL, NULL));
	for (i = 0; i < ELEMENTS; i++)
		must(memory[i] == 2 * TIMES, "element %u is %u", i, memory[i]);
	must_ok(fi_close(&mr->fid));
}
