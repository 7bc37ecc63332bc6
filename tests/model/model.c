/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the model answers: for each call the error numbers that may come back (want_*),
 * and what a success changes (did_*) in regions, keys, bindings, refreshed bytes,
 * counters and memory.
 *
 * A world's domain has one random mode and API version, with or without FI_RMA_EVENT, an
 * event queue for registrations (FI_REG_MR) and an authorization key. In one of four the
 * memory is a device's: nothing of it is pinned, so there is nothing to refresh, and it is
 * used with descriptors only. Of the keys that all threads ask for: a thread that got one must
 * have been alone with it, and a thread that was told that it is taken must have had a
 * rival. Worlds with messages (model_msg.c) register nothing asynchronously, and have
 * FI_DIRECTED_RECV or not, and FI_SOURCE or not.
 */
#include <stdio.h>
#include <string.h>
#include <rdma/fabric.h>
#include "model_int.h"

/* --- small things ------------------------------------------------------------------ */

uint64_t dice(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint8_t byte_of(uint64_t seed, uint32_t i)
{
	return (uint8_t)(seed + i * 7 + i / 251 + (seed >> 8) * i);
}

void want_add(struct want *want, int rc)
{
	if (!wanted(want, rc) && want->n < sizeof(want->rc) / sizeof(want->rc[0]))
		want->rc[want->n++] = rc;
}

bool wanted(const struct want *want, int rc)
{
	for (unsigned i = 0; i < want->n; i++) {
		if (want->rc[i] == rc)
			return true;
	}
	return false;
}

/* What is right when nothing was found to be wrong. */
void want_done(struct want *want)
{
	if (!want->n)
		want_add(want, 0);
}

int shared_key(uint64_t key)
{
	return key >= SHARED_KEY && key < SHARED_KEY + SHARED_KEYS ? (int)(key - SHARED_KEY) : -1;
}

bool is_there(const struct conf *conf, uint32_t off, uint32_t len)
{
	return !len || conf->device || off + len <= HOLE * PAGE || off >= (HOLE + 1) * PAGE;
}

unsigned group_of(const struct conf *conf, unsigned auth)
{
	return auth ? auth : conf->auth;
}

bool is_kept(const struct conf *conf, uint32_t off, uint32_t len)
{
	return !len || (conf->files && off >= KEPT * PAGE);
}

/* --- regions ----------------------------------------------------------------------- */

bool is_open(const struct region *r)
{
	return r->state == DISABLED || r->state == ENABLED || r->state == FAILED;
}

/* What it is called by peers, as far as anybody can know. */
uint64_t key_of(const struct conf *conf, const struct region *r)
{
	return conf->mode & FI_MR_PROV_KEY ? r->told : r->key;
}

struct region *find_key(struct actor *a, uint64_t key)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		struct region *r = &a->regions[i];

		if (is_open(r) && !has_failed(r) && r->keyed && key_of(&a->world->conf, r) == key)
			return r;
	}
	return NULL;
}

bool is_write(const struct step *step)
{
	return step->kind == WRITE || step->kind == COMMIT;
}

bool is_access(const struct step *step)
{
	return is_write(step) || step->kind == READ || is_atomic(step);
}

struct region *region_of(struct actor *a, const struct step *step)
{
	const struct mapping *m = &a->mappings[step->slot % MAPPINGS];
	struct region *r = &a->regions[step->slot % REGIONS], *other;

	if (!is_access(step))
		return r;
	if (step->way == BY_MAPPING)
		return &a->regions[m->slot];
	other = find_key(a, key_of(&a->world->conf, r));
	return other ? other : r;
}

/* Of packed offset off: where it is in the thread's memory. Past the end: behind it. */
uint32_t unpack(const struct region *r, uint32_t off)
{
	unsigned i = 0;

	while (i + 1 < r->n && off >= r->len[i])
		off -= r->len[i++];
	return r->n ? r->off[i] + off : off;
}

bool in_some(const struct region *r, uint32_t place, bool or_end)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (place >= r->off[i] && place < r->off[i] + r->len[i] + or_end)
			return true;
	}
	return false;
}

