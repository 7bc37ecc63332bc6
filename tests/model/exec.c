/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "exec.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* --- saying what is wrong ----------------------------------------------------------- */

const char *const kind_names[KINDS] = {
	[REG] = "fi_mr_reg",
	[CLOSE] = "fi_close",
	[BIND] = "fi_mr_bind",
	[ENABLE] = "fi_mr_enable",
	[REFRESH] = "fi_mr_refresh",
	[SHOW] = "fi_mr_key",
	[RAW] = "fi_mr_raw_attr",
	[MAP] = "fi_mr_map_raw",
	[UNMAP] = "fi_mr_unmap_key",
	[WRITE] = "fi_write",
	[READ] = "fi_read",
	[PUT] = "fi_write from here",
	[GET] = "fi_read to here",
	[EP] = "endpoint",
	[DOMAIN] = "fi_close of the domain",
};

static void print_wanted(const struct want *want, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = 0;
	for (unsigned i = 0; i < want->n && at < size; i++)
		at += (size_t)snprintf(
			buf + at, size - at, "%s%d (%s)", i ? " or " : "", want->rc[i],
			want->rc[i] ? fi_strerror(-want->rc[i]) : "success");
}

static void check(const struct step *step, const struct want *want, int rc,
		  const char *text)
{
	char kind[64], wanted_text[300];

	model_count(step->kind, rc);
	if (wanted(want, rc))
		return;
	snprintf(kind, sizeof(kind), "%s: %d", kind_names[step->kind], rc);
	print_wanted(want, wanted_text, sizeof(wanted_text));
	model_fail(kind, "%s: %d (%s)%s%s instead of %s", kind_names[step->kind], rc,
		   rc ? fi_strerror(-rc) : "success", *text ? ", " : "", text,
		   wanted_text);
}

/* --- shared keys -------------------------------------------------------------------- */

static struct shared_key *shared_of(const struct actor *a, const struct region *r)
{
	int i = r->keyed && !(a->world->conf.mode & FI_MR_PROV_KEY) ? shared_key(r->key)
								    : -1;

	return i < 0 ? NULL : &a->world->keys[i];
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

/* --- registering -------------------------------------------------------------------- */

static struct fid_domain *domain_of(const struct actor *a)
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

static void reg_args(const struct actor *a, const struct step *step,
		     struct reg_args *args)
{
	struct fi_mr_attr *attr = &args->attr;

	memset(args, 0, sizeof(*args));
	for (unsigned i = 0; i < step->n; i++)
		args->iov[i] =
			(struct iovec){ a->limb->mem + step->off[i], step->len[i] };
	if (step->fault == BAD_WRAP)
		args->iov[0] = (struct iovec){ (void *)(UINTPTR_MAX - 100), 4096 };
	attr->mr_iov = step->fault == NO_IOV ? NULL : args->iov;
	attr->iov_count = step->n;
	if (step->fault == BAD_COUNT)
		attr->iov_count = step->seed & 1 ? 0 : 17;
	attr->access = step->access;
	if (step->fault == BAD_ACCESS)
		attr->access |= FI_RMA_EVENT;
	attr->offset = step->fault == BAD_OFFSET ? 8 : 0;
	attr->requested_key = step->fault == BAD_KEY ? FI_KEY_NOTAVAIL : step->key;
	if (step->fault == WITH_AUTH) {
		attr->auth_key = (uint8_t *)"secret";
		attr->auth_key_size = 6;
	}
	args->flags = reg_flags(step);
}

/* Where an argument is not of every call, the one that has it is called. */
static int reg_call(const struct actor *a, const struct step *step, struct reg_args *args,
		    struct fid_mr **mr)
{
	const struct fi_mr_attr *attr = &args->attr;
	unsigned call = step->call;

	if (step->fault == WITH_AUTH)
		call = 2;
	else if (!call && (step->fault == NO_IOV || step->fault == BAD_COUNT))
		call = 1;
	if (call == 2)
		return fi_mr_regattr(domain_of(a), attr, args->flags, mr);
	if (call == 1)
		return fi_mr_regv(domain_of(a), attr->mr_iov, attr->iov_count,
				  attr->access, attr->offset, attr->requested_key,
				  args->flags, mr, NULL);
	return fi_mr_reg(domain_of(a), attr->mr_iov->iov_base, attr->mr_iov->iov_len,
			 attr->access, attr->offset, attr->requested_key, args->flags, mr,
			 NULL);
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
	else
		shared_got(k, step->key);
	/* The one more is our own. */
	if (maybe || atomic_load(&k->changes) != changes + 1)
		want_add(want, -FI_ENOKEY);
	return rc;
}

static void run_reg(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];
	struct fid_mr *mr = (void *)a, *untouched = mr;
	struct shared_key *k = NULL;
	struct want want = { 0 };
	struct reg_args args;
	int rc;

