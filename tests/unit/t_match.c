/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching of messages: each promise of match/match.h, and random posts, arrivals,
 * cancels, claims and new labels against lists that are walked.
 *
 *	MRFAB_SEED		another run (1)
 *	MRFAB_MODEL_STEPS	how many steps (100000)
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "match/match.h"
#include "every.h"
#include "no_room.h"
#include "unit.h"

#define ANY MRF_MATCH_ANY
#define UNKNOWN MRF_MATCH_UNKNOWN
#define ALL_BITS UINT64_MAX
#define LOW 0xffull /* bits that some receives ignore */

static struct mrf_match match;
static struct mrf_match_recv recvs[64];
static struct mrf_match_msg msgs[64];
static bool no_random;

bool __real_mrf_random(void *buf, size_t len);
bool __wrap_mrf_random(void *buf, size_t len);

bool __wrap_mrf_random(void *buf, size_t len)
{
	return !no_random && __real_mrf_random(buf, len);
}

static void setup(void)
{
	no_room = no_random = false;
	refusals = 0;
	ck_assert_int_eq(mrf_match_init(&match), 0);
}

static void clear(void)
{
	while (mrf_match_first_recv(&match))
		mrf_match_cancel(&match, mrf_match_first_recv(&match));
	while (mrf_match_first_msg(&match))
		mrf_match_take(&match, mrf_match_first_msg(&match));
	ck_assert_uint_eq(match.recvs, 0);
	ck_assert_uint_eq(match.msgs, 0);
}

static void teardown(void)
{
	clear();
	mrf_match_fini(&match);
}

static void post(unsigned i, uint64_t tag, uint64_t ignore, uint64_t source)
{
	mrf_match_post(&match, &recvs[i], tag, ignore, source);
}

static void keep(unsigned i, uint64_t source, uint64_t tag)
{
	mrf_match_keep(&match, &msgs[i], source, tag);
}

/* Receive i takes it. */
static void must_arrive(uint64_t source, uint64_t tag, unsigned i)
{
	ck_assert_ptr_eq(mrf_match_meet(&match, source, tag), &recvs[i]);
	ck_assert_ptr_eq(mrf_match_arrive(&match, source, tag), &recvs[i]);
}

static void must_not_arrive(uint64_t source, uint64_t tag)
{
	ck_assert_ptr_null(mrf_match_meet(&match, source, tag));
	ck_assert_ptr_null(mrf_match_arrive(&match, source, tag));
}

/* Message i is found, and stays. */
static void must_find(uint64_t tag, uint64_t ignore, uint64_t source, unsigned i)
{
	size_t before = match.msgs;

	ck_assert_ptr_eq(mrf_match_find(&match, tag, ignore, source), &msgs[i]);
	ck_assert_ptr_eq(mrf_match_find(&match, tag, ignore, source), &msgs[i]);
	ck_assert_uint_eq(match.msgs, before);
}

static void must_not_find(uint64_t tag, uint64_t ignore, uint64_t source)
{
	ck_assert_ptr_null(mrf_match_find(&match, tag, ignore, source));
}

/* --- receives ----------------------------------------------------------------------- */

START_TEST(nothing_is_found_where_nothing_is)
{
	must_not_arrive(1, 0);
	must_not_arrive(UNKNOWN, 0);
	must_not_find(0, 0, ANY);
	must_not_find(0, ALL_BITS, ANY);
	must_not_find(0, 0, 1);
	must_not_find(0, ALL_BITS, 1);
	ck_assert_ptr_null(mrf_match_first_recv(&match));
	ck_assert_ptr_null(mrf_match_first_msg(&match));
}
END_TEST

START_TEST(receive_takes_a_message_once)
{
	post(0, 5, 0, ANY);
	ck_assert_uint_eq(match.recvs, 1);
	must_arrive(1, 5, 0);
	ck_assert_uint_eq(match.recvs, 0);
	must_not_arrive(1, 5);
	post(0, 5, 0, ANY);
	must_arrive(2, 5, 0);
}
END_TEST

