/* SPDX-License-Identifier: BSD-2-Clause */
/* Random bytes where a filter of system calls denies getrandom(2), and where it denies everything. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include "base/random.h"
#include "unit.h"

static int denied;	 /* errno of getrandom; 0: it works */
static unsigned denials; /* how often that is */
static bool no_device;

ssize_t __real_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	if (!denials)
		return __real_getrandom(buf, len, flags);
	denials--;
	errno = denied;
	return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
	ck_assert_str_eq(path, "/dev/urandom");
	if (!no_device)
		return __real_open(path, flags);
	errno = EACCES;
	return -1;
}

static void must_differ(void)
{
	uint64_t one[4] = { 0 }, two[4] = { 0 };

	ck_assert(mrf_random(one, sizeof(one)));
	ck_assert(mrf_random(two, sizeof(two)));
	ck_assert(memcmp(one, two, sizeof(one)));
	ck_assert(one[0] && one[3]);
}

START_TEST(random_bytes_come_though_a_signal_interrupts)
{
	denied = EINTR;
	denials = 3;
	no_device = true;
	must_differ();
	ck_assert_uint_eq(denials, 0);
}
END_TEST

START_TEST(random_bytes_come_from_the_device_where_the_call_is_denied)
{
	denied = _i ? ENOSYS : EPERM;
	denials = 2;
	must_differ();
	ck_assert_uint_eq(denials, 0);
}
END_TEST

START_TEST(random_bytes_that_cannot_be_had_are_an_error)
{
	uint64_t bytes;

	denied = EPERM;
	denials = 1;
	no_device = true;
	ck_assert(!mrf_random(&bytes, sizeof(bytes)));
	ck_assert_int_eq(errno, EPERM);
}
END_TEST

static TCase *bytes(void)
{
	TCase *tc = tcase_create("bytes");

	tcase_add_test(tc, random_bytes_come_though_a_signal_interrupts);
	tcase_add_loop_test(tc, random_bytes_come_from_the_device_where_the_call_is_denied, 0, 2);
	tcase_add_test(tc, random_bytes_that_cannot_be_had_are_an_error);
	return tc;
}

UNIT_MAIN("random", bytes)
