/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between the endpoints of a thread and its peer. */
#include <string.h>
#include <rdma/fi_tagged.h>
#include "exec_int.h"

/* --- calls, here or at the peer ------------------------------------------------------- */

static void call(struct actor *a, unsigned ep, const struct mail_ask *ask,
		 struct mail_answer *answer)
{
	struct side *side = a->world->side;
	struct peer_ask peer_ask = { .what = PEER_MAIL };
	struct peer_answer peer_answer;

	if (ep != MATE) {
		mail_do(&a->limb->mail, endpoint_of(a, ep),
			ep < SHARED_EPS ? side->cq : a->limb->hand.cq, ask, answer);
		return;
	}
	peer_ask.mail = *ask;
	peer_call(a, &peer_ask, &peer_answer);
	*answer = peer_answer.mail;
}

/* Whom the call is about; its own side knows it by that. */
static void name(const struct actor *a, unsigned other, struct mail_ask *ask)
{
	const struct endpoint *ep;

	if (other == ANYBODY) {
		ask->addr = FI_ADDR_UNSPEC;
	} else if (other == MATE) {
		ask->addr = a->limb->mate.addr;
		memcpy(ask->name, a->limb->mate.name, sizeof(ask->name));
	} else {
		ep = endpoint_of(a, other);
		ask->addr = ep->addr;
		memcpy(ask->name, ep->name, sizeof(ask->name));
	}
}

static unsigned receive_op(unsigned ep, unsigned slot)
{
	return ep == MATE ? slot : (ep - SHARED_EPS) * RECEIVES + slot;
}

/* Whose message is to have come tells as who it comes only if the receiver knows it. */
static void meet(struct actor *a, unsigned from, unsigned to)
{
	struct mail_ask ask = { .what = MAIL_MEET };
	struct mail_answer answer;

	if (to != MATE || a->limb->mate.met >> from & 1)
		return;
	name(a, from, &ask);
	call(a, MATE, &ask, &answer);
	a->limb->mate.met |= 1u << from;
}

/* --- what has ended ------------------------------------------------------------------- */

static void wrong(const char *what, uint64_t is, uint64_t wanted)
{
	model_fail(MAIL_WRONG, "completion of a message: %s is 0x%llx instead of 0x%llx", what,
		   (unsigned long long)is, (unsigned long long)wanted);
}

static void check(const char *what, uint64_t is, uint64_t wanted)
{
	if (is != wanted)
		wrong(what, is, wanted);
}

/* What any completion says of a message that has come. */
static void check_message(const struct actor *a, const struct mail_answer *is,
			  const struct message *m)
{
	check("tag", is->tag, m->tag);
	check("CQ data", is->data, cq_data_of(m));
	/* Its address is not known any more if it has been closed. */
	if (!is->err && a->mailboxes[m->from].opened == m->opened)
		check("source", is->source,
		      a->world->conf.source ? is->expected : FI_ADDR_NOTAVAIL);
}

static uint64_t flags_of(const struct message *m)
{
	return (m->tagged ? FI_TAGGED : FI_MSG) | FI_RECV | (m->has_data ? FI_REMOTE_CQ_DATA : 0);
}

static void end(struct actor *a, unsigned ep, unsigned slot, unsigned from, struct mail_answer *is)
{
	struct mail_ask ask = { .what = MAIL_END, .op = receive_op(ep, slot) };

	name(a, from, &ask);
	call(a, ep, &ask, is);
}

static void check_received(const struct actor *a, const struct receive *r,
			   const struct mail_answer *is)
{
	const struct message *m = &r->message;
	uint32_t fits = m->len < r->len ? m->len : r->len;

	check("err", (uint64_t)is->err, fits < m->len ? FI_ETRUNC : 0);
	check("len", is->len, fits);
	check("olen", is->olen, m->len - fits);
	check("flags", is->flags, flags_of(m) | (r->claims ? FI_CLAIM : 0));
	check_message(a, is, m);
	check("sum of the bytes", is->sum, mail_sum(m->seed, fits));
	check("byte behind the message", is->overrun, false);
}

