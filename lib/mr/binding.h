/* SPDX-License-Identifier: BSD-2-Clause */
/* What binds a region to an endpoint or a counter. */
#ifndef MRF_MR_BINDING_H
#define MRF_MR_BINDING_H

#include "base/list.h"

struct mrf_cntr;
struct mrf_mr;
struct mrf_mr_port;

/*
 * The binding between a region and an endpoint, or a counter of its writes; allocated; in a
 * list of each.
 */
struct mrf_mr_binding {
	struct mrf_list mine;	/* in mr->bindings, or mr->event->counters */
	struct mrf_list theirs; /* in the port's or the counter's bindings */
	struct mrf_mr *mr;
	union {
		struct mrf_mr_port *port;
		struct mrf_cntr *cntr;
	};
};

/* Makes a binding, whose other side the caller sets. NULL: no memory. space->lock is held. */
struct mrf_mr_binding *mrf_mr_binding_new_locked(struct mrf_mr *mr, struct mrf_list *mine,
						 struct mrf_list *theirs);
/* Unbinds both sides. space->lock is held. */
void mrf_mr_binding_end_locked(struct mrf_mr_binding *binding);

#endif
