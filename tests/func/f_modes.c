/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every mode: all 256 sets of the eight bits that a provider may require, FI_MR_BASIC and
 * FI_MR_SCALABLE. One pair of processes takes all of them, one after the other; a case is
 * a mode. In each: open, register, do what the mode demands, exchange keys, access, be
 * refused what the mode refuses, close.
 *
 * A case prints a line "modes: | name | result of each step |"; docs/MODES.md is made of
 * these (scripts/check-modes). MRFAB_FUNC_SHARE=even, odd or quick takes some of them.
 */
#include <inttypes.h>
#include <unistd.h>
#include "harness.h"

#define SETS 256
#define ALL (SETS + 2) /* and BASIC, SCALABLE */

#define LEN 9000ul
#define OFF (PAGE + 77) /* of the region in its slot, neither end on a page's */
#define LATE (2 * PAGE) /* in its slot, inside of the region: a page that has no memory at first */

enum step {
	INFO,
	OPEN,
	REGISTER,
	EVENT_FLAG,
	NO_MEMORY,
	BIND,
	BEFORE_ENABLE,
	ENABLE,
	BEFORE_REFRESH,
	REFRESH,
	KEY,
	WRITES,
	READS,
	RAW_KEY,
	KEY_ITSELF,
	NO_DESC,
	RIGHT,
	BOUNDS,
	CLOSED,
	CLOSE,
	STEPS
};

static const char *const step_names[STEPS] = {
	[INFO] = "fi_getinfo",
	[OPEN] = "open",
	[REGISTER] = "register",
	[EVENT_FLAG] = "with FI_RMA_EVENT",
	[NO_MEMORY] = "without memory",
	[BIND] = "bind to endpoint",
	[BEFORE_ENABLE] = "use before enable",
	[ENABLE] = "enable",
	[BEFORE_REFRESH] = "use before refresh",
	[REFRESH] = "refresh",
	[KEY] = "key",
	[WRITES] = "write",
	[READS] = "read",
	[RAW_KEY] = "mapped raw key",
	[KEY_ITSELF] = "key not mapped",
	[NO_DESC] = "no descriptor",
	[RIGHT] = "no right",
	[BOUNDS] = "out of bounds",
	[CLOSED] = "closed region",
	[CLOSE] = "close all",
};

static const char *const bit_names[] = { "LOCAL",    "RAW",	   "VIRT_ADDR", "ALLOCATED",
					 "PROV_KEY", "MMU_NOTIFY", "RMA_EVENT", "ENDPOINT" };

struct scene {
	struct env *e;
	struct mode mode;
	int bits; /* what must come back, and be in force */
	struct fab fab;
	struct peer *p;
	struct buf b;
	struct region r;
	const char *cell[STEPS];
};

/* --- the modes --------------------------------------------------------------------- */

/* The bits from FI_MR_LOCAL on are one after the other. */
static int bits_of(unsigned number)
{
	return (int)(number << 2);
}

static const char *mode_name(unsigned number)
{
	static char text[160];

	if (number >= SETS)
		return number == SETS ? "BASIC" : "SCALABLE";
	snprintf(text, sizeof(text), "%s", number ? "" : "0");
	for (int i = 0; i < 8; i++) {
		if (!(number >> i & 1))
			continue;
		if (*text)
			strcat(text, "+");
		strcat(text, bit_names[i]);
	}
	return text;
}

/* Both modes of before API 1.5 are what the default contract gives to who asks. */
static struct mode mode_make(unsigned number)
{
	static char name[160];

	if (number >= SETS)
		return modes[NASKED - 2 + number - SETS];
	snprintf(name, sizeof(name), "%s", mode_name(number));
	return (struct mode){ name, FI_VERSION(1, 17), MR_BITS, name, 0 };
}

static bool wanted(unsigned number)
{
	const char *share = getenv("MRFAB_FUNC_SHARE");
	int n = __builtin_popcount(number);
	bool native = bits_of(number) ==
		      (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);

	if (!share || !*share || number >= SETS)
		return true;
	if (!strcmp(share, "quick"))
		return n < 2 || n == 8 || native;
	if (!strcmp(share, "even") || !strcmp(share, "odd"))
		return n < 2 || n == 8 || native || n % 2 == (*share == 'o');
	return true;
}

/* --- steps ------------------------------------------------------------------------- */

