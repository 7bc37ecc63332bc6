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
	void *ops;

	unit_capture(&cap);
	refused(fi_control(cache, FI_GETWAIT, NULL), -FI_ENOSYS, "MRF-E2003");
	refused(fi_control(cache, FI_EXPORT_FID, NULL), -FI_ENOSYS, "MRF-E2003");
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

/* --- export ----------------------------------------------------------------------------- */

static struct fid_mem_monitor *lent, *lent_too;
static atomic_int notes;
static const char *noted_page; /* is it there while notify runs? */
static atomic_int noted_byte;
static bool ends_it; /* notify unsubscribes */

static void note(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	const char *page = addr;

	atomic_fetch_add(&notes, 1);
	noted_page = page;
	if (monitor == lent)
		atomic_store(&noted_byte, *page);
	if (ends_it)
		monitor->export_ops->unsubscribe(monitor, addr, len);
}

static struct fi_ops_mem_notify note_ops = { sizeof(note_ops), note };

static struct fid_mem_monitor *export(void)
{
	struct fid *fid = NULL;
	struct fid_mem_monitor *monitor;

	ck_assert_int_eq(fi_export_fid(cache, 0, &fid, &app), 0);
	ck_assert_uint_eq(fid->fclass, FI_CLASS_MEM_MONITOR);
	ck_assert_ptr_eq(fid->context, &app);
	monitor = (struct fid_mem_monitor *)(void *)fid;
	ck_assert_uint_eq(monitor->export_ops->size, sizeof(*monitor->export_ops));
	monitor->import_ops = &note_ops;
	return monitor;
}

/* False: this kernel or tool lets nothing be watched. */
static bool export_setup(const char *which)
{
	set_monitor(which);
	atomic_store(&notes, 0);
	atomic_store(&noted_byte, 0);
	ends_it = false;
	lent = export();
	if (!lent->export_ops->start(lent))
		return true;
	ck_assert_int_eq(fi_close(&lent->fid), 0);
	return false;
}

static void export_teardown(void)
{
	lent->export_ops->stop(lent);
	ck_assert_int_eq(fi_close(&lent->fid), 0);
}

static int subscribe(void *mem, size_t len)
{
	return lent->export_ops->subscribe(lent, mem, len);
}

static bool valid(void *mem, size_t len)
{
	return lent->export_ops->valid(lent, mem, len);
}

START_TEST(export_refuses_each_bad_argument_with_one_line)
{
	struct fid *fid = (struct fid *)8;

	unit_capture(&cap);
	refused(fi_export_fid(cache, 1, &fid, NULL), -FI_EINVAL, "MRF-E3078");
	refused(fi_export_fid(cache, 0, NULL, NULL), -FI_EINVAL, "MRF-E3078");
	unit_captured(&cap);
	ck_assert_ptr_eq(fid, (struct fid *)8);
}
END_TEST

START_TEST(a_borrower_is_told_before_the_change)
{
	char *mem = map(4);

	if (!export_setup("memhooks"))
		return;
	mem[PAGE] = 77;
	ck_assert_int_eq(subscribe(mem + PAGE, 2 * PAGE), 0);
	ck_assert(valid(mem + PAGE, 2 * PAGE));
	ck_assert(!valid(mem, PAGE));
	munmap(mem, PAGE);
	ck_assert_int_eq(atomic_load(&notes), 0);
	munmap(mem + 2 * PAGE, PAGE);
	ck_assert_int_eq(atomic_load(&notes), 1);
	ck_assert_ptr_eq(noted_page, mem + PAGE);
	ck_assert_int_eq(atomic_load(&noted_byte), 77);
	ck_assert(!valid(mem + PAGE, 2 * PAGE));
	munmap(mem + PAGE, PAGE);
	ck_assert_int_eq(atomic_load(&notes), 1);
	munmap(mem + 3 * PAGE, PAGE);
	export_teardown();
}
END_TEST

START_TEST(a_borrower_hears_of_direct_system_calls_through_userfaultfd)
{
	char *mem = map(1);
	int i;

	if (!export_setup(NULL))
		return;
	lent->import_ops = &note_ops;
	mem[0] = 1;
	ck_assert_int_eq(subscribe(mem, PAGE), 0);
	lent_too = lent;
	ck_assert_int_eq((int)syscall(SYS_madvise, mem, PAGE, MADV_DONTNEED), 0);
	ck_assert(!valid(mem, PAGE));
	for (i = 0; i < 2000 && !atomic_load(&notes); i++)
		usleep(1000);
	ck_assert_int_eq(atomic_load(&notes), 1);
	munmap(mem, PAGE);
	export_teardown();
}
END_TEST

START_TEST(a_borrower_may_end_it_where_it_is_told)
{
	char *mem = map(1);
	int i;

	if (!export_setup("memhooks"))
		return;
	ends_it = true;
	for (i = 1; i <= 3; i++) {
		mem[0] = 1;
		ck_assert_int_eq(subscribe(mem, PAGE), 0);
		madvise(mem, PAGE, MADV_DONTNEED);
		ck_assert_int_eq(atomic_load(&notes), i);
		ck_assert(!valid(mem, PAGE));
	}
	munmap(mem, PAGE);
	export_teardown();
}
END_TEST

START_TEST(what_changed_can_be_subscribed_anew_before_it_is_ended)
{
	char *mem = map(1);

	if (!export_setup("memhooks"))
		return;
	ck_assert_int_eq(subscribe(mem, PAGE), 0);
	madvise(mem, PAGE, MADV_DONTNEED);
	ck_assert_int_eq(subscribe(mem, PAGE), 0);
	lent->export_ops->unsubscribe(lent, mem, PAGE);
	ck_assert(valid(mem, PAGE));
	lent->export_ops->unsubscribe(lent, mem, PAGE);
	ck_assert(!valid(mem, PAGE));
	lent->export_ops->unsubscribe(lent, mem, PAGE);
	munmap(mem, PAGE);
	ck_assert_int_eq(atomic_load(&notes), 1);
	export_teardown();
}
END_TEST

