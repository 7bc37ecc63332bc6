/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions and raw keys. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "exec_int.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* --- shared keys -------------------------------------------------------------------- */

struct shared_key *shared_of(const struct actor *a, const struct region *r)
{
	return r->claims ? &a->world->keys[shared_key(r->key)] : NULL;
}

/* Before the region may get the key. */
static void shared_begin(struct shared_key *k)
{
	atomic_fetch_add(&k->maybe, 1);
	atomic_fetch_add(&k->changes, 1);
}

/* After it has lost it, or did not get it. */
static void shared_end(struct shared_key *k)
{
	atomic_fetch_sub(&k->maybe, 1);
}

static void shared_got(struct shared_key *k, uint64_t key)
{
	int nobody = 0;

	if (!atomic_compare_exchange_strong(&k->held, &nobody, 1))
		model_fail("two hold a key", "two regions were given key 0x%llx",
			   (unsigned long long)key);
}

void shared_leave(struct actor *a, struct region *r)
{
	struct shared_key *k = shared_of(a, r);

	if (k)
		shared_end(k);
	r->claims = false;
}

/* --- registering -------------------------------------------------------------------- */

struct fid_domain *domain_of(const struct actor *a)
{
	return a->world->side->domain;
}

struct reg_args {
	struct iovec iov[17];
	struct fi_mr_attr attr;
	uint64_t flags;
};

static uint64_t reg_flags(const struct step *step)
{
	switch (step->fault) {
	case BAD_FLAG:
		return FI_MORE;
	case OTHER_EVENT:
		return FI_RMA_EVENT;
	case OTHER_PMEM:
		return FI_RMA_PMEM;
	case OTHER_HMEM:
		return FI_HMEM_DEVICE_ONLY;
	default:
		return 0;
	}
}

static void reg_args(const struct actor *a, const struct step *step, struct reg_args *args)
{
	struct fi_mr_attr *attr = &args->attr;

	memset(args, 0, sizeof(*args));
	for (unsigned i = 0; i < step->n; i++)
		args->iov[i] = (struct iovec){ a->limb->mem + step->off[i], step->len[i] };
	if (step->fault == BAD_WRAP)
		args->iov[0] = (struct iovec){ (void *)(UINTPTR_MAX - 100), 4096 };
	attr->mr_iov = step->fault == NO_IOV ? NULL : args->iov;
	attr->iov_count = step->n;
	if (step->fault == BAD_COUNT)
		attr->iov_count = step->seed & 1 ? 0 : 17;
	attr->context = ticket_new(a);
	attr->access = step->access;
	if (step->fault == BAD_ACCESS)
		attr->access |= FI_RMA_EVENT;
	attr->offset = step->fault == BAD_OFFSET ? 8 : 0;
	attr->requested_key = step->fault == BAD_KEY ? FI_KEY_NOTAVAIL : step->key;
	if (step->auth) {
		attr->auth_key = (uint8_t *)auth_key(step->auth);
		attr->auth_key_size = strlen(auth_key(step->auth));
	}
	memory_attr(a, attr);
	args->flags = reg_flags(step);
}

static int reg_call(const struct actor *a, const struct step *step, struct reg_args *args,
		    struct fid_mr **mr)
{
	const struct fi_mr_attr *attr = &args->attr;
	unsigned call = call_of(step);

	if (call == 2)
		return fi_mr_regattr(domain_of(a), attr, args->flags, mr);
	if (call == 1)
		return fi_mr_regv(domain_of(a), attr->mr_iov, attr->iov_count, attr->access,
				  attr->offset, attr->requested_key, args->flags, mr,
				  attr->context);
	return fi_mr_reg(domain_of(a), attr->mr_iov->iov_base, attr->mr_iov->iov_len, attr->access,
			 attr->offset, attr->requested_key, args->flags, mr, attr->context);
}

/* The key may be somebody else's: then that is what has to be said. */
static int reg_shared(struct actor *a, const struct step *step, struct reg_args *args,
		      struct shared_key *k, struct want *want, struct fid_mr **mr)
{
	unsigned changes = atomic_load(&k->changes);
	bool maybe = atomic_load(&k->maybe) > 0;
	int rc;