	want_reg(a, step, &want);
	reg_args(a, step, &args);
	if (step->access & REMOTE && !(a->world->conf.mode & FI_MR_PROV_KEY) &&
	    step->fault != BAD_KEY && shared_key(step->key) >= 0)
		k = &a->world->keys[shared_key(step->key)];
	rc = k ? reg_shared(a, step, &args, k, &want, &mr)
	       : reg_call(a, step, &args, &mr);
	check(step, &want, rc, "");
	if (rc && mr != untouched)
		model_fail("mr written", "a registration that failed has written *mr");
	if (rc)
		return;
	did_reg(a, step);
	r->mr = mr;
}

/* --- what a region shows ------------------------------------------------------------ */

static void key_wrong(const struct region *r, uint64_t key, const char *why)
{
	model_fail("fi_mr_key",
		   "fi_mr_key: 0x%llx of a region with requested key 0x%llx: %s",
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

static void check_key(struct actor *a, struct region *r)
{
	uint64_t mode = a->world->conf.mode, key = fi_mr_key(r->mr);

	if (r->state == DISABLED || mode & FI_MR_RAW) {
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
	void *desc = fi_mr_desc(r->mr);

	if ((desc != NULL) != (r->state == ENABLED))
		model_fail("fi_mr_desc", "fi_mr_desc: %p of a region that is %s", desc,
			   r->state == ENABLED ? "enabled" : "not enabled");
	for (unsigned i = 0; i < REGIONS && desc; i++) {
		const struct region *other = &a->regions[i];

		if (other != r && other->state == ENABLED && other->desc == desc)
			model_fail("two descriptors", "two regions have descriptor %p",
				   desc);
	}
	if (r->desc && r->desc != desc)
		model_fail("fi_mr_desc", "fi_mr_desc: was %p, is %p", r->desc, desc);
	r->desc = desc;
}

static void check_shown(struct actor *a, struct region *r)
{
	if (r->state != DISABLED && r->state != ENABLED)
		return;
	check_key(a, r);
	check_desc(a, r);
}

/* --- binding, enabling, refreshing, closing ----------------------------------------- */

static struct endpoint *endpoint_of(const struct actor *a, unsigned ep)
{
	return ep < SHARED_EPS ? &a->world->side->shared[ep]
			       : &a->limb->own[ep - SHARED_EPS];
}

static void run_bind(struct actor *a, const struct step *step)
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
	check(step, &want, rc, "");
	if (!rc)
		did_bind(a, step);
}

static void run_enable(struct actor *a, const struct step *step)
{
	struct want want = { 0 };
	int rc;

	want_enable(a, step, &want);
	rc = fi_mr_enable(a->regions[step->slot].mr);
	check(step, &want, rc, "");
	if (!rc)
		did_enable(a, step);
}

static void run_refresh(struct actor *a, const struct step *step)
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
			   step->fault == NO_IOV || (!count && step->fault != BAD_COUNT)
				   ? NULL
				   : iov,
			   count, step->fault == BAD_FLAG ? FI_MORE : 0);
	check(step, &want, rc, "");
	if (!rc)
		did_refresh(a, step);
}

static void run_close(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];
	struct shared_key *k = shared_of(a, r);
	struct want want = { 0 };
	int rc;

	want_close(a, step, &want);
	if (k)
		atomic_store(&k->held, 0);
	rc = fi_close(&r->mr->fid);
	check(step, &want, rc, "");
	if (!rc) {
		if (k)
			shared_end(k);
		did_close(a, step);
	} else if (k) {
		shared_got(k, r->key);
	}
}

static void run_ep(struct actor *a, const struct step *step)
{
	struct endpoint *ep = endpoint_of(a, step->ep);
	struct want want = { 0 };
	int rc = 0;

	want_ep(a, step, &want);
	if (a->ep_open[step->ep])
		rc = fi_close(&ep->ep->fid);
	else
		endpoint_open(a->world->side, a->world->side->cq, ep);
	check(step, &want, rc, "");
	if (!rc)
		did_ep(a, step);
}

static void run_domain(struct actor *a, const struct step *step)
{
	struct want want = { 1, { -FI_EBUSY } };

	check(step, &want, fi_close(&domain_of(a)->fid), "");
}

/* --- raw keys ----------------------------------------------------------------------- */

static void check_raw(struct actor *a, const struct region *r, const struct raw *raw)
{
	uint64_t base = a->world->conf.mode & FI_MR_VIRT_ADDR
				? (uintptr_t)a->limb->mem + r->off[0]
				: 0;

	if (raw->base != base)
		model_fail("base_addr",
			   "fi_mr_raw_attr: base_addr 0x%llx instead of 0x%llx",
			   (unsigned long long)raw->base, (unsigned long long)base);
	if (raw->size < 8 || raw->size > RAW_MAX)
		model_fail("key_size", "fi_mr_raw_attr: key_size=%zu", raw->size);
}

