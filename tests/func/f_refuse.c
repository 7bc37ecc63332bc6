/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may not be done is not done: the access completes with its error and its reason at
 * the initiator, changes nothing, and harms nobody else.
 */
#include <ctype.h>
#include "harness.h"

#define LEN 5000ul /* of the region that is accessed wrongly, at VICTIM of slot 1 */
#define VICTIM (4096ul + 300)

/* Three processes: this one, the target, a second initiator; all of them may access. */
struct scene {
	struct env *e;
	struct peer *t, *second;
	struct buf *b;
	struct buf *src;    /* what still_works writes; cases may change b */
	struct region good; /* at the target, slot 0 */
	struct region back; /* at the second, slot 1: what the target itself accesses */
	fi_addr_t t_of_second, second_of_t;
	size_t at;    /* next free place in good and back */
	uint64_t key; /* next key to ask for */
};

static void scene_open(struct scene *s, struct env *e)
{
	*s = (struct scene){ .e = e, .t = target(e), .second = peer(e, 1), .key = 1000 };
	s->b = buf(e, 16 * 4096, 1);
	s->src = buf(e, 4096, 6);
	peer_alloc(s->t, 0, 4 * 4096, 2);
	peer_alloc(s->t, 1, 4 * 4096, 3);
	peer_alloc(s->second, 0, 4 * 4096, 4);
	peer_alloc(s->second, 1, 4 * 4096, 5);
	s->good = peer_reg(s->t, 0, 50, 3 * 4096, REMOTE_RW, 1);
	s->back = peer_reg(s->second, 1, 50, 3 * 4096, REMOTE_RW, 2);
	s->t_of_second = peer_insert(s->t, s->second->name, s->second->name_len);
	s->second_of_t = peer_insert(s->second, s->t->name, s->t->name_len);
}

static struct region victim(struct scene *s, uint64_t access)
{
	return peer_reg(s->t, 1, VICTIM, LEN, access, s->key++);
}

/* words: alternatives, separated by bars */
static bool has_word(const char *text, const char *words)
{
	char copy[200], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
		if (strcasestr(text, w))
			return true;
	}
	return false;
}

static bool has_number(const char *text)
{
	while (*text && !isdigit((unsigned char)*text))
		text++;
	return *text;
}

static void check_error(const struct done *d, bool read, int err, const char *words)
{
	must(d->err, "an access that must be refused went through");
	must(d->err == err, "err %d (%s) instead of %d; %s", d->err, fi_strerror(d->err), err,
	     d->text);
	must(d->flags & FI_RMA, "flags 0x%llx without FI_RMA", (unsigned long long)d->flags);
	must(d->flags & (read ? FI_READ : FI_WRITE), "flags 0x%llx of the wrong direction",
	     (unsigned long long)d->flags);
	must(d->prov_errno, "no prov_errno");
	must(has_word(d->text, words), "reason \"%s\" has none of %s", d->text, words);
	must(has_number(d->text), "reason \"%s\" names no value", d->text);
}

/* After a refusal: this process, another initiator and the target itself go on. */
static void still_works(struct scene *s)
{
	struct peer_rma from_second = {
		false, 0, s->at, 40, s->second_of_t, s->good.base + s->at + 40, s->good.key, 1
	};
	struct peer_rma from_target = {
		true,	     0, s->good.off + s->at + 80, 40, s->t_of_second, s->back.base + s->at,
		s->back.key, 1
	};

	access_ok(s->e, WRITE, s->src, s->at, 40, &s->good, s->at);
	must_ok(peer_rma(s->second, &from_second));
	peer_want(s->t, 0, s->good.off + s->at + 40, 40, 4, s->at);
	must_ok(peer_rma(s->t, &from_target));
	peer_want(s->t, 0, s->good.off + s->at + 80, 40, 5, s->back.off + s->at);
	peer_same(s->t, 0);
	s->at += 120;
}

static void refused(struct scene *s, bool read, const struct region *r, uint64_t at, size_t len,
		    int err, const char *words)
{
	struct op op = op_make(s->e, read, s->b, 64, len, r, at);
	struct done d;

	op_run(me(s->e), &op, &d);
	check_error(&d, read, err, words);
	peer_same(s->t, 1);
	peer_same(s->t, 0);
	buf_same(s->b);
}

static void refused_both(struct scene *s, const struct region *r, uint64_t at, size_t len, int err,
			 const char *words)
{
	refused(s, WRITE, r, at, len, err, words);
	refused(s, READ, r, at, len, err, words);
	still_works(s);
}

IN_MODES(MODES_ALL)

