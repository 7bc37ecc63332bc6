/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every cell of the table of ep/model/fate.h: each rule below looks at all of them, and together
 * the rules leave nothing open.
 */
#include "ep/model/fate.h"
#include "unit.h"

static const char *const causes[MRF_CAUSES] = {
	[MRF_WC_FLUSHED] = "flushed", [MRF_WC_REFUSED] = "refused", [MRF_WC_LOCAL] = "local",
	[MRF_WC_UNSENT] = "unsent",   [MRF_WC_TIMEOUT] = "timeout", [MRF_WC_DENIED] = "denied",
	[MRF_WC_OTHER] = "other",
};

static const char *const places[MRF_STANDINGS] = {
	[MRF_AHEAD] = "ahead",
	[MRF_FIRST] = "first",
	[MRF_BEHIND] = "behind",
	[MRF_BEHIND_RAN] = "behind, may have run",
};

#define KINDS 5

static const char *const kinds[KINDS] = {
	[MRF_OP_READ] = "read",	   [MRF_OP_WRITE] = "write",
	[MRF_OP_RPC] = "request",  [MRF_OP_ATOMIC] = "atomic operation",
	[MRF_OP_SEND] = "message",
};

/* What is asked, and what the answer is. */
struct cell {
	enum mrf_wc_status cause;
	enum mrf_standing stood;
	enum mrf_op_kind kind;
	bool asks, tries;
	struct mrf_fate fate;
};

/* --- what can be said of a cell without the table ----------------------------------------- */

/* The target, or this side's device, did nothing behind the culprit unless it was sent before. */
static bool stops(const struct cell *c)
{
	return c->cause == MRF_WC_REFUSED || c->cause == MRF_WC_LOCAL || c->cause == MRF_WC_UNSENT;
}

static bool is_behind(const struct cell *c)
{
	return c->stood == MRF_BEHIND || c->stood == MRF_BEHIND_RAN;
}

/* A target that refuses has not done it. Nor has a device that could not send it, but see stops. */
static bool may_have_run(const struct cell *c)
{
	if (c->stood == MRF_FIRST)
		return c->cause != MRF_WC_REFUSED;
	return !stops(c) || c->stood != MRF_BEHIND;
}

/* To it alone the cause says something that would be false of the others. */
static bool is_to_blame(const struct cell *c)
{
	return c->stood == MRF_FIRST && c->kind != MRF_OP_RPC &&
	       !(c->kind == MRF_OP_SEND && c->cause == MRF_WC_REFUSED);
}

/* Messages have no key that a target could refuse. */
static bool is_refused(const struct cell *c)
{
	return c->stood == MRF_FIRST && c->cause == MRF_WC_REFUSED && c->kind != MRF_OP_SEND;
}

static bool is_again(const struct cell *c)
{
	return c->fate.deed == MRF_AGAIN;
}

/* --- the rules ------------------------------------------------------------------------------ */

static bool every_cell_says_one_of_three(const struct cell *c)
{
	return c->fate.deed == MRF_AGAIN || c->fate.deed == MRF_ASK || c->fate.deed == MRF_FATAL;
}

/* A read may run as often as it likes. */
static bool what_may_have_run_is_not_posted_again(const struct cell *c)
{
	return c->kind == MRF_OP_READ || !may_have_run(c) || !is_again(c);
}

static bool what_was_refused_is_posted_again(const struct cell *c)
{
	return !is_refused(c) || is_again(c);
}

static bool what_is_behind_one_that_stopped_there_is_posted_again(const struct cell *c)
{
	return !stops(c) || c->stood != MRF_BEHIND || is_again(c);
}

/* Without its own buffer, or against the kernel, it would never get on. */
static bool read_is_posted_again_while_it_has_tries(const struct cell *c)
{
	bool never =
		c->cause == MRF_WC_DENIED || (c->cause == MRF_WC_LOCAL && c->stood == MRF_FIRST);

	if (c->kind != MRF_OP_READ)
		return true;
	return never ? c->fate.deed == MRF_FATAL : !c->tries || is_again(c);
}

/* It may be what breaks each connection. One that stands behind the culprit is not. */
static bool read_without_tries_fails_unless_it_was_refused_or_another_stopped(const struct cell *c)
{
	bool innocent = is_refused(c) || (stops(c) && is_behind(c));

	return c->kind != MRF_OP_READ || c->tries || innocent || c->fate.deed == MRF_FATAL;
}

static bool reads_and_requests_are_never_in_doubt(const struct cell *c)
{
	return (c->kind != MRF_OP_READ && c->kind != MRF_OP_RPC) || c->fate.deed != MRF_ASK;
}

static bool nobody_is_asked_who_cannot_be(const struct cell *c)
{
	return c->asks || c->fate.deed != MRF_ASK;
}

static bool write_or_atomic(const struct cell *c)
{
	return c->kind == MRF_OP_WRITE || c->kind == MRF_OP_ATOMIC;
}

/*
 * Where the peer is likely to be there, and the operation itself is not what breaks connections:
 * not its own buffer, nor a flush each time.
 */
static bool write_that_may_have_run_is_asked_about(const struct cell *c)
{
	bool there = c->cause == MRF_WC_REFUSED || c->cause == MRF_WC_LOCAL ||
		     c->cause == MRF_WC_FLUSHED || c->cause == MRF_WC_TIMEOUT;
	bool itself = (c->cause != MRF_WC_FLUSHED && c->stood == MRF_FIRST) ||
		      (c->cause == MRF_WC_FLUSHED && !c->tries);

	if (!write_or_atomic(c) || !may_have_run(c) || !c->asks)
		return true;
	return c->fate.deed == (there && !itself ? MRF_ASK : MRF_FATAL);
}