START_TEST(several_borrowers_are_told_each)
{
	char *mem = map(1);

	if (!export_setup("memhooks"))
		return;
	lent_too = export();
	ck_assert_int_eq(lent_too->export_ops->start(lent_too), 0);
	ck_assert_int_eq(lent_too->export_ops->start(lent_too), 0);
	ck_assert_int_eq(subscribe(mem, PAGE), 0);
	ck_assert_int_eq(lent_too->export_ops->subscribe(lent_too, mem, 1), 0);
	munmap(mem, PAGE);
	ck_assert_int_eq(atomic_load(&notes), 2);
	unit_capture(&cap);
	lent_too->export_ops->stop(lent_too);
	refused(fi_close(&lent_too->fid), -FI_EBUSY, "MRF-E3077");
	unit_captured(&cap);
	lent_too->export_ops->stop(lent_too);
	ck_assert_int_eq(fi_close(&lent_too->fid), 0);
	export_teardown();
}
END_TEST

START_TEST(what_cannot_be_watched_is_refused_to_a_borrower)
{
	char *mem = map(2);

	if (!export_setup("memhooks"))
		return;
	ck_assert_int_eq(subscribe(mem, 0), -FI_EINVAL);
	ck_assert_int_eq(subscribe(mem, SIZE_MAX), -FI_EINVAL);
	munmap(mem + PAGE, PAGE);
	ck_assert_int_lt(subscribe(mem, 2 * PAGE), 0);
	ck_assert(!valid(mem, 2 * PAGE));
	munmap(mem, PAGE);
	ck_assert_int_eq(atomic_load(&notes), 0);
	export_teardown();
}
END_TEST

START_TEST(a_lent_monitor_is_in_use_and_not_lent_to_ourselves)
{
	if (!export_setup(NULL))
		return;
	unit_capture(&cap);
	refused(fi_import_fid(cache, &lent->fid, 0), -FI_EINVAL, "MRF-E3070");
	refused(fi_import_fid(cache, &app.fid, 0), -FI_EBUSY, "MRF-E3075");
	unit_captured(&cap);
	export_teardown();
}
END_TEST

START_TEST(without_a_monitor_there_is_none_to_lend)
{
	char *mem = map(1);

	set_monitor("disabled");
	lent = export();
	ck_assert_int_eq(lent->export_ops->start(lent), -FI_ENOSYS);
	ck_assert_int_eq(subscribe(mem, PAGE), -FI_ENOSYS);
	lent->export_ops->stop(lent);
	ck_assert_int_eq(fi_close(&lent->fid), 0);
	munmap(mem, PAGE);
}
END_TEST

START_TEST(a_child_may_not_use_what_its_parent_lends)
{
	char *mem = map(1);
	pid_t pid;

	if (!export_setup("memhooks"))
		return;
	ck_assert_int_eq(subscribe(mem, PAGE), 0);
	pid = fork();
	if (!pid) {
		int bad = subscribe(mem, PAGE) != -FI_EPERM || valid(mem, PAGE) ||
			  lent->export_ops->start(lent) != -FI_EPERM ||
			  fi_close(&lent->fid) != -FI_EPERM;

		lent->export_ops->unsubscribe(lent, mem, PAGE);
		lent->export_ops->stop(lent);
		munmap(mem, PAGE);
		_exit(bad || atomic_load(&notes));
	}
	ck_assert(child_succeeded(pid));
	munmap(mem, PAGE);
	ck_assert_int_eq(atomic_load(&notes), 1);
	export_teardown();
}
END_TEST

static void *maps_and_unmaps(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		char *mem = map(1);

		mem[0] = 1;
		if (!subscribe(mem, PAGE) && munmap(mem, PAGE))
			return NULL;
		lent->export_ops->unsubscribe(lent, mem, PAGE);
	}
	return NULL;
}

START_TEST(borrowing_threads_do_not_disturb_each_other)
{
	pthread_t threads[3];
	int i;

	if (!export_setup("memhooks"))
		return;
	ends_it = true;
	atomic_store(&over, false);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, maps_and_unmaps, NULL), 0);
	usleep(300000);
	atomic_store(&over, true);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_gt(atomic_load(&notes), 0);
	export_teardown();
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

static TCase *tcase_export(void)
{
	TCase *tcase = tcase_create("export");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, export_refuses_each_bad_argument_with_one_line);
	tcase_add_test(tcase, a_borrower_is_told_before_the_change);
	tcase_add_test(tcase, a_borrower_hears_of_direct_system_calls_through_userfaultfd);
	tcase_add_test(tcase, a_borrower_may_end_it_where_it_is_told);
	tcase_add_test(tcase, what_changed_can_be_subscribed_anew_before_it_is_ended);
	tcase_add_test(tcase, several_borrowers_are_told_each);
	tcase_add_test(tcase, what_cannot_be_watched_is_refused_to_a_borrower);
	tcase_add_test(tcase, a_lent_monitor_is_in_use_and_not_lent_to_ourselves);
	tcase_add_test(tcase, without_a_monitor_there_is_none_to_lend);
	tcase_add_test(tcase, a_child_may_not_use_what_its_parent_lends);
	tcase_add_test(tcase, borrowing_threads_do_not_disturb_each_other);
	return tcase;
}

UNIT_MAIN("import", tcase_import, tcase_export)
