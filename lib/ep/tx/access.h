/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes, carried out by the device. */
#ifndef MRF_EP_TX_ACCESS_H
#define MRF_EP_TX_ACCESS_H

#include "ep/model/peer.h"

/*
 * Posts one work request for the bytes from op->pos on, as many as fit into one segment
 * and one message. See mrf_op_type.post; ep->lock held.
 */
int mrf_access_post_locked(struct mrf_peer *peer, struct mrf_op *op);

#endif
