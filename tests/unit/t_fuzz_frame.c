/* SPDX-License-Identifier: BSD-2-Clause */
/* The corpus of frames, as it is and with a few thousand small changes, without libFuzzer. */
#include "../fuzz/replay.h"

START_TEST(frame_corpus_and_its_neighbours_break_no_decoder)
{
	ck_assert_uint_ge(fuzz_replay("corpus-frame"), 20);
}
END_TEST

static TCase *tcase_corpus(void)
{
	TCase *tc = tcase_create("corpus");

	tcase_add_test(tc, frame_corpus_and_its_neighbours_break_no_decoder);
	tcase_set_timeout(tc, 60);
	return tc;
}

UNIT_MAIN("fuzz_frame", tcase_corpus)
