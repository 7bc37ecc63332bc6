/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes and groups: see mr/face.h. */
#ifndef MRF_MR_CLASS_H
#define MRF_MR_CLASS_H

#include "mr/space.h"

struct mrf_mr_class {
	unsigned refs; /* guarded by space->lock: an endpoint, faces, their backings */
	struct mrf_mr_space *space;
	struct mrf_vpd *pd;
};

/* One reference for the caller. -FI_ENOMEM, or the kernel's. No lock held. */
int mrf_mr_class_new(struct mrf_mr_space *space, struct mrf_mr_class **class);
/* space->lock held. class may be NULL, as for mrf_mr_class_put. */
void mrf_mr_class_get(struct mrf_mr_class *class);
/* space->lock not held. The last one gives the protection domain back. */
void mrf_mr_class_put(struct mrf_mr_class *class);

static inline struct mrf_vpd *mrf_mr_class_pd(const struct mrf_mr_space *space,
					      const struct mrf_mr_class *class)
{
	return class ? class->pd : space->pd;
}

struct mrf_mr_group {
	struct mrf_list node; /* in space->groups */
	unsigned refs;	      /* guarded by space->lock: endpoints, regions */
	uint64_t id;	      /* never 0, never used twice */
	struct mrf_mr_space *space;
	struct mrf_auth *auth;
	struct mrf_mr_class *class; /* held; NULL with FI_MR_ENDPOINT */
};

/*
 * The group of this authorization key, or NULL for the default one, with a reference.
 * size 0: the domain's. -FI_ENOMEM, or the kernel's if it has no protection domain left;
 * not logged. No lock held.
 */
int mrf_mr_group_get(struct mrf_mr_space *space, const void *key, size_t size,
		     struct mrf_mr_group **group);
/* Harmless with NULL. space->lock not held. */
void mrf_mr_group_put(struct mrf_mr_group *group);

static inline uint64_t mrf_mr_group_id(const struct mrf_mr_group *group)
{
	return group ? group->id : 0;
}

#endif
