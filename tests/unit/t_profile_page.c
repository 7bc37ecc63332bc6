/* SPDX-License-Identifier: BSD-2-Clause */
/* mrfab_profiles(7) has tables for people: they say what the library's own say, profile by profile. */
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/names.h"
#include "contract/limits.h"
#include "contract/mr_offer.h"
#include "contract/profile.h"
#include "unit.h"

#define PROFILES 25

static char page[65536];

static void setup(void)
{
	const char *dir = getenv("srcdir");
	char path[4096];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/docs/man/mrfab_profiles.7", dir ? dir : ".");
	file = fopen(path, "r");
	ck_assert_msg(file, "%s cannot be read", path);
	len = fread(page, 1, sizeof(page) - 1, file);
	fclose(file);
	ck_assert_uint_lt(len, sizeof(page) - 1);
	page[len] = '\0';
}

static void want(const char *row)
{
	ck_assert_msg(strstr(page, row), "mrfab_profiles(7) does not have:%s", row);
}

/* "ALLOCATED, LOCAL": names without what all of them begin with. */
static const char *short_names(const struct mrf_names *names, uint64_t bits, size_t prefix,
			       const char *none, char *buf, size_t len)
{
	char all[512], *save, *name;
	size_t at = 0;

	if (!bits)
		return none;
	mrf_names_bits(names, bits, all, sizeof(all));
	for (name = strtok_r(all, ", ", &save); name; name = strtok_r(NULL, ", ", &save)) {
		at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "", name + prefix);
		ck_assert_uint_lt(at, len);
	}
	return buf;
}

START_TEST(page_has_the_modes_and_limits_of_each_profile)
{
	const struct mrf_profile *profile = mrf_profile_at((size_t)_i);
	uint64_t modes = profile->table & MRF_MR_REQUIRABLE;
	char row[1024], names[512], key[32] = "raw", greatest[32] = "any";

	if (!(modes & FI_MR_RAW))
		snprintf(key, sizeof(key), "%u", profile->key_size);
	if (modes & FI_MR_PROV_KEY || modes & FI_MR_RAW || !profile->key_size)
		snprintf(greatest, sizeof(greatest), "\\-");
	else if (profile->max_key < UINT64_MAX - 1)
		snprintf(greatest, sizeof(greatest), "%lu", profile->max_key);
	snprintf(row, sizeof(row), "\n%s\tT{\n.ad l\n%s\nT}\t%s\t%s\t%u\n", profile->name,
		 short_names(&mrf_names_mr_mode, modes, strlen("FI_MR_"), "none", names,
			     sizeof(names)),
		 key, greatest, profile->iov_limit);
	want(row);
}
END_TEST

static const char *call_text(int err)
{
	switch (err) {
	case 0:
		return "yes";
	case FI_ENOSYS:
		return "\\-";
	case FI_EINVAL:
		return "EINVAL";
	case FI_EOPNOTSUPP:
		return "EOPNOTSUPP";
	case FI_EBADFLAGS:
		return "EBADFLAGS";
	default:
		ck_abort_msg("no name for %d", err);
	}
}

START_TEST(page_has_the_calls_of_each_profile)
{
	static const enum mrf_profile_call columns[] = {
		MRF_PROFILE_RAW_ATTR, MRF_PROFILE_BIND_CNTR, MRF_PROFILE_BIND_EP,
		MRF_PROFILE_ENABLE,   MRF_PROFILE_REFRESH,   MRF_PROFILE_REG_MR
	};
	const struct mrf_profile *profile = mrf_profile_at((size_t)_i);
	char row[256];
	size_t at = (size_t)snprintf(row, sizeof(row), "\n%s", profile->name), i;

	for (i = 0; i < MRF_ARRAY_SIZE(columns); i++)
		at += (size_t)snprintf(row + at, sizeof(row) - at, "\t%s",
				       call_text(profile->error[columns[i]]));
	snprintf(row + at, sizeof(row) - at, "\n");
	want(row);
}
END_TEST

