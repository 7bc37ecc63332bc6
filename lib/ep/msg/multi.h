/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives of many messages (FI_MULTI_RECV): each message that matches takes the next part of the
 * buffer, as long as it is, when it matches. Such a receive stays posted until too little is left.
 * Then, when all of its messages are where they belong, the buffer is the application's again: the
 * last of their entries says so. A message that is longer than what is left is cut.
 *
 * With ep->lock held.
 */
#ifndef MRF_EP_MSG_MULTI_H
#define MRF_EP_MSG_MULTI_H

#include "base/compiler.h"
#include "ep/model/ep.h"
#include "ep/msg/deliver.h"

/* Belongs to the receive. */
struct mrf_recv_multi {
	size_t used;	    /* bytes */
	size_t min;	    /* while so many are left, it stays posted */
	unsigned under_way; /* messages that have a part, and are not there yet */
	bool posted;
	bool left;     /* it takes no more messages */
	bool canceled; /* to be told when the messages under way are there */
	bool over;     /* it has left, and all messages are there */
};

/* As mrf_match_arrive, but a receive of many messages stays posted. */
struct mrf_match_recv *mrf_multi_arrive_locked(struct mrf_inbox *inbox, struct mrf_match *match,
					       uint64_t source, uint64_t tag);
/* The receive that takes a message. NULL: there is none. */
static inline struct mrf_match_recv *mrf_recv_arrive_locked(struct mrf_inbox *inbox,
							    struct mrf_match *match,
							    uint64_t source, uint64_t tag)
{
	mrf_lock_held(&inbox->ep->lock);
	return mrf_unlikely(inbox->multis) ? mrf_multi_arrive_locked(inbox, match, source, tag)
					   : mrf_match_arrive(match, source, tag);
}

/* It is posted. */
void mrf_multi_posted_locked(struct mrf_inbox *inbox, struct mrf_recv *recv);
/* The message takes its part. False: the receive takes no more of them, and has left. */
bool mrf_multi_take_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			   struct mrf_message *message);
/* It takes no more messages. */
void mrf_multi_leave_locked(struct mrf_inbox *inbox, struct mrf_recv *recv);
/* A message is there, or lost. True: it was the last one, and the receive is over. */
bool mrf_multi_give(struct mrf_recv *recv);
/* It is canceled. True: it is over. False: it will be told when it is. */
bool mrf_multi_cancel_locked(struct mrf_inbox *inbox, struct mrf_recv *recv);

#endif