START_TEST(every_bit_of_a_tag_counts_unless_it_is_ignored)
{
	uint64_t bit = 1ull << _i;

	post(0, 0, 0, ANY);
	must_not_arrive(1, bit);
	keep(0, 1, bit);
	must_not_find(0, 0, ANY);
	must_not_find(0, 0, 1);
	must_not_find(0, ~bit, ANY);
	must_not_find(0, ~bit, 1);
	must_find(0, bit, ANY, 0);
	must_find(0, bit, 1, 0);
	must_arrive(1, 0, 0);
	/*
	 * What a receive says of bits that it ignores does not matter, nor does the
	 * message's.
	 */
	post(1, bit, bit, ANY);
	must_arrive(1, 0, 1);
	post(2, 0, bit, ANY);
	must_arrive(1, bit, 2);
	post(3, ALL_BITS, ~bit, 1);
	must_not_arrive(1, ~bit);
	must_arrive(1, bit, 3);
}
END_TEST

START_TEST(directed_receive_takes_from_its_source_only)
{
	post(0, 5, 0, 1);
	must_not_arrive(2, 5);
	must_not_arrive(1ull << 32 | 1, 5);
	must_not_arrive(UNKNOWN, 5);
	must_arrive(1, 5, 0);
	post(1, 5, LOW, 0);
	must_not_arrive(UNKNOWN, 5);
	must_not_arrive(1, 5);
	must_arrive(0, 6, 1);
}
END_TEST

START_TEST(unknown_source_matches_a_receive_from_any)
{
	post(0, 5, 0, 1);
	post(1, 5, 0, ANY);
	must_arrive(UNKNOWN, 5, 1);
	post(2, 7, LOW, ANY);
	must_arrive(UNKNOWN, 5, 2);
	must_not_arrive(UNKNOWN, 5);
	keep(0, UNKNOWN, 5);
	must_not_find(5, 0, 1);
	must_not_find(5, LOW, 1);
	must_find(5, 0, ANY, 0);
	must_find(5, LOW, ANY, 0);
}
END_TEST

/* Four kinds, all of which the message matches: the order of posting alone decides. */
START_TEST(oldest_receive_takes_it_whether_it_is_directed_or_ignores_bits)
{
	static const struct {
		uint64_t ignore, source;
	} kinds[] = { { 0, ANY }, { 0, 1 }, { LOW, ANY }, { LOW, 1 } };
	unsigned order[] = { (unsigned)_i % 4, (unsigned)_i / 4 % 4, (unsigned)_i / 16 }, i;

	for (i = 0; i < 3; i++)
		post(i, 5, kinds[order[i]].ignore, kinds[order[i]].source);
	for (i = 0; i < 3; i++)
		must_arrive(1, 5, i);
	must_not_arrive(1, 5);
}
END_TEST

START_TEST(canceled_receive_takes_nothing)
{
	post(0, 5, 0, ANY);
	post(1, 5, 0, ANY);
	post(2, 5, 0, ANY);
	mrf_match_cancel(&match, &recvs[1]);
	ck_assert_uint_eq(match.recvs, 2);
	must_arrive(1, 5, 0);
	must_arrive(1, 5, 2);
	must_not_arrive(1, 5);
}
END_TEST

START_TEST(receive_that_was_only_met_stays_the_first)
{
	post(0, 5, 0, ANY);
	post(1, 5, 0, ANY);
	ck_assert_ptr_eq(mrf_match_meet(&match, 1, 5), &recvs[0]);
	ck_assert_ptr_eq(mrf_match_meet(&match, 2, 5), &recvs[0]);
	ck_assert_uint_eq(match.recvs, 2);
	mrf_match_cancel(&match, &recvs[0]);
	must_arrive(1, 5, 1);
}
END_TEST

