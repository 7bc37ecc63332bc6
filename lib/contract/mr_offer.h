/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This library's own contract on top of libfabric's rules (mr_mode.h). There are two:
 *
 * - by default nothing is needed, and of the bits that make things fast those that the
 *   application offers are kept, so the application's offer is the mode that runs;
 * - with FI_MRFAB_MR_MODE the set that it names is needed, as if we were a provider that
 *   cannot do without, and exactly that set runs.
 *
 * Pure.
 */
#ifndef MRF_CONTRACT_MR_OFFER_H
#define MRF_CONTRACT_MR_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "contract/mr_mode.h"

/* The bits that the default contract keeps. */
#define MRF_MR_KEPT (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

struct mrf_mr_offer {
	bool exact;	/* the bits of the table are needed, and no others run */
	uint64_t table; /* as mr_mode.h has it */
};

extern const struct mrf_mr_offer mrf_mr_offer_default;

/*
 * What text asks for as the value of FI_MRFAB_MR_MODE: names with or without FI_MR_, in
 * any case, joined by + or a comma; or one number, decimal or 0x... False: text is none
 * of these, or asks for what cannot be; *offer is as it was, why (cut to len) quotes what
 * is wrong.
 */
bool mrf_mr_offer_parse(const char *text, struct mrf_mr_offer *offer, char *why,
			size_t len);

enum mrf_mr_mode_verdict mrf_mr_offer_check(const struct mrf_mr_offer *offer,
					    const struct mrf_mr_mode_ask *ask);

/* The needed bits that concern this application and that it does not offer. */
uint64_t mrf_mr_offer_missing(const struct mrf_mr_offer *offer,
			      const struct mrf_mr_mode_ask *ask);

/* domain_attr->mr_mode as answered; caps: of mrf_mr_mode_answer_caps. */
uint64_t mrf_mr_offer_answer(const struct mrf_mr_offer *offer,
			     const struct mrf_mr_mode_ask *ask, uint64_t caps);

#endif
