/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What takes one thread long keeps no other thread from its operations on the same endpoint: a
 * large buffer that nobody registered is pinned and sent to one peer, and another peer does not
 * answer at all. Nothing here depends on how fast the machine is: what is counted is how many
 * small operations to a third peer are done meanwhile.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "harness.h"

#define LARGE ((size_t)64 << 20)
/* Hundreds are done on an emulated machine, and one or two if they have to wait. */
#define WANTED 25u

/* fi_write of a buffer that nobody registered: the call pins it. */
static struct large {
	struct fid_ep *ep;
	struct region to;
	void *mem;
	atomic_bool called, returned;
	ssize_t ret;
} large;

static uint64_t small = 0x1122334455667788, silent;
static bool large_done, silent_done;

static void *write_large(void *arg)
{
	(void)arg;
	atomic_store(&large.called, true);
	large.ret = fi_write(large.ep, large.mem, LARGE, NULL, large.to.peer->addr, large.to.base,
			     large.to.key, &large);
	atomic_store(&large.returned, true);
	return NULL;
}

static struct region region_of(struct peer *p, size_t len)
{
	return far_reg(p, far_map(p, 0, len, RW, ANON), len, REMOTE_RW, 7);
}

/* An address in the device's network that nobody has. */
static fi_addr_t nobody(struct env *e)
{
	union {
		struct sockaddr_in in;
		char name[NAME_LEN];
	} u;

	memcpy(u.name, me(e)->name, sizeof(u.name));
	must(u.in.sin_family == AF_INET, "the usual address is not IPv4");
	u.in.sin_addr.s_addr = htonl((ntohl(u.in.sin_addr.s_addr) & ~0xffu) | 250);
	return fab_insert(me(e), u.name);
}

static void note_done(const struct done *d)
{
	/* On a slow machine it is given up before the large buffer has been sent. */
	if (d->ctx == &silent)
		silent_done = true;
	else
		must(!d->err, "err %d, %s", d->err, d->text);
	if (d->ctx == &large)
		large_done = true;
}

/* Completions of the other operations may come first. */
static void wait_for(struct env *e, const void *ctx)
{
	struct done d;

	do {
		must(fab_done(me(e), &d, SOON), "no completion after %d ms", SOON);
		note_done(&d);
	} while (d.ctx != ctx);
}

static void write_small(struct env *e, const struct region *r)
{
	ssize_t ret;
	struct done d;

	while ((ret = fi_write(me(e)->ep, &small, sizeof(small), NULL, r->peer->addr, r->base,
			       r->key, &small)) == -FI_EAGAIN) {
		if (fab_poll(me(e), &d))
			note_done(&d);
	}
	must_ok((int)ret);
	wait_for(e, &small);
	/* Else the other thread may long not get a lock that this one takes again and again. */
	usleep(100);
}

static void begin_silent(struct env *e, fi_addr_t to)
{
	silent_done = false;
	must_ok((int)fi_write(me(e)->ep, &silent, sizeof(silent), NULL, to, 0, 7, &silent));
}

static void end_silent(struct env *e, fi_addr_t to)
{
	/* Either it is canceled, or it has just failed: it completes. */
	if (!silent_done) {
		fi_cancel(&me(e)->ep->fid, &silent);
		wait_for(e, &silent);
	}
	must_ok(fi_av_remove(me(e)->av, &to, 1, 0));
}

static void begin_large(struct env *e, pthread_t *thread)
{
	large.ep = me(e)->ep;
	large.to = region_of(peer(e, 1), LARGE);
	large.mem = mmap(NULL, LARGE, RW, ANON, -1, 0);
	must(large.mem != MAP_FAILED, "no memory");
	/* Connecting is not what takes long here. */
	write_small(e, &large.to);
	large_done = false;
	atomic_store(&large.called, false);
	atomic_store(&large.returned, false);
	must_ok(pthread_create(thread, NULL, write_large, NULL));
	while (!atomic_load(&large.called))
		sched_yield();
}

IN_MODES(MODES_ONE)

CASE(small_writes_do_not_wait_for_a_large_buffer_or_a_silent_peer)
{
	unsigned dialling = 0, pinning = 0, sending = 0;
	struct region r = region_of(peer(e, 0), PAGE);
	fi_addr_t to = nobody(e);
	pthread_t thread;

	write_small(e, &r);
	begin_silent(e, to);
	for (; dialling < WANTED && !silent_done; dialling++)
		write_small(e, &r);
	must(dialling == WANTED, "only %u small writes before the silent peer failed", dialling);
	begin_large(e, &thread);
	for (; !atomic_load(&large.returned); pinning++)
		write_small(e, &r);
	for (; !large_done; sending++)
		write_small(e, &r);
	must_ok(pthread_join(thread, NULL));
	must(!large.ret, "fi_write: %zd", large.ret);
	must(pinning >= WANTED, "only %u small writes while the large buffer was pinned", pinning);
	must(sending >= WANTED, "only %u small writes while it was sent", sending);
	end_silent(e, to);
	munmap(large.mem, LARGE);
}
