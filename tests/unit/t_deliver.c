/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an operation brings back is copied to the application's memory, which may have to be read
 * in first, or may wait for another thread of the application. Meanwhile operations to other peers
 * complete, and those to the same peer complete afterwards, in order.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <rdma/fi_atomic.h>
#include "base/known.h"
#include "ep/tx/peer_queue.h"
#include "ep_fixture.h"
#include "held_write.h"

static struct pair p;
static struct node third;
static fi_addr_t to_third;
static struct fid_mr *third_mr;
static uint8_t *third_memory;

static pthread_t holder;
static _Thread_local bool is_holder;
static atomic_bool only_holder; /* sees what has completed */
static uint64_t operand = 1, small = 42, fetched;

static bool is_late(const struct mrf_vcq *cq)
{
	(void)cq;
	return atomic_load(&only_holder) && !is_holder;
}

static void setup(void)
{
	/* Pinned for good, so that peers cause no registrations. */
	const struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED,
				      .caps = FI_RMA | FI_ATOMIC,
				      .counters = true };

	fixture_setup();
	/* Copies are looked at, and held up, in the kernel's call. */
	mrf_known_distrust();
	held_write_init();
	atomic_store(&only_holder, false);
	/* Before there is a thread that looks at it, and until there is none. */
	fake.is_late = is_late;
	pair_open(&p, &opt);
	node_open(&third, &opt);
	third_memory = pages(PAIR_LEN);
	third_mr = node_reg(&third, third_memory, PAIR_LEN, REMOTE_RW, PAIR_KEY);
	to_third = node_insert(&p.a, &third);
	/* The connections are there, and what is known of the keys. */
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_int_eq(fi_write(p.a.ep, &small, 8, NULL, to_third, 0, PAIR_KEY, &small), 0);
	want_ok(&p.a, &small);
}

static void teardown(void)
{
	if (p.a.ep)
		want_idle(&p.a);
	must_close(&third_mr->fid);
	node_close(&third);
	pair_close(&p);
	fake.is_late = NULL;
	fixture_teardown();
}

/* --- what brings something back --------------------------------------------------------- */

static const struct {
	const char *what;
	enum { READ, FETCH_ADD, FETCH_OR, FETCH_PART } op;
	size_t len;
} brings[] = {
	{ "a read", READ, 64 },
	{ "a longer read", READ, 16384 },
	{ "a native atomic operation", FETCH_ADD, 8 },
	{ "one by compare-and-swap", FETCH_OR, 8 },
	{ "one that the peer's agent does", FETCH_PART, 4 },
};

static int fetch(fi_addr_t to, uint64_t at, int datatype, enum fi_op op, void *result,
		 void *context)
{
	return (int)fi_fetch_atomic(p.a.ep, &operand, 1, NULL, result, NULL, to, at, PAIR_KEY,
				    (enum fi_datatype)datatype, op, context);
}

static int bring(int i, void *buf)
{
	switch (brings[i].op) {
	case READ:
		return (int)fi_read(p.a.ep, buf, brings[i].len, NULL, p.to, p.base, p.key, &p);
	case FETCH_ADD:
		return fetch(p.to, p.base, FI_UINT64, FI_SUM, buf, &p);
	case FETCH_OR:
		return fetch(p.to, p.base, FI_UINT64, FI_BOR, buf, &p);
	default:
		return fetch(p.to, p.base, FI_UINT32, FI_BOR, buf, &p);
	}
}

static void *progress(void *arg)
{
	int64_t end = mrf_now_ms() + LONG_MS;

	(void)arg;
	is_holder = true;
	while (!atomic_load(&inside) && !atomic_load(&may_go) && mrf_now_ms() < end)
		fi_cntr_read(p.a.rd);
	return NULL;
}

/* Such an operation to p is done, and some thread is copying what it brings to p.src. */
static void hold_up(int i)
{
	atomic_store(&held, p.src);
	ck_assert_int_eq(bring(i, p.src), 0);
	ck_assert_int_eq(pthread_create(&holder, NULL, progress, NULL), 0);
	want_soon(atomic_load(&inside));
}

