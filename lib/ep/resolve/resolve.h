/* SPDX-License-Identifier: BSD-2-Clause */
/* Is an operation allowed, and where do its bytes go at the peer? ep->lock held. */
#ifndef MRF_EP_RESOLVE_RESOLVE_H
#define MRF_EP_RESOLVE_RESOLVE_H

#include "ep/model/peer.h"
#include "ep/model/why.h"

enum mrf_resolved {
	MRF_RESOLVED,
	MRF_RESOLVE_WAIT, /* a question is on the way, or waits for room */
	MRF_RESOLVE_FAIL  /* the operation is not allowed: why holds the reason */
};

/*
 * Is the whole operation allowed? MRF_RESOLVED: every key of it is resolved or carries
 * its rkey.
 */
enum mrf_resolved mrf_resolve_op_locked(struct mrf_op *op, struct mrf_why *why);
/* Where bytes of an operation go. */
struct mrf_piece {
	uint64_t len;  /* how many of them: never 0 */
	uint64_t addr; /* of the first one, for work requests; means nothing if staged */
	uint32_t rkey;
	bool staged; /* to memory of a device: rkey means nothing */
};

/*
 * Finds where byte `from` of the operation goes, and how many of those behind it go there, too.
 * False when the key has ceased to be known.
 */
bool mrf_resolve_piece_locked(const struct mrf_op *op, uint64_t from, struct mrf_piece *piece);
/* Does byte `from` of the operation go to memory of a device, as far as is known? */
bool mrf_resolve_staged_locked(const struct mrf_op *op, uint64_t from);
/*
 * The event number of the region that byte `from` goes to; 0: the region has none, or is
 * not known.
 */
uint32_t mrf_resolve_number_locked(const struct mrf_op *op, uint64_t from);
/*
 * Names byte `from` of the operation for the peer's agent: sets key, serial and addr, and
 * len to how far that reaches. False when the key has ceased to be known.
 */
bool mrf_resolve_request_locked(const struct mrf_op *op, uint64_t from,
				struct mrf_request *request);
/*
 * Finds the event number that the target wants with the bytes of a write that end at
 * `upto`; 0: none. False when a key has ceased to be known.
 */
bool mrf_resolve_event_locked(const struct mrf_op *op, uint64_t upto, uint32_t *event);
/*
 * True if a cached answer allows the whole access and serves it from one segment. False,
 * for whatever reason: take the general path.
 */
bool mrf_resolve_cached_locked(const struct mrf_peer *peer, uint64_t key, enum mrf_op_kind kind,
			       uint64_t addr, uint64_t len, uint32_t *rkey, uint64_t *remote_addr,
			       uint32_t *event);
/* Forgets what was known of the operation's keys, which cannot be trusted any more. */
void mrf_resolve_forget_locked(struct mrf_op *op);

#endif
