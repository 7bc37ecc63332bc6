/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's half: connections that peers opened to an endpoint of ours. The kernel serves
 * their reads and writes; we answer their questions and take in their immediate data.
 * Everything here runs in the agent thread.
 */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "ep/agent.h"
#include "ep/denied.h"
#include "ep/ep.h"
#include "ep/greet.h"
#include "ep/msg.h"

/* Room for questions, and for writes with immediate data that come in bursts. */
#define NSLOTS 64
#define SLOT_SIZE MRF_PROTO_MAX_REQUEST
#define SEND_DEPTH 16
#define ASKS 8 /* < SEND_DEPTH: each gets an answer, and then there are a reply and notes */
/* The slot in the work request id of a FORGET; those of RECVs and answers are below. */
#define FORGET_SLOT ((1u << MRF_WR_SLOT_BITS) - 1)

struct mrf_pasv {
	struct mrf_owner owner;
	struct mrf_list node; /* in ep->passive */
	struct mrf_list doomed; /* in agent->doomed, or nowhere */
	struct mrf_ep *ep;
	struct mrf_vconn *vconn;
	struct mrf_mr_lease lease; /* what was pinned for single accesses of this peer */
	bool forgetting;   /* a FORGET is on the way */
	bool forget_again; /* and another one is due */
	struct mrf_vmr slots_mr;
	uint8_t slots[NSLOTS][SLOT_SIZE];
};

_Static_assert(MRF_PROTO_ASK_LEN <= SLOT_SIZE, "a question fits");
_Static_assert(NSLOTS < FORGET_SLOT, "slot numbers fit");
_Static_assert(ASKS + 2 < SEND_DEPTH, "there is room for a reply and a note");
_Static_assert(MRF_PROTO_MAX_SEG >= MRF_MR_IOV_LIMIT, "an answer can name all segments");

struct mrf_pasv *mrf_pasv_of(struct mrf_owner *owner)
{
	return mrf_container_of(owner, struct mrf_pasv, owner);
}

static void pasv_destroy(struct mrf_pasv *pasv)
{
	mrf_list_del(&pasv->node);
	mrf_list_del(&pasv->doomed);
	mrf_vconn_disconnect(pasv->vconn);
	mrf_vconn_close(pasv->vconn);
	mrf_mr_lease_end(&pasv->lease);
	mrf_agent_disown(pasv->ep->agent, &pasv->owner, NSLOTS + SEND_DEPTH);
	mrf_vmr_drop(&pasv->slots_mr);
	free(pasv);
}

/*
 * It is of no more use. Nothing lands from now on; what has landed before, and may be among
 * the completions that are just being handled, still counts.
 */
static void doom(struct mrf_pasv *pasv)
{
	mrf_vconn_disconnect(pasv->vconn);
	mrf_list_add_tail(&pasv->doomed, &pasv->ep->agent->doomed);
}

void mrf_pasv_bury(struct mrf_agent *agent)
{
	struct mrf_list *node;

	if (mrf_likely(mrf_list_empty(&agent->doomed)))
		return;
	mrf_agent_poll(agent);
	while ((node = mrf_list_first(&agent->doomed)))
		pasv_destroy(mrf_list_entry(node, struct mrf_pasv, doomed));
}

void mrf_pasv_destroy_all(struct mrf_ep *ep)
{
	struct mrf_list *node;

	/* First nothing lands any more; what has is taken in, for its peer knows of it. */
	mrf_list_each(pos, &ep->passive)
		mrf_vconn_disconnect(mrf_list_entry(pos, struct mrf_pasv, node)->vconn);
	mrf_agent_poll(ep->agent);
	while ((node = mrf_list_first(&ep->passive)))
		pasv_destroy(mrf_list_entry(node, struct mrf_pasv, node));
}

static int post_slot(struct mrf_pasv *pasv, unsigned slot)
{
	struct mrf_sge sge = { .addr = (uintptr_t)pasv->slots[slot],
			       .len = SLOT_SIZE,
			       .lkey = pasv->slots_mr.lkey };

	return mrf_vconn_post_recv(pasv->vconn, MRF_WR_ID(pasv->owner.id, slot), &sge);
}

/* --- taking in ------------------------------------------------------------------------------- */

