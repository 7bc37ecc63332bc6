/* SPDX-License-Identifier: BSD-2-Clause */
/* An atomic operation at the initiator. ep->lock held, but for mrf_atomic_submit. */
#ifndef MRF_EP_ATOMIC_OP_H
#define MRF_EP_ATOMIC_OP_H

#include "ep/atomic.h"
#include "ep/rpc.h"

/*
 * Results of native elements land here: a few for each operation that an endpoint can have,
 * by its number. Registered with the first atomic operation; ep->lock.
 */
#define MRF_ATOMIC_CELLS 8 /* native elements of one operation in flight */

struct mrf_atomic_cells {
	struct mrf_vmr mr;
	uint64_t cell[MRF_EP_ALL_OPS][MRF_ATOMIC_CELLS];
};

extern const struct mrf_op_type mrf_op_atomic;

/* Starts a checked operation. The errors of mrf_op_new; -FI_EAGAIN: there is no place. */
int mrf_atomic_submit(struct mrf_ep *ep, const struct mrf_atomic_req *req);

/* Of mrf_atomic_cells: there, or made. -FI_ENOMEM and the like; logged. ep->lock held. */
int mrf_atomic_cells_get(struct mrf_ep *ep);
void mrf_atomic_cells_free(struct mrf_ep *ep);

#endif
