/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor on the real kernel: where it permits userfaultfd, what it tells; where not,
 * and with FI_MR_CACHE_MONITOR=disabled, that it says so and refuses. What is asked of libc comes
 * to the hooks, what goes around it to userfaultfd.
 */
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <rdma/fi_errno.h>
#include "base/maps.h"
#include "base/param.h"
#include "monitor/change.h"
#include "monitor/discard.h"
#include "monitor/hooks.h"
#include "monitor/monitor.h"
#include "monitor/uffd.h"
#include "monitor/ground.h"
#include "apart.h"
#include "child.h"
#include "unit.h"

#define PAGE 4096u

static struct unit_capture cap;
static struct mrf_monitor_client client;
static struct mrf_watch watch;
static atomic_int drops, tells;
static bool have;
static bool direct; /* changes go around the C library */
static useconds_t delay_us;

static void on_drop(struct mrf_watch *w)
{
	ck_assert_ptr_eq(w->client, &client);
	ck_assert(!mrf_watch_on(w));
	/* Time for the other thread to go on too early. */
	usleep(delay_us);
	atomic_fetch_add(&drops, 1);
}

/* Once for each change, when all is dropped. */
static void on_dropped(void *arg)
{
	ck_assert_ptr_eq(arg, &client);
	ck_assert_int_lt(atomic_fetch_add(&tells, 1), atomic_load(&drops));
}

/* What FI_MR_CACHE_MONITOR is in a case; NULL: not set. */
static const char *monitor;

/*
 * TSan has calls of its own in the place of those that the hooks are in, which hear nothing then.
 */
#ifdef __SANITIZE_THREAD__
#define HOOKS false
#else
#define HOOKS true
#endif

