/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/tx/fatal.h"
#include "ep/tx/chores.h"

/* Fails op because it cannot go on, and says what was done of it before. */
static void fail_rest_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_why *why)
{
	struct mrf_why more = *why;

	/* Where there is no room for both, the reason matters more. */
	if (strlen(why->text) < sizeof(why->text) - 64 && op->acked &&
	    op->type->kind != MRF_OP_READ && op->type->kind != MRF_OP_RPC)
		mrf_why_set(&more, why->err, why->code,
			    "%" PRIu64 " of %" PRIu64 " bytes were done, then: %s", op->acked,
			    op->total, why->text);
	mrf_chores_fail_locked(peer->ep, op, more.err, more.code, more.text);
}

void mrf_fatal_halt_locked(struct mrf_peer *peer, struct mrf_op *op, const struct mrf_why *why)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_op_leave_locked(op);
	if (!op->inflight) {
		fail_rest_locked(peer, op, why);
		return;
	}
	op->broken.fatal = MRF_WC_OTHER;
	op->broken.stopped = true;
	op->why = *why;
}

static const struct cause {
	int err;
	int code;
	const char *text;
} causes[] = {
	[MRF_WC_FLUSHED] = { FI_ECONNRESET, 4112, "the peer went away" },
	[MRF_WC_LOCAL] = { FI_EFAULT, 4110,
			   "the local buffer's registration does not allow this access (its "
			   "region was closed, or has another size)" },
	[MRF_WC_UNSENT] = { FI_ENETDOWN, 4114,
			    "the device cannot send, because its link is down or there is no "
			    "route" },
	[MRF_WC_TIMEOUT] = { FI_ETIMEDOUT, 4111, "there is no answer" },
	[MRF_WC_DENIED] = { FI_EACCES, 5203,
			    "the kernel takes no more work requests from this process (or "
			    "thread), whose credentials have changed since it opened the domain" },
	[MRF_WC_OTHER] = { FI_EIO, 4113, "the device reported an error on the connection" },
};

static const struct cause always_flushed = {
	FI_ECONNRESET, 4116,
	"the connection broke each time that the access was tried, and nothing says why"
};

static const struct cause *cause_of(const struct mrf_op *op)
{
	if (op->broken.fatal == MRF_WC_FLUSHED && op->broken.timeouts > MRF_TIMEOUTS)
		return &always_flushed;
	return &causes[op->broken.fatal];
}

/* Of an access whose own buffer was at fault it is known, unless the device had sent it before. */
static bool may_have_been_done_locked(const struct mrf_peer *peer, const struct mrf_op *op)
{
	return op->broken.fatal != MRF_WC_LOCAL ||
	       (peer->conn->behind_ran && op->type->kind != MRF_OP_READ);
}

void mrf_fatal_end_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	const struct cause *cause = cause_of(op);
	struct mrf_why why = op->why;
	char addr[64];

	mrf_lock_held(&peer->ep->lock);
	if (op->broken.stopped) {
		fail_rest_locked(peer, op, &why);
		return;
	}
	mrf_why_set(&why, cause->err, cause->code, "%s: %s%s",
		    mrf_addr_text(&peer->addr, addr, sizeof(addr)), cause->text,
		    may_have_been_done_locked(peer, op)
			    ? ": the access may or may not have been done"
			    : "");
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_chores_fail_locked(peer->ep, op, why.err, why.code, why.text);
}

void mrf_fatal_doubt_locked(struct mrf_peer *peer, struct mrf_op *op)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_op_leave_locked(op);
	op->broken.fatal = op->broken.doubt;
	op->broken.doubt = MRF_WC_OK;
	/* A thread is copying for it: it ends when that is done. */
	if (!op->inflight)
		mrf_fatal_end_locked(peer, op);
}
