/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/maps.h"
#include "base/page.h"
#include "child.h"
#include "unit.h"

#define PAGE 4096u

static bool fail_realloc;
static struct mrf_maps maps;

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	return fail_realloc ? NULL : __real_realloc(old, size);
}

static char *map(size_t pages, int prot, int flags)
{
	char *mem = mmap(NULL, pages * PAGE, prot, flags | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	return mem;
}

static const struct mrf_mapping *at(const void *addr)
{
	return mrf_maps_at(&maps, (uintptr_t)addr);
}

static void look(const void *addr, size_t len)
{
	ck_assert_int_eq(mrf_maps_look(&maps, (uintptr_t)addr, (uintptr_t)addr + len), 0);
}

START_TEST(a_look_finds_what_is_mapped_there_and_nothing_else)
{
	char *mem = map(5, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	unsigned i;

	munmap(mem + PAGE, PAGE);
	mprotect(mem + 3 * PAGE, PAGE, PROT_READ);
	look(mem, 5 * PAGE);
	ck_assert_ptr_nonnull(at(mem));
	ck_assert_ptr_null(at(mem + PAGE));
	ck_assert_ptr_null(at(mem + 2 * PAGE - 1));
	ck_assert_ptr_nonnull(at(mem + 2 * PAGE));
	ck_assert_uint_eq(at(mem + 3 * PAGE)->start, (uintptr_t)mem + 3 * PAGE);
	ck_assert_uint_eq(at(mem + 3 * PAGE)->end, (uintptr_t)mem + 4 * PAGE);
	ck_assert_str_eq(at(mem + 3 * PAGE)->perms, "r--p");
	ck_assert_ptr_nonnull(at(mem + 4 * PAGE));
	for (i = 0; i < maps.count; i++) {
		ck_assert_uint_gt(maps.mapping[i].end, (uintptr_t)mem);
		ck_assert_uint_lt(maps.mapping[i].start, (uintptr_t)mem + 5 * PAGE);
	}
	munmap(mem, 5 * PAGE);
	look(mem, PAGE);
	ck_assert_ptr_null(at(mem));
	mrf_maps_fini(&maps);
}
END_TEST

START_TEST(a_look_at_everything_sees_all_of_it)
{
	char *mem[64];
	unsigned i;

	/* Two with different rights do not become one mapping. */
	for (i = 0; i < 64; i++)
		mem[i] = map(1, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE);
	ck_assert_int_eq(mrf_maps_look(&maps, 0, UINT64_MAX), 0);
	for (i = 0; i < 64; i++) {
		ck_assert_ptr_nonnull(at(mem[i]));
		munmap(mem[i], PAGE);
	}
	ck_assert_ptr_null(mrf_maps_at(&maps, 0));
	mrf_maps_fini(&maps);
}
END_TEST

START_TEST(a_count_is_of_the_whole_process)
{
	char *here = map(3, PROT_READ, MAP_PRIVATE), *mem[64];
	unsigned i, before;

	mprotect(here + PAGE, PAGE, PROT_READ | PROT_WRITE);
	look(here + PAGE, 10);
	before = mrf_maps_count();
	for (i = 0; i < 64; i++)
		mem[i] = map(1, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE);
	look(here + PAGE, 10);
	ck_assert_uint_eq(maps.count, 1);
	/* Some may join what was there. */
	ck_assert_uint_ge(mrf_maps_count(), before + 32);
	ck_assert_uint_gt(mrf_maps_limit(), mrf_maps_count());
	for (i = 0; i < 64; i++)
		munmap(mem[i], PAGE);
	mrf_maps_fini(&maps);
	munmap(here, 3 * PAGE);
}
END_TEST

/* The kernel's answer about one mapping is what its file says. */
START_TEST(a_question_about_one_mapping_says_what_the_file_says)
{
	static const int prot[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
	char *addr[7] = { (char *)(uintptr_t)a_question_about_one_mapping_says_what_the_file_says };
	struct mrf_mapping one;
	unsigned i;
	int ret = 0;

	ck_assert_int_eq(mrf_maps_query((uintptr_t)addr[0], &one), -ENOSYS);
	for (i = 1; i < 7; i++)
		addr[i] = map(3, prot[i % 3], i & 1 ? MAP_SHARED : MAP_PRIVATE) + PAGE;
	mrf_maps_keep();
	for (i = 0; i < 7 && ret != -ENOSYS; i++) {
		look(addr[i], 1);
		ret = mrf_maps_query((uintptr_t)addr[i], &one);
		/* Before Linux 6.11. */
		if (ret == -ENOSYS)
			continue;
		ck_assert_int_eq(ret, 0);
		ck_assert_uint_eq(one.start, at(addr[i])->start);
		ck_assert_uint_eq(one.end, at(addr[i])->end);
		ck_assert_str_eq(one.perms, at(addr[i])->perms);
		ck_assert_uint_eq(one.inode, at(addr[i])->inode);
		ck_assert(!one.rdma);
	}
	/* Where there is none, it is the next one above. */
	munmap(addr[3], PAGE);
	ret = mrf_maps_query((uintptr_t)addr[3], &one);
	ck_assert(ret == -ENOSYS || (!ret && one.start == (uintptr_t)addr[3] + PAGE));
	for (i = 1; i < 7; i++)
		munmap(addr[i] - PAGE, 3 * PAGE);
	mrf_maps_fini(&maps);
	mrf_maps_let_go();
}
END_TEST

START_TEST(rights_and_kinds_are_told_apart)
{
	char *none = map(1, PROT_NONE, MAP_PRIVATE);
	char *read = map(1, PROT_READ, MAP_PRIVATE);
	char *both = map(1, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	char *shared = map(1, PROT_READ | PROT_WRITE, MAP_SHARED);

	ck_assert_int_eq(mrf_maps_look(&maps, 0, UINT64_MAX), 0);
	ck_assert(!mrf_maps_pinnable(at(none), false));
	ck_assert(!mrf_maps_pinnable(at(none), true));
	ck_assert(mrf_maps_pinnable(at(read), false));
	ck_assert(!mrf_maps_pinnable(at(read), true));
	ck_assert(mrf_maps_pinnable(at(both), false));
	ck_assert(mrf_maps_pinnable(at(both), true));
	ck_assert(mrf_maps_private(at(both)));
	ck_assert(!mrf_maps_private(at(shared)));
	ck_assert(!mrf_maps_private(at((void *)(uintptr_t)rights_and_kinds_are_told_apart)));
	ck_assert(mrf_maps_private(at(&none)));
	munmap(none, PAGE);
	munmap(read, PAGE);
	munmap(both, PAGE);
	munmap(shared, PAGE);
	mrf_maps_fini(&maps);
}
END_TEST

START_TEST(queues_of_rdma_devices_are_not_pinned)
{
	static char text[] =
		"7f0000000000-7f0000001000 rw-s 00000000 00:05 170   /dev/infiniband/uverbs0\n"
		"7f0000001000-7f0000002000 rw-s 00000000 00:05 171   /dev/infinity\n"
		"7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n"
		"7f0000003000-7f0000004000 rw-s 00000000 00:05 172   /dev/infiniband/rdma_cm";
	static const bool rdma[] = { true, false, false, true };
	FILE *file = fmemopen(text, sizeof(text) - 1, "r");
	struct mrf_mapping mapping;
	unsigned i;

	ck_assert_ptr_nonnull(file);
	for (i = 0; i < 4; i++) {
		ck_assert(mrf_maps_next(file, &mapping));
		ck_assert_uint_eq(mapping.start, 0x7f0000000000 + i * PAGE);
		ck_assert_int_eq(mapping.rdma, rdma[i]);
		ck_assert_int_eq(mrf_maps_pinnable(&mapping, true), !rdma[i]);
		ck_assert_int_eq(mrf_maps_pinnable(&mapping, false), !rdma[i]);
	}
	ck_assert(!mrf_maps_next(file, &mapping));
	fclose(file);
}
END_TEST

START_TEST(a_look_without_memory_says_so)
{
	char *mem = map(1, PROT_READ, MAP_PRIVATE);

	fail_realloc = true;
	ck_assert_int_eq(mrf_maps_look(&maps, (uintptr_t)mem, (uintptr_t)mem + 1), -FI_ENOMEM);
	fail_realloc = false;
	mrf_maps_fini(&maps);
	munmap(mem, PAGE);
}
END_TEST

/* --- without a free descriptor ----------------------------------------------------- */

/* With none left: does it find this page, and only where it is? False: it cannot look. */
static bool finds(const char *page)
{
	struct rlimit before;
	int ret;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }), 0);
	ret = mrf_maps_look(&maps, 0, UINT64_MAX);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert(!ret || ret == -EMFILE);
	return !ret && at(page) && at(page)->perms[1] == 'w';
}

START_TEST(the_descriptor_that_is_kept_shows_what_is_mapped_now)
{
	char *mem;

	mrf_maps_keep();
	mrf_maps_keep();
	mem = map(1, PROT_READ | PROT_WRITE, MAP_SHARED);
	ck_assert(finds(mem));
	mrf_maps_let_go();
	ck_assert(finds(mem));
	mprotect(mem, PAGE, PROT_READ);
	ck_assert(!finds(mem));
	mprotect(mem, PAGE, PROT_READ | PROT_WRITE);
	ck_assert(finds(mem));
	mrf_maps_let_go();
	ck_assert(!finds(mem));
	mrf_maps_fini(&maps);
	munmap(mem, PAGE);
}
END_TEST

START_TEST(a_child_does_not_read_its_parents)
{
	char *mem;
	int status;
	pid_t pid;

	mrf_maps_keep();
	pid = fork();
	if (!pid) {
		mem = map(1, PROT_READ | PROT_WRITE, MAP_SHARED);
		if (finds(mem))
			_exit(1);
		mrf_maps_keep();
		_exit(finds(mem) ? 0 : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	mrf_maps_let_go();
}
END_TEST

/* --- a process whose main() has ended by pthread_exit ------------------------------------ */

static bool main_is_there(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	bool there = maps && getc(maps) != EOF;

	if (maps)
		fclose(maps);
	return there;
}

static bool exempt;

/* With descriptors at first, then with none but the kept one. How: kept before main() ended, or after. */
static void *look_without_main(void *arg)
{
	char *mem = map(1, PROT_READ | PROT_WRITE, MAP_SHARED), why[200];
	struct mrf_page_memlock lock;

	while (main_is_there())
		usleep(1000);
	if (!arg)
		mrf_maps_keep();
	if (!finds(mem) || !mrf_maps_count())
		_exit(2);
	mrf_page_memlock_read(&lock);
	if (lock.exempt != exempt)
		_exit(5);
	if (mrf_page_explain(mem, PAGE, true, why, sizeof(why)) && strstr(why, "no memory"))
		_exit(3);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 });
	if (!finds(mem))
		_exit(4);
	_exit(0);
}

START_TEST(a_look_works_when_main_has_ended)
{
	pid_t pid = fork();
	struct mrf_page_memlock lock;
	pthread_t thread;

	if (!pid) {
		mrf_page_memlock_read(&lock);
		exempt = lock.exempt;
		if (_i)
			mrf_maps_keep();
		pthread_create(&thread, NULL, look_without_main, _i ? &thread : NULL);
		pthread_exit(NULL);
	}
	ck_assert(child_succeeded(pid));
}
END_TEST

START_TEST(private_means_all_of_a_range_and_no_file)
{
	char *mem = map(6, PROT_READ, MAP_PRIVATE), *shared = map(1, PROT_READ, MAP_SHARED);
	FILE *self = fopen("/proc/self/exe", "r");
	void *file = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(self), 0);

	mprotect(mem + PAGE, PAGE, PROT_READ | PROT_WRITE);
	munmap(mem + 3 * PAGE, PAGE);
	ck_assert(mrf_maps_all_private((uintptr_t)mem, (uintptr_t)mem + 3 * PAGE));
	ck_assert(!mrf_maps_all_private((uintptr_t)mem, (uintptr_t)mem + 4 * PAGE));
	ck_assert(!mrf_maps_all_private((uintptr_t)shared, (uintptr_t)shared + PAGE));
	ck_assert(!mrf_maps_all_private((uintptr_t)file, (uintptr_t)file + PAGE));
	munmap(mem, 6 * PAGE);
	munmap(shared, PAGE);
	munmap(file, PAGE);
	fclose(self);
}
END_TEST

