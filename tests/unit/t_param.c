/* SPDX-License-Identifier: BSD-2-Clause */
#include "fork_inside.h"
#include "unit.h"
#include "base/compiler.h"
#include "base/param.h"
#include <rdma/fi_errno.h>
#include <ctype.h>
#include <limits.h>
#include <stdint.h>

static struct unit_capture cap;
static struct fi_provider prov = { .name = "foo-Bar" };

static void own_setup(void)
{
	unsetenv("FI_MRFAB_RETRY_COUNT");
	unsetenv("FI_MRFAB_IFACE");
	unsetenv("FI_MR_CACHE_MAX_SIZE");
	unsetenv("FI_MR_CACHE_MAX_COUNT");
	unsetenv("FI_MR_CACHE_MERGE_REGIONS");
	mrf_env_reload();
}

/* --- values ----------------------------------------------------------------------- */

START_TEST(param_parse_int)
{
	static const struct {
		const char *text;
		int ret, value;
	} rows[] = {
		{ "12", 0, 12 },
		{ "0x10", 0, 16 },
		{ "010", 0, 8 },
		{ " 5", 0, 5 },
		{ "3 ", 0, 3 },
		{ "-5", 0, -5 },
		{ "2147483647", 0, INT_MAX },
		{ "-2147483648", 0, INT_MIN },
		{ "2147483648", -FI_EINVAL, 77 },
		{ "-2147483649", -FI_EINVAL, 77 },
		{ "99999999999999999999999", -FI_EINVAL, 77 },
		{ "12abc", -FI_EINVAL, 77 },
		{ "abc", -FI_EINVAL, 77 },
		{ "1 2", -FI_EINVAL, 77 },
		{ "", -FI_EINVAL, 77 },
		{ " ", -FI_EINVAL, 77 },
		{ "1k", -FI_EINVAL, 77 },
	};
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		int value = 77;

		ck_assert_msg(mrf_env_parse(FI_PARAM_INT, rows[i].text, &value) == rows[i].ret,
			      "'%s'", rows[i].text);
		ck_assert_int_eq(value, rows[i].value);
	}
}
END_TEST

START_TEST(param_parse_size)
{
	static const struct {
		const char *text;
		int ret;
		size_t value;
	} rows[] = {
		{ "0", 0, 0 },
		{ "4096", 0, 4096 },
		{ "0x1000", 0, 4096 },
		{ "-1", 0, SIZE_MAX },
		{ " -1", 0, SIZE_MAX },
		{ "-2", -FI_EINVAL, 77 },
		{ "-0x7", -FI_EINVAL, 77 },
		{ "1k", -FI_EINVAL, 77 },
		{ "", -FI_EINVAL, 77 },
		{ "99999999999999999999999", -FI_EINVAL, 77 },
	};
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		size_t value = 77;

		ck_assert_msg(mrf_env_parse(FI_PARAM_SIZE_T, rows[i].text, &value) == rows[i].ret,
			      "'%s'", rows[i].text);
		ck_assert_uint_eq(value, rows[i].value);
	}
}
END_TEST

START_TEST(param_parse_bool)
{
	static const char *const yes[] = { "1", "yes", "YES", "on", "On", "true", "TRUE" };
	static const char *const no[] = { "0", "no", "No", "off", "OFF", "false", "False" };
	static const char *const bad[] = { "2", "", "maybe", "y", "n", "t", "f", "yesss", "-1" };
	size_t i;
	int value;

	for (i = 0; i < MRF_ARRAY_SIZE(yes); i++) {
		value = 77;
		ck_assert_int_eq(mrf_env_parse(FI_PARAM_BOOL, yes[i], &value), 0);
		ck_assert_int_eq(value, 1);
		ck_assert_int_eq(mrf_env_parse(FI_PARAM_BOOL, no[i], &value), 0);
		ck_assert_int_eq(value, 0);
	}
	for (i = 0; i < MRF_ARRAY_SIZE(bad); i++) {
		value = 77;
		ck_assert_int_eq(mrf_env_parse(FI_PARAM_BOOL, bad[i], &value), -FI_EINVAL);
		ck_assert_int_eq(value, 77);
	}
}
END_TEST

