/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/mr_remedy.h"

#include <stdio.h>
#include "base/names.h"
#include "contract/rules.h"

#define LEGACY ((uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE))
#define WITH_BITS FI_VERSION(1, 5) /* mrf_rule_mr_mode_bits */

static bool passes(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask)
{
	return mrf_mr_offer_check(offer, ask) == MRF_MR_ACCEPTED;
}

/* The same mr_mode, and local buffers registered by the old flag. */
static struct mrf_mr_mode_hints with_flag(const struct mrf_mr_mode_hints *ask)
{
	struct mrf_mr_mode_hints better = *ask;

	better.mode |= FI_LOCAL_MR;
	return better;
}

/* With the bits that are needed, too. */
static struct mrf_mr_mode_hints with_bits(const struct mrf_mr_offer *offer,
					  const struct mrf_mr_mode_hints *ask, uint32_t api)
{
	struct mrf_mr_mode_hints better = *ask;

	better.api = api;
	better.domain_attr = true;
	better.mr_mode = (ask->mr_mode & ~LEGACY) | mrf_mr_mode_for(ask->caps, offer->table);
	return better;
}

/* With the name that stands for what is needed. */
static struct mrf_mr_mode_hints with_name(const struct mrf_mr_offer *offer,
					  const struct mrf_mr_mode_hints *ask)
{
	struct mrf_mr_mode_hints better = *ask;

	better.domain_attr = true;
	better.mr_mode = offer->table & FI_MR_BASIC ? FI_MR_BASIC : FI_MR_SCALABLE;
	better.mode |= mrf_mr_mode_flag_needed(offer->table, &better);
	return better;
}

bool mrf_mr_remedy_find(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask,
			struct mrf_mr_mode_hints *better)
{
	*better = with_flag(ask);
	if (passes(offer, better))
		return true;
	*better = with_bits(offer, ask, ask->api);
	if (passes(offer, better))
		return true;
	*better = with_name(offer, ask);
	if (passes(offer, better))
		return true;
	*better = with_bits(offer, ask, WITH_BITS);
	return passes(offer, better);
}

/* What differs, each part with its verb. */
static void say(const struct mrf_mr_mode_hints *ask, const struct mrf_mr_mode_hints *better,
		char *buf, size_t len)
{
	bool version = better->api != ask->api, set = better->mr_mode != ask->mr_mode;
	char names[256] = "0";

	if (better->mr_mode)
		mrf_names_bits(&mrf_names_mr_mode, better->mr_mode, names, sizeof(names));
	snprintf(buf, len, "%s%s%s%s%s%s", version ? "ask for version 1.5 or later" : "",
		 version && set ? " and " : "", set ? "set hints->domain_attr->mr_mode to " : "",
		 set ? names : "", set && better->mode != ask->mode ? " and " : "",
		 better->mode != ask->mode ? "set FI_LOCAL_MR in hints->mode" : "");
}

char *mrf_mr_remedy_text(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask,
			 char *buf, size_t len)
{
	struct mrf_mr_mode_hints better;

	*buf = '\0';
	if (mrf_mr_remedy_find(offer, ask, &better))
		say(ask, &better, buf, len);
	return buf;
}