/* Does this kernel let this process? */
static bool permitted(void)
{
	int fd = mrf_uffd_open();

	if (!HOOKS && !monitor) {
		close(fd);
		return false;
	}

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void forgiving(void *arg)
{
	(void)arg;
	atomic_fetch_add(&tells, 1);
}

static void set_monitor(const char *which)
{
	monitor = which;
	if (which)
		setenv("FI_MR_CACHE_MONITOR", which, 1);
	else
		unsetenv("FI_MR_CACHE_MONITOR");
	mrf_env_reload();
}

static void setup_as_set(void)
{
	have = permitted();
	direct = false;
	delay_us = 0;
	atomic_store(&drops, 0);
	atomic_store(&tells, 0);
	client = (struct mrf_monitor_client){ .drop = on_drop,
					      .dropped = on_dropped,
					      .arg = &client };
	unit_capture(&cap);
	mrf_monitor_add(&client);
	unit_captured(&cap);
	ck_assert_int_eq(mrf_monitor_usable(), have);
}

static void setup(void)
{
	set_monitor(NULL);
	setup_as_set();
}

static void setup_alone(void)
{
	set_monitor("userfaultfd");
	setup_as_set();
}

static void teardown(void)
{
	mrf_monitor_remove(&client);
	ck_assert(!mrf_monitor_usable());
}

static void *map(size_t pages)
{
	void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	return mem;
}

/* --- changes, by the C library or around it ---------------------------------------- */

static void unmap(void *mem, size_t len)
{
	ck_assert_int_eq(direct ? (int)syscall(SYS_munmap, mem, len) : munmap(mem, len), 0);
}

static void advise(void *mem, size_t len, int advice)
{
	ck_assert_int_eq(direct ? (int)syscall(SYS_madvise, mem, len, advice)
				: madvise(mem, len, advice),
			 0);
}

static void map_over(void *mem, size_t len, int flags, int fd)
{
	int prot = fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ;
	void *got;

	flags |= MAP_PRIVATE | MAP_FIXED;
	got = direct ? (void *)syscall(SYS_mmap, mem, len, prot, flags, fd, 0)
		     : mmap(mem, len, prot, flags, fd, 0);
	ck_assert_ptr_eq(got, mem);
}

static void move(void *mem, size_t len, void *to)
{
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	void *got = direct ? (void *)syscall(SYS_mremap, mem, len, len, flags, to)
			   : mremap(mem, len, len, flags, to);

	ck_assert_ptr_eq(got, to);
}

/* --- what is watched ---------------------------------------------------------------- */

static int watch_it(struct mrf_watch *w, void *mem, size_t pages)
{
	int ret;

	if (!w->node)
		ck_assert_int_eq(mrf_watch_init(w, &client), 0);
	w->start = (uintptr_t)mem;
	w->len = pages * PAGE;
	w->client = &client;
	mrf_monitor_lock();
	ret = mrf_monitor_watch_locked(w);
	ck_assert_int_eq(mrf_watch_on(w), !ret);
	mrf_monitor_unlock();
	return ret;
}

static void unwatch(struct mrf_watch *w)
{
	mrf_monitor_lock();
	mrf_monitor_unwatch_locked(w);
	ck_assert(!mrf_watch_on(w));
	mrf_monitor_unlock();
}

/* What a change has to lead to, before the call that makes it returns. */
static void must_watch(void *mem, size_t pages)
{
	int i, ret = watch_it(&watch, mem, pages);

	/* -FI_EAGAIN: mappings were just being changed; look again. */
	for (i = 0; i < 8 && ret == -FI_EAGAIN; i++)
		ret = watch_it(&watch, mem, pages);
	ck_assert_int_eq(ret, have ? 0 : -FI_ENOSYS);
	ck_assert_int_eq(atomic_load(&drops), 0);
}

static void must_have_dropped(int n)
{
	ck_assert_int_eq(atomic_load(&drops), have ? n : 0);
	ck_assert_int_eq(atomic_load(&tells), have ? n : 0);
	/* The monitor or the kernel has ordered what follows; race detectors know of locks only. */
	mrf_monitor_lock();
	mrf_monitor_unlock();
}

START_TEST(munmap_drops_before_it_returns)
{
	char *mem = map(4);

	direct = _i;
	delay_us = 20000;
	must_watch(mem, 4);
	unmap(mem + PAGE, PAGE);
	must_have_dropped(1);
	ck_assert(!mrf_watch_on(&watch));
	unmap(mem, 4 * PAGE);
	must_have_dropped(1);
}
END_TEST

START_TEST(a_mapping_over_it_drops)
{
	char *mem = map(4);

	direct = _i;
	must_watch(mem, 4);
	map_over(mem + PAGE, PAGE, MAP_ANONYMOUS, -1);
	must_have_dropped(1);
	munmap(mem, 4 * PAGE);
}
END_TEST

START_TEST(a_mapping_of_another_kind_over_it_drops_and_the_rest_is_let_go)
{
	char *mem = map(4);
	FILE *file = tmpfile();

	ck_assert_int_eq(ftruncate(fileno(file), PAGE), 0);
	direct = _i;
	must_watch(mem, 4);
	map_over(mem + PAGE, PAGE, 0, fileno(file));
	must_have_dropped(1);
	munmap(mem, 4 * PAGE);
	must_have_dropped(1);
	fclose(file);
}
END_TEST

/* Of these it is not known when the pages have gone. */
START_TEST(discarding_around_the_hooks_drops_and_the_range_is_not_watched_again)
{
	char *mem = map(4);

	direct = true;
	delay_us = 20000;
	must_watch(mem, 4);
	advise(mem + PAGE, PAGE, MADV_DONTNEED);
	must_have_dropped(1);
	ck_assert_int_eq(watch_it(&watch, mem, 4), have ? -FI_EINVAL : -FI_ENOSYS);
	ck_assert_int_eq(watch_it(&watch, mem + 2 * PAGE, 2), have ? 0 : -FI_ENOSYS);
	advise(mem + 3 * PAGE, PAGE, MADV_FREE);
	must_have_dropped(2);
	unmap(mem, 4 * PAGE);
	must_have_dropped(2);
}
END_TEST

START_TEST(discarding_drops_and_the_range_may_be_watched_again)
{
	char *mem = map(4);

	delay_us = 20000;
	must_watch(mem, 4);
	advise(mem + PAGE, PAGE, MADV_DONTNEED);
	must_have_dropped(1);
	ck_assert_int_eq(watch_it(&watch, mem, 4), have ? 0 : -FI_ENOSYS);
	advise(mem + 3 * PAGE, PAGE, MADV_FREE);
	must_have_dropped(2);
	unmap(mem, 4 * PAGE);
	must_have_dropped(2);
}
END_TEST

START_TEST(moving_it_drops_and_the_new_place_is_free)
{
	char *mem = map(4), *to = map(4);
	int moved;

	direct = _i;
	must_watch(mem, 4);
	move(mem, 4 * PAGE, to);
	/* Of one move the kernel may tell twice: what moved, and what is gone. */
	moved = atomic_load(&tells);
	ck_assert(have == (moved > 0));
	unmap(to, 4 * PAGE);
	must_have_dropped(moved);
}
END_TEST

START_TEST(what_is_not_watched_any_more_is_silent)
{
	char *mem = map(4);

	must_watch(mem, 4);
	unwatch(&watch);
	unwatch(&watch);
	munmap(mem, 4 * PAGE);
	must_have_dropped(0);
}
END_TEST

START_TEST(pages_of_another_watch_stay_watched)
{
	static const struct {
		unsigned page;
		int heard;
	} at[] = { { 0, 0 }, { 1, 1 }, { 2, 0 }, { 3, 1 }, { 4, 0 } };
	struct mrf_watch one = { 0 }, other = { 0 };
	unsigned i;

	/* For peers an event may be about all that was registered once. */
	client.local = true;
	for (i = 0; i < 5; i++) {
		char *mem = map(5);
		int before = atomic_load(&tells);

		direct = _i;
		watch_it(&watch, mem, 5);
		watch_it(&one, mem + PAGE, 1);
		watch_it(&other, mem + 3 * PAGE, 1);
		unwatch(&watch);
		unmap(mem + at[i].page * PAGE, PAGE);
		mrf_monitor_settle();
		ck_assert_int_eq(atomic_load(&tells) - before, have ? at[i].heard : 0);
		unwatch(&one);
		unwatch(&other);
		unmap(mem, 5 * PAGE);
		ck_assert_int_eq(atomic_load(&tells) - before, have ? at[i].heard : 0);
	}
}
END_TEST

enum { NESTED = 4000 };

/* One over them all, and pages inside, each of which keeps what it covers. */
static void *watch_nested(void *mem)
{
	static struct mrf_watch inner[NESTED];
	unsigned i;

	watch_it(&watch, mem, 2 * NESTED);
	for (i = NESTED; i--;)
		watch_it(&inner[i], (char *)mem + 2 * i * PAGE, 1);
	unwatch(&watch);
	for (i = 0; i < NESTED; i++)
		unwatch(&inner[i]);
	return NULL;
}

START_TEST(many_nested_watches_need_little_stack)
{
	pthread_attr_t attr;
	pthread_t thread;
	char *mem = map(2 * NESTED);

	pthread_attr_init(&attr);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, 128 << 10), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, watch_nested, mem), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	munmap(mem, 2 * NESTED * PAGE);
	must_have_dropped(0);
}
END_TEST

#define CHUNK MRF_CHUNK

/* Begins with a chunk. */
static char *map_chunks(unsigned n)
{
	char *mem = map((n + 1) * CHUNK / PAGE);
	char *start = (char *)(((uintptr_t)mem + CHUNK - 1) & ~(CHUNK - 1));

	if (start > mem)
		munmap(mem, (size_t)(start - mem));
	munmap(start + n * CHUNK, (size_t)(mem + CHUNK - start));
	return start;
}