START_TEST(param_parse_knows_four_types)
{
	const char *text = "a b", *value = NULL;

	ck_assert_int_eq(mrf_env_parse(FI_PARAM_STRING, text, &value), 0);
	ck_assert_ptr_eq(value, text);
	ck_assert_int_eq(mrf_env_parse((enum fi_param_type)4, "1", &value), -FI_EINVAL);
	ck_assert_ptr_eq(value, text);
}
END_TEST

/* --- of applications and providers -------------------------------------------------- */

START_TEST(param_get_before_it_is_defined_and_before_it_is_set)
{
	int value = 77;

	ck_assert_int_eq(fi_param_get(&prov, "early", &value), -FI_ENOENT);
	ck_assert_int_eq(fi_param_define(&prov, "early", FI_PARAM_INT, "help"), 0);
	unsetenv("FI_FOO-BAR_EARLY");
	ck_assert_int_eq(fi_param_get_int(&prov, "early", &value), -FI_ENODATA);
	ck_assert_int_eq(value, 77);
	setenv("FI_FOO-BAR_EARLY", "5", 1);
	ck_assert_int_eq(fi_param_get_int(&prov, "early", &value), 0);
	ck_assert_int_eq(value, 5);
	/* Asked anew each time. */
	setenv("FI_FOO-BAR_EARLY", "6", 1);
	ck_assert_int_eq(fi_param_get_int(&prov, "early", &value), 0);
	ck_assert_int_eq(value, 6);
	ck_assert_int_eq(fi_param_get(NULL, "early", &value), -FI_ENOENT);
}
END_TEST

