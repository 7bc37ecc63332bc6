/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages at their receiver. What came is an offer (tx/offer_op.h), which matches a receive like any
 * other message. Then its buffers are brought within the device's reach, receives for parts of them
 * are posted on the pair of the line (intake.h), and the sender is asked for these parts. So no byte
 * is copied, and no peer has a right to anything.
 *
 * A pull is such a message, from the match to the end:
 *
 *	waiting --(its turn)--> TAKE --> turns --(all bytes have come)--> END --> completed
 *	                                 |  ^
 *	                                 v  |
 *	                                REACH: more buffers than are held at a time
 *
 * MRF_PULLS of a sender have their turn at a time, and their parts are asked for one after the other, so
 * that a short one is not held up by a long one. TAKE, REACH and END may take long, because memory is
 * pinned and let go, and are done without ep->lock, by a thread that makes progress or, in place of
 * the agent, a job; TAKE and END not if there is nothing of that kind to do.
 *
 * What is for memory of a device is kept apart (buf/stage.h): its parts come to places of their sender's
 * (landing.h), and each is copied when it has come. It is over when all have been copied; or if one
 * cannot be, when nothing more of it comes.
 *
 * When the line is lost, what was asked for and has not come is asked for again over the next one. If
 * there is none for FI_MRFAB_CONN_TIMEOUT, all that was offered is given up.
 *
 * With ep->lock held, where nothing else is said.
 */
#ifndef MRF_EP_MSG_PULL_H
#define MRF_EP_MSG_PULL_H

#include "base/compiler.h"
#include "buf/local.h"
#include "ep/msg/deliver.h"
#include "ep/model/why.h"
#include "ep/msg/inbox.h"
#include "ep/msg/landing.h"

enum mrf_pull_step { MRF_PULL_TAKE, MRF_PULL_REACH, MRF_PULL_END };

struct mrf_pull {
	struct mrf_list node;	 /* in origin->waiting or turns, or in inbox->steps; or nowhere */
	enum mrf_pull_step step; /* in inbox->steps, or done by a thread */
	bool has_turn;		 /* it counts in origin->pulls */
	bool busy;		 /* a thread is at it, or it waits for one */
	const struct mrf_why *fails; /* when it is not busy any more; NULL: it does not */
	struct mrf_message *message; /* its receive and its part of that are message->late's */
	uint64_t room;		     /* bytes that are to come, */
	uint64_t granted, arrived;   /* that were asked for, and have come */
	struct mrf_place *place;     /* for the next part, which goes on to a device; or NULL */
	unsigned copies;	     /* of parts that have come, and are not copied yet */
	struct mrf_why why;	     /* it fails because of one of these */
	struct mrf_local local;	     /* the last member, of which the first ones alone are reset */
};

/* The offer, which is in no list but its origin's, goes to recv, as in mrf_deliver_locked. */
bool mrf_pull_begin_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			   struct mrf_message *message);
/* A message, with its bytes or not, has met its receive. As mrf_deliver_locked. */
static inline bool mrf_pull_meet_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
					struct mrf_message *message)
{
	return mrf_likely(!message->offer.is) ? mrf_deliver_locked(inbox, recv, message)
					      : mrf_pull_begin_locked(inbox, recv, message);
}
/* Asks for as much as may be on the way. The origin has a line, or nothing is done. */
void mrf_pull_go_locked(struct mrf_origin *origin);
/*
 * The next part to be asked for: *len bytes from pull->granted on, with the pieces of memory that they go
 * to, *nsge of at most MRF_LOCAL_SGE. NULL: there is none now.
 */
struct mrf_pull *mrf_pull_next_locked(struct mrf_origin *origin, uint64_t *len, struct mrf_sge *sge,
				      int *nsge);
/* So many bytes of it have been asked for. */
void mrf_pull_granted_locked(struct mrf_pull *pull, uint64_t len);
/* They have come; place: there. */
void mrf_pull_came_locked(struct mrf_pull *pull, struct mrf_place *place, uint64_t len);

/* The line of the origin is gone: nothing that was asked for comes any more. */
void mrf_pull_lost_locked(struct mrf_origin *origin);
/* There is no pair for it: all its receives fail, and it is told so. */
void mrf_pull_refuse_locked(struct mrf_origin *origin);
/* Its sender does not offer the messages with these numbers any more: [from, upto). */
void mrf_pull_withdrawn_locked(struct mrf_origin *origin, uint64_t from, uint64_t upto);
/*
 * Its sender has asked about an offer. Is it there still? Then the sender is told of its end: all bytes
 * may have come, and their acknowledgements may be lost.
 */
bool mrf_pull_asked_locked(const struct mrf_origin *origin, uint64_t number);

/*
 * Its sender has given an offer up: a receive that it has met fails with why, unless all has come; nobody
 * else is told.
 */
void mrf_pull_give_up_locked(struct mrf_message *message, const struct mrf_why *why);

/* --- for pull_step.c ------------------------------------------------------------------ */

/* Nothing is held for it, and nothing of it is on the way. why: NULL, it has come. */
void mrf_pull_complete_locked(struct mrf_pull *pull, const struct mrf_why *why);
/* Nothing of it is on the way. What takes long becomes its last step; then it completes. */
void mrf_pull_let_go_locked(struct mrf_pull *pull);

/* Nobody else works with the inbox: frees all pulls, with their receives and messages. */
void mrf_pull_drop_all(struct mrf_inbox *inbox);

#endif