START_TEST(receives_are_walked_in_the_order_of_posting)
{
	struct mrf_match_recv *recv;
	unsigned i = 0;

	/* Of 12 kinds: some of them are in no family. */
	for (i = 0; i < 36; i++)
		post(i, i, 1ull << i % 12, i % 2 ? ANY : 1);
	mrf_match_cancel(&match, &recvs[0]);
	mrf_match_cancel(&match, &recvs[20]);
	i = 1;
	for (recv = mrf_match_first_recv(&match); recv; recv = mrf_match_next_recv(&match, recv)) {
		ck_assert_ptr_eq(recv, &recvs[i]);
		i += i == 19 ? 2 : 1;
	}
	ck_assert_uint_eq(i, 36);
}
END_TEST

/* --- many kinds of receives --------------------------------------------------------- */

/* Receives of so many kinds, all of which take a message with tag 0. */
static void post_kinds(unsigned from, unsigned to)
{
	for (; from < to; from++)
		post(from, 0, 1ull << from, ANY);
}

static size_t walked(void)
{
	size_t n = 0;

	mrf_list_each (node, &match.rest)
		n++;
	return n;
}

START_TEST(more_kinds_than_families_are_matched_in_order_too)
{
	unsigned i;

	post_kinds(0, 20);
	ck_assert_uint_eq(walked(), 20 - MRF_MATCH_FAMILIES);
	must_not_arrive(1, 3);
	must_arrive(1, 1ull << 15, 15);
	mrf_match_cancel(&match, &recvs[17]);
	/* Those of the rest have one between them that is in a family. */
	post(20, 0, 1, ANY);
	post(21, 0, 1ull << 21, ANY);
	for (i = 0; i < 22; i++) {
		if (i != 15 && i != 17)
			must_arrive(1, 0, i);
	}
	must_not_arrive(1, 0);
}
END_TEST

START_TEST(rest_looks_at_the_source_too)
{
	post_kinds(0, MRF_MATCH_FAMILIES);
	post(8, 0x1000, LOW, 1);
	post(9, 0x1000, LOW, ANY);
	ck_assert_uint_eq(walked(), 2);
	must_arrive(UNKNOWN, 0x1001, 9);
	must_not_arrive(2, 0x1002);
	must_arrive(1, 0x1002, 8);
}
END_TEST

START_TEST(empty_family_gives_way_to_another)
{
	post_kinds(0, 10);
	ck_assert_uint_eq(walked(), 2);
	must_arrive(1, 1ull << 4, 4);
	post(10, 0, 1ull << 10, ANY);
	ck_assert_uint_eq(walked(), 2);
	/* The kind that was there before has to be walked now. */
	post(4, 0, 1ull << 4, ANY);
	ck_assert_uint_eq(walked(), 3);
	must_arrive(1, 1ull << 4, 4);
	must_arrive(1, 1ull << 10, 10);
	/* The 8 kinds come and go, one at a time: nothing has to be walked. */
	clear();
	for (unsigned i = 0; i < 40; i++) {
		post_kinds(i, i + 1);
		ck_assert_uint_eq(walked(), 0);
		must_arrive(1, 1ull << i, i);
	}
}
END_TEST

/* A kind that is in the rest gets a family: it has receives in both. */
START_TEST(kind_that_is_in_the_rest_and_in_a_family_keeps_its_order)
{
	post_kinds(0, 9);
	ck_assert_uint_eq(walked(), 1);
	mrf_match_cancel(&match, &recvs[3]);
	post(9, 0, 1ull << 8, ANY);
	ck_assert_uint_eq(walked(), 1);
	must_arrive(1, 1ull << 8, 8);
	must_arrive(1, 1ull << 8, 9);
}
END_TEST

/* --- messages ----------------------------------------------------------------------- */

