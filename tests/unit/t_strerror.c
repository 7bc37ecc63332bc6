/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"
#include "base/errtext.h"
#include <rdma/fi_errno.h>
#include <limits.h>

START_TEST(strerror_of_a_system_error_is_the_systems)
{
	int err;

	for (err = 0; err < FI_ERRNO_OFFSET; err++) {
		char *text = strdup(strerror(err)); /* unknown ones share a buffer */

		ck_assert_str_eq(fi_strerror(err), text);
		free(text);
	}
}
END_TEST

START_TEST(strerror_has_a_text_of_its_own_for_every_fabric_error)
{
	int a, b;

	for (a = FI_ERRNO_OFFSET; a < FI_ERRNO_MAX; a++) {
		ck_assert_ptr_nonnull(fi_strerror(a));
		ck_assert_uint_gt(strlen(fi_strerror(a)), 5);
		for (b = FI_ERRNO_OFFSET; b < a; b++)
			ck_assert_str_ne(fi_strerror(a), fi_strerror(b));
	}
	ck_assert_int_eq(FI_ERRNO_MAX, 270);
	ck_assert_str_eq(fi_strerror(FI_EBADFLAGS), "Flags not supported");
}
END_TEST

START_TEST(strerror_takes_what_the_calls_return)
{
	int err;

	for (err = 1; err < FI_ERRNO_MAX + 10; err++) {
		char *text = strdup(fi_strerror(err));

		ck_assert_str_eq(fi_strerror(-err), text);
		ck_assert_str_eq(mrf_errtext(err), text);
		free(text);
	}
}
END_TEST

START_TEST(strerror_of_an_unknown_number_is_still_a_text)
{
	ck_assert_str_eq(fi_strerror(FI_ERRNO_MAX), fi_strerror(FI_EOTHER));
	ck_assert_str_eq(fi_strerror(INT_MAX), fi_strerror(FI_EOTHER));
	ck_assert_str_eq(fi_strerror(INT_MIN), fi_strerror(FI_EOTHER));
	ck_assert_ptr_nonnull(strstr(fi_strerror(255), "255"));
}
END_TEST

static TCase *tcase_strerror(void)
{
	TCase *tcase = tcase_create("strerror");

	tcase_add_test(tcase, strerror_of_a_system_error_is_the_systems);
	tcase_add_test(tcase, strerror_has_a_text_of_its_own_for_every_fabric_error);
	tcase_add_test(tcase, strerror_takes_what_the_calls_return);
	tcase_add_test(tcase, strerror_of_an_unknown_number_is_still_a_text);
	return tcase;
}

UNIT_MAIN("strerror", tcase_strerror)
