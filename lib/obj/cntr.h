/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counter: a value and an error value that only endpoints and the application move, and
 * threads that wait for a threshold. The values are atomic, so that no lock is needed
 * except the wait's own.
 */
#ifndef MRF_OBJ_CNTR_H
#define MRF_OBJ_CNTR_H

#include <rdma/fi_eq.h>
#include "obj/obj.h"
#include "obj/wait.h"

struct mrf_cntr;

/*
 * The objects whose events this counter counts, while both are open; lib/mr uses it for
 * regions. All fields belong to the layer of those objects and are guarded by its lock.
 */
struct mrf_cntr_bindings {
	struct mrf_list list;
	/*
	 * Called when the counter is about to be closed, with no lock held. Returns 0:
	 * list is empty now; or -FI_EBUSY (logged): the objects have to be closed first.
	 * NULL: there never was such an object.
	 */
	int (*closing)(struct mrf_cntr *cntr, void *arg);
	void *arg;
};

int mrf_cntr_open(struct mrf_obj *domain, const struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);

struct mrf_cntr *mrf_cntr_from_fid(struct fid *fid);
struct mrf_obj *mrf_cntr_obj(struct mrf_cntr *cntr);
struct mrf_cntr_bindings *mrf_cntr_bindings(struct mrf_cntr *cntr);

/*
 * fi_trywait: 0 when it is safe to block on the counter's fd, -FI_EAGAIN when a value
 * changed since the last -FI_EAGAIN, -FI_EINVAL (logged) when it has no wait object.
 */
int mrf_cntr_trywait(struct mrf_cntr *cntr);

/* Add and wake waiters. */
void mrf_cntr_add(struct mrf_cntr *cntr, uint64_t n);
void mrf_cntr_adderr(struct mrf_cntr *cntr, uint64_t n);

#endif
