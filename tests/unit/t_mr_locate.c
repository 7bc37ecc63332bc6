/* SPDX-License-Identifier: BSD-2-Clause */
/* Which segment serves an access: packed offsets and virtual addresses. */
#include "mr/seg.h"
#include "unit.h"

static const struct mrf_mr_seg one[] = { { .addr = 0x10123, .len = 100 } };
static const struct mrf_mr_seg three[] = {
	{ .addr = 0x30000, .len = 10 },
	{ .addr = 0x10000, .len = 20 },
	{ .addr = 0x20000, .len = 30 },
};
/* The second lies inside the first, the third follows on the first. */
static const struct mrf_mr_seg overlapping[] = {
	{ .addr = 0x1000, .len = 0x100 },
	{ .addr = 0x1080, .len = 0x100 },
	{ .addr = 0x1100, .len = 0x100 },
};
static const struct mrf_mr_seg empty[] = { { .addr = 0x5000, .len = 0 } };
static const struct mrf_mr_seg topmost[] = {
	{ .addr = UINT64_MAX - 15, .len = 15 },
};

/* What no region can be, but what a peer may claim. */
static const struct mrf_mr_seg wrapping[] = {
	{ .addr = UINT64_MAX - 4, .len = 100 },
};

static void check_hit(const struct mrf_mr_seg *segs, unsigned nseg, bool virt, uint64_t addr,
		      uint64_t len, uint64_t want, unsigned want_seg, uint64_t want_offset)
{
	unsigned seg = 99;
	uint64_t offset = 99;

	ck_assert_uint_eq(mrf_mr_locate(segs, nseg, virt, addr, len, &seg, &offset), want);
	ck_assert_uint_eq(seg, want_seg);
	ck_assert_uint_eq(offset, want_offset);
}

static void check_miss(const struct mrf_mr_seg *segs, unsigned nseg, bool virt, uint64_t addr,
		       uint64_t len)
{
	unsigned seg = 99;
	uint64_t offset = 99;

	ck_assert_uint_eq(mrf_mr_locate(segs, nseg, virt, addr, len, &seg, &offset), 0);
	ck_assert_uint_eq(seg, 99);
	ck_assert_uint_eq(offset, 99);
}

START_TEST(locate_packed_single_segment_boundaries)
{
	check_hit(one, 1, false, 0, 100, 100, 0, 0);
	check_hit(one, 1, false, 0, 101, 100, 0, 0);
	check_hit(one, 1, false, 99, 1, 1, 0, 99);
	check_hit(one, 1, false, 99, UINT64_MAX, 1, 0, 99);
	check_miss(one, 1, false, 100, 1);
	check_miss(one, 1, false, 0x10123, 1);
	check_miss(one, 1, false, UINT64_MAX, 1);
	check_miss(one, 1, false, UINT64_MAX, UINT64_MAX);
}
END_TEST

START_TEST(locate_virtual_single_segment_boundaries)
{
	check_hit(one, 1, true, 0x10123, 100, 100, 0, 0);
	check_hit(one, 1, true, 0x10123 + 99, 2, 1, 0, 99);
	check_miss(one, 1, true, 0x10122, 1);
	check_miss(one, 1, true, 0x10122, UINT64_MAX);
	check_miss(one, 1, true, 0x10123 + 100, 1);
	check_miss(one, 1, true, 0, 1);
	check_miss(one, 1, true, UINT64_MAX, 1);
}
END_TEST

START_TEST(locate_packs_segments_in_the_order_given)
{
	check_hit(three, 3, false, 0, 60, 10, 0, 0);
	check_hit(three, 3, false, 9, 60, 1, 0, 9);
	check_hit(three, 3, false, 10, 50, 20, 1, 0);
	check_hit(three, 3, false, 15, 3, 3, 1, 5);
	check_hit(three, 3, false, 29, 31, 1, 1, 19);
	check_hit(three, 3, false, 30, 30, 30, 2, 0);
	check_hit(three, 3, false, 59, 1, 1, 2, 29);
	check_miss(three, 3, false, 60, 1);
}
END_TEST

