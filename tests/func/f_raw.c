/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw keys, in modes with and without FI_MR_RAW: "safe to use this call with any memory
 * region". What is mapped is reached; what is damaged, foreign or stale is not.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define SIZE (8 * PAGE)
#define FILL 3

/* A region whose key is not mapped, and its raw key. */
struct scene {
	struct env *e;
	struct peer *p;
	struct fab *f;
	struct buf *b;
	uint64_t at;
	uint64_t want;	 /* the key to ask for */
	struct region r; /* r.key: what was mapped last */
	struct raw raw;
};

static void region_open(struct scene *s, uint64_t access)
{
	must_ok(far_try_reg(s->p, s->at + 100, SIZE - 200, access, s->want, &s->r));
	if (s->p->bits & FI_MR_ENDPOINT) {
		must_ok(far_bind(&s->r));
		must_ok(far_enable(&s->r));
	}
	if (s->p->bits & FI_MR_MMU_NOTIFY)
		must_ok(far_refresh(&s->r, NULL, 0, 0));
	s->raw.size = sizeof(s->raw.bytes);
	must_ok(far_raw(&s->r, &s->raw));
}

static void scene_open(struct scene *s, struct env *e, struct peer *p)
{
	*s = (struct scene){ .e = e, .p = p, .f = me(e), .b = buf(e, SIZE, 1) };
	s->want = e->nbuf;
	s->at = far_map(p, 0, SIZE, RW, ANON);
	far_poke(p, s->at, SIZE, FILL, 0);
	region_open(s, REMOTE_RW);
}

static void scene_close(struct scene *s)
{
	peer_unreg(&s->r);
	far_unmap(s->p, s->at, SIZE);
}

static int map(struct scene *s, struct raw *raw, uint64_t *key)
{
	return fi_mr_map_raw(s->f->domain, raw->base, raw->bytes, raw->size, key, 0);
}

static void works(struct scene *s)
{
	far_lands(s->e, s->b, 50, 3000, &s->r, 70, s->at + 170);
	far_poke(s->p, s->at, SIZE, FILL, 0);
	far_brings(s->e, s->b, 50, 3000, &s->r, 70, FILL, 170);
}

#define SEVERAL                                                               \
	(MODE(0) | MODE(2) | MODE(4) | MODE(12) | MODE(15) | MODE(MODE_RAW) | \
	 MODE(MODE_RAW_NATIVE) | MODE(MODE_NOTIFY) | MODE(MODE_ENDPOINT) | MODE(MODE_EVERYTHING))

IN_MODES(SEVERAL)

CASE(raw_key_size_can_be_asked_for)
{
	struct scene s;
	size_t size;

	scene_open(&s, e, target(e));
	size = s.raw.size;
	must(size > 0 && size <= sizeof(s.raw.bytes), "%zu bytes", size);
	if (s.f->bits & FI_MR_RAW)
		must(s.f->info->domain_attr->mr_key_size >= size, "mr_key_size %zu, a key has %zu",
		     s.f->info->domain_attr->mr_key_size, size);
	for (size_t room = 0; room < size; room += room ? size - 1 - room / 2 : 1) {
		s.raw.size = room;
		must_be(far_raw(&s.r, &s.raw), -FI_ETOOSMALL);
		must(s.raw.size == size, "room %zu: %zu bytes needed, said before: %zu", room,
		     s.raw.size, size);
	}
	s.raw.size = size;
	must_ok(far_raw(&s.r, &s.raw));
	must(s.raw.size == size, "%zu bytes written", s.raw.size);
	must(s.raw.base == s.r.base, "base 0x%lx, the region's is 0x%lx", (unsigned long)s.raw.base,
	     (unsigned long)s.r.base);
	scene_close(&s);
}

