/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "base/errtext.h"
#include "ep/commit.h"
#include "ep/peer_int.h"

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

static void explain_check(const struct mrf_op *op, const struct mrf_reply *reply,
			  struct mrf_why *why)
{
	int err = reply->err && reply->err < FI_ERRNO_MAX ? (int)reply->err : FI_EIO;

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

static void explain_flush(const struct mrf_op *op, const struct mrf_reply *reply,
			  struct mrf_why *why)
{
	int err = reply->err && reply->err < FI_ERRNO_MAX ? (int)reply->err : FI_EIO;

	mrf_why_set(why, err, 4272,
		    "key 0x%" PRIx64 ": the bytes were written, but the peer could not make them "
		    "persistent: %s", op->rma[0].key, mrf_errtext(err));
}

static void begin_again(struct mrf_op *op, enum mrf_op_kind kind, const struct mrf_rpc *rpc)
{
	op->kind = kind;
	op->rpc = rpc;
	op->pos = op->acked = 0;
	op->resolved = false;
}

static const struct mrf_rpc check = { MRF_MSG_FLUSH, fill_check, NULL, explain_check };
static const struct mrf_rpc flush = { MRF_MSG_FLUSH, fill_flush, NULL, explain_flush };

void mrf_commit_begin(struct mrf_op *op)
{
	op->commit = true;
	begin_again(op, MRF_OP_RPC, &check);
}

void mrf_commit_checked(struct mrf_op *op)
{
	begin_again(op, MRF_OP_WRITE, NULL);
}

void mrf_commit_written(struct mrf_peer *peer, struct mrf_op *op)
{
	op->commit = false;
	op->refused = 0;
	begin_again(op, MRF_OP_RPC, &flush);
	op->queued = true;
	mrf_list_add_head(&op->node, &peer->queue);
}

bool mrf_commit_is_written(const struct mrf_op *op)
{
	return op->kind == MRF_OP_RPC && op->rpc == &flush;
}

/* --- the target --------------------------------------------------------------------------- */

int mrf_commit_serve(struct mrf_ep *ep, const struct mrf_request *request,
		     struct mrf_reply *reply, uint8_t *body)
{
	struct mrf_mr_ask ask = { .key = request->key,
				  .serial = request->serial,
				  .addr = request->addr,
				  .len = request->len,
				  .port = &ep->port };
	int err = 0;

	(void)body;
	if (!request->len || request->what > MRF_FLUSH_DO)
		return -FI_EINVAL;
	reply->status = mrf_mr_commit(&ep->domain->space, &ask, request->what == MRF_FLUSH_DO,
				      &err);
	if (reply->status != MRF_MR_OK)
		return 0;
	reply->status = err ? MRF_REPLY_FAILED : MRF_REPLY_DONE;
	reply->err = (uint32_t)err;
	reply->done = err ? 0 : request->len;
	return 0;
}
