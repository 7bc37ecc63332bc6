/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>
#include "ep/model/account.h"
#include "ep/tx/chores.h"
#include "ep/tx/order.h"
#include "ep/tx/settle.h"

/* --- the end ------------------------------------------------------------------------------ */

/* Puts before the reason what was done. If there is no room for both, the reason matters more. */
static void say_what_was_done_locked(struct mrf_op *op)
{
	struct mrf_why why = op->why;

	if (!op->acked || !mrf_kind_changes(op->type->kind) ||
	    strlen(why.text) >= sizeof(why.text) - 96)
		return;
	mrf_why_set(&op->why, why.err, why.code,
		    "%" PRIu64 " of %" PRIu64 " bytes were done%s, then: %s", op->acked, op->total,
		    op->broken.disowned ? ", and perhaps more" : "", why.text);
}

static void end_locked(struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	mrf_account_close_locked(op);
	if (mrf_unlikely(op->queued))
		mrf_op_leave_locked(op);
	if (mrf_unlikely(op->failed)) {
		say_what_was_done_locked(op);
		mrf_chores_failed_locked(op->peer->ep, op);
	} else {
		mrf_chores_done_locked(op->peer->ep, op);
	}
}

/* --- before the end ------------------------------------------------------------------------ */

static bool is_done_locked(struct mrf_op *op)
{
	if (mrf_account_done(op))
		return true;
	if (op->type->back)
		op->type->back(op->peer, op);
	return mrf_account_done(op);
}

/* Nothing is out, and something may be special about op. */
void mrf_settle_special_locked(struct mrf_op *op)
{
	if (op->failed) {
		end_locked(op);
		return;
	}
	if (op->again)
		mrf_account_rewind_locked(op);
	if (!is_done_locked(op))
		return;
	if (op->type->done)
		op->type->done(op->peer, op);
	else
		end_locked(op);
}

void mrf_settle_again_locked(struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	op->again = true;
	mrf_settle_locked(op);
}

void mrf_settle_fail_locked(struct mrf_op *op, const struct mrf_why *why)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (!op->failed) {
		mrf_order_part_locked(op);
		op->broken.disowned = mrf_account_disown_locked(op);
		op->doubt = MRF_WC_OK;
		if (op->queued)
			mrf_op_leave_locked(op);
		op->failed = true;
		op->why = *why;
	}
	mrf_settle_locked(op);
}
