/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that has come, from its arrival until its receive has completed. It stays in the slot
 * that it came in, or is copied to memory of its own if no receive takes it at once. Of a long one
 * only an offer has come, which is copied in any case.
 */
#ifndef MRF_EP_MSG_MESSAGE_H
#define MRF_EP_MSG_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "loop/job.h"
#include "match/match.h"

struct mrf_inbox;
struct mrf_origin;
struct mrf_pull;
struct mrf_recv;
struct mrf_slot;
struct mrf_why;

enum mrf_offer_at { MRF_OFFER_KEPT, MRF_OFFER_CLAIMED, MRF_OFFER_PULLED };

/* Of a message that came without its bytes: pull.h. */
struct mrf_offered {
	bool is;
	enum mrf_offer_at at;
	bool ends;	      /* its sender waits for the end, */
	bool fetched;	      /* which it need not, because all bytes have come */
	bool refused;	      /* and which is that nobody will have it */
	bool gone;	      /* its sender has given it up */
	uint32_t piece;	      /* of so many bytes at a time; 0: any number */
	uint64_t number;      /* among its sender's frames */
	struct mrf_list node; /* in origin->offers */
};

struct mrf_message {
	union {
		struct mrf_match_msg match; /* while it is unexpected and not claimed */
		struct {
			struct mrf_list
				node; /* in inbox->late, until a thread is at it, or claimed */
			struct mrf_inbox *inbox;
			struct mrf_recv *recv; /* that takes it */
			struct iovec part;     /* of its buffer, if it takes many */
			struct mrf_job job;    /* to copy it, where that would have to wait */
			int ret;	       /* of the copy, */
			struct mrf_why *why;   /* and what it says of a failure; NULL: nothing */
			struct mrf_pull *pull; /* of an offer: pull.h */
		} late;
	};
	struct mrf_offered offer;
	const void *claimed; /* in inbox->claimed: the context of who has claimed it */
	struct mrf_origin *origin;
	struct mrf_slot *slot; /* NULL: it is in memory of its own, that of this structure */
	const uint8_t *data;
	size_t len;
	bool tagged;
	bool has_cq_data;
	uint64_t tag;
	uint64_t cq_data;
};

#endif
