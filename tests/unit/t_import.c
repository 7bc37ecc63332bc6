/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_open("mr_cache"): a memory monitor of the application's takes the place of ours, and
 * ours is lent to another library.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include "base/env.h"
#include "monitor/monitor.h"
#include "child.h"
#include "unit.h"

#define PAGE 4096u

static struct unit_capture cap;
static struct fid *cache;
static struct mrf_monitor_client client;
static atomic_int drops;

/* --- the application's monitor ---------------------------------------------------------- */

static atomic_int starts, subscribed;
static int start_result, subscribe_result;
static bool is_valid;
static const void *last_addr;
static size_t last_len;

/* What its own hook holds while it notifies, and its calls take. */
static pthread_mutex_t its_lock = PTHREAD_MUTEX_INITIALIZER;

static int app_start(struct fid_mem_monitor *monitor)
{
	(void)monitor;
	if (!start_result)
		atomic_fetch_add(&starts, 1);
	return start_result;
}

static void app_stop(struct fid_mem_monitor *monitor)
{
	(void)monitor;
	atomic_fetch_sub(&starts, 1);
}

static int app_subscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	pthread_mutex_lock(&its_lock);
	last_addr = addr;
	last_len = len;
	if (!subscribe_result)
		atomic_fetch_add(&subscribed, 1);
	pthread_mutex_unlock(&its_lock);
	return subscribe_result;
}

static void app_unsubscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
	pthread_mutex_lock(&its_lock);
	atomic_fetch_sub(&subscribed, 1);
	pthread_mutex_unlock(&its_lock);
}

static bool app_valid(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
	return is_valid;
}

static struct fi_ops_mem_monitor app_ops;
static struct fid_mem_monitor app;

static void app_setup(void)
{
	app_ops = (struct fi_ops_mem_monitor){ sizeof(app_ops), app_start,	 app_stop,
					       app_subscribe,	app_unsubscribe, app_valid };
	memset(&app, 0, sizeof(app));
	app.fid.fclass = FI_CLASS_MEM_MONITOR;
	app.export_ops = &app_ops;
	start_result = subscribe_result = 0;
	is_valid = true;
	atomic_store(&starts, 0);
	atomic_store(&subscribed, 0);
}

/* --- around it -------------------------------------------------------------------------- */

static void on_drop(struct mrf_watch *watch)
{
	(void)watch;
	atomic_fetch_add(&drops, 1);
}

static void set_monitor(const char *which)
{
	if (which)
		setenv("FI_MR_CACHE_MONITOR", which, 1);
	else
		unsetenv("FI_MR_CACHE_MONITOR");
	mrf_env_reload();
}

static void setup(void)
{
	set_monitor(NULL);
	app_setup();
	atomic_store(&drops, 0);
	client = (struct mrf_monitor_client){ .drop = on_drop, .local = true };
	ck_assert_int_eq(fi_open(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &cache, &app), 0);
}

static void teardown(void)
{
	if (cache)
		ck_assert_int_eq(fi_close(cache), 0);
}

static char *map(size_t pages)
{
	void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	return mem;
}

/* As a cache does; 0, or why it is not watched. */
static int watch_it(struct mrf_watch *w, void *mem, size_t pages)
{
	int ret;

	if (!w->node)
		ck_assert_int_eq(mrf_watch_init(w, &client), 0);
	w->start = (uintptr_t)mem;
	w->len = pages * PAGE;
	mrf_monitor_lock();
	ret = mrf_monitor_watch_locked(w);
	mrf_monitor_unlock();
	if (!ret && !mrf_monitor_sure(w))
		ret = -FI_EOTHER;
	return ret;
}

static void unwatch(struct mrf_watch *w)
{
	mrf_monitor_lock();
	mrf_monitor_unwatch_locked(w);
	mrf_monitor_unlock();
	mrf_watch_fini(w);
}

static bool is_on(const struct mrf_watch *w)
{
	bool on;

	mrf_monitor_lock();
	on = mrf_watch_on(w);
	mrf_monitor_unlock();
	return on;
}

static void refused(int ret, int error, const char *code)
{
	unit_captured(&cap);
	ck_assert_int_eq(ret, error);
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	ck_assert_msg(strstr(cap.text, code) != NULL, "%s", cap.text);
	unit_capture(&cap);
}

static void import(void)
{
	ck_assert_int_eq(fi_import_fid(cache, &app.fid, 0), 0);
}

/* --- opening ---------------------------------------------------------------------------- */

