/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of local buffers on a fake device: what is kept and found, how long, and when
 * it has to go. Changes of the memory are real and reported by the monitor that there is;
 * where there is none (ThreadSanitizer, Valgrind), nothing is kept, and that is all that
 * these tests ask.
 */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_ext_mrfab.h>
#include "base/env.h"
#include "base/page.h"
#include "buf/cache.h"
#include "buf/cache_entry.h"
#include "mr/demand/backs.h"
#include "mr/demand/unpin.h"
#include "mr_fixture.h"
#include "../../tools/info_cache.h"

static struct mrf_cache *cache;
static struct mrf_cached *got;
static struct fi_mrfab_cache_stats stats;

static void set(const char *name, const char *value)
{
	if (value)
		ck_assert_int_eq(setenv(name, value, 1), 0);
	else
		ck_assert_int_eq(unsetenv(name), 0);
}

static void open_limited(const char *count, const char *size, const char *merge)
{
	set("FI_MR_CACHE_MAX_COUNT", count);
	set("FI_MR_CACHE_MAX_SIZE", size);
	set("FI_MR_CACHE_MERGE_REGIONS", merge);
	mrf_env_reload();
	env_open(0);
	fake_verbs.check_memory = true;
	cache = mrf_cache_new(&env.space);
	ck_assert_ptr_nonnull(cache);
	memset(mem, 1, 64 * PAGE);
}

static void open_cache(void)
{
	open_limited(NULL, NULL, NULL);
}

static void close_cache(void)
{
	mrf_cache_free(cache);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_close();
	open_limited(NULL, NULL, NULL);
	mrf_cache_free(cache);
	env_close();
}

static bool keeps(void)
{
	return mrf_mr_backs_monitored(env.space.backs);
}

static int get_at(size_t page, size_t pages, bool write)
{
	int ret;

	got = NULL;
	library_enter();
	ret = mrf_cache_get(cache, mem + page * PAGE, pages * PAGE, write, &got);
	library_leave();
	return ret;
}

/* The key of an entry that nobody uses any more. */
static uint32_t must_get(size_t page, size_t pages, bool write)
{
	uint32_t lkey;

	ck_assert_int_eq(get_at(page, pages, write), 0);
	ck_assert_ptr_nonnull(got);
	lkey = mrf_cache_lkey(got);
	mrf_cache_put(got);
	return lkey;
}

static void look(void)
{
	mrf_cache_stats(cache, &stats);
}

static void want_kept(uint64_t entries, uint64_t pages)
{
	look();
	ck_assert_uint_eq(stats.entries, entries);
	ck_assert_uint_eq(stats.bytes, pages * PAGE);
	ck_assert_uint_eq(fake_verbs.live_mrs, entries);
}

/* Opens a cache; false: here nothing can be kept, and it says so. */
static bool open_keeping(const char *count, const char *size, const char *merge)
{
	open_limited(count, size, merge);
	if (keeps())
		return true;
	ck_assert_int_eq(get_at(0, 1, false), 1);
	look();
	ck_assert_uint_eq(stats.entries, 0);
	close_cache();
	return false;
}

START_TEST(cache_the_second_transfer_finds_what_the_first_one_registered)
{
	uint32_t lkey;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	lkey = must_get(0, 8, true);
	want_kept(1, 8);
	ck_assert_uint_eq(must_get(0, 8, true), lkey);
	ck_assert_uint_eq(must_get(3, 5, false), lkey);
	ck_assert_int_eq(mrf_cache_get(cache, mem + 5, 8 * PAGE - 5, true, &got), 0);
	mrf_cache_put(got);
	want_kept(1, 8);
	ck_assert_uint_eq(stats.misses, 1);
	ck_assert_uint_eq(stats.hits, 3);
	close_cache();
}
END_TEST

/* What `mrfab_info --pid` prints of this process. */
static bool printed(const char *pid, char *text, size_t len)
{
	struct info_pid of = { .pid = pid };
	FILE *file = tmpfile();
	int out = dup(STDOUT_FILENO);
	bool ok;

	ck_assert_ptr_nonnull(file);
	fflush(stdout);
	ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
	ok = !info_cache_print(&of) && of.shown;
	fflush(stdout);
	ck_assert_int_ge(dup2(out, STDOUT_FILENO), 0);
	close(out);
	rewind(file);
	memset(text, 0, len);
	ck_assert(fread(text, 1, len - 1, file) < len);
	fclose(file);
	return ok;
}

