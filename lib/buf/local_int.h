/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/buf: how local buffers come within reach. */
#ifndef MRF_BUF_LOCAL_INT_H
#define MRF_BUF_LOCAL_INT_H

#include "buf/local.h"

/* --- registered by the application, by their descriptors: local_desc.c -------------- */

/* Checks the ith buffer, as mrf_local_check does. */
int mrf_local_desc_check(const struct mrf_buf *buf, const struct mrf_local_req *req, size_t i,
			 const char *what, unsigned code);
/*
 * Adds the pieces that the descriptors name, as far as there is room: *covered bytes. strict
 * (FI_MR_LOCAL): every descriptor that does not fit its buffer is an error, even behind those
 * bytes. Otherwise such a descriptor is ignored. Returns 1 when the buffers have to be registered.
 */
int mrf_local_desc_use(const struct mrf_buf *buf, const struct mrf_local_req *req,
		       struct mrf_local *local, bool strict, uint64_t *covered);

/* Where the only piece is, as the processor knows it. NULL: there are more, or the region was closed. */
void *mrf_local_desc_memory(const struct mrf_buf *buf, const struct mrf_local *local);

/* --- registered by the cache, or for one transfer: local_pin.c ---------------------- */

/*
 * At most MRF_LOCAL_IOV buffers. -FI_EFAULT: one is not mapped, or may not be read or written;
 * -FI_ENOMEM, or another error of registering memory. Nothing is logged, or held after an error.
 */
int mrf_local_pin(const struct mrf_buf *buf, const struct mrf_local_req *req,
		  struct mrf_local *local);
/* Copies any number of buffers to be read to memory that is registered; likewise. */
int mrf_local_copy(const struct mrf_buf *buf, const struct mrf_local_req *req,
		   struct mrf_local *local);
/* Fast, without registrations (local->temp). Harmless if nothing is pinned. */
void mrf_local_unpin(struct mrf_local *local);

#endif
