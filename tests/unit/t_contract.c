/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/limits.h"
#include "contract/rules.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "unit.h"

START_TEST(rules_hold_from_some_version_on)
{
	static bool (*const rules[])(uint32_t) = {
		mrf_rule_mr_mode_bits,	      mrf_rule_auth_key,
		mrf_rule_len_zero_refused,    mrf_rule_unspec_accepted,
		mrf_rule_region_closes_first,
	};
	size_t rule;

	for (rule = 0; rule < sizeof(rules) / sizeof(rules[0]); rule++) {
		ck_assert(!rules[rule](0));
		ck_assert(rules[rule](FI_VERSION(99, 0)));
	}
}
END_TEST

START_TEST(rule_empty_regions_are_refused_from_1_13)
{
	ck_assert(!mrf_rule_len_zero_refused(FI_VERSION(1, 12)));
	ck_assert(mrf_rule_len_zero_refused(FI_VERSION(1, 13)));
}
END_TEST

START_TEST(rule_authorization_keys_exist_from_1_5)
{
	ck_assert(!mrf_rule_auth_key(FI_VERSION(1, 4)));
	ck_assert(mrf_rule_auth_key(FI_VERSION(1, 5)));
}
END_TEST

START_TEST(rule_mr_mode_is_bits_from_1_5)
{
	ck_assert(!mrf_rule_mr_mode_bits(FI_VERSION(1, 4)));
	ck_assert(mrf_rule_mr_mode_bits(FI_VERSION(1, 5)));
}
END_TEST

START_TEST(rule_mr_mode_zero_is_accepted_from_library_1_16)
{
	ck_assert(!mrf_rule_unspec_accepted(FI_VERSION(1, 15)));
	ck_assert(mrf_rule_unspec_accepted(FI_VERSION(1, 16)));
	ck_assert(mrf_rule_unspec_accepted(MRF_API_VERSION));
}
END_TEST

START_TEST(rule_bound_regions_close_first_from_2_3)
{
	ck_assert(!mrf_rule_region_closes_first(FI_VERSION(1, 17)));
	ck_assert(!mrf_rule_region_closes_first(FI_VERSION(2, 2)));
	ck_assert(mrf_rule_region_closes_first(FI_VERSION(2, 3)));
}
END_TEST

START_TEST(limits_agree_with_each_other)
{
	ck_assert_uint_eq(MRF_CAPS, MRF_CAPS_TX | MRF_CAPS_RX | MRF_CAPS_SECONDARY);
	ck_assert_uint_eq(MRF_CAPS_PRIMARY & MRF_CAPS_SECONDARY, 0);
	ck_assert_uint_eq(MRF_CAPS & MRF_CAPS_EXTRA, 0);
	ck_assert_uint_eq((MRF_CAPS_TX_EXTRA | MRF_CAPS_RX_EXTRA) & ~MRF_CAPS_EXTRA, 0);
	ck_assert_uint_le(MRF_LIMIT_INJECT, 512); /* what every send queue here carries */
	ck_assert_uint_eq(MRF_MSG_ORDER & (FI_ORDER_WAR | FI_ORDER_RMA_WAR), 0);
	ck_assert(MRF_PROTOCOL & FI_PROV_SPECIFIC);
	ck_assert_uint_eq(MRF_API_VERSION, FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION));
}
END_TEST

static TCase *tcase_rules(void)
{
	TCase *tc = tcase_create("rules");

	tcase_add_test(tc, rules_hold_from_some_version_on);
	tcase_add_test(tc, rule_empty_regions_are_refused_from_1_13);
	tcase_add_test(tc, rule_authorization_keys_exist_from_1_5);
	tcase_add_test(tc, rule_mr_mode_is_bits_from_1_5);
	tcase_add_test(tc, rule_mr_mode_zero_is_accepted_from_library_1_16);
	tcase_add_test(tc, rule_bound_regions_close_first_from_2_3);
	tcase_add_test(tc, limits_agree_with_each_other);
	return tc;
}

UNIT_MAIN("contract", tcase_rules)