START_TEST(page_has_what_endpoints_of_each_profile_do)
{
	const struct mrf_profile *profile = mrf_profile_at((size_t)_i);
	const struct mrf_promise *promise = profile->promise;
	uint64_t lacks = MRF_CAPS_ALL & ~promise->caps;
	char row[1024], names[512];

	/* Directions go with what they are directions of. */
	lacks &= ~(MRF_CAPS_RMA_WAYS | MRF_CAPS_MSG_WAYS);
	snprintf(
		row, sizeof(row), "\n%s\tT{\n.ad l\n%s\nT}\t%u\t%u\t%u\t%u\n", profile->name,
		short_names(&mrf_names_caps, lacks, strlen("FI_"), "nothing", names, sizeof(names)),
		promise->inject, promise->tx_iov, promise->rx_iov, promise->rma_iov);
	want(row);
}
END_TEST

START_TEST(page_has_the_addresses_of_each_profile)
{
	const struct mrf_profile *profile = mrf_profile_at((size_t)_i);
	const struct mrf_form *form = profile->form;
	char row[256], len[16] = "text";

	if (!form)
		return;
	if (form->kind == MRF_FORM_BYTES)
		snprintf(len, sizeof(len), "%zu", form->len);
	snprintf(row, sizeof(row), "\n%s\t%s\t%s\n", profile->name,
		 mrf_names_enum(&mrf_names_addr_format, form->format), len);
	want(row);
}
END_TEST

static bool lacks_names(const struct mrf_profile *profile)
{
	return profile->by_name == FI_ENOSYS;
}

static bool is_hinted(const struct mrf_profile *profile)
{
	return profile->av == MRF_AV_HINTED;
}

static bool is_domains(const struct mrf_profile *profile)
{
	return profile->av == MRF_AV_DOMAIN;
}

static bool has_tables(const struct mrf_profile *profile)
{
	return profile->av == MRF_AV_TABLES;
}

/* The names of those to which this belongs, and how what is said of them begins. */
static void want_list(bool (*belongs)(const struct mrf_profile *profile), const char *said)
{
	char list[512] = "";
	const char *comma = "";
	size_t i, at = (size_t)snprintf(list, sizeof(list), "\n.TP\n.B");

	for (i = 0; i < PROFILES; i++) {
		if (!belongs(mrf_profile_at(i)))
			continue;
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s %s", comma,
				       mrf_profile_at(i)->name);
		comma = ",";
	}
	snprintf(list + at, sizeof(list) - at, "\n%s", said);
	want(list);
}

/* Those that are like this one. */
static const struct mrf_profile *model;

static bool takes_basic(const struct mrf_profile *profile)
{
	return profile->table & FI_MR_BASIC;
}

static bool takes_scalable(const struct mrf_profile *profile)
{
	return profile->table & FI_MR_SCALABLE;
}

START_TEST(page_has_the_older_modes_of_each_profile)
{
	want_list(takes_basic, "FI_MR_BASIC alone is accepted,");
	want_list(takes_scalable, "FI_MR_SCALABLE alone is accepted,");
}
END_TEST

static bool has_count(const struct mrf_profile *profile)
{
	return profile->mr_cnt == model->mr_cnt;
}

START_TEST(page_has_the_counts_of_each_profile)
{
	char said[32];

	model = mrf_profile_at((size_t)_i);
	snprintf(said, sizeof(said), "%zu", model->mr_cnt);
	if (model->mr_cnt == MRF_LIMIT_MR_CNT)
		want("\n.TP\n.B all others\n524287");
	else
		want_list(has_count, said);
}
END_TEST

static bool has_protocol(const struct mrf_profile *profile)
{
	return profile->promise->protocol == model->promise->protocol;
}

START_TEST(page_has_the_protocol_of_each_profile)
{
	model = mrf_profile_at((size_t)_i);
	if (!model->promise->protocol)
		want("\n.TP\n.B all others\nthat of libmrfab");
	else
		want_list(has_protocol,
			  mrf_names_enum(&mrf_names_protocol, model->promise->protocol));
}
END_TEST

static bool has_orders(const struct mrf_profile *profile)
{
	return profile->promise->order == model->promise->order;
}

