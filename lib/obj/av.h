/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vector: fi_addr_t <-> socket address (IPv4 or IPv6). FI_AV_MAP and FI_AV_TABLE
 * both hand out indices, from 0 in the order of insertion. A removed index is used again:
 * in a table the lowest one first, as fi_av(3) demands; in a map the one removed longest
 * ago. Every use of an index has its own generation, so that an endpoint notices when the
 * address it knows under an index is gone. Reading takes no lock: entries never move.
 * Inserting and removing take the lock of rank AV. An address may be inserted more than
 * once.
 */
#ifndef MRF_OBJ_AV_H
#define MRF_OBJ_AV_H

#include <rdma/fi_domain.h>
#include "base/list.h"
#include "contract/profile.h"
#include "obj/av_index.h"
#include "obj/av_table.h"
#include "obj/obj.h"

/*
 * addr_format: the domain's, FI_SOCKADDR_IN or FI_SOCKADDR_IN6. Returns the errors of
 * fi_av(3); on success an attr->type of FI_AV_UNSPEC is replaced by the type chosen.
 */
int mrf_av_open(struct mrf_obj *domain, uint32_t addr_format, struct fi_av_attr *attr,
		struct fid_av **av, void *context);

/* Right after it was opened: addresses are in this form, and calls those that the profile has. */
void mrf_av_take_profile(struct fid_av *av, const struct mrf_form *form,
			 const struct mrf_profile *profile);

struct mrf_av *mrf_av_from_fid(struct fid *fid);
struct mrf_obj *mrf_av_obj(struct mrf_av *av);

/*
 * Embedded in an object that keeps something for each address. removed is called after
 * addresses were removed, by the thread that removes them, with the address vector's lock held;
 * it is no longer called once mrf_av_unwatch has returned.
 */
struct mrf_av_watch {
	struct mrf_list node;
	void (*removed)(struct mrf_av_watch *watch);
};
void mrf_av_watch(struct mrf_av *av, struct mrf_av_watch *watch);
void mrf_av_unwatch(struct mrf_av *av, struct mrf_av_watch *watch);

#endif