CASE(byte_past_the_end_is_refused)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	refused(&s, WRITE, &r, LEN, 1, FI_EACCES, "past|beyond|outside");
	refused(&s, READ, &r, 1, LEN, FI_EACCES, "past|beyond|outside");
	still_works(&s);
	access_ok(e, WRITE, s.b, 0, 1, &r, LEN - 1);
	peer_same(s.t, 1);
}

CASE(unknown_key_is_refused)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	r.key ^= 0x5a;
	refused(&s, WRITE, &r, 0, 100, FI_EKEYREJECTED, "unknown|no region|not a key");
	refused(&s, READ, &r, 0, 100, FI_EKEYREJECTED, "unknown|no region|not a key");
	still_works(&s);
}

IN_MODES(MODES_TWO)

CASE(closed_key_is_refused)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	peer_unreg(&r);
	refused_both(&s, &r, 0, 100, FI_EKEYREJECTED, "closed");
}

CASE(closed_key_that_was_used_is_refused)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	access_ok(e, WRITE, s.b, 0, 100, &r, 10);
	access_ok(e, WRITE, s.b, 0, 100, &r, 1000);
	peer_same(s.t, 1);
	peer_unreg(&r);
	refused_both(&s, &r, 0, 100, FI_EKEYREJECTED, "closed");
}

CASE(guessed_keys_are_refused)
{
	static const uint64_t flip[] = { 1, 0x80, 0x100, 0x10000, 1ull << 31, 1ull << 63 };
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	for (size_t i = 0; i < 6; i++) {
		struct region guess = r;

		guess.key ^= flip[i];
		refused(&s, i % 2, &guess, 0, 100, FI_EKEYREJECTED, "unknown|no region|not a key");
	}
	still_works(&s);
	access_ok(e, WRITE, s.b, 0, 100, &r, 10);
}

CASE(key_of_nothing_registered_is_refused)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = s.good;
	r.key = 0xfeedfacecafef00dull;
	refused_both(&s, &r, 0, 100, FI_EKEYREJECTED, "unknown|no region|not a key");
}

CASE(far_out_is_refused)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	refused_both(&s, &r, LEN + (1ull << 20), 100, FI_EACCES, "past|beyond|outside");
	refused_both(&s, &r, 1ull << 40, 100, FI_EACCES, "past|beyond|outside");
	refused_both(&s, &r, 1ull << 63, 100, FI_EACCES, "past|beyond|outside");
}

/* A range over the end of the 64-bit numbers: refused by the call already, or as any
 * other. */
static void refused_wrapping(struct scene *s, bool read, const struct region *r, uint64_t at,
			     size_t len)
{
	struct op op = op_make(s->e, read, s->b, 64, len, r, at);
	struct done d;
	ssize_t rc = op_post(me(s->e), &op);

	if (rc) {
		must(rc == -FI_EINVAL, "posting: %zd", rc);
		must(log_has("passes the end of the address space"), "no line says why");
	} else {
		must(fab_done(me(s->e), &d, SOON), "no completion");
		check_error(&d, read, FI_EACCES, "before|past|beyond|outside");
	}
	peer_same(s->t, 1);
	buf_same(s->b);
}

/* With virtual addresses that is the byte before the region, else the largest offset of
 * all. */
CASE(before_the_start_is_refused)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	if (r.base) {
		refused(&s, WRITE, &r, UINT64_MAX, 1, FI_EACCES, "before|outside");
		refused(&s, READ, &r, UINT64_MAX, 2, FI_EACCES, "before|outside");
		refused(&s, WRITE, &r, UINT64_MAX - 99, 200, FI_EACCES, "before|outside");
	}
	refused_wrapping(&s, WRITE, &r, UINT64_MAX - r.base, 1);
	refused_wrapping(&s, READ, &r, UINT64_MAX - r.base, 2);
	refused_wrapping(&s, WRITE, &r, UINT64_MAX - r.base - 99, 200);
	still_works(&s);
}

CASE(write_needs_the_right)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, FI_REMOTE_READ);
	refused(&s, WRITE, &r, 0, 100, FI_EACCES, "FI_REMOTE_WRITE");
	access_ok(e, READ, s.b, 4096, 100, &r, 0);
	buf_same(s.b);
	still_works(&s);
}

CASE(read_needs_the_right)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, FI_REMOTE_WRITE);
	refused(&s, READ, &r, 0, 100, FI_EACCES, "FI_REMOTE_READ");
	access_ok(e, WRITE, s.b, 4096, 100, &r, 0);
	peer_same(s.t, 1);
	still_works(&s);
}

