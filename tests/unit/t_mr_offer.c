/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's own contract for mr_mode: nothing needed and the fast bits kept, or with
 * FI_MRFAB_MR_MODE exactly what that says. No device, no environment.
 */
#include "contract/mr_offer.h"

#include <rdma/fabric.h>
#include "base/compiler.h"
#include "contract/limits.h"
#include "every.h"
#include "unit.h"

#define VAK (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define ALL ((uint64_t)MRF_MR_REQUIRABLE)
#define LEGACY ((uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE))
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define V1_4 FI_VERSION(1, 4)
#define V1_5 FI_VERSION(1, 5)
#define V17 FI_VERSION(1, 17)

static const uint32_t apis[] = { FI_VERSION(1, 5), FI_VERSION(1, 8), FI_VERSION(1, 13),
				 FI_VERSION(1, 17) };

static const struct mrf_mr_offer *const dflt = &mrf_mr_offer_default;

static struct mrf_mr_mode_hints ask_for(uint32_t api, uint64_t mr_mode)
{
	return (struct mrf_mr_mode_hints){ .api = api,
					   .library = MRF_API_VERSION,
					   .hints = true,
					   .domain_attr = true,
					   .mr_mode = mr_mode,
					   .caps = FI_RMA };
}

/* As fi_getinfo does: what comes back depends on the capabilities that do. */
static uint64_t answer(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask)
{
	uint64_t caps = ask->caps && ask->caps != FI_RMA ? ask->caps : MRF_CAPS;

	return mrf_mr_offer_answer(offer, ask, mrf_mr_mode_answer_caps(offer->table, ask, caps));
}

static bool accepted(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask)
{
	return mrf_mr_offer_check(offer, ask) == MRF_MR_ACCEPTED;
}

/* --- by default -------------------------------------------------------------------- */

START_TEST(mr_mode_offer_keeps_every_subset_of_the_fast_bits)
{
	struct mrf_mr_mode_hints ask;
	uint64_t bits;

	for (bits = 0; bits <= ALL; bits += FI_MR_LOCAL) {
		ask = ask_for(V1_5, bits);
		ck_assert(accepted(dflt, &ask));
		ck_assert_uint_eq(answer(dflt, &ask), bits & (FI_MR_LOCAL | VAK));
		ck_assert_uint_eq(mrf_mr_offer_missing(dflt, &ask), 0);
	}
}
END_TEST

START_TEST(mr_mode_offer_does_not_claim_the_other_bits)
{
	struct mrf_mr_mode_hints ask =
		ask_for(V17, FI_MR_RAW | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT |
				     FI_MR_HMEM | FI_MR_COLLECTIVE | 1 << 30);

	ck_assert(accepted(dflt, &ask));
	ck_assert_uint_eq(answer(dflt, &ask), 0);
}
END_TEST

START_TEST(mr_mode_offer_runs_both_legacy_models)
{
	static const uint32_t versions[] = { 0, V1_4, V1_5, V17 };
	static const uint64_t models[] = { FI_MR_BASIC, FI_MR_SCALABLE };
	struct mrf_mr_mode_hints ask;
	size_t i, j;

	for (i = 0; i < MRF_ARRAY_SIZE(versions); i++) {
		for (j = 0; j < 2; j++) {
			ask = ask_for(versions[i], models[j]);
			ck_assert(accepted(dflt, &ask));
			ck_assert_uint_eq(answer(dflt, &ask), models[j]);
		}
		ask = ask_for(versions[i], LEGACY);
		ck_assert(!accepted(dflt, &ask));
		ask = ask_for(versions[i], FI_MR_BASIC | FI_MR_LOCAL);
		ck_assert(!accepted(dflt, &ask));
	}
}
END_TEST

START_TEST(mr_mode_offer_before_1_5_is_basic_unless_asked)
{
	struct mrf_mr_mode_hints ask = ask_for(V1_4, 0);

	ck_assert(accepted(dflt, &ask));
	ck_assert_uint_eq(answer(dflt, &ask), FI_MR_BASIC);
	ask = (struct mrf_mr_mode_hints){ .api = V1_4, .library = MRF_API_VERSION };
	ck_assert_uint_eq(answer(dflt, &ask), FI_MR_BASIC);
	ask = ask_for(V1_4, FI_MR_VIRT_ADDR);
	ck_assert_int_eq(mrf_mr_offer_check(dflt, &ask), MRF_MR_NOT_LEGACY);
}
END_TEST

