/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What takes time before and after an operation (memory is registered, let go, or copied from
 * where it may have to be read in) keeps no other thread from its operations on the same endpoint
 * and queue: each such call waits here until another thread has written 8 bytes and read the
 * completion.
 */
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <sys/uio.h>
#include "base/env.h"
#include "base/known.h"
#include "ep_fixture.h"
#include "loop/agent_calls.h"

enum where {
	/* by the thread that starts or ends an operation */
	REG,
	DEREG,
	GET,
	/* by the agent, for a connection */
	QUEUE,
	SLOTS,
	OPEN,
	RESOLVE,
	CREATE_QP,
	ROUTE,
	CONNECT,
	ESTABLISH,
	DISCONNECT,
	CLOSE,
	NOWHERE
};

static struct pair p;
static pthread_t caller, other;
static _Atomic(pthread_t) agent; /* the caller's, while the pair is open */
static atomic_int where;	 /* the next such call runs hook, once */
static void (*hook)(void);
static atomic_bool hooked, small_done, big_done, unpinnable;
static bool in_time;
static uint64_t small, operand = 1, result;

static void at(enum where here)
{
	int want = (int)here;

	if (atomic_compare_exchange_strong(&where, &want, NOWHERE)) {
		hook();
		atomic_store(&hooked, true);
	}
}

static void of_caller(enum where here)
{
	if (pthread_equal(pthread_self(), caller))
		at(here);
}

static void of_agent(enum where here)
{
	if (pthread_equal(pthread_self(), atomic_load(&agent)))
		at(here);
}

static bool is_there(const void *addr, size_t len)
{
	of_caller(REG);
	of_agent(SLOTS);
	return !atomic_load(&unpinnable) || addr != p.src || len != PAIR_LEN;
}

static void on_dereg(void)
{
	at(DEREG);
}

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nto,
				const struct iovec *from, unsigned long nfrom, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nto,
				const struct iovec *from, unsigned long nfrom, unsigned long flags);

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nto,
				const struct iovec *from, unsigned long nfrom, unsigned long flags)
{
	of_caller(GET);
	return __real_process_vm_readv(pid, to, nto, from, nfrom, flags);
}

int __real_mrf_user_take(void *to, const struct iovec *from, size_t count);
int __wrap_mrf_user_take(void *to, const struct iovec *from, size_t count);

int __wrap_mrf_user_take(void *to, const struct iovec *from, size_t count)
{
	of_caller(GET);
	return __real_mrf_user_take(to, from, count);
}

/* --- calls of rdma_cm, by the caller's agent ------------------------------------------- */

#define WRAP(type, name, where, params, ...)                 \
	type __real_mrf_vconn_##name params;                 \
	type __wrap_mrf_vconn_##name params;                 \
	type __wrap_mrf_vconn_##name params                  \
	{                                                    \
		of_agent(where);                             \
		return __real_mrf_vconn_##name(__VA_ARGS__); \
	}

WRAP(int, open, OPEN, (struct mrf_vcm * cm, void *owner, struct mrf_vconn **conn), cm, owner, conn)
WRAP(int, resolve, RESOLVE,
     (struct mrf_vconn * conn, const struct sockaddr *src, const struct sockaddr *dst, int ms,
      unsigned ack),
     conn, src, dst, ms, ack)
WRAP(int, create_qp, CREATE_QP, (struct mrf_vconn * conn, const struct mrf_vqp_attr *attr), conn,
     attr)
WRAP(int, route, ROUTE, (struct mrf_vconn * conn, int ms), conn, ms)
WRAP(int, connect, CONNECT, (struct mrf_vconn * conn, const void *data, size_t len, unsigned retry),
     conn, data, len, retry)
WRAP(int, establish, ESTABLISH, (struct mrf_vconn * conn), conn)
WRAP(void, disconnect, DISCONNECT, (struct mrf_vconn * conn), conn)
WRAP(void, close, CLOSE, (struct mrf_vconn * conn), conn)

int __real_mrf_vcq_open_beside(struct mrf_vcq *first, size_t depth, struct mrf_vcq **cq);
int __wrap_mrf_vcq_open_beside(struct mrf_vcq *first, size_t depth, struct mrf_vcq **cq);

int __wrap_mrf_vcq_open_beside(struct mrf_vcq *first, size_t depth, struct mrf_vcq **cq)
{
	of_agent(QUEUE);
	return __real_mrf_vcq_open_beside(first, depth, cq);
}

/* --- operations ----------------------------------------------------------------------- */

