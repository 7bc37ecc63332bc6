/* SPDX-License-Identifier: BSD-2-Clause */
/* Several processes: at the same time, killed, gone, unknown. */
#include <arpa/inet.h>
#include "harness.h"

#define MIB (1024 * 1024ul)

/* This process writes or reads n pieces, one after the other, 32 in flight. */
static void stream(struct env *e, bool read, struct buf *b, const struct region *r, size_t at,
		   size_t len, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		start(e, read, b, i * len, len, r, at + i * len);
		if (i >= 32)
			fab_wait_ok(me(e), 1);
	}
	fab_wait_ok(me(e), n < 32 ? n : 32);
}

CASE(two_initiators_write_disjoint_halves)
{
	struct peer *t = target(e), *second = peer(e, 1);
	struct buf *b = buf(e, 200 * 100, 1);
	struct peer_rma rma = { false, 0, 0, 100, 0, 0, 0, 200 };
	struct region r;

	peer_alloc(t, 0, 16 * 4096, 2);
	peer_alloc(second, 0, 20000, 3);
	r = peer_reg(t, 0, 777, 40000, REMOTE_RW, 4);
	rma.to = peer_insert(second, t->name, t->name_len);
	rma.addr = r.base + 20000;
	rma.key = r.key;
	peer_rma_start(second, &rma);
	stream(e, WRITE, b, &r, 0, 100, 200);
	must_ok(peer_rma_end(second));
	peer_want(t, 0, 777 + 20000, 20000, 3, 0);
	peer_same(t, 0);
}

CASE(two_initiators_read_the_same_bytes)
{
	struct peer *t = target(e), *second = peer(e, 1);
	struct buf *b = buf(e, 20000, 1);
	struct peer_rma rma = { true, 0, 0, 100, 0, 0, 0, 200 };
	struct region r;

	peer_alloc(t, 0, 8 * 4096, 2);
	peer_alloc(second, 0, 20000, 3);
	r = peer_reg(t, 0, 777, 20000, FI_REMOTE_READ, 4);
	rma.to = peer_insert(second, t->name, t->name_len);
	rma.addr = r.base;
	rma.key = r.key;
	peer_rma_start(second, &rma);
	stream(e, READ, b, &r, 0, 100, 200);
	must_ok(peer_rma_end(second));
	peer_want(second, 0, 0, 20000, 2, 777);
	peer_same(second, 0);
	buf_same(b);
	peer_same(t, 0);
}

/* Both ends open their connection to the other at the same time. */
CASE(both_directions_at_once)
{
	struct peer *p = peer(e, 2);
	struct buf *b = buf(e, 20000, 1);
	struct buf *mine = buf(e, 20000, 5);
	struct peer_rma rma = { false, 1, 0, 100, 0, 0, 0, 200 };
	struct iovec all = { mine->mem, 20000 };
	struct region r;
	struct fid_mr *mr;

	peer_alloc(p, 0, 20000, 2);
	peer_alloc(p, 1, 20000, 3);
	r = peer_reg(p, 0, 0, 20000, REMOTE_RW, 4);
	must_ok(fab_reg(me(e), mine, &all, FI_REMOTE_WRITE, 4, &mr));
	rma.to = peer_insert(p, me(e)->name, me(e)->name_len);
	rma.addr = me(e)->virt ? (uintptr_t)mine->mem : 0;
	rma.key = fi_mr_key(mr);
	peer_rma_start(p, &rma);
	stream(e, WRITE, b, &r, 0, 100, 200);
	must_ok(peer_rma_end(p));
	buf_want(mine, 0, 20000, 3, 0);
	buf_same(mine);
	peer_same(p, 0);
	must_ok(fi_close(&mr->fid));
}

static void others_work(struct env *e, struct buf *b)
{
	struct region r;

	peer_alloc(target(e), 7, 8192, 70);
	r = peer_reg(target(e), 7, 100, 5000, REMOTE_RW, 0x7777);
	access_ok(e, WRITE, b, 0, 200, &r, 300);
	peer_same(target(e), 7);
	peer_unreg(&r);
}

static void dead_leaves_nothing(uint64_t os_pid)
{
	if (kernel_objects(os_pid, "mr") < 0)
		return; /* scripts/run-func counts at the end as well */
	must(kernel_objects_gone(os_pid, 5000), "kernel objects of a dead process are left");
}

/* Writes go on from before the kill until one fails; returns when the last one has ended.
 */