	shared_begin(k);
	rc = reg_call(a, step, args, mr);
	if (rc)
		shared_end(k);
	else if (!is_doomed(a, step))
		shared_got(k, step->key);
	/* The one more is our own. */
	if (maybe || atomic_load(&k->changes) != changes + 1)
		want_add(want, -FI_ENOKEY);
	return rc;
}

/*
 * Each page has memory then. A peer may be writing there meanwhile: what is read does not matter.
 */
static __attribute__((no_sanitize("thread"))) void touch(const struct actor *a)
{
	const volatile uint8_t *mem = a->limb->mem;

	for (unsigned i = 0; i < PAGES && !a->world->conf.device; i++) {
		if (i != HOLE)
			(void)mem[i * PAGE];
	}
}

static void empty(struct actor *a, const struct step *step)
{
	unsigned pages = emptied(a, step);

	for (unsigned i = 0; i < PAGES; i++) {
		if (!(pages >> i & 1))
			continue;
		must(madvise(a->limb->mem + i * PAGE, PAGE, MADV_DONTNEED));
		memset(a->shadow + i * PAGE, 0, PAGE);
	}
}

void run_reg(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];
	struct fid_mr *mr = (void *)a, *untouched = mr;
	struct shared_key *k = NULL;
	struct want want = { 0 };
	struct reg_args args;
	int rc;

	want_reg(a, step, &want);
	reg_args(a, step, &args);
	touch(a);
	empty(a, step);
	if (step->access & REMOTE && !(a->world->conf.mode & FI_MR_PROV_KEY) &&
	    step->fault != BAD_KEY && shared_key(step->key) >= 0)
		k = &a->world->keys[shared_key(step->key)];
	rc = k ? reg_shared(a, step, &args, k, &want, &mr) : reg_call(a, step, &args, &mr);
	touch(a);
	check_answer(step, &want, rc, "");
	if (rc && mr != untouched)
		model_fail("mr written", "a registration that failed has written *mr");
	if (rc) {
		ticket_end(args.attr.context);
		return;
	}
	did_reg(a, step);
	r->mr = mr;
	r->claims = k;
	r->ticket = args.attr.context;
}

/* --- binding, enabling, refreshing, closing ----------------------------------------- */

struct endpoint *endpoint_of(const struct actor *a, unsigned ep)
{
	if (ep == HAND)
		return &a->limb->hand.ep;
	return ep < SHARED_EPS ? &a->world->side->shared[ep] : &a->limb->own[ep - SHARED_EPS];
}

void run_bind(struct actor *a, const struct step *step)
{
	struct fid *fid = &endpoint_of(a, step->ep)->ep->fid;
	struct want want = { 0 };
	int rc;

	want_bind(a, step, &want);
	if (step->fault == NO_IOV)
		fid = NULL;
	else if (step->fault == BAD_KEY)
		fid = &a->world->side->av->fid;
	rc = fi_mr_bind(a->regions[step->slot].mr, fid,
			step->fault == BAD_FLAG ? FI_REMOTE_READ : 0);
	check_answer(step, &want, rc, "");
	if (!rc)
		did_bind(a, step);
}

void run_enable(struct actor *a, const struct step *step)
{
	struct want want = { 0 };
	int rc;

	want_enable(a, step, &want);
	rc = fi_mr_enable(a->regions[step->slot].mr);
	check_answer(step, &want, rc, "");
	if (!rc)
		did_enable(a, step);
}

void run_refresh(struct actor *a, const struct step *step)
{
	struct want want = { 0 };
	struct iovec iov[SEGS];
	size_t count = step->n;
	int rc;

	want_refresh(a, step, &want);
	for (unsigned i = 0; i < step->n; i++)
		iov[i] = (struct iovec){ a->limb->mem + step->off[i], step->len[i] };
	if (step->fault == BAD_WRAP)
		iov[0] = (struct iovec){ (void *)(UINTPTR_MAX - 100), 4096 };
	if (step->fault == BAD_WRAP || step->fault == NO_IOV)
		count = 1;
	rc = fi_mr_refresh(a->regions[step->slot].mr,
			   step->fault == NO_IOV || (!count && step->fault != BAD_COUNT) ? NULL
											 : iov,
			   count, step->fault == BAD_FLAG ? FI_MORE : 0);
	check_answer(step, &want, rc, "");
	if (!rc)
		did_refresh(a, step);
}

