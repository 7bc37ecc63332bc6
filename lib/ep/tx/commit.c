/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_COMMIT_COMPLETE at both ends: check, write, flush (commit.h). The target flushes in a thread
 * beside its agent (loop/job.h, mr/filemem.c); fi_close of the region waits for that.
 *
 * The device's FLUSH is not used. rxe has it from Linux 6.2 on; rdma-core 44 does not
 * know it. With global visibility FLUSH promises nothing about persistence. For
 * persistence the region has to be registered with IBV_ACCESS_FLUSH_PERSISTENT, which rxe
 * accepts only for pages of an NVDIMM (resource type Persistent Memory, not the legacy
 * one that memmap= makes). On 6.12, in a guest with an NVDIMM of QEMU's:
 *
 *   memory                                     remote writes   with FLUSH_PERSISTENT
 *   anonymous                                  works           EINVAL
 *   shared mapping of a file, tmpfs or 9p      EFAULT          EFAULT
 *   the same, ext4 with dax=always on NVDIMM   EOPNOTSUPP      EOPNOTSUPP
 *   /dev/dax0.0 on the NVDIMM                  works           works
 *   /dev/dax0.0, memory set aside by memmap=   works           EINVAL
 * (EFAULT for remote writes to a shared mapping is due to FOLL_LONGTERM.)
 *
 * So it is right for device DAX alone, which is no file: FI_RMA_PMEM refuses it, and
 * msync(2) fails there with EINVAL. For every region that FI_RMA_PMEM accepts, the bytes
 * become persistent only when the file system is told, by msync(2) in the process that
 * has the mapping.
 */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "base/errtext.h"
#include "ep/tx/commit.h"
#include "ep/tx/rma_op.h"

/* --- the initiator ----------------------------------------------------------------------- */

static uint64_t fill_check(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			   uint8_t *body)
{
	(void)op;
	(void)body;
	request->what = MRF_FLUSH_CHECK;
	request->body_len = 0;
	return len;
}

static uint64_t fill_flush(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			   uint8_t *body)
{
	fill_check(op, len, request, body);
	request->what = MRF_FLUSH_DO;
	return len;
}

static void explain_check(const struct mrf_op *op, int err, struct mrf_why *why)
{
	if (err == FI_EOPNOTSUPP)
		mrf_why_set(why, err, 4270,
			    "key 0x%" PRIx64 ": FI_COMMIT_COMPLETE: its region was registered "
			    "without FI_RMA_PMEM; nothing was written",
			    op->rma[0].key);
	else if (err != FI_EFAULT)
		mrf_why_set(why, err, 4240,
			    "key 0x%" PRIx64 ": FI_COMMIT_COMPLETE: the peer could not look at "
			    "these bytes: %s; nothing was written",
			    op->rma[0].key, mrf_errtext(err));
	else
		mrf_why_set(why, err, 4271,
			    "key 0x%" PRIx64 ": FI_COMMIT_COMPLETE: there is no persistent memory "
			    "behind these bytes at the peer any more; nothing was written",
			    op->rma[0].key);
}

static void explain_flush(const struct mrf_op *op, int err, struct mrf_why *why)
{
	mrf_why_set(why, err, 4272,
		    "key 0x%" PRIx64 ": the bytes were written, but the peer could not make them "
		    "persistent: %s",
		    op->rma[0].key, mrf_errtext(err));
}

static const struct mrf_op_type checking, writing, flushing;

static void become(struct mrf_op *op, const struct mrf_op_type *type)
{
	op->type = type;
	op->pos = op->acked = 0;
	op->resolved = false;
}

void mrf_commit_begin(struct mrf_op *op)
{
	become(op, &checking);
}

/* The memory is persistent: the operation becomes the write. */
static void checked_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	(void)peer;
	become(op, &writing);
}

/* The write has been acknowledged: the flush goes first in the peer's queue. */
static void written_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	op->broken.refused = 0;
	become(op, &flushing);
	if (op->queued)
		return;
	op->queued = true;
	mrf_list_add_head(&op->node, &peer->queue);
}

static const struct mrf_rpc check = { .type = MRF_MSG_FLUSH,
				      .fill = fill_check,
				      .explain = explain_check };
static const struct mrf_rpc flush = { .type = MRF_MSG_FLUSH,
				      .fill = fill_flush,
				      .explain = explain_flush };

static const struct mrf_op_type checking = {
	.kind = MRF_OP_RPC,
	.rpc = &check,
	.post = mrf_rpc_post_locked,
	.done = checked_locked,
};

static const struct mrf_op_type writing = {
	.kind = MRF_OP_WRITE,
	.data = true,
	.post = mrf_rma_op_post_locked,
	.done = written_locked,
};

static const struct mrf_op_type flushing = {
	.kind = MRF_OP_RPC,
	.begun = true,
	.rpc = &flush,
	.post = mrf_rpc_post_locked,
};
