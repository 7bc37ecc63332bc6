/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3) on an endpoint.
 *
 * The device has two atomic operations, fetch-and-add and compare-and-swap, on 8 bytes at
 * an address divisible by 8. FI_SUM, FI_CSWAP and FI_ATOMIC_READ of 64-bit integers are
 * posted to the device, one work request per element: these elements are "native".
 * Another operation on one element of 8 bytes at such an address is tried by
 * compare-and-swap while it is alone (tx/atomic_swap.h). Everything else goes to the
 * peer's agent in messages of at most MRF_ATOMIC_REQUEST bytes of elements. The agent
 * carries them out with the device's operations over a loopback connection
 * (verbs/vloop.h), so that all are atomic with each other. One operation may contain
 * elements of both sorts.
 *
 * Everything that an operation needs on this side is copied into it: operands,
 * comparands, and the results, which are delivered when the whole operation is done. So
 * no buffer has to be registered, and closing a local region too early harms no other
 * operation.
 */
#ifndef MRF_EP_MODEL_ATOMICS_H
#define MRF_EP_MODEL_ATOMICS_H

#include "atomic/atomic.h"

/*
 * Bytes of elements in one request; operands and comparands together fit into its body.
 */
#define MRF_ATOMIC_REQUEST(family) ((family) == MRF_ATOMIC_COMPARE ? 192u : 384u)

/* mrf_request.what of MRF_MSG_ATOMIC. */
#define MRF_ATOMIC_WHAT(family, datatype, op) \
	((uint32_t)(op) | (uint32_t)(datatype) << 8 | (uint32_t)(family) << 16)
#define MRF_ATOMIC_WHAT_OP(what) ((what)&0xff)
#define MRF_ATOMIC_WHAT_DATATYPE(what) ((what) >> 8 & 0xff)
#define MRF_ATOMIC_WHAT_FAMILY(what) ((what) >> 16 & 0xff)
/*
 * For a region whose writes are counted: with this request the operation is done there.
 */
#define MRF_ATOMIC_WHAT_COUNT (1u << 24)
/* An earlier request of the same operation has stored something there. */
#define MRF_ATOMIC_WHAT_STORED (1u << 25)

/* The region is memory of a device. */
#define MRF_ATOMIC_WHAT_STAGED (1u << 26)

/* Local buffers: those of the operands, the comparands or the results. */
struct mrf_atomic_iov {
	const struct fi_ioc *iov;
	void **desc; /* NULL, or one per buffer */
	size_t count;
};

/* The arguments of an atomic call, from any fi_ops_atomic entry. */
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

#endif
