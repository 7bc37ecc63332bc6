/* SPDX-License-Identifier: BSD-2-Clause */
#include "run_list.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include "base/log.h"
#include "base/names.h"
#include "contract/limits.h"
#include "contract/mr_offer.h"
#include "contract/profile.h"

#define INDENT "            "

static const char *bits_text(const struct mrf_names *names, uint64_t bits, const char *none,
			     char *buf, size_t len)
{
	return bits ? mrf_names_bits(names, bits, buf, len) : none;
}

/* Directions go with what they are directions of. */
static uint64_t lacking(const struct mrf_promise *promise)
{
	return MRF_CAPS_ALL & ~(promise->caps | MRF_CAPS_RMA_WAYS | MRF_CAPS_MSG_WAYS);
}

static void list_modes(const struct mrf_profile *profile)
{
	char buf[160];

	printf("%-11s %s\n", profile->name, profile->what);
	printf(INDENT "%s\n", bits_text(&mrf_names_mr_mode, profile->table & MRF_MR_REQUIRABLE,
					"no modes", buf, sizeof(buf)));
}

/* Whose keys, and how great they may be. */
static void list_key(const struct mrf_profile *profile)
{
	if (profile->table & FI_MR_RAW)
		printf("raw keys");
	else if (profile->habits & MRF_HABIT_NO_KEYS)
		printf("no keys");
	else if (!profile->key_size)
		printf("keys of a size that is not said, which the provider chooses");
	else if (profile->table & FI_MR_PROV_KEY)
		printf("keys of %u bytes, which the provider chooses", profile->key_size);
	else if (profile->max_key < UINT64_MAX - 1)
		printf("keys of %u bytes up to %lu, which the program chooses", profile->key_size,
		       profile->max_key);
	else
		printf("keys of %u bytes, which the program chooses", profile->key_size);
}

static void list_limits(const struct mrf_profile *profile)
{
	char buf[256];

	printf(INDENT);
	list_key(profile);
	printf("; %u segment%s, mr_cnt %zu\n", profile->iov_limit, MRF_S(profile->iov_limit),
	       profile->mr_cnt);
	printf(INDENT "%u bytes injected; lacks %s\n", profile->promise->inject,
	       bits_text(&mrf_names_caps, lacking(profile->promise), "nothing", buf, sizeof(buf)));
}

/* Those that fail with the error of the first one, which is not in a row above. */
static void list_calls_like(const struct mrf_profile *profile, int first)
{
	int err = profile->error[first], call;

	for (call = 0; call < first; call++) {
		if (profile->error[call] == err)
			return;
	}
	printf(INDENT "no %s", mrf_profile_call_name((enum mrf_profile_call)first));
	for (call = first + 1; call < MRF_PROFILE_CALLS; call++) {
		if (profile->error[call] == err)
			printf(", %s", mrf_profile_call_name((enum mrf_profile_call)call));
	}
	printf(" (-%s)\n", mrf_names_enum(&mrf_names_errno, (uint64_t)err));
}

static void list_calls(const struct mrf_profile *profile)
{
	bool all = true;
	int call;

	for (call = 0; call < MRF_PROFILE_CALLS; call++) {
		if (!profile->error[call])
			continue;
		list_calls_like(profile, call);
		all = false;
	}
	if (all)
		printf(INDENT "all calls\n");
}

static void list_rest(const struct mrf_profile *profile)
{
	char buf[512];

	printf(INDENT "orders: %s\n",
	       bits_text(&mrf_names_msg_order, profile->promise->order, "none", buf, sizeof(buf)));
	printf(INDENT "addresses: %s%s\n",
	       profile->form ? mrf_names_enum(&mrf_names_addr_format, profile->form->format)
			     : "FI_SOCKADDR_IN, FI_SOCKADDR_IN6",
	       profile->habits & MRF_HABIT_REGION_FIRST
		       ? "; a region closes before what it is bound to"
		       : "");
}

void run_list_profiles(void)
{
	const struct mrf_profile *profile;
	size_t i;

	for (i = 0; (profile = mrf_profile_at(i)); i++) {
		list_modes(profile);
		list_limits(profile);
		list_calls(profile);
		list_rest(profile);
	}
}