/* Mappings of the application's own. */
static char *fill_half(void)
{
	size_t i, pages = mrf_maps_limit() / 2 + 100;
	char *mem = map(pages);

	for (i = 0; i < pages; i += 2)
		mprotect(mem + i * PAGE, PAGE, PROT_READ);
	return mem;
}

START_TEST(half_of_all_mappings_is_the_applications)
{
	enum { FEW = 64 };
	struct mrf_watch few[FEW] = { { 0 } };
	char *mem = map_chunks(FEW), *all;
	unsigned i;

	ck_assert(mrf_monitor_has_room());
	all = fill_half();
	for (i = 0; i < FEW; i++) {
		ck_assert(mrf_monitor_has_room());
		watch_it(&few[i], mem + i * CHUNK, 1);
	}
	ck_assert_int_eq(mrf_monitor_has_room(), !have);
	munmap(all, (mrf_maps_limit() / 2 + 100) * (size_t)PAGE);
	ck_assert_int_eq(mrf_monitor_has_room(), !have);
	usleep(1100000);
	ck_assert(mrf_monitor_has_room());
	for (i = 0; i < FEW; i++)
		unwatch(&few[i]);
	munmap(mem, FEW * CHUNK);
}
END_TEST

START_TEST(memory_that_cannot_be_watched_is_refused)
{
	char *mem = map(4);
	void *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* A file that is certainly not in a tmpfs, which userfaultfd would take. */
	FILE *file = fopen("/proc/self/exe", "r");
	void *text;

	ck_assert_ptr_nonnull(file);
	text = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fileno(file), 0);
	ck_assert_int_eq(watch_it(&watch, text, 1), have ? -FI_EINVAL : -FI_ENOSYS);
	munmap(text, PAGE);
	/* userfaultfd takes it, but what is cut from it raises no event. */
	ck_assert_int_eq(watch_it(&watch, shared, 1), have ? -FI_EINVAL : -FI_ENOSYS);
	*(char *)shared = 1;
	ck_assert_int_eq(watch_it(&watch, shared, 1), have ? -FI_EINVAL : -FI_ENOSYS);
	munmap(shared, PAGE);
	fclose(file);
	/* A hole would be mapped later, and nobody would hear what becomes of that. */
	munmap(mem + PAGE, PAGE);
	ck_assert_int_eq(watch_it(&watch, mem, 4), have ? -FI_EAGAIN : -FI_ENOSYS);
	ck_assert_int_eq(watch_it(&watch, mem + 2 * PAGE, 2), have ? 0 : -FI_ENOSYS);
	unwatch(&watch);
	munmap(mem, 4 * PAGE);
	must_have_dropped(0);
}
END_TEST

START_TEST(memory_of_another_userfaultfd_is_refused)
{
	char *mem = map(2);
	int fd = mrf_uffd_open();

	if (have) {
		ck_assert_int_eq(mrf_uffd_register(fd, (uintptr_t)mem, PAGE), 0);
		ck_assert_int_eq(watch_it(&watch, mem, 1), -FI_EBUSY);
		/* It is the other's still. */
		ck_assert_int_eq(mrf_uffd_verify(fd, (uintptr_t)mem, PAGE), 0);
		ck_assert_int_eq(watch_it(&watch, mem + PAGE, 1), 0);
		unwatch(&watch);
		ck_assert_int_eq(mrf_uffd_verify(fd, (uintptr_t)mem, PAGE), 0);
		close(fd);
	}
	ck_assert_int_eq(watch_it(&watch, mem, 1), have ? 0 : -FI_ENOSYS);
	unwatch(&watch);
	munmap(mem, 2 * PAGE);
	must_have_dropped(0);
}
END_TEST

/* Pages that nobody touched stay untouched: watching must not bring memory in. */
START_TEST(watching_brings_no_page_in)
{
	unsigned char there[64];
	char *mem = map(64);
	unsigned i;

	must_watch(mem, 64);
	ck_assert_int_eq(mincore(mem, 64 * PAGE, there), 0);
	for (i = 0; i < 64; i++)
		ck_assert_uint_eq(there[i] & 1, 0);
	mem[5 * PAGE] = 1;
	must_have_dropped(0);
	unwatch(&watch);
	munmap(mem, 64 * PAGE);
}
END_TEST

static atomic_int others;

static void other_drop(struct mrf_watch *w)
{
	(void)w;
	atomic_fetch_add(&others, 1);
}

/* The kernel does not say in time what an event is about. The hooks do. */
START_TEST(every_client_drops_what_an_event_may_be_about)
{
	struct mrf_monitor_client other = { .drop = other_drop };
	struct mrf_watch w = { 0 };
	char *mem = map(2);

	direct = _i;
	atomic_store(&others, 0);
	mrf_monitor_add(&other);
	must_watch(mem, 1);
	watch_it(&w, mem + PAGE, 1);
	w.client = &other;
	unmap(mem, PAGE);
	must_have_dropped(1);
	ck_assert_int_eq(atomic_load(&others), have && direct);
	unmap(mem + PAGE, PAGE);
	ck_assert_int_eq(atomic_load(&others), have);
	must_have_dropped(1);
	mrf_monitor_remove(&other);
	ck_assert_int_eq(mrf_monitor_usable(), have);
}
END_TEST

/* --- how much an event is about ------------------------------------------------------ */

/* Which of three watches an event in the first page drops, for a client of this kind. */
static void watch_three(struct mrf_watch *w, char *mem, bool local)
{
	client.local = local;
	client.dropped = forgiving;
	watch_it(&w[0], mem, 1);
	watch_it(&w[1], mem + 2 * PAGE, 1);
	watch_it(&w[2], mem + CHUNK, 1);
}

static void must_be_on(const struct mrf_watch *w, bool a, bool b, bool c)
{
	/* What an event led to is complete when the monitor's thread has let go. */
	mrf_monitor_settle();
	mrf_monitor_lock();
	ck_assert_int_eq(mrf_watch_on(&w[0]), have && a);
	ck_assert_int_eq(mrf_watch_on(&w[1]), have && b);
	ck_assert_int_eq(mrf_watch_on(&w[2]), have && c);
	mrf_monitor_unlock();
}

