/* SPDX-License-Identifier: BSD-2-Clause */
/* How much may be watched by userfaultfd, and how seldom all mappings are counted for that. */
#include <stdlib.h>
#include "monitor/pieces.h"
#include "unit.h"

static struct mrf_pieces pieces;

START_TEST(pieces_few_need_no_count)
{
	mrf_pieces_start(&pieces, 32765);
	pieces.count = 63;
	ck_assert_int_eq(mrf_pieces_room(&pieces, 5), MRF_PIECES_FIT);
	pieces.count = 64;
	ck_assert_int_eq(mrf_pieces_room(&pieces, 5), MRF_PIECES_UNKNOWN);
	/* Where the limit is low, fewer are few. */
	mrf_pieces_start(&pieces, 320);
	pieces.count = 20;
	ck_assert_int_eq(mrf_pieces_room(&pieces, 5), MRF_PIECES_UNKNOWN);
}
END_TEST

START_TEST(pieces_are_counted_when_they_have_doubled)
{
	unsigned counts = 0;

	mrf_pieces_start(&pieces, 1000000);
	for (pieces.count = 0; pieces.count < 10000; pieces.count++) {
		if (mrf_pieces_room(&pieces, 5) != MRF_PIECES_UNKNOWN)
			continue;
		ck_assert(mrf_pieces_counted(&pieces, 100, 5));
		counts++;
	}
	ck_assert_uint_ge(counts, 5);
	ck_assert_uint_le(counts, 10);
}
END_TEST

/* Each piece makes two mappings more, and the program has some. */
START_TEST(pieces_leave_half_of_the_mappings)
{
	unsigned own = (unsigned)_i, most = 0;

	mrf_pieces_start(&pieces, 3000);
	for (pieces.count = 0; pieces.count < 5000; pieces.count++) {
		enum mrf_pieces_room room = mrf_pieces_room(&pieces, 5);
		unsigned mappings = own + 2 * (unsigned)pieces.count;

		if (room == MRF_PIECES_UNKNOWN && !mrf_pieces_counted(&pieces, mappings, 5))
			room = MRF_PIECES_FULL;
		if (room == MRF_PIECES_FULL)
			break;
		most = mappings + 2;
	}
	ck_assert_uint_le(most, own > 2800 ? own + 130 : 3004);
	/* Not before it has to be. */
	ck_assert_uint_ge(most, own > 2800 ? own : 2990);
	ck_assert_int_eq(mrf_pieces_room(&pieces, 1004), MRF_PIECES_FULL);
	/* Later it is looked at again. */
	ck_assert_int_ne(mrf_pieces_room(&pieces, 1005), MRF_PIECES_FULL);
}
END_TEST

static TCase *room(void)
{
	TCase *tc = tcase_create("room");

	tcase_add_test(tc, pieces_few_need_no_count);
	tcase_add_test(tc, pieces_are_counted_when_they_have_doubled);
	tcase_add_loop_test(tc, pieces_leave_half_of_the_mappings, 100, 101);
	tcase_add_loop_test(tc, pieces_leave_half_of_the_mappings, 1000, 1001);
	tcase_add_loop_test(tc, pieces_leave_half_of_the_mappings, 4000, 4001);
	return tc;
}

UNIT_MAIN("pieces", room)
