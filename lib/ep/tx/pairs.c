/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/model/ep.h"
#include "ep/tx/far_op.h"
#include "ep/tx/offer_op.h"
#include "ep/tx/pairs.h"

struct mrf_peer *mrf_pairs_completed_locked(struct mrf_ep *ep, const struct mrf_wc *wc)
{
	struct mrf_bulk *bulk = mrf_idmap_find(&ep->bulks, wc->wr_id);
	struct mrf_far *far = bulk ? NULL : mrf_idmap_find(&ep->fars, wc->wr_id);
	struct mrf_peer *peer = NULL;

	mrf_lock_held(&ep->lock);
	if (bulk) {
		peer = bulk->conn->peer;
		mrf_offer_completed_locked(bulk, wc);
	} else if (far) {
		peer = far->conn->peer;
		mrf_far_completed_locked(far, wc);
	}
	return peer;
}
