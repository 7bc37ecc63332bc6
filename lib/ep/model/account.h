/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account of an operation: what of it is out, and what is done. It is a part of struct mrf_op
 * and guarded by ep->lock.
 *
 * An operation is a run of bytes [0, total), and perhaps data behind them:
 *
 *	0 ........ acked ........ pos ........ total
 *	   done            posted      to be posted
 *
 * The ways in which it can be out, each with a byte of its own; together they are op->out:
 *
 *		  goes out when			   comes back when		  in units of
 *	inflight  a work request is posted	   its completion is taken in	  work requests
 *	awaiting  a request is made (tx/rpc.h)	   its reply is taken in, or	  requests
 *						   nobody waits for it any more
 *	chore	  a thread begins to bring its	   the thread has ended		  one
 *		  buffers within reach
 *	doubt	  its work requests came back	   the next connection tells, or  one: the status
 *		  and may have been done	   there is none		  that is told if not
 *	undelivered  a message is posted that	   the target says that it has	  one
 *		  completes when it is there	   it, or the line is lost
 *	offered   a message is posted whose	   the target says that it wants  one
 *		  bytes the target asks for	   no more, or all are done
 *
 * Bytes and packets are counted apart: a work request says how many bytes of the operation are done
 * when it has succeeded (none, if the peer's agent has yet to put them into a device), and how many
 * packets it took (struct mrf_posted).
 *
 * Whatever comes back, mrf_settle_locked (tx/settle.h) says what follows; nothing else does. While
 * something is out it does nothing. So an operation neither ends nor is rewound under a work
 * request, a reply or a thread, and another way to be out is a byte here and a line above.
 *
 *	nothing is out, and it has	what follows
 *	failed				it ends with an error
 *	again				what is not done will be posted again: pos = acked
 *	all done			it becomes its next type, or ends with success
 *	more to be posted		it waits for its turn
 *
 * The invariant that holds when ep->lock is free (mrf_account_right_locked): acked <= pos <= total.
 * `again` and `failed` are set only while something is out, or (failed) in chores.list. An operation
 * of which nothing is out is in one list. inflight and awaiting are what the ring and the window of
 * its peer's connection have of it, and chore is set for the one that a thread is at.
 */
#ifndef MRF_EP_MODEL_ACCOUNT_H
#define MRF_EP_MODEL_ACCOUNT_H

#include "ep/model/op.h"

/* The data for the peer's application have been posted, or are nothing of op's type. */
static inline bool mrf_account_data_posted(const struct mrf_op *op)
{
	return !op->imm.has || op->imm.posted || !op->type->data;
}

/* Everything has been posted. */
static inline bool mrf_account_posted(const struct mrf_op *op)
{
	return op->pos == op->total && mrf_account_data_posted(op);
}

/* Nothing is out, and everything is done. */
static inline bool mrf_account_done(const struct mrf_op *op)
{
	return !op->out && op->acked == op->total && mrf_account_data_posted(op);
}

/*
 * What is not done will be posted again. Nothing is out, so what was posted of it has failed.
 */
void mrf_account_rewind_locked(struct mrf_op *op);
/*
 * op is queued, and its connection is lost; something may still be out. What the peer held for op is
 * lost, too, although nothing comes back that would tell; and at the next connection the address may
 * belong to another endpoint, with other keys.
 */
void mrf_account_lost_locked(struct mrf_op *op);
/*
 * Nobody waits any more for the replies to op's requests. True: the peer may carry some of them out
 * all the same.
 */
bool mrf_account_disown_locked(struct mrf_op *op);
/* op ends: aborts if something is out, in builds with --enable-lockrank. */
#ifdef MRF_LOCKRANK
void mrf_account_close_locked(const struct mrf_op *op);
/* Does the invariant hold for all operations that the peer has queued or posted? */
bool mrf_account_right_locked(const struct mrf_peer *peer);
#else
#define mrf_account_close_locked(op) ((void)(op))
#endif

#endif