START_TEST(mr_mode_offer_without_hints_is_zero)
{
	struct mrf_mr_mode_hints ask = { .api = V1_5, .library = MRF_API_VERSION };

	ck_assert_uint_eq(answer(dflt, &ask), 0);
	ask.hints = true;
	ask.caps = FI_RMA;
	ck_assert(accepted(dflt, &ask));
	ck_assert_uint_eq(answer(dflt, &ask), 0);
}
END_TEST

/* Where nothing is needed there was never a reason to refuse, in no library. */
START_TEST(mr_offer_of_a_library_before_1_16_takes_zero_all_the_same)
{
	struct mrf_mr_mode_hints ask = ask_for(V1_5, 0);

	ask.library = FI_VERSION(1, 15);
	ck_assert(accepted(dflt, &ask));
}
END_TEST

/* --- the value of FI_MRFAB_MR_MODE ------------------------------------------------- */

static const char *const names[] = { "LOCAL",	 "RAW",	       "VIRT_ADDR", "ALLOCATED",
				     "PROV_KEY", "MMU_NOTIFY", "RMA_EVENT", "ENDPOINT" };

/* The names of the bits, each with prefix, with sep between them. */
static const char *spell(uint64_t bits, const char *prefix, const char *sep)
{
	static char buf[256];
	size_t i, used = 0;

	buf[0] = '\0';
	for (i = 0; i < MRF_ARRAY_SIZE(names); i++) {
		if (bits & (uint64_t)FI_MR_LOCAL << i)
			used += (size_t)snprintf(buf + used, sizeof(buf) - used, "%s%s%s",
						 used ? sep : "", prefix, names[i]);
	}
	return used ? buf : "UNSPEC";
}

static struct mrf_mr_offer parsed(const char *text)
{
	struct mrf_mr_offer offer = { .table = 77 };
	char why[128] = "";

	ck_assert_msg(mrf_mr_offer_parse(text, &offer, why, sizeof(why)), "%s: %s", text, why);
	ck_assert(offer.exact);
	ck_assert_str_eq(why, "");
	return offer;
}

static uint64_t needs(const char *text)
{
	return parsed(text).table & ~LEGACY;
}

START_TEST(mr_offer_reads_every_set_as_names_and_as_a_number)
{
	char number[32];
	uint64_t bits;

	for (bits = 0; bits <= ALL; bits += FI_MR_LOCAL) {
		ck_assert_uint_eq(needs(spell(bits, "", "+")), bits);
		ck_assert_uint_eq(needs(spell(bits, "FI_MR_", ",")), bits);
		ck_assert_uint_eq(needs(spell(bits, " fi_mr_", " + ")), bits);
		snprintf(number, sizeof(number), "%#lx", bits);
		ck_assert_uint_eq(needs(number), bits);
		snprintf(number, sizeof(number), " %lu ", bits);
		ck_assert_uint_eq(needs(number), bits);
	}
}
END_TEST

START_TEST(mr_offer_reads_names_in_any_case_and_with_space_around)
{
	ck_assert_uint_eq(needs("local"), FI_MR_LOCAL);
	ck_assert_uint_eq(needs("Fi_Mr_Mmu_Notify"), FI_MR_MMU_NOTIFY);
	ck_assert_uint_eq(needs("\t RAW ,Raw\t+ prov_key\n"), FI_MR_RAW | FI_MR_PROV_KEY);
	ck_assert_uint_eq(needs("0X4"), FI_MR_LOCAL);
	ck_assert_uint_eq(needs("unspec"), 0);
	ck_assert_uint_eq(needs("FI_MR_UNSPEC"), 0);
	ck_assert_uint_eq(needs("0"), 0);
	ck_assert_uint_eq(needs("0x0"), 0);
	ck_assert_uint_eq(needs("004"), FI_MR_LOCAL);
	ck_assert_uint_eq(needs("064"), FI_MR_PROV_KEY);
}
END_TEST

