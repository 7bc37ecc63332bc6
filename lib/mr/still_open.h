/* SPDX-License-Identifier: BSD-2-Clause */
/* Names the open regions of a domain in the log, from the ledger (mr/ledger.h). */
#ifndef MRF_MR_STILL_OPEN_H
#define MRF_MR_STILL_OPEN_H

struct mrf_json;
struct mrf_mr_space;

/*
 * A line for each region that is open, in the order in which they were registered: address, length, key,
 * rights, age, what it is bound to, and which call registered it. At most 100 of them, and each is an
 * object of *json, too. Returns how many are open. No lock is held.
 */
unsigned mrf_mr_still_open_tell(struct mrf_mr_space *space, struct mrf_json *json);

#endif