START_TEST(the_cache_is_an_object_of_its_class)
{
	ck_assert_uint_eq(cache->fclass, FI_CLASS_MR_CACHE);
	ck_assert_ptr_eq(cache->context, &app);
}
END_TEST

START_TEST(the_cache_is_known_since_1_13)
{
	struct fid *fid = (struct fid *)8;

	unit_capture(&cap);
	refused(fi_open(FI_VERSION(1, 12), "mr_cache", NULL, 0, 0, &fid, NULL), -FI_EINVAL,
		"MRF-E2906");
	unit_captured(&cap);
	ck_assert_ptr_eq(fid, (struct fid *)8);
}
END_TEST

START_TEST(the_cache_offers_nothing_else)
{
	struct fid *ours;
	void *ops;

	unit_capture(&cap);
	refused(fi_control(cache, FI_GETWAIT, NULL), -FI_ENOSYS, "MRF-E2003");
	refused(fi_export_fid(cache, 0, &ours, NULL), -FI_ENOSYS, "MRF-E2003");
	refused(fi_open_ops(cache, "x", 0, &ops, NULL), -FI_ENOSYS, "MRF-E2004");
	unit_captured(&cap);
}
END_TEST

/* --- import ----------------------------------------------------------------------------- */

START_TEST(import_refuses_each_bad_argument_with_one_line)
{
	struct fi_ops_mem_monitor ops = app_ops;

	unit_capture(&cap);
	refused(fi_import_fid(cache, &app.fid, 1), -FI_EINVAL, "MRF-E3072");
	refused(fi_import_fid(cache, NULL, 0), -FI_EINVAL, "MRF-E3073");
	refused(fi_import_fid(cache, cache, 0), -FI_EINVAL, "MRF-E3073");
	app.export_ops = NULL;
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EINVAL, "MRF-E3074");
	app.export_ops = &ops;
	ops.size--;
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EINVAL, "MRF-E3074");
	ops = app_ops;
	ops.start = NULL;
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EINVAL, "MRF-E3074");
	ops = app_ops;
	ops.stop = NULL;
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EINVAL, "MRF-E3074");
	ops = app_ops;
	ops.subscribe = NULL;
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EINVAL, "MRF-E3074");
	ops = app_ops;
	ops.unsubscribe = NULL;
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EINVAL, "MRF-E3074");
	ops = app_ops;
	ops.valid = NULL;
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EINVAL, "MRF-E3074");
	unit_captured(&cap);
	ck_assert_ptr_null(app.import_ops);
	ck_assert_ptr_null(app.fid.ops);
}
END_TEST

START_TEST(a_second_import_is_busy)
{
	struct fid_mem_monitor other = app;

	import();
	unit_capture(&cap);
	refused(fi_import_fid(cache, &other.fid, 0), -FI_EBUSY, "MRF-E3075");
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EBUSY, "MRF-E3075");
	unit_captured(&cap);
	ck_assert_ptr_null(other.import_ops);
	ck_assert_int_eq(fi_close(&app.fid), 0);
	ck_assert_int_eq(fi_import_fid(cache, &other.fid, 0), 0);
	ck_assert_int_eq(fi_close(&other.fid), 0);
}
END_TEST

START_TEST(import_is_busy_while_our_monitor_is_in_use)
{
	mrf_monitor_add(&client);
	unit_capture(&cap);
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EBUSY, "MRF-E3075");
	unit_captured(&cap);
	ck_assert_ptr_null(app.import_ops);
	mrf_monitor_remove(&client);
	import();
	ck_assert_int_eq(fi_close(&app.fid), 0);
}
END_TEST

START_TEST(it_is_started_and_stopped_with_its_use)
{
	import();
	ck_assert_uint_ge(app.import_ops->size, sizeof(*app.import_ops));
	ck_assert_ptr_nonnull(app.import_ops->notify);
	ck_assert_int_eq(atomic_load(&starts), 0);
	mrf_monitor_add(&client);
	ck_assert_int_eq(atomic_load(&starts), 1);
	ck_assert(mrf_monitor_usable());
	mrf_monitor_remove(&client);
	ck_assert_int_eq(atomic_load(&starts), 0);
	ck_assert_int_eq(fi_close(&app.fid), 0);
}
END_TEST