long place_of(const struct conf *conf, const struct region *r, uint32_t off, uint32_t i)
{
	uint32_t place;

	if (!(conf->mode & FI_MR_VIRT_ADDR))
		return off + i < r->total ? (long)unpack(r, off + i) : -1;
	place = unpack(r, off) + i;
	return in_some(r, place, false) ? (long)place : -1;
}

uint64_t address_of(const struct conf *conf, const struct region *r, uint32_t off, const void *base)
{
	return conf->mode & FI_MR_VIRT_ADDR ? (uintptr_t)base + unpack(r, off) : off;
}

/* --- registering ------------------------------------------------------------------- */

/* Without what only other threads know: shared keys; and of doomed regions. */
static void want_key(const struct actor *a, const struct step *step, struct want *want)
{
	if (a->world->conf.mode & FI_MR_PROV_KEY || !(step->access & REMOTE))
		return;
	if (step->fault == BAD_KEY)
		want_add(want, -FI_EKEYREJECTED);
	else if (shared_key(step->key) < 0 && find_key((struct actor *)a, step->key) &&
		 find_key((struct actor *)a, step->key)->state != FAILED)
		want_add(want, -FI_ENOKEY);
}

unsigned call_of(const struct step *step)
{
	if (step->auth)
		return 2;
	return !step->call && (step->fault == NO_IOV || step->fault == BAD_COUNT) ? 1 : step->call;
}

/* Only fi_mr_regattr says what memory it is. */
static void want_device(const struct actor *a, const struct step *step, uint32_t total,
			struct want *want)
{
	if (a->world->conf.device && call_of(step) != 2 && (total || step->fault == OTHER_HMEM))
		want_add(want, -FI_EINVAL);
}

static void want_memory(const struct actor *a, const struct step *step, struct want *want)
{
	uint32_t total = 0;

	for (unsigned i = 0; i < step->n; i++) {
		total += step->len[i];
		if (step->fault == OTHER_PMEM && a->world->conf.mode & FI_MR_ALLOCATED &&
		    !is_kept(&a->world->conf, step->off[i], step->len[i]))
			want_add(want, -FI_EINVAL);
		if (!is_there(&a->world->conf, step->off[i], step->len[i]) &&
		    a->world->conf.mode & FI_MR_ALLOCATED && !a->world->conf.async)
			want_add(want, -FI_EFAULT);
	}
	if (!total && FI_VERSION_GE(a->world->conf.api, FI_VERSION(1, 13)))
		want_add(want, -FI_EINVAL);
	want_device(a, step, total, want);
}

void want_reg(const struct actor *a, const struct step *step, struct want *want)
{
	switch (step->fault) {
	case OTHER_HMEM:
		if (a->world->conf.device)
			break;
		/* fallthrough */
	case BAD_FLAG:
		want_add(want, -FI_EBADFLAGS);
		break;
	case NO_IOV:
	case BAD_COUNT:
	case BAD_ACCESS:
	case BAD_OFFSET:
	case BAD_WRAP:
		want_add(want, -FI_EINVAL);
		break;
	default:
		break;
	}
	want_key(a, step, want);
	want_memory(a, step, want);
	want_done(want);
	if (step->access & REMOTE && shared_key(step->key) < 0 &&
	    find_doomed((struct actor *)a, step->key))
		want_add(want, -FI_ENOKEY);
}

unsigned emptied(const struct actor *a, const struct step *step)
{
	unsigned pages = step->empty & ~(1u << HOLE);

	if (a->world->conf.device)
		return 0;
	/* What is of a file stays in memory without a process that has it. */
	if (a->world->conf.files)
		pages &= (1u << KEPT) - 1;
	for (unsigned i = 0; i < REGIONS; i++) {
		const struct region *r = &a->regions[i];

		for (unsigned j = 0; j < r->n && is_open(r); j++) {
			for (uint32_t at = 0; at < r->len[j]; at++)
				pages &= ~(1u << (r->off[j] + at) / PAGE);
		}
	}
	return pages;
}