START_TEST(cache_other_processes_can_see_what_it_does)
{
	char text[1000], want[400], pid[24];

	if (!open_keeping("7", NULL, NULL))
		return;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	must_get(0, 8, true);
	must_get(0, 8, true);
	ck_assert(printed(pid, text, sizeof(text)));
	snprintf(want, sizeof(want),
		 "cache of local buffers: %s\n    hits: 1\n    misses: 1\n    evictions: 0\n"
		 "    invalidations: 0\n    entries: 1 (at most 7)\n    bytes: %u (no limit)\n",
		 FAKE_DEVICE, 8 * PAGE);
	ck_assert_str_eq(text, want);
	close_cache();
	/* Now there is none; and nobody has this number. */
	ck_assert(!printed(pid, text, sizeof(text)));
	ck_assert(!printed("999999999", text, sizeof(text)));
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(cache_counts_where_no_file_can_be_made)
{
	struct rlimit old, none = { 0, 0 };
	bool keeping;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none.rlim_max = old.rlim_max;
	open_cache();
	mrf_cache_free(cache);
	keeping = keeps();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cache = mrf_cache_new(&env.space);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_ptr_nonnull(cache);
	if (keeping)
		must_get(0, 8, true);
	look();
	ck_assert_uint_eq(stats.misses, keeping);
	close_cache();
}
END_TEST

/* --- a monitor of the application's own ------------------------------------------------ */

static bool app_knows;

static int app_start(struct fid_mem_monitor *monitor)
{
	(void)monitor;
	return 0;
}

static void app_stop(struct fid_mem_monitor *monitor)
{
	(void)monitor;
}

static int app_subscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
	return 0;
}

static void app_unsubscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
}

static bool app_valid(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
	return app_knows;
}

START_TEST(cache_a_monitor_that_was_imported_says_what_is_kept)
{
	struct fi_ops_mem_monitor ops = { sizeof(ops),	 app_start,	  app_stop,
					  app_subscribe, app_unsubscribe, app_valid };
	struct fid_mem_monitor app = { .fid.fclass = FI_CLASS_MEM_MONITOR, .export_ops = &ops };
	uint32_t lkey;

	ck_assert_int_eq(fi_import(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &app.fid, NULL), 0);
	open_cache();
	ck_assert(keeps());
	app_knows = true;
	lkey = must_get(0, 8, true);
	ck_assert_uint_eq(must_get(0, 8, true), lkey);
	app.import_ops->notify(&app, mem + 8 * PAGE, PAGE);
	ck_assert_uint_eq(must_get(0, 8, true), lkey);
	app.import_ops->notify(&app, mem + 7 * PAGE, 1);
	ck_assert_uint_ne(must_get(0, 8, true), lkey);
	look();
	ck_assert_uint_eq(stats.misses, 2);
	app_knows = false;
	must_get(0, 8, true);
	look();
	ck_assert_uint_eq(stats.misses, 3);
	close_cache();
	ck_assert_int_eq(fi_close(&app.fid), 0);
}
END_TEST

START_TEST(cache_an_entry_is_whole_pages)
{
	uint32_t lkey;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	ck_assert_int_eq(mrf_cache_get(cache, mem + PAGE + 100, 10, false, &got), 0);
	lkey = mrf_cache_lkey(got);
	mrf_cache_put(got);
	want_kept(1, 1);
	ck_assert_uint_eq(must_get(1, 1, false), lkey);
	ck_assert_uint_ne(must_get(1, 2, false), lkey);
	close_cache();
}
END_TEST

START_TEST(cache_what_reaches_beyond_an_entry_is_registered)
{
	uint32_t first, second;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	first = must_get(4, 4, true);
	second = must_get(6, 4, true);
	ck_assert_uint_ne(first, second);
	want_kept(2, 8);
	/* Both are still found. */
	ck_assert_uint_eq(must_get(4, 3, true), first);
	ck_assert_uint_eq(must_get(7, 3, true), second);
	/* One that covers both takes their place. */
	ck_assert_uint_ne(must_get(4, 6, true), first);
	want_kept(1, 6);
	look();
	ck_assert_uint_eq(stats.evictions, 0);
	ck_assert_uint_eq(stats.invalidations, 0);
	close_cache();
}
END_TEST