/* Unless its own buffer was closed, or the kernel takes nothing. */
static bool message_that_may_have_been_sent_is_asked_about(const struct cell *c)
{
	bool hopeless =
		c->cause == MRF_WC_DENIED || (c->cause == MRF_WC_LOCAL && c->stood == MRF_FIRST);
	bool sent = !stops(c) || c->stood != MRF_BEHIND;

	if (c->kind != MRF_OP_SEND || !sent || !c->asks)
		return true;
	return c->fate.deed == (hopeless ? MRF_FATAL : MRF_ASK);
}

static bool request_that_may_have_been_seen_fails(const struct cell *c)
{
	return c->kind != MRF_OP_RPC || !may_have_run(c) || c->fate.deed == MRF_FATAL;
}

/*
 * Another's refusal, and another's buffer, is not what this one did wrong. Who refuses a message is
 * about to end.
 */
static bool error_is_the_real_cause(const struct cell *c)
{
	bool blames = c->cause == MRF_WC_REFUSED || c->cause == MRF_WC_LOCAL;
	bool ends = c->cause == MRF_WC_REFUSED && c->stood == MRF_FIRST && c->kind == MRF_OP_SEND;

	if (is_again(c))
		return true;
	if (ends)
		return c->fate.status == MRF_WC_FLUSHED;
	return c->fate.status == (blames && !is_to_blame(c) ? MRF_WC_OTHER : c->cause);
}

static bool doubt_blames_no_local_buffer(const struct cell *c)
{
	return c->fate.deed != MRF_ASK || c->fate.status != MRF_WC_LOCAL;
}

/* A read that the culprit only had ahead of it finds its key as it was. */
static bool key_is_asked_about_anew_where_it_may_be_at_fault(const struct cell *c)
{
	bool read = c->kind == MRF_OP_READ && !(stops(c) && is_behind(c));

	if (!is_again(c))
		return !c->fate.anew;
	return c->fate.anew == (read || (is_refused(c) && c->kind != MRF_OP_RPC));
}

static bool only_a_refusal_counts_as_one(const struct cell *c)
{
	return c->fate.refused == is_refused(c);
}

static bool all_are_alone_after_a_flush(const struct cell *c)
{
	return c->fate.alone == (c->cause == MRF_WC_FLUSHED);
}

/* What is first, or ahead of the first that is known; after a flush nobody knows who it was. */
static bool try_counts_for_what_may_be_at_fault(const struct cell *c)
{
	bool first =
		c->stood == MRF_FIRST && c->cause != MRF_WC_REFUSED && c->cause != MRF_WC_LOCAL;
	bool may = first || c->stood == MRF_AHEAD || c->cause == MRF_WC_FLUSHED;

	return c->fate.counts == (may && c->cause != MRF_WC_DENIED);
}

#define RULE(name)          \
	{                   \
#name, name \
	}

static const struct {
	const char *name;
	bool (*holds)(const struct cell *c);
} rules[] = {
	RULE(every_cell_says_one_of_three),
	RULE(what_may_have_run_is_not_posted_again),
	RULE(what_was_refused_is_posted_again),
	RULE(what_is_behind_one_that_stopped_there_is_posted_again),
	RULE(read_is_posted_again_while_it_has_tries),
	RULE(read_without_tries_fails_unless_it_was_refused_or_another_stopped),
	RULE(reads_and_requests_are_never_in_doubt),
	RULE(nobody_is_asked_who_cannot_be),
	RULE(write_that_may_have_run_is_asked_about),
	RULE(message_that_may_have_been_sent_is_asked_about),
	RULE(request_that_may_have_been_seen_fails),
	RULE(error_is_the_real_cause),
	RULE(doubt_blames_no_local_buffer),
	RULE(key_is_asked_about_anew_where_it_may_be_at_fault),
	RULE(only_a_refusal_counts_as_one),
	RULE(all_are_alone_after_a_flush),
	RULE(try_counts_for_what_may_be_at_fault),
};

/* --- the walk ----------------------------------------------------------------------------- */

static void look(struct cell *c)
{
	c->fate = mrf_fate(c->cause, c->stood, c->kind, c->asks, c->tries);
	for (size_t i = 0; i < MRF_ARRAY_SIZE(rules); i++)
		ck_assert_msg(rules[i].holds(c),
			      "%s; %s; %s; the target %s be asked; %s left: deed %d, status %d, "
			      "anew %d, refused %d, alone %d, counts %d: not so: %s",
			      causes[c->cause], places[c->stood], kinds[c->kind],
			      c->asks ? "can" : "cannot", c->tries ? "tries are" : "no try is",
			      c->fate.deed, c->fate.status, c->fate.anew, c->fate.refused,
			      c->fate.alone, c->fate.counts, rules[i].name);
}

START_TEST(every_cell_keeps_every_rule)
{
	unsigned place, kind, facts;

	ck_assert_ptr_nonnull(causes[_i]);
	for (place = 0; place < MRF_STANDINGS; place++) {
		for (kind = 0; kind < KINDS; kind++) {
			for (facts = 0; facts < 4; facts++)
				look(&(struct cell){ .cause = (enum mrf_wc_status)_i,
						     .stood = (enum mrf_standing)place,
						     .kind = (enum mrf_op_kind)kind,
						     .asks = facts & 1,
						     .tries = facts & 2 });
		}
	}
}
END_TEST

static TCase *table(void)
{
	TCase *tc = tcase_create("table");

	tcase_add_loop_test(tc, every_cell_keeps_every_rule, MRF_WC_OK + 1, MRF_CAUSES);
	return tc;
}

UNIT_MAIN("fate", table)
