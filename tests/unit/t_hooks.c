/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which calls of the C library the hooks hear of, which they do not, and where: what
 * monitor/hooks.h says.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <rdma/fi_errno.h>
#include "child.h"
#include "hooked.h"

/* --- calls ----------------------------------------------------------------------------- */

static void by_munmap(char *mem)
{
	ck_assert_int_eq(munmap(mem, 2 * PAGE), 0);
}

static void by_mmap(char *mem)
{
	ck_assert_ptr_eq(
		mmap(mem, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		mem);
}

static void by_mmap64(char *mem)
{
	ck_assert_ptr_eq(
		mmap64(mem, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		mem);
}

static void by_mremap(char *mem)
{
	ck_assert_ptr_ne(mremap(mem, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE), MAP_FAILED);
}

static void by_mremap_over(char *mem)
{
	void *from = map(2);

	ck_assert_ptr_eq(mremap(from, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, mem), mem);
}

static void by_madvise(char *mem)
{
	ck_assert_int_eq(madvise(mem, 2 * PAGE, MADV_DONTNEED), 0);
}

/* Before Linux 6.13 it is refused; nobody but the kernel knows that. */
static void by_process_madvise(char *mem)
{
	struct iovec iov = { mem, 2 * PAGE };

	(void)process_madvise(-1, &iov, 1, MADV_DONTNEED, 0);
}

static void by_remap_file_pages(char *mem)
{
	(void)remap_file_pages(mem, 2 * PAGE, 0, 1, 0);
}

static int segment(void)
{
	int id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);

	ck_assert_int_ge(id, 0);
	return id;
}

static void by_shmat(char *mem)
{
	int id = segment();

	ck_assert_ptr_eq(shmat(id, mem, SHM_REMAP), mem);
	shmctl(id, IPC_RMID, NULL);
}

static void (*const changes[])(char *mem) = {
	by_munmap,	by_mmap,    by_mmap64,		by_mremap,
	by_mremap_over, by_madvise, by_process_madvise, by_remap_file_pages,
	by_shmat,
};

/* Goes up when a change begins and when it ends. */
static uint64_t count_changes(void)
{
	return atomic_load(&mrf_known_counter) / MRF_KNOWN_CHANGE;
}

START_TEST(a_change_is_heard_before_it_is_made)
{
	char *mem = map(2);
	uint64_t before = count_changes();

	watch(mem + PAGE);
	changes[_i](mem);
	must_have_heard();
	ck_assert_uint_ge(count_changes(), before + 2);
}
END_TEST

START_TEST(a_right_is_heard_of_before_it_is_taken)
{
	char *mem = map(2);

	watch(mem + PAGE);
	if (_i)
		ck_assert_int_eq(pkey_mprotect(mem, 2 * PAGE, PROT_READ, -1), 0);
	else
		ck_assert_int_eq(mprotect(mem, 2 * PAGE, PROT_READ), 0);
	must_have_heard();
}
END_TEST

/* A copier would not have gone on copying: base/known.h. */
START_TEST(what_was_known_is_not_after_a_change)
{
	char *mem = map(1), *other = map(2), byte = 42;

	watch(other);
	mem[0] = 0;
	while (!mrf_known_put(mem, &byte, 1))
		mrf_known_used(mem, 1);
	ck_assert_int_eq(mem[0], 42);
	if (_i < (int)(sizeof(changes) / sizeof(changes[0])))
		changes[_i](other);
	else
		mprotect(other, PAGE, PROT_NONE);
	ck_assert(!mrf_known_put(mem, &byte, 1));
	ck_assert_uint_eq(mrf_known_counter & MRF_KNOWN_UNDER_WAY, 0);
}
END_TEST

/* What lies behind it stays, and shared memory is not watched. */
START_TEST(a_segment_that_is_detached_takes_nothing_else)
{
	int id = segment();
	char *behind = map(8), *mem = shmat(id, behind, SHM_REMAP);

	shmctl(id, IPC_RMID, NULL);
	ck_assert_ptr_eq(mem, behind);
	watch(mem + 2 * PAGE);
	ck_assert_int_eq(shmdt(mem), 0);
	must_not_have_heard();
	ck_assert_int_eq(behind[2 * PAGE], 42);
}
END_TEST

START_TEST(the_break_is_heard_of_when_it_goes_down)
{
	char *mem = sbrk(2 * BIG);

	memset(mem, 42, 2 * BIG);
	watch(mem + BIG);
	ck_assert_ptr_ne(sbrk(PAGE), (void *)-1);
	must_not_have_heard();
	if (_i)
		ck_assert_ptr_ne(sbrk(-(intptr_t)(2 * BIG)), (void *)-1);
	else
		ck_assert_int_eq(brk(mem), 0);
	must_have_heard();
}
END_TEST

START_TEST(what_takes_nothing_away_is_not_heard_of)
{
	char *mem = map(2);
	uint64_t before = count_changes();

	watch(mem);
	madvise(mem, PAGE, MADV_WILLNEED);
	ck_assert_ptr_ne(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			 MAP_FAILED);
	ck_assert_uint_eq(count_changes(), before);
	ck_assert_uint_eq(atomic_load(&told), 0);
}
END_TEST

START_TEST(a_change_elsewhere_concerns_nobody)
{
	char *mem = map(4);

	watch(mem + 2 * PAGE);
	munmap(mem, 2 * PAGE);
	munmap(mem + 3 * PAGE, PAGE);
	must_not_have_heard();
	ck_assert_uint_eq(atomic_load(&told), 2);
}
END_TEST

START_TEST(nobody_is_told_who_watches_nothing)
{
	char *mem = map(2);

	watch(mem);
	atomic_store(&listener.armed, 0);
	munmap(mem, 2 * PAGE);
	ck_assert_uint_eq(atomic_load(&told), 0);
}
END_TEST

START_TEST(errno_is_the_calls_own)
{
	char *mem = map(1);

	watch(mem);
	errno = 77;
	munmap(mem, PAGE);
	free(big());
	mprotect(map(1), PAGE, PROT_READ);
	dlclose(dlopen(HOOKED "hooked_now.so", RTLD_NOW));
	(void)dlsym(RTLD_DEFAULT, "munmap");
	ck_assert_int_eq(errno, 77);
	ck_assert_int_eq(munmap(mem + 1, PAGE), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* --- what is not seen ------------------------------------------------------------------- */

START_TEST(a_direct_system_call_is_not_heard)
{
	char *mem = map(1);

	watch(mem);
	ck_assert_int_eq(syscall(SYS_munmap, mem, PAGE), 0);
	must_not_have_heard();
}
END_TEST

START_TEST(a_pointer_that_dlsym_gave_is_not_heard)
{
	int (*unmap)(void *, size_t) = (int (*)(void *, size_t))dlsym(RTLD_DEFAULT, "munmap");
	char *mem = map(1);

	watch(mem);
	ck_assert_int_eq(unmap(mem, PAGE), 0);
	must_not_have_heard();
}
END_TEST

static void *stack_of_thread(void *arg)
{
	char here[4 * PAGE];

	memset(here, 42, sizeof(here));
	watch(here + PAGE);
	return arg;
}

START_TEST(the_stack_of_a_thread_is_not_heard_of)
{
	pthread_attr_t attr;
	pthread_t thread;

	/* Larger than what the C library keeps for other threads. */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * BIG);
	pthread_create(&thread, &attr, stack_of_thread, NULL);
	pthread_join(thread, NULL);
	must_not_have_heard();
	ck_assert_int_eq(msync((void *)((uintptr_t)want & ~(uintptr_t)(PAGE - 1)), PAGE, MS_ASYNC),
			 -1);
}
END_TEST

START_TEST(an_object_in_another_namespace_is_not_heard)
{
	void *handle = dlmopen(LM_ID_NEWLM, objects[_i], RTLD_NOW);
	int (*unmap)(void *, size_t);
	char *mem = map(1);

	ck_assert_msg(handle, "%s", dlerror());
	unmap = (int (*)(void *, size_t))function(handle, "hooked_munmap");
	watch(mem);
	ck_assert_int_eq(unmap(mem, PAGE), 0);
	must_not_have_heard();
}
END_TEST

/* --- children, handlers, threads ------------------------------------------------------------ */

START_TEST(a_child_has_the_hooks)
{
	char *mem = map(1);
	pid_t pid;

	watch(mem);
	pid = fork();
	if (!pid) {
		mrf_hooks_in_child();
		mrf_hooks_refresh();
		munmap(mem, PAGE);
		must_hear_from(load(objects[0]));
		_exit(!mrf_hooks_in_force());
	}
	ck_assert(child_succeeded(pid));
	must_not_have_heard();
}
END_TEST

START_TEST(a_vforked_child_may_unmap)
{
	char *volatile mem = map(1);
	pid_t pid;

	watch(mem);
	pid = vfork();
	if (!pid) {
		munmap(mem, PAGE);
		_exit(0);
	}
	ck_assert(child_succeeded(pid));
	must_have_heard();
}
END_TEST

static atomic_uint handled;

static void allocate_in_handler(int signo)
{
	(void)signo;
	free(malloc(BIG));
	atomic_fetch_add(&handled, 1);
}

/* The handler interrupts hooks, but never the allocator. */
START_TEST(a_handler_may_allocate_whatever_hook_it_interrupts)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction act = { .sa_handler = allocate_in_handler, .sa_flags = SA_RESTART };

	mallopt(M_MMAP_THRESHOLD, BIG / 4);
	watch(map(1));
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (atomic_load(&handled) < 1000)
		munmap(map(4), 4 * PAGE);
	setitimer(ITIMER_REAL, &never, NULL);
	must_not_have_heard();
}
END_TEST

static atomic_bool stopping;

static void *keep_loading(void *arg)
{
	unsigned i;

	for (i = 0; i < 300; i++) {
		void *handle = dlopen(objects[i % MRF_ARRAY_SIZE(objects)], RTLD_LAZY);
		int (*unmap)(void *, size_t);

		if (!handle)
			return arg;
		unmap = (int (*)(void *, size_t))dlsym(handle, "hooked_munmap");
		unmap(map(1), PAGE);
		dlclose(handle);
	}
	return NULL;
}

static void *keep_unmapping(void *arg)
{
	while (!atomic_load(&stopping)) {
		munmap(map(1), PAGE);
		free(malloc(BIG));
		mrf_hooks_refresh();
	}
	return arg;
}

START_TEST(objects_come_and_go_while_others_unmap)
{
	pthread_t loader[2], unmapper[2];
	void *failed;
	unsigned i;

	mallopt(M_MMAP_THRESHOLD, BIG / 4);
	watch(map(1));
	for (i = 0; i < 2; i++) {
		pthread_create(&unmapper[i], NULL, keep_unmapping, NULL);
		pthread_create(&loader[i], NULL, keep_loading, unmapper);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(loader[i], &failed);
		ck_assert_ptr_null(failed);
	}
	atomic_store(&stopping, true);
	for (i = 0; i < 2; i++)
		pthread_join(unmapper[i], NULL);
	must_hear_from(load(objects[0]));
}
END_TEST

START_TEST(listeners_are_limited_and_counted_once)
{
	static struct mrf_hooks_listener more[MRF_HOOKS_LISTENERS];
	unsigned i;

	ck_assert_int_eq(mrf_hooks_listen(&listener), 0);
	for (i = 0; i < MRF_HOOKS_LISTENERS - 1; i++) {
		more[i].changing = changing;
		ck_assert_int_eq(mrf_hooks_listen(&more[i]), 0);
	}
	ck_assert_int_eq(mrf_hooks_listen(&more[i]), -FI_ENOSPC);
}
END_TEST

/* --- another allocator --------------------------------------------------------------------- */

#define SKIPPED 77

static void *allocate_and_free(void *arg)
{
	unsigned i;

	for (i = 0; i < 2000; i++)
		free(realloc(malloc(i * 100), i * 3000));
	return arg;
}

/* Runs in a process of its own: this program with another allocator in front. */
static int under_jemalloc(void)
{
	pthread_t thread[4];
	unsigned i;
	char *mem;

	if (!dlsym(RTLD_DEFAULT, "mallctl"))
		return SKIPPED;
	if (mrf_hooks_listen(&listener) || !mrf_hooks_in_force())
		return 1;
	mem = malloc(8 * BIG);
	memset(mem, 42, 8 * BIG);
	watch(mem + 4 * BIG);
	free(mem);
	if (!atomic_load(&heard) || looked != 42)
		return 2;
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, allocate_and_free, NULL);
	for (i = 0; i < 4; i++) {
		mrf_hooks_refresh();
		pthread_join(thread[i], NULL);
	}
	return 0;
}