static bool has(const struct scene *s, int bits)
{
	return (s->bits & bits) == bits;
}

/* Nothing is pinned when it is registered. */
static bool on_demand(const struct scene *s)
{
	return !has(s, FI_MR_ALLOCATED) || has(s, FI_MR_MMU_NOTIFY);
}

static void step(struct scene *s, enum step step, const char *result)
{
	s->cell[step] = result;
}

static void steps_print(const struct scene *s, unsigned number)
{
	char line[600];
	int n;

	if (!number) {
		fputs("modes: | mode |", stdout);
		for (int i = 0; i < STEPS; i++)
			printf(" %s |", step_names[i]);
		puts("");
	}
	n = snprintf(line, sizeof(line), "modes: | %s |", mode_name(number));
	for (int i = 0; i < STEPS; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %s |",
			      s->cell[i] ? s->cell[i] : "FAIL");
	puts(line);
}

static void open_both(struct scene *s)
{
	static const struct fab_opt usual;
	int expected = s->mode.required ? s->bits : s->mode.hint;
	uint64_t bits;
	int got;

	fab_open(&s->fab, &s->mode, &usual);
	got = s->fab.info->domain_attr->mr_mode & ~fab_placed;
	must(got == expected, "mr_mode 0x%x came back instead of 0x%x", got, expected);
	step(s, INFO, "ok");
	s->p = &s->e->peer[0];
	if (s->p->up)
		peer_reopen(s->p, &s->mode, &usual);
	else
		peer_start(s->p, &s->mode, &usual);
	bits = s->p->bits & ~(uint64_t)fab_placed;
	must(bits == (uint64_t)s->bits, "the peer was granted 0x%lx instead of 0x%x",
	     (unsigned long)bits, s->bits);
	s->p->mapper = &s->fab;
	s->p->addr = fab_insert(&s->fab, s->p->name);
	fab_buf(&s->fab, &s->b, 8 * PAGE, 1);
	step(s, OPEN, "ok");
}

static uint64_t slot_address(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, 4 * PAGE, RW, ANON);

	far_poke(s->p, at, 4 * PAGE, 2, 0);
	/* One that the application has to tell of: see refresh. */
	if (has(s, FI_MR_MMU_NOTIFY) && !has(s, FI_MR_ALLOCATED))
		far_advise(s->p, at + LATE, PAGE, MADV_DONTNEED);
	return at;
}

/* A range with nothing there: the page lets it be registered unless FI_MR_ALLOCATED. */
static void no_memory(struct scene *s)
{
	uint64_t hole = far_hole(4 * PAGE);
	struct region r;
	int rc = far_try_reg(s->p, hole, 4 * PAGE, REMOTE_RW, 71, &r);

	if (has(s, FI_MR_ALLOCATED)) {
		must_be(rc, -FI_EFAULT);
		step(s, NO_MEMORY, "refused");
		return;
	}
	must_ok(rc);
	peer_unreg(&r);
	step(s, NO_MEMORY, "ok");
}

/* The flag makes a disabled region in that mode; it goes through its own life at once. */
static void event_flag(struct scene *s, uint64_t at)
{
	struct iovec iov = { (void *)at, PAGE };
	struct region r;
	bool disabled = has(s, FI_MR_RMA_EVENT) || has(s, FI_MR_ENDPOINT);
	uint64_t key;

	must_ok(far_try_regv(s->p, &iov, 1, REMOTE_RW, 72, FI_RMA_EVENT, &r));
	key = far_key(&r, NULL);
	must((key == FI_KEY_NOTAVAIL) == (disabled || has(s, FI_MR_RAW)),
	     "key %#" PRIx64 " of a region that is%s disabled", key, disabled ? "" : " not");
	if (has(s, FI_MR_ENDPOINT))
		must_ok(far_bind(&r));
	must_ok(far_enable(&r));
	if (has(s, FI_MR_MMU_NOTIFY))
		must_ok(far_refresh(&r, NULL, 0, 0));
	far_take_key(&r);
	far_lands(s->e, &s->b, 0, 100, &r, 10, at + 10);
	far_poke(s->p, at, PAGE, 2, 0);
	peer_unreg(&r);
	step(s, EVENT_FLAG, "ok");
}