static void refresh_there(const struct conf *conf, struct region *r, uint32_t off, uint32_t len,
			  unsigned empty)
{
	for (uint32_t at = off; at < off + len; at++)
		r->refreshed[at] |= is_there(conf, at, 1) && !(empty >> at / PAGE & 1);
}

void did_reg(struct actor *a, const struct step *step)
{
	uint64_t mode = a->world->conf.mode;
	struct region *r = &a->regions[step->slot];
	struct region *doomed = find_doomed(a, step->key);
	struct raw raw = r->raw;
	unsigned empty = emptied(a, step);

	if (doomed && step->access & REMOTE)
		did_register(doomed);
	memset(r, 0, sizeof(*r));
	r->raw = raw; /* of the one before: stale */
	r->serial = ++a->serials;
	r->access = step->access;
	r->key = step->fault == BAD_KEY ? FI_KEY_NOTAVAIL : step->key;
	r->keyed = step->access & REMOTE;
	r->group = group_of(&a->world->conf, step->auth);
	r->pmem = step->fault == OTHER_PMEM;
	r->demand = !(mode & FI_MR_ALLOCATED) || mode & FI_MR_MMU_NOTIFY;
	r->state = ENABLED;
	if (mode & FI_MR_ENDPOINT || (mode & FI_MR_RMA_EVENT && step->fault == OTHER_EVENT))
		r->state = DISABLED;
	if (is_doomed(a, step))
		r->state = FAILED;
	r->pending = r->unread = a->world->conf.async;
	r->told = FI_KEY_NOTAVAIL;
	r->event =
		step->access & FI_REMOTE_WRITE &&
		(step->fault == OTHER_EVENT || (a->world->conf.event && !(mode & FI_MR_RMA_EVENT)));
	for (unsigned i = 0; i < step->n; i++) {
		if (!step->len[i])
			continue;
		r->off[r->n] = step->off[i];
		r->len[r->n++] = step->len[i];
		r->total += step->len[i];
	}
	/* Memory that is there needs no refresh before it changes, which it never does. */
	for (unsigned i = 0; i < r->n; i++)
		refresh_there(&a->world->conf, r, r->off[i], r->len[i], empty);
	r->staged = a->world->conf.device && r->n;
	/* One without bytes is where its first segment is. */
	if (!r->n) {
		r->off[0] = step->off[0];
		r->n = 1;
	}
}

/* --- binding, enabling, closing ---------------------------------------------------- */

void want_bind(const struct actor *a, const struct step *step, struct want *want)
{
	const struct region *r = &a->regions[step->slot];

	if (step->fault == NO_IOV) {
		want_add(want, -FI_EINVAL);
	} else if (step->fault == BAD_KEY || !(a->world->conf.mode & FI_MR_ENDPOINT)) {
		want_add(want, -FI_ENOSYS);
	} else {
		if (step->fault == BAD_FLAG)
			want_add(want, -FI_EBADFLAGS);
		if (r->state == ENABLED || has_failed(r))
			want_add(want, -FI_EOPBADSTATE);
		if (r->bound >> step->ep & 1)
			want_add(want, -FI_EINVAL);
		if (r->group != a->ep_group[step->ep])
			want_add(want, -FI_EINVAL);
	}
	want_done(want);
	if (a->world->conf.mode & FI_MR_ENDPOINT && r->state == FAILED)
		want_state(r, want);
}

void did_bind(struct actor *a, const struct step *step)
{
	a->regions[step->slot].bound |= 1u << step->ep;
}

void want_enable(const struct actor *a, const struct step *step, struct want *want)
{
	const struct region *r = &a->regions[step->slot];

	if (r->state == DISABLED && a->world->conf.mode & FI_MR_ENDPOINT && !r->bound)
		want_add(want, -FI_EINVAL);
	if (r->state != FAILED)
		want_done(want);
	want_state(r, want);
}

