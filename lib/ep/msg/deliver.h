/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message has met its receive: its bytes are copied to the application's buffers, and the
 * receive completes.
 *
 * Under ep->lock they are copied only to memory that cannot make the thread wait: that of a pinned
 * region whose descriptor was given, and pages that are known (base/known.h). All else is late: the
 * thread that made progress copies it afterwards, without the lock, and what would have to wait for
 * memory becomes a job of its own. So one buffer that is not there holds up no other. The agent
 * copies nothing that is late itself.
 */
#ifndef MRF_EP_MSG_DELIVER_H
#define MRF_EP_MSG_DELIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "ep/model/why.h"
#include "ep/msg/inbox.h"

/* The buffers of a receive that has several, and their descriptors. */
struct mrf_recv_more {
	size_t count;
	void **desc; /* NULL, or one per buffer; behind iov */
	struct iovec iov[];
};

struct mrf_recv_multi;

/* A receive that the application has posted. */
struct mrf_recv {
	struct mrf_match_recv match; /* or, if it is none, at match.all in inbox->free_recvs */
	void *context;
	void *buf;  /* the only buffer, unless there are more */
	size_t len; /* of all buffers */
	void *desc;
	struct mrf_recv_more *more;   /* NULL: there is at most one */
	struct mrf_recv_multi *multi; /* NULL: it takes one message */
	bool silent;
	bool tagged;
	bool claims; /* takes a message that was claimed */
};

static inline struct mrf_recv *mrf_recv_of(struct mrf_match_recv *match)
{
	return mrf_container_of(match, struct mrf_recv, match);
}

/*
 * The message, which is in no list, goes to recv, which is not posted: both are used up. But a
 * receive of many messages may be posted, and is used up when it is over. True: it takes more of them.
 * ep->lock is held.
 */
bool mrf_deliver_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			struct mrf_message *message);
/* Where the message goes, if that is one piece of memory. */
static inline struct iovec mrf_deliver_room(const struct mrf_recv *recv,
					    const struct mrf_message *message)
{
	if (mrf_unlikely(recv->multi != NULL))
		return message->late.part;
	return (struct iovec){ recv->buf, recv->len };
}
/*
 * Of a receive of several buffers: the first ones, up to so many bytes, of which it has as many at least.
 * Fills iov, of MRF_LIMIT_IOV, and returns their number.
 */
size_t mrf_deliver_cut(const struct mrf_recv *recv, size_t left, struct iovec *iov);
/* With FI_MR_LOCAL, is the region of each buffer open still? */
bool mrf_deliver_is_open(const struct mrf_inbox *inbox, const struct mrf_recv *recv);
/*
 * The receive is over, as far as it is for this message, which is dropped: it has it, or (why) it fails.
 * ep->lock is held.
 */
void mrf_deliver_end_locked(struct mrf_inbox *inbox, struct mrf_recv *recv,
			    struct mrf_message *message, const struct mrf_why *why);
/* The region of its buffer was closed; that is not mapped, or may not be written. */
extern const struct mrf_why mrf_deliver_closed, mrf_deliver_unmapped;
/*
 * The message, which is in no list, is dropped. Who has offered it is told that it is over. ep->lock is
 * held.
 */
void mrf_deliver_drop_locked(struct mrf_inbox *inbox, struct mrf_message *message);
/*
 * The receive was canceled, and is not posted: it fails with FI_ECANCELED, and is used up. One of many
 * messages is over. ep->lock is held.
 */
void mrf_deliver_canceled_locked(struct mrf_inbox *inbox, struct mrf_recv *recv);
/* recv can be used again. ep->lock is held. */
void mrf_recv_put_locked(struct mrf_inbox *inbox, struct mrf_recv *recv);

/* Is anything late that no thread is at? ep->lock is held. */
static inline bool mrf_deliver_has_late_locked(const struct mrf_inbox *inbox)
{
	return inbox && !mrf_list_empty(&inbox->late);
}
/*
 * Copies all that is late; the agent has a job do it. If another thread is at it, that one goes on
 * until there is nothing left. ep->lock is held, and left meanwhile.
 */
void mrf_deliver_late_locked(struct mrf_inbox *inbox);

/* --- when nobody works with the inbox any more ------------------------------------------ */

void mrf_deliver_free_recv(struct mrf_recv *recv);
/* Of a message that no receive has taken. */
void mrf_deliver_free_unreceived(struct mrf_message *message);
/* Of one on its way to a receive, which is freed with it. */
void mrf_deliver_drop_reached(struct mrf_message *message);

#endif