/* How the page says it is in words. */
static const char *said_of_orders(const char *name)
{
	static const struct {
		const char *name, *said;
	} facts[] = {
		{ "verbs", "RAR, RAW, WAW, SAS, and RAS, WAS and SAW if they are asked for" },
		{ "rxd", "those of verbs, and FI_ORDER_ATOMIC_WAR" },
		{ "cxi-client", "SAS, WAW, FI_ORDER_RMA_RAR, FI_ORDER_ATOMIC_RAR" },
		{ "efa", "SAS, and every order of atomic operations" },
		{ "psm2", "SAS, RAR, RAW, WAW, FI_ORDER_ATOMIC_WAR" },
		{ "ucx", "SAS\n" },
		{ "efa-direct", "none" },
	};
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(facts); i++) {
		if (!strcmp(facts[i].name, name))
			return facts[i].said;
	}
	return "";
}

START_TEST(page_has_the_orders_of_each_profile)
{
	model = mrf_profile_at((size_t)_i);
	if (model->promise->order == (MRF_MSG_ORDER | MRF_MSG_ORDER_EXTRA))
		want("\n.TP\n.B all others\nthose of libmrfab\n");
	else
		want_list(has_orders, said_of_orders(model->name));
}
END_TEST

START_TEST(page_has_the_address_vectors_of_each_profile)
{
	want("\n\\-FI_ENOSYS (MRF\\-E2234).\n.TP\n.B efa, ");
	want_list(lacks_names, ".P\n");
	want_list(is_hinted, "it has to be the one that hints");
	want_list(is_domains, "it is the one that hints");
	want_list(has_tables, "it is FI_AV_TABLE, which");
}
END_TEST

/* "a, b and c": those that leave nothing unchecked. */
START_TEST(page_has_the_profiles_that_cannot_be_lenient)
{
	const char *name[PROFILES];
	char row[256];
	size_t count = 0, i, at = 0;

	for (i = 0; i < PROFILES; i++) {
		if (!mrf_profile_at(i)->lax)
			name[count++] = mrf_profile_at(i)->name;
	}
	for (i = 0; i < count; i++)
		at += (size_t)snprintf(row + at, sizeof(row) - at, "%s%s",
				       !i	       ? ""
				       : i + 1 < count ? ", "
						       : " and ",
				       name[i]);
	snprintf(row + at, sizeof(row) - at, "\n.RB ( MRF-E1035 )");
	want(row);
}
END_TEST

START_TEST(page_says_whose_each_profile_is)
{
	const struct mrf_profile *profile = mrf_profile_at((size_t)_i);
	char row[256];

	snprintf(row, sizeof(row), "\n.TP\n.B %s\n%s\n", profile->name, profile->what);
	want(row);
}
END_TEST

START_TEST(page_has_every_profile)
{
	ck_assert_ptr_nonnull(mrf_profile_at(PROFILES - 1));
	ck_assert_ptr_null(mrf_profile_at(PROFILES));
}
END_TEST

static TCase *tcase_profile_page(void)
{
	TCase *tc = tcase_create("profile_page");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, page_has_the_modes_and_limits_of_each_profile, 0, PROFILES);
	tcase_add_loop_test(tc, page_has_the_calls_of_each_profile, 0, PROFILES);
	tcase_add_loop_test(tc, page_has_what_endpoints_of_each_profile_do, 0, PROFILES);
	tcase_add_loop_test(tc, page_has_the_addresses_of_each_profile, 0, PROFILES);
	tcase_add_test(tc, page_has_the_older_modes_of_each_profile);
	tcase_add_loop_test(tc, page_has_the_counts_of_each_profile, 0, PROFILES);
	tcase_add_loop_test(tc, page_has_the_protocol_of_each_profile, 0, PROFILES);
	tcase_add_loop_test(tc, page_has_the_orders_of_each_profile, 0, PROFILES);
	tcase_add_test(tc, page_has_the_address_vectors_of_each_profile);
	tcase_add_loop_test(tc, page_says_whose_each_profile_is, 0, PROFILES);
	tcase_add_test(tc, page_has_the_profiles_that_cannot_be_lenient);
	tcase_add_test(tc, page_has_every_profile);
	return tc;
}

UNIT_MAIN("profile_page", tcase_profile_page)
