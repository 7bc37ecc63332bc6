/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/param.h"
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/arrive.h"
#include "ep/msg/duty.h"
#include "ep/msg/label.h"
#include "ep/msg/landing.h"
#include "ep/msg/lines.h"
#include "ep/msg/grant.h"
#include "ep/msg/intake.h"
#include "ep/msg/lost.h"
#include "ep/msg/orphans.h"
#include "ep/msg/pull.h"
#include "ep/msg/recv.h"
#include "ep/msg/reverse.h"
#include "ep/msg/silent.h"
#include "loop/agent_calls.h"
#include "proto/frame.h"
#include "verbs/vqp.h"

/* Notes that a queue pair sends: the one on the way. */
#define SENDS 4

/* --- the queue ------------------------------------------------------------------------ */

/* Sleepers and the agent learn of it through the descriptor of the endpoint's other queue. */
static int open_queue(struct mrf_inbox *inbox)
{
	struct mrf_ep *ep = inbox->ep;
	struct mrf_vcq *vcq;
	int ret;

	if (inbox->vcq)
		return 0;
	ret = mrf_vcq_open_beside(ep->scq, MRF_INBOX_CQ_FIRST, &vcq);
	if (ret)
		return ret;
	inbox->depth = MRF_INBOX_CQ_FIRST;
	mrf_lock_take(&ep->lock);
	inbox->vcq = vcq;
	ep->lines = inbox;
	/* A thread may be asleep already. */
	mrf_vcq_arm(vcq);
	mrf_lock_release(&ep->lock);
	mrf_duty_begin(inbox);
	return 0;
}

int mrf_inbox_take_places(struct mrf_inbox *inbox, unsigned n)
{
	int ret = open_queue(inbox);

	return ret ? ret : mrf_inbox_count_places(inbox, n);
}

/* --- origins -------------------------------------------------------------------------- */

static void free_origin_locked(struct mrf_origin *origin)
{
	mrf_landing_free_locked(origin->landing);
	free(origin);
}

static void forget_origin_locked(struct mrf_inbox *inbox, struct mrf_origin *origin)
{
	mrf_idmap_remove(&inbox->by_ticket, origin->ticket);
	mrf_list_del(&origin->node);
	inbox->norigins--;
	free_origin_locked(origin);
}

/* Those that were used longest ago and have no line make room. */
static void forget_oldest_locked(struct mrf_inbox *inbox)
{
	mrf_list_each_safe (node, &inbox->origins) {
		struct mrf_origin *origin = mrf_list_entry(node, struct mrf_origin, node);

		if (inbox->norigins <= MRF_ORIGINS)
			return;
		if (!origin->inlet && !origin->held && !origin->kept &&
		    !mrf_landing_is_busy(origin->landing))
			forget_origin_locked(inbox, origin);
	}
}

bool mrf_inbox_bars(struct mrf_inbox *inbox, uint64_t ticket)
{
	const struct mrf_origin *origin;
	bool bars;

	mrf_lock_take(&inbox->ep->lock);
	origin = mrf_idmap_find(&inbox->by_ticket, ticket);
	bars = origin && ((origin->inlet && origin->inlet->wrong) || mrf_now_ms() < origin->barred);
	mrf_lock_release(&inbox->ep->lock);
	return bars;
}

/* NULL: there is no memory. */
static struct mrf_origin *new_origin_locked(struct mrf_inbox *inbox, const struct mrf_vconn *vconn,
					    const struct mrf_hello *hello)
{
	struct mrf_origin *origin = calloc(1, sizeof(*origin));

	if (!origin)
		return NULL;
	if (mrf_idmap_insert(&inbox->by_ticket, hello->ticket, origin)) {
		free(origin);
		return NULL;
	}
	/* Not afterwards: all others may have messages that are kept. */
	forget_oldest_locked(inbox);
	origin->inbox = inbox;
	origin->ticket = hello->ticket;
	mrf_vconn_peer_addr(vconn, &origin->addr);
	mrf_addr_set_port(&origin->addr, (uint16_t)(hello->flags >> MRF_HELLO_PORT_SHIFT));
	mrf_label_new_locked(inbox, origin);
	mrf_list_init(&origin->offers);
	mrf_list_init(&origin->waiting);
	mrf_list_init(&origin->turns);
	mrf_list_add_tail(&origin->node, &inbox->origins);
	inbox->norigins++;
	return origin;
}

/* --- inlets --------------------------------------------------------------------------- */