static void write_until_failure(struct env *e, const struct op *op, struct peer *victim)
{
	unsigned flying = 0, done = 0, failed = 0;
	long killed = 0;
	struct done d;

	while (!failed || flying) {
		while (!failed && flying < 4) {
			must_ok(op_post(me(e), op));
			flying++;
		}
		must(fab_done(me(e), &d, SOON), "the completion of a write never comes");
		must(!d.err || d.text[3], "an error without a reason");
		flying--;
		failed += d.err != 0;
		must(killed || !d.err, "err %d (%s) before the kill, %s", d.err, fi_strerror(d.err),
		     d.text);
		if (++done == 2) {
			peer_kill(victim);
			killed = now_ms();
		}
		must(!killed || now_ms() - killed <= SOON, "not reported after %ld ms",
		     now_ms() - killed);
	}
}

CASE(target_killed_in_mid_write_is_an_error_in_time)
{
	struct peer *p = peer(e, 2);
	struct buf *b = buf(e, 8 * MIB, 1);
	struct region r;
	struct done d;
	struct op op;

	others_work(e, b);
	peer_alloc(p, 0, 8 * MIB, 2);
	r = peer_reg(p, 0, 0, 8 * MIB, REMOTE_RW, 4);
	op = op_make(e, WRITE, b, 0, 8 * MIB, &r, 0);
	write_until_failure(e, &op, p);
	others_work(e, b);
	op_run(me(e), &op, &d);
	must(d.err, "a write to a dead process went through");
	others_work(e, b);
	dead_leaves_nothing(p->os_pid);
}

CASE(target_killed_while_idle_is_an_error_in_time)
{
	struct peer *p = peer(e, 2);
	struct buf *b = buf(e, 8192, 1);
	struct region r;
	struct done d;
	struct op op;

	peer_alloc(p, 0, 8192, 2);
	r = peer_reg(p, 0, 0, 8192, REMOTE_RW, 4);
	access_ok(e, WRITE, b, 0, 100, &r, 0);
	peer_kill(p);
	op = op_make(e, READ, b, 0, 100, &r, 0);
	op_run(me(e), &op, &d);
	must(d.err, "a read from a dead process went through");
	buf_same(b);
	others_work(e, b);
	peer_alloc(peer(e, 2), 0, 8192, 3);
	r = peer_reg(p, 0, 0, 8192, REMOTE_RW, 4);
	access_ok(e, WRITE, b, 0, 100, &r, 0);
	peer_same(p, 0);
}

static bool fewer_qps(uint64_t os_pid, int limit)
{
	long end = now_ms() + 10000;

	while (kernel_objects(os_pid, "qp") > limit) {
		if (now_ms() > end)
			return false;
		nap(100);
	}
	return true;
}

CASE(initiator_killed_leaves_the_target_working)
{
	struct peer *t = target(e), *second = peer(e, 2);
	struct peer_rma rma = { false, 0, 0, 65536, 0, 0, 0, 100000 };
	struct buf *b = buf(e, 8192, 1);
	struct region r, safe;
	int qps;

	others_work(e, b);
	qps = kernel_objects(t->os_pid, "qp");
	peer_alloc(t, 0, MIB, 2);
	peer_alloc(t, 1, 8192, 3);
	peer_alloc(second, 0, 65536, 4);
	r = peer_reg(t, 0, 0, MIB, REMOTE_RW, 4);
	safe = peer_reg(t, 1, 100, 8000, REMOTE_RW, 5);
	rma.to = peer_insert(second, t->name, t->name_len);
	rma.addr = r.base;
	rma.key = r.key;
	rma.count = 15; /* up to the region's end, for a start */
	must_ok(peer_rma(second, &rma));
	rma.len = 8;
	rma.count = 100000;
	peer_die_in(second, 300);
	peer_rma_start(second, &rma);
	peer_reap(second);
	access_ok(e, WRITE, b, 0, 100, &safe, 0);
	peer_same(t, 1);
	others_work(e, b);
	dead_leaves_nothing(second->os_pid);
	must(qps < 0 || fewer_qps(t->os_pid, qps), "the target keeps a dead peer's queue pair");
	peer_alloc(peer(e, 2), 0, 8192, 6);
	rma = (struct peer_rma){
		false,		 0,	   0, 80, peer_insert(second, t->name, t->name_len),
		safe.base + 200, safe.key, 1
	};
	must_ok(peer_rma(second, &rma));
	peer_want(t, 1, safe.off + 200, 80, 6, 0);
	peer_same(t, 1);
}

