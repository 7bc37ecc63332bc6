/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that has come, from its arrival until its receive has completed. It stays in the slot
 * that it came in, or is copied to memory of its own if no receive takes it at once.
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
struct mrf_recv;
struct mrf_slot;

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
			int ret;	       /* of the copy */
		} late;
	};
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
