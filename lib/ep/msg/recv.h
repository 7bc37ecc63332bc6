/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives of fi_msg(3) that the application has posted, and what becomes of them. Each waits in
 * the endpoint's matcher until a message matches it, or it is canceled.
 */
#ifndef MRF_EP_MSG_RECV_H
#define MRF_EP_MSG_RECV_H

#include "ep/model/ep.h"
#include "ep/msg/inbox.h"

/* The arguments of a receive call, which have been checked. */
struct mrf_recv_req {
	const struct iovec *iov;
	void **desc; /* NULL, or one per iov */
	size_t count;
	fi_addr_t from; /* with FI_DIRECTED_RECV; its own name, as mrf_av_find says it */
	bool tagged;
	uint64_t tag, ignore; /* of a tagged one */
	void *context;
	bool silent; /* no completion when it succeeds */
	bool multi;  /* FI_MULTI_RECV: one buffer for many messages, of at least a byte */
};

/*
 * Posts a receive, or has it take the oldest unexpected message that it matches. -FI_EAGAIN: there
 * is no memory, or MRF_RECVS are posted; nothing was done. No lock is held.
 */
int mrf_recv_post(struct mrf_ep *ep, const struct mrf_recv_req *req);
/*
 * As mrf_recv_post, for the message that was claimed with req->context. -FI_EINVAL: there is none.
 */
int mrf_recv_post_claimed(struct mrf_ep *ep, const struct mrf_recv_req *req);

/* --- for peek.c; ep->lock is held ----------------------------------------------------- */

/* The oldest message that such a receive would take; it stays where it is. NULL: there is none. */
struct mrf_message *mrf_recv_find_locked(struct mrf_inbox *inbox, const struct mrf_recv_req *req);
/* Sets it aside, until mrf_recv_claimed_locked takes the one with this context out. */
void mrf_recv_claim_locked(struct mrf_inbox *inbox, struct mrf_message *message,
			   const void *context);
/* NULL: there is none with this context. */
struct mrf_message *mrf_recv_claimed_locked(struct mrf_inbox *inbox, const void *context);

/* --- all the rest --------------------------------------------------------------------- */

/*
 * Cancels the receive with this context that was posted first: its entry (FI_ECANCELED) has been
 * written. -FI_ENOENT: there is none that waits. ep->lock is held.
 */
int mrf_recv_cancel_locked(struct mrf_ep *ep, const void *context);
/* How many are posted. ep->lock is held. */
size_t mrf_recv_posted_locked(const struct mrf_ep *ep);
/* Frees all that is posted, unexpected or late, without completions. Nobody else works with it. */
void mrf_recv_drop_all(struct mrf_inbox *inbox);

#endif