START_TEST(cache_a_buffer_that_is_only_sent_gets_no_right_to_be_written)
{
	uint32_t lkey;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	ck_assert_int_eq(get_at(0, 8, false), 0);
	ck_assert(!got->write);
	lkey = mrf_cache_lkey(got);
	mrf_cache_put(got);
	/* The right is added to all of it. */
	ck_assert_int_eq(get_at(2, 1, true), 0);
	ck_assert(got->write);
	ck_assert_uint_ne(mrf_cache_lkey(got), lkey);
	lkey = mrf_cache_lkey(got);
	mrf_cache_put(got);
	want_kept(1, 8);
	ck_assert_uint_eq(must_get(0, 8, false), lkey);
	close_cache();
}
END_TEST

START_TEST(cache_memory_that_may_not_be_written_is_sent_and_not_received_into)
{
	if (!open_keeping(NULL, NULL, NULL))
		return;
	ck_assert_int_eq(mprotect(mem, 4 * PAGE, PROT_READ), 0);
	ck_assert_int_eq(get_at(0, 1, true), -FI_EFAULT);
	ck_assert_int_eq(get_at(0, 4, false), 0);
	mrf_cache_put(got);
	/* An entry around it that cannot get the right does not matter. */
	ck_assert_int_eq(mprotect(mem, 4 * PAGE, PROT_READ | PROT_WRITE), 0);
	ck_assert_int_eq(get_at(1, 1, true), 0);
	mrf_cache_put(got);
	close_cache();
}
END_TEST

START_TEST(cache_a_right_that_is_taken_is_gone)
{
	if (!open_keeping(NULL, NULL, NULL))
		return;
	(void)must_get(0, 4, true);
	ck_assert_int_eq(mprotect(mem, 4 * PAGE, PROT_READ), 0);
	ck_assert_int_lt(get_at(0, 4, true), 0);
	(void)must_get(0, 4, false);
	ck_assert_int_eq(mprotect(mem, 4 * PAGE, PROT_READ | PROT_WRITE), 0);
	(void)must_get(0, 4, true);
	close_cache();
}
END_TEST

START_TEST(cache_the_least_recently_used_entry_goes_first)
{
	uint32_t a, c;

	if (!open_keeping("3", NULL, NULL))
		return;
	a = must_get(0, 1, true);
	must_get(2, 1, true);
	c = must_get(4, 1, true);
	ck_assert_uint_eq(must_get(0, 1, true), a);
	must_get(6, 1, true);
	want_kept(3, 3);
	ck_assert_uint_eq(stats.evictions, 1);
	/* It was the second one. */
	ck_assert_uint_eq(must_get(0, 1, true), a);
	ck_assert_uint_eq(must_get(4, 1, true), c);
	look();
	ck_assert_uint_eq(stats.misses, 4);
	close_cache();
}
END_TEST

START_TEST(cache_the_bytes_kept_have_a_limit)
{
	if (!open_keeping(NULL, "40960", NULL))
		return;
	must_get(0, 4, true);
	must_get(10, 4, true);
	want_kept(2, 8);
	must_get(20, 4, true);
	want_kept(2, 8);
	must_get(30, 10, true);
	want_kept(1, 10);
	/* More than fits is not kept, and nothing goes for it. */
	ck_assert_int_eq(get_at(40, 11, true), 1);
	want_kept(1, 10);
	close_cache();
}
END_TEST

START_TEST(cache_what_is_in_use_is_not_evicted)
{
	struct mrf_cached *first, *second;

	if (!open_keeping("2", NULL, NULL))
		return;
	ck_assert_int_eq(get_at(0, 1, true), 0);
	first = got;
	ck_assert_int_eq(get_at(2, 1, true), 0);
	second = got;
	ck_assert_int_eq(get_at(4, 1, true), 1);
	want_kept(2, 2);
	mrf_cache_put(second);
	ck_assert_int_eq(get_at(4, 1, true), 0);
	want_kept(2, 2);
	mrf_cache_put(got);
	mrf_cache_put(first);
	close_cache();
}
END_TEST