START_TEST(oldest_message_is_found)
{
	keep(0, 1, 5);
	keep(1, 2, 5);
	keep(2, 1, 5);
	keep(3, 1, 6);
	ck_assert_uint_eq(match.msgs, 4);
	must_find(5, 0, ANY, 0);
	must_find(5, 0, 1, 0);
	must_find(5, 0, 2, 1);
	must_find(6, 0, ANY, 3);
	must_find(6, 0, 1, 3);
	must_find(0, ALL_BITS, 2, 1);
	must_find(0, ALL_BITS, ANY, 0);
	must_find(6, 1, 1, 3);
	must_not_find(6, 0, 2);
	must_not_find(7, 0, ANY);
	must_not_find(0x15, LOW >> 4, 1);
	mrf_match_take(&match, &msgs[0]);
	ck_assert_uint_eq(match.msgs, 3);
	must_find(5, 0, ANY, 1);
	must_find(5, 0, 1, 2);
	must_find(0, ALL_BITS, ANY, 1);
	must_find(0, ALL_BITS, 1, 2);
	mrf_match_take(&match, &msgs[1]);
	must_find(5, 0, ANY, 2);
	must_not_find(5, 0, 2);
	must_not_find(0, ALL_BITS, 2);
}
END_TEST

/*
 * Withdrawn, or claimed by a receive that ignores the tag: from the middle of all orders.
 */
START_TEST(message_is_taken_from_the_middle)
{
	struct mrf_match_msg *msg;

	keep(0, 1, 5);
	keep(1, 1, 5);
	keep(2, 1, 5);
	mrf_match_take(&match, &msgs[1]);
	msg = mrf_match_first_msg(&match);
	ck_assert_ptr_eq(msg, &msgs[0]);
	msg = mrf_match_next_msg(&match, msg);
	ck_assert_ptr_eq(msg, &msgs[2]);
	ck_assert_ptr_null(mrf_match_next_msg(&match, msg));
	mrf_match_take(&match, &msgs[0]);
	must_find(5, 0, 1, 2);
	must_find(5, 0, ANY, 2);
	must_find(5, LOW, 1, 2);
}
END_TEST

START_TEST(owner_reads_source_and_tag_of_a_message)
{
	keep(0, 7, 0x123456789abcdefull);
	ck_assert_uint_eq(msgs[0].item.source, 7);
	ck_assert_uint_eq(msgs[0].item.tag, 0x123456789abcdefull);
	mrf_match_relabel(&match, &msgs[0], UNKNOWN);
	ck_assert_uint_eq(msgs[0].item.source, UNKNOWN);
}
END_TEST

/*
 * libfabric #7425: what came before its sender was inserted matches a directed receive.
 */
START_TEST(message_whose_sender_becomes_known_keeps_its_age)
{
	keep(0, UNKNOWN, 5);
	keep(1, 1, 5);
	keep(2, UNKNOWN, 5);
	keep(3, 1, 5);
	must_find(5, 0, 1, 1);
	mrf_match_relabel(&match, &msgs[0], 1);
	mrf_match_relabel(&match, &msgs[2], 1);
	ck_assert_uint_eq(match.msgs, 4);
	for (unsigned i = 0; i < 4; i++) {
		must_find(5, 0, 1, i);
		must_find(5, LOW, 1, i);
		must_find(5, 0, ANY, i);
		mrf_match_take(&match, &msgs[i]);
	}
}
END_TEST

START_TEST(message_whose_sender_is_removed_matches_receives_from_any_only)
{
	keep(0, 1, 5);
	keep(1, 1, 5);
	mrf_match_relabel(&match, &msgs[0], UNKNOWN);
	must_find(5, 0, 1, 1);
	must_find(5, LOW, 1, 1);
	must_find(5, 0, ANY, 0);
	must_find(5, LOW, ANY, 0);
	mrf_match_relabel(&match, &msgs[1], UNKNOWN);
	must_not_find(5, 0, 1);
	must_not_find(5, LOW, 1);
	/* It comes back under another number. */
	mrf_match_relabel(&match, &msgs[1], 9);
	mrf_match_relabel(&match, &msgs[0], 9);
	must_find(5, 0, 9, 0);
	must_find(5, LOW, 9, 0);
	must_not_find(5, 0, 1);
}
END_TEST

