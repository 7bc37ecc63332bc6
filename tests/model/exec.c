/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "exec_int.h"

/* --- saying what is wrong ----------------------------------------------------------- */

const char *const kind_names[KINDS] = {
	[REG] = "fi_mr_reg",
	[CLOSE] = "fi_close",
	[BIND] = "fi_mr_bind",
	[BIND_CNTR] = "fi_mr_bind of a counter",
	[CNTR] = "counter",
	[COUNT] = "fi_cntr_read",
	[AWAIT] = "event of fi_mr_reg",
	[ENABLE] = "fi_mr_enable",
	[REFRESH] = "fi_mr_refresh",
	[SHOW] = "fi_mr_key",
	[RAW] = "fi_mr_raw_attr",
	[MAP] = "fi_mr_map_raw",
	[UNMAP] = "fi_mr_unmap_key",
	[WRITE] = "fi_write",
	[COMMIT] = "fi_writemsg with FI_COMMIT_COMPLETE",
	[READ] = "fi_read",
	[ATOMIC] = "fi_fetch_atomic",
	[CHANGE] = "fi_atomic",
	[INJECT] = "fi_inject_atomic",
	[COMPARE] = "fi_compare_atomic",
	[PUT] = "fi_write from here",
	[GET] = "fi_read to here",
	[EP] = "endpoint",
	[DOMAIN] = "fi_close of the domain",
	[SEND] = "fi_send",
	[RECEIVE] = "fi_recv",
	[PEEK] = "fi_trecvmsg with FI_PEEK",
	[CLAIM] = "fi_trecvmsg with FI_CLAIM",
	[CANCEL] = "fi_cancel",
	[COLLECT] = "fi_cq_read",
};

static void print_wanted(const struct want *want, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = 0;
	for (unsigned i = 0; i < want->n && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%d (%s)", i ? " or " : "",
				       want->rc[i],
				       want->rc[i] ? fi_strerror(-want->rc[i]) : "success");
}

void check_answer(const struct step *step, const struct want *want, int rc, const char *text)
{
	char kind[64], wanted_text[300];

	model_count(step->kind, rc);
	if (wanted(want, rc))
		return;
	snprintf(kind, sizeof(kind), "%s: %d", kind_names[step->kind], rc);
	print_wanted(want, wanted_text, sizeof(wanted_text));
	model_fail(kind, "%s: %d (%s)%s%s instead of %s", kind_names[step->kind], rc,
		   rc ? fi_strerror(-rc) : "success", *text ? ", " : "", text, wanted_text);
}

/* --- what a region shows ------------------------------------------------------------ */

static void key_wrong(const struct region *r, uint64_t key, const char *why)
{
	model_fail("fi_mr_key", "fi_mr_key: 0x%llx of a region with requested key 0x%llx: %s",
		   (unsigned long long)key, (unsigned long long)r->key, why);
}

static void check_own_key(struct actor *a, struct region *r, uint64_t key)
{
	if (key == FI_KEY_NOTAVAIL || !key)
		key_wrong(r, key, "is no key");
	for (unsigned i = 0; i < REGIONS; i++) {
		const struct region *other = &a->regions[i];

		if (other != r && (other->state == ENABLED) && other->told == key)
			key_wrong(r, key, "another region has it");
	}
	if (r->told != FI_KEY_NOTAVAIL && r->told != key)
		key_wrong(r, key, "was another one before");
	r->told = key;
}

/* The worker may be about to write them: the calls are there for such a moment, too. */
static __attribute__((no_sanitize("thread"))) uint64_t key_shown(const struct region *r)
{
	return r->mr->key;
}

static __attribute__((no_sanitize("thread"))) void *desc_of(const struct region *r)
{
	return r->mr->mem_desc;
}

static void check_key(struct actor *a, struct region *r)
{
	uint64_t mode = a->world->conf.mode, key = key_shown(r);

	if (r->state != ENABLED || mode & FI_MR_RAW) {
		if (key != FI_KEY_NOTAVAIL)
			key_wrong(r, key, "it should have none to show");
	} else if (!(mode & FI_MR_PROV_KEY)) {
		if (key != r->key)
			key_wrong(r, key, "should be the requested one");
		r->told = key;
	} else if (r->keyed) {
		check_own_key(a, r, key);
	} else if (key != FI_KEY_NOTAVAIL) {
		key_wrong(r, key, "without a remote right it has none");
	}
}

static void check_desc(struct actor *a, struct region *r)
{
	void *desc = desc_of(r);

	if ((desc != NULL) != (r->state == ENABLED))
		model_fail("fi_mr_desc", "fi_mr_desc: %p of a region that is %s", desc,
			   r->state == ENABLED ? "enabled" : "not enabled");
	for (unsigned i = 0; i < REGIONS && desc; i++) {
		const struct region *other = &a->regions[i];

		if (other != r && other->state == ENABLED && other->desc == desc)
			model_fail("two descriptors", "two regions have descriptor %p", desc);
	}
	if (r->desc && r->desc != desc)
		model_fail("fi_mr_desc", "fi_mr_desc: was %p, is %p", r->desc, desc);
	r->desc = desc;
}

static void check_shown(struct actor *a, struct region *r)
{
	if (r->state != DISABLED && r->state != ENABLED && r->state != FAILED)
		return;
	/* Key first, descriptor then: what is enabled has both. */
	if (r->pending && desc_of(r))
		did_register(r);
	if (r->pending && key_shown(r) == FI_KEY_NOTAVAIL)
		return;
	check_key(a, r);
	if (!r->pending)
		check_desc(a, r);
}

/* --- steps -------------------------------------------------------------------------- */

