/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers with memory of devices, which the kernel cannot pin. Their bytes pass through
 * registered memory of the host, a ring of chunks that each such transfer has until it ends.
 * Bytes to be sent are copied from the device chunk by chunk, the first chunk in the call unless
 * other transfers are under way; bytes that arrive are copied to it when their chunk is complete.
 * The device's copies and the transfer of other chunks go on at the same time.
 *
 * Other buffers of the same transfer are copied, too.
 *
 * A long message waits for its peer for as long as that likes, and holds no ring meanwhile: it is
 * kept apart, and its parts are copied from or to the memory of its line (ep/msg/copies.h).
 */
#ifndef MRF_BUF_STAGE_H
#define MRF_BUF_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "buf/stage_ring.h"

#define MRF_STAGE_RINGS 16 /* of an endpoint's transfers */

struct mrf_buf;
struct mrf_local;
struct mrf_local_req;
struct mrf_sge;

/* Is a buffer memory of a device? */
bool mrf_stage_needed(const struct mrf_buf *buf, const struct mrf_local_req *req);
/*
 * As mrf_local_take, for a transfer that needs it and whose descriptors were checked; after an
 * error local may still hold something. -FI_EAGAIN: all rings are in use, and it is no message, which
 * is kept apart then; -FI_EFAULT: memory was freed; -FI_EIO: the device or its runtime fails;
 * -FI_ENOMEM. All but the first are logged.
 */
int mrf_stage_take(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local);
/* Fast, and allowed under an endpoint's lock. */
void mrf_stage_give(struct mrf_buf *buf, struct mrf_local *local);

/*
 * Is there a step to be done, which is to copy a chunk from or to the device? `acked` bytes of
 * the transfer are acknowledged. Under the endpoint's lock.
 */
bool mrf_stage_has_step(const struct mrf_local *local, uint64_t acked);
/* Begins the step: returns how many bytes are to be copied. Under the endpoint's lock. */
uint64_t mrf_stage_begin(struct mrf_local *local, uint64_t acked);
/*
 * The bytes of a transfer, if they arrive, come from a device: as many may be under way as there is
 * room for, because that device takes its time, too. Under the lock.
 */
void mrf_stage_widen(struct mrf_local *local);
/*
 * Copies them, without the lock. Errors as in mrf_stage_take (logged), and -FI_ECANCELED: a
 * region was closed.
 */
int mrf_stage_copy(const struct mrf_buf *buf, const struct mrf_local *local, uint64_t len);
/* Ends the step. Under the lock. */
void mrf_stage_end(struct mrf_local *local, uint64_t len);
/*
 * Of a transfer that is kept apart: copies these bytes to host, or from there if they arrive. No lock
 * is held. Errors as in mrf_stage_copy.
 */
int mrf_stage_part(const struct mrf_buf *buf, const struct mrf_local *local, uint64_t from,
		   uint64_t len, void *host);
/* As mrf_local_sges. */
int mrf_stage_sge(const struct mrf_local *local, uint64_t from, uint64_t *len, struct mrf_sge *sge);
/*
 * Everything has arrived: copies the rest to the buffers. No lock is held. Errors as before;
 * -FI_EAGAIN: pages of the host have to be read in first, and may_wait is false.
 */
int mrf_stage_deliver(const struct mrf_buf *buf, const struct mrf_local *local, bool may_wait);

/* Buffers with their descriptors (desc: NULL, or one for each, or NULL for those without). */
struct mrf_staged {
	const struct iovec *iov;
	void *const *desc;
	size_t count;
};

/* Copies bytes [from, from + len) of the buffers to or from host. Errors as before. */
int mrf_stage_gather(const struct mrf_buf *buf, const struct mrf_staged *all, uint64_t from,
		     uint64_t len, void *host);
int mrf_stage_scatter(const struct mrf_buf *buf, const struct mrf_staged *all, uint64_t from,
		      uint64_t len, const void *host, bool may_wait);

#endif
