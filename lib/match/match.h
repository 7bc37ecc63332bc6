/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which receive takes which message: receives that wait for a message (posted), and
 * messages that came before their receive (unexpected), both in the order in which they
 * came. No bytes, no peers, no threads; nothing allocates and nothing can fail. One of
 * these for messages and one for tagged messages, because fi_msg(3) and fi_tagged(3) never
 * match each other.
 *
 * A message goes to the first posted receive that accepts it, and a receive takes the
 * first unexpected message that it accepts. So messages of one source are received in the
 * order in which they were sent, and receives are filled in the order in which they were
 * posted. Invariant: no posted receive accepts an unexpected message.
 *
 * Receives and messages belong to the caller, who embeds them and keeps them where they
 * are while they are queued. The caller's lock guards all of it.
 */
#ifndef MRF_MATCH_MATCH_H
#define MRF_MATCH_MATCH_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

struct mrf_match {
	struct mrf_list posted;
	struct mrf_list unexpected;
};

/* What a receive accepts. For fi_msg(3): tag 0, ignore UINT64_MAX. */
struct mrf_match_want {
	uint64_t tag;
	uint64_t ignore;  /* the bits of tag that may differ */
	fi_addr_t source; /* FI_ADDR_UNSPEC: any */
};

struct mrf_match_recv {
	struct mrf_list node;
	struct mrf_match_want want;
	/*
	 * FI_MULTI_RECV: stays posted, in its place, when a message goes to it, until
	 * mrf_match_withdraw.
	 */
	bool multi;
};

struct mrf_match_message {
	struct mrf_list node;
	uint64_t tag;
	fi_addr_t source; /* FI_ADDR_NOTAVAIL: not in the address vector; only "any" accepts it */
};

void mrf_match_init(struct mrf_match *match);

/*
 * A message has come. Returns the receive that it goes to, which is no longer posted
 * unless it is a multi receive; NULL: the message is now unexpected.
 */
struct mrf_match_recv *mrf_match_arrive(struct mrf_match *match, struct mrf_match_message *message);

/*
 * A receive is posted. Returns the message for it, which is no longer unexpected; NULL:
 * none is there, and the receive waits. A multi receive that gets a message is not posted
 * yet: the caller posts it again while it has room.
 */
struct mrf_match_message *mrf_match_post(struct mrf_match *match, struct mrf_match_recv *recv);

/* FI_PEEK: the message that a receive would take now; it stays where it is. NULL: none. */
struct mrf_match_message *mrf_match_peek(const struct mrf_match *match,
					 const struct mrf_match_want *want);

/* FI_CLAIM, FI_DISCARD, or a lost peer: the message is no longer unexpected. */
void mrf_match_take(struct mrf_match_message *message);

/* fi_cancel, or a multi receive that is full: the receive is no longer posted. */
void mrf_match_withdraw(struct mrf_match_recv *recv);

#endif