START_TEST(one_that_does_not_start_is_none_and_said_so)
{
	struct mrf_watch watch = { 0 };
	char *mem = map(1);

	import();
	start_result = -FI_ENOSYS;
	unit_capture(&cap);
	mrf_monitor_add(&client);
	unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W3051: the memory monitor that was imported"));
	ck_assert(!mrf_monitor_usable());
	ck_assert_int_eq(watch_it(&watch, mem, 1), -FI_ENOSYS);
	mrf_watch_fini(&watch);
	mrf_monitor_remove(&client);
	ck_assert_int_eq(atomic_load(&starts), 0);
	ck_assert_int_eq(fi_close(&app.fid), 0);
	munmap(mem, PAGE);
}
END_TEST

START_TEST(disabled_stays_disabled)
{
	set_monitor("disabled");
	import();
	mrf_monitor_add(&client);
	ck_assert(!mrf_monitor_usable());
	ck_assert_int_eq(atomic_load(&starts), 0);
	mrf_monitor_remove(&client);
	ck_assert_int_eq(fi_close(&app.fid), 0);
}
END_TEST

START_TEST(what_it_notifies_is_dropped_and_nothing_else)
{
	struct mrf_watch watch[2] = { { 0 } };
	char *mem = map(4);

	import();
	mrf_monitor_add(&client);
	ck_assert_int_eq(watch_it(&watch[0], mem, 1), 0);
	ck_assert_ptr_eq(last_addr, mem);
	ck_assert_uint_eq(last_len, PAGE);
	ck_assert_int_eq(watch_it(&watch[1], mem + 2 * PAGE, 2), 0);
	ck_assert_int_eq(atomic_load(&subscribed), 2);
	app.import_ops->notify(&app, mem + PAGE, PAGE);
	app.import_ops->notify(&app, mem, 0);
	ck_assert_int_eq(atomic_load(&drops), 0);
	app.import_ops->notify(&app, mem + 3 * PAGE + 8, 1);
	ck_assert_int_eq(atomic_load(&drops), 1);
	ck_assert(is_on(&watch[0]) && !is_on(&watch[1]));
	app.import_ops->notify(&app, NULL, SIZE_MAX);
	ck_assert_int_eq(atomic_load(&drops), 2);
	unwatch(&watch[0]);
	unwatch(&watch[1]);
	ck_assert_int_eq(atomic_load(&subscribed), 0);
	mrf_monitor_remove(&client);
	ck_assert_int_eq(fi_close(&app.fid), 0);
	munmap(mem, 4 * PAGE);
}
END_TEST

START_TEST(it_alone_tells_of_changes)
{
	struct mrf_watch watch = { 0 };
	char *mem = map(1);

	import();
	mrf_monitor_add(&client);
	ck_assert_int_eq(watch_it(&watch, mem, 1), 0);
	munmap(mem, PAGE);
	ck_assert_int_eq(atomic_load(&drops), 0);
	unwatch(&watch);
	mrf_monitor_remove(&client);
	ck_assert_int_eq(fi_close(&app.fid), 0);
}
END_TEST

START_TEST(what_it_does_not_watch_is_not_kept)
{
	struct mrf_watch watch = { 0 };
	char *mem = map(1);

	import();
	mrf_monitor_add(&client);
	subscribe_result = -FI_ENOMEM;
	ck_assert_int_eq(watch_it(&watch, mem, 1), -FI_EOTHER);
	unwatch(&watch);
	ck_assert_int_eq(atomic_load(&subscribed), 0);
	mrf_monitor_remove(&client);
	ck_assert_int_eq(fi_close(&app.fid), 0);
	munmap(mem, PAGE);
}
END_TEST

START_TEST(what_it_calls_invalid_is_invalid)
{
	struct mrf_watch watch = { 0 };
	char *mem = map(1);

	import();
	mrf_monitor_add(&client);
	ck_assert_int_eq(watch_it(&watch, mem, 1), 0);
	ck_assert(mrf_watch_valid(&watch));
	is_valid = false;
	ck_assert(!mrf_watch_valid(&watch));
	ck_assert_int_eq(fi_close(&app.fid), 0);
	ck_assert(mrf_watch_valid(&watch));
	unwatch(&watch);
	mrf_monitor_remove(&client);
	munmap(mem, PAGE);
}
END_TEST

