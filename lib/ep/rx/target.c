/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's half: connections that peers opened to an endpoint of ours. The kernel
 * serves their reads and writes; target_serve.c answers what they ask of us. Everything
 * here runs in the agent thread.
 *
 * A connection takes what it needs when the target lets its initiator in. Until the
 * initiator has confirmed it, or something came over it, the connection is half open: it
 * has a deadline, each address has a quota of such connections, and when the quota or a
 * limit is met the oldest gives way to a new one. An initiator that is told "no
 * resources", and which limit was met, dials again until FI_MRFAB_CONN_TIMEOUT is over. So
 * a program that only asks for connections, without a key or a queue pair, keeps nobody
 * out.
 *
 * A connection has receives of its own rather than a share of the endpoint's. RC then
 * holds back a peer whose data nobody reads, and nobody else: with shared receives
 * (ibv_create_srq) that peer would use up all of them, because the protocol has credits
 * for questions and requests but none for data.
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/param.h"
#include "contract/budget.h"
#include "ep/link/greet.h"
#include "ep/msg/lines.h"
#include "ep/rx/ends.h"
#include "ep/rx/requests.h"
#include "ep/rx/staging.h"
#include "ep/rx/stop.h"
#include "ep/rx/target.h"
#include "ep/rx/target_serve.h"
#include "mr/demand/backs.h"

#define SLOTS_SIZE ((size_t)MRF_PASSIVE_SLOTS * MRF_PASSIVE_SLOT_SIZE)

static void close_passive(struct mrf_passive *passive)
{
	if (passive->inlet)
		mrf_inlet_shut(passive->inlet);
	mrf_vconn_disconnect(passive->vconn);
	mrf_vconn_close(passive->vconn);
	if (passive->inlet)
		mrf_inlet_end(passive->inlet);
}

static void passive_destroy(struct mrf_passive *passive)
{
	mrf_list_del(&passive->node);
	mrf_requests_leave(passive);
	mrf_passive_leave(passive);
	mrf_staging_leave(passive);
	close_passive(passive);
	mrf_mr_lease_end(&passive->lease);
	mrf_passive_leave_places(passive);
	mrf_eps_of(passive->ep->agent)->npassive--;
	/* A queue pair that the kernel keeps, too, goes on receiving there. */
	if (mrf_vmr_drop(&passive->slots_mr))
		free(passive);
}

/*
 * First arrivals are stopped. What has arrived counts: a write that was acknowledged has its
 * completion here. (Of a line, what has arrived is taken in when its queue pair is gone: on some
 * kernels a receive that was begun comes back only then.)
 */
static void gone(struct mrf_passive *passive)
{
	if (passive->inlet) {
		passive_destroy(passive);
		return;
	}
	/* A message that is found then may have been malformed. */
	if (mrf_passive_stop(passive))
		passive_destroy(passive);
}

void mrf_passive_destroy_disconnected(struct mrf_eps *eps)
{
	int64_t end;
	struct mrf_list *node;

	if (mrf_likely(mrf_list_empty(&eps->disconnected)))
		return;
	end = mrf_now_us() + MRF_TURN_US;
	while ((node = mrf_list_first(&eps->disconnected))) {
		if (mrf_now_us() >= end) {
			eps->agent.more = true;
			break;
		}
		gone(mrf_list_entry(node, struct mrf_passive, disconnected));
	}
}

bool mrf_passive_destroy_one(struct mrf_ep *ep)
{
	struct mrf_list *node = mrf_list_first(&ep->passive);

	if (node)
		gone(mrf_list_entry(node, struct mrf_passive, node));
	return node;
}

/* --- half open -------------------------------------------------------------------------------- */

static void never_came(struct mrf_timer *timer)
{
	struct mrf_passive *passive = mrf_container_of(timer, struct mrf_passive, until);

	if (mrf_passive_heard(passive))
		return;
	mrf_info(FI_LOG_EP_CTRL, "a peer asked for a connection and never confirmed it");
	gone(passive);
}

/* Counts the half-open connections from this address; finds the oldest, if there is one. */
static unsigned count_half(struct mrf_agent *agent, const union mrf_addr *addr,
			   struct mrf_passive **oldest)
{
	unsigned n = 0;

	mrf_list_each (node, &mrf_eps_of(agent)->half) {
		struct mrf_passive *passive = mrf_list_entry(node, struct mrf_passive, half);

		if (mrf_addr_same_host(&addr->sa, &passive->addr.sa) && !n++)
			*oldest = passive;
	}
	return n;
}

