/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs on the fake fabric: the cases that a real device answers alike (tests/func/pairs.h), and
 * what no device does on order.
 */
#include "../fake/fake_fabric.h"
#include "../func/pairs.h"
#include "unit.h"

static void setup(void)
{
	fake_reset();
}

static void must(bool ok)
{
	ck_assert_msg(ok, "%s", why);
}

static void must_open(void)
{
	must(ends_open());
	ck_assert_uint_eq(fake_live_of(FAKE_VPAIR_OPEN), ENDS);
}

static void must_join(void)
{
	must_open();
	must(pairs_open());
}

static void must_close(void)
{
	pairs_close();
	ck_assert_uint_eq(fake_live(), 0);
	ck_assert_uint_eq(fake.overflows, 0);
}

START_TEST(pair_keeps_what_its_header_promises)
{
	must_join();
	ck_assert_msg(pair_cases[_i].run(), "%s: %s", pair_cases[_i].name, why);
	must_close();
}
END_TEST

START_TEST(pair_end_keeps_what_its_header_promises)
{
	must_open();
	ck_assert_msg(end_cases[_i].run(), "%s: %s", end_cases[_i].name, why);
	must_close();
}
END_TEST

static TCase *tcase_pair(void)
{
	TCase *tc = tcase_create("pair");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, pair_keeps_what_its_header_promises, 0,
			    (int)MRF_ARRAY_SIZE(pair_cases));
	tcase_add_loop_test(tc, pair_end_keeps_what_its_header_promises, 0,
			    (int)MRF_ARRAY_SIZE(end_cases));
	return tc;
}

UNIT_MAIN("pair", tcase_pair)