START_TEST(cache_no_entries_means_no_cache)
{
	open_limited("0", NULL, NULL);
	ck_assert_int_eq(get_at(0, 8, true), 1);
	look();
	ck_assert_uint_eq(stats.entries + stats.hits + stats.misses, 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	close_cache();
}
END_TEST

START_TEST(cache_any_number_may_be_asked_for)
{
	static const char *const counts[] = { "4294967296", "18446744073709551615" };

	if (!open_keeping(counts[_i], NULL, NULL))
		return;
	must_get(0, 8, true);
	want_kept(1, 8);
	close_cache();
}
END_TEST

START_TEST(cache_neighbours_become_one_if_that_is_asked_for)
{
	uint32_t lkey;

	if (!open_keeping(NULL, NULL, _i ? "yes" : NULL))
		return;
	must_get(0, 2, true);
	must_get(2, 2, false);
	if (!_i) {
		want_kept(2, 4);
		close_cache();
		return;
	}
	want_kept(1, 4);
	must_get(8, 2, false);
	want_kept(2, 6);
	lkey = must_get(3, 6, false);
	want_kept(1, 10);
	ck_assert_uint_eq(must_get(0, 10, true), lkey);
	close_cache();
}
END_TEST

START_TEST(cache_neighbours_that_cannot_be_one_stay_two)
{
	if (!open_keeping(NULL, NULL, "1"))
		return;
	must_get(0, 2, true);
	/* Another mapping: not even to be merged by the kernel. */
	ck_assert_int_eq(mprotect(mem + 2 * PAGE, 2 * PAGE, PROT_READ), 0);
	ck_assert_int_eq(get_at(2, 2, false) & ~1, 0);
	if (got)
		mrf_cache_put(got);
	look();
	ck_assert_uint_le(stats.entries, 2);
	ck_assert_uint_ge(stats.entries, 1);
	must_get(0, 2, true);
	ck_assert_int_eq(mprotect(mem + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE), 0);
	close_cache();
}
END_TEST

/* That would be more than the kernel takes at a time. */
START_TEST(cache_neighbours_that_are_too_long_together_stay_two)
{
	unsigned char *there = env_reserve(GIB + PAGE);
	unsigned i, calls;

	if (open_keeping("10", "100000000000", "yes")) {
		for (i = 0; i < 2; i++) {
			calls = fake_verbs.calls[FAKE_REG_MR];
			ck_assert_int_eq(
				mrf_cache_get(cache, there + i * GIB, i ? PAGE : GIB, true, &got),
				0);
			mrf_cache_put(got);
			ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], calls + 1);
		}
		want_kept(2, (GIB + PAGE) / PAGE);
		close_cache();
	}
	munmap(there, GIB + PAGE);
}
END_TEST

/* --- changes --------------------------------------------------------------------------- */

enum change { UNMAP, MAP_OVER, DISCARD, FREE, MOVE, DIRECT, CHANGES };

/* Changes pages of mem, which are there again afterwards, and hold other bytes. */
static void change(enum change how, size_t page, size_t pages)
{
	unsigned char *at = mem + page * PAGE;
	size_t len = pages * PAGE;
	void *to;

	switch (how) {
	case UNMAP:
		ck_assert_int_eq(munmap(at, len), 0);
		break;
	case DIRECT:
		ck_assert_int_eq(syscall(SYS_munmap, at, len), 0);
		break;
	case DISCARD:
		ck_assert_int_eq(madvise(at, len, MADV_DONTNEED), 0);
		break;
	case FREE:
		ck_assert_int_eq(madvise(at, len, MADV_FREE), 0);
		break;
	case MOVE:
		to = mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
			    mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		ck_assert_ptr_ne(to, MAP_FAILED);
		munmap(to, len);
		break;
	default:
		break;
	}
	to = mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(to, at);
	memset(at, 2, len);
}

START_TEST(cache_memory_that_changes_is_registered_again)
{
	uint32_t lkey, other;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	lkey = must_get(8, 8, true);
	other = must_get(40, 8, true);
	change((enum change)_i, 10, 1);
	/* Nothing is left of it, before anybody asks; what lies elsewhere stays. */
	look();
	ck_assert_uint_eq(stats.entries, fake_verbs.live_mrs);
	if (_i != DIRECT)
		want_kept(1, 8);
	if (get_at(8, 8, true) == 0) {
		ck_assert_uint_ne(mrf_cache_lkey(got), lkey);
		mrf_cache_put(got);
	}
	ck_assert(must_get(40, 8, true) == other || _i == DIRECT);
	close_cache();
}
END_TEST

