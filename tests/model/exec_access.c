/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that reach regions, and regions used to reach peers. */
#include <stdio.h>
#include <string.h>
#include "exec_int.h"

/* --- accesses ----------------------------------------------------------------------- */

/* What was written, in the order of the bytes: a region may have some twice. */
static void wrote(struct actor *a, const struct step *step)
{
	const struct region *r = a->limb->flight_region;

	for (uint32_t i = 0; i < step->len[0]; i++) {
		long place = place_of(&a->world->conf, r, step->off[0], i);

		if (place >= 0)
			a->shadow[place] = byte_of(step->seed, i);
	}
}

/* Of a write that was cut off, any byte may have come. */
static void wrote_maybe(struct actor *a, const struct step *step)
{
	const struct region *r = a->limb->flight_region;
	const struct conf *conf = &a->world->conf;
	const uint8_t *mem = memory_bytes(a);

	for (uint32_t i = 0; i < step->len[0]; i++) {
		long place = place_of(conf, r, step->off[0], i);

		if (place >= 0 && is_there(conf, (uint32_t)place, 1) &&
		    mem[place] == byte_of(step->seed, i))
			a->shadow[place] = mem[place];
	}
}

static void check_read(struct actor *a, const struct step *step, const struct peer_answer *answer)
{
	const struct region *r = a->limb->flight_region;

	for (uint32_t i = 0; i < step->len[0]; i++) {
		long place = place_of(&a->world->conf, r, step->off[0], i);

		if (place >= 0 && answer->bytes[i] != a->shadow[place])
			model_fail("bytes read", "byte %u of a read is 0x%02x instead of 0x%02x", i,
				   answer->bytes[i], a->shadow[place]);
	}
}

/*
 * The comparands: half of them what is there, so that the comparison holds now and then.
 */
static void comparands(const struct actor *a, const struct step *step, uint8_t *to)
{
	const struct region *r = region_of((struct actor *)a, step);

	for (uint32_t i = 0; i < step->len[0]; i++) {
		long place = place_of(&a->world->conf, r, step->off[0], i);

		to[i] = place >= 0 && step->seed % 2 ? a->shadow[place]
						     : byte_of(step->seed + 5, i);
	}
}

/* True: something else is there now, for sure. */
static bool atomic_change(struct actor *a, const struct step *step, uint8_t *at)
{
	const uint8_t *mem = memory_bytes(a);
	unsigned size = atomic_size(step->type);
	uint8_t operand[8], compare[SEGS * 8];
	bool changed = false;

	comparands(a, step, compare);
	for (unsigned i = 0; i < step->n; i++) {
		uint8_t *element = at + i * size;
		const uint8_t *there = mem + (element - a->shadow);

		for (unsigned j = 0; j < size; j++)
			operand[j] = byte_of(step->seed, i * size + j);
		changed |= atomic_do(step->op, step->type, element, operand, compare + i * size);
		if (atomic_is_nan(step->type, element) && atomic_is_nan(step->type, there))
			memcpy(element, there, size);
	}
	return changed;
}

/* The memory becomes what the operation makes of it; it brought what was there. */
static void atomic_done(struct actor *a, const struct step *step, const struct peer_answer *answer)
{
	const struct region *r = a->limb->flight_region;
	uint8_t *at = a->shadow + place_of(&a->world->conf, r, step->off[0], 0);
	bool changed;

	if ((step->kind == ATOMIC || step->kind == COMPARE) &&
	    memcmp(answer->bytes, at, step->len[0]))
		model_fail("fetched", "an atomic operation did not bring what was there");
	changed = atomic_change(a, step, at);
	if (step->op != FI_ATOMIC_READ)
		did_write(a, a->limb->flight_region, a->limb->flight_counters, step, changed);
}

static void ask_atomic(const struct actor *a, const struct step *step, struct peer_ask *ask)
{
	static const uint8_t whats[KINDS] = { [ATOMIC] = PEER_FETCH,
					      [CHANGE] = PEER_ATOMIC,
					      [INJECT] = PEER_INJECT,
					      [COMPARE] = PEER_COMPARE };

	ask->what = whats[step->kind];
	ask->op = step->op;
	ask->type = step->type;
	ask->count = step->n;
	comparands(a, step, ask->raw);
}

static void access_start(struct actor *a, const struct step *step)
{
	const struct region *r = region_of(a, step);
	struct peer_ask ask = { .what = step->kind == READ ? PEER_READ : PEER_WRITE,
				.len = step->len[0],
				.auth = step->auth,
				.pieces = pieces_of(step),
				.flags = step->kind == COMMIT ? FI_COMMIT_COMPLETE : 0,
				.seed = step->seed };

	if (is_atomic(step))
		ask_atomic(a, step, &ask);
	ask.addr = address_of(&a->world->conf, r, step->off[0], a->limb->mem);
	if (step->way == BY_MAPPING)
		ask.key = a->mappings[step->slot].key;
	else if (a->world->conf.mode & FI_MR_PROV_KEY)
		ask.key = a->regions[step->slot].told;
	else
		ask.key = a->regions[step->slot].key;
	memcpy(ask.name, endpoint_of(a, step->ep)->name, sizeof(ask.name));
	a->world->side->backend->start(a->limb->peer, &ask);
}