/* The oldest half-open connection gives way to a new one, if it has had enough time. */
static bool give_way(struct mrf_passive *oldest)
{
	if (oldest->until.node.key - mrf_now_ms() > MRF_HALF_MS - MRF_HALF_GRACE_MS)
		return false;
	if (!mrf_passive_heard(oldest))
		gone(oldest);
	return true;
}

static bool within_quota(struct mrf_agent *agent, const struct mrf_vconn *vconn)
{
	union mrf_addr addr = { .sa.sa_family = AF_UNSPEC };
	struct mrf_passive *oldest = NULL;

	mrf_vconn_peer_addr(vconn, &addr);
	return count_half(agent, &addr, &oldest) < MRF_HALF_PER_ADDR || give_way(oldest);
}

/* --- what the agent tells --------------------------------------------------------------------- */

static void event(struct mrf_owner *owner, const struct mrf_cm_event *event)
{
	struct mrf_passive *passive = mrf_passive_of(owner);

	switch (event->type) {
	case MRF_CM_REJECTED:
	case MRF_CM_FAILED:
	case MRF_CM_DISCONNECTED:
	case MRF_CM_REMOVED:
		gone(passive);
		break;
	case MRF_CM_ESTABLISHED:
		mrf_passive_established(passive);
		break;
	case MRF_CM_ADDR_RESOLVED:
	case MRF_CM_UNRESOLVED:
	case MRF_CM_ROUTE_RESOLVED:
	case MRF_CM_REQUEST:
	case MRF_CM_RESPONSE:
	case MRF_CM_OTHER:
		break;
	}
}

static void broke(struct mrf_owner *owner)
{
	mrf_passive_disconnect(mrf_passive_of(owner));
}

static void end(struct mrf_owner *owner)
{
	gone(mrf_passive_of(owner));
}

static const struct mrf_owner_calls calls = {
	.event = event,
	.message = mrf_passive_message,
	.broke = broke,
	.end = end,
	.forget = mrf_passive_forget,
};

/* A line brings nothing to the agent's queue, and its initiator knows no keys that end. */
static const struct mrf_owner_calls line_calls = {
	.event = event,
	.broke = broke,
	.end = end,
};

/* --- taking in ------------------------------------------------------------------------------- */

static int create_qp(struct mrf_passive *passive)
{
	struct mrf_ep *ep = passive->ep;
	struct mrf_vqp_attr attr = { .pd = mrf_mr_port_pd(&ep->domain->space, &ep->port),
				     .send_cq = passive->sent->vcq,
				     .recv_cq = passive->owner.cq->vcq,
				     .send_depth = MRF_PASSIVE_SENDS,
				     .recv_depth = MRF_PASSIVE_SLOTS,
				     .send_sge = 1,
				     .max_inline = MRF_PROTO_FORGET_MAX };
	unsigned i;
	int ret = mrf_vconn_create_qp(passive->vconn, &attr);

	if (ret)
		return ret;
	for (i = 0; !ret && i < MRF_PASSIVE_SLOTS; i++)
		ret = mrf_passive_post_slot(passive, i);
	/*
	 * The id refers to the connection that is freed now, and there may be another attempt with
	 * the same id.
	 */
	if (ret)
		mrf_vconn_destroy_qp(passive->vconn);
	return ret;
}

/* What the end of a line needs, likewise. */
static int line_equip(struct mrf_passive *passive, const struct mrf_hello *hello,
		      enum mrf_full *full)
{
	struct mrf_agent *agent = passive->ep->agent;
	int ret = mrf_agent_own(agent, &passive->owner, 0);

	*full = MRF_FULL_MEMORY;
	if (ret)
		return ret;
	ret = mrf_inlet_open(passive->ep->inbox, passive->vconn, hello, full, &passive->inlet);
	if (ret)
		mrf_agent_disown(agent, &passive->owner, 0);
	else
		passive->inlet->owner = passive;
	return ret;
}

