/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/grant.h"
#include "verbs/vqp.h"

bool mrf_grant_send_locked(struct mrf_inlet *inlet, const struct mrf_frame_grant *grant)
{
	uint8_t buf[MRF_FRAME_GRANT_LEN];
	struct mrf_sge sge = { .addr = (uintptr_t)buf };
	const struct mrf_vwr wr = {
		.wr_id = MRF_GRANT_ID, .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge
	};

	mrf_lock_held(&inlet->inbox->ep->lock);
	sge.len = (uint32_t)mrf_frame_grant_encode(grant, buf);
	if (mrf_vconn_post(inlet->vconn, &wr)) {
		mrf_inbox_close_line_locked(inlet);
		return false;
	}
	inlet->granting++;
	return true;
}

static bool send_end_locked(struct mrf_inlet *inlet)
{
	struct mrf_list *node = mrf_list_pop(&inlet->ends);
	struct mrf_message *message = mrf_list_entry(node, struct mrf_message, late.node);
	const struct mrf_frame_grant grant = { .flags = message->offer.refused ? MRF_FRAME_REFUSED
									       : 0,
					       .number = message->offer.number };

	mrf_inbox_free_message_locked(inlet->inbox, message);
	return mrf_grant_send_locked(inlet, &grant);
}

static bool send_next_locked(struct mrf_inlet *inlet)
{
	if (inlet->answers) {
		inlet->answers = false;
		return mrf_grant_send_locked(inlet, &inlet->answer);
	}
	if (!mrf_list_empty(&inlet->ends))
		return send_end_locked(inlet);
	return inlet->inbox->calls->grant(inlet);
}

static bool may_send(const struct mrf_inlet *inlet)
{
	return inlet->vconn && !inlet->closing && !inlet->wrong && !inlet->parting &&
	       inlet->granting < MRF_GRANTS_SENT;
}

void mrf_grant_go_locked(struct mrf_inlet *inlet)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	while (may_send(inlet) && send_next_locked(inlet))
		;
}

void mrf_grant_sent_locked(struct mrf_inlet *inlet, const struct mrf_wc *wc)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	inlet->granting--;
	if (mrf_likely(wc->status == MRF_WC_OK))
		mrf_grant_go_locked(inlet);
}