static void receive_end(struct actor *a, unsigned ep, unsigned slot)
{
	struct receive *r = &a->mailboxes[ep].receives[slot];
	struct mail_answer answer;

	end(a, ep, slot, r->message.from, &answer);
	check_received(a, r, &answer);
	r->state = IDLE;
}

static void send_end(struct actor *a, unsigned ep, unsigned i)
{
	struct pending_send *send = &a->limb->sends[ep == MATE][i];
	struct mail_ask ask = { .what = MAIL_END, .op = MAIL_SENDS + i };
	struct mail_answer answer;

	call(a, ep, &ask, &answer);
	check("err of a send", (uint64_t)answer.err, 0);
	check("flags of a send", answer.flags, (send->tagged ? FI_TAGGED : FI_MSG) | FI_SEND);
	send->busy = false;
}

/* All that the endpoint has sent has arrived: also what is injected, of which a counter tells. */
static void sends_end(struct actor *a, unsigned ep)
{
	struct mail_ask ask = { .what = MAIL_COUNT, .seed = a->mailboxes[ep].sent };
	struct mail_answer answer;

	for (unsigned i = 0; i < SENDS; i++) {
		struct pending_send *send = &a->limb->sends[ep == MATE][i];

		if (send->busy && send->from == ep)
			send_end(a, ep, i);
	}
	if (ep < SHARED_EPS)
		return;
	call(a, ep, &ask, &answer);
	if (answer.count != ask.seed)
		model_fail(MAIL_WRONG, "%llu sends are counted instead of %llu",
			   (unsigned long long)answer.count, (unsigned long long)ask.seed);
}

/* A message too many would have come to a receive that waits. */
static void look(struct actor *a, unsigned ep)
{
	struct mail_ask ask = { .what = MAIL_LOOK, .op = receive_op(ep, 0) };
	struct mail_answer answer;

	for (unsigned i = 0; i < RECEIVES; i++)
		ask.seed |= (uint64_t)(a->mailboxes[ep].receives[i].state == POSTED) << i;
	call(a, ep, &ask, &answer);
	if (answer.ended)
		model_fail(MAIL_WRONG, "a receive has ended that no message matches");
}

/* Everything that was sent to the endpoint has arrived, and what has ended is as it has to be. */
static void settle(struct actor *a, unsigned ep)
{
	struct mailbox *box = &a->mailboxes[ep];

	if (box->sender != ANYBODY)
		sends_end(a, box->sender);
	box->sender = ANYBODY;
	for (unsigned i = 0; i < RECEIVES; i++) {
		if (box->receives[i].state == TAKES)
			receive_end(a, ep, i);
	}
	look(a, ep);
}

void messages_settle(struct actor *a, unsigned ep)
{
	if (!a->world->conf.messages)
		return;
	settle(a, ep);
	sends_end(a, ep);
	for (unsigned i = SHARED_EPS; i < SENDERS; i++) {
		if (a->mailboxes[i].sender == ep)
			settle(a, i);
	}
}

/* --- steps ---------------------------------------------------------------------------- */

/* One that can be used; all of them may be pending. */
static unsigned send_slot(struct actor *a, unsigned ep)
{
	struct pending_send *sends = a->limb->sends[ep == MATE];
	unsigned i = 0;

	while (i < SENDS && sends[i].busy)
		i++;
	if (i < SENDS)
		return i;
	for (i = 0; i < SENDS; i++)
		send_end(a, sends[i].from, i);
	return 0;
}

static int send_one(struct actor *a, const struct step *step, unsigned i)
{
	unsigned slot = send_slot(a, step->ep);
	const struct message m = { .has_data = has_cq_data(step), .seed = step->seed + i };
	struct mail_ask ask = { .what = MAIL_SEND,
				.op = MAIL_SENDS + slot,
				.len = step->len[0],
				.form = step->call,
				.fault = step->fault,
				.tagged = step->tagged,
				.tag = step->tag,
				.data = cq_data_of(&m),
				.seed = m.seed };
	struct mail_answer answer;

	name(a, step->peer, &ask);
	call(a, step->ep, &ask, &answer);
	if (!answer.rc && step->call < INJECTED)
		a->limb->sends[step->ep == MATE][slot] = (struct pending_send){
			.busy = true, .tagged = step->tagged, .from = step->ep
		};
	return answer.rc;
}

