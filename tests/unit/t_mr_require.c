/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_MR_MODE through the whole of fi_getinfo, fi_fabric and fi_domain, on one fake
 * device: what is required comes back and opens, what is missing is named.
 */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/names.h"
#include "contract/limits.h"
#include "contract/mr_offer.h"
#include "domain/domain.h"
#include "proto/rawkey.h"
#include "../fake/fake_verbs.h"
#include "one_device.h"
#include "unit.h"

#define VAR "FI_MRFAB_MR_MODE"
#define V1_4 FI_VERSION(1, 4)
#define V17 FI_VERSION(1, 17)
#define VAK (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define ALL ((int)MRF_MR_REQUIRABLE)
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
/* What is offered beside FI_RMA and its directions. */
#define NOT_RMA (FI_ATOMIC | FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV)
#define CAPS (MRF_CAPS & ~NOT_RMA) /* of FI_RMA */
#define COMM (FI_LOCAL_COMM | FI_REMOTE_COMM)

static struct unit_capture cap;
static const char *text; /* what the last call logged */
static struct fi_info *hints, *info;

static void setup(void)
{
	fake_verbs_reset();
	one_device_use();
	unsetenv(VAR);
	hints = fi_allocinfo();
	ck_assert_ptr_nonnull(hints);
	hints->caps = FI_RMA;
	info = NULL;
	text = "";
}

static void teardown(void)
{
	fi_freeinfo(hints);
	fi_freeinfo(info);
	hints = info = NULL;
	unsetenv(VAR);
}

static void require(const char *value)
{
	ck_assert_int_eq(setenv(VAR, value, 1), 0);
}

static void require_set(int set)
{
	char number[16];

	snprintf(number, sizeof(number), "%#x", (unsigned)set);
	require(number);
}

static int get(uint32_t version, const struct fi_info *use)
{
	int ret;

	fi_freeinfo(info);
	info = NULL;
	unit_capture(&cap);
	ret = fi_getinfo(version, NULL, NULL, 0, use, &info);
	text = unit_captured(&cap);
	return ret;
}

static int offer(int mr_mode)
{
	hints->domain_attr->mr_mode = mr_mode;
	return get(V17, hints);
}

/* The only line, with this code and these words. */
static void ck_line(const char *code, const char *words)
{
	ck_assert_msg(strstr(text, code) && strstr(text, words), "no %s with \"%s\" in: %s", code,
		      words, text);
	ck_assert_uint_eq(unit_lines(text), 1);
}

/* Opens what fi_getinfo has returned; the mode that the domain runs. */
static uint64_t open_info(void)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	uint64_t mode;

	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	mode = mrf_domain_from_fid(domain)->space.mode;
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	return mode;
}

/* --- what comes back ---------------------------------------------------------------- */

START_TEST(require_every_set_comes_back_and_opens)
{
	int set;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		require_set(set);
		ck_assert_int_eq(offer(set | FI_MR_LOCAL), 0);
		ck_assert_int_eq(info->domain_attr->mr_mode, set);
		ck_assert_int_eq(offer(ALL | FI_MR_HMEM), 0);
		ck_assert_int_eq(info->domain_attr->mr_mode, set);
		ck_assert_uint_eq(info->mode, 0);
		ck_assert_uint_eq(info->caps, CAPS);
		ck_assert_uint_eq(open_info(), (uint64_t)set);
		ck_assert_str_eq(text, "");
	}
}
END_TEST

START_TEST(require_every_missing_bit_is_named_with_the_variable)
{
	char words[96], variable[64], names[64];
	int set, bit;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		require_set(set);
		snprintf(variable, sizeof(variable), VAR "=%#x requires FI_MR_", (unsigned)set);
		for (bit = FI_MR_LOCAL; bit <= FI_MR_ENDPOINT; bit <<= 1) {
			if (!(set & bit))
				continue;
			ck_assert_int_eq(offer(ALL & ~bit), -FI_ENODATA);
			mrf_names_bits(&mrf_names_mr_mode, (uint64_t)bit, names, sizeof(names));
			snprintf(words, sizeof(words), "missing: %s; to pass, set", names);
			ck_line("MRF-E1032", words);
			ck_line("MRF-E1032", variable);
		}
	}
}
END_TEST