/* --- what fails --------------------------------------------------------------------- */

START_TEST(without_random_numbers_there_is_no_matching)
{
	struct mrf_match other;

	no_random = true;
	ck_assert_int_eq(mrf_match_init(&other), -FI_EIO);
}
END_TEST

#define FLOOD 20000u
#define IGNORED (1ull << 40)

/* As Open MPI asks: each receive ignores a bit. Without a view 200 million would be walked. */
START_TEST(many_messages_are_found_by_receives_that_ignore_bits)
{
	struct mrf_match_msg *flood = calloc(FLOOD, sizeof(*flood)), *got;
	uint64_t from = _i ? ANY : 3;
	unsigned i;

	for (i = 0; i < FLOOD; i++)
		mrf_match_keep(&match, &flood[i], 3, i % 2 ? i : i | IGNORED);
	for (i = FLOOD; i-- > 0;) {
		got = mrf_match_find(&match, i, IGNORED, from);
		ck_assert_ptr_eq(got, &flood[i]);
		mrf_match_take(&match, got);
		ck_assert_uint_le(match.walked, 2 * FLOOD + MRF_MATCH_WALK);
		ck_assert_uint_le(match.views, 1);
	}
	/* With the last one the view goes, and costs nothing any more. */
	ck_assert_uint_eq(match.views, 0);
	free(flood);
}
END_TEST

/* Who asks in more ways than there are views makes them again, but not for each message. */
START_TEST(views_give_way_to_one_another)
{
	static const uint64_t masks[] = { 1ull << 40, 1ull << 41, 1ull << 42, 1ull << 43 };
	struct mrf_match_msg *flood = calloc(FLOOD, sizeof(*flood)), *got;
	unsigned i;

	for (i = 0; i < FLOOD; i++)
		mrf_match_keep(&match, &flood[i], 3, i);
	for (i = FLOOD; i-- > FLOOD - 400;) {
		got = mrf_match_find(&match, i, masks[i / 20 % 4], 3);
		ck_assert_ptr_eq(got, &flood[i]);
		mrf_match_take(&match, got);
	}
	ck_assert_uint_eq(match.views, MRF_MATCH_VIEWS);
	for (i = 0; i < FLOOD - 400; i++)
		mrf_match_take(&match, &flood[i]);
	free(flood);
}
END_TEST

/* --- against lists that are walked -------------------------------------------------- */

#define MOST 160u

struct model_recv {
	struct mrf_match_recv recv;
	uint64_t tag, ignore, source;
};

struct model_msg {
	struct mrf_match_msg msg;
	uint64_t source, tag;
};

static struct model_recv *posted[MOST]; /* in the order of posting */
static struct model_msg *kept[MOST];	/* in the order of coming */
static unsigned posts, keeps;

/* Few tags and sources meet often; many kinds of receives need the rest. */
static struct setting {
	unsigned tags, masks, sources;
	unsigned receives; /* of 16 steps that are posts or messages, so many are posts */
} settings[] = { { 1, 1, 3, 8 }, { 4, 1, 3, 7 }, { 4, 2, 4, 9 },    { 6, 4, 2, 8 },
		 { 8, 8, 3, 9 }, { 8, 8, 5, 7 }, { 300, 2, 40, 8 }, { 300, 1, 40, 9 } };
static const struct setting *now;

static unsigned upto(unsigned below)
{
	return (unsigned)random() % below;
}

static uint64_t any_tag(void)
{
	uint64_t n = upto(now->tags);

	return n << 62 | n >> 2;
}

static uint64_t any_ignore(void)
{
	static const uint64_t masks[] = { 0, 3ull << 62, ALL_BITS,   1,
					  2, ~1ull,	 1ull << 62, 1ull << 63 };

	return masks[upto(now->masks)];
}

