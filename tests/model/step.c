/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making steps. They register in all three ways, with any authorization key, some of it
 * memory of a file with FI_RMA_PMEM or, where it has to be told, pages that have no
 * memory just then; wait for events of registrations; bind endpoints and counters,
 * enable, refresh, take and map raw keys, close; have peers with the same or another
 * authorization key read, write, commit and operate atomically; access with descriptors;
 * open and close what regions are bound to. Each sometimes has a wrong argument. Memory of
 * a device is most often registered as such.
 */
#include <string.h>
#include "model_int.h"
#include "step.h"

/* --- making ------------------------------------------------------------------------ */

static const uint8_t weights[KINDS] = {
	[REG] = 22,  [CLOSE] = 10, [BIND] = 16,	 [ENABLE] = 12, [REFRESH] = 12,	  [SHOW] = 1,
	[RAW] = 14,  [MAP] = 14,   [UNMAP] = 5,	 [WRITE] = 26,	[COMMIT] = 6,	  [READ] = 22,
	[PUT] = 5,   [ATOMIC] = 8, [GET] = 5,	 [EP] = 3,	[BIND_CNTR] = 10, [CNTR] = 3,
	[COUNT] = 4, [DOMAIN] = 1, [AWAIT] = 16, [CHANGE] = 4,	[INJECT] = 4,	  [COMPARE] = 6
};

static uint8_t kind_make(struct actor *a)
{
	uint32_t sum = 0, at;
	unsigned kind;

	for (kind = 0; kind < KINDS; kind++)
		sum += weights[kind];
	at = below(a, sum);
	for (kind = 0; at >= weights[kind]; kind++)
		at -= weights[kind];
	return (uint8_t)kind;
}

/* Bytes of the thread's memory; the hole is met now and then. */
static void range_make(struct actor *a, uint32_t *off, uint32_t *len)
{
	static const uint32_t sizes[] = { 1, 64, 600, PAGE, PAGE, 3 * PAGE, 4 * PAGE };
	uint32_t size = sizes[below(a, sizeof(sizes) / sizeof(sizes[0]))];

	*len = one_in(a, 30) ? 0 : 1 + below(a, size);
	*off = below(a, MEM - *len + 1);
	if (one_in(a, 3))
		*off -= *off % PAGE;
	if (!is_there(&a->world->conf, *off, *len) && !one_in(a, 4)) {
		*off = one_in(a, 2) ? 0 : (HOLE + 1) * PAGE;
		*off += below(a, HOLE * PAGE - *len + 1);
	}
}

static uint64_t access_make(struct actor *a)
{
	static const uint64_t some[] = { REMOTE,
					 REMOTE,
					 REMOTE,
					 FI_REMOTE_READ,
					 FI_REMOTE_WRITE,
					 FI_READ | FI_WRITE,
					 REMOTE | FI_READ | FI_WRITE };
	uint64_t access = some[below(a, sizeof(some) / sizeof(some[0]))];

	if (one_in(a, 8))
		access |= FI_SEND | FI_RECV;
	if (one_in(a, 20))
		access |= FI_RMA | FI_MSG;
	return one_in(a, 60) ? 0 : access;
}

static uint64_t key_make(struct actor *a)
{
	if (one_in(a, 5))
		return SHARED_KEY + below(a, SHARED_KEYS);
	if (one_in(a, 6))
		return 0xfeedull << 48 | (uint64_t)a->number << 32 | below(a, 2);
	return a->number * 64 + below(a, PRIVATE_KEYS);
}

static uint8_t auth_make(struct actor *a, unsigned seldom)
{
	return (uint8_t)(one_in(a, seldom) ? 1 + below(a, AUTH_KEYS) : 0);
}

/* Most often of the file. */
static void pmem_make(struct actor *a, struct step *step)
{
	const uint32_t room = (PAGES - KEPT) * PAGE;

	step->fault = OTHER_PMEM;
	for (unsigned i = 0; i < step->n && !one_in(a, 5); i++) {
		if (step->len[i] > room)
			step->len[i] = room;
		step->off[i] = KEPT * PAGE + below(a, room - step->len[i] + 1);
	}
}

/* Where that makes a difference: some of its pages, or all. */
static void empty_make(struct actor *a, struct step *step)
{
	uint64_t mode = a->world->conf.mode;

	if (!(mode & FI_MR_MMU_NOTIFY) || mode & FI_MR_ALLOCATED || one_in(a, 3))
		return;
	step->empty = (uint16_t)(one_in(a, 4) ? (1u << PAGES) - 1 : below(a, 1u << PAGES));
}

static void reg_make(struct actor *a, struct step *step)
{
	static const uint8_t faults[] = { BAD_FLAG,   NO_IOV,	BAD_COUNT, BAD_ACCESS,
					  BAD_OFFSET, BAD_WRAP, BAD_KEY,   OTHER_HMEM };

	step->call = (uint8_t)(a->world->conf.device && !one_in(a, 10) ? 2 : below(a, 3));
	step->n = (uint8_t)(step->call && one_in(a, 2) ? 1 + below(a, SEGS) : 1);
	for (unsigned i = 0; i < step->n; i++)
		range_make(a, &step->off[i], &step->len[i]);
	step->access = access_make(a);
	if (one_in(a, 7))
		pmem_make(a, step);
	step->key = key_make(a);
	step->auth = auth_make(a, 6);
	empty_make(a, step);
	if (step->fault)
		return;
	if (one_in(a, 10))
		step->fault = faults[below(a, sizeof(faults))];
	else if (one_in(a, a->world->conf.mode & FI_MR_RMA_EVENT ? 2 : 6))
		step->fault = OTHER_EVENT;
}