static int create_qp(struct mrf_pasv *pasv)
{
	struct mrf_ep *ep = pasv->ep;
	struct mrf_vqp_attr attr = { .pd = mrf_mr_port_pd(&ep->domain->space, &ep->port),
				     .send_cq = ep->agent->cq,
				     .recv_cq = ep->agent->cq,
				     .send_depth = SEND_DEPTH,
				     .recv_depth = NSLOTS,
				     .send_sge = 1,
				     .max_inline = MRF_PROTO_MAX_MSG };
	unsigned i;
	int ret = mrf_vconn_create_qp(pasv->vconn, &attr);

	for (i = 0; !ret && i < NSLOTS; i++)
		ret = post_slot(pasv, i);
	return ret;
}

static int pasv_new(struct mrf_ep *ep, struct mrf_vconn *vconn, struct mrf_pasv **out)
{
	struct mrf_pasv *pasv = calloc(1, sizeof(*pasv));
	int ret;

	if (!pasv)
		return -FI_ENOMEM;
	pasv->ep = ep;
	pasv->vconn = vconn;
	pasv->owner.kind = MRF_OWNER_PASV;
	mrf_list_init(&pasv->doomed);
	mrf_mr_lease_init(&pasv->lease);
	ret = mrf_agent_own(ep->agent, &pasv->owner, NSLOTS + SEND_DEPTH);
	if (ret)
		goto err_free;
	ret = mrf_vmr_reg(mrf_mr_port_pd(&ep->domain->space, &ep->port), pasv->slots,
			  sizeof(pasv->slots), (uintptr_t)pasv->slots, MRF_RIGHT_LOCAL_WRITE,
			  &pasv->slots_mr);
	if (ret)
		goto err_disown;
	ret = create_qp(pasv);
	if (ret)
		goto err_dereg;
	mrf_vconn_set_owner(vconn, &pasv->owner);
	*out = pasv;
	return 0;

err_dereg:
	mrf_vmr_drop(&pasv->slots_mr);
err_disown:
	mrf_agent_disown(ep->agent, &pasv->owner, NSLOTS + SEND_DEPTH);
err_free:
	free(pasv);
	return ret;
}

static bool wants_events(const struct mrf_ep *ep)
{
	return ep->caps & FI_RMA_EVENT;
}

static void reject(struct mrf_vconn *vconn, enum mrf_refuse_reason reason)
{
	uint8_t data[MRF_PROTO_REFUSE_LEN];

	mrf_vconn_reject(vconn, data, mrf_refuse_encode(reason, data));
	mrf_vconn_close(vconn);
}

static void challenge(struct mrf_ep *ep, struct mrf_vconn *vconn)
{
	uint8_t data[MRF_PROTO_CHALLENGE_LEN];

	mrf_vconn_reject(vconn, data, mrf_greet_challenge(ep, data));
	mrf_vconn_close(vconn);
}

static void warn_key(const struct mrf_vconn *vconn)
{
	/* It is filled in to its end, which a union mrf_addr alone does not reach. */
	union {
		struct sockaddr_storage room;
		union mrf_addr addr;
	} peer;
	char text[MRF_ADDR_TEXT];

	mrf_vconn_peer_addr(vconn, &peer.room);
	mrf_warn(FI_LOG_EP_CTRL, 4210, "%s: has another authorization key: rejected",
		 mrf_addr_text(&peer.addr, text, sizeof(text)));
}

/* Takes in who has proved what there is to prove. */
static void take_in(struct mrf_ep *ep, struct mrf_vconn *vconn, struct mrf_auth_talk *talk)
{
	struct mrf_welcome welcome = { .mr_mode = ep->domain->space.mode,
				       .instance = ep->instance,
				       .space_id = ep->domain->space.id,
				       .flags = wants_events(ep) ? MRF_WELCOME_EVENTS : 0,
				       .asks = ASKS };
	uint8_t data[MRF_PROTO_WELCOME_MAX];
	struct mrf_pasv *pasv = NULL;
	int ret = pasv_new(ep, vconn, &pasv);

	if (ret) {
		mrf_warn(FI_LOG_EP_CTRL, 4023, "no resources for another peer (%d): rejected",
			 ret);
		reject(vconn, MRF_REFUSE_RESOURCES);
		return;
	}
	mrf_greet_welcome(ep, talk, mrf_vconn_qpn(vconn), &welcome);
	mrf_list_add_tail(&pasv->node, &ep->passive);
	ret = mrf_vconn_accept(vconn, data, mrf_welcome_encode(&welcome, data));
	if (ret)
		pasv_destroy(pasv);
	else
		mrf_vconn_tune(vconn);
}

