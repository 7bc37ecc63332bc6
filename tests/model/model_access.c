/* SPDX-License-Identifier: BSD-2-Clause */
/* What is to come of accesses. */
#include "model_int.h"

/* --- accesses ---------------------------------------------------------------------- */

/* What is wrong with the bytes themselves. */
static void want_bytes(const struct actor *a, const struct region *r, const struct step *step,
		       struct want *want)
{
	const struct conf *conf = &a->world->conf;
	uint32_t off = step->off[0], len = step->len[0];

	if (!len) {
		bool inside = conf->mode & FI_MR_VIRT_ADDR ? in_some(r, unpack(r, off), true)
							   : off <= r->total;

		if (!inside)
			want_add(want, -FI_EACCES);
		return;
	}
	for (uint32_t i = 0; i < len; i++) {
		long place = place_of(conf, r, off, i);

		if (place < 0 || (conf->mode & FI_MR_MMU_NOTIFY && !r->refreshed[place]))
			want_add(want, -FI_EACCES);
		if (place >= 0 && r->demand && !is_there(conf, (uint32_t)place, 1))
			want_add(want, -FI_EFAULT);
	}
}

/* Nothing is written where it could not be made persistent. */
static void want_kept(const struct actor *a, const struct region *r, const struct step *step,
		      struct want *want)
{
	const struct conf *conf = &a->world->conf;

	if (!r->pmem)
		want_add(want, -FI_EOPNOTSUPP);
	for (uint32_t i = 0; i < step->len[0] && r->pmem; i++) {
		long place = place_of(conf, r, step->off[0], i);

		if (place >= 0 && !is_kept(conf, (uint32_t)place, 1))
			want_add(want, -FI_EFAULT);
	}
}

static void want_region(const struct actor *a, const struct region *r, const struct step *step,
			struct want *want)
{
	const struct conf *conf = &a->world->conf;
	uint64_t right = step->kind == READ ? FI_REMOTE_READ : FI_REMOTE_WRITE;

	if (r->state != ENABLED || !(r->access & right))
		want_add(want, -FI_EACCES);
	if (conf->mode & FI_MR_ENDPOINT && !(r->bound >> step->ep & 1))
		want_add(want, -FI_EACCES);
	want_bytes(a, r, step, want);
	if (step->kind == COMMIT && step->len[0])
		want_kept(a, r, step, want);
	want_done(want);
}

static void want_by_key(const struct actor *a, const struct step *step, struct want *want)
{
	const struct region *r = region_of((struct actor *)a, step);

	if (a->world->conf.mode & FI_MR_RAW || !is_open(r) || has_failed(r) || !r->keyed ||
	    r->group != group_of(&a->world->conf, step->auth))
		want_add(want, -FI_EKEYREJECTED);
	else
		want_region(a, r, step, want);
	if (is_open(r) && r->pending)
		want_add(want, -FI_EACCES);
	if (is_open(r) && r->state == FAILED)
		want_add(want, -FI_EKEYREJECTED);
}

static void want_by_mapping(const struct actor *a, const struct step *step, struct want *want)
{
	const struct mapping *m = &a->mappings[step->slot];
	const struct region *r = &a->regions[m->slot];

	bool lost = !is_open(r) || r->serial != m->serial || !r->keyed ||
		    r->group != group_of(&a->world->conf, step->auth);

	if (!m->mapped || lost)
		want_add(want, -FI_EKEYREJECTED);
	/* A raw key tells what it grants without a question. */
	if (m->mapped && lost)
		want_add(want, -FI_EACCES);
	if (!want->n)
		want_region(a, r, step, want);
}

unsigned pieces_of(const struct step *step)
{
	bool plain = step->kind == READ || is_write(step);

	return plain && step->len[0] > 1 && step->seed % 4 == 0 ? 2 : 1;
}

void want_access(const struct actor *a, const struct step *step, struct want *want)
{
	/* Who has another authorization key learns nothing, not even of its own key. */
	if (group_of(&a->world->conf, step->auth) != a->ep_group[step->ep]) {
		want_add(want, -FI_EACCES);
		if (step->way == BY_MAPPING && !a->mappings[step->slot].mapped)
			want_add(want, -FI_EKEYREJECTED);
	} else if (step->way == BY_MAPPING) {
		want_by_mapping(a, step, want);
	} else {
		want_by_key(a, step, want);
	}
}

void want_local(const struct actor *a, const struct step *step, struct want *want)
{
	const struct region *r = &a->regions[step->slot];
	uint64_t right = step->kind == GET ? FI_READ : FI_WRITE;

	if ((a->world->conf.mode & FI_MR_LOCAL || a->world->conf.device) && step->len[0]) {
		if (r->state != ENABLED || !r->desc || step->fault)
			want_add(want, -FI_EINVAL);
		else if (!(r->access & right))
			want_add(want, -FI_EACCES);
		if (!range_inside(r, step->off[0], step->len[0]))
			want_add(want, -FI_EINVAL);
	}
	want_done(want);
}