START_TEST(mr_offer_has_the_legacy_model_that_means_the_same)
{
	uint64_t bits, legacy;

	for (bits = 0; bits <= ALL; bits += FI_MR_LOCAL) {
		legacy = (bits & ~(uint64_t)FI_MR_LOCAL) == VAK ? FI_MR_BASIC
			 : !(bits & ~(uint64_t)FI_MR_LOCAL)	? FI_MR_SCALABLE
								: 0;
		ck_assert_uint_eq(parsed(spell(bits, "", "+")).table, bits | legacy);
	}
	ck_assert_uint_eq(parsed("BASIC").table, FI_MR_BASIC | VAK);
	ck_assert_uint_eq(parsed("fi_mr_basic").table, FI_MR_BASIC | VAK);
	ck_assert_uint_eq(parsed("1").table, FI_MR_BASIC | VAK);
	ck_assert_uint_eq(parsed("SCALABLE").table, FI_MR_SCALABLE);
	ck_assert_uint_eq(parsed("0x2").table, FI_MR_SCALABLE);
}
END_TEST

START_TEST(mr_offer_refuses_a_malformed_value_and_quotes_it)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "a name is missing" },
		{ "  ", "a name is missing" },
		{ "+", "a name is missing" },
		{ "LOCAL+", "a name is missing" },
		{ ",LOCAL", "a name is missing" },
		{ "LOCAL,+RAW", "a name is missing" },
		{ "LOCALL", "\"LOCALL\" is not" },
		{ "LOC", "\"LOC\" is not" },
		{ "LOCAL+VIRTADDR+RAW", "\"VIRTADDR\" is not" },
		{ "LOCAL|RAW", "\"LOCAL|RAW\" is not" },
		{ "LOCAL RAW", "\"LOCAL RAW\" is not" },
		{ "FI_MR_", "\"FI_MR_\" is not" },
		{ "FI_MR_FI_MR_RAW", "\"FI_MR_FI_MR_RAW\" is not" },
		{ "FI_LOCAL", "\"FI_LOCAL\" is not" },
		{ "RAW+0x4", "\"0x4\" is not" },
		{ "0x4+RAW", "\"0x4+RAW\" is not a number" },
		{ "4,8", "\"4,8\" is not a number" },
		{ "-4", "\"-4\" is not" },
		{ "0x", "\"0x\" is not a number" },
		{ "0x-4", "\"0x-4\" is not a number" },
		{ "4k", "\"4k\" is not a number" },
		{ "99999999999999999999", "\"99999999999999999999\" is not a number" },
		{ "BASIC+LOCAL", "FI_MR_BASIC must be set alone" },
		{ "RAW,BASIC", "FI_MR_BASIC must be set alone" },
		{ "BASIC+SCALABLE", "FI_MR_BASIC must be set alone" },
		{ "3", "FI_MR_BASIC must be set alone" },
		{ "5", "FI_MR_BASIC must be set alone" },
		{ "SCALABLE+RAW", "FI_MR_SCALABLE must be set alone" },
		{ "6", "FI_MR_SCALABLE must be set alone" },
		{ "UNSPEC+RAW", "FI_MR_UNSPEC must be set alone" },
		{ "LOCAL+unspec", "FI_MR_UNSPEC must be set alone" },
		{ "HMEM", "FI_MR_HMEM cannot be named" },
		{ "LOCAL+FI_MR_HMEM", "FI_MR_HMEM cannot be named" },
		{ "0x400", "FI_MR_HMEM cannot be named" },
		{ "COLLECTIVE", "not offered: FI_MR_COLLECTIVE" },
		{ "0x100000004", "not offered: 0x100000000" },
	};
	struct mrf_mr_offer offer;
	char why[128];
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(cases); i++) {
		offer = (struct mrf_mr_offer){ .exact = false, .table = 77 };
		ck_assert_msg(!mrf_mr_offer_parse(cases[i].text, &offer, why, sizeof(why)),
			      "\"%s\" is accepted", cases[i].text);
		ck_assert_msg(strstr(why, cases[i].why), "\"%s\": %s", cases[i].text, why);
		ck_assert(!offer.exact);
		ck_assert_uint_eq(offer.table, 77);
	}
}
END_TEST

START_TEST(mr_offer_cuts_what_it_quotes)
{
	struct mrf_mr_offer offer;
	char text[4096], why[32];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert(!mrf_mr_offer_parse(text, &offer, why, sizeof(why)));
	ck_assert_uint_eq(strlen(why), sizeof(why) - 1);
	memset(text, '9', sizeof(text) - 1);
	ck_assert(!mrf_mr_offer_parse(text, &offer, why, sizeof(why)));
	ck_assert_uint_eq(strlen(why), sizeof(why) - 1);
}
END_TEST