/* MRF_MATCH_ANY, or unknown, now and then. */
static uint64_t any_source(void)
{
	return upto(3) ? upto(now->sources) : ANY;
}

static bool fits(const struct model_recv *recv, const struct model_msg *msg)
{
	return (recv->tag | recv->ignore) == (msg->tag | recv->ignore) &&
	       (recv->source == ANY || recv->source == msg->source);
}

static void forget(void *array[], unsigned *count, unsigned i)
{
	memmove(&array[i], &array[i + 1], (--*count - i) * sizeof(array[0]));
}

static void forget_recv(unsigned i)
{
	free(posted[i]);
	forget((void **)posted, &posts, i);
}

static void forget_msg(unsigned i)
{
	free(kept[i]);
	forget((void **)kept, &keeps, i);
}

/* The number of the receive that takes it, or posts. */
static unsigned taker_of(const struct model_msg *msg)
{
	unsigned i;

	for (i = 0; i < posts && !fits(posted[i], msg); i++)
		;
	return i;
}

static unsigned taken_by(const struct model_recv *recv)
{
	unsigned i;

	for (i = 0; i < keeps && !fits(recv, kept[i]); i++)
		;
	return i;
}

/* Whichever way it is asked. True: it was taken. */
static bool meets_a_receive(const struct model_msg *msg)
{
	unsigned i = taker_of(msg);
	struct mrf_match_recv *want = i < posts ? &posted[i]->recv : NULL;

	ck_assert_ptr_eq(mrf_match_meet(&match, msg->source, msg->tag), want);
	if (want && upto(2))
		mrf_match_cancel(&match, want);
	else
		ck_assert_ptr_eq(mrf_match_arrive(&match, msg->source, msg->tag), want);
	if (want)
		forget_recv(i);
	return want;
}

static void step_message(void)
{
	struct model_msg *msg = malloc(sizeof(*msg));

	msg->source = any_source();
	msg->tag = any_tag();
	if (meets_a_receive(msg) || keeps == MOST) {
		free(msg);
		return;
	}
	roomless(mrf_match_keep(&match, &msg->msg, msg->source, msg->tag));
	kept[keeps++] = msg;
}

static void step_receive(void)
{
	struct model_recv *recv = malloc(sizeof(*recv));
	struct mrf_match_msg *got;
	unsigned i;

	recv->tag = any_tag();
	recv->ignore = any_ignore();
	recv->source = any_source();
	i = taken_by(recv);
	got = mrf_match_find(&match, recv->tag, recv->ignore, recv->source);
	ck_assert_ptr_eq(got, i < keeps ? &kept[i]->msg : NULL);
	if (got || posts == MOST) {
		free(recv);
		if (got && upto(4)) { /* else it was a peek */
			mrf_match_take(&match, got);
			forget_msg(i);
		}
		return;
	}
	roomless(mrf_match_post(&match, &recv->recv, recv->tag, recv->ignore, recv->source));
	posted[posts++] = recv;
}

static void step_cancel(void)
{
	unsigned i = posts ? upto(posts) : 0;

	if (!posts)
		return;
	mrf_match_cancel(&match, &posted[i]->recv);
	forget_recv(i);
}

static void step_withdraw(void)
{
	unsigned i = keeps ? upto(keeps) : 0;

	if (!keeps)
		return;
	mrf_match_take(&match, &kept[i]->msg);
	forget_msg(i);
}

static void step_relabel(void)
{
	unsigned i = keeps ? upto(keeps) : 0;

	if (!keeps)
		return;
	kept[i]->source = any_source();
	roomless(mrf_match_relabel(&match, &kept[i]->msg, kept[i]->source));
	if (meets_a_receive(kept[i])) {
		mrf_match_take(&match, &kept[i]->msg);
		forget_msg(i);
	}
}