START_TEST(require_all_that_is_missing_is_named)
{
	require("LOCAL,Raw,endpoint");
	ck_assert_int_eq(offer(FI_MR_RAW | FI_MR_VIRT_ADDR), -FI_ENODATA);
	ck_line("MRF-E1032", "missing: FI_MR_LOCAL, FI_MR_ENDPOINT; to pass, set");
	ck_line("MRF-E1032", VAR "=LOCAL,Raw,endpoint requires FI_MR_LOCAL, FI_MR_RAW, "
				 "FI_MR_ENDPOINT;");
	ck_line("MRF-E1032", "mr_mode=0x18 (FI_MR_RAW, FI_MR_VIRT_ADDR)");
}
END_TEST

START_TEST(require_is_read_at_every_call)
{
	require("RAW");
	ck_assert_int_eq(offer(FI_MR_RAW), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_RAW);
	require("LOCAL");
	ck_assert_int_eq(offer(FI_MR_RAW), -FI_ENODATA);
	ck_assert_int_eq(offer(FI_MR_LOCAL | FI_MR_RAW), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_LOCAL);
	unsetenv(VAR);
	ck_assert_int_eq(offer(FI_MR_LOCAL | FI_MR_RAW), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_LOCAL);
	ck_assert_int_eq(offer(FI_MR_VIRT_ADDR | FI_MR_RAW), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_VIRT_ADDR);
}
END_TEST

START_TEST(require_nothing_gives_nothing)
{
	static const char *const values[] = { "0", "UNSPEC", "FI_MR_UNSPEC", "SCALABLE" };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(values); i++) {
		require(values[i]);
		ck_assert_int_eq(offer(FI_MR_LOCAL | VAK), 0);
		ck_assert_int_eq(info->domain_attr->mr_mode, 0);
		ck_assert_int_eq(offer(FI_MR_SCALABLE), 0);
		ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_SCALABLE);
		ck_assert_int_eq(offer(FI_MR_BASIC), -FI_ENODATA);
		ck_line("MRF-E1032", "FI_MR_BASIC is not offered here");
		ck_line("MRF-E1032", "requires no bit at all; to pass, set");
	}
}
END_TEST

START_TEST(require_basic_is_had_by_either_name)
{
	require("BASIC");
	ck_assert_int_eq(offer(FI_MR_BASIC), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_BASIC);
	ck_assert_uint_eq(open_info(), VAK);
	ck_assert_int_eq(offer(VAK | FI_MR_LOCAL), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, VAK);
	ck_assert_int_eq(offer(FI_MR_VIRT_ADDR), -FI_ENODATA);
	ck_line("MRF-E1032", "missing: FI_MR_ALLOCATED, FI_MR_PROV_KEY; to pass, set");
	ck_assert_int_eq(offer(FI_MR_SCALABLE), -FI_ENODATA);
	ck_line("MRF-E1032", "FI_MR_SCALABLE is not offered here");
}
END_TEST

START_TEST(require_without_hints_answers_the_whole_set)
{
	struct fi_info bare = { .caps = FI_RMA };
	int set;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		require_set(set);
		ck_assert_int_eq(get(V17, NULL), 0);
		ck_assert_int_eq(info->domain_attr->mr_mode, set);
		ck_assert_uint_eq(info->caps, MRF_CAPS);
		ck_assert_int_eq(get(V17, &bare), 0);
		ck_assert_int_eq(info->domain_attr->mr_mode, set);
	}
	/* Nobody said that he can do with it. */
	ck_assert_uint_eq(info->caps & REMOTE, 0);
}
END_TEST

