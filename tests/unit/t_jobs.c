/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work beside the agent (loop/job.h), and flushes, which are done there: while storage takes
 * its time, the agent serves whoever asks.
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include "loop/job.h"
#include "mr/region.h"
#include "mr/serve.h"
#include "mr/region_state.h"
#include "ep_fixture.h"

static struct pair p;

/* --- threads that cannot be had, and storage that takes long ------------------------------ */

static atomic_bool no_threads;
static atomic_uint threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	if (atomic_load(&no_threads))
		return EAGAIN;
	atomic_fetch_add(&threads, 1);
	return __real_pthread_create(thread, attr, start, arg);
}

/* Flushes stop here, one after the other, until go is raised. */
static struct {
	atomic_bool slow;
	atomic_uint came, parts;
	atomic_int err;
	sem_t go;
} storage;

int __real_msync(void *at, size_t len, int flags);
int __wrap_msync(void *at, size_t len, int flags);
int __wrap_msync(void *at, size_t len, int flags)
{
	atomic_fetch_add(&storage.came, 1);
	if (atomic_load(&storage.slow))
		sem_wait(&storage.go);
	atomic_fetch_add(&storage.parts, 1);
	errno = atomic_load(&storage.err);
	return errno ? -1 : __real_msync(at, len, flags);
}

/* All of a sparse file need not be there for the test's sake. */
int __wrap_madvise(void *at, size_t len, int advice);
int __wrap_madvise(void *at, size_t len, int advice)
{
	(void)at;
	(void)len;
	(void)advice;
	return 0;
}

/* A file on storage, whatever /tmp is. */
int __real_statfs(const char *path, struct statfs *out);
int __wrap_statfs(const char *path, struct statfs *out);
int __wrap_statfs(const char *path, struct statfs *out)
{
	int ret = __real_statfs(path, out);

	out->f_type = 0xef53;
	return ret;
}

static void setup(void)
{
	fixture_setup();
	memset(&storage, 0, sizeof(storage));
	sem_init(&storage.go, 0, 0);
	atomic_store(&no_threads, false);
	pair_open(&p, PLAIN);
}

static void teardown(void)
{
	pair_close(&p);
	fixture_teardown();
}

/* --- jobs --------------------------------------------------------------------------------- */

#define JOBS 12u

static struct step {
	struct mrf_job job;
	unsigned parts; /* to do */
	bool gated;	/* each part waits for its gate */
	sem_t gate;
	atomic_uint done;
	atomic_bool over;
	pthread_t worked, told;
} step[JOBS];

static atomic_uint order[32], norder;

static bool work(struct mrf_job *job)
{
	struct step *s = mrf_container_of(job, struct step, job);

	if (s->gated)
		sem_wait(&s->gate);
	s->worked = pthread_self();
	atomic_store(&order[atomic_fetch_add(&norder, 1)], (unsigned)(s - step));
	return atomic_fetch_add(&s->done, 1) + 1 < s->parts;
}

static void over(struct mrf_job *job)
{
	struct step *s = mrf_container_of(job, struct step, job);

	s->told = pthread_self();
	atomic_store(&s->over, true);
}

static int start(unsigned i, unsigned parts, bool gated)
{
	step[i].job = (struct mrf_job){ .work = work, .over = over };
	mrf_list_init(&step[i].job.node);
	step[i].parts = parts;
	step[i].gated = gated;
	atomic_store(&step[i].over, false);
	atomic_store(&step[i].done, 0);
	sem_init(&step[i].gate, 0, 0);
	return mrf_agent_job(node_agent(&p.b), MRF_CREW_STORAGE, &step[i].job);
}

START_TEST(job_is_done_beside_the_agent_which_hears_of_its_end)
{
	atomic_store(&norder, 0);
	ck_assert_int_eq(start(0, 3, false), 0);
	want_soon(atomic_load(&step[0].over));
	ck_assert_uint_eq(atomic_load(&step[0].done), 3);
	ck_assert(pthread_equal(step[0].told, node_agent(&p.b)->thread));
	ck_assert(!pthread_equal(step[0].worked, step[0].told));
	ck_assert(!pthread_equal(step[0].worked, pthread_self()));
}
END_TEST

