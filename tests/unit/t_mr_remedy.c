/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an application is told to ask for when its mr_mode is refused: that it would be accepted, for
 * every set that can be required. No device, no environment.
 */
#include "contract/mr_remedy.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include "base/compiler.h"
#include "contract/limits.h"
#include "contract/profile.h"
#include "unit.h"

#define VAK (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define ALL ((uint64_t)MRF_MR_REQUIRABLE)
#define LEGACY ((uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE))
#define V1_4 FI_VERSION(1, 4)
#define V1_5 FI_VERSION(1, 5)
#define V17 FI_VERSION(1, 17)

static struct mrf_mr_mode_hints ask_for(uint32_t api, uint64_t mr_mode)
{
	return (struct mrf_mr_mode_hints){ .api = api,
					   .library = MRF_API_VERSION,
					   .hints = true,
					   .domain_attr = true,
					   .mr_mode = mr_mode,
					   .caps = FI_RMA };
}

static struct mrf_mr_offer exactly(const char *names)
{
	struct mrf_mr_offer offer;
	char why[128];

	ck_assert_msg(mrf_mr_offer_parse(names, &offer, why, sizeof(why)), "%s: %s", names, why);
	return offer;
}

/* --- it would be accepted --------------------------------------------------------- */

static unsigned refused;

/* One request, which changes in one respect at most if one is enough. */
static void ck_remedy(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask)
{
	struct mrf_mr_mode_hints better;

	if (mrf_mr_offer_check(offer, ask) == MRF_MR_ACCEPTED)
		return;
	refused++;
	ck_assert_msg(mrf_mr_remedy_find(offer, ask, &better),
		      "no remedy for mr_mode %#lx of %#x if %#lx is required", ask->mr_mode,
		      ask->api, offer->table);
	ck_assert_int_eq(mrf_mr_offer_check(offer, &better), MRF_MR_ACCEPTED);
	/* It is the same program: it gives up nothing that it has said of itself. */
	ck_assert_uint_eq(better.caps, ask->caps);
	ck_assert_uint_eq(better.mode & ~(uint64_t)FI_LOCAL_MR, ask->mode & ~(uint64_t)FI_LOCAL_MR);
	ck_assert(better.api == ask->api || better.api == V1_5);
	ck_assert(better.api != ask->api || better.mr_mode != ask->mr_mode ||
		  better.mode != ask->mode);
}

/* Each way of asking, of one offer. */
static void ck_every_way(const struct mrf_mr_offer *offer)
{
	static const uint32_t apis[] = { V1_4, V1_5, V17 };
	static const uint64_t caps[] = { FI_RMA, FI_RMA | FI_READ, FI_MSG, FI_RMA | FI_HMEM,
					 FI_MSG | FI_HMEM };
	static const uint64_t modes[] = { 0,
					  FI_MR_BASIC,
					  FI_MR_SCALABLE,
					  LEGACY,
					  FI_MR_BASIC | FI_MR_LOCAL,
					  FI_MR_SCALABLE | FI_MR_RAW,
					  FI_MR_LOCAL,
					  VAK,
					  FI_MR_HMEM,
					  FI_MR_RAW | FI_MR_ENDPOINT | FI_MR_HMEM };
	struct mrf_mr_offer used;
	struct mrf_mr_mode_hints ask;
	size_t i, all = MRF_ARRAY_SIZE(apis) * MRF_ARRAY_SIZE(caps) * MRF_ARRAY_SIZE(modes) * 4;

	for (i = 0; i < all; i++) {
		ask = ask_for(apis[i / 4 % 3], modes[i / 12 % 10]);
		ask.caps = caps[i / 120];
		ask.mode = i & 1 ? FI_LOCAL_MR : 0;
		ask.domain_attr = !(i & 2);
		if (!ask.domain_attr)
			ask.mr_mode = 0;
		used = *offer;
		if (ask.caps & FI_HMEM)
			mrf_mr_offer_need_hmem(&used);
		ck_remedy(&used, &ask);
	}
}

