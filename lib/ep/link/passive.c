/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "base/compiler.h"
#include "ep/link/passive.h"
#include "ep/msg/lines.h"

int mrf_passive_take_places(struct mrf_passive *passive)
{
	struct mrf_agent *agent = passive->ep->agent;
	int ret = mrf_agent_cq_take(agent, MRF_PASSIVE_SENDS, true, &passive->sent);

	if (ret)
		return ret;
	ret = mrf_agent_own(agent, &passive->owner, MRF_PASSIVE_SLOTS);
	if (ret)
		passive->sent->used -= MRF_PASSIVE_SENDS;
	else
		passive->owner.scq = passive->sent->vcq;
	return ret;
}

void mrf_passive_leave_places(struct mrf_passive *passive)
{
	mrf_agent_disown(passive->ep->agent, &passive->owner,
			 passive->sent ? MRF_PASSIVE_SLOTS : 0);
	if (passive->sent)
		mrf_agent_cq_owe(passive->sent, MRF_PASSIVE_SENDS);
}

int mrf_passive_post_slot(struct mrf_passive *passive, unsigned slot)
{
	struct mrf_sge sge = { .addr = (uintptr_t)passive->slots[slot],
			       .len = MRF_PASSIVE_SLOT_SIZE,
			       .lkey = passive->slots_mr.lkey };

	int ret = mrf_vconn_post_recv(passive->vconn, MRF_WR_ID(passive->owner.id, slot), &sge);

	passive->receiving |= (uint32_t)!ret << slot;
	return ret;
}

void mrf_passive_received(struct mrf_passive *passive, unsigned slot, bool flushed)
{
	uint32_t bit = slot < MRF_PASSIVE_SLOTS ? 1u << slot : 0;

	passive->flushed |= flushed && passive->receiving & bit;
	passive->receiving &= ~bit;
}

void mrf_passive_hear_of_sent(struct mrf_passive *passive)
{
	if (passive->sending > MRF_PASSIVE_UNHEARD || (passive->sending && passive->forget_again))
		mrf_agent_cq_listen(passive->ep->agent, passive->sent);
}

int mrf_passive_post(struct mrf_passive *passive, const struct mrf_vwr *wr)
{
	int ret = mrf_vconn_post(passive->vconn, wr);

	passive->sending += !ret;
	mrf_passive_hear_of_sent(passive);
	return mrf_passive_own_error(ret);
}

int mrf_passive_send_back(struct mrf_passive *passive, unsigned slot, const uint8_t *out,
			  size_t len)
{
	uint8_t *at = passive->slots[slot];
	struct mrf_sge sge = { .addr = (uintptr_t)at,
			       .len = (uint32_t)len,
			       .lkey = passive->slots_mr.lkey };
	struct mrf_vwr wr = { .wr_id = MRF_WR_ID(passive->owner.id, slot),
			      .op = MRF_VWR_SEND,
			      .nsge = 1,
			      .sge = &sge };

	memcpy(at, out, len);
	return mrf_passive_post(passive, &wr);
}

/* --- its turn ----------------------------------------------------------------------------- */

static bool has_to_do(const struct mrf_passive *passive)
{
	return passive->first != passive->last && !passive->away;
}

bool mrf_passive_has_room(const struct mrf_passive *passive)
{
	return passive->sending + 1 < MRF_PASSIVE_SENDS;
}

void mrf_passive_take_place(struct mrf_passive *passive)
{
	struct mrf_agent *agent = passive->ep->agent;

	if (!has_to_do(passive) || !mrf_passive_has_room(passive) ||
	    !mrf_list_empty(&passive->ready) || passive->state != MRF_PASSIVE_UP)
		return;
	mrf_list_add_tail(&passive->ready, &mrf_eps_of(agent)->ready);
	agent->more = true;
}

/* --- its state ---------------------------------------------------------------------------- */

void mrf_passive_move(struct mrf_passive *passive, enum mrf_passive_move move)
{
	enum mrf_passive_state to = mrf_passive_next(passive->state, move);

	if (mrf_unlikely(to == MRF_PASSIVE_STATES))
		mrf_conn_state_wrong("a move that a peer's connection cannot make", passive->state,
				     move);
	else
		passive->state = to;
}

bool mrf_passive_right(const struct mrf_passive *passive)
{
	bool half = mrf_passive_is_half(passive->state);
	bool waits = !mrf_list_empty(&passive->ready);

	return mrf_list_empty(&passive->half) == !half && mrf_timer_runs(&passive->until) == half &&
	       mrf_list_empty(&passive->disconnected) ==
		       (passive->state != MRF_PASSIVE_DISCONNECTED) &&
	       (!waits || (passive->state == MRF_PASSIVE_UP && has_to_do(passive))) &&
	       passive->last - passive->first + passive->nheld <= MRF_PASSIVE_SLOTS &&
	       passive->sending <= MRF_PASSIVE_SENDS;
}

#ifdef MRF_LOCKRANK

void mrf_passive_check(const struct mrf_eps *eps)
{
	mrf_list_each (one, &eps->all) {
		mrf_list_each (node, &mrf_list_entry(one, struct mrf_ep, of_agent)->passive) {
			const struct mrf_passive *passive =
				mrf_list_entry(node, struct mrf_passive, node);

			if (!mrf_passive_right(passive))
				mrf_conn_state_wrong("a peer's connection is not as its state says",
						     passive->state, MRF_PASSIVE_MOVES);
		}
	}
}

#endif

static void stop_waiting(struct mrf_passive *passive)
{
	mrf_list_del(&passive->half);
	mrf_timer_stop(passive->ep->agent, &passive->until);
}

void mrf_passive_admit(struct mrf_passive *passive)
{
	struct mrf_agent *agent = passive->ep->agent;

	mrf_passive_move(passive, MRF_PASSIVE_ADMIT);
	mrf_list_add_tail(&passive->half, &mrf_eps_of(agent)->half);
	mrf_timer_set(agent, &passive->until, MRF_HALF_MS);
}

void mrf_passive_established(struct mrf_passive *passive)
{
	mrf_passive_move(passive, MRF_PASSIVE_CONFIRM);
	stop_waiting(passive);
	if (passive->inlet)
		mrf_inlet_confirmed(passive->inlet);
}

bool mrf_passive_heard(struct mrf_passive *passive)
{
	if (!passive->inlet || !mrf_inlet_heard(passive->inlet))
		return false;
	mrf_passive_established(passive);
	return true;
}

void mrf_passive_broken(struct mrf_passive *passive)
{
	mrf_passive_move(passive, MRF_PASSIVE_BREAK);
	mrf_list_del(&passive->ready);
}

void mrf_passive_disconnect(struct mrf_passive *passive)
{
	mrf_vconn_disconnect(passive->vconn);
	mrf_passive_leave(passive);
	mrf_passive_move(passive, MRF_PASSIVE_DISCONNECT);
	mrf_list_add_tail(&passive->disconnected, &mrf_eps_of(passive->ep->agent)->disconnected);
}

void mrf_passive_leave(struct mrf_passive *passive)
{
	stop_waiting(passive);
	mrf_list_del(&passive->disconnected);
	mrf_list_del(&passive->ready);
	mrf_timer_stop(passive->ep->agent, &passive->look);
}