START_TEST(an_event_drops_all_that_is_watched_for_peers)
{
	struct mrf_watch w[3] = { { 0 } };
	char *mem = map_chunks(2);

	direct = true;
	watch_three(w, mem, false);
	unmap(mem, PAGE);
	must_be_on(w, false, false, false);
	unmap(mem + PAGE, 2 * CHUNK - PAGE);
}
END_TEST

START_TEST(an_event_drops_exactly_its_range_of_what_is_used_here)
{
	struct mrf_watch w[3] = { { 0 } };
	char *mem = map_chunks(2), *to = map(1);

	direct = true;
	watch_three(w, mem, true);
	unmap(mem, PAGE);
	must_be_on(w, false, true, true);
	move(mem + CHUNK, PAGE, to);
	must_be_on(w, false, true, false);
	advise(mem + 2 * PAGE, PAGE, MADV_DONTNEED);
	must_be_on(w, false, false, false);
	unmap(mem, 2 * CHUNK);
	unmap(to, PAGE);
}
END_TEST

START_TEST(a_watch_across_chunks_hears_of_all_of_it)
{
	unsigned i;

	for (i = 0; i < 4; i++) {
		struct mrf_watch w[3] = { { 0 } };
		char *mem = map_chunks(4);

		client.local = _i;
		client.dropped = forgiving;
		direct = true;
		watch_it(&w[0], mem + CHUNK - PAGE, CHUNK / PAGE + 2);
		watch_it(&w[1], mem + CHUNK + PAGE, 1);
		watch_it(&w[2], mem + 3 * CHUNK, 1);
		must_be_on(w, true, true, true);
		unmap(mem + i * CHUNK, PAGE);
		/* The first page is not registered; what is used here goes exactly. */
		must_be_on(w, i == 0 || (_i && i == 3), !i || _i, !i || (_i && i != 3));
		unmap(mem, 4 * CHUNK);
		must_be_on(w, false, false, false);
	}
}
END_TEST

static atomic_int settled_meanwhile;

static void look_whether_settled(struct mrf_watch *w)
{
	(void)w;
	atomic_store(&settled_meanwhile, mrf_monitor_settled());
	atomic_fetch_add(&drops, 1);
}

START_TEST(who_looks_up_waits_while_an_event_is_taken_in)
{
	char *mem = map(2);

	client.local = true;
	client.drop = look_whether_settled;
	client.dropped = forgiving;
	atomic_store(&settled_meanwhile, 7);
	ck_assert(mrf_monitor_settled());
	must_watch(mem, 2);
	direct = true;
	unmap(mem, PAGE);
	/* As a lookup does. The change was complete before. */
	if (!mrf_monitor_settled())
		mrf_monitor_settle();
	mrf_monitor_lock();
	ck_assert(!mrf_watch_on(&watch));
	mrf_monitor_unlock();
	ck_assert(mrf_monitor_settled());
	ck_assert_int_eq(atomic_load(&settled_meanwhile), have ? 0 : 7);
	unmap(mem + PAGE, PAGE);
}
END_TEST

/* --- what only the hooks can do ------------------------------------------------------ */

static unsigned char *seen; /* what was there when it was dropped */
static unsigned char seen_byte;

static void look_and_drop(struct mrf_watch *w)
{
	(void)w;
	seen_byte = *seen;
	atomic_fetch_add(&drops, 1);
}

static void by_munmap(unsigned char *mem)
{
	munmap(mem, 2 * PAGE);
}

static void by_mmap(unsigned char *mem)
{
	map_over(mem, 2 * PAGE, MAP_ANONYMOUS, -1);
}

static void by_mremap(unsigned char *mem)
{
	move(mem, 2 * PAGE, map(2));
}

static void by_mremap_over(unsigned char *mem)
{
	move(map(2), 2 * PAGE, mem);
}

static void by_shrinking(unsigned char *mem)
{
	ck_assert_ptr_eq(mremap(mem, 2 * PAGE, PAGE, 0), mem);
}

static void by_dontneed(unsigned char *mem)
{
	madvise(mem, 2 * PAGE, MADV_DONTNEED);
}

static void by_free_pages(unsigned char *mem)
{
	madvise(mem, 2 * PAGE, MADV_FREE);
}

/* From Linux 6.13 on; before that it is refused, and nothing is lost by being careful. */
static void by_guard(unsigned char *mem)
{
	madvise(mem, 2 * PAGE, 102);
}

static void by_shmat(unsigned char *mem)
{
	int id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);

	ck_assert_int_ge(id, 0);
	ck_assert_ptr_eq(shmat(id, mem, SHM_REMAP), mem);
	shmctl(id, IPC_RMID, NULL);
}

static void (*const ways[])(unsigned char *mem) = {
	by_munmap,   by_mmap,	    by_mremap, by_mremap_over, by_shrinking,
	by_dontneed, by_free_pages, by_guard,  by_shmat,
};

/* Watches the second page there. */
static void watch_page(unsigned char *mem)
{
	seen = mem + PAGE;
	seen_byte = 0;
	client.drop = look_and_drop;
	must_watch(mem + PAGE, 1);
}

/* The kernel may give the address away as soon as it has begun: so before that. */
START_TEST(what_changes_is_dropped_while_it_is_still_there)
{
	unsigned char *mem = map(2);

	memset(mem, 42, 2 * PAGE);
	watch_page(mem);
	ways[_i](mem);
	must_have_dropped(1);
	ck_assert_uint_eq(seen_byte, have ? 42 : 0);
}
END_TEST

static void look_whether_it_is_there(struct mrf_watch *w)
{
	unsigned char there;

	(void)w;
	seen_byte = mincore(seen, PAGE, &there) ? 0 : 42;
	atomic_fetch_add(&drops, 1);
}

