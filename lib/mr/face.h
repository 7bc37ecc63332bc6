/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel keeps peers apart: a queue pair reaches the kernel MRs of its own protection
 * domain and no others.
 *
 * A group consists of the endpoints and regions with the same authorization key; the
 * default group has the domain's key, or none (group NULL). Peers of another group learn
 * nothing about a region, not even that it exists.
 *
 * A class is a set of regions together with the protection domain through which peers
 * access them. The default class uses space->pd (class NULL); each other group has a
 * class of its own, and with FI_MR_ENDPOINT in force so has each endpoint. The queue
 * pairs that serve an endpoint's peers are in the endpoint's class; the queue pairs for
 * this process's own accesses are in space->pd, where all lkeys are, and serve no peer.
 *
 * A region of the default class has one kernel MR per segment with all its rights. Any
 * other region is faced: its kernel MRs in space->pd have the local rights only, and each
 * class that may reach it has a face with the remote rights only: one kernel MR per
 * segment, or a backing of its own that is pinned on demand. Faces are made with the
 * region or when it is enabled, and go with it or with their endpoint.
 *
 * space->lock guards the lists and the counts; kernel MRs are made without it.
 */
#ifndef MRF_MR_FACE_H
#define MRF_MR_FACE_H

#include "mr/class.h"
#include "mr/region.h"

struct mrf_mr_face {
	struct mrf_mr_face *next;   /* in mr->faces, or in a list of faces being made */
	struct mrf_mr_class *class; /* held */
	struct mrf_mr_back *back;   /* if pinned on demand; otherwise NULL, see vmr */
	bool dead; /* serves nobody, but the kernel keeps it; until the region closes */
	unsigned nseg;
	struct mrf_vmr vmr[];
};

/* Do peers access the region through faces? Immutable. */
static inline bool mrf_mr_faced(const struct mrf_mr *mr)
{
	return mr->space->mode & FI_MR_ENDPOINT || mr->group;
}

/* The rights of the kernel MRs in space->pd; a faced region with 0 has no such MRs. */
static inline uint64_t mrf_mr_own_access(const struct mrf_mr *mr)
{
	return mrf_mr_faced(mr) ? mr->access & ~MRF_MR_REMOTE : mr->access;
}

/*
 * Plans a face for each class that may reach the region with its present bindings; none
 * if it needs none. -FI_EINVAL: the region has to be bound to an endpoint first;
 * -FI_ENOMEM: faces may hold some faces. Not logged. space->lock is held.
 */
int mrf_mr_faces_plan_locked(struct mrf_mr *mr, struct mrf_mr_face **faces);
/*
 * Registers the planned faces with the kernel; segs: a copy of the region's segments.
 * Failures are logged. No lock held.
 */
int mrf_mr_faces_pin(const struct mrf_mr *mr, const struct mrf_mr_seg *segs,
		     struct mrf_mr_face *faces);
/*
 * Moves the faces to the region, except those that are not needed any more, which stay in
 * the list. False: a face is missing; plan again. space->lock is held.
 */
bool mrf_mr_faces_take_locked(struct mrf_mr *mr, struct mrf_mr_face **faces);
/*
 * Deregisters all of these faces and frees them. On failure (logged; the first error is
 * returned) some are left, and the call may be repeated. No lock held.
 */
int mrf_mr_faces_drop(struct mrf_mr_face **faces);
/*
 * As mrf_mr_faces_drop, for faces that were not moved to the region; any that the kernel
 * keeps become the region's, marked dead.
 */
void mrf_mr_faces_undo(struct mrf_mr *mr, struct mrf_mr_face **faces);
/*
 * Deregisters the region's face for this class and moves it to done, for
 * mrf_mr_faces_drop to free. If the kernel keeps it (logged), the face stays, marked
 * dead. space->lock is held.
 */
void mrf_mr_face_end_locked(struct mrf_mr *mr, const struct mrf_mr_class *class,
			    struct mrf_mr_face **done);

/* The region's face for this class; NULL: it has none. space->lock is held. */
struct mrf_mr_face *mrf_mr_face_of_locked(const struct mrf_mr *mr,
					  const struct mrf_mr_class *class);
/* The region's only face; NULL: it has none, or several. space->lock is held. */
struct mrf_mr_face *mrf_mr_face_sole_locked(const struct mrf_mr *mr);

#endif
