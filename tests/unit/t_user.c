/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies from and to memory that may not be there: base/user.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>
#include "base/user.h"
#include "unit.h"

#define PAGE 4096u
#define PAGES 4

static char *mem;   /* the third page is not to be had, the fourth must not be written */
static int refused; /* errno of the kernel's copies, or 0 */

ssize_t __real_process_vm_readv(pid_t, const struct iovec *, unsigned long, const struct iovec *,
				unsigned long, unsigned long);
ssize_t __wrap_process_vm_readv(pid_t, const struct iovec *, unsigned long, const struct iovec *,
				unsigned long, unsigned long);
ssize_t __real_process_vm_writev(pid_t, const struct iovec *, unsigned long, const struct iovec *,
				 unsigned long, unsigned long);
ssize_t __wrap_process_vm_writev(pid_t, const struct iovec *, unsigned long, const struct iovec *,
				 unsigned long, unsigned long);

static bool is_refused(void)
{
	errno = refused;
	return refused;
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
				const struct iovec *there, unsigned long m, unsigned long flags)
{
	return is_refused() ? -1 : __real_process_vm_readv(pid, here, n, there, m, flags);
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
				 const struct iovec *there, unsigned long m, unsigned long flags)
{
	return is_refused() ? -1 : __real_process_vm_writev(pid, here, n, there, m, flags);
}

static void setup(void)
{
	size_t i;

	refused = 0;
	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	for (i = 0; i < PAGES * PAGE; i++)
		mem[i] = (char)(i * 7);
	ck_assert_int_eq(mprotect(mem + 2 * PAGE, PAGE, PROT_NONE), 0);
	ck_assert_int_eq(mprotect(mem + 3 * PAGE, PAGE, PROT_READ), 0);
}

static void teardown(void)
{
	munmap(mem, PAGES * PAGE);
}

static int get(void *to, const void *from, size_t len)
{
	struct iovec iov = { (void *)from, len };

	return mrf_user_get(to, &iov, 1);
}

static int put(void *to, const void *from, size_t len)
{
	struct iovec iov = { to, len };

	return mrf_user_put(&iov, 1, from, true);
}

static void copies_ranges(void)
{
	char copy[700];
	struct iovec iov[3] = { { mem + PAGE - 100, 300 }, { NULL, 0 }, { mem + 3 * PAGE, 400 } };

	ck_assert_int_eq(mrf_user_get(copy, iov, 3), 0);
	ck_assert_int_eq(memcmp(copy, mem + PAGE - 100, 300), 0);
	ck_assert_int_eq(memcmp(copy + 300, mem + 3 * PAGE, 400), 0);
	iov[2].iov_base = mem + 5;
	memset(copy, 0x5a, sizeof(copy));
	ck_assert_int_eq(mrf_user_put(iov, 3, copy, true), 0);
	ck_assert_int_eq(memcmp(copy, mem + PAGE - 100, 300), 0);
	ck_assert_int_eq(memcmp(copy, mem + 5, 400), 0);
}

START_TEST(ranges_are_copied_one_behind_the_other)
{
	copies_ranges();
}
END_TEST

START_TEST(they_are_where_the_kernel_does_not_copy)
{
	static const int why[] = { EPERM, ENOSYS, ENOMEM };

	refused = why[_i];
	copies_ranges();
}
END_TEST

START_TEST(what_is_not_there_is_refused)
{
	char copy[2 * PAGE];

	ck_assert_int_eq(get(copy, NULL, 64), -FI_EFAULT);
	ck_assert_int_eq(get(copy, (void *)0x1000, 3000), -FI_EFAULT);
	ck_assert_int_eq(get(copy, mem + PAGE, PAGE + 1), -FI_EFAULT);
	ck_assert_int_eq(get(copy, mem + 3 * PAGE, PAGE), 0);
	ck_assert_int_eq(put(mem + 2 * PAGE - 1, copy, 2), -FI_EFAULT);
	ck_assert_int_eq(put(NULL, copy, 1), -FI_EFAULT);
	ck_assert_int_eq(put(mem + 3 * PAGE, copy, 1), -FI_EFAULT);
}
END_TEST

static TCase *tcase_user(void)
{
	TCase *tc = tcase_create("user");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, ranges_are_copied_one_behind_the_other);
	tcase_add_loop_test(tc, they_are_where_the_kernel_does_not_copy, 0, 3);
	tcase_add_test(tc, what_is_not_there_is_refused);
	return tc;
}

UNIT_MAIN("user", tcase_user)
