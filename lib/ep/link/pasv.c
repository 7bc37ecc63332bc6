/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "ep/link/pasv.h"

int mrf_pasv_post_slot(struct mrf_pasv *pasv, unsigned slot)
{
	struct mrf_sge sge = { .addr = (uintptr_t)pasv->slots[slot],
			       .len = MRF_PASV_SLOT_SIZE,
			       .lkey = pasv->slots_mr.lkey };

	return mrf_vconn_post_recv(pasv->vconn, MRF_WR_ID(pasv->owner.id, slot), &sge);
}

/* --- its state ---------------------------------------------------------------------------- */

void mrf_pasv_move(struct mrf_pasv *pasv, enum mrf_pasv_move move)
{
	enum mrf_pasv_state to = mrf_pasv_next(pasv->state, move);

	if (mrf_unlikely(to == MRF_PASV_STATES))
		mrf_conn_state_wrong("a move that a peer's connection cannot make", pasv->state,
				     move);
	else
		pasv->state = to;
}

bool mrf_pasv_right(const struct mrf_pasv *pasv)
{
	bool half = mrf_pasv_is_half(pasv->state);
	bool waits = !mrf_list_empty(&pasv->ready);

	return mrf_list_empty(&pasv->half) == !half && mrf_list_empty(&pasv->until.node) == !half &&
	       mrf_list_empty(&pasv->doomed) == (pasv->state != MRF_PASV_DOOMED) &&
	       (!waits || (pasv->state == MRF_PASV_UP && pasv->first != pasv->last)) &&
	       pasv->last - pasv->first + pasv->nheld <= MRF_PASV_SLOTS &&
	       pasv->sending <= MRF_PASV_SENDS;
}

#ifdef MRF_LOCKRANK

static void check_inbound_of(const struct mrf_ep *ep)
{
	mrf_list_each (node, &ep->passive) {
		const struct mrf_pasv *pasv = mrf_list_entry(node, struct mrf_pasv, node);

		if (!mrf_pasv_right(pasv))
			mrf_conn_state_wrong("a peer's connection is not as its state says",
					     pasv->state, MRF_PASV_MOVES);
	}
}

void mrf_pasv_check(const struct mrf_agent *agent)
{
	mrf_list_each (node, &agent->eps)
		check_inbound_of(mrf_list_entry(node, struct mrf_ep, of_agent));
}

#endif

static void stop_waiting(struct mrf_pasv *pasv)
{
	mrf_list_del(&pasv->half);
	mrf_timer_stop(&pasv->until);
}

void mrf_pasv_admit(struct mrf_pasv *pasv)
{
	struct mrf_agent *agent = pasv->ep->agent;

	mrf_pasv_move(pasv, MRF_PASV_ADMIT);
	mrf_list_add_tail(&pasv->half, &agent->half);
	mrf_timer_set(agent, &pasv->until, MRF_HALF_MS);
}

void mrf_pasv_established(struct mrf_pasv *pasv)
{
	mrf_pasv_move(pasv, MRF_PASV_CONFIRM);
	stop_waiting(pasv);
}

void mrf_pasv_broken(struct mrf_pasv *pasv)
{
	mrf_pasv_move(pasv, MRF_PASV_BREAK);
	mrf_list_del(&pasv->ready);
}

void mrf_pasv_doom(struct mrf_pasv *pasv)
{
	mrf_vconn_disconnect(pasv->vconn);
	mrf_pasv_leave(pasv);
	mrf_pasv_move(pasv, MRF_PASV_DOOM);
	mrf_list_add_tail(&pasv->doomed, &pasv->ep->agent->doomed);
}

void mrf_pasv_leave(struct mrf_pasv *pasv)
{
	stop_waiting(pasv);
	mrf_list_del(&pasv->doomed);
	mrf_list_del(&pasv->ready);
	mrf_timer_stop(&pasv->look);
}