/* --- with FI_MRFAB_MR_MODE ---------------------------------------------------------- */

static struct mrf_mr_offer exactly(uint64_t set)
{
	char number[32];

	snprintf(number, sizeof(number), "%lu", set);
	return parsed(number);
}

START_TEST(mr_offer_exactly_the_set_comes_back_when_it_is_covered)
{
	static const uint64_t extra[] = { 0, FI_MR_HMEM, FI_MR_COLLECTIVE };
	struct mrf_mr_offer offer;
	struct mrf_mr_mode_hints ask;
	uint64_t set, more;
	size_t i;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		offer = exactly(set);
		for (more = FI_MR_LOCAL; more <= FI_MR_ENDPOINT; more <<= 1) {
			for (i = 0; i < MRF_ARRAY_SIZE(apis); i++) {
				ask = ask_for(apis[i], set | more | extra[i % 3]);
				ck_assert(accepted(&offer, &ask));
				ck_assert_uint_eq(answer(&offer, &ask), set);
				ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), 0);
				ask.mr_mode = ALL;
				ck_assert_uint_eq(answer(&offer, &ask), set);
				/* Of whoever covers it, an initiator too. */
				ask.caps = FI_RMA | FI_READ;
				ck_assert_uint_eq(answer(&offer, &ask), set);
			}
		}
	}
}
END_TEST

START_TEST(mr_offer_each_bit_that_is_missing_is_named)
{
	struct mrf_mr_offer offer;
	struct mrf_mr_mode_hints ask;
	uint64_t set, bit;
	size_t i;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		offer = exactly(set);
		for (bit = FI_MR_LOCAL; bit <= FI_MR_ENDPOINT; bit <<= 1) {
			for (i = 0; i < MRF_ARRAY_SIZE(apis) && set & bit; i++) {
				ask = ask_for(apis[i], ALL & ~bit);
				ck_assert(!accepted(&offer, &ask));
				ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), bit);
				ask.mr_mode = set & ~bit;
				ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), bit);
				/* mr_mode 0 is another rule, below. */
				if (ask.mr_mode)
					ck_assert(!accepted(&offer, &ask));
			}
		}
	}
}
END_TEST

/* It does for FI_MR_LOCAL where no bits are offered, so the bit is not missing. */
START_TEST(mr_offer_the_old_flag_is_not_missing_local)
{
	struct mrf_mr_offer offer = exactly(FI_MR_LOCAL | FI_MR_VIRT_ADDR);
	struct mrf_mr_mode_hints ask = ask_for(V17, FI_MR_BASIC);

	ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_LOCAL_NEEDED);
	ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), FI_MR_LOCAL);
	ask.mode = FI_LOCAL_MR;
	ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_NO_BASIC);
	ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), 0);
	ask.mr_mode = FI_MR_VIRT_ADDR;
	ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_BITS_MISSING);
	ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), FI_MR_LOCAL);
}
END_TEST

/* Of an initiator: what does not concern it is neither needed nor given. */
START_TEST(mr_offer_an_initiator_need_not_offer_what_concerns_targets)
{
	const uint64_t target = FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_RMA_EVENT;
	struct mrf_mr_offer offer = exactly(ALL);
	struct mrf_mr_mode_hints ask = ask_for(V17, ALL & ~target);

	ask.caps = FI_RMA | FI_READ | FI_WRITE;
	ck_assert(accepted(&offer, &ask));
	ck_assert_uint_eq(answer(&offer, &ask), ALL & ~target);
	ask.mr_mode &= ~(uint64_t)FI_MR_MMU_NOTIFY;
	ck_assert(!accepted(&offer, &ask));
	ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), FI_MR_MMU_NOTIFY);
	/* Without FI_MR_LOCAL libfabric asks nothing at all of it. */
	offer = exactly(ALL & ~(uint64_t)FI_MR_LOCAL);
	ck_assert(accepted(&offer, &ask));
	ck_assert_uint_eq(answer(&offer, &ask), 0);
}
END_TEST