static void bind_make(struct actor *a, struct step *step)
{
	static const uint8_t faults[] = { BAD_FLAG, NO_IOV, BAD_KEY };

	if (one_in(a, 15))
		step->fault = faults[below(a, sizeof(faults))];
	/* What is bound to an endpoint that stays open, may stay for good. */
	if (!one_in(a, 4))
		step->ep = (uint8_t)(SHARED_EPS + step->ep % (EPS - SHARED_EPS));
}

/* Often all, else pieces of the region, now and then beside it. */
static void refresh_make(struct actor *a, struct step *step)
{
	static const uint8_t faults[] = { BAD_FLAG, NO_IOV, BAD_COUNT, BAD_WRAP };
	const struct region *r = &a->regions[step->slot];

	if (one_in(a, 12))
		step->fault = faults[below(a, sizeof(faults))];
	if (step->fault || one_in(a, 2))
		return;
	step->n = (uint8_t)(1 + below(a, SEGS));
	for (unsigned i = 0; i < step->n; i++) {
		unsigned seg = r->n ? below(a, r->n) : 0;

		if (!r->len[seg] || one_in(a, 10)) {
			range_make(a, &step->off[i], &step->len[i]);
			continue;
		}
		step->off[i] = r->off[seg] + below(a, r->len[seg]);
		step->len[i] = below(a, r->off[seg] + r->len[seg] - step->off[i] + 1);
	}
}

static void map_make(struct actor *a, struct step *step)
{
	static const uint8_t faults[] = { BAD_FLAG, BAD_KEY, BAD_BASE };

	step->ep = (uint8_t)below(a, MAPPINGS);
	if (one_in(a, 8))
		step->fault = faults[below(a, sizeof(faults))];
	step->seed = dice(&a->dice);
}

static void bytes_make(struct actor *a, uint32_t total, struct step *step)
{
	uint32_t *off = &step->off[0], *len = &step->len[0];

	*off = total ? below(a, total) : 0;
	*len = total - *off;
	if (*len > MAX_ACCESS)
		*len = MAX_ACCESS;
	if (*len > 1 && one_in(a, 2))
		*len = 1 + below(a, *len < 200 ? *len : 200);
	else if (*len)
		*len = 1 + below(a, *len);
	if (one_in(a, 12))
		*len = 0;
	if (one_in(a, 15))
		*off = total - below(a, total < 10 ? total + 1 : 10);
	if (one_in(a, 20))
		*off += 1 + below(a, PAGE);
}

static void access_step_make(struct actor *a, struct step *step)
{
	step->way = one_in(a, a->world->conf.mode & FI_MR_RAW ? 8 : 2) ? BY_KEY : BY_MAPPING;
	if (step->way == BY_MAPPING)
		step->slot %= MAPPINGS;
	step->seed = dice(&a->dice);
	step->overlap = one_in(a, 5);
	bytes_make(a, region_of(a, step)->total, step);
}

static void atomic_make(struct actor *a, struct step *step)
{
	static const uint8_t types[] = { FI_UINT64, FI_INT64, FI_UINT64, FI_INT64,
					 FI_UINT32, FI_INT32, FI_UINT16, FI_INT16,
					 FI_UINT8,  FI_INT8,  FI_FLOAT,	 FI_DOUBLE };

	access_step_make(a, step);
	step->overlap = 0;
	step->type = types[below(a, sizeof(types))];
	do
		step->op = (uint8_t)below(a, FI_MSWAP + 1);
	while (!atomic_exists(step->kind, step->type, step->op));
	/* What the device does itself comes more often. */
	if (one_in(a, 4) && step->kind != INJECT)
		step->op = step->kind == COMPARE ? FI_CSWAP : FI_SUM;
	step->n = (uint8_t)(1 + below(a, 4));
	step->len[0] = step->n * atomic_size(step->type);
	/* Mostly where the device can do it. */
	if (!one_in(a, 3))
		step->off[0] -= step->off[0] % 8;
}

/* A buffer that is most often inside the region. */
static void local_make(struct actor *a, struct step *step)
{
	const struct region *r = &a->regions[step->slot];
	unsigned seg = r->n ? below(a, r->n) : 0;
	uint32_t *len = &step->len[0];

	step->seed = dice(&a->dice);
	if (one_in(a, 12))
		step->fault = one_in(a, 2) ? BAD_KEY : NO_IOV;
	if (!r->len[seg] || one_in(a, 10)) {
		range_make(a, &step->off[0], len);
	} else {
		step->off[0] = r->off[seg] + below(a, r->len[seg]);
		*len = below(a, r->off[seg] + r->len[seg] - step->off[0] + 1);
	}
	if (*len > MAX_ACCESS)
		*len = MAX_ACCESS;
	if (one_in(a, 12) && step->off[0] + *len < MEM && *len < MAX_ACCESS)
		++*len;
}