/* One of each thread is at a gate; the last of them then does all the others, part by part. */
START_TEST(jobs_that_are_long_take_turns)
{
	unsigned i, before = atomic_load(&threads);

	atomic_store(&norder, 0);
	for (i = 0; i < MRF_FLUSH_THREADS; i++)
		ck_assert_int_eq(start(i, 1, true), 0);
	ck_assert_int_eq(start(i, 3, false), 0);
	ck_assert_int_eq(start(i + 1, 1, false), 0);
	ck_assert_int_eq(start(i + 2, 2, false), 0);
	sem_post(&step[0].gate);
	want_soon(atomic_load(&step[i].over) && atomic_load(&step[i + 2].over));
	ck_assert_uint_eq(atomic_load(&norder), 7);
	for (unsigned k = 0; k < 7; k++)
		ck_assert_uint_eq(order[k], ((unsigned[]){ 0, i, i + 1, i + 2, i, i + 2, i })[k]);
	ck_assert_uint_eq(atomic_load(&threads) - before, MRF_FLUSH_THREADS);
	for (unsigned k = 1; k < i; k++)
		sem_post(&step[k].gate);
	want_soon(atomic_load(&norder) == 6 + MRF_FLUSH_THREADS);
	/* They are there for the next ones. */
	ck_assert_int_eq(start(0, 1, false), 0);
	want_soon(atomic_load(&step[0].over));
	ck_assert_uint_eq(atomic_load(&threads) - before, MRF_FLUSH_THREADS);
}
END_TEST

START_TEST(job_without_a_thread_is_refused_or_waits_for_those_that_are_there)
{
	atomic_store(&no_threads, true);
	ck_assert_int_eq(start(0, 1, false), -FI_EAGAIN);
	atomic_store(&no_threads, false);
	ck_assert_int_eq(start(0, 1, true), 0);
	atomic_store(&no_threads, true);
	ck_assert_int_eq(start(1, 1, false), 0);
	usleep(10000);
	ck_assert_uint_eq(atomic_load(&step[1].done), 0);
	sem_post(&step[0].gate);
	want_soon(atomic_load(&step[1].over));
	atomic_store(&no_threads, false);
}
END_TEST

static void *let_go_later(void *arg)
{
	(void)arg;
	usleep(20000);
	for (unsigned i = 0; i < JOBS; i++)
		sem_post(&step[i].gate);
	return NULL;
}

START_TEST(jobs_are_done_and_over_before_the_agent_is_gone)
{
	pthread_t thread;

	for (unsigned i = 0; i < JOBS; i++)
		ck_assert_int_eq(start(i, 1, true), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, let_go_later, NULL), 0);
	pair_close(&p);
	for (unsigned i = 0; i < JOBS; i++)
		ck_assert(atomic_load(&step[i].over) && atomic_load(&step[i].done) == 1);
	pthread_join(thread, NULL);
	pair_open(&p, PLAIN);
}
END_TEST

/* --- flushes ------------------------------------------------------------------------------ */

#define FILE_LEN (16ul * PAGE)
#define FILE_KEY 9

static uint8_t *mem;
static size_t mem_len;
static struct fid_mr *mr;
static char name[32]; /* a removed file is not persistent */

static void map_file(size_t len)
{
	int fd = mkstemp(strcpy(name, "/tmp/mrfab-jobs-XXXXXX"));

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	mem_len = len;
	close(fd);
	struct iovec iov = { mem, len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = REMOTE_RW, .requested_key = FILE_KEY
	};
	ck_assert_int_eq(fi_mr_regattr(p.b.domain, &attr, FI_RMA_PMEM, &mr), 0);
}

static void unmap_file(void)
{
	must_close(&mr->fid);
	munmap(mem, mem_len);
	unlink(name);
}

static void commit_from(struct node *n, fi_addr_t to, size_t at)
{
	struct iovec iov = { p.src + at, 8 };
	struct fi_rma_iov there = { at, 8, FILE_KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = pair_ctx(&p, at) };

	ck_assert_int_eq(fi_writemsg(n->ep, &msg, FI_COMMIT_COMPLETE), 0);
}

