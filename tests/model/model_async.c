/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous registration: the call checks its arguments and takes the key, an event
 * tells whether there is a region. Until then it is pending: it may be bound and closed.
 *
 * A pending region may be found as it is or as it will be; as soon as anything has shown
 * that it is done, only as it is. An event must come once, in the order of a thread's
 * calls, and never for a region that is closed.
 */
#include "model_int.h"

/* What the call does not look at. */
bool is_doomed(const struct actor *a, const struct step *step)
{
	const struct conf *conf = &a->world->conf;

	for (unsigned i = 0; i < step->n; i++) {
		if (!is_there(conf, step->off[i], step->len[i]))
			return conf->async && conf->mode & FI_MR_ALLOCATED;
	}
	return false;
}

bool has_failed(const struct region *r)
{
	return r->state == FAILED && !r->pending;
}

void want_state(const struct region *r, struct want *want)
{
	if (r->pending || r->state == FAILED)
		want_add(want, -FI_EOPBADSTATE);
}

/* One that has failed gave back its key. */
struct region *find_doomed(struct actor *a, uint64_t key)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		struct region *r = &a->regions[i];

		if (r->state == FAILED && r->pending && r->keyed &&
		    key_of(&a->world->conf, r) == key)
			return r;
	}
	return NULL;
}

void want_await(const struct actor *a, const struct step *step, struct want *want)
{
	if (a->regions[step->slot].state == FAILED)
		want_add(want, -FI_EFAULT);
	want_done(want);
}

void did_register(struct region *r)
{
	r->pending = false;
}