static void let_go(void)
{
	atomic_store(&may_go, true);
	pthread_join(holder, NULL);
}

static void write_small(fi_addr_t to)
{
	ck_assert_int_eq(fi_write(p.a.ep, &small, 8, NULL, to, PAIR_LEN - 8, PAIR_KEY, &small), 0);
}

static bool is_written(const uint8_t *memory)
{
	uint64_t value;

	fake_copy(&value, memory + PAIR_LEN - 8, sizeof(value));
	return value == small;
}

/* --- other peers ---------------------------------------------------------------------- */

START_TEST(other_peers_are_not_held_up_by)
{
	static uint8_t brought[64];

	hold_up(_i);
	write_small(to_third);
	want_ok(&p.a, &small);
	ck_assert(is_written(third_memory));
	ck_assert_int_eq(fi_read(p.a.ep, brought, 64, NULL, to_third, 0, PAIR_KEY, brought), 0);
	want_ok(&p.a, brought);
	ck_assert(!memcmp(brought, third_memory, 64));
	ck_assert_int_eq(fetch(to_third, 0, FI_UINT64, FI_SUM, &fetched, &fetched), 0);
	want_ok(&p.a, &fetched);
	ck_assert(atomic_load(&inside));
	let_go();
	want_ok(&p.a, &p);
}
END_TEST

/* A peer that is held up has done its share of places, however many of them have ended. */
START_TEST(other_peers_find_a_place_beside)
{
	unsigned n = 0;
	ssize_t ret;

	hold_up(0);
	while (!(ret = fi_inject_write(p.a.ep, &small, 8, p.to, p.base, p.key)) &&
	       n++ < 2 * MRF_EP_ALL_OPS(node_ep(&p.a)))
		;
	ck_assert_int_eq(ret, -FI_EAGAIN);
	write_small(to_third);
	want_ok(&p.a, &small);
	let_go();
	want_ok(&p.a, &p);
}
END_TEST

/* --- the same peer -------------------------------------------------------------------- */

static uint64_t behind_flags(void *context)
{
	return context == &operand ? FI_FENCE : 0;
}

static void start_behind(void *buf, uint64_t key, void *context)
{
	struct iovec iov = { buf, 8 };
	struct fi_rma_iov rma = { p.base + PAIR_LEN - 8, 8, key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = p.to,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = context };

	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, behind_flags(context)), 0);
}

static void a_write(bool done)
{
	if (!done)
		write_small(p.to);
	else
		want_ok(&p.a, &small);
	ck_assert(is_written(p.dst));
	fi_cntr_read(p.a.wr);
}

/* Silent, so it shows in the counter only. */
static void an_injected_write(bool done)
{
	if (!done)
		ck_assert_int_eq(fi_inject_write(p.a.ep, &small, 8, p.to, PAIR_LEN - 8, p.key), 0);
	ck_assert_uint_eq(fi_cntr_read(p.a.wr), done ? 3 : 2);
	ck_assert(is_written(p.dst));
}

/* It is not copied yet, either. */
static void a_read(bool done)
{
	static uint8_t brought[64];

	if (!done)
		ck_assert_int_eq(fi_read(p.a.ep, brought, 64, NULL, p.to, p.base, p.key, brought),
				 0);
	else
		want_ok(&p.a, brought);
	fi_cntr_read(p.a.rd);
	ck_assert(done == (atomic_load(&copies) > 1));
}

static void an_atomic_operation(bool done)
{
	if (!done)
		ck_assert_int_eq(fetch(p.to, p.base, FI_UINT64, FI_SUM, &fetched, &fetched), 0);
	else
		want_ok(&p.a, &fetched);
}

static void one_that_is_refused(bool done)
{
	if (!done)
		start_behind(&small, 0xbad, &small);
	else
		want_err(&p.a, &small, FI_EKEYREJECTED, "0xbad");
}