/* Local rights beside the remote ones change nothing for a peer. */
CASE(rights_are_exactly_the_registered_ones)
{
	struct scene s;

	scene_open(&s, e);
	for (uint64_t access = 0; access < 8; access++) {
		uint64_t local = access & 4 ? FI_READ | FI_WRITE | FI_SEND | FI_RECV : 0;
		struct region r;

		if (!(access & 3))
			continue;
		r = victim(&s, local | (access & 1 ? FI_REMOTE_READ : 0) |
				       (access & 2 ? FI_REMOTE_WRITE : 0));
		if (access & 1)
			access_ok(e, READ, s.b, 8192, 100, &r, 20);
		else
			refused(&s, READ, &r, 20, 100, FI_EACCES, "FI_REMOTE_READ");
		if (access & 2)
			access_ok(e, WRITE, s.b, 4096, 100, &r, 2000);
		else
			refused(&s, WRITE, &r, 2000, 100, FI_EACCES, "FI_REMOTE_WRITE");
		peer_fill(s.t, 1, 3);
	}
}

CASE(region_without_remote_rights_is_not_reached)
{
	struct scene s;
	struct region r;
	struct done d;
	struct op op;

	scene_open(&s, e);
	must_ok(peer_try_reg(s.t, 1, VICTIM, LEN, FI_READ | FI_WRITE, 5, REG_PLAIN, &r));
	for (int read = 0; read < 2; read++) {
		op = op_make(e, read, s.b, 64, 100, &r, 0);
		op_run(me(e), &op, &d);
		must(d.err == FI_EKEYREJECTED || d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	}
	peer_same(s.t, 1);
	buf_same(s.b);
	still_works(&s);
}

CASE(zero_length_to_a_bad_key_is_refused)
{
	struct scene s;
	struct region r, unknown;

	scene_open(&s, e);
	r = unknown = victim(&s, REMOTE_RW);
	unknown.key ^= 0x5a;
	refused(&s, WRITE, &unknown, 0, 0, FI_EKEYREJECTED, "unknown|no region|not a key");
	refused(&s, READ, &unknown, 0, 0, FI_EKEYREJECTED, "unknown|no region|not a key");
	access_ok(e, WRITE, s.b, 0, 0, &r, 0);
	peer_unreg(&r);
	refused_both(&s, &r, 0, 0, FI_EKEYREJECTED, "closed");
}

CASE(zero_length_out_of_bounds_or_without_the_right_is_refused)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, FI_REMOTE_READ);
	access_ok(e, READ, s.b, 0, 0, &r, LEN);
	refused(&s, READ, &r, LEN + 1, 0, FI_EACCES, "past|beyond|outside");
	refused(&s, WRITE, &r, 0, 0, FI_EACCES, "FI_REMOTE_WRITE");
	still_works(&s);
}

CASE(large_access_past_the_end_moves_nothing)
{
	enum { BIG = 9 * 1024 * 1024 };
	struct scene s;
	struct region r;
	struct buf *b;

	scene_open(&s, e);
	b = buf(e, BIG + 4096, 8);
	s.b = b;
	peer_alloc(s.t, 1, BIG + 3 * 4096, 9);
	r = peer_reg(s.t, 1, 4096, BIG, REMOTE_RW, 88);
	refused(&s, WRITE, &r, 1, BIG, FI_EACCES, "past|beyond|outside");
}

/* --- what stands in line behind a refused operation
 * ------------------------------------- */

struct line {
	unsigned good, bad;
	uintptr_t last_good; /* context */
	uint64_t seen;	     /* contexts, a bit each */
};

/* Takes n completions; each context 1..n once, those in bad (bits) with err. */
static void line_take(struct env *e, unsigned n, uint64_t bad, int err, bool ordered)
{
	struct line l = { 0 };
	struct done d;

	for (unsigned i = 0; i < n; i++) {
		uintptr_t ctx;

		must(fab_done(me(e), &d, SOON), "%u of %u completions", i, n);
		ctx = (uintptr_t)d.ctx;
		must(ctx >= 1 && ctx <= n && !(l.seen >> ctx & 1), "context %lu, seen 0x%lx",
		     (unsigned long)ctx, (unsigned long)l.seen);
		l.seen |= 1ull << ctx;
		if (bad >> ctx & 1) {
			must(d.err == err, "op %lu: err %d, %s", (unsigned long)ctx, d.err, d.text);
			continue;
		}
		must(!d.err, "op %lu: err %d (%s), %s", (unsigned long)ctx, d.err,
		     fi_strerror(d.err), d.text);
		must(!ordered || ctx > l.last_good, "op %lu completed after %lu",
		     (unsigned long)ctx, (unsigned long)l.last_good);
		l.last_good = ctx;
	}
	nap(20);
	fab_quiet(me(e));
}