/*
 * Called for a new line: what its initiator may send, from the next frame on. That is nothing while
 * too much of it is unexpected, until a note says so, or whoever dialled again and again would go
 * around that limit.
 */
static void begin_window_locked(struct mrf_inlet *inlet)
{
	struct mrf_origin *origin = inlet->origin;

	origin->inlet = inlet;
	origin->window = MRF_WINDOW_FIRST;
	origin->told = origin->begun = origin->next;
	origin->asked = 0;
	origin->shut = !mrf_inbox_has_room_locked(inlet->inbox, origin) ||
		       !mrf_inbox_has_places_locked(inlet->inbox);
	origin->limit = origin->next + (origin->shut ? 0 : origin->window);
	origin->used_up = origin->smaller = origin->unsure = origin->offers_only = false;
	mrf_inbox_count_window_locked(inlet, true);
	mrf_inbox_ask_for_slots_locked(inlet->inbox);
}

static int create_inlet_qp(struct mrf_inlet *inlet, struct mrf_vconn *vconn)
{
	struct mrf_inbox *inbox = inlet->inbox;
	const struct mrf_vqp_attr attr = { .pd = inbox->ep->domain->pd,
					   .send_cq = inbox->vcq,
					   .recv_cq = inbox->vcq,
					   .send_depth = SENDS,
					   .send_sge = 1,
					   .max_inline = MRF_FRAME_MAX_BACK,
					   .srq = inbox->slots.srq,
					   .sends_only = true };
	int ret = mrf_vconn_create_qp(vconn, &attr);

	if (!ret)
		inlet->qpn = mrf_vconn_qpn(vconn);
	return ret;
}

/* Finds or makes its origin, and shows the inlet to pollers. -FI_ENOMEM. */
static int show_inlet(struct mrf_inlet *inlet, struct mrf_vconn *vconn,
		      const struct mrf_hello *hello)
{
	struct mrf_inbox *inbox = inlet->inbox;
	int ret = -FI_ENOMEM;

	mrf_lock_take(&inbox->ep->lock);
	inlet->origin = mrf_idmap_find(&inbox->by_ticket, hello->ticket);
	inlet->known = inlet->origin;
	if (!inlet->known)
		inlet->origin = new_origin_locked(inbox, vconn, hello);
	if (inlet->origin)
		ret = mrf_idmap_insert(&inbox->by_qpn, inlet->qpn, inlet);
	if (!ret) {
		mrf_lost_begin_locked(inlet);
		mrf_list_add_tail(&inlet->node, &inbox->inlets);
		begin_window_locked(inlet);
		mrf_reverse_find_peer_locked(inlet);
	}
	mrf_lock_release(&inbox->ep->lock);
	return ret;
}

/* What all lines need. */
static int open_slots(struct mrf_inbox *inbox)
{
	int ret;

	if (inbox->slots.srq)
		return 0;
	ret = mrf_inbox_expect_slots(inbox);
	return ret ? ret : mrf_slots_open(&inbox->slots, inbox->ep->domain->pd);
}

/* Everything of the inlet but its place in the queue. */
static int equip(struct mrf_inlet *inlet, struct mrf_vconn *vconn, const struct mrf_hello *hello,
		 enum mrf_full *full)
{
	int ret;

	*full = MRF_FULL_LOCKED;
	ret = open_slots(inlet->inbox);
	if (ret)
		return ret;
	*full = MRF_FULL_QP;
	ret = create_inlet_qp(inlet, vconn);
	if (ret)
		return ret;
	*full = MRF_FULL_MEMORY;
	ret = show_inlet(inlet, vconn, hello);
	if (ret)
		mrf_vconn_destroy_qp(vconn);
	return ret;
}

int mrf_inlet_open(struct mrf_inbox *inbox, struct mrf_vconn *vconn, const struct mrf_hello *hello,
		   enum mrf_full *full, struct mrf_inlet **out)
{
	struct mrf_inlet *inlet = calloc(1, sizeof(*inlet));
	int ret;

	*full = MRF_FULL_MEMORY;
	if (!inlet)
		return -FI_ENOMEM;
	inlet->inbox = inbox;
	inlet->seen = MRF_SILENT_UNSEEN;
	mrf_list_init(&inlet->due);
	mrf_list_init(&inlet->ends);
	*full = MRF_FULL_RECEIVES;
	ret = -FI_ENOSPC;
	if (mrf_lost_bars(inbox))
		goto err_free;
	*full = MRF_FULL_CQ;
	ret = mrf_inbox_take_places(inbox, MRF_LINE_PLACES);
	if (ret)
		goto err_free;
	ret = equip(inlet, vconn, hello, full);
	if (ret)
		goto err_places;
	*out = inlet;
	return 0;

err_places:
	mrf_inbox_give_places(inbox, MRF_LINE_PLACES);
err_free:
	free(inlet);
	return ret;
}