/*
 * What mrfab(7) says of system calls of a program's own: another thread might have mapped
 * the page again by now.
 */
START_TEST(a_direct_system_call_is_heard_of_when_the_page_is_gone)
{
	unsigned char *mem = map_apart(2 * PAGE);

	ck_assert_ptr_eq(mem, APART);
	direct = true;
	watch_page(mem);
	seen_byte = 42;
	client.drop = look_whether_it_is_there;
	unmap(mem, 2 * PAGE);
	must_have_dropped(1);
	ck_assert_uint_eq(seen_byte, have ? 0 : 42);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Allocators of sanitizers ask the kernel themselves. */

static void *big(void)
{
	unsigned char *mem = malloc(1 << 20);

	ck_assert_ptr_nonnull(mem);
	memset(mem, 42, 1 << 20);
	return mem;
}

static void *next_page(void *mem)
{
	return (void *)(((uintptr_t)mem + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
}

static void by_free(unsigned char *mem)
{
	free(mem);
}

static void by_realloc(unsigned char *mem)
{
	ck_assert_ptr_nonnull(realloc(mem, 64 << 20));
}

static void (*const frees[])(unsigned char *mem) = { by_free, by_realloc };

START_TEST(what_libc_unmaps_itself_is_dropped_while_it_is_still_there)
{
	unsigned char *mem;

	/* It is a mapping of its own, also after others like it were freed. */
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	mem = big();
	watch_page((unsigned char *)next_page(mem) - PAGE);
	frees[_i](mem);
	must_have_dropped(1);
	ck_assert_uint_eq(seen_byte, have ? 42 : 0);
}
END_TEST

/* The heap behind the break: by sbrk and, where it is the allocator's, by malloc_trim. */
START_TEST(a_heap_that_shrinks_is_dropped_while_it_is_still_there)
{
	unsigned char *mem;

	if (_i) {
		mallopt(M_TRIM_THRESHOLD, 64 << 20);
		mallopt(M_MMAP_THRESHOLD, 16 << 20);
		mem = big();
	} else {
		mem = sbrk(1 << 20);
		memset(mem, 42, 1 << 20);
	}
	watch_page((unsigned char *)next_page(mem + (512 << 10)) - PAGE);
	if (_i) {
		free(mem);
		malloc_trim(0);
	} else {
		ck_assert_ptr_ne(sbrk(-(1 << 20)), (void *)-1);
	}
	must_have_dropped(1);
	ck_assert_uint_eq(seen_byte, have ? 42 : 0);
}
END_TEST
#endif

START_TEST(nothing_is_watched_where_a_change_is_under_way)
{
	char *mem = map(4);
	unsigned place = mrf_announce((uintptr_t)mem + PAGE, (uintptr_t)mem + 2 * PAGE);

	/* Halves of a mapping that had no page when it was cut are not joined by Linux 6.1. */
	memset(mem, 1, 4 * PAGE);
	ck_assert_int_eq(watch_it(&watch, mem, 4), have ? -FI_EINVAL : -FI_ENOSYS);
	must_watch(mem + 2 * PAGE, 2);
	unwatch(&watch);
	mrf_announce_end(place);
	must_watch(mem, 4);
	unwatch(&watch);
	munmap(mem, 4 * PAGE);
	must_have_dropped(0);
}
END_TEST

START_TEST(only_what_changes_is_dropped)
{
	struct mrf_watch other = { 0 };
	char *mem = map(8);

	must_watch(mem, 2);
	watch_it(&other, mem + 4 * PAGE, 2);
	munmap(mem + 2 * PAGE, 2 * PAGE);
	must_have_dropped(0);
	munmap(mem + PAGE, PAGE);
	must_have_dropped(1);
	ck_assert(!have || mrf_watch_on(&other));
	unwatch(&other);
	munmap(mem, 8 * PAGE);
	must_have_dropped(1);
}
END_TEST

/* Nothing is watched there, so the lock is not needed. */
static void *unmap_elsewhere(void *mem)
{
	munmap(mem, 4 * PAGE);
	return NULL;
}

START_TEST(a_change_where_nothing_is_watched_waits_for_nobody)
{
	char *mem = map(4), *here = map(4);
	pthread_t thread;

	must_watch(here, 4);
	ck_assert_int_eq(pthread_create(&thread, NULL, unmap_elsewhere, mem), 0);
	mrf_monitor_lock();
	pthread_join(thread, NULL);
	mrf_monitor_unlock();
	must_have_dropped(0);
	unwatch(&watch);
	munmap(here, 4 * PAGE);
}
END_TEST

/* The kernel moves one mapping at a time; the pieces are joined again before. */
START_TEST(a_mapping_that_is_watched_in_part_can_be_moved)
{
	char *mem = map(64), *to;
	unsigned i;

	memset(mem, 3, 64 * PAGE);
	client.dropped = forgiving;
	for (i = 0; i < 3; i++) {
		struct mrf_watch w[2] = { { 0 } };

		watch_it(&w[0], mem + 8 * PAGE, 8);
		watch_it(&w[1], mem + 32 * PAGE, 1);
		to = mremap(mem, (64 << i) * PAGE, (128 << i) * PAGE, MREMAP_MAYMOVE);
		ck_assert_ptr_ne(to, MAP_FAILED);
		ck_assert_int_eq(atomic_load(&drops), have ? 2 * (i + 1) : 0);
		mem = to;
	}
	munmap(mem, 512 * PAGE);
}
END_TEST

static char *handled;

static void unmap_in_handler(int signo)
{
	(void)signo;
	munmap(handled, PAGE);
}

/* A handler that meets the lock in its own thread would wait for ever. */
START_TEST(a_signal_handler_may_unmap_whatever_it_interrupts)
{
	struct sigaction act = { .sa_handler = unmap_in_handler };

	handled = map(2);
	must_watch(handled, 2);
	sigaction(SIGUSR1, &act, NULL);
	mrf_monitor_lock();
	raise(SIGUSR1);
	ck_assert_int_eq(atomic_load(&drops), 0);
	mrf_monitor_unlock();
	must_have_dropped(1);
}
END_TEST

START_TEST(errno_and_results_are_the_calls_own)
{
	char *mem = map(1);

	must_watch(mem, 1);
	errno = 77;
	ck_assert_int_eq(munmap(mem, PAGE), 0);
	ck_assert_int_eq(errno, 77);
	ck_assert_int_eq(munmap(mem + 1, PAGE), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_eq(mremap(mem, PAGE, 2 * PAGE, 0), MAP_FAILED);
	ck_assert_int_eq(errno, EFAULT);
	ck_assert_ptr_eq(
		mmap(mem + 1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		MAP_FAILED);
	ck_assert_int_eq(errno, EINVAL);
	must_have_dropped(1);
}
END_TEST

/* While it is open in a child, closing it in the parent would wake nobody. */
static bool inherited(void)
{
	char path[32], what[64];
	ssize_t n;
	int fd;

	for (fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, what, sizeof(what) - 1);
		what[n < 0 ? 0 : n] = '\0';
		if (strstr(what, "userfaultfd"))
			return true;
	}
	return false;
}

START_TEST(a_child_has_no_monitor_and_its_parent_keeps_it)
{
	char *mem = map(1);
	pid_t pid;

	client.dropped = forgiving;
	must_watch(mem, 1);
	ck_assert_int_eq(inherited(), have);
	pid = fork();
	if (!pid) {
		/* Nobody must wait for a monitor that is not there. */
		munmap(mem, PAGE);
		_exit(mrf_monitor_usable() || inherited() || atomic_load(&drops));
	}
	ck_assert(child_succeeded(pid));
	munmap(mem, PAGE);
	must_have_dropped(1);
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* which starts no thread after a fork of several */

/* In a child: 0 when what it watches itself is watched, and its parent's clients rest. */
static int own_monitor(void)
{
	struct mrf_monitor_client own = { .drop = other_drop };
	char *mem = map(1);
	int ret;

	mrf_monitor_add(&own);
	if (mrf_monitor_usable() != have)
		return 1;
	atomic_store(&others, 0);
	ret = watch_it(&watch, mem, 1);
	watch.client = &own;
	unmap(mem, PAGE);
	/* All that came before was heard when this returns. */
	mrf_monitor_remove(&own);
	return ret != (have ? 0 : -FI_ENOSYS) || atomic_load(&others) != have ||
	       atomic_load(&drops) || mrf_monitor_usable();
}

static void *be_inside(void *arg)
{
	sem_t *sem = arg;

	mrf_monitor_lock();
	sem_post(&sem[0]);
	sem_wait(&sem[1]);
	mrf_monitor_unlock();
	return NULL;
}

START_TEST(a_child_has_a_monitor_of_its_own_when_it_wants_one)
{
	char *mem = map(1);
	pthread_t other;
	sem_t sem[2];
	pid_t pid;

	/*
	 * The monitor's thread is at rest when this one forks: a thread that begins allocates, and
	 * ASan's allocator, unlike libc's, leaves such a lock to the child as it is.
	 */
	client.dropped = forgiving;
	must_watch(mem, 1);
	direct = true;
	unmap(mem, PAGE);
	must_have_dropped(1);
	atomic_store(&drops, 0);
	/* Another thread is inside when this one forks. */
	sem_init(&sem[0], 0, 0);
	sem_init(&sem[1], 0, 0);
	ck_assert_int_eq(pthread_create(&other, NULL, be_inside, sem), 0);
	sem_wait(&sem[0]);
	direct = _i;
	pid = fork();
	if (!pid)
		_exit(own_monitor());
	sem_post(&sem[1]);
	pthread_join(other, NULL);
	ck_assert(child_succeeded(pid));
	must_watch(map(1), 1);
}
END_TEST
#endif

/* --- storm ------------------------------------------------------------------------ */

static atomic_bool stopping;

/* Memory comes and goes; a page that is watched must have been dropped when it is gone.
 */
static void *churn(void *arg)
{
	unsigned i;

	(void)arg;
	for (i = 0; i < 300; i++) {
		char *mem = map(8);
		struct mrf_watch w = { 0 };

		mem[0] = 1;
		if (!watch_it(&w, mem, 8) && i % 3 == 0)
			advise(mem, PAGE, MADV_DONTNEED);
		else if (i % 3 == 1)
			unwatch(&w);
		unmap(mem, 8 * PAGE);
		mrf_monitor_lock();
		ck_assert(!mrf_watch_on(&w));
		mrf_monitor_unlock();
		mrf_watch_fini(&w);
	}
	return NULL;
}

/* The allocator gives memory back to the kernel with its own lock held. */
static void *allocate(void *arg)
{
	void *mem[64];
	unsigned i;

	(void)arg;
	while (!atomic_load(&stopping)) {
		for (i = 0; i < 64; i++)
			memset(mem[i] = malloc(i * 3000 + 1), 1, i * 3000 + 1);
		for (i = 0; i < 64; i++)
			free(mem[i]);
	}
	return NULL;
}

START_TEST(a_storm_of_changes_ends)
{
	pthread_t thread[4];
	unsigned i;

	direct = _i;
	client.dropped = forgiving;
	atomic_store(&stopping, false);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, i < 3 ? churn : allocate, NULL);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&stopping, true);
	pthread_join(thread[3], NULL);
	ck_assert(have == (atomic_load(&drops) > 0));
}
END_TEST

/* --- without ---------------------------------------------------------------------- */

static const char *add_and_remove(void)
{
	client = (struct mrf_monitor_client){ .drop = on_drop };
	unit_capture(&cap);
	mrf_monitor_add(&client);
	ck_assert(!mrf_monitor_usable());
	ck_assert_int_eq(watch_it(&watch, &watch, 1), -FI_ENOSYS);
	mrf_monitor_remove(&client);
	return unit_captured(&cap);
}

START_TEST(disabled_is_disabled_and_says_nothing)
{
	set_monitor("disabled");
	ck_assert_str_eq(add_and_remove(), "");
}
END_TEST

/* No thread, no userfaultfd: the calls alone, and the application's own is welcome. */
START_TEST(memhooks_are_enough_for_whoever_says_so)
{
	char *mem = map(2);
	int fd;

	set_monitor("memhooks");
	direct = false;
	have = HOOKS && permitted();
	atomic_store(&drops, 0);
	atomic_store(&tells, 0);
	client = (struct mrf_monitor_client){ .drop = on_drop,
					      .dropped = on_dropped,
					      .arg = &client };
	unit_capture(&cap);
	mrf_monitor_add(&client);
	unit_captured(&cap);
	ck_assert_int_eq(mrf_monitor_usable(), have);
	must_watch(mem, 2);
	ck_assert(mrf_monitor_has_room());
	ck_assert(mrf_monitor_sure(&watch));
	if (have) {
		fd = mrf_uffd_open();
		ck_assert_int_eq(mrf_uffd_register(fd, (uintptr_t)mem, 2 * PAGE), 0);
		close(fd);
	}
	madvise(mem, PAGE, MADV_DONTNEED);
	must_have_dropped(1);
	ck_assert_int_eq(watch_it(&watch, mem, 2), have ? 0 : -FI_ENOSYS);
	munmap(mem, 2 * PAGE);
	must_have_dropped(2);
	mrf_monitor_remove(&client);
	ck_assert(!mrf_monitor_usable());
}
END_TEST

/* Memory that is shared has no watch that is of use; hooks alone cannot tell. */
START_TEST(memhooks_ask_what_memory_it_is)
{
	void *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	set_monitor("memhooks");
	have = HOOKS && permitted();
	client = (struct mrf_monitor_client){ .drop = on_drop, .dropped = forgiving };
	mrf_monitor_add(&client);
	watch_it(&watch, shared, 1);
	ck_assert(!mrf_monitor_sure(&watch));
	unwatch(&watch);
	munmap(shared, PAGE);
	mrf_monitor_remove(&client);
}
END_TEST

#ifndef __SANITIZE_THREAD__
/* userfaultfd alone hears of the change when it is made. */
START_TEST(alone_is_alone)
{
	unsigned char *mem = map_apart(2 * PAGE);

	ck_assert_ptr_eq(mem, APART);
	memset(mem, 42, 2 * PAGE);
	set_monitor("userfaultfd");
	setup_as_set();
	watch_page(mem);
	seen_byte = 42;
	client.drop = look_whether_it_is_there;
	munmap(mem, 2 * PAGE);
	must_have_dropped(1);
	ck_assert_uint_eq(seen_byte, have ? 0 : 42);
	teardown();
}
END_TEST
#endif

/*
 * What the kernel will not let go stays registered: here all memory, the thread's stack, too,
 * but for the terabytes that a sanitizer keeps its books in, which the kernel needs 15 s for.
 */
START_TEST(the_monitor_stops_whatever_is_still_registered)
{
	struct mrf_mapping mapping;
	uintptr_t end;
	FILE *maps;

	setup();
	maps = have ? mrf_maps_open() : NULL;
	while (maps && mrf_maps_next(maps, &mapping)) {
		if (!mapping.inode && !strcmp(mapping.perms, "rw-p") &&
		    mapping.end - mapping.start < 1ul << 30)
			(void)mrf_uffd_add(mapping.start, mapping.end, &end);
	}
	teardown();
	if (maps)
		fclose(maps);
}
END_TEST

START_TEST(an_unknown_monitor_is_none_and_said_once)
{
	const char *text;

	set_monitor("kprobes");
	text = add_and_remove();
	ck_assert_ptr_nonnull(strstr(text, "MRF-W3050"));
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_str_eq(add_and_remove(), "");
}
END_TEST

START_TEST(without_a_descriptor_there_is_none_and_it_says_why)
{
	struct rlimit before, none;
	const char *text;

	set_monitor(_i ? "userfaultfd" : NULL);
	unit_capture(&cap);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = (rlim_t)dup(0);
	close((int)none.rlim_cur);
	setrlimit(RLIMIT_NOFILE, &none);
	mrf_monitor_add(&client);
	setrlimit(RLIMIT_NOFILE, &before);
	ck_assert(!mrf_monitor_usable());
	mrf_monitor_remove(&client);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-W3051"));
	ck_assert_uint_eq(unit_lines(text), 1);
}
END_TEST

/* --- discarded ranges ------------------------------------------------------------- */

static struct mrf_discards set;

static bool in_set(uintptr_t at)
{
	return mrf_discard_find(&set, at, at + 1);
}

START_TEST(discarded_ranges_are_remembered_and_joined)
{
	set.count = 0;
	mrf_discard_add(&set, 100, 200, 5);
	mrf_discard_add(&set, 300, 400, 6);
	ck_assert(in_set(100) && in_set(199) && in_set(300));
	ck_assert(!in_set(99) && !in_set(200) && !in_set(299) && !in_set(400));
	mrf_discard_add(&set, 200, 250, 7);
	ck_assert_uint_eq(set.count, 2);
	mrf_discard_add(&set, 240, 300, 8);
	ck_assert_uint_eq(set.count, 1);
	ck_assert_uint_eq(set.entry[0].start, 100);
	ck_assert_uint_eq(set.entry[0].end, 400);
	ck_assert_uint_eq(set.entry[0].at, 8);
}
END_TEST

START_TEST(a_full_table_only_gets_more_cautious)
{
	uintptr_t i;

	set.count = 0;
	for (i = 0; i < 1000; i++)
		mrf_discard_add(&set, (i * 37 % 1000) * 100, (i * 37 % 1000) * 100 + 10, i);
	ck_assert_uint_eq(set.count, MRF_DISCARDS);
	for (i = 0; i < 1000; i++)
		ck_assert(in_set(i * 100) && in_set(i * 100 + 9));
	for (i = 1; i < set.count; i++)
		ck_assert_uint_lt(set.entry[i - 1].end, set.entry[i].start);
}
END_TEST

START_TEST(an_unmap_frees_old_ranges_that_it_covers_wholly)
{
	set.count = 0;
	mrf_discard_add(&set, 100, 200, 1000);
	mrf_discard_add(&set, 300, 400, 2000);
	mrf_discard_add(&set, 500, 600, 1000);
	mrf_discard_unmapped(&set, 100, 550, 1000 + MRF_DISCARD_MS - 1);
	ck_assert_uint_eq(set.count, 3);
	mrf_discard_unmapped(&set, 100, 550, 1000 + MRF_DISCARD_MS);
	ck_assert(!in_set(150) && in_set(350) && in_set(550));
}
END_TEST

/* With both monitors, and with userfaultfd alone. */
static void add_events(TCase *tc)
{
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, munmap_drops_before_it_returns, 0, 2);
	tcase_add_loop_test(tc, a_mapping_over_it_drops, 0, 2);
	tcase_add_loop_test(tc, a_mapping_of_another_kind_over_it_drops_and_the_rest_is_let_go, 0,
			    2);
	tcase_add_test(tc, discarding_around_the_hooks_drops_and_the_range_is_not_watched_again);
	tcase_add_loop_test(tc, moving_it_drops_and_the_new_place_is_free, 0, 2);
	tcase_add_test(tc, what_is_not_watched_any_more_is_silent);
	tcase_add_loop_test(tc, pages_of_another_watch_stay_watched, 0, 2);
	tcase_add_test(tc, many_nested_watches_need_little_stack);
	tcase_add_test(tc, half_of_all_mappings_is_the_applications);
	tcase_add_test(tc, memory_that_cannot_be_watched_is_refused);
	tcase_add_test(tc, memory_of_another_userfaultfd_is_refused);
	tcase_add_test(tc, watching_brings_no_page_in);
	tcase_add_test(tc, an_event_drops_all_that_is_watched_for_peers);
	tcase_add_test(tc, an_event_drops_exactly_its_range_of_what_is_used_here);
	tcase_add_loop_test(tc, a_watch_across_chunks_hears_of_all_of_it, 0, 2);
	tcase_add_test(tc, who_looks_up_waits_while_an_event_is_taken_in);
	tcase_add_test(tc, a_child_has_no_monitor_and_its_parent_keeps_it);
#ifndef __SANITIZE_THREAD__
	tcase_add_loop_test(tc, a_child_has_a_monitor_of_its_own_when_it_wants_one, 0, 2);
#endif
	tcase_add_loop_test(tc, a_storm_of_changes_ends, 0, 2);
}

static TCase *events(void)
{
	TCase *tc = tcase_create("events");

	tcase_add_checked_fixture(tc, setup, teardown);
	add_events(tc);
	tcase_add_test(tc, discarding_drops_and_the_range_may_be_watched_again);
	tcase_add_loop_test(tc, every_client_drops_what_an_event_may_be_about, 0, 2);
	return tc;
}

static TCase *alone(void)
{
	TCase *tc = tcase_create("userfaultfd alone");

	tcase_add_checked_fixture(tc, setup_alone, teardown);
	add_events(tc);
	return tc;
}

static TCase *hooks(void)
{
	TCase *tc = tcase_create("hooks");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, what_changes_is_dropped_while_it_is_still_there, 0,
			    MRF_ARRAY_SIZE(ways));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	tcase_add_loop_test(tc, what_libc_unmaps_itself_is_dropped_while_it_is_still_there, 0,
			    MRF_ARRAY_SIZE(frees));
	tcase_add_loop_test(tc, a_heap_that_shrinks_is_dropped_while_it_is_still_there, 0, 2);
#endif
	tcase_add_test(tc, a_direct_system_call_is_heard_of_when_the_page_is_gone);
	tcase_add_test(tc, nothing_is_watched_where_a_change_is_under_way);
	tcase_add_test(tc, only_what_changes_is_dropped);
	tcase_add_test(tc, a_change_where_nothing_is_watched_waits_for_nobody);
	tcase_add_test(tc, a_mapping_that_is_watched_in_part_can_be_moved);
	tcase_add_test(tc, a_signal_handler_may_unmap_whatever_it_interrupts);
	tcase_add_test(tc, errno_and_results_are_the_calls_own);
	return tc;
}

static TCase *without(void)
{
	TCase *tc = tcase_create("without");

	tcase_add_test(tc, disabled_is_disabled_and_says_nothing);
	tcase_add_test(tc, memhooks_are_enough_for_whoever_says_so);
	tcase_add_test(tc, memhooks_ask_what_memory_it_is);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tc, alone_is_alone);
#endif
	tcase_add_test(tc, the_monitor_stops_whatever_is_still_registered);
	tcase_add_test(tc, an_unknown_monitor_is_none_and_said_once);
	tcase_add_loop_test(tc, without_a_descriptor_there_is_none_and_it_says_why, 0, 2);
	return tc;
}

static TCase *discards(void)
{
	TCase *tc = tcase_create("discards");

	tcase_add_test(tc, discarded_ranges_are_remembered_and_joined);
	tcase_add_test(tc, a_full_table_only_gets_more_cautious);
	tcase_add_test(tc, an_unmap_frees_old_ranges_that_it_covers_wholly);
	return tc;
}

/* What is said once is said by the first, also when all tests run in one process. */
UNIT_MAIN("monitor", without, events, alone, hooks, discards)