START_TEST(mr_offer_zero_does_not_stand_for_a_set)
{
	const uint64_t target = FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_RMA_EVENT;
	struct mrf_mr_offer offer;
	struct mrf_mr_mode_hints ask;
	uint64_t set, caps;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		offer = exactly(set);
		ask = ask_for(V17, 0);
		ck_assert(accepted(&offer, &ask) == !set);
		ask.mode = FI_LOCAL_MR;
		ck_assert(accepted(&offer, &ask) == !set);
		ask.library = FI_VERSION(1, 15);
		ck_assert(accepted(&offer, &ask) == !set);
		/* Who names no mode at all, gets the set; but nothing says that it can be a target. */
		ask = ask_for(V17, 0);
		ask.domain_attr = false;
		ck_assert(accepted(&offer, &ask));
		caps = mrf_mr_mode_answer_caps(offer.table, &ask, MRF_CAPS);
		ck_assert_uint_eq(caps, set & target ? MRF_CAPS & ~REMOTE : MRF_CAPS);
	}
}
END_TEST

START_TEST(mr_offer_zero_is_enough_for_who_registers_nothing)
{
	struct mrf_mr_offer offer = exactly(ALL & ~(uint64_t)FI_MR_LOCAL);
	struct mrf_mr_mode_hints ask = ask_for(V17, 0);

	ask.caps = FI_RMA | FI_READ | FI_WRITE;
	ck_assert(accepted(&offer, &ask));
	offer = exactly(FI_MR_LOCAL);
	ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_UNSPEC);
}
END_TEST

START_TEST(mr_offer_of_nothing_gives_nothing)
{
	struct mrf_mr_offer offer = exactly(0);
	struct mrf_mr_mode_hints ask;
	uint64_t bits;

	for (bits = 0; bits <= ALL; bits += FI_MR_LOCAL) {
		ask = ask_for(V17, bits);
		ck_assert(accepted(&offer, &ask));
		ck_assert_uint_eq(answer(&offer, &ask), 0);
	}
	ask = ask_for(V17, FI_MR_SCALABLE);
	ck_assert(accepted(&offer, &ask));
	ck_assert_uint_eq(answer(&offer, &ask), FI_MR_SCALABLE);
	ask = ask_for(V17, FI_MR_BASIC);
	ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_NO_BASIC);
	ask = ask_for(V1_4, 0);
	ck_assert(accepted(&offer, &ask));
	ck_assert_uint_eq(answer(&offer, &ask), FI_MR_SCALABLE);
}
END_TEST

START_TEST(mr_offer_legacy_names_are_accepted_where_they_mean_the_set)
{
	static const uint32_t versions[] = { V1_4, V1_5, V17 };
	struct mrf_mr_offer offer;
	struct mrf_mr_mode_hints ask;
	uint64_t set;
	size_t i;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		offer = exactly(set);
		for (i = 0; i < MRF_ARRAY_SIZE(versions); i++) {
			ask = ask_for(versions[i], FI_MR_BASIC);
			ask.mode = FI_LOCAL_MR;
			ck_assert(accepted(&offer, &ask) ==
				  ((set & ~(uint64_t)FI_MR_LOCAL) == VAK));
			ask.mr_mode = FI_MR_SCALABLE;
			ck_assert(accepted(&offer, &ask) == !(set & ~(uint64_t)FI_MR_LOCAL));
			ck_assert_uint_eq(answer(&offer, &ask), FI_MR_SCALABLE);
			/* The other half of the set is in mode. */
			ck_assert_uint_eq(mrf_mr_mode_answer_flag(offer.table, &ask),
					  set & FI_MR_LOCAL ? FI_LOCAL_MR : 0);
			ask.mode = 0;
			ck_assert(accepted(&offer, &ask) == !set);
		}
	}
}
END_TEST

START_TEST(mr_offer_before_1_5_needs_the_old_flag_for_local_even_without_attributes)
{
	struct mrf_mr_offer offer = exactly(VAK | FI_MR_LOCAL);
	struct mrf_mr_mode_hints ask = ask_for(V1_4, 0);

	ask.domain_attr = false;
	ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_LOCAL_NEEDED);
	ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask) & FI_MR_LOCAL, FI_MR_LOCAL);
	ask.mode = FI_LOCAL_MR;
	ck_assert(accepted(&offer, &ask));
	ask.mode = 0;
	ask.api = V1_5;
	ck_assert(accepted(&offer, &ask));
	ask.api = V1_4;
	ask.hints = false;
	ck_assert(accepted(&offer, &ask));
	ck_assert_uint_eq(mrf_mr_mode_answer_flag(offer.table, &ask), FI_LOCAL_MR);
}
END_TEST