CASE(address_removed_and_inserted_again)
{
	struct peer *p = peer(e, 2);
	struct buf *b = buf(e, 8192, 1);
	struct region r;
	fi_addr_t old = p->addr;
	struct op op;
	ssize_t rc;

	peer_alloc(p, 0, 8192, 2);
	r = peer_reg(p, 0, 0, 8192, REMOTE_RW, 4);
	access_ok(e, WRITE, b, 0, 100, &r, 0);
	op = op_make(e, WRITE, b, 0, 100, &r, 0);
	must_ok(fi_av_remove(me(e)->av, &old, 1, 0));
	rc = op_post(me(e), &op);
	must(rc == -FI_EINVAL || rc == -FI_EADDRNOTAVAIL, "posting to a removed address: %zd", rc);
	p->addr = fab_insert(me(e), p->name);
	for (size_t i = 1; i < 10; i++)
		access_ok(e, WRITE, b, i * 100, 100, &r, i * 100);
	peer_same(p, 0);
}

/* A removed index that is given to another peer must not reach the old one. */
CASE(address_index_reused_for_another_peer)
{
	struct peer *one = peer(e, 1), *two = peer(e, 2);
	struct buf *b = buf(e, 8192, 1);
	struct region r1, r2;

	peer_alloc(one, 0, 8192, 2);
	peer_alloc(two, 0, 8192, 3);
	r1 = peer_reg(one, 0, 0, 8000, REMOTE_RW, 4);
	r2 = peer_reg(two, 0, 0, 8000, REMOTE_RW, 4);
	access_ok(e, WRITE, b, 0, 100, &r1, 0);
	access_ok(e, WRITE, b, 100, 100, &r2, 0);
	must_ok(fi_av_remove(me(e)->av, &one->addr, 1, 0));
	must_ok(fi_av_remove(me(e)->av, &two->addr, 1, 0));
	two->addr = fab_insert(me(e), two->name);
	one->addr = fab_insert(me(e), one->name);
	access_ok(e, WRITE, b, 200, 100, &r1, 200);
	access_ok(e, WRITE, b, 300, 100, &r2, 200);
	peer_same(one, 0);
	peer_same(two, 0);
}

CASE(address_not_in_the_av_is_refused)
{
	static const fi_addr_t bad[] = { 4000, FI_ADDR_UNSPEC, 1ull << 40 };
	struct buf *b = buf(e, 4096, 1);
	struct op op = { false, b, 0, 8, 0, 0, 0, NULL };

	target(e);
	for (size_t i = 0; i < 3; i++) {
		for (int read = 0; read < 2; read++) {
			ssize_t rc;

			op.to = bad[i];
			op.read = read;
			rc = op_post(me(e), &op);
			must(rc == -FI_EINVAL || rc == -FI_EADDRNOTAVAIL, "fi_addr %llx: %zd",
			     (unsigned long long)bad[i], rc);
		}
	}
	others_work(e, b);
}

static void unreachable(struct env *e, const char *name, const char *why)
{
	struct buf *b = buf(e, 4096, 1);
	struct op op = { false, b, 0, 8, 0, 0, 5, (void *)5 };
	struct done d;

	op.to = fab_insert(me(e), name);
	op_run(me(e), &op, &d);
	must(d.err == FI_ECONNREFUSED || d.err == FI_EHOSTUNREACH || d.err == FI_ETIMEDOUT,
	     "err %d (%s), %s", d.err, fi_strerror(d.err), d.text);
	must(strstr(d.text, why), "%s, not: %s", d.text, why);
	others_work(e, b);
}

IN_MODES(MODES_ONE)

CASE(nobody_listens_is_an_error_in_time)
{
	struct peer *p = peer(e, 2);
	char name[NAME_LEN];

	memcpy(name, p->name, sizeof(name));
	peer_stop(p);
	unreachable(e, name, "no endpoint listens");
}

CASE(absent_host_is_an_error_in_time)
{
	union {
		struct sockaddr_in in;
		char name[NAME_LEN];
	} u;

	memcpy(u.name, me(e)->name, sizeof(u.name));
	must(u.in.sin_family == AF_INET, "the usual address is not IPv4");
	u.in.sin_addr.s_addr = htonl((ntohl(u.in.sin_addr.s_addr) & ~0xffu) | 250);
	/* The network of a single machine has no address resolution. */
	unreachable(e, u.name, getenv("MRFAB_HOSTS") ? "no machine answers" : "no answer");
}