START_TEST(param_names_are_capitals_with_and_without_a_provider)
{
	struct fi_provider two = { .name = "two" };
	char *text = NULL;

	ck_assert_int_eq(fi_param_define(NULL, "coreish", FI_PARAM_STRING, "h"), 0);
	ck_assert_int_eq(fi_param_define(&two, "coreish", FI_PARAM_STRING, "h"), 0);
	setenv("FI_COREISH", "plain", 1);
	setenv("FI_TWO_COREISH", "", 1);
	ck_assert_int_eq(fi_param_get_str(NULL, "coreish", &text), 0);
	ck_assert_str_eq(text, "plain");
	ck_assert_int_eq(fi_param_get_str(&two, "coreish", &text), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(param_get_every_type)
{
	size_t size = 77;
	int flag = 77;

	ck_assert_int_eq(fi_param_define(&prov, "flag", FI_PARAM_BOOL, "h"), 0);
	ck_assert_int_eq(fi_param_define(&prov, "size", FI_PARAM_SIZE_T, "h"), 0);
	setenv("FI_FOO-BAR_FLAG", "on", 1);
	setenv("FI_FOO-BAR_SIZE", "-1", 1);
	ck_assert_int_eq(fi_param_get_bool(&prov, "flag", &flag), 0);
	ck_assert_int_eq(flag, 1);
	ck_assert_int_eq(fi_param_get_size_t(&prov, "size", &size), 0);
	ck_assert_uint_eq(size, SIZE_MAX);
}
END_TEST

START_TEST(param_get_of_a_malformed_value_says_what_it_must_be)
{
	int value = 77;

	ck_assert_int_eq(fi_param_define(&prov, "bad", FI_PARAM_INT, "h"), 0);
	setenv("FI_FOO-BAR_BAD", "12abc", 1);
	unit_capture(&cap);
	ck_assert_int_eq(fi_param_get_int(&prov, "bad", &value), -FI_EINVAL);
	unit_captured(&cap);
	ck_assert_int_eq(value, 77);
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	ck_assert_ptr_nonnull(
		strstr(cap.text, "MRF-E5918: FI_FOO-BAR_BAD=\"12abc\": the value must be an int"));
}
END_TEST

static void refused(int ret, const char *code)
{
	ck_assert_int_eq(ret, -FI_EINVAL);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	ck_assert_msg(strstr(cap.text, code) != NULL, "%s", cap.text);
	unit_capture(&cap);
}

START_TEST(param_calls_refuse_bad_arguments)
{
	static char long_name[FI_PATH_MAX + 1];
	struct fi_param *params;
	int value;

	memset(long_name, 'n', sizeof(long_name) - 1);
	unit_capture(&cap);
	refused(fi_param_define(&prov, NULL, FI_PARAM_INT, "h"), "MRF-E5911");
	refused(fi_param_define(&prov, "", FI_PARAM_INT, "h"), "MRF-E5911");
	refused(fi_param_define(&prov, "x", FI_PARAM_INT, NULL), "MRF-E5911");
	refused(fi_param_define(&prov, "x", (enum fi_param_type)4, "h"), "MRF-E5912");
	refused(fi_param_define(&prov, long_name, FI_PARAM_INT, "h"), "MRF-E5913");
	refused(fi_param_define(NULL, "log_level", FI_PARAM_INT, "h"), "MRF-E5914");
	refused(fi_param_get(&prov, NULL, &value), "MRF-E5917");
	refused(fi_param_get(&prov, "x", NULL), "MRF-E5917");
	refused(fi_getparams(NULL, &value), "MRF-E5919");
	refused(fi_getparams(&params, NULL), "MRF-E5919");
	unit_captured(&cap);
	ck_assert_int_eq(fi_param_get(&prov, long_name, &value), -FI_ENOENT);
}
END_TEST

static const struct fi_param *row_of(const struct fi_param *params, const char *name)
{
	for (; params->name; params++) {
		if (!strcmp(params->name, name))
			return params;
	}
	return NULL;
}

START_TEST(param_define_again_replaces_the_help_but_not_the_type)
{
	struct fi_param *params;
	int count, i, seen = 0;

	ck_assert_int_eq(fi_param_define(&prov, "twice", FI_PARAM_INT, "one %d", 1), 0);
	ck_assert_int_eq(fi_param_define(&prov, "twice", FI_PARAM_INT, "two %d", 2), 0);
	unit_capture(&cap);
	refused(fi_param_define(&prov, "twice", FI_PARAM_BOOL, "three"), "MRF-E5916");
	unit_captured(&cap);
	ck_assert_int_eq(fi_getparams(&params, &count), 0);
	for (i = 0; i < count; i++) {
		if (strcmp(params[i].name, "FI_FOO-BAR_TWICE"))
			continue;
		seen++;
		ck_assert_str_eq(params[i].help_string, "foo-Bar: two 2");
		ck_assert_int_eq(params[i].type, FI_PARAM_INT);
	}
	fi_freeparams(params);
	ck_assert_int_eq(seen, 1);
}
END_TEST

/* --- the list --------------------------------------------------------------------- */

START_TEST(param_list_has_ours_first_and_all_of_theirs)
{
	struct fi_param *params;
	const struct fi_param *row;
	int count, before;

	ck_assert_int_eq(fi_getparams(&params, &before), 0);
	ck_assert_int_ge(before, MRF_PARAM_COUNT);
	fi_freeparams(params);
	ck_assert_int_eq(fi_param_define(&prov, "listed", FI_PARAM_SIZE_T, "of %s", "x"), 0);
	ck_assert_int_eq(fi_param_define(NULL, "listed", FI_PARAM_STRING, "plain"), 0);
	setenv("FI_FOO-BAR_LISTED", "nonsense is listed as it is", 1);
	unsetenv("FI_LISTED");
	ck_assert_int_eq(fi_getparams(&params, &count), 0);
	ck_assert_int_eq(count, before + 2);
	ck_assert_ptr_null(params[count].name);
	row = row_of(params, "FI_FOO-BAR_LISTED");
	ck_assert_ptr_eq(row, &params[before]);
	ck_assert_int_eq(row->type, FI_PARAM_SIZE_T);
	ck_assert_str_eq(row->help_string, "foo-Bar: of x");
	ck_assert_str_eq(row->value, "nonsense is listed as it is");
	row = row_of(params, "FI_LISTED");
	ck_assert_str_eq(row->help_string, "plain");
	ck_assert_ptr_null(row->value);
	fi_freeparams(params);
	fi_freeparams(NULL);
}
END_TEST

/* The end of the help of a variable that is not set; "": its default is in words. */
static const char *default_of(const struct fi_param *param, enum mrf_param which, char *buf,
			      size_t len)
{
	*buf = '\0';
	switch (param->type) {
	case FI_PARAM_INT:
		snprintf(buf, len, "(default: %ld)", mrf_param_int(which));
		break;
	case FI_PARAM_BOOL:
		snprintf(buf, len, "(default: %s)", mrf_param_bool(which) ? "yes" : "no");
		break;
	case FI_PARAM_SIZE_T:
		if (mrf_param_size(which) == SIZE_MAX)
			snprintf(buf, len, "(default: unlimited)");
		else
			snprintf(buf, len, "(default: %zu)", mrf_param_size(which));
		break;
	default:
		break;
	}
	return buf;
}

START_TEST(param_list_of_ours_is_complete_and_says_the_defaults)
{
	struct fi_param *params;
	char buf[32];
	int count, i;

	own_setup();
	ck_assert_int_eq(fi_getparams(&params, &count), 0);
	for (i = 0; i < MRF_PARAM_COUNT; i++) {
		ck_assert_int_eq(strncmp(params[i].name, "FI_", 3), 0);
		ck_assert_ptr_nonnull(strstr(params[i].help_string, "(default: "));
		ck_assert_msg(params[i].value || strstr(params[i].help_string,
							default_of(&params[i], (enum mrf_param)i,
								   buf, sizeof(buf))),
			      "%s: %s", params[i].name, params[i].help_string);
	}
	ck_assert_str_eq(params[MRF_PARAM_PROVIDER].name, "FI_PROVIDER");
	ck_assert_str_eq(params[MRF_PARAM_LOG_LEVEL].name, "FI_LOG_LEVEL");
	ck_assert_str_eq(params[MRF_PARAM_CONN_TIMEOUT].name, "FI_MRFAB_CONN_TIMEOUT");
	fi_freeparams(params);
}
END_TEST

/* --- ours ------------------------------------------------------------------------- */

START_TEST(param_own_text_is_read_once)
{
	ck_assert_ptr_null(mrf_env_str(MRF_PARAM_IFACE));
	setenv("FI_MRFAB_IFACE", "rxe0", 1);
	ck_assert_ptr_null(mrf_env_str(MRF_PARAM_IFACE));
	mrf_env_reload();
	ck_assert_str_eq(mrf_env_str(MRF_PARAM_IFACE), "rxe0");
	unsetenv("FI_MRFAB_IFACE");
	ck_assert_str_eq(mrf_env_str(MRF_PARAM_IFACE), "rxe0");
}
END_TEST

static const char *listed(const char *name, char *buf, size_t len)
{
	struct fi_param *params;
	int count, i;

	*buf = '\0';
	ck_assert_int_eq(fi_getparams(&params, &count), 0);
	for (i = 0; i < count; i++) {
		if (!strcmp(params[i].name, name) && params[i].value)
			snprintf(buf, len, "%s", params[i].value);
	}
	fi_freeparams(params);
	return buf;
}

START_TEST(param_required_modes_are_read_each_time)
{
	char buf[32];

	unsetenv("FI_MRFAB_MR_MODE");
	ck_assert_ptr_null(mrf_env_str(MRF_PARAM_MR_MODE));
	setenv("FI_MRFAB_MR_MODE", "RAW", 1);
	ck_assert_str_eq(mrf_env_str(MRF_PARAM_MR_MODE), "RAW");
	setenv("FI_MRFAB_MR_MODE", "LOCAL", 1);
	ck_assert_str_eq(mrf_env_str(MRF_PARAM_MR_MODE), "LOCAL");
	ck_assert_str_eq(listed("FI_MRFAB_MR_MODE", buf, sizeof(buf)), "LOCAL");
	unsetenv("FI_MRFAB_MR_MODE");
	ck_assert_ptr_null(mrf_env_str(MRF_PARAM_MR_MODE));
	ck_assert_str_eq(listed("FI_MRFAB_MR_MODE", buf, sizeof(buf)), "");
}
END_TEST

START_TEST(param_own_number_in_range_is_used)
{
	ck_assert_int_eq(mrf_param_int(MRF_PARAM_RETRY), 6);
	setenv("FI_MRFAB_RETRY_COUNT", "1", 1);
	mrf_env_reload();
	ck_assert_int_eq(mrf_param_int(MRF_PARAM_RETRY), 1);
}
END_TEST

/* Whoever passes a variable on that is not set passes on an empty one. */
START_TEST(param_that_is_empty_counts_as_not_set)
{
	int i;

	for (i = 0; i < MRF_PARAM_COUNT; i++)
		setenv(mrf_env_row((enum mrf_param)i)->name, "", 1);
	mrf_env_reload();
	unit_capture(&cap);
	ck_assert_int_eq(mrf_param_int(MRF_PARAM_RETRY), 6);
	ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_COUNT), 1024);
	ck_assert(mrf_param_bool(MRF_PARAM_CUDA_MONITOR));
	ck_assert_str_eq(unit_captured(&cap), "");
	for (i = 0; i < MRF_PARAM_COUNT; i++) {
		const char *text = mrf_env_str((enum mrf_param)i);

		if (i == MRF_PARAM_PROVIDER || i == MRF_PARAM_LOG_PROV || i == MRF_PARAM_LOG_SUBSYS)
			ck_assert_str_eq(text, "");
		else
			ck_assert_msg(!text, "%s", mrf_env_row((enum mrf_param)i)->name);
		unsetenv(mrf_env_row((enum mrf_param)i)->name);
	}
	mrf_env_reload();
}
END_TEST