START_TEST(mr_remedy_of_every_refusal_would_be_accepted)
{
	struct mrf_mr_offer offer;
	char number[24], why[128];
	uint64_t set;
	size_t i;

	refused = 0;
	ck_every_way(&mrf_mr_offer_default);
	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		snprintf(number, sizeof(number), "%lu", set);
		ck_assert(mrf_mr_offer_parse(number, &offer, why, sizeof(why)));
		ck_every_way(&offer);
	}
	for (i = 0; mrf_profile_at(i); i++) {
		offer = mrf_profile_offer(mrf_profile_at(i), true);
		ck_every_way(&offer);
	}
	ck_assert_uint_gt(refused, 50000);
}
END_TEST

/* --- in words ---------------------------------------------------------------------- */

static const char *text_for(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask)
{
	static char text[384];

	return mrf_mr_remedy_text(offer, ask, text, sizeof(text));
}

START_TEST(mr_remedy_adds_the_bits_that_are_missing_to_those_that_are_offered)
{
	struct mrf_mr_offer offer = exactly("RAW+LOCAL");
	struct mrf_mr_mode_hints ask = ask_for(V17, FI_MR_VIRT_ADDR | FI_MR_LOCAL);

	ck_assert_str_eq(text_for(&offer, &ask), "set hints->domain_attr->mr_mode to "
						 "FI_MR_LOCAL, FI_MR_RAW, FI_MR_VIRT_ADDR");
}
END_TEST

START_TEST(mr_remedy_leaves_the_version_if_a_name_will_do)
{
	struct mrf_mr_offer offer = exactly("BASIC");
	struct mrf_mr_mode_hints ask = ask_for(V1_4, FI_MR_RAW);

	ck_assert_str_eq(text_for(&offer, &ask), "set hints->domain_attr->mr_mode to FI_MR_BASIC");
	offer = exactly("LOCAL+VIRT_ADDR+ALLOCATED+PROV_KEY");
	ck_assert_str_eq(text_for(&offer, &ask), "set hints->domain_attr->mr_mode to FI_MR_BASIC "
						 "and set FI_LOCAL_MR in hints->mode");
	/* FI_MR_BASIC is right already. */
	ask.mr_mode = FI_MR_BASIC;
	ck_assert_str_eq(text_for(&offer, &ask), "set FI_LOCAL_MR in hints->mode");
}
END_TEST

START_TEST(mr_remedy_asks_for_a_later_version_if_nothing_else_will_do)
{
	struct mrf_mr_offer offer = exactly("ENDPOINT");
	struct mrf_mr_mode_hints ask = ask_for(V1_4, 0);

	ck_assert_str_eq(text_for(&offer, &ask),
			 "ask for version 1.5 or later and set hints->domain_attr->mr_mode to "
			 "FI_MR_ENDPOINT");
	ask.mr_mode = FI_MR_ENDPOINT;
	ck_assert_str_eq(text_for(&offer, &ask), "ask for version 1.5 or later");
}
END_TEST

START_TEST(mr_remedy_takes_away_what_must_be_set_alone)
{
	struct mrf_mr_mode_hints ask = ask_for(V17, FI_MR_BASIC | FI_MR_LOCAL);
	struct mrf_mr_offer offer = exactly("SCALABLE");

	ck_assert_str_eq(text_for(&mrf_mr_offer_default, &ask),
			 "set hints->domain_attr->mr_mode to FI_MR_LOCAL");
	ask.mr_mode = FI_MR_BASIC;
	ck_assert_str_eq(text_for(&offer, &ask), "set hints->domain_attr->mr_mode to 0");
}
END_TEST

static TCase *tcase_remedy(void)
{
	TCase *tc = tcase_create("remedy");

	tcase_set_timeout(tc, 60); /* under valgrind */
	tcase_add_test(tc, mr_remedy_of_every_refusal_would_be_accepted);
	tcase_add_test(tc, mr_remedy_adds_the_bits_that_are_missing_to_those_that_are_offered);
	tcase_add_test(tc, mr_remedy_leaves_the_version_if_a_name_will_do);
	tcase_add_test(tc, mr_remedy_asks_for_a_later_version_if_nothing_else_will_do);
	tcase_add_test(tc, mr_remedy_takes_away_what_must_be_set_alone);
	return tc;
}

UNIT_MAIN("mr_remedy", tcase_remedy)