static void bind_endpoint(struct scene *s)
{
	int rc = far_bind(&s->r);

	if (has(s, FI_MR_ENDPOINT))
		must_ok(rc);
	else
		must_be(rc, -FI_ENOSYS);
	step(s, BIND, rc ? "refused" : "ok");
}

/* With a key of the application's choice a peer can try; else nobody gets a key. */
static void before_enable(struct scene *s)
{
	struct raw raw = { .size = sizeof(raw.bytes) };
	uint64_t desc;

	must(far_key(&s->r, &desc) == FI_KEY_NOTAVAIL, "a disabled region has a key");
	must(!desc, "a disabled region has a descriptor");
	if (has(s, FI_MR_RAW))
		must(far_raw(&s->r, &raw) < 0, "a disabled region has a raw key");
	s->r.key = 70;
	if (!has(s, FI_MR_RAW) && !has(s, FI_MR_PROV_KEY))
		far_refused(s->e, WRITE, &s->b, 100, &s->r, 0, FI_EACCES, "enabled");
	step(s, BEFORE_ENABLE, "refused");
}

static void enable(struct scene *s)
{
	if (has(s, FI_MR_ENDPOINT))
		before_enable(s);
	else
		step(s, BEFORE_ENABLE, "-");
	must_ok(far_enable(&s->r));
	step(s, ENABLE, "ok");
}

static void key(struct scene *s)
{
	uint64_t key = far_key(&s->r, NULL);

	if (has(s, FI_MR_RAW))
		must(key == FI_KEY_NOTAVAIL, "fi_mr_key is 0x%lx", (unsigned long)key);
	else if (has(s, FI_MR_PROV_KEY))
		must(key && key != FI_KEY_NOTAVAIL, "no key");
	else
		must(key == 70, "key 0x%lx instead of the requested one", (unsigned long)key);
	far_take_key(&s->r);
	step(s, KEY, has(s, FI_MR_RAW) ? "raw" : "ok");
}

/* What was there when it was registered is reached, and what has come since is not. */
static void before_refresh(struct scene *s, uint64_t at)
{
	step(s, BEFORE_REFRESH, "-");
	if (!has(s, FI_MR_MMU_NOTIFY))
		return;
	far_brings(s->e, &s->b, PAGE + 5, 700, &s->r, 0, 2, OFF);
	step(s, BEFORE_REFRESH, "ok");
	if (has(s, FI_MR_ALLOCATED))
		return;
	far_poke(s->p, at + LATE, PAGE, 2, LATE);
	far_refused(s->e, WRITE, &s->b, 100, &s->r, LATE - OFF, FI_EACCES, "refresh");
	step(s, BEFORE_REFRESH, "refused");
}

static void refresh(struct scene *s, uint64_t at)
{
	int rc;

	before_refresh(s, at);
	rc = far_refresh(&s->r, NULL, 0, 0);
	if (on_demand(s))
		must_ok(rc);
	else
		must_be(rc, -FI_ENOSYS);
	step(s, REFRESH, rc ? "refused" : "ok");
}

static void accesses(struct scene *s, uint64_t at)
{
	far_lands(s->e, &s->b, 300, 5000, &s->r, 1000, at + OFF + 1000);
	far_lands(s->e, &s->b, 0, 1, &s->r, LEN - 1, at + OFF + LEN - 1);
	far_peek(s->p, at, OFF + 1000, 2, 0);
	far_peek(s->p, at + OFF + 6000, LEN - 6001, 2, OFF + 6000);
	far_peek(s->p, at + OFF + LEN, 4 * PAGE - OFF - LEN, 2, OFF + LEN);
	step(s, WRITES, "ok");
	far_brings(s->e, &s->b, PAGE + 5, 5000, &s->r, 1000, 1, 300);
	far_brings(s->e, &s->b, PAGE + 5, 700, &s->r, 0, 2, OFF);
	step(s, READS, "ok");
}

/* "safe to use this call with any memory region" */
static void raw_key(struct scene *s)
{
	struct raw raw = { .size = sizeof(raw.bytes) };
	struct region r = s->r;

	must_ok(far_raw(&s->r, &raw));
	must(raw.base == s->r.base, "base 0x%lx in the raw key", (unsigned long)raw.base);
	must_ok(fi_mr_map_raw(s->fab.domain, raw.base, raw.bytes, raw.size, &r.key, 0));
	far_brings(s->e, &s->b, 3, 50, &r, 0, 2, OFF);
	must_ok(fi_mr_unmap_key(s->fab.domain, r.key));
	far_refused(s->e, WRITE, &s->b, 50, &r, 0, FI_EKEYREJECTED, "unmapped|no region");
	step(s, RAW_KEY, "ok");
	step(s, KEY_ITSELF, "-");
	if (!has(s, FI_MR_RAW))
		return;
	r.key = 70;
	far_refused(s->e, WRITE, &s->b, 50, &r, 0, FI_EKEYREJECTED, "map|raw");
	step(s, KEY_ITSELF, "refused");
}