START_TEST(param_own_number_that_is_wrong_is_said_once_and_not_used)
{
	static const char *const bad[] = { "0", "7", "-1", "many", " ", "3x" };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(bad); i++) {
		setenv("FI_MRFAB_RETRY_COUNT", bad[i], 1);
		mrf_env_reload();
		unit_capture(&cap);
		ck_assert_int_eq(mrf_param_int(MRF_PARAM_RETRY), 6);
		ck_assert_int_eq(mrf_param_int(MRF_PARAM_RETRY), 6);
		unit_captured(&cap);
		ck_assert_uint_eq(unit_lines(cap.text), 1);
		ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W5903: FI_MRFAB_RETRY_COUNT="));
		ck_assert_ptr_nonnull(strstr(cap.text, "from 1 to 6; 6 is in force"));
	}
}
END_TEST

/* --- those of the cache ------------------------------------------------------------ */

static void set(const char *name, const char *value)
{
	setenv(name, value, 1);
	mrf_env_reload();
}

START_TEST(param_cache_has_no_limit_of_bytes_and_one_of_1024_regions)
{
	ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_SIZE), SIZE_MAX);
	ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_COUNT), 1024);
	ck_assert(!mrf_param_bool(MRF_PARAM_CACHE_MERGE));
}
END_TEST

