/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of a peer's device memory by way of the ring that the peer has for this connection
 * (docs/WIRE.md).
 *
 *   write: the next bytes are written to the ring, and a request behind them has the peer's agent
 *          put them into the device. Bytes are done when the request is.
 *   read:  a request has the agent get the next bytes into the ring; then they are read there.
 *
 * Either way the next bytes are on their way while the peer copies those before. One operation at
 * a time uses the ring, where byte pos of it has the place pos % MRF_PROTO_RING.
 */
#ifndef MRF_EP_TX_RING_OP_H
#define MRF_EP_TX_RING_OP_H

#include "ep/model/peer.h"

/* What an operation becomes. A read has fetched = pos then. */
extern const struct mrf_op_type mrf_op_ring_write, mrf_op_ring_read;

#endif
