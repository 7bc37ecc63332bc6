/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counter: a value and an error value that only endpoints and the application move, and
 * threads that wait for a threshold. Values are atomic: no lock but the wait's own.
 */
#ifndef MRF_OBJ_CNTR_H
#define MRF_OBJ_CNTR_H

#include <rdma/fi_eq.h>
#include "obj/obj.h"
#include "obj/wait.h"

struct mrf_cntr;

/*
 * Those that let it count what happens to them, for as long as both are open: lib/mr's, for
 * regions. All fields are theirs, guarded by a lock of theirs.
 */
struct mrf_cntr_bonds {
	struct mrf_list list;
	/*
	 * The counter is about to be closed; called with no lock held. 0: list is empty now. Or
	 * -FI_EBUSY (logged): they have to be closed first. NULL: there never was anybody.
	 */
	int (*closing)(struct mrf_cntr *cntr, void *arg);
	void *arg;
};

int mrf_cntr_open(struct mrf_obj *domain, struct fid_domain *domain_fid,
		  const struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);

struct mrf_cntr *mrf_cntr_from_fid(struct fid *fid);
struct mrf_obj *mrf_cntr_obj(struct mrf_cntr *cntr);
struct fid_domain *mrf_cntr_domain(struct mrf_cntr *cntr);
struct mrf_wait *mrf_cntr_wait(struct mrf_cntr *cntr);
struct mrf_cntr_bonds *mrf_cntr_bonds(struct mrf_cntr *cntr);

/*
 * fi_trywait: 0 when it is safe to block on the counter's fd, -FI_EAGAIN when a value
 * changed since the last -FI_EAGAIN, -FI_EINVAL (with its reason) when it has no wait
 * object.
 */
int mrf_cntr_trywait(struct mrf_cntr *cntr);

/* Add and wake waiters. */
void mrf_cntr_add(struct mrf_cntr *cntr, uint64_t n);
void mrf_cntr_adderr(struct mrf_cntr *cntr, uint64_t n);

#endif