void mrf_pasv_request(struct mrf_ep *ep, const struct mrf_cm_event *event)
{
	struct mrf_auth_talk talk;
	struct mrf_hello hello;

	if (mrf_hello_decode(event->data, event->len, &hello)) {
		mrf_warn(FI_LOG_EP_CTRL, 4022, "connection request of something that does not "
			 "speak our protocol: rejected");
		reject(event->incoming, MRF_REFUSE_VERSION);
		return;
	}
	switch (mrf_greet_check(ep, &hello, event->qpn, &talk)) {
	case MRF_GREET_OK:
		take_in(ep, event->incoming, &talk);
		break;
	case MRF_GREET_CHALLENGE:
		challenge(ep, event->incoming);
		break;
	case MRF_GREET_KEY:
		warn_key(event->incoming);
		reject(event->incoming, MRF_REFUSE_KEY);
	}
}

/* What came before counts: a write that was acknowledged has its completion here. */
void mrf_pasv_gone(struct mrf_pasv *pasv)
{
	struct mrf_agent *agent = pasv->ep->agent;
	uint64_t id = pasv->owner.id;

	if (wants_events(pasv->ep)) {
		mrf_vconn_disconnect(pasv->vconn);
		mrf_agent_poll(agent);
	}
	/* What came may have been malformed. */
	if (mrf_idmap_find(&agent->owners, id))
		pasv_destroy(pasv);
}

void mrf_pasv_event(struct mrf_pasv *pasv, const struct mrf_cm_event *event)
{
	switch (event->type) {
	case MRF_CM_REJECTED:
	case MRF_CM_FAILED:
	case MRF_CM_DISCONNECTED:
	case MRF_CM_REMOVED:
		mrf_pasv_gone(pasv);
		break;
	default:
		break;
	}
}

/* --- answering ------------------------------------------------------------------------------- */

static void fill_answer(const struct mrf_ask *ask, const struct mrf_mr_view *view, bool virt,
			struct mrf_answer *answer)
{
	unsigned i;

	*answer = (struct mrf_answer){ .cookie = ask->cookie,
				       .key = ask->key,
				       .status = (uint32_t)view->status,
				       .flags = (view->complete ? MRF_ANSWER_COMPLETE : 0) |
						(view->once ? MRF_ANSWER_ONCE : 0),
				       .access = view->access,
				       .base = view->base,
				       .len = view->len,
				       .serial = view->serial,
				       .nseg = view->nseg };
	for (i = 0; i < view->nseg; i++)
		answer->seg[i] = (struct mrf_wire_seg){
			.pos = view->seg[i].addr,
			.len = view->seg[i].len,
			.rkey = view->seg[i].rkey,
			.iova_off = virt ? 0 : (uint32_t)view->seg[i].iova,
		};
}

static void find_answer(struct mrf_pasv *pasv, const struct mrf_ask *ask,
			struct mrf_answer *answer)
{
	struct mrf_mr_space *space = &pasv->ep->domain->space;
	struct mrf_mr_ask question = { .key = ask->key,
				       .serial = ask->serial,
				       .addr = ask->addr,
				       .len = ask->len,
				       .lease = ask->flags & MRF_ASK_ONCE,
				       .port = &pasv->ep->port };
	struct mrf_mr_view view = { .status = MRF_MR_UNKNOWN };

	mrf_mr_reach(space, &question, &pasv->lease, &view);
	fill_answer(ask, &view, space->mode & FI_MR_VIRT_ADDR, answer);
	answer->event = wants_events(pasv->ep) ? view.event : 0;
}

static int send_back(struct mrf_pasv *pasv, const uint8_t *out, size_t len)
{
	struct mrf_sge sge = { .addr = (uintptr_t)out, .len = (uint32_t)len };
	struct mrf_vwr wr = { .wr_id = MRF_WR_ID(pasv->owner.id, 0),
			      .op = MRF_VWR_SEND,
			      .is_inline = true,
			      .nsge = 1,
			      .sge = &sge };

	return mrf_vconn_post(pasv->vconn, &wr);
}

static int answer_ask(struct mrf_pasv *pasv, const uint8_t *msg, size_t len)
{
	struct mrf_ask ask;
	struct mrf_answer answer;
	uint8_t out[MRF_PROTO_MAX_MSG];
	int ret = mrf_ask_decode(msg, len, &ask);

	if (ret)
		return ret;
	find_answer(pasv, &ask, &answer);
	return send_back(pasv, out, mrf_answer_encode(&answer, out));
}