static void run_raw(struct actor *a, const struct step *step)
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
	check(step, &want, rc, "");
	if (rc)
		return;
	check_raw(a, r, &raw);
	r->raw = raw;
}

static void peer_call(struct actor *a, const struct peer_ask *ask,
		      struct peer_answer *answer)
{
	a->world->side->backend->peer_start(a->limb->peer, ask);
	a->world->side->backend->peer_end(a->limb->peer, answer);
}

static void run_map(struct actor *a, const struct step *step)
{
	const struct raw *raw = &a->regions[step->slot].raw;
	struct mapping *m = &a->mappings[step->ep];
	struct peer_ask ask = { .what = PEER_MAP, .base = raw->base, .size = raw->size };
	struct peer_answer answer;
	struct want want = { 0 };

	want_map(a, step, &want);
	memcpy(ask.raw, raw->bytes, raw->size);
	if (step->fault == BAD_KEY)
		ask.raw[step->seed % raw->size] ^=
			(uint8_t)(1 + (step->seed >> 32) % 255);
	if (step->fault == BAD_BASE)
		ask.base += 4096;
	ask.flags = step->fault == BAD_FLAG ? FI_MORE : 0;
	peer_call(a, &ask, &answer);
	check(step, &want, answer.rc, "");
	if (answer.rc)
		return;
	*m = (struct mapping){ .mapped = true,
			       .key = answer.key,
			       .slot = step->slot,
			       .serial = raw->serial };
}

static void run_unmap(struct actor *a, const struct step *step)
{
	struct mapping *m = &a->mappings[step->slot];
	struct peer_ask ask = { .what = PEER_UNMAP, .key = m->key };
	struct peer_answer answer;
	struct want want = { 0 };

	want_unmap(a, step, &want);
	if (step->fault == BAD_KEY)
		ask.key = 0x12345;
	peer_call(a, &ask, &answer);
	check(step, &want, answer.rc, "");
	if (answer.rc)
		return;
	m->mapped = false;
	m->was = true;
}

/* --- accesses ----------------------------------------------------------------------- */

static void bytes_wrong(const struct actor *a, uint32_t place, uint8_t should)
{
	model_fail("bytes", "byte 0x%x of thread %u's memory is 0x%02x instead of 0x%02x",
		   place, a->number, a->limb->mem[place], should);
}

static void check_memory(const struct actor *a)
{
	const uint8_t *mem = a->limb->mem;

	if (!memcmp(mem, a->shadow, HOLE * PAGE) &&
	    !memcmp(mem + (HOLE + 1) * PAGE, a->shadow + (HOLE + 1) * PAGE,
		    MEM - (HOLE + 1) * PAGE))
		return;
	for (uint32_t i = 0; i < MEM; i++) {
		if (is_there(i, 1) && mem[i] != a->shadow[i])
			bytes_wrong(a, i, a->shadow[i]);
	}
}

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

	for (uint32_t i = 0; i < step->len[0]; i++) {
		long place = place_of(&a->world->conf, r, step->off[0], i);

		if (place >= 0 && is_there((uint32_t)place, 1) &&
		    a->limb->mem[place] == byte_of(step->seed, i))
			a->shadow[place] = a->limb->mem[place];
	}
}

static void check_read(struct actor *a, const struct step *step,
		       const struct peer_answer *answer)
{
	const struct region *r = a->limb->flight_region;

	for (uint32_t i = 0; i < step->len[0]; i++) {
		long place = place_of(&a->world->conf, r, step->off[0], i);

		if (place >= 0 && answer->bytes[i] != a->shadow[place])
			model_fail("bytes read",
				   "byte %u of a read is 0x%02x instead of 0x%02x", i,
				   answer->bytes[i], a->shadow[place]);
	}
}

static void access_start(struct actor *a, const struct step *step)
{
	const struct region *r = region_of(a, step);
	struct peer_ask ask = { .what = step->kind == READ ? PEER_READ : PEER_WRITE,
				.len = step->len[0],
				.seed = step->seed };

	ask.addr = address_of(&a->world->conf, r, step->off[0], a->limb->mem);
	if (step->way == BY_MAPPING)
		ask.key = a->mappings[step->slot].key;
	else if (a->world->conf.mode & FI_MR_PROV_KEY)
		ask.key = a->regions[step->slot].told;
	else
		ask.key = a->regions[step->slot].key;
	memcpy(ask.name, endpoint_of(a, step->ep)->name, sizeof(ask.name));
	a->world->side->backend->peer_start(a->limb->peer, &ask);
}

