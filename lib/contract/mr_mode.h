/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mr_mode negotiation: the values that fi_getinfo accepts and returns by libfabric's own
 * rules, for any provider, and the mode that a domain then runs. A provider is described
 * by a "table": the bits that it needs, together with the marker bits FI_MR_BASIC and
 * FI_MR_SCALABLE for the legacy models that it can run. This library's table: mr_offer.h.
 * Pure.
 */
#ifndef MRF_CONTRACT_MR_MODE_H
#define MRF_CONTRACT_MR_MODE_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>

/* The application's request concerning registration. */
struct mrf_mr_mode_hints {
	uint32_t api;	  /* version passed to fi_getinfo */
	uint32_t library; /* version of the library that is emulated */
	bool hints;	  /* false: hints was NULL, all below is 0 */
	bool domain_attr; /* false: hints->domain_attr was NULL, mr_mode is 0 */
	uint64_t mr_mode; /* hints->domain_attr->mr_mode */
	uint64_t caps;	  /* hints->caps */
	uint64_t mode;	  /* hints->mode */
};

/* Why an offer was not accepted; 0: it was accepted. */
enum mrf_mr_mode_verdict {
	MRF_MR_ACCEPTED,
	MRF_MR_LOCAL_NEEDED,	/* neither FI_MR_LOCAL nor FI_LOCAL_MR is offered */
	MRF_MR_NO_LEGACY,	/* before 1.5, and the provider has no legacy model */
	MRF_MR_NO_BASIC,	/* FI_MR_BASIC, which the provider does not support */
	MRF_MR_NO_SCALABLE,	/* FI_MR_SCALABLE, which the provider does not support */
	MRF_MR_NOT_LEGACY,	/* before 1.5, and neither 0, BASIC nor SCALABLE alone */
	MRF_MR_BASIC_NOT_ALONE, /* FI_MR_BASIC together with another bit */
	MRF_MR_SCALABLE_NOT_ALONE,
	MRF_MR_UNSPEC,	     /* mr_mode 0, up to library 1.15; and see mr_offer.h */
	MRF_MR_BITS_MISSING, /* bits that the provider needs are not offered */
	/* FI_HMEM without FI_MR_HMEM, by this library's own contract (mr_offer.h): */
	MRF_MR_HMEM_MISSING,
	MRF_MR_HMEM_NOT_LEGACY, /* with FI_MR_BASIC or FI_MR_SCALABLE */
	MRF_MR_HMEM_TOO_OLD,	/* before 1.5, where no bits can be offered */
	MRF_MR_VERDICTS
};

/* One sentence about a verdict. */
const char *mrf_mr_mode_verdict_text(enum mrf_mr_mode_verdict verdict);

/* May an application with these capabilities be the target of RMA or atomics? */
bool mrf_mr_mode_is_target(uint64_t caps);
/* The bits of mr_mode that concern an application with these capabilities. */
uint64_t mrf_mr_mode_for(uint64_t caps, uint64_t mr_mode);
/* Does the application register its local buffers? */
bool mrf_mr_mode_is_local(const struct mrf_mr_mode_hints *ask);
/* FI_LOCAL_MR if fi_info.mode has to offer it, or 0. */
uint64_t mrf_mr_mode_flag_needed(uint64_t table, const struct mrf_mr_mode_hints *ask);
enum mrf_mr_mode_verdict mrf_mr_mode_check(uint64_t table, const struct mrf_mr_mode_hints *ask);
/*
 * The caps to return; caps_in: the caps that the application would get without regard to
 * registration.
 */
uint64_t mrf_mr_mode_answer_caps(uint64_t table, const struct mrf_mr_mode_hints *ask,
				 uint64_t caps_in);
/* The domain_attr->mr_mode to return; caps: from mrf_mr_mode_answer_caps. */
uint64_t mrf_mr_mode_answer(uint64_t table, const struct mrf_mr_mode_hints *ask, uint64_t caps);
/* FI_LOCAL_MR if the fi_info.mode to return contains it, or 0. */
uint64_t mrf_mr_mode_answer_flag(uint64_t table, const struct mrf_mr_mode_hints *ask);

/* --- the mode of a domain ----------------------------------------------------- */

/* Every bit that is implemented. */
#define MRF_MR_MODES                                                                    \
	(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | \
	 FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT | FI_MR_HMEM)

/* True for any set of MRF_MR_MODES, and for one legacy value alone. */
bool mrf_mr_mode_known(uint64_t mr_mode);

/* The bits that mr_mode stands for: BASIC and SCALABLE are replaced. */
uint64_t mrf_mr_mode_resolve(uint64_t mr_mode);

/*
 * The mode of a domain that is opened with this mr_mode and this fi_info.mode;
 * FI_LOCAL_MR in fi_info.mode stands for FI_MR_LOCAL if mr_mode has no bits of its own.
 */
uint64_t mrf_mr_mode_runs(uint64_t mr_mode, uint64_t mode);

#endif
