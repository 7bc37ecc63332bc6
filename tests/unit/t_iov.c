/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"
#include "base/iov.h"

#define TOP UINT64_MAX

START_TEST(iov_range_ok_up_to_the_end_of_the_address_space)
{
	ck_assert(mrf_range_ok(0, 0));
	ck_assert(mrf_range_ok(0, TOP));
	ck_assert(mrf_range_ok(TOP, 0));
	ck_assert(mrf_range_ok(TOP - 5, 5));
	ck_assert(!mrf_range_ok(TOP - 5, 6));
	ck_assert(!mrf_range_ok(TOP, 1));
	ck_assert(!mrf_range_ok(1, TOP));
}
END_TEST

/* Against the definition, over all small ranges shifted to both ends of the address
 * space. */
START_TEST(iov_range_inside_agrees_with_the_definition)
{
	static const uint64_t shifts[] = { 0, TOP - 20 };
	uint64_t base, size, addr, len, s, i;

	for (i = 0; i < 2; i++) {
		s = shifts[i];
		for (base = 0; base < 6; base++)
			for (size = 0; size < 6; size++)
				for (addr = 0; addr < 12; addr++)
					for (len = 0; len < 8; len++)
						ck_assert_int_eq(mrf_range_inside(s + addr, len,
										  s + base, size),
								 addr >= base &&
									 addr + len <= base + size);
	}
	ck_assert(!mrf_range_inside(10, TOP, 10, 100));
	ck_assert(!mrf_range_inside(TOP, 2, 10, 100));
	ck_assert(mrf_range_inside(0, TOP, 0, TOP));
}
END_TEST

START_TEST(iov_total_adds_and_says_when_it_cannot)
{
	struct iovec iov[3] = { { NULL, 5 }, { NULL, 0 }, { NULL, 7 } };

	ck_assert_uint_eq(mrf_iov_total(iov, 0), 0);
	ck_assert_uint_eq(mrf_iov_total(iov, 1), 5);
	ck_assert_uint_eq(mrf_iov_total(iov, 3), 12);
	iov[1].iov_len = SIZE_MAX - 4;
	ck_assert_uint_eq(mrf_iov_total(iov, 2), SIZE_MAX);
	iov[1].iov_len = SIZE_MAX - 12;
	ck_assert_uint_eq(mrf_iov_total(iov, 2), SIZE_MAX - 7);
	ck_assert_uint_eq(mrf_iov_total(iov, 3), SIZE_MAX);
}
END_TEST

static TCase *tcase_iov(void)
{
	TCase *tcase = tcase_create("iov");

	tcase_add_test(tcase, iov_range_ok_up_to_the_end_of_the_address_space);
	tcase_add_test(tcase, iov_range_inside_agrees_with_the_definition);
	tcase_add_test(tcase, iov_total_adds_and_says_when_it_cannot);
	return tcase;
}

UNIT_MAIN("iov", tcase_iov)