CASE(mapped_key_reaches_the_region_until_it_is_unmapped)
{
	struct scene s;
	uint64_t other;

	scene_open(&s, e, target(e));
	must_ok(map(&s, &s.raw, &s.r.key));
	must_ok(map(&s, &s.raw, &other));
	must(s.r.key != other, "two mappings have one key");
	must(s.r.key != FI_KEY_NOTAVAIL, "the key is FI_KEY_NOTAVAIL");
	works(&s);
	must_ok(fi_mr_unmap_key(s.f->domain, s.r.key));
	far_refused(e, WRITE, s.b, 100, &s.r, 0, FI_EKEYREJECTED, "unmapped");
	far_refused(e, READ, s.b, 100, &s.r, 0, FI_EKEYREJECTED, "unmapped");
	far_peek(s.p, s.at, SIZE, FILL, 0);
	log_mark();
	must(fi_mr_unmap_key(s.f->domain, s.r.key) < 0, "unmapped twice");
	must(log_has("MRF-E"), "no line says why");
	s.r.key = other;
	works(&s);
	must_ok(fi_mr_unmap_key(s.f->domain, other));
	must(fi_mr_unmap_key(s.f->domain, 12345) < 0, "unmapped what never was");
	scene_close(&s);
}

CASE(mapped_key_has_the_rights_and_bounds_of_its_region)
{
	struct scene s;

	scene_open(&s, e, target(e));
	peer_unreg(&s.r);
	region_open(&s, FI_REMOTE_READ);
	must_ok(map(&s, &s.raw, &s.r.key));
	far_refused(e, WRITE, s.b, 100, &s.r, 0, FI_EACCES, "FI_REMOTE_WRITE");
	far_refused(e, READ, s.b, 2, &s.r, SIZE - 201, FI_EACCES, "past|beyond|outside");
	far_brings(e, s.b, 5, 500, &s.r, SIZE - 700, FILL, SIZE - 600);
	must_ok(fi_mr_unmap_key(s.f->domain, s.r.key));
	scene_close(&s);
}

/* Refused with a line, and nothing is mapped. */
static void not_mapped(struct scene *s, struct raw *raw, const char *what)
{
	uint64_t key = 77;
	int rc;

	log_mark();
	rc = map(s, raw, &key);
	must(rc == -FI_EINVAL || rc == -FI_ENOSYS || rc == -FI_EKEYREJECTED,
	     "%s: fi_mr_map_raw: %d", what, rc);
	must(key == 77, "%s: a key was written", what);
	must(log_has("MRF-E"), "%s: no line says why", what);
}

CASE(damaged_raw_keys_are_refused)
{
	struct scene s;
	struct raw bad;
	char what[40];

	scene_open(&s, e, target(e));
	for (size_t i = 0; i < s.raw.size; i++) {
		bad = s.raw;
		bad.bytes[i] ^= (uint8_t)(1 << i % 8);
		snprintf(what, sizeof(what), "byte %zu changed", i);
		not_mapped(&s, &bad, what);
	}
	for (size_t n = 0; n < s.raw.size; n += 7) {
		bad = s.raw;
		bad.size = n;
		snprintf(what, sizeof(what), "%zu bytes", n);
		not_mapped(&s, &bad, what);
	}
	bad = s.raw;
	bad.base += 8;
	not_mapped(&s, &bad, "another base");
	memset(bad.bytes, 0, sizeof(bad.bytes));
	bad.base = s.raw.base;
	not_mapped(&s, &bad, "zeros");
	/* As who passes on buffers of mr_key_size does it: what follows does not count. */
	if (s.f->bits & FI_MR_RAW)
		s.raw.size = s.f->info->domain_attr->mr_key_size;
	must_ok(map(&s, &s.raw, &s.r.key));
	works(&s);
	must_ok(fi_mr_unmap_key(s.f->domain, s.r.key));
	scene_close(&s);
}

CASE(raw_calls_with_wrong_arguments_are_refused)
{
	struct scene s;
	uint64_t key;

	scene_open(&s, e, target(e));
	must_be(fi_mr_map_raw(s.f->domain, s.raw.base, s.raw.bytes, s.raw.size, &key, 1),
		-FI_EBADFLAGS);
	must_be(fi_mr_map_raw(s.f->domain, s.raw.base, NULL, s.raw.size, &key, 0), -FI_EINVAL);
	must_be(fi_mr_map_raw(s.f->domain, s.raw.base, s.raw.bytes, s.raw.size, NULL, 0),
		-FI_EINVAL);
	scene_close(&s);
}

