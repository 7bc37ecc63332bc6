/* SPDX-License-Identifier: BSD-2-Clause */
/* May an operation be, and where do its bytes go at the peer? ep->lock held. */
#ifndef MRF_EP_RESOLVE_H
#define MRF_EP_RESOLVE_H

#include "ep/peer.h"
#include "ep/why.h"

enum mrf_resolved {
	MRF_RESOLVED,
	MRF_RESOLVE_WAIT, /* a question is on the way, or waits for room */
	MRF_RESOLVE_FAIL  /* the operation cannot be: err, code and text say why */
};

/* Is the whole operation allowed? Every key of it is resolved or carries what is needed. */
enum mrf_resolved mrf_resolve_op(struct mrf_op *op, struct mrf_why *why);
/*
 * Where byte `from` of the operation goes: rkey, remote address, and how far that reaches. False
 * when the key has ceased to be known.
 */
bool mrf_resolve_piece(const struct mrf_op *op, uint64_t from, uint32_t *rkey,
		       uint64_t *remote_addr, uint64_t *len);
/* The number of the region that byte `from` goes to; 0: it has none, or is not known. */
uint32_t mrf_resolve_number(const struct mrf_op *op, uint64_t from);
/*
 * How the peer's agent calls byte `from` of the operation: sets key, serial, addr, and in len how
 * far that reaches. False when the key has ceased to be known.
 */
bool mrf_resolve_request(const struct mrf_op *op, uint64_t from, struct mrf_request *request);
/*
 * What number the target wants with the bytes of the operation, a write, that end at `upto`; 0:
 * none. False when a key has ceased to be known.
 */
bool mrf_resolve_event(const struct mrf_op *op, uint64_t upto, uint32_t *event);
/*
 * A cached answer that allows the whole access and serves it from one segment; false: go the
 * long way, whatever the reason.
 */
bool mrf_resolve_cached(const struct mrf_peer *peer, uint64_t key, enum mrf_op_kind kind,
			uint64_t addr, uint64_t len, uint32_t *rkey, uint64_t *remote_addr,
			uint32_t *event);
/* What was known of the operation's keys is not to be trusted any more. */
void mrf_resolve_forget(struct mrf_op *op);

#endif
