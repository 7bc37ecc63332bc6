/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that begin as system calls do, made by hand: a jump at the entry, what it
 * replaces, and the way back.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "monitor/patch.h"
#include "unit.h"

#ifdef __x86_64__

#define PAGE 4096u

typedef long function(long a, long b, long c, long d, long e, long f);

/* All of them return d, or 42, in their own way. */
static const struct form {
	const char *what;
	unsigned char code[48];
	long answer; /* for d = 7 */
} forms[] = {
	{ "mov $42,%eax; ret", { 0xb8, 42, 0, 0, 0, 0xc3 }, 42 },
	{ "endbr64; mov $42,%eax; ret", { 0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 42, 0, 0, 0, 0xc3 }, 42 },
	{ "mov %ecx,%r10d; test $0xfff,%r9d; mov %r10d,%eax; ret",
	  { 0x41, 0x89, 0xca, 0x41, 0xf7, 0xc1, 0xff, 0x0f, 0, 0, 0x44, 0x89, 0xd0, 0xc3 },
	  7 },
	{ "mov %rcx,%r10; mov $1,%eax; mov %r10,%rax; ret",
	  { 0x49, 0x89, 0xca, 0xb8, 1, 0, 0, 0, 0x4c, 0x89, 0xd0, 0xc3 },
	  7 },
	{ "sub $0x58,%rsp; mov %r8,0x40(%rsp); mov %rcx,%rax; add $0x58,%rsp; ret",
	  { 0x48, 0x83, 0xec, 0x58, 0x4c, 0x89, 0x44, 0x24, 0x40, 0x48, 0x89, 0xc8, 0x48, 0x83,
	    0xc4, 0x58, 0xc3 },
	  7 },
	/* Somebody else's jump, to the instruction behind some that must not run. */
	{ "jmp +2; ud2; mov $42,%eax; ret",
	  { 0xe9, 2, 0, 0, 0, 0x0f, 0x0b, 0xb8, 42, 0, 0, 0, 0xc3 },
	  42 },
	{ "movabs $42,%r11; mov %r11,%rax; ret",
	  { 0x49, 0xbb, 42, 0, 0, 0, 0, 0, 0, 0, 0x4c, 0x89, 0xd8, 0xc3 },
	  42 },
};

static const struct form strange[] = {
	{ "ret", { 0xc3 }, 0 },
	{ "push %rbp; mov %rsp,%rbp", { 0x55, 0x48, 0x89, 0xe5 }, 0 },
	{ "mov 0(%rip),%rax", { 0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3 }, 0 },
	{ "jmp, shorter than ours", { 0xeb, 0x10 }, 0 },
	{ "the jump would pass the 16 bytes that are written at once",
	  { 0xf3, 0x0f, 0x1e, 0xfa, 0xf3, 0x0f, 0x1e, 0xfa, 0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 1, 0, 0,
	    0, 0xc3 },
	  0 },
};

static unsigned char *code, *room;
static struct mrf_patch patch;
static atomic_uint hooked;

static long hook(long a, long b, long c, long d, long e, long f)
{
	atomic_fetch_add(&hooked, 1);
	ck_assert_int_eq(a + 10 * b + 100 * c + 1000 * e + 10000 * f, 86321);
	return -((function *)patch.orig)(a, b, c, d, e, f);
}

static long call(void)
{
	return ((function *)patch.function)(1, 2, 3, 7, 6, 8);
}

static void setup(void)
{
	code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(code, MAP_FAILED);
	room = mrf_patch_room(code);
	ck_assert_ptr_nonnull(room);
	patch = (struct mrf_patch){ .function = code + 64, .hook = (void *)hook };
	atomic_store(&hooked, 0);
}

static void put(const struct form *form)
{
	memcpy(code + 64, form->code, sizeof(form->code));
	mprotect(code, PAGE, PROT_READ | PROT_EXEC);
}