static uint32_t kinds_of(const struct mrf_ep *ep)
{
	return (ep->caps & FI_MSG ? MRF_LINE_MSG : 0) |
	       (ep->caps & FI_TAGGED ? MRF_LINE_TAGGED : 0);
}

void mrf_inlet_welcome(const struct mrf_inlet *inlet, struct mrf_welcome *welcome)
{
	struct mrf_ep *ep = inlet->inbox->ep;

	mrf_lock_take(&ep->lock);
	welcome->flags |= MRF_WELCOME_LINE | (inlet->known ? MRF_WELCOME_KNOWN : 0);
	welcome->line =
		(struct mrf_welcome_line){ .slot = MRF_LINE_SLOT,
					   .window =
						   inlet->origin->shut ? 0 : inlet->origin->window,
					   .kinds = kinds_of(ep),
					   .taken = inlet->origin->next };
	mrf_lock_release(&ep->lock);
}

void mrf_inlet_begin(struct mrf_inlet *inlet, struct mrf_vconn *vconn)
{
	mrf_lock_take(&inlet->inbox->ep->lock);
	inlet->vconn = vconn;
	mrf_inbox_owe_locked(inlet);
	/* Something may have come already. */
	mrf_grant_go_locked(inlet);
	mrf_lock_release(&inlet->inbox->ep->lock);
}

void mrf_inlet_confirmed(struct mrf_inlet *inlet)
{
	mrf_lock_take(&inlet->inbox->ep->lock);
	inlet->confirmed = true;
	mrf_lock_release(&inlet->inbox->ep->lock);
}

bool mrf_inlet_heard(struct mrf_inlet *inlet)
{
	bool heard;

	mrf_lock_take(&inlet->inbox->ep->lock);
	heard = inlet->heard;
	mrf_lock_release(&inlet->inbox->ep->lock);
	return heard;
}

void mrf_inlet_shut(struct mrf_inlet *inlet)
{
	mrf_lock_take(&inlet->inbox->ep->lock);
	inlet->vconn = NULL;
	mrf_list_del(&inlet->due);
	mrf_lock_release(&inlet->inbox->ep->lock);
}

static void forget_inlet_locked(struct mrf_inlet *inlet)
{
	struct mrf_inbox *inbox = inlet->inbox;
	struct mrf_origin *origin = inlet->origin;

	mrf_idmap_remove(&inbox->by_qpn, inlet->qpn);
	if (inbox->last == inlet)
		inbox->last = NULL;
	mrf_reverse_forget_inlet_locked(inlet);
	mrf_list_del(&inlet->node);
	mrf_list_del(&inlet->due);
	mrf_inbox_count_window_locked(inlet, false);
	mrf_intake_lost_locked(inlet);
	origin->inlet = NULL;
	mrf_pull_lost_locked(origin);
	mrf_list_del(&origin->node);
	mrf_list_add_tail(&origin->node, &inbox->origins);
	forget_oldest_locked(inbox);
	mrf_lost_end_locked(inlet);
}

void mrf_inlet_end(struct mrf_inlet *inlet)
{
	struct mrf_inbox *inbox = inlet->inbox;
	struct mrf_ep *ep = inbox->ep;

	mrf_intake_close(inlet);
	mrf_lock_take(&ep->lock);
	/* Its frames may be behind those of many others; what was acknowledged must not be lost. */
	mrf_arrive_all_locked(inbox);
	forget_inlet_locked(inlet);
	mrf_lock_release(&ep->lock);
	mrf_lost_replace(inbox);
	mrf_orphans_later(inbox);
	mrf_inbox_give_places(inbox, MRF_LINE_PLACES);
	free(inlet);
}

/* --- the agent looks ------------------------------------------------------------------ */

/* One that is to be cut off, or closed. */
static struct mrf_inlet *bad_one(struct mrf_inbox *inbox)
{
	struct mrf_inlet *found = NULL;

	mrf_lock_take(&inbox->ep->lock);
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		if ((inlet->wrong || inlet->closing) && inlet->vconn)
			found = inlet;
	}
	mrf_lock_release(&inbox->ep->lock);
	return found;
}