START_TEST(param_cache_limits_are_sizes)
{
	set("FI_MR_CACHE_MAX_SIZE", "0x300000000");
	ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_SIZE), (size_t)3 << 32);
	set("FI_MR_CACHE_MAX_SIZE", "-1");
	ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_SIZE), SIZE_MAX);
	set("FI_MR_CACHE_MAX_SIZE", "18446744073709551614");
	ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_SIZE), SIZE_MAX - 1);
	set("FI_MR_CACHE_MAX_SIZE", "0");
	ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_SIZE), 0);
	set("FI_MR_CACHE_MAX_COUNT", "0");
	ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_COUNT), 0);
}
END_TEST

START_TEST(param_cache_merges_with_true_yes_or_1)
{
	static const char *const yes[] = { "true", "yes", "1" };
	static const char *const no[] = { "false", "no", "0" };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(yes); i++) {
		set("FI_MR_CACHE_MERGE_REGIONS", yes[i]);
		ck_assert(mrf_param_bool(MRF_PARAM_CACHE_MERGE));
		set("FI_MR_CACHE_MERGE_REGIONS", no[i]);
		ck_assert(!mrf_param_bool(MRF_PARAM_CACHE_MERGE));
	}
}
END_TEST

START_TEST(param_device_monitors_are_on_unless_0)
{
	static const struct {
		const char *name;
		enum mrf_param which;
	} rows[] = {
		{ "FI_MR_CUDA_CACHE_MONITOR_ENABLED", MRF_PARAM_CUDA_MONITOR },
		{ "FI_MR_ROCR_CACHE_MONITOR_ENABLED", MRF_PARAM_ROCR_MONITOR },
		{ "FI_MR_ZE_CACHE_MONITOR_ENABLED", MRF_PARAM_ZE_MONITOR },
	};
	char buf[32];
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		unsetenv(rows[i].name);
		mrf_env_reload();
		ck_assert(mrf_param_bool(rows[i].which));
		set(rows[i].name, "0");
		ck_assert(!mrf_param_bool(rows[i].which));
		set(rows[i].name, "1");
		ck_assert(mrf_param_bool(rows[i].which));
		ck_assert_str_eq(listed(rows[i].name, buf, sizeof(buf)), "1");
	}
}
END_TEST

