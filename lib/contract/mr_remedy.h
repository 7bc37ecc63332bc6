/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an application could have asked for instead, when its mr_mode was refused. The rules themselves
 * (mr_offer.h) are asked whether they would accept it. Pure.
 */
#ifndef MRF_CONTRACT_MR_REMEDY_H
#define MRF_CONTRACT_MR_REMEDY_H

#include "contract/mr_offer.h"

/*
 * The request that comes nearest to a refused one and is accepted: it differs in mode, else in mr_mode,
 * else in the version. False: there is none.
 */
bool mrf_mr_remedy_find(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask,
			struct mrf_mr_mode_hints *better);
/*
 * What to change, as the end of a sentence: "set hints->domain_attr->mr_mode to FI_MR_RAW". Empty if
 * there is no remedy. Returns buf.
 */
char *mrf_mr_remedy_text(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask,
			 char *buf, size_t len);

#endif