static void one_that_is_canceled(bool done)
{
	if (!done) {
		start_behind(&small, p.key, &operand);
		ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &operand), 0);
	} else {
		want_err(&p.a, &operand, FI_ECANCELED, "canceled");
	}
	ck_assert(!is_written(p.dst));
}

/* What is fenced may send what has been brought: it waits for that. */
static void a_fenced_write(bool done)
{
	if (!done)
		start_behind(&small, p.key, &operand);
	else
		want_ok(&p.a, &operand);
	ck_assert(is_written(p.dst) == done);
}

static void several(bool done)
{
	a_write(done);
	one_that_is_refused(done);
	a_read(done);
	a_write(done);
	an_atomic_operation(done);
}

static void (*const behind[])(bool) = {
	a_write,
	an_injected_write,
	a_read,
	an_atomic_operation,
	one_that_is_refused,
	one_that_is_canceled,
	a_fenced_write,
	several,
};

START_TEST(the_same_peer_completes_behind_it)
{
	hold_up(0);
	behind[_i](false);
	want_none(&p.a);
	ck_assert(atomic_load(&inside));
	let_go();
	want_ok(&p.a, &p);
	behind[_i](true);
	want_none(&p.a);
}
END_TEST

static void *sleep_for_two(void *arg)
{
	(void)arg;
	want_ok(&p.a, &p);
	want_ok(&p.a, &small);
	return NULL;
}

START_TEST(a_thread_that_sleeps_is_woken_when_another_has_copied)
{
	pthread_t sleeper;

	hold_up(0);
	ck_assert_int_eq(pthread_create(&sleeper, NULL, sleep_for_two, NULL), 0);
	write_small(p.to);
	usleep(20000);
	let_go();
	pthread_join(sleeper, NULL);
}
END_TEST

static void *sleep_for_another(void *arg)
{
	want_ok(&p.a, arg);
	return NULL;
}

/* One thread has seen that both are done, and is busy with the first. */
START_TEST(a_thread_that_sleeps_is_woken_for_what_another_has_no_time_for)
{
	static uint8_t brought[64];
	pthread_t sleeper;

	atomic_store(&only_holder, true);
	atomic_store(&held, p.src);
	ck_assert_int_eq(bring(0, p.src), 0);
	ck_assert_int_eq(fi_read(p.a.ep, brought, 64, NULL, to_third, 0, PAIR_KEY, brought), 0);
	/* It sees nothing, and sleeps. */
	ck_assert_int_eq(pthread_create(&sleeper, NULL, sleep_for_another, brought), 0);
	usleep(50000);
	ck_assert_int_eq(pthread_create(&holder, NULL, progress, NULL), 0);
	pthread_join(sleeper, NULL);
	want_soon(atomic_load(&inside));
	let_go();
	atomic_store(&only_holder, false);
	want_ok(&p.a, &p);
}
END_TEST

START_TEST(results_without_a_place_fail_in_their_turn)
{
	uint8_t *gone =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	atomic_store(&held, gone);
	ck_assert_int_eq(bring(0, gone), 0);
	ck_assert_int_eq(pthread_create(&holder, NULL, progress, NULL), 0);
	want_soon(atomic_load(&inside));
	write_small(p.to);
	ck_assert_int_eq(munmap(gone, PAGE), 0);
	let_go();
	want_err(&p.a, &p, FI_EFAULT, "not mapped");
	want_ok(&p.a, &small);
}
END_TEST

/* --- several threads ---------------------------------------------------------------------- */

#define OPS 600u

static atomic_bool stop;
static uint64_t landing[OPS];

static void *progress_until_stop(void *arg)
{
	struct fid_cntr *cntr = arg;

	while (!atomic_load(&stop))
		fi_cntr_read(cntr);
	return NULL;
}

/* The nth operation is to one peer or the other, and brings something or does not. */
static ssize_t start_nth(unsigned n)
{
	fi_addr_t to = n % 2 ? to_third : p.to;
	void *context = &landing[n];

	switch (n / 2 % 4) {
	case 0:
		return fi_read(p.a.ep, &landing[n], 8, NULL, to, 0, PAIR_KEY, context);
	case 1:
		return fi_write(p.a.ep, &small, 8, NULL, to, 8, PAIR_KEY, context);
	case 2:
		return fetch(to, 16, FI_UINT64, FI_SUM, &landing[n], context);
	default:
		return fetch(to, 24, FI_UINT32, FI_BXOR, &landing[n], context);
	}
}