START_TEST(the_hook_is_called_and_what_was_there_still_works)
{
	const struct form *form = &forms[_i];

	put(form);
	ck_assert_msg(!mrf_patch_prepare(&patch, room), "%s", form->what);
	ck_assert_int_eq(mrf_patch_seal(room), 0);
	ck_assert_int_eq(call(), form->answer);
	ck_assert(!mrf_patch_holds(&patch));

	ck_assert_int_eq(mrf_patch_apply(&patch), 0);
	ck_assert(mrf_patch_holds(&patch));
	ck_assert_int_eq(call(), -form->answer);
	ck_assert_uint_eq(hooked, 1);

	ck_assert_int_eq(mrf_patch_revert(&patch), 0);
	ck_assert(!mrf_patch_holds(&patch));
	ck_assert_int_eq(call(), form->answer);
	ck_assert_uint_eq(hooked, 1);
}
END_TEST

START_TEST(what_is_not_known_is_left_alone)
{
	unsigned char before[PAGE];

	put(&strange[_i]);
	memcpy(before, code, PAGE);
	ck_assert_msg(mrf_patch_prepare(&patch, room) == -FI_EOPNOTSUPP, "%s", strange[_i].what);
	ck_assert(!memcmp(before, code, PAGE));
}
END_TEST

static void poke(unsigned at, unsigned char byte)
{
	mprotect(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	code[at] = byte;
}

/* Another one has put something there between looking and writing, or later. */
START_TEST(another_patch_is_not_overwritten_and_is_noticed)
{
	put(&forms[0]);
	ck_assert_int_eq(mrf_patch_prepare(&patch, room), 0);
	poke(65, 41);
	ck_assert_int_eq(mrf_patch_apply(&patch), -FI_EBUSY);
	ck_assert_uint_eq(code[65], 41);
	poke(65, 42);
	ck_assert_int_eq(mrf_patch_apply(&patch), 0);
	poke(64, 0xc3);
	ck_assert(!mrf_patch_holds(&patch));
	ck_assert_int_eq(mrf_patch_revert(&patch), -FI_EBUSY);
}
END_TEST

static atomic_bool stopping;

static void *keep_calling(void *arg)
{
	unsigned long *calls = arg;
	long got;

	while (!atomic_load(&stopping)) {
		got = call();
		ck_assert(got == 7 || got == -7);
		++*calls;
	}
	return NULL;
}

START_TEST(threads_may_be_in_it_meanwhile)
{
	unsigned long calls[2] = { 0 };
	pthread_t thread[2];
	unsigned i;

	put(&forms[_i]);
	ck_assert_int_eq(mrf_patch_prepare(&patch, room), 0);
	ck_assert_int_eq(mrf_patch_seal(room), 0);
	atomic_store(&stopping, false);
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, keep_calling, &calls[i]);
	for (i = 0; i < 2000; i++) {
		ck_assert_int_eq(mrf_patch_apply(&patch), 0);
		ck_assert_int_eq(mrf_patch_revert(&patch), 0);
	}
	atomic_store(&stopping, true);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}
END_TEST

static TCase *patches(void)
{
	TCase *tc = tcase_create("patches");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, the_hook_is_called_and_what_was_there_still_works, 0,
			    MRF_ARRAY_SIZE(forms));
	tcase_add_loop_test(tc, what_is_not_known_is_left_alone, 0, MRF_ARRAY_SIZE(strange));
	tcase_add_test(tc, another_patch_is_not_overwritten_and_is_noticed);
	/* Those that answer 7. */
	tcase_add_loop_test(tc, threads_may_be_in_it_meanwhile, 2, 5);
	return tc;
}

#else

START_TEST(it_says_that_it_cannot)
{
	struct mrf_patch patch = { 0 };

	ck_assert_ptr_null(mrf_patch_room(NULL));
	ck_assert_int_eq(mrf_patch_prepare(&patch, NULL), -FI_ENOSYS);
}
END_TEST

static TCase *patches(void)
{
	TCase *tc = tcase_create("patches");

	tcase_add_test(tc, it_says_that_it_cannot);
	return tc;
}

#endif

UNIT_MAIN("patch", patches)