START_TEST(require_raw_makes_keys_as_long_as_raw_keys)
{
	require("RAW");
	ck_assert_int_eq(offer(FI_MR_RAW), 0);
	ck_assert_uint_eq(info->domain_attr->mr_key_size, MRF_RAWKEY_MAX);
	require("PROV_KEY");
	ck_assert_int_eq(offer(ALL), 0);
	ck_assert_uint_eq(info->domain_attr->mr_key_size, 8);
	ck_assert_uint_eq(info->domain_attr->mr_iov_limit, 16);
	/* An initiator that does not offer it gets no raw keys. */
	require("RAW+LOCAL");
	hints->caps = FI_RMA | FI_READ;
	ck_assert_int_eq(offer(FI_MR_LOCAL), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_LOCAL);
	ck_assert_uint_eq(info->domain_attr->mr_key_size, 8);
}
END_TEST

START_TEST(require_answers_what_it_answered)
{
	struct fi_info *again;
	int set;

	for (set = FI_MR_LOCAL; set <= ALL; set += FI_MR_LOCAL) {
		require_set(set);
		ck_assert_int_eq(offer(ALL), 0);
		ck_assert_int_eq(fi_getinfo(V17, NULL, NULL, 0, info, &again), 0);
		ck_assert_int_eq(again->domain_attr->mr_mode, set);
		ck_assert_uint_eq(again->caps, info->caps);
		fi_freeinfo(again);
	}
}
END_TEST

/* --- FI_HMEM ---------------------------------------------------------------------------- */

/* Who asks for FI_HMEM has to offer the set and FI_MR_HMEM. */
START_TEST(require_hmem_is_added_to_every_set)
{
	char variable[64];
	int set;

	hints->caps = FI_RMA | FI_HMEM;
	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		require_set(set);
		ck_assert_int_eq(offer(set | FI_MR_HMEM), 0);
		ck_assert_int_eq(info->domain_attr->mr_mode, set | FI_MR_HMEM);
		ck_assert_int_eq(offer(ALL | FI_MR_HMEM), 0);
		ck_assert_int_eq(info->domain_attr->mr_mode, set | FI_MR_HMEM);
		ck_assert_uint_eq(info->caps, CAPS | FI_HMEM);
		ck_assert_uint_eq(open_info(), (uint64_t)set | FI_MR_HMEM);
		ck_assert_int_eq(offer(ALL), -FI_ENODATA);
		ck_line("MRF-E1033", "FI_HMEM needs FI_MR_HMEM: set it in mr_mode");
		if (!set)
			continue;
		ck_assert_int_eq(offer(FI_MR_HMEM), -FI_ENODATA);
		snprintf(variable, sizeof(variable), VAR "=%#x requires FI_MR_", (unsigned)set);
		ck_line("MRF-E1032", variable);
		ck_assert_ptr_null(strstr(text, "HMEM;"));
	}
}
END_TEST

/* One line has all that is missing; the variable is not said to require FI_MR_HMEM. */
START_TEST(require_hmem_is_missing_with_what_else_is)
{
	require("RAW,ENDPOINT");
	hints->caps = FI_RMA | FI_HMEM;
	ck_assert_int_eq(offer(FI_MR_ENDPOINT), -FI_ENODATA);
	ck_line("MRF-E1032", "FI_HMEM needs FI_MR_HMEM: set it in mr_mode; ");
	ck_line("MRF-E1032", VAR "=RAW,ENDPOINT requires FI_MR_RAW, FI_MR_ENDPOINT; "
				 "missing: FI_MR_RAW, FI_MR_HMEM; to pass, set");
	ck_assert_int_eq(offer(FI_MR_ENDPOINT | FI_MR_HMEM), -FI_ENODATA);
	ck_line("MRF-E1032", "missing: FI_MR_RAW; to pass, set");
	require("BASIC");
	ck_assert_int_eq(offer(FI_MR_BASIC), -FI_ENODATA);
	ck_line("MRF-E1033", "FI_MR_BASIC and FI_MR_SCALABLE do not include");
	ck_assert_int_eq(offer(VAK | FI_MR_HMEM), 0);
	ck_assert_uint_eq(open_info(), VAK | FI_MR_HMEM);
}
END_TEST

