/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of fi_atomic(3). */
#ifndef MRF_EP_ATOMIC_H
#define MRF_EP_ATOMIC_H

#include "ep/model/atomic.h"

extern struct fi_ops_atomic mrf_ep_atomic_ops;

/* The arguments of a call with one buffer of each kind. */
struct mrf_atomic_one {
	enum mrf_atomic_family family;
	enum fi_datatype datatype;
	enum fi_op op;
	const void *operand;
	const void *compare;
	void *result;
	void *desc[3]; /* of operand, compare, result */
	fi_addr_t addr;
	uint64_t remote;
	uint64_t key;
	void *context;
};

/*
 * Copies an operand and a comparand from addresses that may not be mapped. compare NULL:
 * there is no comparand. False: one of them is not mapped; the general path reports that.
 */
bool mrf_one_copy(const void *operand, const void *compare, uint64_t copy[2]);

#endif