static const struct step {
	const char *what;
	enum where where;
	enum { WRITE, READ, FETCH_ADD, FETCH_OR } op;
	size_t len;
	bool unpinnable;
} steps[] = {
	{ "a source is pinned", REG, WRITE, PAIR_LEN, false },
	{ "a destination is pinned", REG, READ, PAIR_LEN, false },
	{ "slots are made", REG, READ, 64, false },
	{ "cells are made", REG, FETCH_ADD, 8, false },
	{ "a few bytes are read in", GET, WRITE, 64, false },
	{ "more bytes are read in", GET, WRITE, 8000, false },
	{ "what cannot be pinned is copied", GET, WRITE, PAIR_LEN, true },
	{ "an operand is read in", GET, FETCH_OR, 8, false },
	{ "a source is let go", DEREG, WRITE, PAIR_LEN, false },
	{ "a destination is let go", DEREG, READ, PAIR_LEN, false },
	{ "a copy is let go", DEREG, WRITE, PAIR_LEN, true },
};

static int start(const struct step *step)
{
	switch (step->op) {
	case WRITE:
		return (int)fi_write(p.a.ep, p.src, step->len, NULL, p.to, p.base, p.key, &p);
	case READ:
		return (int)fi_read(p.a.ep, p.src, step->len, NULL, p.to, p.base, p.key, &p);
	default:
		return (int)fi_fetch_atomic(p.a.ep, &operand, 1, NULL, &result, NULL, p.to, p.base,
					    p.key, FI_UINT64,
					    step->op == FETCH_ADD ? FI_SUM : FI_BOR, &p);
	}
}

static void arm(enum where here, void (*what)(void))
{
	hook = what;
	atomic_store(&hooked, false);
	atomic_store(&where, here);
}

/* --- another thread ------------------------------------------------------------------- */

/* Each of the two threads takes whatever comes, until its own has come. */
static bool wait_for(atomic_bool *done, int64_t ms)
{
	int64_t end = mrf_now_ms() + ms;

	while (!atomic_load(done) && mrf_now_ms() < end) {
		struct fi_cq_data_entry entry;

		if (fi_cq_read(p.a.cq, &entry, 1) == 1)
			atomic_store(entry.op_context == &small ? &small_done : &big_done, true);
		else
			usleep(200);
	}
	return atomic_load(done);
}

static void *write_small(void *arg)
{
	(void)arg;
	if (!fi_write(p.a.ep, &small, 8, NULL, p.to, p.base + PAIR_LEN - 8, p.key, &small))
		wait_for(&small_done, LONG_MS);
	return NULL;
}

static void let_another_go_first(void)
{
	int64_t end = mrf_now_ms() + LONG_MS / 4;

	ck_assert_int_eq(pthread_create(&other, NULL, write_small, NULL), 0);
	while (!atomic_load(&small_done) && mrf_now_ms() < end)
		usleep(500);
	in_time = atomic_load(&small_done);
}

static void setup(void)
{
	/* Pinned for good, so that peers cause no registrations. */
	const struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .caps = FI_RMA | FI_ATOMIC };

	/* Kept registrations are not let go when an operation ends. */
	ck_assert_int_eq(setenv("FI_MR_CACHE_MAX_COUNT", "0", 1), 0);
	mrf_env_reload();
	fixture_setup();
	caller = pthread_self();
	atomic_store(&where, NOWHERE);
	atomic_store(&small_done, false);
	atomic_store(&big_done, false);
	atomic_store(&unpinnable, false);
	/* Before there is a thread that looks at them, and until there is none. */
	fake.is_there = is_there;
	fake.on_dereg = on_dereg;
	pair_open(&p, &opt);
	atomic_store(&agent, node_agent(&p.a)->thread);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	/* Copies are looked at in the kernel's call. */
	mrf_known_distrust();
}

static void teardown(void)
{
	want_idle(&p.a);
	atomic_store(&agent, 0);
	pair_close(&p);
	fake.is_there = NULL;
	fake.on_dereg = NULL;
	fixture_teardown();
}

START_TEST(other_threads_do_not_wait_while)
{
	const struct step *step = &steps[_i];

	atomic_store(&unpinnable, step->unpinnable);
	arm(step->where, let_another_go_first);
	ck_assert_int_eq(start(step), 0);
	ck_assert(wait_for(&big_done, LONG_MS));
	ck_assert_msg(atomic_load(&hooked), "%s: it is not", step->what);
	pthread_join(other, NULL);
	ck_assert_msg(in_time, "another thread waits while %s", step->what);
}
END_TEST

/* --- another peer is connected to ----------------------------------------------------- */

static struct node third;
static uint64_t third_cell;
static uint8_t third_memory[PAIR_LEN] __attribute__((aligned(PAGE)));

