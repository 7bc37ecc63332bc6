/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This library's own contract on top of libfabric's rules (mr_mode.h). There are two:
 *
 * - by default no bit is needed, and the bits that allow fast paths are kept if the
 *   application offers them, so the application's offer is the mode in force;
 * - with FI_MRFAB_MR_MODE the bits that it names are needed, as if by a provider that
 *   cannot work without them, and exactly these bits are in force. mr_mode 0, which libfabric
 *   accepts for any provider since its release 1.16, is refused then.
 *
 * In either, FI_MR_HMEM is needed of applications that ask for FI_HMEM.
 *
 * Pure.
 */
#ifndef MRF_CONTRACT_MR_OFFER_H
#define MRF_CONTRACT_MR_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "contract/mr_mode.h"

/* The bits that FI_MRFAB_MR_MODE can require. FI_MR_HMEM goes with a capability. */
#define MRF_MR_REQUIRABLE (MRF_MR_MODES & ~FI_MR_HMEM)
/* The bits that the default contract keeps. */
#define MRF_MR_KEPT (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

struct mrf_mr_offer {
	bool exact;	/* the bits of the table, and no others, are in force */
	uint64_t table; /* see mr_mode.h */
};

extern const struct mrf_mr_offer mrf_mr_offer_default;

/*
 * Parses a value of FI_MRFAB_MR_MODE: names with or without FI_MR_, in any case, joined
 * by + or a comma; or one number, decimal or 0x... False: text is none of these, or asks
 * for an impossible mode; *offer is unchanged, and why (cut to len) quotes the fault.
 */
bool mrf_mr_offer_parse(const char *text, struct mrf_mr_offer *offer, char *why, size_t len);

/* Makes it the offer to an application that asks for FI_HMEM. */
void mrf_mr_offer_need_hmem(struct mrf_mr_offer *offer);

enum mrf_mr_mode_verdict mrf_mr_offer_check(const struct mrf_mr_offer *offer,
					    const struct mrf_mr_mode_hints *ask);

/* The needed bits that concern this application and that it does not offer. */
uint64_t mrf_mr_offer_missing(const struct mrf_mr_offer *offer,
			      const struct mrf_mr_mode_hints *ask);

/* The domain_attr->mr_mode to return; caps: from mrf_mr_mode_answer_caps. */
uint64_t mrf_mr_offer_answer(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask,
			     uint64_t caps);

#endif
