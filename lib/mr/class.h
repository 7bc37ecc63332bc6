/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes and groups: see mr/face.h. */
#ifndef MRF_MR_CLASS_H
#define MRF_MR_CLASS_H

#include "mr/space.h"

struct mrf_mr_class {
	unsigned refs; /* by an endpoint, faces, their backings; guarded by space->lock */
	struct mrf_mr_space *space;
	struct mrf_vpd *pd;
};

/* Returns a class with one reference. -FI_ENOMEM, or the kernel's error. No lock held. */
int mrf_mr_class_new(struct mrf_mr_space *space, struct mrf_mr_class **class);
/* Takes a reference; space->lock is held. class may be NULL, also for mrf_mr_class_put. */
void mrf_mr_class_get_locked(struct mrf_mr_class *class);
/*
 * Drops a reference; dropping the last one frees the protection domain. space->lock not
 * held.
 */
void mrf_mr_class_put(struct mrf_mr_class *class);

static inline struct mrf_vpd *mrf_mr_class_pd(const struct mrf_mr_space *space,
					      const struct mrf_mr_class *class)
{
	return class ? class->pd : space->pd;
}

struct mrf_mr_group {
	struct mrf_list node; /* in space->groups */
	unsigned refs;	      /* by endpoints, regions; guarded by space->lock */
	uint64_t id;	      /* never 0, never used twice */
	struct mrf_mr_space *space;
	struct mrf_auth *auth;
	struct mrf_mr_class *class; /* held; NULL with FI_MR_ENDPOINT */
};

/*
 * Returns the group of this authorization key with a reference, or NULL for the default
 * group. size 0: the domain's key. -FI_ENOMEM, or the kernel's error if it has no
 * protection domain left; neither is logged. No lock held.
 */
int mrf_mr_group_get(struct mrf_mr_space *space, const void *key, size_t size,
		     struct mrf_mr_group **group);
/* Drops a reference. Harmless with NULL. space->lock not held. */
void mrf_mr_group_put(struct mrf_mr_group *group);

static inline uint64_t mrf_mr_group_id(const struct mrf_mr_group *group)
{
	return group ? group->id : 0;
}

#endif