START_TEST(closing_it_drops_all_and_puts_ours_back)
{
	struct mrf_watch watch = { 0 };
	struct fi_ops_mem_notify *notify;
	char *mem = map(1);

	import();
	notify = app.import_ops;
	mrf_monitor_add(&client);
	ck_assert_int_eq(watch_it(&watch, mem, 1), 0);
	ck_assert_int_eq(fi_close(&app.fid), 0);
	ck_assert_int_eq(atomic_load(&drops), 1);
	ck_assert_int_eq(atomic_load(&starts), 0);
	/* Nothing of it is called any more. */
	subscribe_result = -FI_ENOMEM;
	unwatch(&watch);
	ck_assert_int_eq(atomic_load(&subscribed), 1);
	if (mrf_monitor_usable()) {
		ck_assert_int_eq(watch_it(&watch, mem, 1), 0);
		notify->notify(&app, mem, PAGE);
		ck_assert_int_eq(atomic_load(&drops), 1);
		munmap(mem, PAGE);
		ck_assert_int_eq(atomic_load(&drops), 2);
		unwatch(&watch);
	}
	mrf_monitor_remove(&client);
	unit_capture(&cap);
	refused(fi_close(&app.fid), -FI_EINVAL, "MRF-E3071");
	unit_captured(&cap);
}
END_TEST

START_TEST(the_cache_may_be_closed_before_the_monitor)
{
	import();
	ck_assert_int_eq(fi_close(cache), 0);
	cache = NULL;
	mrf_monitor_add(&client);
	ck_assert_int_eq(atomic_load(&starts), 1);
	mrf_monitor_remove(&client);
	ck_assert_int_eq(fi_close(&app.fid), 0);
}
END_TEST

/* Its hook holds its lock while it notifies, and its calls take that lock. */
static atomic_bool over;

static void *notifies(void *mem)
{
	while (!atomic_load(&over)) {
		pthread_mutex_lock(&its_lock);
		app.import_ops->notify(&app, mem, PAGE);
		pthread_mutex_unlock(&its_lock);
	}
	return NULL;
}

static void *keeps(void *mem)
{
	struct mrf_watch watch = { 0 };

	while (!atomic_load(&over)) {
		watch_it(&watch, mem, 1);
		unwatch(&watch);
	}
	return NULL;
}

START_TEST(it_may_notify_under_a_lock_that_its_calls_take)
{
	pthread_t threads[4];
	char *mem = map(1);
	int i;

	atomic_store(&over, false);
	import();
	mrf_monitor_add(&client);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, i < 2 ? notifies : keeps, mem),
				 0);
	usleep(300000);
	atomic_store(&over, true);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_gt(atomic_load(&drops), 0);
	ck_assert_int_eq(atomic_load(&subscribed), 0);
	mrf_monitor_remove(&client);
	ck_assert_int_eq(fi_close(&app.fid), 0);
	munmap(mem, PAGE);
}
END_TEST

START_TEST(a_child_may_not_close_what_its_parent_imported)
{
	pid_t pid;

	import();
	pid = fork();
	if (!pid)
		_exit(fi_close(&app.fid) != -FI_EINVAL || fi_close(cache) != -FI_EPERM ||
		      fi_import_fid(cache, &app.fid, 0) != -FI_EPERM);
	ck_assert(child_succeeded(pid));
	ck_assert_int_eq(fi_close(&app.fid), 0);
}
END_TEST

static TCase *tcase_import(void)
{
	TCase *tcase = tcase_create("import");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, the_cache_is_an_object_of_its_class);
	tcase_add_test(tcase, the_cache_is_known_since_1_13);
	tcase_add_test(tcase, the_cache_offers_nothing_else);
	tcase_add_test(tcase, import_refuses_each_bad_argument_with_one_line);
	tcase_add_test(tcase, a_second_import_is_busy);
	tcase_add_test(tcase, import_is_busy_while_our_monitor_is_in_use);
	tcase_add_test(tcase, it_is_started_and_stopped_with_its_use);
	tcase_add_test(tcase, one_that_does_not_start_is_none_and_said_so);
	tcase_add_test(tcase, disabled_stays_disabled);
	tcase_add_test(tcase, what_it_notifies_is_dropped_and_nothing_else);
	tcase_add_test(tcase, it_alone_tells_of_changes);
	tcase_add_test(tcase, what_it_does_not_watch_is_not_kept);
	tcase_add_test(tcase, what_it_calls_invalid_is_invalid);
	tcase_add_test(tcase, closing_it_drops_all_and_puts_ours_back);
	tcase_add_test(tcase, the_cache_may_be_closed_before_the_monitor);
	tcase_add_test(tcase, it_may_notify_under_a_lock_that_its_calls_take);
	tcase_add_test(tcase, a_child_may_not_close_what_its_parent_imported);
	return tcase;
}

UNIT_MAIN("import", tcase_import)
