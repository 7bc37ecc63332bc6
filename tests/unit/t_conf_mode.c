/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sentences of fi_mr(3) about mr_mode that docs/CONFORMANCE.md lists and no other test
 * shows: the legacy values stand alone, and what FI_LOCAL_MR still means.
 */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/limits.h"
#include "contract/mr_mode.h"
#include "one_device.h"
#include "unit.h"

#define VAK (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define MODERN                                                                                 \
	(FI_MR_LOCAL | FI_MR_RAW | VAK | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT | \
	 FI_MR_HMEM)

static const uint32_t apis[] = { FI_VERSION(1, 4), FI_VERSION(1, 5),  FI_VERSION(1, 7),
				 FI_VERSION(1, 8), FI_VERSION(1, 13), FI_VERSION(1, 17) };
#define NAPIS (sizeof(apis) / sizeof(apis[0]))

static struct mrf_mr_mode_hints ask_for(uint32_t api, uint64_t mr_mode, uint64_t mode)
{
	return (struct mrf_mr_mode_hints){ .api = api,
					   .library = MRF_API_VERSION,
					   .hints = true,
					   .domain_attr = true,
					   .mr_mode = mr_mode,
					   .caps = FI_RMA,
					   .mode = mode };
}

static struct unit_capture cap;

/* fi_getinfo with these hints; *mr_mode and *mode as answered. text: what was logged. */
static int ask_getinfo(uint32_t api, int *mr_mode, uint64_t *mode, const char **text)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	unsetenv("FI_MRFAB_MR_MODE");
	one_device_use();
	ck_assert_ptr_nonnull(hints);
	hints->caps = FI_RMA;
	hints->mode = *mode;
	hints->domain_attr->mr_mode = *mr_mode;
	unit_capture(&cap);
	ret = fi_getinfo(api, NULL, NULL, 0, hints, &info);
	*text = unit_captured(&cap);
	if (!ret) {
		*mr_mode = info->domain_attr->mr_mode;
		*mode = info->mode;
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return ret;
}

/* --- alone --- */

static void log_level(const char *level)
{
	setenv("FI_LOG_LEVEL", level, 1);
	mrf_log_reload();
}

static void refuses_companions(int legacy, const char *name)
{
	const char *text;
	uint64_t mode;
	int bit, mr_mode;
	size_t i;

	log_level("info"); /* where a reason stands why nothing matches */
	for (i = 0; i < NAPIS; i++) {
		for (bit = 1; bit <= MODERN; bit <<= 1) {
			mr_mode = legacy | bit;
			mode = 0;
			if (bit == legacy)
				continue;
			ck_assert_msg(ask_getinfo(apis[i], &mr_mode, &mode, &text) == -FI_ENODATA,
				      "%s with bit %#x at %#x", name, bit, apis[i]);
			ck_assert_ptr_nonnull(strstr(text, "MRF-E1030"));
			ck_assert_ptr_nonnull(strstr(text, name));
			ck_assert_ptr_nonnull(strstr(text, "alone"));
			ck_assert_uint_eq(unit_lines(text), 1);
		}
	}
}

START_TEST(conf_basic_has_no_companion_in_any_version)
{
	refuses_companions(FI_MR_BASIC, "FI_MR_BASIC");
}
END_TEST

START_TEST(conf_scalable_has_no_companion_in_any_version)
{
	refuses_companions(FI_MR_SCALABLE, "FI_MR_SCALABLE");
}
END_TEST

/* --- FI_LOCAL_MR --- */

/* What a provider needs and has, as libfabric's rules take it. */
static const uint64_t tables[] = { FI_MR_BASIC | FI_MR_SCALABLE, FI_MR_BASIC | VAK | FI_MR_LOCAL,
				   FI_MR_BASIC | VAK, FI_MR_BASIC | FI_MR_ALLOCATED | FI_MR_LOCAL,
				   FI_MR_SCALABLE };

/* From 1.5 on, where FI_MR_LOCAL is offered, FI_LOCAL_MR makes no difference. */
START_TEST(conf_local_bit_makes_the_old_flag_irrelevant)
{
	struct mrf_mr_mode_hints with, without;
	uint64_t bits, caps = MRF_CAPS;
	size_t i, t;

	for (i = 1; i < NAPIS; i++) {
		for (t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
			for (bits = FI_MR_LOCAL; bits <= MODERN; bits += FI_MR_LOCAL) {
				if (!(bits & FI_MR_LOCAL))
					continue;
				with = ask_for(apis[i], bits, FI_LOCAL_MR);
				without = ask_for(apis[i], bits, 0);
				ck_assert(mrf_mr_mode_is_local(&with));
				ck_assert(mrf_mr_mode_is_local(&without));
				ck_assert_int_eq(mrf_mr_mode_check(tables[t], &with),
						 mrf_mr_mode_check(tables[t], &without));
				ck_assert_uint_eq(mrf_mr_mode_answer(tables[t], &with, caps),
						  mrf_mr_mode_answer(tables[t], &without, caps));
				ck_assert_uint_eq(mrf_mr_mode_answer_flag(tables[t], &with),
						  mrf_mr_mode_answer_flag(tables[t], &without));
			}
		}
	}
}
END_TEST

/* A program that still offers it gets what it asked for, and is told it is not needed. */
START_TEST(conf_old_local_flag_is_accepted_and_not_required)
{
	static const int offers[] = { FI_MR_UNSPEC, FI_MR_BASIC, FI_MR_SCALABLE };
	const char *text;
	uint64_t mode;
	int mr_mode;
	size_t i, k;

	for (i = 0; i < NAPIS; i++) {
		for (k = 0; k < 3; k++) {
			mode = FI_LOCAL_MR;
			mr_mode = offers[k];
			ck_assert_int_eq(ask_getinfo(apis[i], &mr_mode, &mode, &text), 0);
			ck_assert_uint_eq(mode, 0);
			if (offers[k])
				ck_assert_int_eq(mr_mode, offers[k]);
			ck_assert_str_eq(text, "");
		}
	}
}
END_TEST

/* --- nothing asked for --- */

START_TEST(conf_no_bit_means_the_default_from_1_5_and_scalable_before)
{
	const char *text;
	uint64_t mode;
	int mr_mode, want;
	size_t i;

	for (i = 0; i < NAPIS; i++) {
		mode = 0;
		want = apis[i] < FI_VERSION(1, 5) ? FI_MR_SCALABLE : 0;
		mr_mode = want;
		ck_assert_int_eq(ask_getinfo(apis[i], &mr_mode, &mode, &text), 0);
		ck_assert_int_eq(mr_mode, want);
		ck_assert_uint_eq(mrf_mr_mode_resolve((uint64_t)mr_mode), 0);
	}
}
END_TEST

static TCase *alone(void)
{
	TCase *tc = tcase_create("alone");

	tcase_add_test(tc, conf_basic_has_no_companion_in_any_version);
	tcase_add_test(tc, conf_scalable_has_no_companion_in_any_version);
	return tc;
}

static TCase *local(void)
{
	TCase *tc = tcase_create("local");

	tcase_add_test(tc, conf_local_bit_makes_the_old_flag_irrelevant);
	tcase_add_test(tc, conf_old_local_flag_is_accepted_and_not_required);
	return tc;
}

static TCase *nothing(void)
{
	TCase *tc = tcase_create("nothing");

	tcase_add_test(tc, conf_no_bit_means_the_default_from_1_5_and_scalable_before);
	return tc;
}

UNIT_MAIN("conf_mode", alone, local, nothing)
