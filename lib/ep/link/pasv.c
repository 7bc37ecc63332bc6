/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/link/pasv.h"

int mrf_pasv_post_slot(struct mrf_pasv *pasv, unsigned slot)
{
	struct mrf_sge sge = { .addr = (uintptr_t)pasv->slots[slot],
			       .len = MRF_PASV_SLOT_SIZE,
			       .lkey = pasv->slots_mr.lkey };

	return mrf_vconn_post_recv(pasv->vconn, MRF_WR_ID(pasv->owner.id, slot), &sge);
}

void mrf_pasv_doom(struct mrf_pasv *pasv)
{
	mrf_vconn_disconnect(pasv->vconn);
	mrf_list_del(&pasv->ready);
	mrf_list_del(&pasv->doomed);
	mrf_list_add_tail(&pasv->doomed, &pasv->ep->agent->doomed);
}

void mrf_pasv_established(struct mrf_pasv *pasv)
{
	mrf_list_del(&pasv->half);
	mrf_timer_stop(&pasv->until);
}
