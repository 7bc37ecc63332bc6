/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which receive takes which message: the rules one by one, and random sequences beside a
 * reference that keeps two plain arrays.
 */
#include <rdma/fi_errno.h>
#include "match/match.h"
#include "unit.h"

#define ANY FI_ADDR_UNSPEC
#define MANY 64

static struct mrf_match match;
static struct mrf_match_recv recvs[MANY];
static struct mrf_match_message messages[MANY];

static void setup(void)
{
	mrf_match_init(&match);
	memset(recvs, 0, sizeof(recvs));
	memset(messages, 0, sizeof(messages));
}

/* The number of the message that the receive takes; -1: it waits. */
static int post(int n, uint64_t tag, uint64_t ignore, fi_addr_t source)
{
	struct mrf_match_message *message;

	recvs[n].want = (struct mrf_match_want){ tag, ignore, source };
	message = mrf_match_post(&match, &recvs[n]);
	return message ? (int)(message - messages) : -1;
}

/* The number of the receive that the message goes to; -1: it is unexpected. */
static int arrive(int n, uint64_t tag, fi_addr_t source)
{
	struct mrf_match_recv *recv;

	messages[n].tag = tag;
	messages[n].source = source;
	recv = mrf_match_arrive(&match, &messages[n]);
	return recv ? (int)(recv - recvs) : -1;
}

static int peek(uint64_t tag, uint64_t ignore, fi_addr_t source)
{
	const struct mrf_match_want want = { tag, ignore, source };
	struct mrf_match_message *message = mrf_match_peek(&match, &want);

	return message ? (int)(message - messages) : -1;
}

START_TEST(match_is_by_the_bits_of_the_tag_that_count)
{
	static const struct {
		uint64_t want, ignore, sent;
		bool fits;
	} rows[] = {
		{ 5, 0, 5, true },
		{ 5, 0, 4, false },
		{ 5, 1, 4, true },
		{ 4, 1, 5, true },
		{ 5, 1, 7, false },
		{ 0, UINT64_MAX, 0x123456789abcdef0, true },
		{ 1ull << 63, 0, 1ull << 63, true },
		{ 1ull << 63, 0, 0, false },
		{ 1ull << 63, 1ull << 63, 0, true },
		{ 0xff00, 0x00ff, 0xff12, true },
		{ 0xff00, 0x00ff, 0xfe12, false },
	};
	int i, expected;

	for (i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++) {
		expected = rows[i].fits ? 0 : -1;
		setup();
		ck_assert_int_eq(post(0, rows[i].want, rows[i].ignore, ANY), -1);
		ck_assert_int_eq(arrive(0, rows[i].sent, 1), expected);
		setup();
		ck_assert_int_eq(arrive(0, rows[i].sent, 1), -1);
		ck_assert_int_eq(peek(rows[i].want, rows[i].ignore, ANY), expected);
		ck_assert_int_eq(post(0, rows[i].want, rows[i].ignore, ANY), expected);
	}
}
END_TEST

START_TEST(match_is_by_the_source_unless_any_will_do)
{
	ck_assert_int_eq(post(0, 5, 0, 1), -1);
	ck_assert_int_eq(post(1, 5, 0, ANY), -1);
	ck_assert_int_eq(arrive(0, 5, 2), 1);
	ck_assert_int_eq(arrive(1, 5, 2), -1);
	ck_assert_int_eq(arrive(2, 5, 1), 0);
	/* A sender that the address vector does not have. */
	ck_assert_int_eq(arrive(3, 6, FI_ADDR_NOTAVAIL), -1);
	ck_assert_int_eq(post(2, 6, 0, 1), -1);
	ck_assert_int_eq(post(3, 6, 0, ANY), 3);
}
END_TEST

START_TEST(match_takes_receives_and_messages_in_their_order)
{
	int i;

	for (i = 0; i < 8; i++)
		ck_assert_int_eq(post(i, 5, i & 1, ANY), -1);
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(arrive(i, 5, (fi_addr_t)i), i);
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(arrive(i, 5, 1), -1);
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(post(i, 5, i & 1, i & 2 ? 1 : ANY), i);
}
END_TEST

START_TEST(match_leaves_a_multi_receive_posted_until_it_is_withdrawn)
{
	recvs[0].multi = true;
	ck_assert_int_eq(post(0, 5, 0, ANY), -1);
	ck_assert_int_eq(post(1, 5, 0, ANY), -1);
	ck_assert_int_eq(arrive(0, 5, 1), 0);
	ck_assert_int_eq(arrive(1, 5, 1), 0);
	mrf_match_withdraw(&recvs[0]);
	ck_assert_int_eq(arrive(2, 5, 1), 1);
	ck_assert_int_eq(arrive(3, 5, 1), -1);
	ck_assert_int_eq(arrive(4, 5, 1), -1);
	/* One message at a time; posted only when none is left. */
	ck_assert_int_eq(post(0, 5, 0, ANY), 3);
	ck_assert_int_eq(post(0, 5, 0, ANY), 4);
	ck_assert_int_eq(post(0, 5, 0, ANY), -1);
	ck_assert_int_eq(arrive(5, 5, 1), 0);
}
END_TEST