/* Takes what a connection for accesses needs. *full: the limit that was met. */
static int passive_equip(struct mrf_passive *passive, enum mrf_full *full)
{
	struct mrf_ep *ep = passive->ep;
	struct mrf_vpd *pd = mrf_mr_port_pd(&ep->domain->space, &ep->port);
	int ret;

	*full = MRF_FULL_CQ;
	ret = mrf_passive_take_places(passive);
	if (ret)
		return ret;
	*full = MRF_FULL_LOCKED;
	ret = mrf_room_reg(pd, passive->slots, SLOTS_SIZE, (uintptr_t)passive->slots,
			   MRF_RIGHT_LOCAL_WRITE, &passive->slots_mr);
	if (ret)
		goto err_disown;
	*full = MRF_FULL_QP;
	ret = create_qp(passive);
	if (ret)
		goto err_dereg;
	return 0;

err_dereg:
	mrf_vmr_drop(&passive->slots_mr);
err_disown:
	mrf_passive_leave_places(passive);
	return ret;
}

static bool is_line(const struct mrf_hello *hello)
{
	return hello->flags & MRF_HELLO_MESSAGES;
}

static int passive_new(struct mrf_ep *ep, struct mrf_vconn *vconn, const struct mrf_hello *hello,
		       enum mrf_full *full, struct mrf_passive **out)
{
	struct mrf_passive *passive;
	int ret;

	*full = MRF_FULL_INBOUND;
	if (mrf_eps_of(ep->agent)->npassive >= mrf_param_int(MRF_PARAM_INBOUND))
		return -FI_ENOSPC;
	*full = MRF_FULL_MEMORY;
	passive = calloc(1, sizeof(*passive) + (is_line(hello) ? 0 : SLOTS_SIZE));
	if (!passive)
		return -FI_ENOMEM;
	passive->ep = ep;
	passive->vconn = vconn;
	passive->ticket = hello->ticket;
	passive->owner.calls = is_line(hello) ? &line_calls : &calls;
	mrf_list_init(&passive->disconnected);
	mrf_list_init(&passive->ready);
	mrf_list_init(&passive->half);
	passive->until.over = never_came;
	passive->look.over = mrf_passive_look;
	mrf_vconn_peer_addr(vconn, &passive->addr);
	mrf_mr_lease_init(&passive->lease);
	passive->told = mrf_mr_gone_so_far(&ep->domain->space);
	ret = is_line(hello) ? line_equip(passive, hello, full) : passive_equip(passive, full);
	if (ret) {
		if (ret == -FI_EMFILE)
			*full = MRF_FULL_FD;
		free(passive);
		return ret;
	}
	mrf_eps_of(ep->agent)->npassive++;
	mrf_vconn_set_owner(vconn, &passive->owner);
	*out = passive;
	return 0;
}

static void reject(struct mrf_vconn *vconn, const uint8_t *data, size_t len)
{
	mrf_vconn_reject(vconn, data, len);
	mrf_vconn_close(vconn);
}

static void reject_full(struct mrf_vconn *vconn, enum mrf_full full)
{
	uint8_t data[MRF_PROTO_FULL_LEN];

	reject(vconn, data, mrf_full_encode(full, data));
}

static void warn_key(const struct mrf_vconn *vconn)
{
	union mrf_addr addr;
	char text[MRF_ADDR_TEXT];

	mrf_vconn_peer_addr(vconn, &addr);
	mrf_warn(FI_LOG_EP_CTRL, 4210,
		 "%s has another authorization key: its connection is rejected",
		 mrf_addr_text(&addr, text, sizeof(text)));
}

static void not_taken_in(struct mrf_vconn *vconn, int ret, enum mrf_full full)
{
	if (ret == -FI_ECONNRESET) {
		mrf_info(FI_LOG_EP_CTRL, "a peer went away while it was being connected");
		mrf_vconn_close(vconn);
		return;
	}
	mrf_warn(FI_LOG_EP_CTRL, 4023,
		 "there is no room for another peer, whose connection is rejected: out of %s (%s)",
		 mrf_full_text(full), mrf_errtext(-ret));
	reject_full(vconn, full);
}

/* --- connections that the initiator has no more ------------------------------------------- */

static struct mrf_passive *find_former(const struct mrf_ep *ep, uint64_t ticket)
{
	mrf_list_each (node, &ep->passive) {
		struct mrf_passive *passive = mrf_list_entry(node, struct mrf_passive, node);

		if (passive->ticket == ticket)
			return passive;
	}
	return NULL;
}

/*
 * An initiator has one connection to an endpoint at a time, and shows all of them the same ticket.
 * So what is left of an earlier one ends before there is a new one, even if nobody has told that it
 * was given up: nothing that was sent over it may land behind what comes over the new one. A job
 * that is at one of its requests is waited for (job_serve.c).
 */