static void access_end(struct actor *a, const struct step *step, const struct want *want, bool cut)
{
	struct peer_answer answer;

	a->world->side->backend->end(a->limb->peer, &answer);
	if (answer.rc)
		model_fail("posting", "the peer could not start an access: %d", answer.rc);
	check_answer(step, want, -answer.err, answer.text);
	cut |= pieces_of(step) > 1 && a->limb->flight_region->staged;
	if (step->kind == READ && !answer.err)
		check_read(a, step, &answer);
	else if (is_write(step) && !answer.err)
		wrote(a, step);
	else if (is_atomic(step) && !answer.err)
		atomic_done(a, step, &answer);
	else if (is_write(step) && cut)
		wrote_maybe(a, step);
	if (is_write(step) && (!answer.err || cut))
		did_write(a, a->limb->flight_region, a->limb->flight_counters, step, !answer.err);
	if (!answer.err)
		did_register(a->limb->flight_region);
	check_memory(a);
}

void run_access(struct actor *a, const struct step *step)
{
	struct limb *limb = a->limb;

	limb->flight_region = region_of(a, step);
	limb->flight_counters = limb->flight_region->counters;
	memset(&limb->flight_want, 0, sizeof(limb->flight_want));
	want_access(a, step, &limb->flight_want);
	access_start(a, step);
	if (step->overlap) {
		limb->flying = true;
		limb->flight = *step;
		return;
	}
	access_end(a, step, &limb->flight_want, false);
}

/* What was good before the step in between or is good after it, may be the answer. */
void land(struct actor *a)
{
	struct limb *limb = a->limb;
	struct want after = { 0 };

	if (!limb->flying)
		return;
	limb->flying = false;
	want_access(a, &limb->flight, &after);
	for (unsigned i = 0; i < after.n; i++)
		want_add(&limb->flight_want, after.rc[i]);
	access_end(a, &limb->flight, &limb->flight_want, true);
}

/* --- accesses with descriptors ------------------------------------------------------ */

static ssize_t local_post(struct actor *a, const struct step *step)
{
	const struct hand *hand = &a->limb->hand;
	uint8_t *buf = a->limb->mem + step->off[0];
	void *desc = a->regions[step->slot].desc;
	struct mail_op *op = &a->limb->mail.access;

	op->busy = true;
	atomic_store(&op->ended, false);
	if (step->fault)
		desc = step->fault == BAD_KEY ? (void *)0xdead0000beef : NULL;
	if (step->kind == GET)
		return fi_read(hand->ep.ep, buf, step->len[0], desc, hand->to, hand->addr,
			       hand->key, op);
	return fi_write(hand->ep.ep, buf, step->len[0], desc, hand->to, hand->addr, hand->key, op);
}

static void check_board(struct actor *a, const struct step *step)
{
	struct peer_ask ask = { .what = PEER_SHOW, .len = step->len[0] };
	struct peer_answer answer;

	peer_call(a, &ask, &answer);
	for (uint32_t i = 0; i < step->len[0]; i++) {
		if (answer.bytes[i] != a->shadow[step->off[0] + i])
			model_fail("bytes put",
				   "byte %u of a write is 0x%02x at the peer instead of "
				   "0x%02x",
				   i, answer.bytes[i], a->shadow[step->off[0] + i]);
	}
}

static void local_done(struct actor *a, const struct step *step)
{
	struct mail *mail = &a->limb->mail;

	mail_await(mail, mail->cq, &mail->access);
	if (mail->access.err)
		model_fail("local access", "%s: %d (%s) instead of success", kind_names[step->kind],
			   -mail->access.err, fi_strerror(mail->access.err));
	for (uint32_t i = 0; i < step->len[0] && step->kind == GET; i++)
		a->shadow[step->off[0] + i] = byte_of(step->seed, i);
	if (step->kind == PUT)
		check_board(a, step);
}

void run_local(struct actor *a, const struct step *step)
{
	struct peer_ask ask = { .what = PEER_PAINT, .len = step->len[0], .seed = step->seed };
	struct peer_answer answer;
	struct want want = { 0 };
	int rc;

	want_local(a, step, &want);
	peer_call(a, &ask, &answer);
	rc = (int)local_post(a, step);
	check_answer(step, &want, rc, "");
	if (!rc)
		local_done(a, step);
	check_memory(a);
}
