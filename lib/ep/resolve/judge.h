/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do the peer's answers allow an access?
 *
 * A refusal is only ever decided by an answer that is younger than the operation: the cookie of a
 * question is the endpoint's clock when it was asked. An older answer may speak of a region that
 * was replaced since. An answer that allows is used whatever its age, because the kernel
 * contradicts it if it is out of date. rxe does not check empty accesses at all, so they always
 * need a fresh answer. ep->lock held.
 */
#ifndef MRF_EP_RESOLVE_JUDGE_H
#define MRF_EP_RESOLVE_JUDGE_H

#include "ep/model/peer.h"
#include "ep/model/why.h"
#include "ep/resolve/remote.h"

enum mrf_verdict {
	MRF_GOOD,
	MRF_BAD,  /* why holds the reason */
	MRF_LACKS /* *done bytes are known, the rest has to be asked for */
};

/* Was the answer asked for after the operation began? */
bool mrf_judge_fresh_locked(const struct mrf_op *op, const struct mrf_remote *remote);
/* Does the region grant what the operation needs? False: why holds the reason. */
bool mrf_judge_grants_locked(const struct mrf_op *op, const struct mrf_remote *remote,
			     struct mrf_why *why);
/* Judges the bytes of one remote buffer of op. BAD counts only if the answer is fresh. */
enum mrf_verdict mrf_judge_locked(const struct mrf_op *op, const struct mrf_remote *remote,
				  const struct fi_rma_iov *rma, uint64_t *done,
				  struct mrf_why *why);

#endif
