/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/buf: local buffers that the application did not register, registered by the cache,
 * or for one transfer.
 */
#ifndef MRF_BUF_LOCAL_PIN_H
#define MRF_BUF_LOCAL_PIN_H

#include "buf/local.h"

/*
 * At most MRF_LOCAL_IOV buffers. -FI_EFAULT: one is not mapped, or may not be read or written;
 * -FI_ENOMEM, or another error of registering memory. Nothing is logged, or held after an error.
 */
int mrf_local_pin(const struct mrf_buf *buf, const struct mrf_local_req *req,
		  struct mrf_local *local);
/* Fast, without registrations (local->temp). Harmless if nothing is pinned. */
void mrf_local_unpin(struct mrf_local *local);

#endif
