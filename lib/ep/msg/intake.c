/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/grant.h"
#include "ep/msg/intake.h"
#include "ep/msg/pull_step.h"
#include "loop/agent_calls.h"
#include "verbs/vqp.h"

/* Completions that it may have: parts, and grants. */
#define PLACES (MRF_GRANTS + MRF_GRANTS_SENT)

static struct mrf_frame_bulk name_of(const struct mrf_intake *intake)
{
	struct mrf_vpair_name name;

	if (mrf_likely(intake->named))
		return (struct mrf_frame_bulk){ .qp = 0 };
	name = mrf_vpair_name(intake->pair);
	return (struct mrf_frame_bulk){ .qp = name.qpn, .psn = name.psn };
}

static bool grant_part_locked(struct mrf_inlet *inlet, struct mrf_pull *pull, uint64_t len,
			      struct mrf_sge *sge, int nsge)
{
	struct mrf_intake *intake = inlet->intake;
	const struct mrf_frame_grant grant = { .number = pull->message->offer.number,
					       .offset = pull->granted,
					       .length = (uint32_t)len,
					       .bulk = name_of(intake) };

	if (mrf_vpair_recv(intake->pair, MRF_PIECE_ID, sge, nsge)) {
		mrf_inbox_close_line_locked(inlet);
		return false;
	}
	intake->part[intake->last++ % MRF_GRANTS] = (struct mrf_intake_part){
		.pull = pull, .place = pull->place, .len = (uint32_t)len
	};
	intake->named = true;
	mrf_pull_granted_locked(pull, len);
	return mrf_grant_send_locked(inlet, &grant);
}

static bool grant_next_locked(struct mrf_inlet *inlet)
{
	const struct mrf_intake *intake = inlet->intake;
	struct mrf_sge sge[MRF_LOCAL_SGE];
	struct mrf_pull *pull;
	uint64_t len;
	int nsge;

	if (intake->last - intake->first == MRF_GRANTS)
		return false;
	pull = mrf_pull_next_locked(inlet->origin, &len, sge, &nsge);
	return pull && grant_part_locked(inlet, pull, len, sge, nsge);
}

/* The agent shall make the pair for what waits for it. */
static bool wait_for_pair_locked(struct mrf_inlet *inlet)
{
	if (!inlet->wants_intake && inlet->other.qpn && !mrf_list_empty(&inlet->origin->turns)) {
		inlet->wants_intake = true;
		mrf_agent_kick(inlet->inbox->ep->agent, &inlet->inbox->kick);
	}
	return false;
}

bool mrf_intake_grant_locked(struct mrf_inlet *inlet)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	return inlet->intake ? grant_next_locked(inlet) : wait_for_pair_locked(inlet);
}

bool mrf_intake_name_locked(struct mrf_inlet *inlet, const struct mrf_frame_bulk *name)
{
	mrf_lock_held(&inlet->inbox->ep->lock);
	if (!name->qp)
		return true;
	if (inlet->other.qpn)
		return false;
	inlet->other = (struct mrf_vpair_name){ .qpn = name->qp, .psn = name->psn };
	return true;
}

/* --- what comes ----------------------------------------------------------------------- */

void mrf_intake_came_locked(struct mrf_inlet *inlet, const struct mrf_wc *wc)
{
	struct mrf_intake *intake = inlet->intake;
	struct mrf_intake_part piece;

	mrf_lock_held(&inlet->inbox->ep->lock);
	if (!intake || intake->first == intake->last)
		return;
	/* A sender that sends fewer bytes than it was asked for is not to be believed any more. */
	piece = intake->part[intake->first % MRF_GRANTS];
	if (mrf_unlikely(wc->status != MRF_WC_OK || wc->byte_len != piece.len)) {
		mrf_inbox_close_line_locked(inlet);
		return;
	}
	intake->first++;
	mrf_pull_came_locked(piece.pull, piece.place, piece.len);
	mrf_pull_go_locked(inlet->origin);
}

