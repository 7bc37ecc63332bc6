/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_getinfo says at level info of hints that come back otherwise, and of the rule. */
#include "info/query.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/limits.h"
#include "one_device.h"
#include "unit.h"

#define V1_4 FI_VERSION(1, 4)
#define V17 FI_VERSION(1, 17)

static struct fi_info *hints, *info;
static struct unit_capture capture;
static const char *text; /* what the last call logged */

static void log_level(const char *level)
{
	setenv("FI_LOG_LEVEL", level, 1);
	mrf_log_reload();
}

static void setup(void)
{
	one_device_use();
	log_level("info");
	hints = fi_allocinfo();
	ck_assert_ptr_nonnull(hints);
	hints->domain_attr->mr_mode = FI_MR_LOCAL; /* comes back as it is */
	info = NULL;
}

static void teardown(void)
{
	fi_freeinfo(hints);
	fi_freeinfo(info);
	unsetenv("FI_MRFAB_MR_MODE");
	unsetenv("FI_MRFAB_PROFILE");
	unsetenv("FI_LOG_LEVEL");
	mrf_log_reload();
}

static int get(uint32_t version)
{
	int ret;

	fi_freeinfo(info);
	info = NULL;
	unit_capture(&capture);
	ret = fi_getinfo(version, NULL, NULL, 0, hints, &info);
	text = unit_captured(&capture);
	return ret;
}

/* One line, with these words. */
static void ck_says(uint32_t version, const char *words)
{
	ck_assert_int_eq(get(version), 0);
	ck_assert_msg(strstr(text, words), "no \"%s\" in: %s", words, text);
	ck_assert_uint_eq(unit_lines(text), 1);
}

static void ck_silent(void)
{
	ck_assert_int_eq(get(V17), 0);
	ck_assert_str_eq(text, "");
}

/* --- alterations ------------------------------------------------------------------- */

START_TEST(explain_is_silent_if_everything_comes_back_as_hinted)
{
	ck_silent();
	hints->caps = FI_RMA;
	ck_assert_int_eq(get(V17), 0);
	/* The answer, as hints: each field that is compared is set, and none of them changes. */
	fi_freeinfo(hints);
	hints = fi_dupinfo(info);
	ck_assert_ptr_nonnull(hints);
	ck_silent();
}
END_TEST

START_TEST(explain_names_the_capabilities_that_are_added)
{
	hints->caps = FI_RMA | FI_READ;
	ck_says(V17, "hints->caps=0x104 comes back as 0x18000000000104, with FI_LOCAL_COMM, "
		     "FI_REMOTE_COMM: ");
	hints->caps = FI_RMA | FI_LOCAL_COMM;
	ck_says(V17, "with FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE: a capability "
		     "without a direction has all of them");
}
END_TEST

START_TEST(explain_names_the_directions_that_mean_nothing)
{
	hints->caps = FI_RMA | FI_READ | FI_SEND | FI_LOCAL_COMM;
	ck_says(V17, ", without FI_SEND: a direction of messages means nothing without FI_MSG or "
		     "FI_TAGGED");
}
END_TEST

START_TEST(explain_names_the_orders_that_always_hold)
{
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	ck_says(V17, "hints->tx_attr->msg_order=0x100 comes back as ");
	ck_assert_ptr_nonnull(strstr(text, ": these always hold"));
	ck_assert_ptr_null(strstr(text, "without"));
}
END_TEST

START_TEST(explain_says_which_limit_comes_back)
{
	hints->ep_attr->max_msg_size = 4096;
	ck_says(V17, "hints->ep_attr->max_msg_size=4096 comes back as 1073741824: this is a "
		     "limit");
}
END_TEST

START_TEST(explain_says_which_hints_are_not_compared)
{
	hints->domain_attr->mr_key_size = 16;
	ck_says(V17, "hints->domain_attr->mr_key_size=16 comes back as 8: this hint is not "
		     "compared");
	hints->domain_attr->mr_key_size = 8;
	ck_silent();
	hints->domain_attr->cq_cnt = SIZE_MAX;
	ck_says(V17, "hints->domain_attr->cq_cnt=18446744073709551615 comes back as ");
}
END_TEST

START_TEST(explain_says_which_hints_the_version_does_not_have)
{
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	hints->domain_attr->mr_iov_limit = 99;
	ck_says(V1_4, "hints->domain_attr->mr_iov_limit=99 is ignored: version 1.4 was asked for, "
		      "and the field is known from version 1.5 on");
	ck_assert_int_eq(get(V17), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E1020: hints->domain_attr->mr_iov_limit=99"));
}
END_TEST

START_TEST(explain_is_for_level_info)
{
	hints->caps = FI_RMA;
	hints->domain_attr->mr_mode |= FI_MR_RAW;
	log_level("warn");
	ck_silent();
}
END_TEST

/* --- registration modes ------------------------------------------------------------- */

START_TEST(explain_says_what_becomes_of_mr_mode)
{
	hints->domain_attr->mr_mode = FI_MR_RAW | FI_MR_PROV_KEY;
	ck_says(V17, "mr_mode bits that are not needed and are cleared: FI_MR_RAW");
	hints->domain_attr->mr_mode = 0;
	ck_says(V17, "mr_mode=0 (FI_MR_UNSPEC): accepted; the domain will run without any");
	ck_says(V1_4, "mr_mode=0 (FI_MR_UNSPEC) with version 1.4 comes back as FI_MR_BASIC");
}
END_TEST

START_TEST(explain_says_why_the_old_flag_comes_back)
{
	setenv("FI_MRFAB_MR_MODE", "LOCAL", 1);
	hints->domain_attr->mr_mode = FI_MR_SCALABLE;
	hints->mode = FI_LOCAL_MR;
	ck_says(V17, "mode comes back with FI_LOCAL_MR, because FI_MRFAB_MR_MODE=LOCAL requires "
		     "FI_MR_LOCAL");
}
END_TEST

/* --- profiles ----------------------------------------------------------------------- */

START_TEST(explain_names_the_profile_that_takes_something_away)
{
	setenv("FI_MRFAB_PROFILE", "verbs", 1);
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->mr_iov_limit = 2;
	ck_assert_int_eq(get(V17), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "mr_iov_limit=2: FI_MRFAB_PROFILE=verbs ("));
	ck_assert_ptr_nonnull(strstr(text, ") does not offer more than 1 (-"));
	/* Here nobody offers more. */
	hints->domain_attr->mr_iov_limit = 1;
	hints->domain_attr->max_ep_tx_ctx = 2;
	ck_assert_int_eq(get(V17), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "max_ep_tx_ctx=2: at most 1 is offered (-"));
}
END_TEST

static TCase *tcase_explain(void)
{
	TCase *tc = tcase_create("explain");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, explain_is_silent_if_everything_comes_back_as_hinted);
	tcase_add_test(tc, explain_names_the_capabilities_that_are_added);
	tcase_add_test(tc, explain_names_the_directions_that_mean_nothing);
	tcase_add_test(tc, explain_names_the_orders_that_always_hold);
	tcase_add_test(tc, explain_says_which_limit_comes_back);
	tcase_add_test(tc, explain_says_which_hints_are_not_compared);
	tcase_add_test(tc, explain_says_which_hints_the_version_does_not_have);
	tcase_add_test(tc, explain_is_for_level_info);
	tcase_add_test(tc, explain_says_what_becomes_of_mr_mode);
	tcase_add_test(tc, explain_says_why_the_old_flag_comes_back);
	tcase_add_test(tc, explain_names_the_profile_that_takes_something_away);
	return tc;
}

UNIT_MAIN("explain", tcase_explain)
