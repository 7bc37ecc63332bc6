/* SPDX-License-Identifier: BSD-2-Clause */
/* Does what is known of a region allow an operation? ep->lock held. */
#ifndef MRF_EP_RESOLVE_JUDGE_H
#define MRF_EP_RESOLVE_JUDGE_H

#include "ep/model/peer.h"
#include "ep/model/why.h"
#include "ep/resolve/remote.h"

enum mrf_verdict {
	MRF_JUDGED_GOOD,
	MRF_JUDGED_BAD,	 /* why holds the reason */
	MRF_JUDGED_LACKS /* *done bytes are known, the rest has to be asked for */
};

/* Was the answer asked for after the operation began? */
static inline bool mrf_judge_fresh_locked(const struct mrf_op *op, const struct mrf_remote *remote)
{
	mrf_lock_held(&op->peer->ep->lock);
	return remote->cookie >= op->stamp;
}

/* Does the region grant what the operation needs? False: why holds the reason. */
bool mrf_judge_access_locked(const struct mrf_op *op, const struct mrf_remote *remote,
			     struct mrf_why *why);
/*
 * Judges the bytes of one remote buffer. MRF_JUDGED_BAD counts only if the answer is
 * fresh.
 */
enum mrf_verdict mrf_judge_locked(const struct mrf_op *op, const struct mrf_remote *remote,
				  const struct fi_rma_iov *rma, uint64_t *done,
				  struct mrf_why *why);

#endif