/* So many mappings that it takes many reads. */
static void *look_often(void *arg)
{
	char **mem = arg;
	struct mrf_maps mine = { 0 };
	unsigned i, n;

	for (n = 0; n < 50; n++) {
		ck_assert_int_eq(mrf_maps_look(&mine, 0, UINT64_MAX), 0);
		for (i = 0; i < 300; i++)
			ck_assert_ptr_nonnull(mrf_maps_at(&mine, (uintptr_t)mem[i]));
	}
	mrf_maps_fini(&mine);
	return NULL;
}

START_TEST(threads_share_the_one_that_is_kept)
{
	struct rlimit before;
	pthread_t thread[3];
	char *mem[300];
	unsigned i;

	mrf_maps_keep();
	for (i = 0; i < 300; i++)
		mem[i] = map(1, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }), 0);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, look_often, mem), 0);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (i = 0; i < 300; i++)
		munmap(mem[i], PAGE);
	mrf_maps_let_go();
}
END_TEST

static TCase *looks(void)
{
	TCase *tc = tcase_create("looks");

	tcase_add_test(tc, a_look_finds_what_is_mapped_there_and_nothing_else);
	tcase_add_test(tc, a_look_at_everything_sees_all_of_it);
	tcase_add_loop_test(tc, a_look_works_when_main_has_ended, 0, 2);
	tcase_add_test(tc, private_means_all_of_a_range_and_no_file);
	tcase_add_test(tc, a_count_is_of_the_whole_process);
	tcase_add_test(tc, a_question_about_one_mapping_says_what_the_file_says);
	tcase_add_test(tc, rights_and_kinds_are_told_apart);
	tcase_add_test(tc, queues_of_rdma_devices_are_not_pinned);
	tcase_add_test(tc, a_look_without_memory_says_so);
	tcase_add_test(tc, the_descriptor_that_is_kept_shows_what_is_mapped_now);
	tcase_add_test(tc, a_child_does_not_read_its_parents);
	tcase_add_test(tc, threads_share_the_one_that_is_kept);
	return tc;
}

UNIT_MAIN("maps", looks)