/* The initiator makes progress: the flush follows its write. */
static bool came(unsigned n)
{
	struct fi_cq_data_entry entry;

	ck_assert_int_eq(fi_cq_read(p.a.cq, &entry, 1), -FI_EAGAIN);
	return atomic_load(&storage.came) == n;
}

static void flush_and_stop(void)
{
	unsigned before = atomic_load(&storage.came);

	atomic_store(&storage.slow, true);
	commit_from(&p.a, p.to, 0);
	want_soon(came(before + 1));
}

static void go_on(void)
{
	atomic_store(&storage.slow, false);
	sem_post(&storage.go);
}

START_TEST(flush_that_takes_long_keeps_only_its_own_connection)
{
	struct fid_mr *other;
	struct node c;
	fi_addr_t to;

	map_file(FILE_LEN);
	other = node_reg(&p.b, p.dst, PAGE, REMOTE_RW, 5);
	node_open(&c, PLAIN);
	to = node_insert(&c, &p.b);
	flush_and_stop();
	/* A new peer connects, asks, has atomic operations done and another flush. */
	ck_assert_int_eq(fi_write(c.ep, p.src, 8, NULL, to, 0, 5, &c), 0);
	want_ok(&c, &c);
	ck_assert_int_eq(fi_atomic(c.ep, p.src, 8, NULL, to, 0, 5, FI_UINT8, FI_SUM, &c), 0);
	want_ok(&c, &c);
	atomic_store(&storage.slow, false);
	commit_from(&c, to, 64);
	want_ok(&c, pair_ctx(&p, 64));
	want_none(&p.a);
	go_on();
	want_ok(&p.a, pair_ctx(&p, 0));
	node_close(&c);
	must_close(&other->fid);
	unmap_file();
}
END_TEST

static uint64_t word_of(size_t at)
{
	uint64_t word;

	memcpy(&word, p.dst + at, sizeof(word));
	return word;
}

START_TEST(requests_behind_a_flush_wait_for_it_and_are_done_once)
{
	uint8_t one[8] = { 1 }, old[8] = { 0 };

	map_file(FILE_LEN);
	memset(p.dst, 0, 8);
	flush_and_stop();
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(
			fi_atomic(p.a.ep, one, 1, NULL, p.to, p.base, p.key, FI_UINT8, FI_SUM, &p),
			0);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, one, 1, NULL, old, NULL, p.to, p.base, p.key,
					 FI_UINT8, FI_SUM, &p),
			 0);
	usleep(20000);
	ck_assert_uint_eq(word_of(0), 0);
	go_on();
	want_ok(&p.a, pair_ctx(&p, 0));
	for (int i = 0; i < 6; i++)
		want_ok(&p.a, &p);
	ck_assert_uint_eq(old[0], 5);
	ck_assert_uint_eq(word_of(0), 6);
	unmap_file();
}
END_TEST

START_TEST(flush_that_fails_is_told_when_it_is_over)
{
	map_file(FILE_LEN);
	flush_and_stop();
	atomic_store(&storage.err, EIO);
	go_on();
	want_err(&p.a, pair_ctx(&p, 0), FI_EIO, NULL);
	atomic_store(&storage.err, 0);
	commit_from(&p.a, p.to, 8);
	want_ok(&p.a, pair_ctx(&p, 8));
	unmap_file();
}
END_TEST

START_TEST(flush_without_a_thread_for_it_fails_and_the_next_does_not)
{
	map_file(FILE_LEN);
	pair_write(&p, 0, 8); /* connects */
	want_ok(&p.a, pair_ctx(&p, 0));
	atomic_store(&no_threads, true);
	commit_from(&p.a, p.to, 0);
	want_err(&p.a, pair_ctx(&p, 0), FI_ENOMEM, NULL);
	ck_assert_uint_eq(atomic_load(&storage.came), 0);
	atomic_store(&no_threads, false);
	commit_from(&p.a, p.to, 0);
	want_ok(&p.a, pair_ctx(&p, 0));
	unmap_file();
}
END_TEST