/* Each peer's in the order of the calls; how many. */
static unsigned take_in_order(unsigned next[2])
{
	struct fi_cq_data_entry entry;
	unsigned n;

	if (fi_cq_read(p.a.cq, &entry, 1) != 1)
		return 0;
	n = (unsigned)((uint64_t *)entry.op_context - landing);
	ck_assert_uint_eq(n, next[n % 2]);
	next[n % 2] += 2;
	return 1;
}

START_TEST(the_order_of_each_peer_is_kept_while_several_threads_copy)
{
	unsigned started = 0, taken = 0, next[2] = { 0, 1 };
	int64_t end = mrf_now_ms() + 2 * LONG_MS;
	pthread_t threads[3];

	atomic_store(&stop, false);
	atomic_store(&copy_us, 100);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, progress_until_stop, i ? p.a.rd : p.a.wr),
			0);
	while (taken < OPS && mrf_now_ms() < end) {
		if (started < OPS && started - taken < 64 && !start_nth(started))
			started++;
		taken += take_in_order(next);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(taken, OPS);
}
END_TEST

/* --- what ends meanwhile ------------------------------------------------------------------ */

static void *let_go_later(void *arg)
{
	(void)arg;
	usleep(50000);
	atomic_store(&may_go, true);
	return NULL;
}

START_TEST(closing_waits_for_the_thread_that_copies)
{
	pthread_t thread;

	hold_up(0);
	write_small(p.to);
	ck_assert_int_eq(pthread_create(&thread, NULL, let_go_later, NULL), 0);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	ck_assert(!atomic_load(&inside));
	pthread_join(thread, NULL);
	pthread_join(holder, NULL);
}
END_TEST

/*
 * A thread has seen that they are done, and comes to nothing else before the endpoint closes.
 * The agent may have come first.
 */
START_TEST(what_nobody_has_copied_ends_with_the_endpoint)
{
	struct fi_cq_data_entry entry[2];
	unsigned copied;

	ck_assert_int_eq(bring(0, p.src), 0);
	write_small(p.to);
	mrf_peer_poll(&node_ep(&p.a)->source);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	copied = atomic_load(&copies);
	if (fi_cq_read(p.a.cq, entry, 2) == 2) {
		ck_assert_ptr_eq(entry[0].op_context, &p);
		ck_assert_ptr_eq(entry[1].op_context, &small);
		ck_assert_uint_eq(copied, 1);
	}
	want_none(&p.a);
	ck_assert_uint_eq(atomic_load(&copies), copied);
}
END_TEST

START_TEST(an_address_that_is_removed_meanwhile_stays_until_it_is_copied)
{
	unsigned before;

	hold_up(0);
	before = fake_live_of(FAKE_VMR_REG);
	write_small(p.to);
	fi_cntr_read(p.a.wr);
	ck_assert_int_eq(fi_av_remove(p.a.av, &p.to, 1, 0), 0);
	/* Another one has the number, and is no part of it. */
	p.to = node_insert(&p.a, &p.b);
	pair_write(&p, 8, 8);
	want_ok(&p.a, pair_ctx(&p, 8));
	ck_assert(atomic_load(&inside));
	let_go();
	want_ok(&p.a, &p);
	want_ok(&p.a, &small);
	want_soon(fake_live_of(FAKE_VMR_REG) <= before);
}
END_TEST

/* --- memory that is not there yet ---------------------------------------------------------- */

/* Results for this page wait; it is not in memory. */
static uint8_t *absent_page(void)
{
	uint8_t *page = pages(16384);

	ck_assert_int_eq(madvise(page, 16384, MADV_DONTNEED), 0);
	atomic_store(&held, page);
	return page;
}