static void run_send(struct actor *a, const struct step *step)
{
	const struct mailbox *box = &a->mailboxes[step->peer];
	struct want want = { 0 };

	want_send(a, step, &want);
	if (box->sender != ANYBODY && box->sender != step->ep)
		settle(a, step->peer);
	meet(a, step->ep, step->peer);
	for (unsigned i = 0; i < step->n; i++) {
		int rc = send_one(a, step, i);

		check_answer(step, &want, rc, "");
		if (!rc)
			did_send(a, step, i);
	}
}

static struct mail_ask ask_of(const struct actor *a, const struct step *step, unsigned slot)
{
	struct mail_ask ask = { .op = receive_op(step->ep, slot),
				.len = step->len[0],
				.form = step->call,
				.fault = step->fault,
				.tagged = step->tagged,
				.tag = step->tag,
				.ignore = step->ignore,
				.seed = step->seed };

	name(a, step->peer, &ask);
	return ask;
}

static void run_receive(struct actor *a, const struct step *step)
{
	struct mailbox *box = &a->mailboxes[step->ep];
	struct want want = { 0 };

	want_receive(a, step, &want);
	if (receives_count(box, IDLE) < step->n)
		settle(a, step->ep);
	for (unsigned i = 0; i < step->n; i++) {
		unsigned slot = (unsigned)receive_find(box, IDLE);
		struct mail_ask ask = ask_of(a, step, slot);
		struct mail_answer answer;

		ask.what = MAIL_RECEIVE;
		call(a, step->ep, &ask, &answer);
		check_answer(step, &want, answer.rc, "");
		if (!answer.rc)
			did_receive(a, step, slot);
	}
}

static void check_peeked(const struct actor *a, const struct step *step, const struct message *m,
			 const struct mail_answer *is)
{
	check("len", is->len, m->len);
	check("flags", is->flags, flags_of(m) | FI_PEEK | (step->call == SET_ASIDE ? FI_CLAIM : 0));
	check_message(a, is, m);
}

static void run_peek(struct actor *a, const struct step *step)
{
	struct want want = { 0 };
	struct message m = { .from = ANYBODY };
	struct mail_answer answer;
	struct mail_ask ask;
	unsigned slot;
	bool found;

	settle(a, step->ep);
	slot = (unsigned)receive_find(&a->mailboxes[step->ep], IDLE);
	ask = ask_of(a, step, slot);
	ask.what = MAIL_PEEK;
	call(a, step->ep, &ask, &answer);
	must(answer.rc);
	found = did_peek(a, step, slot, &m);
	end(a, step->ep, slot, m.from, &answer);
	want_add(&want, found ? 0 : -FI_ENOMSG);
	check_answer(step, &want, -answer.err, "");
	if (found)
		check_peeked(a, step, &m, &answer);
}

static void run_claim(struct actor *a, const struct step *step)
{
	struct receive *r = &a->mailboxes[step->ep].receives[step->slot];
	struct mail_ask ask = ask_of(a, step, step->slot);
	struct want want = { 0 };
	struct mail_answer answer;

	want_claim(a, step, &want);
	ask.what = MAIL_CLAIM;
	call(a, step->ep, &ask, &answer);
	check_answer(step, &want, answer.rc, "");
	if (answer.rc)
		return;
	did_claim(a, step);
	if (step->call != DROP)
		return;
	end(a, step->ep, step->slot, r->message.from, &answer);
	check("err", (uint64_t)answer.err, 0);
	check_message(a, &answer, &r->message);
}