/* Bytes of long messages wait for it. */
static struct mrf_inlet *one_without_intake(struct mrf_inbox *inbox)
{
	struct mrf_inlet *found = NULL;

	mrf_lock_take(&inbox->ep->lock);
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		if (inlet->wants_intake && inlet->vconn)
			found = inlet;
	}
	mrf_lock_release(&inbox->ep->lock);
	return found;
}

static bool wants_slots(struct mrf_inbox *inbox)
{
	bool wants;

	mrf_lock_take(&inbox->ep->lock);
	wants = inbox->growing;
	mrf_lock_release(&inbox->ep->lock);
	return wants;
}

/* Where there is no room for more, there are none, and nobody asks again. */
static void grow_slots(struct mrf_inbox *inbox)
{
	struct mrf_slots_chunk *chunk;
	int ret;

	ret = mrf_inbox_expect_slots(inbox);
	if (!ret)
		ret = mrf_slots_make(&inbox->slots, &chunk);
	mrf_lock_take(&inbox->ep->lock);
	if (ret)
		inbox->slots.max = inbox->slots.count;
	else
		mrf_shared_add(&inbox->slots, chunk);
	inbox->growing = !ret && inbox->windows > inbox->slots.count &&
			 inbox->slots.count < inbox->slots.max;
	mrf_lock_release(&inbox->ep->lock);
}

static void looked_at(struct mrf_kick *kick)
{
	struct mrf_inbox *inbox = mrf_container_of(kick, struct mrf_inbox, kick);
	struct mrf_inlet *inlet;

	while ((inlet = bad_one(inbox))) {
		mrf_inlet_shut(inlet);
		inbox->calls->cut(inlet);
	}
	while ((inlet = one_without_intake(inbox)))
		mrf_intake_open(inlet);
	while (wants_slots(inbox))
		grow_slots(inbox);
	mrf_duty_look(inbox);
	mrf_lost_later(inbox);
}

/* --- made and freed ------------------------------------------------------------------- */

int mrf_inbox_new(struct mrf_ep *ep, const struct mrf_inbox_calls *calls)
{
	struct mrf_inbox *inbox = calloc(1, sizeof(*inbox));
	int ret;

	if (!inbox)
		return -FI_ENOMEM;
	ret = mrf_match_init(&inbox->untagged);
	if (!ret)
		ret = mrf_match_init(&inbox->tagged);
	if (ret) {
		free(inbox);
		return ret;
	}
	inbox->ep = ep;
	inbox->calls = calls;
	inbox->messages_max = (unsigned)mrf_param_int(MRF_PARAM_UNEXPECTED_COUNT);
	inbox->keep_max = (size_t)mrf_param_int(MRF_PARAM_UNEXPECTED) << 10;
	mrf_list_init(&inbox->claimed);
	mrf_list_init(&inbox->free_recvs);
	mrf_list_init(&inbox->late);
	mrf_list_init(&inbox->steps);
	mrf_list_init(&inbox->inlets);
	mrf_list_init(&inbox->due);
	mrf_list_init(&inbox->later);
	mrf_list_init(&inbox->full);
	mrf_list_init(&inbox->origins);
	mrf_list_init(&inbox->kick.node);
	mrf_copies_init(inbox);
	inbox->kick.look = looked_at;
	mrf_idmap_init(&inbox->by_qpn);
	mrf_idmap_init(&inbox->by_ticket);
	mrf_duty_init(inbox);
	mrf_lost_init(inbox);
	mrf_orphans_init(inbox);
	ep->inbox = inbox;
	return 0;
}

void mrf_inbox_free(struct mrf_inbox *inbox)
{
	struct mrf_list *node;

	if (!inbox)
		return;
	mrf_recv_drop_all(inbox);
	mrf_match_fini(&inbox->untagged);
	mrf_match_fini(&inbox->tagged);
	mrf_slots_close(&inbox->slots);
	if (inbox->vcq)
		mrf_vcq_close(inbox->vcq);
	mrf_lock_take(&inbox->ep->lock);
	while ((node = mrf_list_pop(&inbox->origins)))
		free_origin_locked(mrf_list_entry(node, struct mrf_origin, node));
	mrf_lock_release(&inbox->ep->lock);
	mrf_idmap_fini(&inbox->by_qpn);
	mrf_idmap_fini(&inbox->by_ticket);
	free(inbox);
}
