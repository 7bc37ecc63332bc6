/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An executable that is not position-independent and takes the address of munmap: it has a
 * stub of its own, which the program's lookup gives to all objects. The stub leads through
 * the executable's slot, so it must not be taken for the original.
 */
#include <sys/mman.h>
#include "monitor/slots.h"
#include "hooked.h"

static int (*volatile by_address)(void *, size_t);

static void setup_stub(void)
{
	by_address = munmap;
	setup();
}

START_TEST(a_call_through_the_stub_is_heard)
{
	char *mem = map(2);

	watch(mem);
	ck_assert_int_eq(munmap(mem, PAGE), 0);
	must_have_heard();
	watch(mem + PAGE);
	ck_assert_int_eq(by_address(mem + PAGE, PAGE), 0);
	must_have_heard();
	ck_assert_uint_eq(mrf_slots_foreign(), 0);
}
END_TEST

START_TEST(objects_are_heard_through_the_stub)
{
	must_hear_from(load(objects[_i]));
	ck_assert_uint_eq(mrf_slots_foreign(), 0);
}
END_TEST

static TCase *stub(void)
{
	TCase *tc = tcase_create("stub");

	tcase_add_checked_fixture(tc, setup_stub, NULL);
	tcase_add_test(tc, a_call_through_the_stub_is_heard);
	tcase_add_loop_test(tc, objects_are_heard_through_the_stub, 0, MRF_ARRAY_SIZE(objects));
	return tc;
}

UNIT_MAIN("stub", stub)