START_TEST(mr_offer_without_hints_is_the_whole_set)
{
	struct mrf_mr_mode_hints ask = { .api = V17, .library = MRF_API_VERSION };
	struct mrf_mr_offer offer;
	uint64_t set;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		offer = exactly(set);
		ask.hints = false;
		ck_assert_uint_eq(answer(&offer, &ask), set);
		ask.hints = true;
		ck_assert(accepted(&offer, &ask));
		ck_assert_uint_eq(answer(&offer, &ask), set);
	}
}
END_TEST

/* --- with FI_HMEM ---------------------------------------------------------------------- */

static struct mrf_mr_mode_hints ask_hmem(uint32_t api, uint64_t mr_mode)
{
	struct mrf_mr_mode_hints ask = ask_for(api, mr_mode);

	ask.caps |= FI_HMEM;
	return ask;
}

static struct mrf_mr_offer with_hmem(struct mrf_mr_offer offer)
{
	mrf_mr_offer_need_hmem(&offer);
	return offer;
}

/* By default the application has to offer FI_MR_HMEM and nothing else. */
START_TEST(mr_offer_hmem_is_kept_beside_every_subset_of_the_fast_bits)
{
	struct mrf_mr_offer offer = with_hmem(*dflt);
	struct mrf_mr_mode_hints ask;
	uint64_t bits;
	size_t i;

	for (bits = 0; bits <= ALL; bits += FI_MR_LOCAL) {
		for (i = 0; i < MRF_ARRAY_SIZE(apis); i++) {
			ask = ask_hmem(apis[i], bits | FI_MR_HMEM);
			ck_assert(accepted(&offer, &ask));
			ck_assert_uint_eq(answer(&offer, &ask),
					  (bits & (FI_MR_LOCAL | VAK)) | FI_MR_HMEM);
			ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), 0);
			ask.mr_mode = bits;
			ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_HMEM_MISSING);
			ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), FI_MR_HMEM);
		}
	}
}
END_TEST

/* With FI_MRFAB_MR_MODE it has to offer the set and FI_MR_HMEM, and gets exactly these. */
START_TEST(mr_offer_hmem_is_needed_and_comes_back_with_every_set)
{
	struct mrf_mr_offer offer;
	struct mrf_mr_mode_hints ask;
	uint64_t set, bit;
	size_t i;

	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		offer = with_hmem(exactly(set));
		for (i = 0; i < MRF_ARRAY_SIZE(apis); i++) {
			ask = ask_hmem(apis[i], set | FI_MR_HMEM);
			ck_assert(accepted(&offer, &ask));
			ck_assert_uint_eq(answer(&offer, &ask), set | FI_MR_HMEM);
			ask.mr_mode = ALL | FI_MR_HMEM | FI_MR_COLLECTIVE;
			ck_assert_uint_eq(answer(&offer, &ask), set | FI_MR_HMEM);
			ask.mr_mode = ALL;
			ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_HMEM_MISSING);
			ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), FI_MR_HMEM);
			for (bit = FI_MR_LOCAL; bit <= FI_MR_ENDPOINT; bit <<= 1) {
				ask.mr_mode = (ALL | FI_MR_HMEM) & ~bit;
				ck_assert(accepted(&offer, &ask) == !(set & bit));
				ck_assert_uint_eq(mrf_mr_offer_missing(&offer, &ask), set & bit);
			}
		}
	}
}
END_TEST

/*
 * Where bits are offered, the verdict is that of libfabric's rules for a provider that has the bit.
 */
START_TEST(mr_offer_hmem_is_judged_as_by_libfabric_where_bits_are_offered)
{
	static const uint64_t caps[] = { FI_RMA, FI_RMA | FI_READ, FI_ATOMIC | REMOTE,
					 FI_LOCAL_COMM };
	struct mrf_mr_offer offer;
	struct mrf_mr_mode_hints ask;
	uint64_t set, asked;
	size_t i;

	for (set = 0; set <= ALL; set += every() * (uint64_t)FI_MR_LOCAL) {
		offer = with_hmem(exactly(set));
		for (asked = FI_MR_LOCAL; asked <= (ALL | FI_MR_HMEM); asked += FI_MR_LOCAL) {
			for (i = 0; i < MRF_ARRAY_SIZE(caps); i++) {
				ask = ask_hmem(V17, asked);
				ask.caps = caps[i] | FI_HMEM;
				ck_assert(
					accepted(&offer, &ask) ==
					(mrf_mr_mode_check(offer.table, &ask) == MRF_MR_ACCEPTED));
			}
		}
	}
}
END_TEST

