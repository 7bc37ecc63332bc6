/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A passive connection: one that a peer opened to an endpoint of this process; its states
 * are in conn_state.h. Agent thread.
 */
#ifndef MRF_EP_LINK_PASSIVE_H
#define MRF_EP_LINK_PASSIVE_H

#include <rdma/fi_errno.h>
#include "contract/budget.h"
#include "ep/model/conn_state.h"
#include "ep/model/ep.h"
#include "loop/agent.h"
#include "proto/proto.h"

/*
 * Room for questions, a message of requests, and writes with immediate data that come in
 * bursts. It is most of what a connected peer takes of the target's memory. The device
 * rounds one more than this up to a power of two, here as everywhere.
 */
#define MRF_PASSIVE_SLOTS 31
#define MRF_PASSIVE_SLOT_SIZE MRF_PROTO_MAX_REQUEST
#define MRF_PASSIVE_SENDS (MRF_ASKS + MRF_REQUESTS + 2)
/* With more of these on their way than that, it has to be known when they have arrived. */
#define MRF_PASSIVE_UNHEARD 4

/*
 * A message that arrived and has not been served yet; its slot is posted again
 * afterwards.
 */
struct mrf_waiting {
	uint8_t slot;
	uint16_t len;
};

struct mrf_inlet;

struct mrf_passive {
	struct mrf_owner owner;
	enum mrf_passive_state state; /* only mrf_passive_move changes it */
	struct mrf_list node;	      /* in ep->passive */
	struct mrf_list disconnected; /* in mrf_eps.disconnected, or nowhere */
	struct mrf_list half;	      /* in mrf_eps.half until its peer has confirmed it */
	struct mrf_timer until;	      /* the deadline for that */
	union mrf_addr addr;	      /* of the peer */
	struct mrf_list ready;	      /* in mrf_eps.ready while a message can be served */
	struct mrf_ep *ep;
	struct mrf_vconn *vconn;
	uint64_t ticket;	   /* which its initiator shows nobody else */
	struct mrf_inlet *inlet;   /* of a line, which uses nothing of what follows; else NULL */
	struct mrf_mr_lease lease; /* pins for single accesses of this peer */
	bool forgetting;	   /* a FORGET message is on the way */
	bool forget_again;	   /* another one is due afterwards */
	uint64_t told;		   /* pins that had ended when the last one was sent */
	uint32_t receiving;	   /* a bit per slot: it is posted as a receive */
	bool flushed;		   /* the last packet that was carried out has ended: rx/stop.c */
	unsigned sending;	   /* answers, replies and notes on the way, */
	struct mrf_agent_cq *sent; /* the quiet queue that they complete in */
	/* messages in the order of their arrival */
	struct mrf_waiting waiting[MRF_PASSIVE_SLOTS];
	unsigned first, last;	     /* indices into waiting; both only go up */
	unsigned asks;		     /* questions among them */
	unsigned requests;	     /* requests among them */
	uint32_t number;	     /* of the request that has to be done next */
	struct mrf_work *work;	     /* the first of them, if it has been begun (rx/work.h) */
	struct mrf_staging *staging; /* for memory of devices (rx/staging.h); NULL: none yet */
	bool away;		     /* a job is at it, or it waits for another one's: no turns */
	/*
	 * Slots held back until the application has read its completions, and the timer
	 * to check.
	 */
	uint8_t held[MRF_PASSIVE_SLOTS];
	unsigned nheld;
	struct mrf_timer look;
	struct mrf_vmr slots_mr;
	uint8_t slots[][MRF_PASSIVE_SLOT_SIZE]; /* MRF_PASSIVE_SLOTS of them; of a line, none */
};

_Static_assert(MRF_PROTO_ASK_LEN <= MRF_PASSIVE_SLOT_SIZE, "a question fits");
_Static_assert(MRF_PASSIVE_SLOTS <= 32, "each has a bit");
_Static_assert(MRF_ASKS + MRF_REQUESTS + 1 < MRF_PASSIVE_SENDS,
	       "there is room for answers, replies and a note");
