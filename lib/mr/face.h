/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What keeps peers apart is the kernel: a queue pair reaches the kernel MRs of its own
 * protection domain and no others.
 *
 * A group is the endpoints and regions that have the same authorization key; the default
 * one has the domain's key, or none (group NULL). Who is of another group learns nothing
 * of a region, not even that it is there.
 *
 * A class is a set of regions with the protection domain in which peers meet them: the
 * default one is space->pd (class NULL); each other group has one of its own, and with
 * FI_MR_ENDPOINT in force each endpoint. The queue pairs that serve an endpoint's peers are
 * in its class; those that this process uses for its own accesses are in space->pd, where
 * all lkeys are, and let no peer through.
 *
 * A region of the default class has one kernel MR per segment with all its rights. Any
 * other one is faced: what is in space->pd has its local rights only, and for each class
 * that may reach it there is a face, with the remote rights only: one kernel MR per
 * segment, or a backing of its own that is pinned on demand. Faces come with the region
 * or when it is enabled, and go with it or with their endpoint.
 *
 * space->lock guards the lists and the counts; kernel MRs are made without it.
 */
#ifndef MRF_MR_FACE_H
#define MRF_MR_FACE_H

#include "mr/class.h"
#include "mr/region.h"

struct mrf_mr_face {
	struct mrf_mr_face *next; /* of mr->faces, or of who makes it */
	struct mrf_mr_class *class; /* held */
	struct mrf_mr_back *back;   /* region pinned on demand; else NULL, and ... */
	bool dead; /* nobody meets it, but the kernel keeps it: until the region is closed */
	unsigned nseg;
	struct mrf_vmr vmr[];
};

/* Is the region met by peers through faces? Immutable. */
static inline bool mrf_mr_faced(const struct mrf_mr *mr)
{
	return mr->space->mode & FI_MR_ENDPOINT || mr->group;
}

/* Rights that the kernel MRs in space->pd have; faced and 0: there are none. */
static inline uint64_t mrf_mr_own_access(const struct mrf_mr *mr)
{
	return mrf_mr_faced(mr) ? mr->access & ~MRF_MR_REMOTE : mr->access;
}

/*
 * Plans a face for each class that may reach the region as it is bound now; nothing if
 * it needs none. -FI_EINVAL: has to be bound to an endpoint first; -FI_ENOMEM: faces may
 * hold some. Not logged. space->lock held.
 */
int mrf_mr_faces_plan(struct mrf_mr *mr, struct mrf_mr_face **faces);
/*
 * Registers with the kernel what is planned; segs: a copy of the region's segments. Logs why
 * not. No lock held.
 */
int mrf_mr_faces_pin(const struct mrf_mr *mr, const struct mrf_mr_seg *segs,
		     struct mrf_mr_face *faces);
/*
 * Makes the faces the region's, and leaves those that are not needed any more. False: one
 * is missing, plan anew. space->lock held.
 */
bool mrf_mr_faces_take(struct mrf_mr *mr, struct mrf_mr_face **faces);
/*
 * Takes all of them from the kernel and frees them. On failure (logged; the first error
 * is returned) some are left, and it may be tried again. No lock held.
 */
int mrf_mr_faces_drop(struct mrf_mr_face **faces);
/* The same for faces that did not become the region's; but what is left is now, dead. */
void mrf_mr_faces_undo(struct mrf_mr *mr, struct mrf_mr_face **faces);
/*
 * Takes from the kernel what the region has for this class; what is left to be freed
 * comes into done, for mrf_mr_faces_drop. If the kernel keeps it (logged) it stays, dead.
 * space->lock held.
 */
void mrf_mr_face_end(struct mrf_mr *mr, const struct mrf_mr_class *class,
		     struct mrf_mr_face **done);

/* NULL: there is none. space->lock held. */
struct mrf_mr_face *mrf_mr_face_of(const struct mrf_mr *mr,
				   const struct mrf_mr_class *class);
/* The only one, or NULL. space->lock held. */
struct mrf_mr_face *mrf_mr_face_sole(const struct mrf_mr *mr);

#endif
