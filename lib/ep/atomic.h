/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3) on an endpoint.
 *
 * The device has two atomic operations, fetch-and-add and compare-and-swap, on 8 bytes at an
 * address divisible by 8. What they can do (FI_SUM, FI_CSWAP and FI_ATOMIC_READ of 64-bit
 * integers) is posted as such, an element each: "native". Everything else, and native
 * operations where the element lies otherwise, goes to the peer's agent as messages of at most
 * MRF_ATOMIC_REQUEST bytes of elements. The agent does them with the device's operations
 * through a loop (verbs/vloop.h), so that all are atomic with each other. One operation may be
 * both, element by element.
 *
 * All that an operation needs on this side is copied into it: operands, comparands, and
 * what comes back, which is delivered when all is done. So no buffer has to be registered,
 * and a local region that is closed too early harms nobody else.
 */
#ifndef MRF_EP_ATOMIC_H
#define MRF_EP_ATOMIC_H

#include "atomic/atomic.h"
#include "ep/ep.h"

/* Bytes of elements in one request: operands and comparands fit its body. */
#define MRF_ATOMIC_REQUEST(family) ((family) == MRF_ATOMIC_COMPARE ? 192u : 384u)

/* mrf_request.what of MRF_MSG_ATOMIC. */
#define MRF_ATOMIC_WHAT(family, datatype, op)                                                  \
	((uint32_t)(op) | (uint32_t)(datatype) << 8 | (uint32_t)(family) << 16)
#define MRF_ATOMIC_WHAT_OP(what) ((what)&0xff)
#define MRF_ATOMIC_WHAT_DATATYPE(what) ((what) >> 8 & 0xff)
#define MRF_ATOMIC_WHAT_FAMILY(what) ((what) >> 16 & 0xff)
/* The region counts: with this request all of the operation there is done, ... */
#define MRF_ATOMIC_WHAT_COUNT (1u << 24)
/* ... of which an earlier one has stored something. */
#define MRF_ATOMIC_WHAT_STORED (1u << 25)

/* Buffers of one kind, on this side. */
struct mrf_atomic_iov {
	const struct fi_ioc *iov;
	void **desc; /* NULL, or one each */
	size_t count;
};

/* What an atomic call asks for, from any fi_ops_atomic entry. */
struct mrf_atomic_req {
	enum mrf_atomic_family family;
	enum fi_datatype datatype;
	enum fi_op op;
	struct mrf_atomic_iov operand, compare, result;
	const struct fi_rma_ioc *rma;
	size_t rma_count;
	fi_addr_t addr;
	void *context;
	uint64_t flags;
	bool silent;
};

/* All checks of the arguments but those of descriptors; one line for each refusal. */
int mrf_atomic_check(struct mrf_ep *ep, const struct mrf_atomic_req *req);

extern struct fi_ops_atomic mrf_ep_atomic_ops;

/* What a call with one buffer of each kind asks for. */
struct mrf_atomic_one {
	enum mrf_atomic_family family;
	enum fi_datatype datatype;
	enum fi_op op;
	const void *operand;
	const void *compare;
	void *result;
	void *desc[3]; /* of these */
	fi_addr_t addr;
	uint64_t remote;
	uint64_t key;
	void *context;
};

/*
 * Copies an operand and a comparand that need not be there. compare NULL: there is none. False: one
 * of them is not there; the long way says so.
 */
bool mrf_one_copy(const void *operand, const void *compare, uint64_t copy[2]);

#endif
