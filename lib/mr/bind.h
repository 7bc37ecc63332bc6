/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints that regions can be bound to (FI_MR_ENDPOINT), and fi_mr_bind. */
#ifndef MRF_MR_BIND_H
#define MRF_MR_BIND_H

#include "base/list.h"
#include "obj/obj.h"

struct mrf_auth;
struct mrf_cntr;
struct mrf_mr;
struct mrf_mr_space;
struct mrf_vpd;
struct mrf_mr_class;
struct mrf_mr_group;

/*
 * Embedded in every endpoint of the domain. All fields belong to lib/mr; lists are
 * guarded by space->lock, the rest is immutable while it is open.
 */
struct mrf_mr_port {
	struct mrf_list node;	  /* in space->ports */
	struct mrf_list bindings; /* of regions that are bound to it */
	struct mrf_obj *ep;
	struct mrf_mr_group *group; /* of its key; NULL: it has the domain's key */
	struct mrf_mr_class *class; /* its peers access regions through it: face.h */
	/*
	 * Counts peers' writes through the endpoint to any region; NULL: no counter is
	 * bound. Guarded by space->lock.
	 */
	struct mrf_cntr *writes;
	bool events;  /* the endpoint has the capability FI_RMA_EVENT */
	bool enabled; /* the endpoint is; guarded by space->lock */
};

/*
 * From now on regions can be bound to ep, which is initialised. events: it has the capability
 * FI_RMA_EVENT. key: its authorization
 * key of size bytes; size 0: the domain's key. -FI_ENOMEM, or the kernel's error if it
 * has no protection domain left; neither is logged.
 */
int mrf_mr_port_open(struct mrf_mr_space *space, struct mrf_mr_port *port, struct mrf_obj *ep,
		     bool events, const void *key, size_t size);
/* Called once the endpoint is enabled. */
void mrf_mr_port_enable(struct mrf_mr_space *space, struct mrf_mr_port *port);
/* The authorization key that peers need here; NULL: none. The key belongs to the port. */
const struct mrf_auth *mrf_mr_port_auth(const struct mrf_mr_space *space,
					const struct mrf_mr_port *port);
/* The protection domain for the queue pairs that serve the endpoint's peers. */
struct mrf_vpd *mrf_mr_port_pd(const struct mrf_mr_space *space, const struct mrf_mr_port *port);
/*
 * Called before the endpoint closes: unbinds all regions from it; afterwards the kernel
 * lets its peers access none of them. -FI_EBUSY, from API version 2.3 on or by the profile: the
 * regions have to be closed first (logged with the name of one); nothing was changed.
 */
int mrf_mr_port_close(struct mrf_mr_space *space, struct mrf_mr_port *port);
/*
 * Called after mrf_mr_port_close, when the queue pairs that serve the endpoint's peers
 * are gone, and before the endpoint is freed.
 */
void mrf_mr_port_free(struct mrf_mr_port *port);

/* fi_mr_bind. */
int mrf_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

/*
 * -FI_EBUSY: endpoints or counters have to be closed before the region (logged with the
 * name of one). The caller holds space->lock.
 */
int mrf_mr_bound_locked(struct mrf_mr *mr);
/* Unbinds a region from its endpoints, when nothing else is left of it. No lock held. */
void mrf_mr_unbind(struct mrf_mr *mr);

#endif