static void want_agent(struct node *n)
{
	struct fid_ep *ep;

	ck_assert_int_eq(fi_endpoint(n->domain, n->info, &ep, NULL), 0);
	must_close(&ep->fid);
}

static bool is_copying_elsewhere(void)
{
	struct fi_cq_data_entry entry;

	ck_assert_int_eq(fi_cq_read(p.a.cq, &entry, 1), -FI_EAGAIN);
	return atomic_load(&inside);
}

/* The thread that reads the queue may be the one that has to provide the memory. */
START_TEST(a_thread_that_reads_a_queue_does_not_wait_for_memory)
{
	uint8_t *page = absent_page();

	ck_assert_int_eq(bring(_i, page), 0);
	want_soon(is_copying_elsewhere());
	/* Neither is the agent at it, nor are other peers held up. */
	want_agent(&p.a);
	write_small(to_third);
	want_ok(&p.a, &small);
	write_small(p.to);
	for (int i = 0; i < 100; i++)
		ck_assert(is_copying_elsewhere());
	atomic_store(&may_go, true);
	want_ok(&p.a, &p);
	want_ok(&p.a, &small);
	/* It is there now: the reader copies. */
	atomic_store(&held, NULL);
	ck_assert_int_eq(bring(_i, page), 0);
	want_ok(&p.a, &p);
	ck_assert(!page[0] == !p.dst[0]);
}
END_TEST

/* As many as a connection takes, and more: it is the agent that makes progress, and nobody else. */
START_TEST(the_agent_copies_nothing)
{
	unsigned i, n = 2 * MRF_CONN_RING;
	uint8_t *page = _i ? absent_page() : p.src;

	atomic_store(&held, page);
	fake_hold(true);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(fi_read(p.a.ep, page, 64, NULL, p.to, p.base, p.key, &p), 0);
	fake_hold(false);
	want_soon(atomic_load(&inside));
	want_agent(&p.a);
	ck_assert(atomic_load(&inside));
	atomic_store(&may_go, true);
	for (i = 0; i < n; i++)
		want_ok(&p.a, &p);
}
END_TEST

/* More of them than an agent has threads for storage, and other transfers go on. */
START_TEST(results_that_wait_keep_no_other_peer_waiting)
{
	enum { PEERS = MRF_FLUSH_THREADS + 2, BUFFERS = 20 };
	static uint8_t buffers[BUFFERS][4096];
	struct iovec iov[BUFFERS];
	struct node n[PEERS];
	struct fid_mr *mr[PEERS];
	uint8_t *page = absent_page();

	for (unsigned i = 0; i < PEERS; i++) {
		node_open(&n[i], PLAIN);
		mr[i] = node_reg(&n[i], third_memory, PAIR_LEN, REMOTE_RW, 5);
		ck_assert_int_eq(
			fi_read(p.a.ep, page, 64, NULL, node_insert(&p.a, &n[i]), 0, 5, &n[i]), 0);
		want_soon(is_copying_elsewhere());
	}
	for (unsigned i = 0; i < BUFFERS; i++)
		iov[i] = (struct iovec){ buffers[i], 2000 };
	ck_assert_int_eq(fi_writev(p.a.ep, iov, NULL, BUFFERS, to_third, 0, PAIR_KEY, &small), 0);
	want_ok(&p.a, &small);
	ck_assert(atomic_load(&inside));
	atomic_store(&may_go, true);
	for (unsigned i = 0; i < PEERS; i++)
		want_ok(&p.a, NULL);
	for (unsigned i = 0; i < PEERS; i++) {
		must_close(&mr[i]->fid);
		node_close(&n[i]);
	}
}
END_TEST