/* Remote access is withheld, device memory is not. */
START_TEST(require_hmem_stays_where_remote_access_is_withheld)
{
	struct fi_info bare = { .caps = FI_RMA | FI_RMA_EVENT | FI_HMEM };

	require("RAW");
	ck_assert_int_eq(get(V17, &bare), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_RAW | FI_MR_HMEM);
	ck_assert_uint_eq(info->caps, (CAPS & ~REMOTE) | FI_HMEM);
	ck_assert_uint_eq(info->tx_attr->caps, (MRF_CAPS_TX & ~NOT_RMA) | FI_HMEM);
	ck_assert_uint_eq(info->rx_attr->caps, FI_HMEM);
	ck_assert_uint_eq(open_info(), FI_MR_RAW | FI_MR_HMEM);
}
END_TEST

/* --- mr_mode 0 ------------------------------------------------------------------------
 */

START_TEST(require_is_not_met_by_mr_mode_zero)
{
	char names[64], words[96];
	int bit;

	for (bit = FI_MR_LOCAL; bit <= FI_MR_ENDPOINT; bit <<= 1) {
		require_set(bit);
		ck_assert_int_eq(offer(FI_MR_UNSPEC), -FI_ENODATA);
		ck_assert_ptr_null(info);
		mrf_names_bits(&mrf_names_mr_mode, (uint64_t)bit, names, sizeof(names));
		snprintf(words, sizeof(words), "missing: %s; to pass, set", names);
		ck_line("MRF-E1032", words);
		ck_line("MRF-E1032", "mr_mode=0 (FI_MR_UNSPEC)");
		ck_line("MRF-E1032", "mr_mode 0 offers none of the required bits");
	}
	require("0");
	ck_assert_int_eq(offer(FI_MR_UNSPEC), 0);
	ck_assert_uint_eq(info->caps, CAPS);
}
END_TEST