_Static_assert(MRF_ASKS + MRF_REQUESTS + MRF_PASSIVE_UNHEARD <= MRF_PASSIVE_SLOTS,
	       "what a peer may send has slots, whether or not it is known that others are free");

static inline bool mrf_passive_wants_events(const struct mrf_passive *passive)
{
	return passive->ep->caps & FI_RMA_EVENT;
}

static inline struct mrf_passive *mrf_passive_of(struct mrf_owner *owner)
{
	return mrf_container_of(owner, struct mrf_passive, owner);
}

/*
 * Its id, and its places in the agent's queues. A line, which has none there, takes its id itself: what
 * comes over it completes on the endpoint's own queue (ep/msg/inbox.h). Returns the device's errors or
 * -FI_ENOMEM.
 */
int mrf_passive_take_places(struct mrf_passive *passive);
/* Also for a line. Completions of its queue pair, which is gone, may still be there. */
void mrf_passive_leave_places(struct mrf_passive *passive);

int mrf_passive_post_slot(struct mrf_passive *passive, unsigned slot);
/* Something has completed that may have been a receive into this slot. */
void mrf_passive_received(struct mrf_passive *passive, unsigned slot, bool flushed);
/*
 * An error of posting, as one that the peer may see: -FI_ECONNABORTED where our own queue pair
 * takes nothing more, as when the connection ends just now: the peer has done nothing wrong.
 */
static inline int mrf_passive_own_error(int ret)
{
	return ret && ret != -FI_EACCES ? -FI_ECONNABORTED : ret;
}

/* The agent is woken if something waits for SENDs that are on their way. */
void mrf_passive_hear_of_sent(struct mrf_passive *passive);
/* Posts a SEND. Errors as above. */
int mrf_passive_post(struct mrf_passive *passive, const struct mrf_vwr *wr);
/*
 * Sends from the slot that the message came in, which is posted again when the answer has
 * arrived: a queue pair with room for as many answers would take much more memory.
 */
int mrf_passive_send_back(struct mrf_passive *passive, unsigned slot, const uint8_t *out,
			  size_t len);
/* One more answer or reply can be sent, and a FORGET. */
bool mrf_passive_has_room(const struct mrf_passive *passive);
/*
 * It gets turns from now on, if there is something to serve, and room for an answer and a
 * FORGET.
 */
void mrf_passive_take_place(struct mrf_passive *passive);
/*
 * Makes the move. One that is not in the diagram changes nothing, and aborts in builds with
 * --enable-lockrank.
 */
void mrf_passive_move(struct mrf_passive *passive, enum mrf_passive_move move);
/* Does the invariant hold? No call for the connection is under way. */
bool mrf_passive_right(const struct mrf_passive *passive);
/*
 * Aborts if the invariant does not hold for one of the agent's connections from peers; in
 * builds with --enable-lockrank.
 */
#ifdef MRF_LOCKRANK
void mrf_passive_check(const struct mrf_eps *eps);
#else
#define mrf_passive_check(eps) ((void)(eps))
#endif
/* The peer was let in. It has MRF_HALF_MS to confirm the connection. */
void mrf_passive_admit(struct mrf_passive *passive);
/* The peer has confirmed the connection, or something came over it. */
void mrf_passive_established(struct mrf_passive *passive);
/*
 * Has something come over a half-open line? Then its initiator is there, whatever became of its
 * confirmation: it is established.
 */
bool mrf_passive_heard(struct mrf_passive *passive);
/* Its queue pair is in error: it is not served any more. */
void mrf_passive_broken(struct mrf_passive *passive);
/*
 * Disconnects, and has the connection destroyed at the end of the agent's turn. From now on
 * nothing lands over it; writes that landed before, whose completions may just be being
 * handled, still count.
 */
void mrf_passive_disconnect(struct mrf_passive *passive);
/* The connection is about to be freed: takes it out of the agent's lists and timers. */
void mrf_passive_leave(struct mrf_passive *passive);

#endif
