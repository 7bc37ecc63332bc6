/* SPDX-License-Identifier: BSD-2-Clause */
/* The corpus of tests/fuzz/fuzz_rawkey.c and its neighbours, without libFuzzer. */
#include "../fuzz/replay.h"

START_TEST(rawkey_corpus_and_its_neighbours_break_no_decoder)
{
	ck_assert_uint_ge(fuzz_replay("corpus-rawkey"), 15);
}
END_TEST

static TCase *tcase_corpus(void)
{
	TCase *tc = tcase_create("corpus");

	tcase_add_test(tc, rawkey_corpus_and_its_neighbours_break_no_decoder);
	tcase_set_timeout(tc, 60);
	return tc;
}

UNIT_MAIN("fuzz_rawkey", tcase_corpus)
