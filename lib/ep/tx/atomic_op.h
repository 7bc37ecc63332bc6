/* SPDX-License-Identifier: BSD-2-Clause */
/* An atomic operation at the initiator. */
#ifndef MRF_EP_TX_ATOMIC_OP_H
#define MRF_EP_TX_ATOMIC_OP_H

#include "ep/model/atomics.h"
#include "ep/resolve/resolve.h"
#include "ep/tx/rpc.h"

/*
 * Results of native elements land here: each operation that an endpoint can have owns a
 * few cells, found by its number. Registered with the first atomic operation; each is
 * guarded like its operation.
 */
#define MRF_ATOMIC_CELLS 8 /* native elements of one operation in flight */

struct mrf_atomic_cells {
	struct mrf_vmr mr;
	uint64_t cell[][MRF_ATOMIC_CELLS]; /* by op->number, < MRF_EP_ALL_OPS */
};

extern const struct mrf_op_type mrf_op_atomic;

/*
 * What an operation carries, one after the other, each of op->total bytes: operands,
 * comparands, what comes back.
 */
static inline uint8_t *mrf_atomic_operands(const struct mrf_op *op)
{
	return op->local.copy ? op->local.copy : (uint8_t *)(uintptr_t)op->local.data;
}

static inline uint8_t *mrf_atomic_comparands(const struct mrf_op *op)
{
	return mrf_atomic_operands(op) + op->total;
}

static inline uint8_t *mrf_atomic_results(const struct mrf_op *op)
{
	return mrf_atomic_operands(op) +
	       (op->atomic.family == MRF_ATOMIC_COMPARE ? 2 : 1) * op->total;
}

static inline bool mrf_atomic_fetches(const struct mrf_op *op)
{
	return op->atomic.family != MRF_ATOMIC_BASE;
}

/* Where the result of the element at byte pos of the operation lands. */
static inline uint64_t *mrf_atomic_cell(const struct mrf_ep *ep, const struct mrf_op *op,
					uint64_t pos)
{
	return &ep->cells->cell[op->number][(pos - op->atomic.collected) / sizeof(uint64_t)];
}

/*
 * Starts a checked operation. Fails like mrf_entry_fill, or with -FI_EAGAIN: too many
 * operations are under way.
 */
int mrf_atomic_submit(struct mrf_ep *ep, const struct mrf_atomic_req *req);

void mrf_atomic_cells_free(struct mrf_ep *ep);

/* Can the peer's device change a word there? It does not reach another device's memory. */
static inline bool mrf_atomic_fits_word(const struct mrf_piece *piece)
{
	return piece->len >= sizeof(uint64_t) && !piece->staged &&
	       !(piece->addr % sizeof(uint64_t));
}

#endif