/* One that finds something to work on, if there is such a one. */
static void slot_choose(struct actor *a, struct step *step)
{
	unsigned modulus = step->kind == UNMAP ? MAPPINGS : REGIONS;
	bool of_cntrs = step->kind == BIND_CNTR || step->kind == CNTR || step->kind == COUNT;

	for (int i = 0; i < 6; i++) {
		step->slot = (uint8_t)below(a, modulus);
		step->ep = (uint8_t)below(a, of_cntrs ? CNTRS : EPS);
		if (step_applies(a, step))
			return;
	}
}

/* A peer most often has the key that the endpoint wants. */
static void peer_choose(struct actor *a, struct step *step)
{
	unsigned group = a->ep_group[step->ep];

	step->auth = auth_make(a, 4);
	if (group_of(&a->world->conf, step->auth) != group && !one_in(a, 8))
		step->auth = (uint8_t)(group == a->world->conf.auth ? 0 : group);
}

/* Regions are bound where they have to be, so that some come to be used. */
static void ep_choose(struct actor *a, struct step *step)
{
	const struct region *r = region_of(a, step);

	for (int i = 0; i < 4 && a->ep_group[step->ep] != r->group; i++)
		step->ep = (uint8_t)below(a, EPS);
	if (!one_in(a, 8) && r->bound) {
		while (!(r->bound >> step->ep & 1))
			step->ep = (uint8_t)((step->ep + 1) % EPS);
	}
	peer_choose(a, step);
}

static void args_make(struct actor *a, struct step *step)
{
	switch (step->kind) {
	case REG:
		reg_make(a, step);
		break;
	case BIND:
		bind_make(a, step);
		break;
	case REFRESH:
		refresh_make(a, step);
		break;
	case RAW:
		step->fault = one_in(a, 10) ? BAD_FLAG : one_in(a, 6) ? NO_ROOM : RIGHT;
		break;
	case MAP:
		map_make(a, step);
		break;
	case UNMAP:
		step->fault = one_in(a, 8) ? BAD_KEY : RIGHT;
		break;
	case WRITE:
	case COMMIT:
	case READ:
		access_step_make(a, step);
		ep_choose(a, step);
		break;
	case ATOMIC:
	case CHANGE:
	case INJECT:
	case COMPARE:
		atomic_make(a, step);
		ep_choose(a, step);
		break;
	case PUT:
	case GET:
		local_make(a, step);
		break;
	case BIND_CNTR:
		step->fault = one_in(a, 10) ? BAD_FLAG : RIGHT;
		if (step->ep < SHARED_CNTRS && !one_in(a, 4))
			step->ep = (uint8_t)(SHARED_CNTRS + below(a, CNTRS - SHARED_CNTRS));
		break;
	case CNTR:
	case COUNT:
		step->ep = (uint8_t)(SHARED_CNTRS + below(a, CNTRS - SHARED_CNTRS));
		break;
	case EP:
		step->ep = (uint8_t)(SHARED_EPS + below(a, EPS - SHARED_EPS));
		step->auth = auth_make(a, 3);
		break;
	default:
		break;
	}
}

/* Calls of a mode come more often in it. */
static bool is_dull(struct actor *a, const struct step *step)
{
	uint64_t mode = a->world->conf.mode;

	if (step->kind == AWAIT)
		return !a->world->conf.async;
	if (step->kind == BIND && !(mode & FI_MR_ENDPOINT))
		return !one_in(a, 10);
	if ((step->kind == RAW || step->kind == MAP) && !(mode & FI_MR_RAW))
		return !one_in(a, 3);
	if (step->kind == EP && !(mode & FI_MR_ENDPOINT))
		return !a->world->conf.messages && !one_in(a, 4);
	if (step->kind == ENABLE && !(mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT)))
		return !one_in(a, 8);
	if (step->kind == REFRESH && mode & FI_MR_ALLOCATED && !(mode & FI_MR_MMU_NOTIFY))
		return !one_in(a, 8);
	return false;
}

static void try_make(struct actor *a, struct step *step)
{
	memset(step, 0, sizeof(*step));
	step->thread = (uint8_t)a->number;
	if (a->world->conf.messages && below(a, 3)) {
		message_make(a, step);
		return;
	}
	do
		step->kind = kind_make(a);
	while (is_dull(a, step));
	slot_choose(a, step);
	args_make(a, step);
}

/* Most accesses should be good ones, and most regions such that there can be some. */
static bool is_vain(struct actor *a, const struct step *step)
{
	struct want want = { 0 };

	if (!step_applies(a, step))
		return true;
	if (!is_access(step))
		return false;
	want_access(a, step, &want);
	return !wanted(&want, 0) && !one_in(a, 5);
}

void step_make(struct actor *a, struct step *step)
{
	int tries = 0;

	do
		try_make(a, step);
	while (is_vain(a, step) && ++tries < 20);
}