/* Nothing comes to the places of parts that were asked for. */
static void leave_places_locked(struct mrf_inlet *inlet)
{
	struct mrf_landing *landing = inlet->origin->landing;
	struct mrf_intake *intake = inlet->intake;

	for (; intake->first != intake->last; intake->first++) {
		struct mrf_place *place = intake->part[intake->first % MRF_GRANTS].place;

		if (place)
			mrf_landing_leave_locked(landing, place);
	}
	mrf_landing_rest_locked(landing);
}

void mrf_intake_lost_locked(struct mrf_inlet *inlet)
{
	struct mrf_inbox *inbox = inlet->inbox;
	struct mrf_list *node;

	mrf_lock_held(&inbox->ep->lock);
	while ((node = mrf_list_pop(&inlet->ends)))
		mrf_inbox_free_message_locked(inbox,
					      mrf_list_entry(node, struct mrf_message, late.node));
	if (!inlet->intake)
		return;
	leave_places_locked(inlet);
	mrf_idmap_remove(&inbox->by_qpn, inlet->intake->qpn);
	free(inlet->intake);
	inlet->intake = NULL;
}

/* --- the agent ------------------------------------------------------------------------ */

static int make_pair(struct mrf_inlet *inlet, struct mrf_intake *intake)
{
	struct mrf_inbox *inbox = inlet->inbox;
	const struct mrf_vpair_attr attr = { .pd = inbox->ep->domain->pd,
					     .send_cq = inbox->vcq,
					     .recv_cq = inbox->vcq,
					     .send_depth = 1,
					     .recv_depth = MRF_GRANTS,
					     .send_sge = 1,
					     .recv_sge = MRF_LOCAL_SGE };
	int ret = mrf_vpair_open(inlet->vconn, &attr, &intake->pair);

	if (ret)
		return ret;
	intake->qpn = mrf_vpair_name(intake->pair).qpn;
	ret = mrf_vpair_connect(intake->pair, inlet->vconn, &inlet->other);
	if (ret)
		mrf_vpair_close(intake->pair);
	return ret;
}

static int make(struct mrf_inlet *inlet, struct mrf_intake **out)
{
	int ret = mrf_inbox_count_places(inlet->inbox, PLACES);

	if (ret)
		return ret;
	*out = calloc(1, sizeof(**out));
	ret = *out ? make_pair(inlet, *out) : -FI_ENOMEM;
	if (!ret)
		return 0;
	free(*out);
	mrf_inbox_give_places(inlet->inbox, PLACES);
	return ret;
}

static void unmake(struct mrf_inbox *inbox, struct mrf_intake *intake)
{
	mrf_vpair_close(intake->pair);
	mrf_inbox_give_places(inbox, PLACES);
	free(intake);
}

/* -FI_ENOMEM. */
static int show(struct mrf_inlet *inlet, struct mrf_intake *intake)
{
	struct mrf_inbox *inbox = inlet->inbox;
	int ret;

	mrf_lock_take(&inbox->ep->lock);
	ret = mrf_idmap_insert(&inbox->by_qpn, intake->qpn, inlet);
	if (!ret) {
		inlet->intake = intake;
		mrf_grant_go_locked(inlet);
	}
	mrf_lock_release(&inbox->ep->lock);
	return ret;
}

static void fail_all_locked(struct mrf_inlet *inlet, int ret)
{
	/* A connection that has just gone is made again. */
	if (ret == -FI_ECONNRESET)
		mrf_inbox_close_line_locked(inlet);
	else
		mrf_pull_refuse_locked(inlet->origin);
}

void mrf_intake_open(struct mrf_inlet *inlet)
{
	struct mrf_intake *intake = NULL;
	int ret = make(inlet, &intake);

	if (!ret) {
		ret = show(inlet, intake);
		if (ret)
			unmake(inlet->inbox, intake);
	}
	mrf_lock_take(&inlet->inbox->ep->lock);
	inlet->wants_intake = false;
	if (ret)
		fail_all_locked(inlet, ret);
	mrf_pull_step_late_locked(inlet->inbox);
	mrf_lock_release(&inlet->inbox->ep->lock);
}

void mrf_intake_close(struct mrf_inlet *inlet)
{
	if (!inlet->intake)
		return;
	mrf_vpair_close(inlet->intake->pair);
	mrf_inbox_give_places(inlet->inbox, PLACES);
}