/* Neither 0 nor a legacy model says FI_MR_HMEM, whatever they mean by other rules. */
START_TEST(mr_offer_hmem_cannot_be_had_without_bits)
{
	static const uint64_t legacy[] = { FI_MR_BASIC, FI_MR_SCALABLE, LEGACY,
					   FI_MR_BASIC | FI_MR_HMEM, FI_MR_SCALABLE | FI_MR_HMEM };
	static const uint64_t sets[] = { 0, VAK, ALL, FI_MR_LOCAL };
	struct mrf_mr_offer offer;
	struct mrf_mr_mode_hints ask;
	size_t i, k;

	for (i = 0; i <= MRF_ARRAY_SIZE(sets); i++) {
		offer = with_hmem(i ? exactly(sets[i - 1]) : *dflt);
		ask = ask_hmem(V17, 0);
		ask.mode = FI_LOCAL_MR;
		ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_HMEM_MISSING);
		for (k = 0; k < MRF_ARRAY_SIZE(legacy); k++) {
			ask.mr_mode = legacy[k];
			ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_HMEM_NOT_LEGACY);
		}
	}
}
END_TEST

START_TEST(mr_offer_hmem_cannot_be_had_before_1_5)
{
	static const uint64_t modes[] = { 0, FI_MR_BASIC, FI_MR_SCALABLE, FI_MR_HMEM,
					  FI_MR_HMEM | VAK };
	struct mrf_mr_offer offer = with_hmem(*dflt);
	struct mrf_mr_mode_hints ask;
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(modes); i++) {
		ask = ask_hmem(V1_4, modes[i]);
		ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_HMEM_TOO_OLD);
	}
	ask = ask_hmem(V1_4, 0);
	ask.domain_attr = false;
	ck_assert_int_eq(mrf_mr_offer_check(&offer, &ask), MRF_MR_HMEM_TOO_OLD);
	ask.api = V1_5;
	ck_assert(accepted(&offer, &ask));
}
END_TEST

/* Who says nothing of modes is told all that is needed. */
START_TEST(mr_offer_hmem_without_attributes_comes_back_set)
{
	struct mrf_mr_mode_hints ask = ask_hmem(V17, 0);
	struct mrf_mr_offer offer = with_hmem(*dflt);
	uint64_t set;

	ask.domain_attr = false;
	ck_assert(accepted(&offer, &ask));
	ck_assert_uint_eq(answer(&offer, &ask), FI_MR_HMEM);
	for (set = 0; set <= ALL; set += FI_MR_LOCAL) {
		offer = with_hmem(exactly(set));
		ck_assert(accepted(&offer, &ask));
		ck_assert_uint_eq(answer(&offer, &ask), set | FI_MR_HMEM);
	}
}
END_TEST

/* --- all of it -------------------------------------------------------------------------- */

/* Whatever is asked by whomever of whatever offer: what comes back can be opened. */
static void every_answer_opens(const struct mrf_mr_offer *offer)
{
	static const uint64_t caps[] = { 0, FI_RMA, FI_RMA | FI_READ, FI_RMA | REMOTE };
	static const uint32_t versions[] = { V1_4, V1_5, V17 };
	uint64_t hmem = offer->table & FI_MR_HMEM;
	struct mrf_mr_mode_hints ask;
	uint64_t asked, got;
	unsigned i;

	for (asked = 0; asked <= (ALL | LEGACY | FI_MR_HMEM); asked++) {
		for (i = 0; i < 4 * 3 * 2 * 2; i++) {
			ask = ask_for(versions[i % 3], asked);
			ask.caps = caps[i / 3 % 4] | (hmem ? FI_HMEM : 0);
			ask.mode = i / 12 % 2 ? FI_LOCAL_MR : 0;
			ask.library = i / 24 ? FI_VERSION(1, 15) : MRF_API_VERSION;
			if (!accepted(offer, &ask))
				continue;
			got = answer(offer, &ask);
			ck_assert_msg(mrf_mr_mode_known(got) && (got & FI_MR_HMEM) == hmem &&
					      !(got & ~offer->table & ~LEGACY & ~asked),
				      "table %#lx, asked %#lx: %#lx", offer->table, asked, got);
		}
	}
}