static void compare_all(void)
{
	struct mrf_match_recv *recv = mrf_match_first_recv(&match);
	struct mrf_match_msg *msg = mrf_match_first_msg(&match);
	unsigned i;

	ck_assert_uint_eq(match.recvs, posts);
	ck_assert_uint_eq(match.msgs, keeps);
	for (i = 0; i < posts; i++, recv = mrf_match_next_recv(&match, recv))
		ck_assert_ptr_eq(recv, &posted[i]->recv);
	ck_assert_ptr_null(recv);
	for (i = 0; i < keeps; i++, msg = mrf_match_next_msg(&match, msg))
		ck_assert_ptr_eq(msg, &kept[i]->msg);
	ck_assert_ptr_null(msg);
}

static void step(void)
{
	switch (upto(16)) {
	case 0:
		step_cancel();
		break;
	case 1:
		step_withdraw();
		break;
	case 2:
	case 3:
		step_relabel();
		break;
	default:
		if (upto(16) < now->receives)
			step_receive();
		else
			step_message();
	}
}

START_TEST(it_agrees_with_lists_that_are_walked)
{
	unsigned i, settled = MRF_ARRAY_SIZE(settings);
	unsigned steps = every_number("MRFAB_MODEL_STEPS", 100000) / settled;

	srandom(every_number("MRFAB_SEED", 1) * settled + (unsigned)_i);
	now = &settings[_i];
	for (i = 0; i < steps; i++) {
		no_room = i / 1000 % 3 == 0;
		step();
		if (i % 97 == 0)
			compare_all();
	}
	compare_all();
	ck_assert(refusals || now->tags < 300);
	while (posts)
		step_cancel();
	while (keeps)
		step_withdraw();
}
END_TEST

static TCase *tcase_receives(void)
{
	TCase *tcase = tcase_create("receives");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, nothing_is_found_where_nothing_is);
	tcase_add_test(tcase, receive_takes_a_message_once);
	tcase_add_loop_test(tcase, every_bit_of_a_tag_counts_unless_it_is_ignored, 0, 64);
	tcase_add_test(tcase, directed_receive_takes_from_its_source_only);
	tcase_add_test(tcase, unknown_source_matches_a_receive_from_any);
	tcase_add_loop_test(tcase, oldest_receive_takes_it_whether_it_is_directed_or_ignores_bits,
			    0, 64);
	tcase_add_test(tcase, canceled_receive_takes_nothing);
	tcase_add_test(tcase, receive_that_was_only_met_stays_the_first);
	tcase_add_test(tcase, receives_are_walked_in_the_order_of_posting);
	tcase_add_test(tcase, more_kinds_than_families_are_matched_in_order_too);
	tcase_add_test(tcase, rest_looks_at_the_source_too);
	tcase_add_test(tcase, empty_family_gives_way_to_another);
	tcase_add_test(tcase, kind_that_is_in_the_rest_and_in_a_family_keeps_its_order);
	return tcase;
}

static TCase *tcase_messages(void)
{
	TCase *tcase = tcase_create("messages");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, oldest_message_is_found);
	tcase_add_test(tcase, message_is_taken_from_the_middle);
	tcase_add_loop_test(tcase, many_messages_are_found_by_receives_that_ignore_bits, 0, 2);
	tcase_add_test(tcase, views_give_way_to_one_another);
	tcase_add_test(tcase, owner_reads_source_and_tag_of_a_message);
	tcase_add_test(tcase, message_whose_sender_becomes_known_keeps_its_age);
	tcase_add_test(tcase, message_whose_sender_is_removed_matches_receives_from_any_only);
	tcase_add_test(tcase, without_random_numbers_there_is_no_matching);
	return tcase;
}

static TCase *tcase_model(void)
{
	TCase *tcase = tcase_create("model");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, it_agrees_with_lists_that_are_walked, 0,
			    MRF_ARRAY_SIZE(settings));
	return tcase;
}

UNIT_MAIN("match", tcase_receives, tcase_messages, tcase_model)