static void no_desc(struct scene *s)
{
	struct buf bare = s->b;
	struct op op;

	step(s, NO_DESC, "-");
	if (!has(s, FI_MR_LOCAL))
		return;
	bare.desc = NULL;
	op = op_make(s->e, WRITE, &bare, 0, 100, &s->r, 0);
	must_be(op_post(&s->fab, &op), -FI_EINVAL);
	step(s, NO_DESC, "refused");
}

/* The rights of another region over the same bytes; the bounds of this one. */
static void limits(struct scene *s, uint64_t at)
{
	struct region ro = far_reg(s->p, at + OFF, LEN, FI_REMOTE_READ, 73);

	far_refused(s->e, WRITE, &s->b, 100, &ro, 0, FI_EACCES, "FI_REMOTE_WRITE");
	far_brings(s->e, &s->b, 9, 90, &ro, 0, 2, OFF);
	peer_unreg(&ro);
	step(s, RIGHT, "refused");
	far_refused(s->e, WRITE, &s->b, 100, &s->r, LEN - 99, FI_EACCES, "past|beyond|outside");
	step(s, BOUNDS, "refused");
	far_peek(s->p, at, OFF + 1000, 2, 0);
	far_peek(s->p, at + OFF + LEN, 4 * PAGE - OFF - LEN, 2, OFF + LEN);
}

static void close_both(struct scene *s, uint64_t at)
{
	peer_unreg(&s->r);
	/* Bound to the endpoint, it closes after that: the peer has nobody to ask then. */
	if (!has(s, FI_MR_ENDPOINT))
		far_refused(s->e, READ, &s->b, 100, &s->r, 0, FI_EKEYREJECTED, "closed");
	far_peek(s->p, at, OFF + 1000, 2, 0);
	step(s, CLOSED, has(s, FI_MR_ENDPOINT) ? "-" : "refused");
	far_unmap(s->p, at, 4 * PAGE);
	fab_quiet(&s->fab);
	fab_buf_close(&s->b);
	fab_close(&s->fab);
	peer_shut(s->p);
	step(s, CLOSE, "ok");
}

static void mode_run(struct scene *s)
{
	uint64_t at;

	open_both(s);
	at = slot_address(s);
	must_ok(far_try_reg(s->p, at + OFF, LEN, REMOTE_RW, 70, &s->r));
	step(s, REGISTER, "ok");
	event_flag(s, at);
	no_memory(s);
	bind_endpoint(s);
	enable(s);
	key(s);
	refresh(s, at);
	accesses(s, at);
	raw_key(s);
	no_desc(s);
	limits(s, at);
	close_both(s, at);
}

/* What a case that fails leaves is printed, too: the worker's last words. */
static struct scene *current;
static pid_t worker;

static void print_unfinished(void)
{
	if (current && getpid() == worker)
		steps_print(current, case_number);
}

/* The mode with nothing set; the others follow under this name and their own. */
IN_MODES(MODES_ONE)

CASE(every_step_goes_as_the_mode_says)
{
	static struct scene s;

	s = (struct scene){ .e = e, .mode = mode_make(case_number) };
	s.bits = case_number < SETS ? bits_of(case_number) : mode_bits(&s.mode);
	current = &s;
	worker = getpid();
	at_failure = print_unfinished;
	mode_run(&s);
	steps_print(&s, case_number);
	current = NULL;
}

static void __attribute__((constructor)) add_modes(void)
{
	static char names[ALL][160];

	case_modes(MODES_ONE);
	for (unsigned i = 1; i < ALL; i++) {
		snprintf(names[i], sizeof(names[i]), "every_step_goes_as_the_mode_says(%s)",
			 mode_name(i));
		if (wanted(i))
			case_add_number(names[i], __FILE__, every_step_goes_as_the_mode_says, i);
	}
}
