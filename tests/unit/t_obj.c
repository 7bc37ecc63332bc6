/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj_fixture.h"

static void describe_seven(const struct fid *fid, char *buf, size_t len)
{
	snprintf(buf, len, "class %zu, key 0x7", fid->fclass);
}

START_TEST(obj_that_nobody_holds_is_not_busy)
{
	struct parent p;

	parent_init(&p, 0);
	ck_quiet(0, mrf_obj_busy(&p.obj));
	parent_fini(&p);
}
END_TEST

START_TEST(obj_busy_names_class_pointer_and_detail_of_the_holder)
{
	struct fid mr = { .fclass = FI_CLASS_MR };
	struct mrf_hold hold;
	struct unit_capture cap;
	const char *said;
	char want[64];
	struct parent p;
	int ret;

	parent_init(&p, 0);
	mrf_obj_hold(&hold, &p.obj, &mr, describe_seven);
	unit_capture(&cap);
	ret = mrf_obj_busy(&p.obj);
	said = unit_captured(&cap);
	ck_assert_int_eq(ret, -FI_EBUSY);
	ck_assert_uint_eq(unit_lines(said), 1);
	snprintf(want, sizeof(want), "memory region %p (class %d, key 0x7)", (void *)&mr,
		 FI_CLASS_MR);
	ck_assert_msg(strstr(said, want) != NULL, "%s", said);
	snprintf(want, sizeof(want), "domain %p", (void *)&p.domain.fid);
	ck_assert_msg(strstr(said, want) != NULL, "%s", said);
	ck_assert_msg(strstr(said, "1 object") != NULL, "%s", said);
	mrf_obj_drop(&hold);
	parent_fini(&p);
}
END_TEST

START_TEST(obj_busy_names_four_holders_and_counts_the_rest)
{
	struct fid ep[6];
	struct mrf_hold hold[6];
	struct unit_capture cap;
	const char *said;
	char name[32];
	struct parent p;
	int i;

	parent_init(&p, 0);
	for (i = 0; i < 6; i++) {
		ep[i] = (struct fid){ .fclass = FI_CLASS_EP };
		mrf_obj_hold(&hold[i], &p.obj, &ep[i], NULL);
	}
	unit_capture(&cap);
	ck_assert_int_eq(mrf_obj_busy(&p.obj), -FI_EBUSY);
	said = unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(said), 1);
	ck_assert_msg(strstr(said, "6 object") && strstr(said, "and 2 more"), "%s", said);
	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "endpoint %p", (void *)&ep[i]);
		ck_assert_msg(!strstr(said, name) == (i >= 4), "%s: %s", name, said);
		mrf_obj_drop(&hold[i]);
	}
	parent_fini(&p);
}
END_TEST

START_TEST(obj_holders_with_long_details_stay_in_bounds)
{
	struct fid mr = { .fclass = FI_CLASS_SRX_CTX };
	struct mrf_hold hold[5];
	struct parent p;
	int i;

	parent_init(&p, 0);
	for (i = 0; i < 5; i++)
		mrf_obj_hold(&hold[i], &p.obj, &mr, i & 1 ? describe_seven : NULL);
	ck_refused(FI_EBUSY, 2001, mrf_obj_busy(&p.obj));
	for (i = 0; i < 5; i++)
		mrf_obj_drop(&hold[i]);
	parent_fini(&p);
}
END_TEST

START_TEST(obj_dropping_twice_or_nothing_is_harmless)
{
	struct fid mr = { .fclass = FI_CLASS_MR };
	struct mrf_hold hold = { .target = NULL };
	struct parent p;

	parent_init(&p, 0);
	mrf_obj_drop(&hold);
	mrf_obj_hold(&hold, &p.obj, &mr, NULL);
	mrf_obj_drop(&hold);
	mrf_obj_drop(&hold);
	ck_assert_ptr_null(hold.target);
	parent_fini(&p);
}
END_TEST

static void *hold_and_drop(void *arg)
{
	struct parent *p = arg;
	struct fid mr = { .fclass = FI_CLASS_MR };
	struct mrf_hold hold;
	int i;

	for (i = 0; i < 20000; i++) {
		mrf_obj_hold(&hold, &p->obj, &mr, describe_seven);
		mrf_obj_drop(&hold);
	}
	return NULL;
}

START_TEST(obj_may_be_held_and_dropped_by_many_threads)
{
	pthread_t thread[4];
	struct parent p;
	int i;

	parent_init(&p, 0);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, hold_and_drop, &p), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	parent_fini(&p);
}
END_TEST

START_TEST(obj_class_names_are_words_for_every_class)
{
	ck_assert_str_eq(mrf_obj_class_name(FI_CLASS_MR), "memory region");
	ck_assert_str_eq(mrf_obj_class_name(FI_CLASS_EP), "endpoint");
	ck_assert_str_eq(mrf_obj_class_name(FI_CLASS_CQ), "completion queue");
	ck_assert_str_eq(mrf_obj_class_name(FI_CLASS_UNSPEC), "object");
	ck_assert_str_eq(mrf_obj_class_name(FI_CLASS_PEER_AV_SET), "object");
	ck_assert_str_eq(mrf_obj_class_name(SIZE_MAX), "object");
}
END_TEST

