/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations of a peer: what drivers ask for whose own regions are to be operated
 * on. The peer has FI_ATOMIC in func_caps, as the driver has.
 */
#ifndef FUNC_ATOMICS_H
#define FUNC_ATOMICS_H

#include "peer.h"

enum atomic_family { PLAIN, FETCH, COMPARE };

struct peer_atomic {
	enum atomic_family family;
	unsigned datatype, op; /* enum fi_datatype, enum fi_op */
	size_t count;	       /* elements; 512 bytes at most */
	fi_addr_t to;
	uint64_t addr, key;
	uint64_t operand, compare; /* all operands and comparands are made of these 8 bytes */
	unsigned times;		   /* the same again and again */
};

/* Start and end are separate so that several peers can be at it at once. */
void peer_atomic_start(struct peer *p, const struct peer_atomic *a);
/*
 * Returns 0 or the positive FI_E* of the first failure, whose text is kept in text (500
 * bytes) unless that is NULL. *old (unless NULL): the first 8 bytes that the last one
 * fetched.
 */
int peer_atomic_end(struct peer *p, uint64_t *old, char *text);
int peer_atomic(struct peer *p, const struct peer_atomic *a, uint64_t *old);

/* In the peer: what CTL_ATOMIC asks for, with b, which is opened, for a buffer. */
void atomics_serve(struct fab *f, struct buf *b, struct ctl *m);

#endif