START_TEST(require_tells_who_cannot_offer_that_remote_access_is_withheld)
{
	struct fi_info bare = { .caps = FI_RMA | FI_RMA_EVENT };

	require("PROV_KEY");
	ck_assert_int_eq(get(V17, &bare), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_PROV_KEY);
	ck_assert_uint_eq(info->caps & (REMOTE | FI_RMA_EVENT), 0);
	ck_line("MRF-W1034", VAR "=PROV_KEY requires of targets");
	ck_line("MRF-W1034", "without remote access, and without FI_RMA_EVENT");
	/* Not of what does not concern targets. */
	require("ALLOCATED");
	ck_assert_int_eq(get(V17, &bare), 0);
	ck_assert_uint_eq(info->caps & REMOTE, REMOTE);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(require_withholds_remote_access_from_who_cannot_offer)
{
	struct fi_rx_attr rx = { .caps = FI_RMA | FI_REMOTE_READ };
	struct fi_info bare = { .caps = FI_RMA };

	require("VIRT_ADDR");
	ck_assert_int_eq(get(V17, &bare), 0);
	ck_assert_uint_eq(info->caps, CAPS & ~REMOTE);
	ck_assert_uint_eq(info->tx_attr->caps, MRF_CAPS_TX & ~NOT_RMA);
	ck_assert_uint_eq(info->rx_attr->caps, 0);
	ck_assert_uint_eq(open_info(), FI_MR_VIRT_ADDR);
	/* Asked for in part. */
	bare.rx_attr = &rx;
	ck_assert_int_eq(get(V17, &bare), 0);
	ck_assert_uint_eq(info->rx_attr->caps, 0);
	hints->rx_attr->caps = rx.caps;
	ck_assert_int_eq(offer(FI_MR_VIRT_ADDR), 0);
	ck_assert_uint_eq(info->rx_attr->caps, FI_RMA | FI_REMOTE_READ);
}
END_TEST

/* FI_RMA that is left alone would mean all directions. */
START_TEST(require_leaves_nothing_to_who_wants_to_be_a_target_only)
{
	struct fi_info bare = { .caps = FI_RMA | REMOTE };

	require("RAW");
	ck_assert_int_eq(get(V17, &bare), 0);
	ck_assert_uint_eq(info->caps, COMM);
	ck_line("MRF-W1034", "and without FI_RMA, FI_REMOTE_READ, FI_REMOTE_WRITE");
	hints->caps = bare.caps;
	ck_assert_int_eq(offer(FI_MR_RAW), 0);
	ck_assert_uint_eq(info->caps, FI_RMA | REMOTE | COMM);
}
END_TEST

/* --- FI_LOCAL_MR, and before 1.5 -------------------------------------------------------
 */

START_TEST(require_local_of_a_legacy_model_comes_back_as_the_old_flag)
{
	require("LOCAL+VIRT_ADDR+ALLOCATED+PROV_KEY");
	ck_assert_int_eq(offer(FI_MR_BASIC), -FI_ENODATA);
	ck_line("MRF-E1032", "missing: FI_MR_LOCAL; to pass, set");
	ck_line("MRF-E1032", "offer FI_MR_LOCAL or mode FI_LOCAL_MR");
	hints->mode = FI_LOCAL_MR;
	ck_assert_int_eq(offer(FI_MR_BASIC), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_BASIC);
	ck_assert_uint_eq(info->mode, FI_LOCAL_MR);
	ck_assert_uint_eq(open_info(), VAK | FI_MR_LOCAL);
	/* With the bit the flag is history. */
	ck_assert_int_eq(offer(VAK | FI_MR_LOCAL), 0);
	ck_assert_uint_eq(info->mode, 0);
	/* It does not stand for the bit where bits are offered. */
	ck_assert_int_eq(offer(VAK), -FI_ENODATA);
	ck_line("MRF-E1032", "missing: FI_MR_LOCAL; to pass, set");
}
END_TEST

START_TEST(require_before_1_5_is_a_legacy_model_or_nothing)
{
	require("VIRT_ADDR+ALLOCATED+PROV_KEY");
	ck_assert_int_eq(get(V1_4, hints), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_BASIC);
	require("0");
	ck_assert_int_eq(get(V1_4, hints), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_SCALABLE);
	require("RAW");
	ck_assert_int_eq(get(V1_4, hints), -FI_ENODATA);
	ck_line("MRF-E1032", "there are only FI_MR_BASIC and FI_MR_SCALABLE");
	ck_line("MRF-E1032", "missing: FI_MR_RAW; to pass, ask for version 1.5 or later and set "
			     "hints->domain_attr->mr_mode to FI_MR_RAW (");
	/* What libfabric's rules say of any provider has its own code. */
	hints->domain_attr->mr_mode = FI_MR_RAW;
	ck_assert_int_eq(get(V1_4, hints), -FI_ENODATA);
	ck_line("MRF-E1030", "version 1.4");
	require("LOCAL");
	hints->domain_attr->mr_mode = 0;
	ck_assert_int_eq(get(V1_4, hints), -FI_ENODATA);
	hints->mode = FI_LOCAL_MR;
	ck_assert_int_eq(get(V1_4, hints), 0);
	ck_assert_uint_eq(info->mode, FI_LOCAL_MR);
	(void)open_info();
}
END_TEST

START_TEST(require_before_1_5_asks_for_the_old_flag_without_attributes_too)
{
	struct fi_info bare = { .caps = FI_RMA };

	require("LOCAL");
	ck_assert_int_eq(get(V1_4, &bare), -FI_ENODATA);
	ck_line("MRF-E1032", "mode FI_LOCAL_MR");
	bare.mode = FI_LOCAL_MR;
	ck_assert_int_eq(get(V1_4, &bare), 0);
	ck_assert_uint_eq(info->mode, FI_LOCAL_MR);
}
END_TEST

/* --- the value
 * -------------------------------------------------------------------------- */

START_TEST(require_a_malformed_value_is_never_the_default)
{
	static const struct {
		const char *value, *why;
	} cases[] = {
		{ "LOCAL+VIRTADDR", "\"VIRTADDR\" is not the name of a registration" },
		{ "LOCAL+", "a name is missing" },
		{ "0x400", "FI_MR_HMEM cannot be named" },
		{ "LOCAL,HMEM", "FI_MR_HMEM cannot be named" },
		{ "BASIC+LOCAL", "FI_MR_BASIC must be set alone" },
		{ "4096", "not offered: 0x1000" },
		{ "12bits", "\"12bits\" is not a number" },
	};
	char quoted[64];
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(cases); i++) {
		require(cases[i].value);
		snprintf(quoted, sizeof(quoted), VAR "=\"%s\": ", cases[i].value);
		ck_assert_int_eq(offer(ALL), -FI_ENODATA);
		ck_assert_ptr_null(info);
		ck_line("MRF-E1031", cases[i].why);
		ck_line("MRF-E1031", quoted);
		ck_assert_int_eq(get(V17, NULL), -FI_ENODATA);
		ck_line("MRF-E1031", cases[i].why);
	}
	require("LOCAL");
	ck_assert_int_eq(offer(ALL), 0);
}
END_TEST