static int serve(struct mrf_pasv *pasv, const uint8_t *msg, size_t len)
{
	uint8_t out[MRF_PROTO_MAX_REPLY], *body = out + MRF_PROTO_REPLY_HEAD;
	struct mrf_reply reply = { .body = body };
	struct mrf_request request;
	int ret = mrf_request_decode(msg, len, &request);

	if (!ret)
		ret = mrf_request_serve[request.type](pasv->ep, &request, &reply, body);
	if (ret)
		return ret;
	reply.cookie = request.cookie;
	return send_back(pasv, out, mrf_reply_encode(&reply, out));
}

/* fi_writedata and the like: what the application there sends along. */
static void deliver(struct mrf_pasv *pasv, uint64_t len, uint64_t data)
{
	struct mrf_comp comp = { .flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
				 .len = len,
				 .data = data,
				 .src_addr = FI_ADDR_NOTAVAIL };

	if (pasv->ep->rx_cq)
		mrf_cq_write(pasv->ep->rx_cq, &comp);
}

static int take_data(struct mrf_pasv *pasv, const uint8_t *msg, size_t len)
{
	struct mrf_data data;
	int ret = mrf_data_decode(msg, len, &data);

	if (!ret)
		deliver(pasv, data.len, data.data);
	return ret;
}

static int take_message(struct mrf_pasv *pasv, const uint8_t *msg, size_t len)
{
	int type = mrf_msg_type(msg, len);

	if (type == MRF_MSG_RELEASE) {
		mrf_mr_lease_end(&pasv->lease);
		return 0;
	}
	if (type == MRF_MSG_DATA)
		return take_data(pasv, msg, len);
	if (type >= 0 && type < MRF_REQUEST_TYPES && mrf_request_serve[type])
		return serve(pasv, msg, len);
	return answer_ask(pasv, msg, len);
}

/* One at a time: the peer has room for a few messages that it did not ask for. */
void mrf_pasv_forget(struct mrf_pasv *pasv)
{
	uint8_t out[MRF_PROTO_NOTE_LEN];
	struct mrf_sge sge = { .addr = (uintptr_t)out };
	struct mrf_vwr wr = { .wr_id = MRF_WR_ID(pasv->owner.id, FORGET_SLOT),
			      .op = MRF_VWR_SEND,
			      .is_inline = true,
			      .nsge = 1,
			      .sge = &sge };

	pasv->forget_again = pasv->forgetting;
	if (pasv->forgetting)
		return;
	sge.len = (uint32_t)mrf_note_encode(MRF_MSG_FORGET, out);
	/* Without it the peer finds out when the kernel refuses: slower, not wrong. */
	pasv->forgetting = !mrf_vconn_post(pasv->vconn, &wr);
}

static void forget_sent(struct mrf_pasv *pasv)
{
	pasv->forgetting = false;
	if (pasv->forget_again)
		mrf_pasv_forget(pasv);
}

static void take_imm(struct mrf_pasv *pasv, const struct mrf_wc *wc)
{
	if (!wants_events(pasv->ep))
		deliver(pasv, wc->byte_len, wc->imm);
	else if (wc->byte_len) /* no bytes, nothing that was modified */
		mrf_mr_event(&pasv->ep->domain->space, wc->imm, &pasv->ep->port);
}

void mrf_pasv_message(struct mrf_pasv *pasv, unsigned slot, const struct mrf_wc *wc)
{
	int ret = 0;

	/* A broken connection is its initiator's business: it disconnects, and comes again. */
	if (wc->status != MRF_WC_OK)
		return;
	if (slot == FORGET_SLOT)
		forget_sent(pasv);
	if (wc->kind == MRF_WC_SENT || slot >= NSLOTS)
		return;
	if (wc->kind == MRF_WC_RECV_IMM)
		take_imm(pasv, wc);
	else
		ret = take_message(pasv, pasv->slots[slot], wc->byte_len);
	if (mrf_unlikely(!mrf_list_empty(&pasv->doomed)))
		return;
	if (mrf_unlikely(ret == -FI_EACCES)) {
		mrf_agent_suspect(pasv->ep->agent);
		doom(pasv);
	} else if (post_slot(pasv, slot) || ret) {
		mrf_warn(FI_LOG_EP_CTRL, 4024, "malformed question of %u bytes (%d): disconnecting",
			 wc->byte_len, ret);
		doom(pasv);
	}
}