void did_enable(struct actor *a, const struct step *step)
{
	a->regions[step->slot].state = ENABLED;
	did_register(&a->regions[step->slot]);
}

void want_close(const struct actor *a, const struct step *step, struct want *want)
{
	const struct region *r = &a->regions[step->slot];

	if ((r->bound || r->counters) && !FI_VERSION_GE(a->world->conf.api, FI_VERSION(2, 3)))
		want_add(want, -FI_EBUSY);
	want_done(want);
}

void did_close(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];

	r->state = CLOSED;
	r->bound = r->counters = 0;
	r->pending = r->unread = false;
	r->closed = a->clock;
	r->mr = NULL;
}

void want_ep(const struct actor *a, const struct step *step, struct want *want)
{
	unsigned bound = 0;

	for (unsigned i = 0; i < REGIONS && a->ep_open[step->ep]; i++)
		bound |= a->regions[i].bound >> step->ep & 1;
	if (bound && FI_VERSION_GE(a->world->conf.api, FI_VERSION(2, 3)))
		want_add(want, -FI_EBUSY);
	want_done(want);
}

void did_ep(struct actor *a, const struct step *step)
{
	a->ep_open[step->ep] = !a->ep_open[step->ep];
	a->ep_group[step->ep] = (uint8_t)group_of(&a->world->conf, step->auth);
	did_open(&a->mailboxes[step->ep]);
	if (a->ep_open[step->ep])
		return;
	for (unsigned i = 0; i < REGIONS; i++)
		a->regions[i].bound &= ~(1u << step->ep);
}

/* --- refreshing -------------------------------------------------------------------- */

bool range_inside(const struct region *r, uint32_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (!in_some(r, off + i, false))
			return false;
	}
	return true;
}

void want_refresh(const struct actor *a, const struct step *step, struct want *want)
{
	const struct region *r = &a->regions[step->slot];

	if (!r->demand && !r->staged)
		want_add(want, -FI_ENOSYS);
	if (step->fault == BAD_FLAG)
		want_add(want, -FI_EBADFLAGS);
	if (step->fault == NO_IOV || step->fault == BAD_COUNT || step->fault == BAD_WRAP)
		want_add(want, -FI_EINVAL);
	if (r->state == DISABLED)
		want_add(want, -FI_EOPBADSTATE);
	for (unsigned i = 0; i < step->n; i++) {
		if (!range_inside(r, step->off[i], step->len[i]))
			want_add(want, -FI_EINVAL);
	}
	if (r->state != FAILED)
		want_done(want);
	want_state(r, want);
}

void did_refresh(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];

	did_register(r);
	for (unsigned i = 0; i < step->n; i++)
		memset(r->refreshed + step->off[i], 1, step->len[i]);
	for (unsigned i = 0; i < r->n && !step->n; i++)
		memset(r->refreshed + r->off[i], 1, r->len[i]);
}

/* --- raw keys ---------------------------------------------------------------------- */

void want_raw(const struct actor *a, const struct step *step, struct want *want)
{
	if (step->fault == BAD_FLAG)
		want_add(want, -FI_EBADFLAGS);
	if (a->regions[step->slot].state != ENABLED)
		want_add(want, -FI_EOPBADSTATE);
	else if (step->fault == NO_ROOM)
		want_add(want, -FI_ETOOSMALL);
	want_done(want);
	want_state(&a->regions[step->slot], want);
}

void want_map(const struct actor *a, const struct step *step, struct want *want)
{
	(void)a;
	if (step->fault == BAD_FLAG)
		want_add(want, -FI_EBADFLAGS);
	if (step->fault == BAD_BASE || step->fault == BAD_KEY)
		want_add(want, -FI_EINVAL);
	if (step->fault == BAD_KEY)
		want_add(want, -FI_ENOSYS); /* of another version, it seems */
	want_done(want);
}

void want_unmap(const struct actor *a, const struct step *step, struct want *want)
{
	if (step->fault == BAD_KEY || !a->mappings[step->slot].mapped)
		want_add(want, -FI_ENOKEY);
	want_done(want);
}