/* 0: the initiator goes. 1: the target's endpoint does. */
START_TEST(flush_outlives_its_connection)
{
	struct fid_ep **ep = _i ? &p.b.ep : &p.a.ep;

	map_file(FILE_LEN);
	flush_and_stop();
	must_close(&(*ep)->fid);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 0);
	go_on();
	want_soon(atomic_load(&storage.parts) == 1);
	if (_i)
		want_err(&p.a, pair_ctx(&p, 0), FI_ECONNRESET, NULL);
	ck_assert_int_eq(node_try_ep(_i ? &p.b : &p.a, PLAIN, ep), 0);
	p.to = node_insert(&p.a, &p.b);
	commit_from(&p.a, p.to, 8);
	want_ok(&p.a, pair_ctx(&p, 8));
	unmap_file();
}
END_TEST

static void *close_region(void *arg)
{
	atomic_bool *closed = arg;

	must_close(&mr->fid);
	atomic_store(closed, true);
	return NULL;
}

static bool is_closing(void)
{
	struct mrf_mr *region = mrf_container_of(mr, struct mrf_mr, fid);
	bool closing;

	mrf_lock_take(&region->space->lock);
	closing = region->state == MRF_STATE_CLOSED;
	mrf_lock_release(&region->space->lock);
	return closing;
}

/* fi_close waits for the part that the kernel is at, not for the whole flush. */
START_TEST(flush_ends_early_when_its_region_is_closed)
{
	struct mrf_mr_space *space = &node_ep(&p.b)->domain->space;
	struct mrf_mr_query ask = { .key = FILE_KEY,
				    .len = 2 * MRF_FLUSH_PIECE + 1,
				    .port = &node_ep(&p.b)->port };
	struct mrf_mr_hold commit;
	atomic_bool closed = false;
	pthread_t thread;
	int err = 0;

	map_file(2 * MRF_FLUSH_PIECE + PAGE);
	ck_assert_int_eq(mrf_mr_commit_begin(space, &ask, &commit), MRF_MR_OK);
	ck_assert(mrf_mr_commit_flush(&commit, &err) && mrf_mr_commit_flush(&commit, &err));
	ck_assert(!mrf_mr_commit_flush(&commit, &err));
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(atomic_load(&storage.parts), 3);
	mrf_mr_hold_end(&commit);
	ck_assert_int_eq(mrf_mr_commit_begin(space, &ask, &commit), MRF_MR_OK);
	ck_assert(mrf_mr_commit_flush(&commit, &err));
	ck_assert_int_eq(pthread_create(&thread, NULL, close_region, &closed), 0);
	want_soon(is_closing());
	ck_assert(!mrf_mr_commit_flush(&commit, &err));
	ck_assert_int_eq(err, FI_ECANCELED);
	ck_assert(!atomic_load(&closed));
	mrf_mr_hold_end(&commit);
	pthread_join(thread, NULL);
	munmap(mem, mem_len);
	unlink(name);
}
END_TEST

static TCase *jobs(void)
{
	TCase *tc = tcase_create("jobs");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, job_is_done_beside_the_agent_which_hears_of_its_end);
	tcase_add_test(tc, jobs_that_are_long_take_turns);
	tcase_add_test(tc, job_without_a_thread_is_refused_or_waits_for_those_that_are_there);
	tcase_add_test(tc, jobs_are_done_and_over_before_the_agent_is_gone);
	tcase_add_test(tc, flush_that_takes_long_keeps_only_its_own_connection);
	tcase_add_test(tc, requests_behind_a_flush_wait_for_it_and_are_done_once);
	tcase_add_test(tc, flush_that_fails_is_told_when_it_is_over);
	tcase_add_test(tc, flush_without_a_thread_for_it_fails_and_the_next_does_not);
	tcase_add_loop_test(tc, flush_outlives_its_connection, 0, 2);
	tcase_add_test(tc, flush_ends_early_when_its_region_is_closed);
	return tc;
}

UNIT_MAIN("jobs", jobs)