START_TEST(cache_a_transfer_keeps_what_it_uses_until_it_is_done)
{
	struct mrf_cached *used, *twice;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	ck_assert_int_eq(get_at(8, 8, true), 0);
	used = got;
	ck_assert_int_eq(get_at(8, 8, true), 0);
	twice = got;
	ck_assert_ptr_eq(used, twice);
	change((enum change)_i, 10, 1);
	look();
	ck_assert_uint_eq(stats.entries, 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	/* The next transfer does not use it. */
	if (get_at(9, 1, true) == 0) {
		ck_assert_ptr_ne(got, used);
		mrf_cache_put(got);
	}
	mrf_cache_put(used);
	look();
	ck_assert_uint_eq(fake_verbs.live_mrs, stats.entries + 1);
	mrf_cache_put(twice);
	ck_assert_uint_eq(fake_verbs.live_mrs, stats.entries);
	close_cache();
}
END_TEST

START_TEST(cache_shared_memory_is_not_kept)
{
	unsigned char *shared =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	open_cache();
	ck_assert_ptr_ne(shared, MAP_FAILED);
	ck_assert_int_eq(mrf_cache_get(cache, shared, 8 * PAGE, true, &got), 1);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_int_eq(munmap(shared, 8 * PAGE), 0);
	close_cache();
}
END_TEST

START_TEST(cache_memory_that_is_not_there_is_refused_and_holds_nothing)
{
	open_cache();
	ck_assert_int_eq(munmap(mem + 4 * PAGE, 4 * PAGE), 0);
	/* Who wants it is told, here or when it is registered without the cache. */
	ck_assert_int_ne(get_at(4, 1, false), 0);
	ck_assert_int_ne(get_at(3, 2, false), 0);
	ck_assert_int_ne(get_at(7, 2, false), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	change(UNMAP, 4, 4);
	close_cache();
}
END_TEST

/* --- the end --------------------------------------------------------------------------- */

static void free_cache_meanwhile(const struct ibv_mr *mr)
{
	(void)mr;
	fake_verbs.on_dereg = NULL;
	mrf_cache_free(cache);
}

/* Or that another thread is just letting go. */
START_TEST(cache_what_the_kernel_keeps_outlives_it)
{
	if (!open_keeping(NULL, NULL, NULL))
		return;
	mallopt(M_PERTURB, 0x5a);
	must_get(0, 8, true);
	fake_verbs_fail_always(FAKE_REVOKE_MR, EIO);
	fake_verbs_fail_always(FAKE_DEREG_MR, EIO);
	if (_i)
		change(UNMAP, 0, 8);
	else
		mrf_cache_free(cache);
	fake_verbs_fail(FAKE_REVOKE_MR, 0, 0);
	fake_verbs_fail(FAKE_DEREG_MR, 0, 0);
	fake_verbs.on_dereg = _i ? free_cache_meanwhile : NULL;
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_int_eq(mrf_pins_reap(env.space.backs), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	mallopt(M_PERTURB, 0);
	env_close();
}
END_TEST

/* --- room ------------------------------------------------------------------------------ */

/* Whatever is kept lies below it. */
START_TEST(cache_what_passes_the_end_of_the_address_space_is_refused)
{
	static const struct {
		uintptr_t below_end;
		size_t len;
	} range[] = { { 16 * PAGE, 32 * PAGE }, { PAGE, PAGE }, { 1, 1 }, { PAGE, SIZE_MAX } };
	uintptr_t start = 0 - range[_i].below_end;

	open_limited(NULL, NULL, NULL);
	if (keeps())
		must_get(0, 8, true);
	ck_assert_int_eq(mrf_cache_get(cache, (void *)start, range[_i].len, true, &got),
			 -FI_EFAULT);
	look();
	ck_assert_uint_eq(stats.hits, 0);
	close_cache();
}
END_TEST

START_TEST(cache_makes_room_before_it_fails)
{
	uint32_t lkey;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	fake_verbs.max_bytes = 12 * PAGE;
	lkey = must_get(0, 4, true);
	must_get(10, 4, true);
	must_get(20, 4, true);
	ck_assert_uint_eq(must_get(0, 4, true), lkey);
	/* As much as is needed, the oldest first. */
	must_get(30, 4, true);
	want_kept(3, 12);
	ck_assert_uint_eq(must_get(0, 4, true), lkey);
	must_get(40, 12, true);
	want_kept(1, 12);
	ck_assert_int_eq(get_at(0, 13, true), -FI_ENOMEM);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	close_cache();
}
END_TEST

static bool limited; /* to 12 pages, whoever runs this */

void __wrap_mrf_page_memlock_read(struct mrf_page_memlock *lock);
void __real_mrf_page_memlock_read(struct mrf_page_memlock *lock);

void __wrap_mrf_page_memlock_read(struct mrf_page_memlock *lock)
{
	__real_mrf_page_memlock_read(lock);
	if (limited)
		*lock = (struct mrf_page_memlock){ .limit = 12 * PAGE, .used = 12 * PAGE };
}

/* What there can be no room for, whatever goes, makes nothing go. */
START_TEST(cache_what_the_limit_does_not_let_in_empties_nothing)
{
	struct mrf_vmr vmr = { 0 };

	if (!open_keeping(NULL, NULL, NULL))
		return;
	limited = true;
	fake_verbs.max_bytes = 12 * PAGE;
	must_get(0, 4, true);
	must_get(10, 4, true);
	must_get(20, 4, true);
	ck_assert_int_eq(get_at(30, 13, true), -FI_ENOMEM);
	ck_assert_int_eq(mrf_room_reg(env.space.pd, mem + 30 * PAGE, 13 * PAGE, 0, 0, &vmr),
			 -FI_ENOMEM);
	want_kept(3, 12);
	must_get(30, 12, true);
	want_kept(1, 12);
	limited = false;
	close_cache();
}
END_TEST

/* Others may take the room again and again. */
START_TEST(cache_tries_to_make_room_so_many_times)
{
	unsigned tries;
	size_t i;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	for (i = 0; i < 16; i++)
		must_get(2 * i, 1, true);
	tries = fake_verbs.calls[FAKE_REG_MR];
	fake_verbs_fail_always(FAKE_REG_MR, ENOMEM);
	ck_assert_int_eq(get_at(40, 1, true), -FI_ENOMEM);
	fake_verbs_fail(FAKE_REG_MR, 0, 0);
	ck_assert_uint_le(fake_verbs.calls[FAKE_REG_MR] - tries, 5);
	want_kept(0, 0);
	close_cache();
}
END_TEST

START_TEST(cache_gives_way_to_registrations)
{
	struct mrf_vmr vmr = { 0 };
	struct mrf_cached *used;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	fake_verbs.max_mr = 3;
	must_get(0, 1, true);
	must_get(2, 1, true);
	ck_assert_int_eq(get_at(4, 1, true), 0);
	used = got;
	ck_assert_int_eq(mrf_room_reg(env.space.pd, mem, PAGE, 0, 0, &vmr), 0);
	/* What is in use goes later. */
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	mrf_cache_put(used);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_int_eq(mrf_vmr_dereg(&vmr), 0);
	close_cache();
}
END_TEST

START_TEST(cache_every_failed_allocation_is_survived)
{
	unsigned n, made;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	for (n = 1;; n++) {
		fail_alloc(n);
		if (!get_at(n % 32, 1, true))
			mrf_cache_put(got);
		made = allocs();
		fail_alloc(0);
		if (made < n)
			break;
		ck_assert_uint_lt(n, 100);
	}
	must_get(40, 1, true);
	close_cache();
}
END_TEST

/* --- many ------------------------------------------------------------------------------ */

#define MANY 1000

START_TEST(cache_any_number_of_entries_is_found)
{
	size_t len = 2 * MANY * PAGE;
	unsigned char *big = mmap(NULL, len, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint32_t *lkey = calloc(MANY, sizeof(*lkey));
	unsigned i, round;

	if (!open_keeping("100000", NULL, NULL))
		return;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < MANY; i++) {
			unsigned at = (i * 7919) % MANY;

			ck_assert_int_eq(
				mrf_cache_get(cache, big + 2 * at * PAGE, PAGE, true, &got), 0);
			ck_assert(!round || lkey[at] == mrf_cache_lkey(got));
			lkey[at] = mrf_cache_lkey(got);
			mrf_cache_put(got);
		}
	}
	want_kept(MANY, MANY);
	ck_assert_uint_eq(stats.hits, MANY);
	/* All at once, and only these. */
	must_get(0, 1, true);
	ck_assert_int_eq(munmap(big, len), 0);
	want_kept(1, 1);
	ck_assert_uint_eq(stats.invalidations, MANY);
	free(lkey);
	close_cache();
}
END_TEST

/* --- threads --------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 3000

/*
 * Each thread has four pages, which it changes at random. What it gets after a change was
 * registered after it.
 */
static void *churn(void *arg)
{
	size_t page = (size_t)(uintptr_t)arg * 8;
	unsigned i, seed = (unsigned)page + 1;
	struct mrf_cached *entry;
	uint32_t lkey = 0;
	bool changed = true;

	for (i = 0; i < ROUNDS; i++) {
		if (rand_r(&seed) % 4 == 0) {
			change(rand_r(&seed) % 2 ? UNMAP : MAP_OVER, page, 4);
			changed = true;
		}
		if (mrf_cache_get(cache, mem + page * PAGE, 4 * PAGE, true, &entry))
			continue;
		ck_assert(!changed || mrf_cache_lkey(entry) != lkey);
		ck_assert_uint_le(entry->pin.addr, (uintptr_t)mem + page * PAGE);
		lkey = mrf_cache_lkey(entry);
		changed = false;
		mrf_cache_put(entry);
	}
	return NULL;
}

START_TEST(cache_threads_never_get_what_was_there_before)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	open_limited(_i ? "2" : NULL, NULL, NULL);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	look();
	ck_assert(!keeps() || stats.misses);
	close_cache();
}
END_TEST

static struct mrf_cached *_Atomic older; /* NULL: its last use has ended */

/*
 * Notices at once what a thread on another processor does, and gives its own processor to one that
 * has none.
 */
static struct mrf_cached *await_older(bool there)
{
	struct mrf_cached *entry;
	unsigned n;

	for (n = 0;; n++) {
		entry = atomic_load(&older);
		if (!!entry == there)
			return entry;
		if (n > 1000)
			sched_yield();
	}
}

static void *end_last_use(void *arg)
{
	struct mrf_cached *entry;
	unsigned i, spin, seed = 1;

	for (i = 0; i < ROUNDS; i++) {
		entry = await_older(true);
		for (spin = rand_r(&seed) % 600; spin; spin--)
			(void)atomic_load(&older);
		mrf_cache_put(entry);
		atomic_store(&older, NULL);
	}
	return arg;
}

/* What a transfer uses has ended; the last use of it ends while another transfer begins. */
START_TEST(cache_a_transfer_begins_while_the_last_use_of_what_was_there_ends)
{
	struct mrf_cached *entry;
	pthread_t thread;
	unsigned i;

	if (!open_keeping(NULL, NULL, NULL))
		return;
	ck_assert_int_eq(pthread_create(&thread, NULL, end_last_use, NULL), 0);
	for (i = 0; i < ROUNDS; i++) {
		ck_assert_int_eq(get_at(0, 8, true), 0);
		entry = got;
		ck_assert_int_eq(madvise(mem, 8 * PAGE, MADV_DONTNEED), 0);
		memset(mem, 1, 8 * PAGE);
		atomic_store(&older, entry);
		must_get(0, 8, true);
		await_older(false);
	}
	pthread_join(thread, NULL);
	close_cache();
}
END_TEST

/* An entry that several threads enter, leave and end: exactly one of them buries it. */
static struct mrf_cached shared_entry;
static atomic_uint buried, began;

static void *enter_and_leave(void *arg)
{
	unsigned i;

	for (i = 0; i < ROUNDS * 10; i++) {
		bool live = mrf_cached_enter(&shared_entry);

		if (live && atomic_load(&shared_entry.state) & MRF_CACHED_DEAD)
			abort();
		if (mrf_cached_leave(&shared_entry))
			atomic_fetch_add(&buried, 1);
	}
	(void)arg;
	return NULL;
}

static void *end_and_begin(void *arg)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		while (!(atomic_load(&shared_entry.state) & MRF_CACHED_DEAD))
			sched_yield();
		mrf_cached_begin(&shared_entry);
		atomic_fetch_add(&began, 1);
		if (mrf_cached_leave(&shared_entry))
			abort();
		if (mrf_cached_end(&shared_entry))
			atomic_fetch_add(&buried, 1);
	}
	(void)arg;
	return NULL;
}