/* A registration that is over is ended, though results of the same peer wait for memory. */
START_TEST(registrations_end_beside_results_that_wait)
{
	static uint8_t large[32768];
	uint8_t *first = absent_page();

	setenv("FI_MR_CACHE_MONITOR", "disabled", 1);
	must_close(&p.a.ep->fid);
	ck_assert_int_eq(node_try_ep(&p.a, PLAIN, &p.a.ep), 0);
	ck_assert_int_eq(bring(0, first), 0);
	want_soon(is_copying_elsewhere());
	ck_assert_int_eq(fi_write(p.a.ep, large, sizeof(large), NULL, p.to, p.base, p.key, large),
			 0);
	for (unsigned i = 0; i < 50; i++)
		ck_assert(is_copying_elsewhere());
	/* To another peer. It waits for what was registered before, which must not be kept. */
	ck_assert_int_eq(
		fi_write(p.a.ep, large, sizeof(large), NULL, to_third, 0, PAIR_KEY, &small), 0);
	want_ok(&p.a, &small);
	atomic_store(&may_go, true);
	want_ok(&p.a, &p);
	want_ok(&p.a, large);
	unsetenv("FI_MR_CACHE_MONITOR");
}
END_TEST

static void *close_later(void *arg)
{
	usleep(20000);
	atomic_store(&may_go, true);
	return arg;
}

START_TEST(closing_waits_for_the_job_that_copies)
{
	ck_assert_int_eq(bring(_i, absent_page()), 0);
	want_soon(is_copying_elsewhere());
	ck_assert_int_eq(pthread_create(&holder, NULL, close_later, NULL), 0);
	must_close(&p.a.ep->fid);
	ck_assert(atomic_load(&may_go) && !atomic_load(&inside));
	pthread_join(holder, NULL);
	p.a.ep = NULL;
}
END_TEST

START_TEST(an_address_that_is_removed_meanwhile_stays_until_the_job_is_over)
{
	unsigned before = fake_live_of(FAKE_CREATE_QP);

	ck_assert_int_eq(bring(_i, absent_page()), 0);
	want_soon(is_copying_elsewhere());
	ck_assert_int_eq(fi_av_remove(p.a.av, &p.to, 1, 0), 0);
	want_agent(&p.a);
	ck_assert_uint_eq(fake_live_of(FAKE_CREATE_QP), before);
	atomic_store(&may_go, true);
	want_ok(&p.a, &p);
	want_soon(fake_live_of(FAKE_CREATE_QP) == before - 2);
}
END_TEST

static TCase *tcase_deliver(void)
{
	TCase *tc = tcase_create("deliver");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, other_peers_are_not_held_up_by, 0, (int)MRF_ARRAY_SIZE(brings));
	tcase_add_test(tc, other_peers_find_a_place_beside);
	tcase_add_loop_test(tc, the_same_peer_completes_behind_it, 0, (int)MRF_ARRAY_SIZE(behind));
	tcase_add_test(tc, a_thread_that_sleeps_is_woken_when_another_has_copied);
	tcase_add_test(tc, a_thread_that_sleeps_is_woken_for_what_another_has_no_time_for);
	tcase_add_test(tc, results_without_a_place_fail_in_their_turn);
	tcase_add_test(tc, the_order_of_each_peer_is_kept_while_several_threads_copy);
	tcase_add_test(tc, closing_waits_for_the_thread_that_copies);
	tcase_add_test(tc, what_nobody_has_copied_ends_with_the_endpoint);
	tcase_add_test(tc, an_address_that_is_removed_meanwhile_stays_until_it_is_copied);
	tcase_add_loop_test(tc, a_thread_that_reads_a_queue_does_not_wait_for_memory, 0,
			    (int)MRF_ARRAY_SIZE(brings));
	tcase_add_loop_test(tc, the_agent_copies_nothing, 0, 2);
	tcase_add_test(tc, results_that_wait_keep_no_other_peer_waiting);
	tcase_add_test(tc, registrations_end_beside_results_that_wait);
	tcase_add_loop_test(tc, closing_waits_for_the_job_that_copies, 0,
			    (int)MRF_ARRAY_SIZE(brings));
	tcase_add_loop_test(tc, an_address_that_is_removed_meanwhile_stays_until_the_job_is_over, 0,
			    (int)MRF_ARRAY_SIZE(brings));
	return tc;
}

UNIT_MAIN("deliver", tcase_deliver)