static const struct {
	const char *what;
	enum where where;
	enum { DIALLED, REMOVED, CLOSED } peer; /* what becomes of the third */
} dials[] = {
	{ "a queue is made for its messages", QUEUE, DIALLED },
	{ "its slots are registered", SLOTS, DIALLED },
	{ "it is opened", OPEN, DIALLED },
	{ "the address is resolved", RESOLVE, DIALLED },
	{ "its queue pair is made", CREATE_QP, DIALLED },
	{ "the route is resolved", ROUTE, DIALLED },
	{ "it is requested", CONNECT, DIALLED },
	{ "it is established", ESTABLISH, DIALLED },
	{ "it is disconnected", DISCONNECT, REMOVED },
	{ "it is closed", CLOSE, REMOVED },
	{ "it is disconnected after the peer", DISCONNECT, CLOSED },
	{ "it is closed after the peer", CLOSE, CLOSED },
};

static void write_third(fi_addr_t to)
{
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, to, 0, 5, &p), 0);
}

/* As if there were hundreds of connections: the next needs another queue. */
static int fill_queue(struct mrf_agent *of, void *arg)
{
	struct mrf_agent_cq *cq = mrf_list_entry(of->cqs.next, struct mrf_agent_cq, node);

	(void)arg;
	return mrf_agent_cq_take(of, MRF_AGENT_CQ - cq->used, false, &cq);
}

static void open_third(void)
{
	const struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED };

	node_open(&third, &opt);
}

START_TEST(other_threads_do_not_wait_while_a_connection)
{
	enum where here = dials[_i].where;
	struct fid_mr *mr;
	fi_addr_t to;

	open_third();
	mr = node_reg(&third, &third_cell, 8, FI_REMOTE_WRITE, 5);
	to = node_insert(&p.a, &third);
	if (here == QUEUE)
		ck_assert_int_eq(mrf_agent_command(node_agent(&p.a), NULL, fill_queue), 0);
	if (dials[_i].peer == DIALLED)
		arm(here, let_another_go_first);
	write_third(to);
	ck_assert(wait_for(&big_done, LONG_MS));
	if (dials[_i].peer != DIALLED)
		arm(here, let_another_go_first);
	must_close(&mr->fid);
	if (dials[_i].peer == CLOSED)
		node_close(&third);
	else if (dials[_i].peer == REMOVED)
		ck_assert_int_eq(fi_av_remove(p.a.av, &to, 1, 0), 0);
	want_soon(atomic_load(&hooked));
	pthread_join(other, NULL);
	if (dials[_i].peer != CLOSED)
		node_close(&third);
	ck_assert_msg(in_time, "another thread waits while %s", dials[_i].what);
}
END_TEST

/* --- what may happen meanwhile -------------------------------------------------------- */

static void remove_the_address(void)
{
	ck_assert_int_eq(fi_av_remove(p.a.av, &p.to, 1, 0), 0);
}

START_TEST(an_address_that_is_removed_while_a_source_is_pinned)
{
	unsigned before = fake_live_of(FAKE_VMR_REG);

	arm(REG, remove_the_address);
	ck_assert_int_eq(start(&steps[0]), -FI_EADDRNOTAVAIL);
	ck_assert(atomic_load(&hooked));
	want_none(&p.a);
	/* The connection goes, too. */
	want_soon(fake_live_of(FAKE_VMR_REG) < before);
	want_idle(&p.a);
	p.to = node_insert(&p.a, &p.b);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
}
END_TEST

static fi_addr_t again;

static void replace_the_address(void)
{
	remove_the_address();
	again = node_insert(&p.a, &third);
}

/* The address vector gives the number to the next address. */
START_TEST(an_address_that_is_replaced_while_a_source_is_pinned)
{
	struct fid_mr *mr;

	open_third();
	memset(third_memory, 0, sizeof(third_memory));
	mr = node_reg(&third, third_memory, PAIR_LEN, FI_REMOTE_WRITE, PAIR_KEY);
	arm(REG, replace_the_address);
	ck_assert_int_eq(start(&steps[0]), -FI_EADDRNOTAVAIL);
	ck_assert(atomic_load(&hooked));
	ck_assert_uint_eq(again, p.to);
	want_none(&p.a);
	want_idle(&p.a);
	ck_assert(!third_memory[0] && !memcmp(third_memory, third_memory + 1, PAIR_LEN - 1));
	must_close(&mr->fid);
	node_close(&third);
}
END_TEST

static void cancel_it(void)
{
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &p), -FI_ENOENT);
}

