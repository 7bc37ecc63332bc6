/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages: which receive takes which, and what the calls answer. */
#include <string.h>
#include "model_int.h"

bool is_message(const struct step *step)
{
	return step->kind >= SEND;
}

bool is_injected(const struct step *step)
{
	return step->call == STRUCTURE || step->call >= INJECTED;
}

bool has_cq_data(const struct step *step)
{
	return step->call == STRUCTURE || step->call == WITH_DATA ||
	       step->call == INJECTED_WITH_DATA;
}

uint64_t cq_data_of(const struct message *message)
{
	return message->has_data ? message->seed >> 17 & UINT32_MAX : 0;
}

/* --- when there is something to do -------------------------------------------------- */

bool can_send(const struct actor *a, unsigned ep)
{
	return ep >= EPS || a->ep_open[ep];
}

bool can_receive(const struct actor *a, unsigned ep)
{
	return ep >= SHARED_EPS && can_send(a, ep);
}

/* Endpoints with different authorization keys do not come together. */
static unsigned group_of_ep(const struct actor *a, unsigned ep)
{
	return ep < EPS ? a->ep_group[ep] : group_of(&a->world->conf, 0);
}

int receive_find(const struct mailbox *box, enum receive_state state)
{
	for (unsigned i = 0; i < RECEIVES; i++) {
		if (box->receives[i].state == state)
			return (int)i;
	}
	return -1;
}

unsigned receives_count(const struct mailbox *box, enum receive_state state)
{
	unsigned n = 0;

	for (unsigned i = 0; i < RECEIVES; i++)
		n += box->receives[i].state == state;
	return n;
}

static bool send_applies(const struct actor *a, const struct step *step)
{
	return can_send(a, step->ep) && can_receive(a, step->peer) &&
	       group_of_ep(a, step->ep) == group_of_ep(a, step->peer) &&
	       a->mailboxes[step->peer].nwaiting + step->n <= WAITING;
}

bool message_applies(const struct actor *a, const struct step *step)
{
	const struct mailbox *box = &a->mailboxes[step->ep];

	if (!a->world->conf.messages)
		return false;
	if (step->kind == SEND)
		return send_applies(a, step);
	if (!can_receive(a, step->ep))
		return false;
	if (step->kind == CLAIM)
		return box->receives[step->slot].state == HOLDS ||
		       box->receives[step->slot].state == IDLE;
	if (step->kind != RECEIVE && step->kind != PEEK)
		return true;
	return (step->peer == ANYBODY || can_send(a, step->peer)) &&
	       receives_count(box, IDLE) + receives_count(box, TAKES) >= step->n;
}

/* --- what is to be answered --------------------------------------------------------- */

/* With FI_HMEM, a descriptor may be that of device memory, and so each is looked at. */
static void want_desc(const struct actor *a, const struct step *step, bool injected,
		      struct want *want)
{
	const struct conf *conf = &a->world->conf;
	bool device = step->ep == MATE ? conf->far : conf->device;
	bool needed = conf->mode & FI_MR_LOCAL && !injected;

	if (!step->len[0])
		return;
	if (step->fault == NO_DESC && needed)
		want_add(want, -FI_EINVAL);
	if (!needed && !device)
		return;
	if (step->fault == BAD_DESC)
		want_add(want, -FI_EINVAL);
	if (step->fault == NO_RIGHT)
		want_add(want, -FI_EACCES);
}

void want_send(const struct actor *a, const struct step *step, struct want *want)
{
	bool injected = is_injected(step);

	if (step->len[0] > (injected ? INJECTED_MAX : MESSAGE_LIMIT))
		want_add(want, -FI_EMSGSIZE);
	if (step->fault == NO_PEER)
		want_add(want, -FI_EADDRNOTAVAIL);
	/* The other calls have no descriptor. */
	if (step->call < INJECTED)
		want_desc(a, step, injected, want);
	want_done(want);
}

void want_receive(const struct actor *a, const struct step *step, struct want *want)
{
	if (step->fault == NO_PEER && a->world->conf.directed)
		want_add(want, -FI_EADDRNOTAVAIL);
	want_desc(a, step, false, want);
	want_done(want);
}