void run_close(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];
	struct shared_key *k = r->state == FAILED ? NULL : shared_of(a, r);
	struct want want = { 0 };
	int rc;

	want_close(a, step, &want);
	if (k)
		atomic_store(&k->held, 0);
	rc = fi_close(&r->mr->fid);
	check_answer(step, &want, rc, "");
	if (!rc) {
		shared_leave(a, r);
		ticket_end(r->ticket);
		did_close(a, step);
	} else if (k) {
		shared_got(k, r->key);
	}
}

void run_ep(struct actor *a, const struct step *step)
{
	struct endpoint *ep = endpoint_of(a, step->ep);
	struct want want = { 0 };
	int rc = 0;

	want_ep(a, step, &want);
	if (a->ep_open[step->ep]) {
		messages_settle(a, step->ep);
		rc = fi_close(&ep->ep->fid);
		if (!rc)
			endpoint_closed(ep);
	} else {
		endpoint_open(a->world->side, a->limb->hand.cq, step->auth, ep);
		messages_forget(a, step->ep);
	}
	check_answer(step, &want, rc, "");
	if (!rc)
		did_ep(a, step);
}

void run_domain(struct actor *a, const struct step *step)
{
	struct want want = { 1, { -FI_EBUSY } };

	check_answer(step, &want, fi_close(&domain_of(a)->fid), "");
}

/* --- raw keys ----------------------------------------------------------------------- */

static void check_raw(struct actor *a, const struct region *r, const struct raw *raw)
{
	uint64_t base =
		a->world->conf.mode & FI_MR_VIRT_ADDR ? (uintptr_t)a->limb->mem + r->off[0] : 0;

	if (raw->base != base)
		model_fail("base_addr", "fi_mr_raw_attr: base_addr 0x%llx instead of 0x%llx",
			   (unsigned long long)raw->base, (unsigned long long)base);
	if (raw->size < 8 || raw->size > RAW_MAX)
		model_fail("key_size", "fi_mr_raw_attr: key_size=%zu", raw->size);
}

void run_raw(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];
	struct raw raw = { .serial = r->serial, .slot = step->slot, .size = RAW_MAX };
	uint64_t flags = step->fault == BAD_FLAG ? FI_MORE : 0;
	struct want want = { 0 };
	int rc;

	want_raw(a, step, &want);
	if (step->fault == NO_ROOM)
		raw.size = 8;
	rc = fi_mr_raw_attr(r->mr, &raw.base, raw.bytes, &raw.size, flags);
	check_answer(step, &want, rc, "");
	if (rc)
		return;
	check_raw(a, r, &raw);
	r->raw = raw;
}

void peer_call(struct actor *a, const struct peer_ask *ask, struct peer_answer *answer)
{
	a->world->side->backend->start(a->limb->peer, ask);
	a->world->side->backend->end(a->limb->peer, answer);
}

void run_map(struct actor *a, const struct step *step)
{
	const struct raw *raw = &a->regions[step->slot].raw;
	struct mapping *m = &a->mappings[step->ep];
	struct peer_ask ask = { .what = PEER_MAP, .base = raw->base, .size = raw->size };
	struct peer_answer answer;
	struct want want = { 0 };

	want_map(a, step, &want);
	memcpy(ask.raw, raw->bytes, raw->size);
	if (step->fault == BAD_KEY)
		ask.raw[step->seed % raw->size] ^= (uint8_t)(1 + (step->seed >> 32) % 255);
	if (step->fault == BAD_BASE)
		ask.base += 4096;
	ask.flags = step->fault == BAD_FLAG ? FI_MORE : 0;
	peer_call(a, &ask, &answer);
	check_answer(step, &want, answer.rc, "");
	if (answer.rc)
		return;
	*m = (struct mapping){
		.mapped = true, .key = answer.key, .slot = step->slot, .serial = raw->serial
	};
}

void run_unmap(struct actor *a, const struct step *step)
{
	struct mapping *m = &a->mappings[step->slot];
	struct peer_ask ask = { .what = PEER_UNMAP, .key = m->key };
	struct peer_answer answer;
	struct want want = { 0 };

	want_unmap(a, step, &want);
	if (step->fault == BAD_KEY)
		ask.key = 0x12345;
	peer_call(a, &ask, &answer);
	check_answer(step, &want, answer.rc, "");
	if (answer.rc)
		return;
	m->mapped = false;
	m->was = true;
}