START_TEST(obj_operations_not_offered_answer_enosys_with_one_line)
{
	struct fid cq = { .fclass = FI_CLASS_CQ }, av = { .fclass = FI_CLASS_AV };
	void *ops;

	ck_refused(FI_ENOSYS, 2002, mrf_no_bind(&cq, &av, 0));
	ck_refused(FI_ENOSYS, 2002, mrf_no_bind(&cq, NULL, 1));
	ck_refused(FI_ENOSYS, 2003, mrf_no_control(&cq, FI_ENABLE, NULL));
	ck_refused(FI_ENOSYS, 2004, mrf_no_ops_open(&cq, "x", 0, &ops, NULL));
	ck_refused(FI_ENOSYS, 2004, mrf_no_ops_open(&cq, NULL, 0, &ops, NULL));
	ck_refused(FI_ENOSYS, 2006, mrf_no_ops_set(&cq, "x", 0, &ops, NULL));
	ck_refused(FI_ENOSYS, 2006, mrf_no_ops_set(&cq, NULL, 0, &ops, NULL));
}
END_TEST

START_TEST(obj_api_version_is_its_own_or_the_fabrics_or_the_newest)
{
	struct parent p;

	parent_init(&p, FI_VERSION(1, 7));
	ck_assert_uint_eq(mrf_obj_api_version(&p.obj), FI_VERSION(1, 7));
	p.obj.api_version = 0;
	ck_assert_uint_eq(mrf_obj_api_version(&p.obj),
			  FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION));
	p.obj.fid = &p.fabric.fid;
	p.fabric.api_version = FI_VERSION(1, 4);
	ck_assert_uint_eq(mrf_obj_api_version(&p.obj), FI_VERSION(1, 4));
	parent_fini(&p);
}
END_TEST

START_TEST(obj_err_data_is_copied_into_a_buffer_from_api_1_5)
{
	char buf[8] = "xxxxxxx";
	void *data = buf;
	size_t size = sizeof(buf);

	mrf_obj_err_data(FI_VERSION(1, 5), "why", &data, &size);
	ck_assert_ptr_eq(data, buf);
	ck_assert_uint_eq(size, 4);
	ck_assert_str_eq(buf, "why");

	size = 3;
	mrf_obj_err_data(FI_VERSION(1, 17), "because", &data, &size);
	ck_assert_uint_eq(size, 3);
	ck_assert_str_eq(buf, "be");

	size = 3;
	mrf_obj_err_data(FI_VERSION(1, 17), "", &data, &size);
	ck_assert_uint_eq(size, 0);
	ck_assert_str_eq(buf, "");
}
END_TEST

START_TEST(obj_err_data_is_the_librarys_without_a_buffer_or_before_1_5)
{
	static const char text[] = "why";
	char buf[8] = "old";
	void *data = buf;
	size_t size = 0;

	mrf_obj_err_data(FI_VERSION(1, 17), text, &data, &size);
	ck_assert_ptr_eq(data, text);
	ck_assert_uint_eq(size, 4);
	data = NULL;
	size = 99;
	mrf_obj_err_data(FI_VERSION(1, 17), text, &data, &size);
	ck_assert_ptr_eq(data, text);
	ck_assert_uint_eq(size, 4);
	data = buf;
	size = sizeof(buf);
	mrf_obj_err_data(FI_VERSION(1, 4), text, &data, &size);
	ck_assert_ptr_eq(data, text);
	ck_assert_str_eq(buf, "old");
	size = 0;
	mrf_obj_err_data(FI_VERSION(1, 17), "", &data, &size);
	ck_assert_ptr_null(data);
	ck_assert_uint_eq(size, 0);
}
END_TEST

START_TEST(obj_strerror_prefers_the_text_and_names_the_code_without)
{
	char buf[8];

	ck_assert_str_eq(mrf_obj_strerror(4001, "the reason", NULL, 0), "the reason");
	ck_assert_ptr_eq(mrf_obj_strerror(4001, "the reason", buf, sizeof(buf)), buf);
	ck_assert_str_eq(buf, "the rea");
	ck_assert_ptr_nonnull(strstr(mrf_obj_strerror(4001, NULL, NULL, 0), "MRF-E4001"));
	ck_assert_ptr_nonnull(strstr(mrf_obj_strerror(4001, "", NULL, 0), "MRF-E4001"));
	ck_assert_ptr_null(strstr(mrf_obj_strerror(0, NULL, NULL, 0), "MRF-E"));
	ck_assert_int_gt((int)strlen(mrf_obj_strerror(0, NULL, NULL, 0)), 0);
}
END_TEST

static TCase *tcase_obj(void)
{
	TCase *tc = tcase_create("obj");

	tcase_add_test(tc, obj_that_nobody_holds_is_not_busy);
	tcase_add_test(tc, obj_busy_names_class_pointer_and_detail_of_the_holder);
	tcase_add_test(tc, obj_busy_names_four_holders_and_counts_the_rest);
	tcase_add_test(tc, obj_holders_with_long_details_stay_in_bounds);
	tcase_add_test(tc, obj_dropping_twice_or_nothing_is_harmless);
	tcase_add_test(tc, obj_may_be_held_and_dropped_by_many_threads);
	tcase_add_test(tc, obj_class_names_are_words_for_every_class);
	tcase_add_test(tc, obj_operations_not_offered_answer_enosys_with_one_line);
	tcase_add_test(tc, obj_api_version_is_its_own_or_the_fabrics_or_the_newest);
	tcase_add_test(tc, obj_err_data_is_copied_into_a_buffer_from_api_1_5);
	tcase_add_test(tc, obj_err_data_is_the_librarys_without_a_buffer_or_before_1_5);
	tcase_add_test(tc, obj_strerror_prefers_the_text_and_names_the_code_without);
	return tc;
}

UNIT_MAIN("obj", tcase_obj)
