/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints that regions can be bound to (FI_MR_ENDPOINT), and fi_mr_bind. */
#ifndef MRF_MR_BIND_H
#define MRF_MR_BIND_H

#include <rdma/fabric.h>
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
 * Inside every endpoint of the domain. All fields are lib/mr's; lists are guarded by
 * space->lock, the rest is immutable while it is open.
 */
struct mrf_mr_port {
	struct mrf_list node;  /* in space->ports */
	struct mrf_list bonds; /* of regions that are bound to it */
	struct mrf_obj *ep;
	struct mrf_mr_group *group; /* those with the same key; NULL: with the domain's */
	struct mrf_mr_class *class; /* in which its peers meet regions: mr/face.h */
	/* Counts what peers write through it to any region; NULL: none. Guarded by space->lock. */
	struct mrf_cntr *writes;
};

/*
 * ep (initialised) can be bound to from now on. key: its authorization key of size bytes;
 * 0: the domain's. -FI_ENOMEM, or the kernel's if it has no protection domain left;
 * nothing is logged then.
 */
int mrf_mr_port_open(struct mrf_mr_space *space, struct mrf_mr_port *port,
		     struct mrf_obj *ep, const void *key, size_t size);
/* The key that its peers have to have; NULL: none. The port's. */
const struct mrf_auth *mrf_mr_port_auth(const struct mrf_mr_space *space,
					const struct mrf_mr_port *port);
/* What the queue pairs that serve its peers have to be in. */
struct mrf_vpd *mrf_mr_port_pd(const struct mrf_mr_space *space,
			       const struct mrf_mr_port *port);
/*
 * Before the endpoint goes: unbinds all regions from it; the kernel lets its peers through
 * to none. -FI_EBUSY, from API version 2.3 on: they have to be closed first (logged, with
 * the name of one); nothing changed.
 */
int mrf_mr_port_close(struct mrf_mr_space *space, struct mrf_mr_port *port);
/* After that, and when those queue pairs are gone. Before the endpoint is freed. */
void mrf_mr_port_free(struct mrf_mr_port *port);

/* That a region is bound to an endpoint; allocated; in both lists. */
struct mrf_mr_bond {
	struct mrf_list mine;	/* in mr->bonds */
	struct mrf_list theirs; /* in port->bonds */
	struct mrf_mr *mr;
	struct mrf_mr_port *port;
};

/* fi_mr_bind. */
int mrf_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

/*
 * -FI_EBUSY: endpoints or counters have to be closed before the region (logged, with the name
 * of one). The caller holds space->lock.
 */
int mrf_mr_bound(struct mrf_mr *mr);
/* Unbinds a region of which nothing else is left from its endpoints. No lock held. */
void mrf_mr_unbind(struct mrf_mr *mr);

#endif
