/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes as operations. Where the peer has memory of a device, which no RDMA reaches,
 * they go by way of the ring that the peer has for this connection (docs/WIRE.md): an operation
 * has another type from then on.
 *
 *   write: the next bytes are written to the ring, and a request behind them has the peer's agent
 *          put them into the device. Bytes are done when the request is.
 *   read:  a request has the agent get the next bytes into the ring; then they are read there.
 *
 * Either way the next bytes are on their way while the peer copies those before. One operation at
 * a time uses the ring, where byte pos of it has the place pos % MRF_PROTO_RING.
 */
#ifndef MRF_EP_TX_RMA_OP_H
#define MRF_EP_TX_RMA_OP_H

#include "ep/model/peer.h"

extern const struct mrf_op_type mrf_op_read, mrf_op_write;

/*
 * Posts one work request for the bytes from op->pos on, as many as fit into one segment
 * and one message. See mrf_op_type.post; ep->lock held.
 */
int mrf_rma_op_post_locked(struct mrf_peer *peer, struct mrf_op *op);

#endif
