/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No thread can be started: the limit of the user's processes, or the control group's, is reached.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "base/env.h"
#include "base/thread.h"
#include "monitor/monitor.h"
#include "ep_fixture.h"

static atomic_bool none_left;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	return atomic_load(&none_left) ? EAGAIN : __real_pthread_create(thread, attr, start, arg);
}

static struct node n;
static struct fid_domain *domain;
static struct unit_capture cap;

static void open_domain(void)
{
	node_open(&n, PLAIN);
	fixture_log();
	ck_assert_int_eq(fi_domain(n.fabric, n.info, &domain, NULL), 0);
	atomic_store(&none_left, true);
	unit_capture(&cap);
}

static void want_limits(int ret, const char *code)
{
	const char *said = unit_captured(&cap);

	atomic_store(&none_left, false);
	ck_assert_int_eq(ret, -FI_ENOMEM);
	ck_assert_msg(strstr(said, code) && strstr(said, "RLIMIT_NPROC") &&
			      strstr(said, "pids.max"),
		      "%s", said);
}

/* The stacks of one thread after the other, as the C library and kernels place them. */
START_TEST(threads_next_to_each_other_have_different_places)
{
	static const uintptr_t apart[] = { 8u << 20, (8u << 20) + 4096, 4u << 20,
					   2u << 20, (2u << 20) + 4096, 1u << 20 };
	uintptr_t own = 0x7f0012345000 + (uintptr_t)_i * 7919 * 4096, to;
	unsigned i;

	for (i = 0; i < sizeof(apart) / sizeof(*apart); i++) {
		to = own - apart[i];
		ck_assert_uint_ne(mrf_thread_spread(own, 8), mrf_thread_spread(to, 8));
		ck_assert_uint_lt(mrf_thread_spread(to, 4), 4);
	}
}
END_TEST

START_TEST(no_thread_for_the_agent_names_the_limits)
{
	struct fid_ep *ep;

	open_domain();
	want_limits(fi_endpoint(domain, n.info, &ep, NULL), "MRF-E4001");
	ck_assert_int_eq(fi_endpoint(domain, n.info, &ep, NULL), 0);
	must_close(&ep->fid);
	must_close(&domain->fid);
	node_close(&n);
}
END_TEST

START_TEST(no_thread_that_registers_names_the_limits)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq;

	open_domain();
	ck_assert_int_eq(fi_eq_open(n.fabric, &attr, &eq, NULL), 0);
	want_limits(fi_domain_bind(domain, &eq->fid, FI_REG_MR), "MRF-E2163");
	ck_assert_int_eq(fi_domain_bind(domain, &eq->fid, FI_REG_MR), 0);
	must_close(&domain->fid);
	must_close(&eq->fid);
	node_close(&n);
}
END_TEST

START_TEST(no_thread_for_the_monitor_names_the_limits)
{
	struct mrf_monitor_client client = { 0 };

	ck_assert_int_eq(setenv("FI_MR_CACHE_MONITOR", "userfaultfd", 1), 0);
	mrf_env_reload();
	fixture_log();
	mrf_monitor_add(&client);
	if (mrf_monitor_usable()) {
		mrf_monitor_remove(&client);
		atomic_store(&none_left, true);
		unit_capture(&cap);
		mrf_monitor_add(&client);
		want_limits(-FI_ENOMEM, "MRF-W3051");
		ck_assert(!mrf_monitor_usable());
	}
	mrf_monitor_remove(&client);
}
END_TEST

static TCase *no_thread(void)
{
	TCase *tc = tcase_create("thread");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, threads_next_to_each_other_have_different_places, 0, 100);
	tcase_add_test(tc, no_thread_for_the_agent_names_the_limits);
	tcase_add_test(tc, no_thread_that_registers_names_the_limits);
	tcase_add_test(tc, no_thread_for_the_monitor_names_the_limits);
	return tc;
}

UNIT_MAIN("thread", no_thread)