static void run_cancel(struct actor *a, const struct step *step)
{
	struct receive *r = &a->mailboxes[step->ep].receives[step->slot];
	struct mail_ask ask = { .what = MAIL_CANCEL, .op = receive_op(step->ep, step->slot) };
	struct want want = { 0 };
	struct mail_answer answer;

	settle(a, step->ep);
	want_cancel(a, step, &want);
	call(a, step->ep, &ask, &answer);
	check_answer(step, &want, answer.rc, "");
	if (answer.rc)
		return;
	end(a, step->ep, step->slot, ANYBODY, &answer);
	check("err", (uint64_t)answer.err, FI_ECANCELED);
	r->state = IDLE;
}

static void run_collect(struct actor *a, const struct step *step)
{
	settle(a, step->ep);
	model_count(COLLECT, 0);
}

void run_message(struct actor *a, const struct step *step)
{
	static void (*const runs[KINDS])(struct actor * a, const struct step *step) = {
		[SEND] = run_send,   [RECEIVE] = run_receive, [PEEK] = run_peek,
		[CLAIM] = run_claim, [CANCEL] = run_cancel,   [COLLECT] = run_collect,
	};

	runs[step->kind](a, step);
}

/* --- the first and the last ----------------------------------------------------------- */

void messages_open(struct actor *a)
{
	struct peer_ask ask = { .what = PEER_MAIL, .mail = { .what = MAIL_HELLO } };
	struct limb *limb = a->limb;
	struct peer_answer answer;

	mail_open(&limb->mail, a->world->side, limb->hand.cq);
	if (!a->world->conf.messages)
		return;
	peer_call(a, &ask, &answer);
	memcpy(limb->mate.name, answer.name, sizeof(limb->mate.name));
	must_be(fi_av_insert(a->world->side->av, answer.name, 1, &limb->mate.addr, 0, NULL), 1);
	limb->mate.met = 1u << MATE;
}

void messages_forget(struct actor *a, unsigned ep)
{
	a->limb->mate.met &= ~(1u << ep);
}

/* Each that waits is received, in the order of arrival. */
static void empty_box(struct actor *a, unsigned ep)
{
	struct step step = { .kind = RECEIVE,
			     .thread = (uint8_t)a->number,
			     .ep = (uint8_t)ep,
			     .peer = ANYBODY,
			     .n = 1,
			     .ignore = UINT64_MAX };
	struct mailbox *box = &a->mailboxes[ep];

	step.len[0] = MESSAGE_MAX;
	while (box->nwaiting) {
		step.tagged = box->waiting[0].tagged;
		run_receive(a, &step);
		settle(a, ep);
	}
	/* Is there another one? */
	for (unsigned i = 0; i < 2; i++) {
		step.tagged = i;
		run_receive(a, &step);
	}
	settle(a, ep);
}

static void cancel_all(struct actor *a, unsigned ep)
{
	struct step step = { .kind = CANCEL, .ep = (uint8_t)ep };

	for (unsigned i = 0; i < RECEIVES; i++) {
		step.slot = (uint8_t)i;
		if (a->mailboxes[ep].receives[i].state == POSTED)
			run_cancel(a, &step);
	}
}

static void claim_all(struct actor *a, unsigned ep)
{
	struct step step = { .kind = CLAIM, .ep = (uint8_t)ep, .call = LOOK, .tagged = true };

	step.len[0] = MESSAGE_MAX;
	step.peer = ANYBODY;
	for (unsigned i = 0; i < RECEIVES; i++) {
		step.slot = (uint8_t)i;
		if (a->mailboxes[ep].receives[i].state == HOLDS)
			run_claim(a, &step);
	}
	settle(a, ep);
}

void messages_finish(struct actor *a)
{
	for (unsigned ep = SHARED_EPS; ep < SENDERS && a->world->conf.messages; ep++) {
		if (!can_receive(a, ep))
			continue;
		settle(a, ep);
		cancel_all(a, ep);
		claim_all(a, ep);
		empty_box(a, ep);
		cancel_all(a, ep);
	}
}
