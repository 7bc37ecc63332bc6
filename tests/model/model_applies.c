/* SPDX-License-Identifier: BSD-2-Clause */
/* Does a step have something to work on? */
#include "model_int.h"

/* Keys come again in the end; and a shared one may be somebody else's by now. */
#define STALE 60 /* steps */

static bool key_applies(const struct actor *a, const struct step *step)
{
	const struct region *r = &a->regions[step->slot];
	uint64_t key = key_of(&a->world->conf, r);
	const struct region *other;

	if (r->state == NONE || key == FI_KEY_NOTAVAIL)
		return false;
	other = find_key((struct actor *)a, key);
	/* One that fails may lose a shared key to anybody. */
	if (other)
		return shared_key(key) < 0 || other->state != FAILED;
	return shared_key(key) < 0 && (is_open(r) || a->clock - r->closed < STALE);
}

static bool access_applies(const struct actor *a, const struct step *step)
{
	const struct mapping *m = &a->mappings[step->slot % MAPPINGS];
	const struct region *r = &a->regions[m->slot];

	if (!a->ep_open[step->ep])
		return false;
	if (step->way == BY_KEY)
		return key_applies(a, step);
	return (m->mapped || m->was) &&
	       (r->serial != m->serial || is_open(r) || a->clock - r->closed < STALE);
}

/* Where an element is in two segments, it is not one. */
static bool in_one_piece(const struct actor *a, const struct step *step)
{
	const struct region *r = region_of((struct actor *)a, step);
	const struct conf *conf = &a->world->conf;
	long first = place_of(conf, r, step->off[0], 0);

	for (uint32_t i = 0; i < step->len[0]; i++) {
		long place = place_of(conf, r, step->off[0], i);

		if (place >= 0 && place != first + (long)i)
			return false;
	}
	return true;
}

bool step_applies(const struct actor *a, const struct step *step)
{
	const struct region *r = &a->regions[step->slot % REGIONS];
	const struct mapping *m = &a->mappings[step->slot % MAPPINGS];

	switch (step->kind) {
	case REG:
		return !is_open(r);
	case BIND:
		return is_open(r) && a->ep_open[step->ep];
	case BIND_CNTR:
		return is_open(r) && a->cntr_open[step->ep];
	case COUNT:
		return a->cntr_open[step->ep];
	case AWAIT:
		return is_open(r) && r->unread;
	case CLOSE:
	case ENABLE:
	case REFRESH:
	case SHOW:
	case RAW:
		return is_open(r);
	case MAP:
		return !a->mappings[step->ep].mapped && r->raw.serial;
	case UNMAP:
		return step->fault == BAD_KEY || m->mapped || m->was;
	case WRITE:
	case COMMIT:
	case READ:
		return access_applies(a, step);
	case ATOMIC:
	case CHANGE:
	case INJECT:
	case COMPARE:
		return access_applies(a, step) && in_one_piece(a, step);
	case PUT:
	case GET:
		return r->state != NONE && is_there(&a->world->conf, step->off[0], step->len[0]);
	case SEND:
	case RECEIVE:
	case PEEK:
	case CLAIM:
	case CANCEL:
	case COLLECT:
		return message_applies(a, step);
	default:
		return true;
	}
}
