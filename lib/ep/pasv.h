/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection that a peer opened to an endpoint of ours. Agent thread. */
#ifndef MRF_EP_PASV_H
#define MRF_EP_PASV_H

#include "ep/agent.h"
#include "ep/budget.h"
#include "ep/ep.h"
#include "proto/proto.h"
#include "proto/request.h"

/* Room for questions, and for writes with immediate data that come in bursts. */
#define MRF_PASV_SLOTS 64
#define MRF_PASV_SLOT_SIZE MRF_PROTO_MAX_REQUEST
#define MRF_PASV_SENDS (MRF_ASKS + MRF_REQUESTS + 2)
/* What may complete on agent->cq. */
#define MRF_PASV_PLACES (MRF_PASV_SLOTS + MRF_PASV_SENDS)

/* A message that came and has not been served; its slot is posted again when it has. */
struct mrf_waiting {
	uint8_t slot;
	uint16_t len;
};

struct mrf_pasv {
	struct mrf_owner owner;
	struct mrf_list node; /* in ep->passive */
	struct mrf_list doomed; /* in agent->doomed, or nowhere */
	struct mrf_list half; /* in agent->half until its peer has confirmed the connection */
	struct mrf_timer until; /* when it has to */
	struct sockaddr_storage addr; /* of the peer */
	struct mrf_list ready; /* in agent->ready while something waits that may be served */
	struct mrf_ep *ep;
	struct mrf_vconn *vconn;
	struct mrf_mr_lease lease; /* what was pinned for single accesses of this peer */
	bool forgetting;   /* a FORGET is on the way */
	bool forget_again; /* and another one is due */
	bool broken;	   /* its queue pair is in error: nothing can be answered */
	unsigned sending;  /* answers, replies and notes that are on the way */
	/* in the order in which they came */
	struct mrf_waiting waiting[MRF_PASV_SLOTS];
	unsigned first, last; /* of these; both only go up */
	unsigned asks;	      /* questions among them */
	unsigned requests;    /* requests among them */
	uint32_t turn;	      /* of the request that is to be done next */
	/* Slots that are not posted until the application has read; and when to look. */
	uint8_t held[MRF_PASV_SLOTS];
	unsigned nheld;
	struct mrf_timer look;
	struct mrf_vmr slots_mr;
	uint8_t slots[MRF_PASV_SLOTS][MRF_PASV_SLOT_SIZE];
};

_Static_assert(MRF_PROTO_ASK_LEN <= MRF_PASV_SLOT_SIZE, "a question fits");
_Static_assert(MRF_ASKS + MRF_REQUESTS + 1 < MRF_PASV_SENDS,
	       "there is room for answers, replies and a note");

static inline bool mrf_pasv_wants_events(const struct mrf_pasv *pasv)
{
	return pasv->ep->caps & FI_RMA_EVENT;
}

static inline struct mrf_pasv *mrf_pasv_of(struct mrf_owner *owner)
{
	return mrf_container_of(owner, struct mrf_pasv, owner);
}

int mrf_pasv_post_slot(struct mrf_pasv *pasv, unsigned slot);
/*
 * It is of no more use. Nothing lands from now on; what has landed before, and may be among
 * the completions that are just being handled, still counts.
 */
void mrf_pasv_doom(struct mrf_pasv *pasv);
/* Something came over the connection: the peer has it. */
void mrf_pasv_established(struct mrf_pasv *pasv);

#endif
