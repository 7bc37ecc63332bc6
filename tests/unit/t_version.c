/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

START_TEST(version_is_the_api_level_1_17)
{
	ck_assert_uint_eq(fi_version(), FI_VERSION(1, 17));
	ck_assert_uint_eq(fi_version(), 0x10011);
}
END_TEST

/* fi_open is too small for a file of its own. */
static int open_says(const char *name, size_t attr_len, uint64_t flags, struct fid **fid,
		     const char *code)
{
	struct unit_capture cap;
	const char *text;
	int ret;

	unit_capture(&cap);
	ret = fi_open(FI_VERSION(1, 13), name, NULL, attr_len, flags, fid, NULL);
	text = unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_msg(strstr(text, code) != NULL, "%s", text);
	return ret;
}

START_TEST(open_refuses_each_bad_argument_with_one_line)
{
	struct fid *fid = (struct fid *)8;

	ck_assert_int_eq(open_says(NULL, 0, 0, &fid, "MRF-E2901"), -FI_EINVAL);
	ck_assert_int_eq(open_says("mr_cache", 0, 0, NULL, "MRF-E2902"), -FI_EINVAL);
	ck_assert_int_eq(open_says("mr_cache", 1, 0, &fid, "MRF-E2903"), -FI_EINVAL);
	ck_assert_int_eq(open_says("mr_cache", 0, 1, &fid, "MRF-E2904"), -FI_EBADFLAGS);
	ck_assert_ptr_eq(fid, (struct fid *)8);
}
END_TEST

START_TEST(open_knows_no_object_by_name)
{
	struct fid *fid = (struct fid *)8;

	ck_assert_int_eq(open_says("no_such_thing", 0, 0, &fid, "MRF-E2905"), -FI_ENOSYS);
	ck_assert_int_eq(open_says("", 7, 7, &fid, "MRF-E2905"), -FI_ENOSYS);
	ck_assert_ptr_eq(fid, (struct fid *)8);
}
END_TEST

static TCase *tcase_version(void)
{
	TCase *tcase = tcase_create("version");

	tcase_add_test(tcase, version_is_the_api_level_1_17);
	tcase_add_test(tcase, open_refuses_each_bad_argument_with_one_line);
	tcase_add_test(tcase, open_knows_no_object_by_name);
	return tcase;
}

UNIT_MAIN("version", tcase_version)
