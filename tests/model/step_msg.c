/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making steps of messages: of a few tags, some of which differ in their high bits only, most of
 * them between the two endpoints that a thread and its peer always have.
 */
#include "model_int.h"
#include "step.h"

static uint8_t ep_make(struct actor *a)
{
	return (uint8_t)(one_in(a, 2) ? below(a, EPS) : HAND + below(a, 2));
}

static uint64_t tag_make(struct actor *a)
{
	uint64_t tag = below(a, 3);

	if (one_in(a, 4))
		tag |= 1ull << 40;
	if (one_in(a, 10))
		tag |= 1ull << 63;
	return tag;
}

static uint64_t ignore_make(struct actor *a)
{
	static const uint64_t some[] = { 0, 0, 1, 3, 1ull << 40, ~0ull << 32, ~0ull, ~0ull };

	return some[below(a, sizeof(some) / sizeof(some[0]))];
}

static uint32_t length_make(struct actor *a)
{
	static const uint32_t most[] = { 8, 64, INJECTED_MAX, 600, 4200, MESSAGE_MAX };
	uint32_t max = most[below(a, sizeof(most) / sizeof(most[0]))];

	if (one_in(a, 10))
		return 0;
	if (one_in(a, 6))
		max = max == MESSAGE_MAX && below(a, 2) ? MESSAGE_LIMIT + 1 : max + below(a, 2);
	else
		max = below(a, max + 1);
	return max > MESSAGE_MAX ? MESSAGE_LIMIT + 1 : max;
}

static uint8_t count_make(struct actor *a)
{
	return (uint8_t)(one_in(a, 8) ? 1 + below(a, BURST) : 1 + below(a, 2));
}

static void fault_make(struct actor *a, struct step *step)
{
	if (!one_in(a, 12))
		return;
	step->fault = (uint8_t)(NO_DESC + below(a, 4));
	step->n = 1;
}

static void send_make(struct actor *a, struct step *step)
{
	step->peer = ep_make(a);
	step->call = (uint8_t)below(a, FORMS);
	step->n = count_make(a);
	step->len[0] = length_make(a);
	if (is_injected(step) && !one_in(a, 12))
		step->len[0] %= INJECTED_MAX + 1;
	/* No counter says when what several threads inject has arrived. */
	if (step->ep < SHARED_EPS && step->call >= INJECTED)
		step->call = STRUCTURE;
	fault_make(a, step);
}

static void receive_make(struct actor *a, struct step *step)
{
	step->peer = one_in(a, 3) ? ep_make(a) : ANYBODY;
	step->call = (uint8_t)below(a, STRUCTURE + 1);
	step->n = count_make(a);
	step->len[0] = one_in(a, 2) ? MESSAGE_MAX : length_make(a);
	if (step->len[0] > MESSAGE_MAX)
		step->len[0] = MESSAGE_MAX;
	step->ignore = ignore_make(a);
	fault_make(a, step);
}

static void peek_make(struct actor *a, struct step *step)
{
	step->tagged = true;
	step->peer = one_in(a, 4) ? ep_make(a) : ANYBODY;
	step->call = (uint8_t)below(a, DROP + 1);
	step->n = 1;
	step->ignore = ignore_make(a);
}

/* Most often of one that holds a message. */
static void claim_make(struct actor *a, struct step *step)
{
	int slot = receive_find(&a->mailboxes[step->ep], HOLDS);

	step->tagged = true;
	step->peer = ANYBODY;
	step->slot = (uint8_t)(slot >= 0 && !one_in(a, 8) ? (unsigned)slot : below(a, RECEIVES));
	step->call = (uint8_t)(one_in(a, 3) ? DROP : LOOK);
	step->len[0] = one_in(a, 4) ? below(a, 200) : MESSAGE_MAX;
}

static void cancel_make(struct actor *a, struct step *step)
{
	int slot = receive_find(&a->mailboxes[step->ep], POSTED);

	step->slot = (uint8_t)(slot >= 0 && !one_in(a, 8) ? (unsigned)slot : below(a, RECEIVES));
}

static uint8_t kind_make(struct actor *a)
{
	static const uint8_t kinds[] = { SEND,	  SEND,	   SEND,    SEND,    RECEIVE, RECEIVE,
					 RECEIVE, RECEIVE, SEND,    SEND,    SEND,    SEND,
					 RECEIVE, RECEIVE, RECEIVE, RECEIVE, PEEK,    PEEK,
					 PEEK,	  CLAIM,   CLAIM,   CANCEL,  CANCEL,  COLLECT };

	return kinds[below(a, sizeof(kinds))];
}

void message_make(struct actor *a, struct step *step)
{
	step->kind = kind_make(a);
	step->seed = dice(&a->dice);
	step->ep = ep_make(a);
	step->tagged = one_in(a, 2);
	step->tag = tag_make(a);
	switch (step->kind) {
	case SEND:
		send_make(a, step);
		break;
	case RECEIVE:
		receive_make(a, step);
		break;
	case PEEK:
		peek_make(a, step);
		break;
	case CLAIM:
		claim_make(a, step);
		break;
	case CANCEL:
		cancel_make(a, step);
		break;
	default:
		break;
	}
}
