/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of regions. */
#include "model_int.h"

struct tally *tally_of(struct actor *a, unsigned cntr)
{
	return cntr < SHARED_CNTRS ? &a->world->tallies[cntr] : &a->tallies[cntr - SHARED_CNTRS];
}

/* Only what starts disabled has to be configured before it is enabled. */
static bool too_late(const struct conf *conf, const struct region *r)
{
	return r->state == ENABLED && conf->mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT);
}

void want_bind_cntr(const struct actor *a, const struct step *step, struct want *want)
{
	const struct region *r = &a->regions[step->slot];
	const struct conf *conf = &a->world->conf;

	if (step->fault == BAD_FLAG)
		want_add(want, -FI_EBADFLAGS);
	if (r->access & FI_REMOTE_WRITE && !r->event)
		want_add(want, conf->mode & FI_MR_RMA_EVENT ? -FI_EINVAL : -FI_ENOSYS);
	/* Endpoints have the domain's capabilities here. */
	if (r->access & FI_REMOTE_WRITE && r->event && !conf->event)
		want_add(want, -FI_EBADFLAGS);
	if (r->access & FI_REMOTE_WRITE && too_late(conf, r))
		want_add(want, -FI_EOPBADSTATE);
	if (r->counters >> step->ep & 1)
		want_add(want, -FI_EINVAL);
	if (has_failed(r))
		want_add(want, -FI_EOPBADSTATE);
	want_done(want);
	if (r->state == FAILED)
		want_state(r, want);
}

void did_bind_cntr(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];

	/* Nothing is counted where peers cannot write. */
	if (!(r->access & FI_REMOTE_WRITE))
		return;
	r->counters |= 1u << step->ep;
	atomic_fetch_add(&tally_of(a, step->ep)->most, r->loose);
}

void want_cntr(const struct actor *a, const struct step *step, struct want *want)
{
	unsigned bound = 0;

	for (unsigned i = 0; i < REGIONS && a->cntr_open[step->ep]; i++)
		bound |= a->regions[i].counters >> step->ep & 1;
	if (bound && FI_VERSION_GE(a->world->conf.api, FI_VERSION(2, 3)))
		want_add(want, -FI_EBUSY);
	want_done(want);
}

void did_cntr(struct actor *a, const struct step *step)
{
	struct tally *tally = tally_of(a, step->ep);

	a->cntr_open[step->ep] = !a->cntr_open[step->ep];
	atomic_store(&tally->least, 0);
	atomic_store(&tally->most, 0);
	for (unsigned i = 0; i < REGIONS; i++)
		a->regions[i].counters &= ~(1u << step->ep);
}

void did_write(struct actor *a, struct region *r, unsigned counters, const struct step *step,
	       bool sure)
{
	if (!step->len[0] || !r->event || !a->world->conf.event)
		return;
	r->loose++;
	for (unsigned i = 0; i < CNTRS; i++) {
		if (!(counters >> i & 1))
			continue;
		atomic_fetch_add(&tally_of(a, i)->most, 1);
		if (sure)
			atomic_fetch_add(&tally_of(a, i)->least, 1);
	}
}
