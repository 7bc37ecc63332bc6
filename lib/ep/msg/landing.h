/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the bytes of long messages come that are for memory of a device: places in registered memory
 * of the host, from which they are copied (copies.h). An origin has a few, while any are used; its
 * messages share them. A part that is to come has its place before it is asked for, and leaves it when
 * it has been copied; so parts come while those before them are copied.
 *
 * With ep->lock held.
 */
#ifndef MRF_EP_MSG_LANDING_H
#define MRF_EP_MSG_LANDING_H

#include "ep/msg/copies.h"
#include "ep/msg/inbox.h"

struct mrf_pull;

/* MRF_STAGE_CHUNK bytes. */
struct mrf_place {
	struct mrf_copy copy;  /* from there */
	struct mrf_pull *pull; /* whose part comes or has come; NULL: it is free */
};

struct mrf_landing {
	struct mrf_origin *origin;
	struct mrf_stage_ring *ring; /* NULL: none yet, or no place is used, */
	struct mrf_copy want;	     /* and one is made */
	bool wanted;
	unsigned used;
	struct mrf_place place[MRF_STAGE_CHUNKS];
};

/* The origin has places from now on. -FI_ENOMEM. */
int mrf_landing_need_locked(struct mrf_origin *origin);
/*
 * A place that is free, and where it is. NULL: there is none now, and `made` is called if there will be
 * because more memory is there; or, if there cannot be, with the reason.
 */
struct mrf_place *mrf_landing_find_locked(struct mrf_landing *landing, struct mrf_sge *sge,
					  void (*made)(struct mrf_copy *want,
						       const struct mrf_why *why));
/* For `made`: it has been called. */
struct mrf_landing *mrf_landing_made_locked(struct mrf_copy *want);
/* A part of the pull will come there: so many bytes from there on. */
void mrf_landing_take_locked(struct mrf_landing *landing, struct mrf_place *place,
			     struct mrf_pull *pull, uint64_t from, uint64_t len);
/* It is free again. */
void mrf_landing_leave_locked(struct mrf_landing *landing, struct mrf_place *place);
/* Lets go of memory that is not used. Harmless for NULL. */
void mrf_landing_rest_locked(struct mrf_landing *landing);
/* Nothing comes any more, and nothing is copied. Harmless for NULL. */
void mrf_landing_free_locked(struct mrf_landing *landing);

/* Is something on its way to it, or copied? */
static inline bool mrf_landing_is_busy(const struct mrf_landing *landing)
{
	return landing && (landing->used || landing->wanted);
}

#endif