START_TEST(match_peeks_without_taking_and_takes_what_was_claimed)
{
	ck_assert_int_eq(peek(5, 0, ANY), -1);
	ck_assert_int_eq(arrive(0, 5, 1), -1);
	ck_assert_int_eq(arrive(1, 5, 2), -1);
	ck_assert_int_eq(peek(5, 0, ANY), 0);
	ck_assert_int_eq(peek(5, 0, ANY), 0);
	ck_assert_int_eq(peek(5, 0, 2), 1);
	ck_assert_int_eq(peek(6, 0, ANY), -1);
	mrf_match_take(&messages[0]);
	ck_assert_int_eq(peek(5, 0, ANY), 1);
	ck_assert_int_eq(post(0, 5, 0, ANY), 1);
	ck_assert_int_eq(post(1, 5, 0, ANY), -1);
	/* A receive that was canceled takes nothing, and canceling it again harms nobody. */
	mrf_match_withdraw(&recvs[1]);
	mrf_match_withdraw(&recvs[1]);
	ck_assert_int_eq(arrive(2, 5, 1), -1);
}
END_TEST

/* --- beside a reference ----------------------------------------------------------------- */

/* Numbers of what waits, in its order. */
struct queue {
	int at[MANY];
	int used;
};

static struct queue posted, unexpected;
static bool busy_recv[MANY], busy_message[MANY];

static void queue_del(struct queue *queue, int i)
{
	memmove(&queue->at[i], &queue->at[i + 1], sizeof(int) * (size_t)(--queue->used - i));
}

static bool fits(int recv, int message)
{
	const struct mrf_match_want *want = &recvs[recv].want;

	return ((want->tag ^ messages[message].tag) & ~want->ignore) == 0 &&
	       (want->source == ANY || want->source == messages[message].source);
}

static int pick_idle(const bool *busy)
{
	int i, start = rand() % MANY;

	for (i = 0; i < MANY; i++) {
		if (!busy[(start + i) % MANY])
			return (start + i) % MANY;
	}
	return -1;
}

static void step_post(void)
{
	int n = pick_idle(busy_recv), i, want = -1;

	if (n < 0)
		return;
	recvs[n].multi = rand() % 8 == 0;
	recvs[n].want = (struct mrf_match_want){ (uint64_t)rand() % 4, (uint64_t)rand() % 4,
						 rand() % 2 ? ANY : (fi_addr_t)(rand() % 3) };
	for (i = 0; i < unexpected.used && want < 0; i++) {
		if (fits(n, unexpected.at[i])) {
			want = unexpected.at[i];
			queue_del(&unexpected, i);
		}
	}
	ck_assert_int_eq(post(n, recvs[n].want.tag, recvs[n].want.ignore, recvs[n].want.source),
			 want);
	if (want >= 0) {
		busy_message[want] = false;
	} else {
		posted.at[posted.used++] = n;
		busy_recv[n] = true;
	}
}

static void step_arrive(void)
{
	int n = pick_idle(busy_message), i, want = -1;

	if (n < 0)
		return;
	messages[n].tag = (uint64_t)rand() % 4;
	messages[n].source = (fi_addr_t)(rand() % 3);
	for (i = 0; i < posted.used && want < 0; i++) {
		if (fits(posted.at[i], n)) {
			want = posted.at[i];
			busy_recv[want] = recvs[want].multi;
			if (!recvs[want].multi)
				queue_del(&posted, i);
		}
	}
	ck_assert_int_eq(arrive(n, messages[n].tag, messages[n].source), want);
	if (want < 0) {
		unexpected.at[unexpected.used++] = n;
		busy_message[n] = true;
	}
}

static void step_remove(void)
{
	int i;

	if (posted.used && rand() % 2) {
		i = rand() % posted.used;
		mrf_match_withdraw(&recvs[posted.at[i]]);
		busy_recv[posted.at[i]] = false;
		queue_del(&posted, i);
	} else if (unexpected.used) {
		i = rand() % unexpected.used;
		mrf_match_take(&messages[unexpected.at[i]]);
		busy_message[unexpected.at[i]] = false;
		queue_del(&unexpected, i);
	}
}

START_TEST(match_answers_as_two_plain_arrays_do)
{
	const char *seed = getenv("MRFAB_SEED");
	int i;

	srand(seed ? (unsigned)atoi(seed) : 1);
	for (i = 0; i < 20000; i++) {
		switch (rand() % 5) {
		case 0:
		case 1:
			step_post();
			break;
		case 2:
		case 3:
			step_arrive();
			break;
		default:
			step_remove();
		}
	}
}
END_TEST

static TCase *tcase_match(void)
{
	TCase *tc = tcase_create("match");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, match_is_by_the_bits_of_the_tag_that_count);
	tcase_add_test(tc, match_is_by_the_source_unless_any_will_do);
	tcase_add_test(tc, match_takes_receives_and_messages_in_their_order);
	tcase_add_test(tc, match_leaves_a_multi_receive_posted_until_it_is_withdrawn);
	tcase_add_test(tc, match_peeks_without_taking_and_takes_what_was_claimed);
	tcase_add_test(tc, match_answers_as_two_plain_arrays_do);
	return tc;
}

UNIT_MAIN("match", tcase_match)