/* Following the pieces covers the whole access, each byte once. */
START_TEST(locate_walks_a_spanning_access_to_its_end)
{
	uint64_t addr, len, done, n, offset;
	unsigned seg;

	for (addr = 0; addr < 60; addr++) {
		for (len = 1; addr + len <= 60; len++) {
			for (done = 0; done < len; done += n) {
				n = mrf_mr_locate(three, 3, false, addr + done, len - done, &seg,
						  &offset);
				ck_assert_uint_gt(n, 0);
				ck_assert_uint_le(n, len - done);
				ck_assert_uint_le(offset + n, three[seg].len);
			}
			ck_assert_uint_eq(done, len);
		}
	}
}
END_TEST

START_TEST(locate_virtual_takes_the_first_segment_that_contains_the_address)
{
	check_hit(three, 3, true, 0x10000, 5, 5, 1, 0);
	check_hit(three, 3, true, 0x20000 + 29, 5, 1, 2, 29);
	check_miss(three, 3, true, 0x30000 + 10, 1);
	check_miss(three, 3, true, 0x10000 + 20, 1);

	check_hit(overlapping, 3, true, 0x10ff, 2, 1, 0, 0xff);
	check_hit(overlapping, 3, true, 0x1090, 0x200, 0x70, 0, 0x90);
	check_hit(overlapping, 3, true, 0x1100, 0x200, 0x80, 1, 0x80);
	check_hit(overlapping, 3, true, 0x1180, 0x200, 0x80, 2, 0x80);
	check_miss(overlapping, 3, true, 0x1200, 1);
}
END_TEST

START_TEST(locate_zero_length_is_in_bounds_up_to_the_end)
{
	check_hit(one, 1, false, 0, 0, 1, 0, 0);
	check_hit(one, 1, false, 100, 0, 1, 0, 100);
	check_miss(one, 1, false, 101, 0);
	check_hit(one, 1, true, 0x10123 + 100, 0, 1, 0, 100);
	check_miss(one, 1, true, 0x10123 + 101, 0);
	check_miss(one, 1, true, 0x10122, 0);
	check_hit(three, 3, false, 60, 0, 1, 2, 30);
	check_miss(three, 3, false, 61, 0);
}
END_TEST

START_TEST(locate_empty_region_serves_nothing_but_no_bytes)
{
	check_hit(empty, 1, false, 0, 0, 1, 0, 0);
	check_miss(empty, 1, false, 0, 1);
	check_miss(empty, 1, false, 1, 0);
	check_hit(empty, 1, true, 0x5000, 0, 1, 0, 0);
	check_miss(empty, 1, true, 0x5000, 1);
	check_miss(empty, 1, true, 0, 0);
}
END_TEST

START_TEST(locate_does_not_wrap_at_the_top_of_the_address_space)
{
	check_hit(topmost, 1, true, UINT64_MAX - 1, UINT64_MAX, 1, 0, 14);
	check_miss(topmost, 1, true, UINT64_MAX, 1);
	check_hit(topmost, 1, true, UINT64_MAX, 0, 1, 0, 15);
	check_miss(topmost, 1, true, 0, 1);
	check_miss(topmost, 1, false, UINT64_MAX, UINT64_MAX);
	check_miss(wrapping, 1, true, 3, 1);
	check_miss(wrapping, 1, true, 3, 0);
}
END_TEST

static TCase *locate(void)
{
	TCase *tc = tcase_create("locate");

	tcase_add_test(tc, locate_packed_single_segment_boundaries);
	tcase_add_test(tc, locate_virtual_single_segment_boundaries);
	tcase_add_test(tc, locate_packs_segments_in_the_order_given);
	tcase_add_test(tc, locate_walks_a_spanning_access_to_its_end);
	tcase_add_test(tc, locate_virtual_takes_the_first_segment_that_contains_the_address);
	tcase_add_test(tc, locate_zero_length_is_in_bounds_up_to_the_end);
	tcase_add_test(tc, locate_empty_region_serves_nothing_but_no_bytes);
	tcase_add_test(tc, locate_does_not_wrap_at_the_top_of_the_address_space);
	return tc;
}

UNIT_MAIN("mr_locate", locate)