void want_claim(const struct actor *a, const struct step *step, struct want *want)
{
	const struct receive *r = &a->mailboxes[step->ep].receives[step->slot];

	if (r->state != HOLDS)
		want_add(want, -FI_EINVAL);
	if (step->call != DROP)
		want_desc(a, step, false, want);
	want_done(want);
}

void want_cancel(const struct actor *a, const struct step *step, struct want *want)
{
	const struct receive *r = &a->mailboxes[step->ep].receives[step->slot];

	if (r->state != POSTED)
		want_add(want, -FI_ENOENT);
	want_done(want);
}

/* --- matching ------------------------------------------------------------------------ */

static bool matches(const struct actor *a, const struct receive *r, const struct message *m)
{
	if (r->tagged != m->tagged || (m->tagged && (r->tag ^ m->tag) & ~r->ignore))
		return false;
	return !a->world->conf.directed || r->from == ANYBODY ||
	       (r->from == m->from && r->opened == m->opened);
}

static void arrive(const struct actor *a, struct mailbox *box, const struct message *m)
{
	struct receive *oldest = NULL;

	for (unsigned i = 0; i < RECEIVES; i++) {
		struct receive *r = &box->receives[i];

		if (r->state == POSTED && matches(a, r, m) && (!oldest || r->order < oldest->order))
			oldest = r;
	}
	if (!oldest) {
		box->waiting[box->nwaiting++] = *m;
		return;
	}
	oldest->state = TAKES;
	oldest->message = *m;
}

/* The oldest that waits and matches is taken out. */
static bool take(const struct actor *a, struct mailbox *box, const struct receive *r, bool out,
		 struct message *m)
{
	for (unsigned i = 0; i < box->nwaiting; i++) {
		if (!matches(a, r, &box->waiting[i]))
			continue;
		*m = box->waiting[i];
		if (out)
			memmove(box->waiting + i, box->waiting + i + 1,
				(--box->nwaiting - i) * sizeof(*m));
		return true;
	}
	return false;
}

static struct receive receive_of(const struct actor *a, const struct step *step)
{
	unsigned opened = step->peer == ANYBODY ? 0 : a->mailboxes[step->peer].opened;

	return (struct receive){ .tagged = step->tagged,
				 .from = step->peer,
				 .opened = opened,
				 .len = step->len[0],
				 .tag = step->tag,
				 .ignore = step->ignore };
}

void did_send(struct actor *a, const struct step *step, unsigned i)
{
	struct mailbox *box = &a->mailboxes[step->peer];
	const struct message m = { .tagged = step->tagged,
				   .has_data = has_cq_data(step),
				   .from = step->ep,
				   .opened = a->mailboxes[step->ep].opened,
				   .len = step->len[0],
				   .tag = step->tagged ? step->tag : 0,
				   .seed = step->seed + i };

	a->mailboxes[step->ep].sent++;
	box->sender = step->ep;
	arrive(a, box, &m);
}

void did_receive(struct actor *a, const struct step *step, unsigned slot)
{
	struct mailbox *box = &a->mailboxes[step->ep];
	struct receive *r = &box->receives[slot];

	*r = receive_of(a, step);
	r->order = ++box->order;
	r->state = take(a, box, r, true, &r->message) ? TAKES : POSTED;
}

bool did_peek(struct actor *a, const struct step *step, unsigned slot, struct message *message)
{
	struct mailbox *box = &a->mailboxes[step->ep];
	const struct receive like = receive_of(a, step);

	if (!take(a, box, &like, step->call != LOOK, message))
		return false;
	if (step->call != SET_ASIDE)
		return true;
	box->receives[slot] = like;
	box->receives[slot].state = HOLDS;
	box->receives[slot].message = *message;
	return true;
}

void did_claim(struct actor *a, const struct step *step)
{
	struct receive *r = &a->mailboxes[step->ep].receives[step->slot];

	r->state = step->call == DROP ? IDLE : TAKES;
	r->claims = true;
	r->len = step->len[0];
}

void did_open(struct mailbox *box)
{
	unsigned opened = box->opened + 1;

	memset(box, 0, sizeof(*box));
	box->opened = opened;
	box->sender = ANYBODY;
}