static void access_end(struct actor *a, const struct step *step, const struct want *want,
		       bool cut)
{
	struct peer_answer answer;

	a->world->side->backend->peer_end(a->limb->peer, &answer);
	if (answer.rc)
		model_fail("posting", "the peer could not start an access: %d",
			   answer.rc);
	check(step, want, -answer.err, answer.text);
	if (step->kind == READ && !answer.err)
		check_read(a, step, &answer);
	else if (step->kind == WRITE && !answer.err)
		wrote(a, step);
	else if (step->kind == WRITE && cut)
		wrote_maybe(a, step);
	check_memory(a);
}

static void run_access(struct actor *a, const struct step *step)
{
	struct limb *limb = a->limb;

	limb->flight_region = region_of(a, step);
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
static void land(struct actor *a)
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

	if (step->fault)
		desc = step->fault == BAD_KEY ? (void *)0xdead0000beef : NULL;
	if (step->kind == GET)
		return fi_read(hand->ep.ep, buf, step->len[0], desc, hand->to, hand->addr,
			       hand->key, a);
	return fi_write(hand->ep.ep, buf, step->len[0], desc, hand->to, hand->addr,
			hand->key, a);
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
	char text[300] = "";
	int err = completion(a->limb->hand.cq, text);

	if (err)
		model_fail("local access", "%s: %d (%s), %s, instead of success",
			   kind_names[step->kind], -err, fi_strerror(err), text);
	for (uint32_t i = 0; i < step->len[0] && step->kind == GET; i++)
		a->shadow[step->off[0] + i] = byte_of(step->seed, i);
	if (step->kind == PUT)
		check_board(a, step);
}

static void run_local(struct actor *a, const struct step *step)
{
	struct peer_ask ask = { .what = PEER_PAINT,
				.len = step->len[0],
				.seed = step->seed };
	struct peer_answer answer;
	struct want want = { 0 };
	int rc;

	want_local(a, step, &want);
	peer_call(a, &ask, &answer);
	rc = (int)local_post(a, step);
	check(step, &want, rc, "");
	if (!rc)
		local_done(a, step);
	check_memory(a);
}

/* --- steps -------------------------------------------------------------------------- */

static void (*const runs[KINDS])(struct actor *a, const struct step *step) = {
	[REG] = run_reg,       [CLOSE] = run_close,	[BIND] = run_bind,
	[ENABLE] = run_enable, [REFRESH] = run_refresh, [RAW] = run_raw,
	[MAP] = run_map,       [UNMAP] = run_unmap,	[WRITE] = run_access,
	[READ] = run_access,   [PUT] = run_local,	[GET] = run_local,
	[EP] = run_ep,	       [DOMAIN] = run_domain,
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
		return flight->way == BY_MAPPING ||
		       !shared_of(a, &a->regions[step->slot]);
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
	if (step->kind <= RAW)
		check_shown(a, &a->regions[step->slot]);
}

/* --- opening and closing ------------------------------------------------------------ */

void actor_open(struct actor *a, struct world *world, unsigned number)
{
	struct limb *limb = a->limb;

	a->world = world;
	a->number = number;
	a->rnd = world->conf.seed * 1000003u + number;
	for (unsigned i = 0; i < SHARED_EPS; i++)
		a->ep_open[i] = true;
	limb->mem = mmap(NULL, MEM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (limb->mem == MAP_FAILED)
		model_fail("harness", "no memory");
	for (uint32_t i = 0; i < MEM; i++)
		limb->mem[i] = a->shadow[i] = byte_of(number + 77, i);
	must(mprotect(limb->mem + HOLE * PAGE, PAGE, PROT_NONE));
	limb->peer = world->side->backend->peer_open(&world->conf, number);
}

static void hand_map(struct actor *a, struct peer_answer *board)
{
	struct hand *hand = &a->limb->hand;

	must(fi_mr_map_raw(domain_of(a), board->base, board->raw, board->size, &hand->key,
			   0));
	hand->addr = board->base;
	must_be(fi_av_insert(a->world->side->av, board->name, 1, &hand->to, 0, NULL), 1);
}

void actor_hand(struct actor *a)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA,
				 .wait_obj = FI_WAIT_UNSPEC };
	struct peer_ask ask = { .what = PEER_BOARD };
	struct hand *hand = &a->limb->hand;
	struct peer_answer answer;

	must(fi_cq_open(domain_of(a), &cq, &hand->cq, NULL));
	endpoint_open(a->world->side, hand->cq, &hand->ep);
	peer_call(a, &ask, &answer);
	hand_map(a, &answer);
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
	close_regions(a);
	close_endpoints(a);
}

void actor_close(struct actor *a)
{
	for (unsigned i = 0; i < REGIONS; i++)
		a->regions[i].bound = 0;
	close_regions(a);
	unmap_all(a);
	hand_close(a);
	check_memory(a);
	a->world->side->backend->peer_close(a->limb->peer);
	munmap(a->limb->mem, MEM);
}
