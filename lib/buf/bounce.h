/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered slots for small buffers that the application has not registered: one pool per
 * endpoint, which grows when it is used. Thread-safe, by a lock of its own.
 */
#ifndef MRF_BUF_BOUNCE_H
#define MRF_BUF_BOUNCE_H

#include "base/list.h"
#include "base/lock.h"

#define MRF_BOUNCE_SIZE 16384 /* bytes of a slot; the most for FI_MRFAB_BOUNCE_MAX */

struct mrf_bounce_pool {
	struct mrf_vpd *pd;   /* immutable */
	struct mrf_lock lock; /* rank BOUNCE: guards all below */
	struct mrf_list slabs;
	void *free;	 /* singly linked through the slots */
	unsigned nslabs; /* with those that are being made */
};

void mrf_bounce_init(struct mrf_bounce_pool *pool, struct mrf_vpd *pd);
/* No slot may be in use. */
void mrf_bounce_fini(struct mrf_bounce_pool *pool);

/*
 * A slot of MRF_BOUNCE_SIZE bytes and its local key, until mrf_bounce_give. NULL: all are
 * in use, or no more could be made. May register memory: not under an endpoint's lock.
 */
void *mrf_bounce_take(struct mrf_bounce_pool *pool, uint32_t *lkey);
/* As mrf_bounce_take, but never makes a slot. Fast. */
void *mrf_bounce_try(struct mrf_bounce_pool *pool, uint32_t *lkey);
void mrf_bounce_give(struct mrf_bounce_pool *pool, void *data);

#endif