START_TEST(what_has_not_begun_is_not_canceled)
{
	arm(REG, cancel_it);
	ck_assert_int_eq(start(&steps[0]), 0);
	ck_assert(atomic_load(&hooked));
	want_ok(&p.a, &p);
}
END_TEST

/* One peer holds all places: memory is not pinned in vain. */
START_TEST(without_a_place_nothing_is_pinned)
{
	unsigned before, n = 0;
	ssize_t ret;

	fake_hold(true);
	do {
		ret = fi_write(p.a.ep, p.src, 8, NULL, p.to, p.base, p.key, &p);
	} while (!ret && ++n);
	ck_assert_int_eq(ret, -FI_EAGAIN);
	before = fake_calls(FAKE_VMR_REG);
	ck_assert_int_eq(start(&steps[0]), -FI_EAGAIN);
	ck_assert_uint_eq(fake_calls(FAKE_VMR_REG), before);
	fake_hold(false);
	while (n--)
		want_ok(&p.a, &p);
}
END_TEST

/* A thread is in the middle of it when the endpoint is closed. */
static atomic_bool entered, inside;

static void take_a_while(void)
{
	atomic_store(&inside, true);
	atomic_store(&entered, true);
	usleep(50000);
	atomic_store(&inside, false);
}

static void *read_queue(void *arg)
{
	struct fi_cq_data_entry entry;

	(void)arg;
	fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS);
	return NULL;
}

START_TEST(closing_waits_for_the_thread_that_lets_a_buffer_go)
{
	pthread_t thread;

	fake_hold(true);
	ck_assert_int_eq(start(&steps[0]), 0);
	arm(DEREG, take_a_while);
	ck_assert_int_eq(pthread_create(&thread, NULL, read_queue, NULL), 0);
	fake_hold(false);
	want_soon(atomic_load(&entered));
	must_close(&p.a.ep->fid);
	ck_assert(!atomic_load(&inside));
	pthread_join(thread, NULL);
	ck_assert_int_eq(node_try_ep(&p.a, &(struct node_opt){ 0 }, &p.a.ep), 0);
}
END_TEST

static atomic_bool reading, may_go;

static void wait_until_told(void)
{
	int64_t end = mrf_now_ms() + LONG_MS;

	atomic_store(&reading, true);
	while (!atomic_load(&may_go) && mrf_now_ms() < end)
		usleep(500);
}

static void *write_big(void *arg)
{
	(void)arg;
	ck_assert_int_eq(start(&steps[0]), 0);
	atomic_store(&small_done, true);
	return NULL;
}

/* The limit of locked memory may have room for one of them only. */
START_TEST(the_next_buffer_is_pinned_when_the_last_has_been_let_go)
{
	struct fi_cq_data_entry entry;
	pthread_t reader, writer;
	unsigned regs;

	atomic_store(&reading, false);
	atomic_store(&may_go, false);
	ck_assert_int_eq(start(&steps[0]), 0);
	arm(DEREG, wait_until_told);
	ck_assert_int_eq(pthread_create(&reader, NULL, read_queue, NULL), 0);
	want_soon(atomic_load(&reading));
	/* Its completion may have been read by now; it is still pinned. */
	regs = fake_calls(FAKE_VMR_REG);
	ck_assert_int_eq(pthread_create(&writer, NULL, write_big, NULL), 0);
	usleep(20000);
	ck_assert_uint_eq(fake_calls(FAKE_VMR_REG), regs);
	ck_assert(!atomic_load(&small_done));
	atomic_store(&may_go, true);
	pthread_join(writer, NULL);
	pthread_join(reader, NULL);
	ck_assert_uint_gt(fake_calls(FAKE_VMR_REG), regs);
	ck_assert_int_eq(fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS), 1);
}
END_TEST

static TCase *tcase_unlocked(void)
{
	TCase *tc = tcase_create("unlocked");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, other_threads_do_not_wait_while, 0, (int)MRF_ARRAY_SIZE(steps));
	tcase_add_loop_test(tc, other_threads_do_not_wait_while_a_connection, 0,
			    (int)MRF_ARRAY_SIZE(dials));
	tcase_add_test(tc, an_address_that_is_removed_while_a_source_is_pinned);
	tcase_add_test(tc, an_address_that_is_replaced_while_a_source_is_pinned);
	tcase_add_test(tc, what_has_not_begun_is_not_canceled);
	tcase_add_test(tc, without_a_place_nothing_is_pinned);
	tcase_add_test(tc, closing_waits_for_the_thread_that_lets_a_buffer_go);
	tcase_add_test(tc, the_next_buffer_is_pinned_when_the_last_has_been_let_go);
	return tc;
}

UNIT_MAIN("unlocked", tcase_unlocked)