IN_MODES(SEVERAL & ~(MODE(MODE_ENDPOINT) | MODE(MODE_EVERYTHING)))

/* It names the registration, not the key: the next with that key is another. */
CASE(raw_key_of_a_closed_region_reaches_nothing)
{
	struct region old;
	struct scene s;

	scene_open(&s, e, target(e));
	must_ok(map(&s, &s.raw, &s.r.key));
	works(&s);
	old = s.r;
	peer_unreg(&s.r);
	far_refused(e, WRITE, s.b, 100, &old, 0, FI_EKEYREJECTED, "closed");
	region_open(&s, REMOTE_RW);
	far_refused(e, WRITE, s.b, 100, &old, 0, FI_EKEYREJECTED, "closed");
	far_refused(e, READ, s.b, 100, &old, 0, FI_EKEYREJECTED, "closed");
	far_peek(s.p, s.at, SIZE, FILL, 0);
	must_ok(map(&s, &s.raw, &s.r.key));
	works(&s);
	far_refused(e, WRITE, s.b, 100, &old, 0, FI_EKEYREJECTED, "closed");
	must_ok(fi_mr_unmap_key(s.f->domain, old.key));
	must_ok(fi_mr_unmap_key(s.f->domain, s.r.key));
	scene_close(&s);
}

IN_MODES(SEVERAL)

/* Both have a region with the same requested key at perhaps the same address. */
CASE(raw_keys_of_two_peers_are_kept_apart)
{
	struct scene s[2];
	struct region wrong;

	for (unsigned i = 0; i < 2; i++) {
		scene_open(&s[i], e, peer(e, i));
		must_ok(map(&s[i], &s[i].raw, &s[i].r.key));
	}
	works(&s[0]);
	works(&s[1]);
	wrong = s[0].r;
	wrong.peer = s[1].p;
	far_refused(e, WRITE, s[0].b, 100, &wrong, 0, FI_EKEYREJECTED,
		    "another|other|foreign|not of|unknown|no region|no such");
	far_refused(e, READ, s[0].b, 100, &wrong, 0, FI_EKEYREJECTED,
		    "another|other|foreign|not of|unknown|no region|no such");
	for (unsigned i = 0; i < 2; i++) {
		far_peek(s[i].p, s[i].at, SIZE, FILL, 0);
		works(&s[i]);
		must_ok(fi_mr_unmap_key(s[i].f->domain, s[i].r.key));
		scene_close(&s[i]);
	}
}

CASE(domain_with_mapped_keys_does_not_close)
{
	struct fid_domain *domain;
	struct scene s;
	uint64_t key;

	scene_open(&s, e, target(e));
	must_ok(fi_domain(s.f->fabric, s.f->info, &domain, NULL));
	must_ok(fi_mr_map_raw(domain, s.raw.base, s.raw.bytes, s.raw.size, &key, 0));
	log_mark();
	must_be(fi_close(&domain->fid), -FI_EBUSY);
	must(log_has("mapped"), "the line does not say that keys are mapped");
	must_ok(fi_mr_unmap_key(domain, key));
	must_ok(fi_close(&domain->fid));
	scene_close(&s);
}

/* --- cost -------------------------------------------------------------------------- */

/* Pinned for good: all that an access needs is in the raw key, the target may sleep. */
IN_MODES(MODE(4) | MODE(15) | MODE(MODE_RAW_NATIVE))