static __attribute__((constructor)) void be_a_child(void)
{
	if (getenv("HOOKED_UNDER_JEMALLOC"))
		_exit(under_jemalloc());
}

/* It gives pages back under its own locks, by calls that the hooks see. */
START_TEST(another_allocator_is_heard_when_it_gives_pages_back)
{
	int status;
	pid_t pid;

	if (!OWN_HEAP)
		return;
	pid = fork();
	if (!pid) {
		setenv("HOOKED_UNDER_JEMALLOC", "1", 1);
		setenv("LD_PRELOAD", "libjemalloc.so.2", 1);
		setenv("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0", 1);
		execl("/proc/self/exe", "t_hooks", NULL);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		fprintf(stderr, "t_hooks: not run with jemalloc: it is not installed\n");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

static TCase *calls(void)
{
	TCase *tc = tcase_create("calls");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, a_change_is_heard_before_it_is_made, 0, MRF_ARRAY_SIZE(changes));
	tcase_add_loop_test(tc, what_was_known_is_not_after_a_change, 0,
			    MRF_ARRAY_SIZE(changes) + 1);
	tcase_add_test(tc, a_segment_that_is_detached_takes_nothing_else);
	tcase_add_loop_test(tc, the_break_is_heard_of_when_it_goes_down, 0, 2);
	tcase_add_loop_test(tc, a_right_is_heard_of_before_it_is_taken, 0, 2);
	tcase_add_test(tc, what_takes_nothing_away_is_not_heard_of);
	tcase_add_test(tc, a_change_elsewhere_concerns_nobody);
	tcase_add_test(tc, nobody_is_told_who_watches_nothing);
	tcase_add_test(tc, errno_is_the_calls_own);
	tcase_add_test(tc, listeners_are_limited_and_counted_once);
	return tc;
}

static TCase *unseen(void)
{
	TCase *tc = tcase_create("what is not seen");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, a_direct_system_call_is_not_heard);
	tcase_add_test(tc, a_pointer_that_dlsym_gave_is_not_heard);
	tcase_add_test(tc, the_stack_of_a_thread_is_not_heard_of);
	tcase_add_loop_test(tc, an_object_in_another_namespace_is_not_heard, 0,
			    MRF_ARRAY_SIZE(objects));
	return tc;
}

static TCase *surroundings(void)
{
	TCase *tc = tcase_create("children, handlers, threads");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, a_child_has_the_hooks);
	tcase_add_test(tc, a_vforked_child_may_unmap);
	tcase_add_test(tc, a_handler_may_allocate_whatever_hook_it_interrupts);
	tcase_add_test(tc, objects_come_and_go_while_others_unmap);
	tcase_add_test(tc, another_allocator_is_heard_when_it_gives_pages_back);
	return tc;
}

UNIT_MAIN("hooks", calls, unseen, surroundings)