static void (*const runs[KINDS])(struct actor *a, const struct step *step) = {
	[REG] = run_reg,	 [CLOSE] = run_close,	  [BIND] = run_bind,
	[ENABLE] = run_enable,	 [REFRESH] = run_refresh, [RAW] = run_raw,
	[MAP] = run_map,	 [UNMAP] = run_unmap,	  [WRITE] = run_access,
	[READ] = run_access,	 [ATOMIC] = run_access,	  [PUT] = run_local,
	[GET] = run_local,	 [EP] = run_ep,		  [BIND_CNTR] = run_bind_cntr,
	[CNTR] = run_cntr,	 [COUNT] = run_count,	  [DOMAIN] = run_domain,
	[AWAIT] = run_await,	 [COMMIT] = run_access,	  [CHANGE] = run_access,
	[INJECT] = run_access,	 [COMPARE] = run_access,  [SEND] = run_message,
	[RECEIVE] = run_message, [PEEK] = run_message,	  [CLAIM] = run_message,
	[CANCEL] = run_message,	 [COLLECT] = run_message,
};

/* Steps that can be done while an access of the peer is under way. */
static bool may_overlap(const struct actor *a, const struct step *step)
{
	const struct step *flight = &a->limb->flight;

	switch (step->kind) {
	/* The key of the access may become another region's, or another thread's. */
	case REG:
		return flight->way == BY_MAPPING;
	case CLOSE:
		return flight->way == BY_MAPPING || !shared_of(a, &a->regions[step->slot]);
	case BIND:
	case ENABLE:
	case REFRESH:
	case SHOW:
	case RAW:
	case DOMAIN:
		return true;
	default:
		return false;
	}
}

void step_run(struct actor *a, const struct step *step)
{
	bool flew;

	if (!step_applies(a, step))
		return;
	if (a->limb->flying && !may_overlap(a, step))
		land(a);
	flew = a->limb->flying;
	a->clock++;
	if (runs[step->kind])
		runs[step->kind](a, step);
	if (flew)
		land(a);
	if (step->kind <= RAW || step->kind == BIND_CNTR || step->kind == AWAIT)
		check_shown(a, &a->regions[step->slot]);
}

/* --- opening and closing ------------------------------------------------------------ */

void actor_open(struct actor *a, struct world *world, unsigned number)
{
	struct limb *limb = a->limb;

	a->world = world;
	a->number = number;
	a->dice = world->conf.seed * 1000003u + number;
	for (unsigned i = 0; i < SHARED_EPS; i++) {
		a->ep_open[i] = true;
		a->ep_group[i] = (uint8_t)group_of(&world->conf, 0);
	}
	for (unsigned i = 0; i < SHARED_CNTRS; i++)
		a->cntr_open[i] = true;
	for (unsigned i = 0; i < SENDERS; i++)
		did_open(&a->mailboxes[i]);
	limb->tickets = calloc(world->conf.steps + 1, sizeof(*limb->tickets));
	limb->peer = world->side->backend->peer_open(&world->conf, number);
}

static void hand_map(struct actor *a, struct peer_answer *board)
{
	struct hand *hand = &a->limb->hand;

	must(fi_mr_map_raw(domain_of(a), board->base, board->raw, board->size, &hand->key, 0));
	hand->addr = board->base;
	must_be(fi_av_insert(a->world->side->av, board->name, 1, &hand->to, 0, NULL), 1);
}

void actor_hand(struct actor *a)
{
	struct peer_ask ask = { .what = PEER_BOARD };
	struct hand *hand = &a->limb->hand;
	struct peer_answer answer;

	hand->cq = cq_for_messages(a->world->side);
	endpoint_open(a->world->side, hand->cq, 0, &hand->ep);
	peer_call(a, &ask, &answer);
	hand_map(a, &answer);
	messages_open(a);
}

static void hand_close(struct actor *a)
{
	struct hand *hand = &a->limb->hand;

	must(fi_mr_unmap_key(domain_of(a), hand->key));
	endpoint_close(&hand->ep);
	must(fi_close(&hand->cq->fid));
}

static void close_regions(struct actor *a)
{
	struct step step = { .kind = CLOSE };

	for (unsigned i = 0; i < REGIONS; i++) {
		step.slot = (uint8_t)i;
		if (step_applies(a, &step))
			step_run(a, &step);
	}
}

static void close_endpoints(struct actor *a)
{
	struct step step = { .kind = EP };

	for (unsigned i = SHARED_EPS; i < EPS; i++) {
		step.ep = (uint8_t)i;
		if (a->ep_open[i])
			step_run(a, &step);
	}
}

static void close_cntrs(struct actor *a)
{
	struct step step = { .kind = COUNT };

	for (unsigned i = SHARED_CNTRS; i < CNTRS; i++) {
		step.ep = (uint8_t)i;
		if (!a->cntr_open[i])
			continue;
		step.kind = COUNT;
		step_run(a, &step);
		step.kind = CNTR;
		step_run(a, &step);
	}
}

static void unmap_all(struct actor *a)
{
	struct step step = { .kind = UNMAP };

	for (unsigned i = 0; i < MAPPINGS; i++) {
		step.slot = (uint8_t)i;
		if (a->mappings[i].mapped)
			step_run(a, &step);
	}
}

void actor_leave(struct actor *a)
{
	land(a);
	messages_finish(a);
	mail_close(&a->limb->mail);
	close_regions(a);
	close_cntrs(a);
	close_endpoints(a);
}

void actor_close(struct actor *a)
{
	for (unsigned i = 0; i < REGIONS; i++)
		a->regions[i].bound = a->regions[i].counters = 0;
	close_regions(a);
	unmap_all(a);
	mail_close(&a->limb->mail);
	hand_close(a);
	check_memory(a);
	a->world->side->backend->peer_close(a->limb->peer);
	memory_close(a);
	free(a->limb->tickets);
}