/* Operation i of a line, its context i + 1. */
static void line_post(struct env *e, bool read, struct buf *b, size_t off, size_t len,
		      const struct region *r, uint64_t at, unsigned i)
{
	struct op op = op_make(e, read, b, off, len, r, at);

	op.ctx = (void *)(uintptr_t)(i + 1);
	must_ok(op_post(me(e), &op));
}

CASE(writes_behind_a_refused_one_are_done_once_in_order)
{
	struct scene s;
	struct region r, bad;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	bad = victim(&s, REMOTE_RW);
	access_ok(e, WRITE, s.b, 0, 8, &bad, 0);
	peer_unreg(&bad);
	for (unsigned i = 0; i < 16; i++) {
		bool is_bad = i == 4;

		line_post(e, WRITE, s.b, i * 300, 290, is_bad ? &bad : &r, i * 200 + 8, i);
		if (!is_bad)
			peer_want(s.t, 1, r.off + i * 200 + 8, 290, 1, i * 300);
	}
	line_take(e, 16, 1u << 5, FI_EKEYREJECTED, true);
	peer_same(s.t, 1);
	still_works(&s);
}

CASE(reads_behind_a_refused_one_are_done_once)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	for (unsigned i = 0; i < 16; i++) {
		bool bad = i == 4;

		line_post(e, READ, s.b, i * 1000, 900, &r, bad ? LEN - 899 : i * 200, i);
		if (!bad)
			buf_want(s.b, i * 1000, 900, 3, r.off + i * 200);
	}
	line_take(e, 16, 1u << 5, FI_EACCES, true);
	buf_same(s.b);
	peer_same(s.t, 1);
	still_works(&s);
}

/* Each read fetches what the write before it has put there. */
CASE(reads_see_the_writes_before_them_around_refused_ones)
{
	struct scene s;
	struct region r, ro;
	uint64_t bad = 0;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	ro = peer_reg(s.t, 1, VICTIM, LEN, FI_REMOTE_READ, 7);
	for (unsigned i = 0; i < 30; i += 3) {
		bool refuse = i % 2;

		line_post(e, WRITE, s.b, i * 100, 200, &r, i * 60, i);
		line_post(e, WRITE, s.b, 9000, 100, refuse ? &ro : &r, i * 60 + 100, i + 1);
		line_post(e, READ, s.b, 16384 + i * 200, 200, &r, i * 60, i + 2);
		buf_want(s.b, 16384 + i * 200, 200, 1, i * 100);
		peer_want(s.t, 1, r.off + i * 60, 200, 1, i * 100);
		bad |= refuse ? 1ull << (i + 2) : 0;
		if (refuse)
			continue;
		buf_want(s.b, 16384 + i * 200 + 100, 100, 1, 9000);
		peer_want(s.t, 1, r.off + i * 60 + 100, 100, 1, 9000);
	}
	line_take(e, 30, bad, FI_EACCES, false);
	buf_same(s.b);
	peer_same(s.t, 1);
	still_works(&s);
}

CASE(refusals_in_a_row_each_get_their_completion)
{
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, REMOTE_RW);
	for (unsigned i = 0; i < 12; i++) {
		bool bad = i < 4 || i == 11;

		line_post(e, WRITE, s.b, i * 300, 200, &r, bad ? LEN : i * 200, i);
		if (!bad)
			peer_want(s.t, 1, r.off + i * 200, 200, 1, i * 300);
	}
	line_take(e, 12, 0x1e | 1u << 12, FI_EACCES, true);
	peer_same(s.t, 1);
	still_works(&s);
}

CASE(refusal_does_not_disturb_another_initiator)
{
	struct peer_rma stream = { false, 0, 0, 60, 0, 0, 0, 200 };
	struct scene s;
	struct region r;

	scene_open(&s, e);
	r = victim(&s, FI_REMOTE_READ);
	stream.to = s.second_of_t;
	stream.addr = s.good.base;
	stream.key = s.good.key;
	peer_rma_start(s.second, &stream);
	for (int i = 0; i < 5; i++) {
		struct op op = op_make(e, WRITE, s.b, 0, 10, &r, 0);
		struct done d;

		op_run(me(e), &op, &d);
		must(d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	}
	must_ok(peer_rma_end(s.second));
	peer_want(s.t, 0, s.good.off, 200 * 60, 4, 0);
	peer_same(s.t, 0);
	peer_same(s.t, 1);
}