START_TEST(cache_the_last_user_lets_go_exactly_once)
{
	pthread_t threads[3];

	atomic_init(&shared_entry.state, MRF_CACHED_ENDED | MRF_CACHED_DEAD);
	ck_assert_int_eq(pthread_create(&threads[0], NULL, end_and_begin, NULL), 0);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, enter_and_leave, NULL), 0);
	ck_assert_int_eq(pthread_create(&threads[2], NULL, enter_and_leave, NULL), 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	pthread_join(threads[2], NULL);
	ck_assert_uint_eq(atomic_load(&began), ROUNDS);
	ck_assert_uint_eq(atomic_load(&buried), ROUNDS);
	ck_assert_uint_eq(atomic_load(&shared_entry.state), MRF_CACHED_ENDED | MRF_CACHED_DEAD);
}
END_TEST

static TCase *kept(void)
{
	TCase *tc = tcase_create("kept");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, cache_the_second_transfer_finds_what_the_first_one_registered);
	tcase_add_test(tc, cache_other_processes_can_see_what_it_does);
	tcase_add_test(tc, cache_counts_where_no_file_can_be_made);
	tcase_add_test(tc, cache_an_entry_is_whole_pages);
	tcase_add_test(tc, cache_a_monitor_that_was_imported_says_what_is_kept);
	tcase_add_test(tc, cache_what_reaches_beyond_an_entry_is_registered);
	tcase_add_test(tc, cache_a_buffer_that_is_only_sent_gets_no_right_to_be_written);
	tcase_add_test(tc, cache_memory_that_may_not_be_written_is_sent_and_not_received_into);
	tcase_add_test(tc, cache_a_right_that_is_taken_is_gone);
	tcase_add_test(tc, cache_the_least_recently_used_entry_goes_first);
	tcase_add_test(tc, cache_the_bytes_kept_have_a_limit);
	tcase_add_test(tc, cache_what_is_in_use_is_not_evicted);
	tcase_add_test(tc, cache_no_entries_means_no_cache);
	tcase_add_loop_test(tc, cache_any_number_may_be_asked_for, 0, 2);
	tcase_add_loop_test(tc, cache_neighbours_become_one_if_that_is_asked_for, 0, 2);
	tcase_add_test(tc, cache_neighbours_that_cannot_be_one_stay_two);
	tcase_add_test(tc, cache_neighbours_that_are_too_long_together_stay_two);
	tcase_add_loop_test(tc, cache_memory_that_changes_is_registered_again, 0, CHANGES);
	tcase_add_loop_test(tc, cache_a_transfer_keeps_what_it_uses_until_it_is_done, 0, CHANGES);
	tcase_add_test(tc, cache_shared_memory_is_not_kept);
	tcase_add_test(tc, cache_memory_that_is_not_there_is_refused_and_holds_nothing);
	tcase_add_loop_test(tc, cache_what_passes_the_end_of_the_address_space_is_refused, 0, 4);
	tcase_add_loop_test(tc, cache_what_the_kernel_keeps_outlives_it, 0, 2);
	tcase_add_test(tc, cache_makes_room_before_it_fails);
	tcase_add_test(tc, cache_what_the_limit_does_not_let_in_empties_nothing);
	tcase_add_test(tc, cache_tries_to_make_room_so_many_times);
	tcase_add_test(tc, cache_gives_way_to_registrations);
	tcase_add_test(tc, cache_every_failed_allocation_is_survived);
	tcase_add_test(tc, cache_any_number_of_entries_is_found);
	tcase_add_loop_test(tc, cache_threads_never_get_what_was_there_before, 0, 2);
	tcase_add_test(tc, cache_a_transfer_begins_while_the_last_use_of_what_was_there_ends);
	tcase_add_test(tc, cache_the_last_user_lets_go_exactly_once);
	return tc;
}

UNIT_MAIN("cache", kept)