static TCase *new_tcase(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	return tc;
}

static TCase *tcase_answer(void)
{
	TCase *tc = new_tcase("answer");

	tcase_add_test(tc, require_every_set_comes_back_and_opens);
	tcase_add_test(tc, require_every_missing_bit_is_named_with_the_variable);
	tcase_add_test(tc, require_all_that_is_missing_is_named);
	tcase_add_test(tc, require_is_read_at_every_call);
	tcase_add_test(tc, require_nothing_gives_nothing);
	tcase_add_test(tc, require_basic_is_had_by_either_name);
	tcase_add_test(tc, require_without_hints_answers_the_whole_set);
	tcase_add_test(tc, require_raw_makes_keys_as_long_as_raw_keys);
	tcase_add_test(tc, require_answers_what_it_answered);
	return tc;
}

static TCase *tcase_hmem(void)
{
	TCase *tc = new_tcase("hmem");

	tcase_add_test(tc, require_hmem_is_added_to_every_set);
	tcase_add_test(tc, require_hmem_is_missing_with_what_else_is);
	tcase_add_test(tc, require_hmem_stays_where_remote_access_is_withheld);
	return tc;
}

static TCase *tcase_zero(void)
{
	TCase *tc = new_tcase("zero");

	tcase_add_test(tc, require_is_not_met_by_mr_mode_zero);
	tcase_add_test(tc, require_tells_who_cannot_offer_that_remote_access_is_withheld);
	tcase_add_test(tc, require_withholds_remote_access_from_who_cannot_offer);
	tcase_add_test(tc, require_leaves_nothing_to_who_wants_to_be_a_target_only);
	return tc;
}

static TCase *tcase_legacy(void)
{
	TCase *tc = new_tcase("legacy");

	tcase_add_test(tc, require_local_of_a_legacy_model_comes_back_as_the_old_flag);
	tcase_add_test(tc, require_before_1_5_is_a_legacy_model_or_nothing);
	tcase_add_test(tc, require_before_1_5_asks_for_the_old_flag_without_attributes_too);
	return tc;
}

static TCase *tcase_value(void)
{
	TCase *tc = new_tcase("value");

	tcase_add_test(tc, require_a_malformed_value_is_never_the_default);
	return tc;
}

UNIT_MAIN("mr_require", tcase_answer, tcase_hmem, tcase_zero, tcase_legacy, tcase_value)