START_TEST(param_size_or_bool_that_is_wrong_is_said_once_and_not_used)
{
	static const char *const bad[] = { "-2", "many", " ", "3x", "1k" };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(bad); i++) {
		setenv("FI_MR_CACHE_MERGE_REGIONS", bad[i], 1);
		set("FI_MR_CACHE_MAX_COUNT", bad[i]);
		unit_capture(&cap);
		ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_COUNT), 1024);
		ck_assert_uint_eq(mrf_param_size(MRF_PARAM_CACHE_COUNT), 1024);
		ck_assert(!mrf_param_bool(MRF_PARAM_CACHE_MERGE));
		ck_assert(!mrf_param_bool(MRF_PARAM_CACHE_MERGE));
		unit_captured(&cap);
		ck_assert_uint_eq(unit_lines(cap.text), 2);
		ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W5905: FI_MR_CACHE_MAX_COUNT="));
		ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W5906: FI_MR_CACHE_MERGE_REGIONS="));
		ck_assert_ptr_nonnull(strstr(cap.text, "; no is in force"));
	}
}
END_TEST

START_TEST(param_own_can_be_asked_for_by_name)
{
	struct fi_provider ours = { .name = "mrfab" };
	int value = 0;

	ck_assert_int_eq(fi_param_get_int(&ours, "retry_count", &value), -FI_ENODATA);
	setenv("FI_MRFAB_RETRY_COUNT", "4", 1);
	ck_assert_int_eq(fi_param_get_int(&ours, "retry_count", &value), 0);
	ck_assert_int_eq(value, 4);
}
END_TEST

/* --- forks ------------------------------------------------------------------------ */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	stop_inside();
	return __real_calloc(n, size);
}

static void *list(void *arg)
{
	struct fi_param *params;
	int count;

	ck_assert_int_eq(fi_getparams(&params, &count), 0);
	fi_freeparams(params);
	return arg;
}

static bool defines(void)
{
	return !fi_param_define(&prov, "forked", FI_PARAM_INT, "in a child");
}

START_TEST(param_child_that_is_forked_while_they_are_listed_defines_one)
{
	ck_assert(child_of_fork_inside_ends(list, NULL, defines));
}
END_TEST

static TCase *tcase_values(void)
{
	TCase *tcase = tcase_create("values");

	tcase_add_test(tcase, param_parse_int);
	tcase_add_test(tcase, param_parse_size);
	tcase_add_test(tcase, param_parse_bool);
	tcase_add_test(tcase, param_parse_knows_four_types);
	return tcase;
}

static TCase *tcase_theirs(void)
{
	TCase *tcase = tcase_create("theirs");

	tcase_add_test(tcase, param_get_before_it_is_defined_and_before_it_is_set);
	tcase_add_test(tcase, param_names_are_capitals_with_and_without_a_provider);
	tcase_add_test(tcase, param_get_every_type);
	tcase_add_test(tcase, param_get_of_a_malformed_value_says_what_it_must_be);
	tcase_add_test(tcase, param_calls_refuse_bad_arguments);
	tcase_add_test(tcase, param_define_again_replaces_the_help_but_not_the_type);
	tcase_add_test(tcase, param_list_has_ours_first_and_all_of_theirs);
	tcase_add_test(tcase, param_child_that_is_forked_while_they_are_listed_defines_one);
	tcase_add_test(tcase, param_list_of_ours_is_complete_and_says_the_defaults);
	return tcase;
}

static TCase *tcase_ours(void)
{
	TCase *tcase = tcase_create("ours");

	tcase_add_checked_fixture(tcase, own_setup, own_setup);
	tcase_add_test(tcase, param_own_text_is_read_once);
	tcase_add_test(tcase, param_required_modes_are_read_each_time);
	tcase_add_test(tcase, param_own_number_in_range_is_used);
	tcase_add_test(tcase, param_that_is_empty_counts_as_not_set);
	tcase_add_test(tcase, param_own_number_that_is_wrong_is_said_once_and_not_used);
	tcase_add_test(tcase, param_cache_has_no_limit_of_bytes_and_one_of_1024_regions);
	tcase_add_test(tcase, param_cache_limits_are_sizes);
	tcase_add_test(tcase, param_cache_merges_with_true_yes_or_1);
	tcase_add_test(tcase, param_device_monitors_are_on_unless_0);
	tcase_add_test(tcase, param_size_or_bool_that_is_wrong_is_said_once_and_not_used);
	tcase_add_test(tcase, param_own_can_be_asked_for_by_name);
	return tcase;
}

UNIT_MAIN("param", tcase_values, tcase_theirs, tcase_ours)
