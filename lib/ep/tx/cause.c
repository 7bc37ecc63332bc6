/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/budget.h"
#include "ep/tx/cause.h"
#include "ep/tx/settle.h"

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
			    "the kernel accepts no more work requests from this process (or "
			    "thread), whose credentials have changed since it opened the domain" },
	[MRF_WC_OTHER] = { FI_EIO, 4113, "the device reported an error on the connection" },
};

static const struct cause always_flushed = {
	FI_ECONNRESET, 4116,
	"the connection broke each time that the access was tried, and nothing says why"
};

/*
 * Is it known what became of it? It is of an access whose own buffer was at fault, unless the device
 * had sent it before.
 */
static bool is_known_locked(const struct mrf_op *op, enum mrf_wc_status status)
{
	if (status != MRF_WC_LOCAL || op->awaiting)
		return false;
	return !op->peer->conn->behind_ran || mrf_kind_arrives(op->type->kind);
}

static const char *doubt_text(enum mrf_op_kind kind)
{
	switch (kind) {
	case MRF_OP_SEND:
		return ": the message may or may not have come";
	case MRF_OP_READ:
	case MRF_OP_WRITE:
	case MRF_OP_RPC:
	case MRF_OP_ATOMIC:
		break;
	}
	return ": the access may or may not have been done";
}

bool mrf_cause_is_lasting(const struct mrf_op *op, enum mrf_wc_status status)
{
	return status == MRF_WC_FLUSHED && op->broken.timeouts > MRF_TIMEOUTS;
}

void mrf_cause_fail_locked(struct mrf_op *op, enum mrf_wc_status status, const char *doubt)
{
	const struct cause *cause =
		mrf_cause_is_lasting(op, status) ? &always_flushed : &causes[status];
	struct mrf_why why;
	char addr[64];

	mrf_lock_held(&op->peer->ep->lock);
	mrf_why_set(&why, cause->err, cause->code, "%s: %s%s",
		    mrf_addr_text(&op->peer->addr, addr, sizeof(addr)), cause->text, doubt);
	mrf_refuse(why.err, FI_LOG_EP_DATA, (unsigned)why.code, "%s", why.text);
	mrf_settle_fail_locked(op, &why);
}

void mrf_cause_fail_doubt_locked(struct mrf_op *op, enum mrf_wc_status status)
{
	mrf_lock_held(&op->peer->ep->lock);
	mrf_cause_fail_locked(op, status,
			      is_known_locked(op, status) ? "" : doubt_text(op->type->kind));
}