START_TEST(mr_offer_whatever_comes_back_opens_a_domain)
{
	struct mrf_mr_offer offer;
	uint64_t set;

	every_answer_opens(dflt);
	for (set = 0; set <= ALL; set += every() * (uint64_t)FI_MR_LOCAL) {
		offer = exactly(set);
		every_answer_opens(&offer);
	}
	offer = exactly(FI_MR_BASIC);
	every_answer_opens(&offer);
	offer = exactly(FI_MR_SCALABLE);
	every_answer_opens(&offer);
}
END_TEST

START_TEST(mr_offer_whatever_comes_back_with_hmem_opens_a_domain)
{
	struct mrf_mr_offer offer = with_hmem(*dflt);
	uint64_t set;

	every_answer_opens(&offer);
	for (set = 0; set <= ALL; set += 3 * every() * (uint64_t)FI_MR_LOCAL) {
		offer = with_hmem(exactly(set));
		every_answer_opens(&offer);
	}
}
END_TEST

static TCase *tcase_default(void)
{
	TCase *tc = tcase_create("default");

	tcase_add_test(tc, mr_mode_offer_keeps_every_subset_of_the_fast_bits);
	tcase_add_test(tc, mr_mode_offer_does_not_claim_the_other_bits);
	tcase_add_test(tc, mr_mode_offer_runs_both_legacy_models);
	tcase_add_test(tc, mr_mode_offer_before_1_5_is_basic_unless_asked);
	tcase_add_test(tc, mr_mode_offer_without_hints_is_zero);
	tcase_add_test(tc, mr_offer_of_a_library_before_1_16_takes_zero_all_the_same);
	return tc;
}

static TCase *tcase_value(void)
{
	TCase *tc = tcase_create("value");

	tcase_add_test(tc, mr_offer_reads_every_set_as_names_and_as_a_number);
	tcase_add_test(tc, mr_offer_reads_names_in_any_case_and_with_space_around);
	tcase_add_test(tc, mr_offer_has_the_legacy_model_that_means_the_same);
	tcase_add_test(tc, mr_offer_refuses_a_malformed_value_and_quotes_it);
	tcase_add_test(tc, mr_offer_cuts_what_it_quotes);
	return tc;
}

static TCase *tcase_exact(void)
{
	TCase *tc = tcase_create("exact");

	tcase_set_timeout(tc, 60); /* under valgrind */
	tcase_add_test(tc, mr_offer_exactly_the_set_comes_back_when_it_is_covered);
	tcase_add_test(tc, mr_offer_each_bit_that_is_missing_is_named);
	tcase_add_test(tc, mr_offer_the_old_flag_is_not_missing_local);
	tcase_add_test(tc, mr_offer_an_initiator_need_not_offer_what_concerns_targets);
	tcase_add_test(tc, mr_offer_zero_does_not_stand_for_a_set);
	tcase_add_test(tc, mr_offer_zero_is_enough_for_who_registers_nothing);
	tcase_add_test(tc, mr_offer_of_nothing_gives_nothing);
	tcase_add_test(tc, mr_offer_legacy_names_are_accepted_where_they_mean_the_set);
	tcase_add_test(tc,
		       mr_offer_before_1_5_needs_the_old_flag_for_local_even_without_attributes);
	tcase_add_test(tc, mr_offer_without_hints_is_the_whole_set);
	tcase_add_test(tc, mr_offer_whatever_comes_back_opens_a_domain);
	return tc;
}

static TCase *tcase_hmem(void)
{
	TCase *tc = tcase_create("hmem");

	tcase_set_timeout(tc, 60); /* under valgrind */
	tcase_add_test(tc, mr_offer_hmem_is_kept_beside_every_subset_of_the_fast_bits);
	tcase_add_test(tc, mr_offer_hmem_is_needed_and_comes_back_with_every_set);
	tcase_add_test(tc, mr_offer_hmem_is_judged_as_by_libfabric_where_bits_are_offered);
	tcase_add_test(tc, mr_offer_hmem_cannot_be_had_without_bits);
	tcase_add_test(tc, mr_offer_hmem_cannot_be_had_before_1_5);
	tcase_add_test(tc, mr_offer_hmem_without_attributes_comes_back_set);
	tcase_add_test(tc, mr_offer_whatever_comes_back_with_hmem_opens_a_domain);
	return tc;
}

UNIT_MAIN("mr_offer", tcase_default, tcase_value, tcase_exact, tcase_hmem)