static void end_former(struct mrf_ep *ep, uint64_t ticket)
{
	struct mrf_passive *former;

	while (ticket && (former = find_former(ep, ticket)))
		gone(former);
}

/* Lets in an initiator that has proved its key, if one is needed. */
static void take_in(struct mrf_ep *ep, struct mrf_vconn *vconn, const struct mrf_hello *hello,
		    struct mrf_auth_talk *talk)
{
	struct mrf_welcome welcome = { .mr_mode = ep->domain->space.mode,
				       .instance = ep->instance,
				       .space_id = ep->domain->space.id,
				       .flags = ep->caps & FI_RMA_EVENT ? MRF_WELCOME_EVENTS : 0,
				       .asks = MRF_ASKS };
	uint8_t data[MRF_PROTO_WELCOME_MAX];
	struct mrf_passive *passive = NULL;
	struct mrf_list *oldest;
	enum mrf_full full;
	int ret;

	end_former(ep, hello->ticket);
	if (!within_quota(ep->agent, vconn)) {
		mrf_info(FI_LOG_EP_CTRL, "too many connections from one address are half "
					 "open: another one has to wait");
		reject_full(vconn, MRF_FULL_HALF);
		return;
	}
	welcome.flags |= is_line(hello) ? 0 : mrf_ends_tell(&ep->ends, hello);
	ret = passive_new(ep, vconn, hello, &full, &passive);
	/* Takes the place of the oldest connection that its initiator has not confirmed. */
	oldest = mrf_list_first(&mrf_eps_of(ep->agent)->half);
	if (ret && ret != -FI_ECONNRESET && oldest &&
	    give_way(mrf_list_entry(oldest, struct mrf_passive, half)))
		ret = passive_new(ep, vconn, hello, &full, &passive);
	if (ret) {
		not_taken_in(vconn, ret, full);
		return;
	}
	if (passive->inlet)
		mrf_inlet_welcome(passive->inlet, &welcome);
	mrf_greet_welcome(ep, talk, mrf_vconn_qpn(vconn), &welcome);
	mrf_list_add_tail(&passive->node, &ep->passive);
	ret = mrf_vconn_accept(vconn, data, mrf_welcome_encode(&welcome, data));
	if (ret) {
		passive_destroy(passive);
		return;
	}
	if (passive->inlet)
		mrf_inlet_begin(passive->inlet, vconn);
	else
		mrf_vconn_tune(vconn);
	mrf_passive_admit(passive);
}

/* May it have the connection that it asks for? If not, *reason says why. */
static bool lets_in(const struct mrf_ep *ep, const struct mrf_hello *hello,
		    enum mrf_refuse_reason *reason)
{
	if (!is_line(hello))
		return true;
	*reason = MRF_REFUSE_MESSAGES;
	if (!ep->inbox || !(ep->caps & FI_RECV))
		return false;
	*reason = MRF_REFUSE_BARRED;
	return !mrf_inbox_bars(ep->inbox, hello->ticket);
}

void mrf_passive_request(struct mrf_ep *ep, const struct mrf_cm_event *event)
{
	uint8_t data[MRF_PROTO_CHALLENGE_LEN];
	enum mrf_refuse_reason reason;
	struct mrf_auth_talk talk;
	struct mrf_hello hello;

	if (mrf_hello_decode(event->data, event->len, &hello)) {
		mrf_warn(FI_LOG_EP_CTRL, 4022,
			 "a program that does not speak this protocol asked for a "
			 "connection: it is rejected");
		reject(event->incoming, data, mrf_refuse_encode(MRF_REFUSE_VERSION, data));
		return;
	}
	switch (mrf_greet_check(ep, &hello, event->qpn, &talk)) {
	case MRF_GREET_OK:
		if (lets_in(ep, &hello, &reason))
			take_in(ep, event->incoming, &hello, &talk);
		else
			reject(event->incoming, data, mrf_refuse_encode(reason, data));
		break;
	case MRF_GREET_CHALLENGE:
		reject(event->incoming, data, mrf_greet_challenge(ep, data));
		break;
	case MRF_GREET_KEY:
		warn_key(event->incoming);
		reject(event->incoming, data, mrf_refuse_encode(MRF_REFUSE_KEY, data));
	}
}
