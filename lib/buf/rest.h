/* SPDX-License-Identifier: BSD-2-Clause */
/* Room for the buffers of a transfer for which struct mrf_local has none. */
#ifndef MRF_BUF_REST_H
#define MRF_BUF_REST_H

#include "buf/local.h"

/* All buffers of a transfer, of which bytes up to `upto` are held. NULL: no memory. */
struct mrf_local_rest *mrf_local_rest_new(const struct mrf_local_req *req, uint64_t upto);
/*
 * Room for count buffers that results go to, and for their descriptors. NULL: no memory; local
 * keeps what it had.
 */
struct iovec *mrf_local_user_room(struct mrf_local *local, size_t count, void ***desc);

#endif