CASE(first_access_by_a_mapped_key_asks_nothing)
{
	struct scene warm, s;
	struct op op;
	struct done d;
	bool came;

	scene_open(&warm, e, target(e));
	must_ok(map(&warm, &warm.raw, &warm.r.key));
	works(&warm);
	scene_open(&s, e, target(e));
	must_ok(map(&s, &s.raw, &s.r.key));
	op = op_make(e, WRITE, s.b, 50, 3000, &s.r, 70);
	if (!s.p->pid)
		case_skip("the target is on another host and cannot be stopped");
	kill(s.p->pid, SIGSTOP);
	waitpid(s.p->pid, NULL, WUNTRACED);
	must_ok(op_post(s.f, &op));
	came = fab_done(s.f, &d, SOON);
	kill(s.p->pid, SIGCONT);
	must(came, "the access waits for the target's agent");
	must(!d.err, "err %d, %s", d.err, d.text);
	far_peek(s.p, s.at + 170, 3000, 1, 50);
	works(&s);
	must_ok(fi_mr_unmap_key(s.f->domain, s.r.key));
	must_ok(fi_mr_unmap_key(s.f->domain, warm.r.key));
	scene_close(&s);
	scene_close(&warm);
}

#define MANY 100000

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define PART 2500
#define PARTS (MANY / PART)

/* The best part of a quarter: what disturbs one part is not counted. */
static double best(const double *part, unsigned from)
{
	double least = part[from];

	for (unsigned i = from; i < from + PARTS / 4; i++)
		least = part[i] < least ? part[i] : least;
	return least;
}

static void ratio(const char *what, double first, double last, double limit)
{
	must(last < limit * first, "%s: %.1f ms at first, %.1f ms with %d mapped", what,
	     first * 1e3, last * 1e3, MANY);
}

/* Seconds for some writes. */
static double access_time(struct scene *s, uint64_t key)
{
	struct region r = s->r;
	double t = now_s();

	r.key = key;
	for (int j = 0; j < 30; j++)
		must(!far_access(s->e, WRITE, s->b, 0, 64, &r, 0).err, "refused");
	return now_s() - t;
}

/*
 * The best of some tries of each, of more until they are alike; in turn, so that what else goes
 * on slows down both.
 */
static void access_alike(struct scene *s, uint64_t one, uint64_t other)
{
	double few = 1e9, many = 1e9, t;

	for (int i = 0; i < 100 && (i < 7 || many >= 3 * few); i++) {
		t = access_time(s, one);
		few = t < few ? t : few;
		t = access_time(s, other);
		many = t < many ? t : many;
	}
	ratio("accessing", few, many, 3);
}

static double first(const double *part)
{
	return best(part, 0);
}

static double last(const double *part)
{
	return best(part, PARTS - PARTS / 4);
}

static void map_all(struct scene *s, uint64_t *keys, double *part)
{
	for (unsigned i = 0; i < MANY; i++) {
		double t = now_s();

		must_ok(map(s, &s->raw, &keys[i]));
		part[i / PART] = (i % PART ? part[i / PART] : 0) + now_s() - t;
	}
}

static void unmap_all(struct scene *s, const uint64_t *keys, double *part)
{
	for (unsigned i = 0; i < MANY; i++) {
		double t = now_s();

		must_ok(fi_mr_unmap_key(s->f->domain, keys[(i * 7919ul) % MANY]));
		part[i / PART] = (i % PART ? part[i / PART] : 0) + now_s() - t;
	}
}

IN_MODES(MODE(15) | MODE(MODE_RAW))

/* All of it again when it is not flat: another guest may have begun or ended meanwhile. */
CASE(hundred_thousand_mapped_keys_cost_what_one_does)
{
	static uint64_t keys[MANY];
	double mapping[PARTS], unmapping[PARTS];
	struct scene s;
	int tries = 3;

	scene_open(&s, e, target(e));
	must_ok(map(&s, &s.raw, &s.r.key));
	do {
		map_all(&s, keys, mapping);
		for (unsigned i = 0; i < MANY; i += MANY / 3)
			access_alike(&s, s.r.key, keys[i]);
		unmap_all(&s, keys, unmapping);
	} while (--tries &&
		 !(last(mapping) < 4 * first(mapping) && last(unmapping) < 4 * first(unmapping) &&
		   first(unmapping) < 4 * last(unmapping)));
	ratio("mapping", first(mapping), last(mapping), 4);
	ratio("unmapping", first(unmapping), last(unmapping), 4);
	ratio("unmapping", last(unmapping), first(unmapping), 4);
	works(&s);
	must_ok(fi_mr_unmap_key(s.f->domain, s.r.key));
	scene_close(&s);
}
