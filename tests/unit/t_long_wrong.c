/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that break the protocol of long messages: their line is cut off, and nothing else suffers. What
 * goes over the line is changed on its way, once; the peers themselves are right, so that a message
 * whose target lies arrives in the end.
 */
#include <string.h>
#include "contract/budget.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"
#include "proto/frame.h"

#define LEN (3 * MRF_GRANT_BYTES + 1)

static struct node a, b, c;
static fi_addr_t to, from_c;
static uint8_t *out, *in;

/* --- lies --------------------------------------------------------------------------------- */

/* The nth frame of a type has another value of so many bytes at a place; or comes otherwise. */
static const struct lie {
	enum mrf_frame_type type;
	unsigned nth, at, bytes;
	uint64_t value;
	enum fake_fate fate;
	unsigned cut; /* bytes fewer */
	bool always;  /* all from the nth on */
} * lie;
static unsigned seen; /* frames of this type */
static bool lied;

static bool is_lie(const uint8_t *msg, size_t len)
{
	if (!lie || mrf_frame_type(msg, len) != (int)lie->type)
		return false;
	seen++;
	return seen == lie->nth || (lie->always && seen > lie->nth);
}

/* For fake.on_send. */
static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	unsigned i;

	(void)from_target;
	if (!is_lie(msg, *len))
		return FAKE_DELIVER;
	lied = true;
	for (i = 0; i < lie->bytes; i++)
		msg[lie->at + i] = (uint8_t)(lie->value >> 8 * i);
	*len -= lie->cut;
	return lie->fate;
}

static void tell(const struct lie *this)
{
	fake_freeze(true);
	lie = this;
	seen = 0;
	lied = false;
	fake.on_send = on_send;
	fake_freeze(false);
}

static bool has_lied(void)
{
	bool has;

	fake_freeze(true);
	has = lied;
	fake_freeze(false);
	return has;
}

/* --- nodes -------------------------------------------------------------------------------- */

static void nodes_open(void)
{
	node_open(&a, NULL);
	node_open(&b, NULL);
	node_open(&c, NULL);
	to = node_insert(&a, &b);
	from_c = node_insert(&c, &b);
	out = pages(2 * LEN);
	in = pages(2 * LEN);
	fill(out, 2 * LEN, 3);
}

static void nodes_close(void)
{
	tell(NULL);
	node_close(&a);
	node_close(&b);
	node_close(&c);
}

static void send_from(struct node *n, fi_addr_t where)
{
	ck_assert_int_eq(fi_send(n->ep, out, LEN, NULL, where, out), 0);
}

static void recv_one(size_t at)
{
	memset(in + at, 0, LEN);
	ck_assert_int_eq(fi_recv(b.ep, in + at, LEN, NULL, FI_ADDR_UNSPEC, in + at), 0);
}

static void want_got(size_t at)
{
	ck_assert_uint_eq(want_ok(&b, in + at).len, LEN);
	ck_assert(!memcmp(in + at, out, LEN));
}

/* Another's messages come as ever. */
static void want_others(void)
{
	recv_one(LEN);
	send_from(&c, from_c);
	want_got(LEN);
	want_ok(&c, out);
}

/* --- targets ------------------------------------------------------------------------------ */

static const struct lie of_targets[] = {
	/* another type, a flag that is none, a number that was never offered */
	{ .type = MRF_FRAME_GRANT, .nth = 1, .at = 0, .bytes = 1, .value = MRF_FRAME_OFFER },
	{ .type = MRF_FRAME_GRANT, .nth = 2, .at = 4, .bytes = 1, .value = 0x80 },
	{ .type = MRF_FRAME_GRANT, .nth = 1, .at = 8, .bytes = 8, .value = 77 },
	{ .type = MRF_FRAME_GRANT, .nth = 2, .at = 8, .bytes = 8, .value = UINT64_MAX },
	/* an offset that was, one that leaves some out, one behind the end */
	{ .type = MRF_FRAME_GRANT, .nth = 2, .at = 16, .bytes = 8, .value = 0 },
	{ .type = MRF_FRAME_GRANT, .nth = 2, .at = 16, .bytes = 8, .value = MRF_GRANT_BYTES + 1 },
	{ .type = MRF_FRAME_GRANT, .nth = 4, .at = 16, .bytes = 8, .value = 1ull << 61 },
	{ .type = MRF_FRAME_GRANT, .nth = 1, .at = 16, .bytes = 8, .value = UINT64_MAX },
	/* more bytes than there are, and than its receive has room for */
	{ .type = MRF_FRAME_GRANT, .nth = 4, .at = 24, .bytes = 4, .value = 2 },
	{ .type = MRF_FRAME_GRANT, .nth = 1, .at = 24, .bytes = 4, .value = UINT32_MAX },
	{ .type = MRF_FRAME_GRANT, .nth = 1, .at = 24, .bytes = 4, .value = MRF_GRANT_BYTES + 1 },
	/* the pair has no name, a name that is too long, or two */
	{ .type = MRF_FRAME_GRANT, .nth = 1, .at = 28, .bytes = 4, .value = 0 },
	{ .type = MRF_FRAME_GRANT, .nth = 1, .at = 28, .bytes = 4, .value = 1u << 24 },
	{ .type = MRF_FRAME_GRANT, .nth = 2, .at = 28, .bytes = 4, .value = 99 },
	/* too short, too often */
	{ .type = MRF_FRAME_GRANT, .nth = 1, .cut = 1 },
	{ .type = MRF_FRAME_GRANT, .nth = 1, .fate = FAKE_TWICE },
	{ .type = MRF_FRAME_GRANT, .nth = 3, .fate = FAKE_TWICE },
};

START_TEST(a_message_whose_target_lies_arrives)
{
	unsigned connects;

	nodes_open();
	want_others();
	connects = fake_connects();
	tell(&of_targets[_i]);
	recv_one(0);
	send_from(&a, to);
	want_got(0);
	want_ok(&a, out);
	ck_assert(has_lied());
	/* The first line, and at least one that takes its place. */
	ck_assert_uint_ge(fake_connects(), connects + 2);
	want_others();
	want_none(&a);
	want_none(&b);
	nodes_close();
}
END_TEST

/* Each time; and one that gets the bytes that it asked for, and wants some of them again. */
static const struct lie of_stubborn_targets[] = {
	{ .type = MRF_FRAME_GRANT, .nth = 1, .fate = FAKE_TWICE, .always = true },
	{ .type = MRF_FRAME_GRANT, .nth = 3, .at = 24, .bytes = 4, .value = 5 },
};

START_TEST(a_target_that_does_not_cease_to_lie_is_left)
{
	nodes_open();
	tell(&of_stubborn_targets[_i]);
	recv_one(0);
	send_from(&a, to);
	want_err(&a, out, FI_ECONNRESET, "drops it each time");
	ck_assert(has_lied());
	tell(NULL);
	want_others();
	nodes_close();
}
END_TEST

/* --- initiators --------------------------------------------------------------------------- */

static const struct lie of_initiators[] = {
	/* more bytes than the library ever takes, or an integer counts */
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 32, .bytes = 8, .value = (1ull << 30) + 1 },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 32, .bytes = 8, .value = 1ull << 62 },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 32, .bytes = 8, .value = UINT64_MAX },
	/* a flag that is none, another number, and the pair has no name, or one too long */
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 4, .bytes = 1, .value = 0x80 },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 4, .bytes = 1, .value = 1u << 5 },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 8, .bytes = 4, .value = 5 },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 40, .bytes = 4, .value = 0 },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 40, .bytes = 4, .value = 1u << 24 },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .cut = 1 },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 0, .bytes = 1, .value = MRF_FRAME_GRANT },
	{ .type = MRF_FRAME_OFFER, .nth = 1, .at = 0, .bytes = 1, .value = MRF_FRAME_ASK },
};

static bool is_wrong(void)
{
	struct mrf_ep *ep = node_ep(&b);
	bool wrong = true;

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->inbox->origins)
		wrong &= mrf_list_entry(node, struct mrf_origin, node)->barred > 0;
	mrf_lock_release(&ep->lock);
	return wrong;
}

/* The receive is there for the next one. */
START_TEST(an_initiator_that_lies_is_cut_off)
{
	nodes_open();
	recv_one(0);
	tell(&of_initiators[_i]);
	send_from(&a, to);
	want_soon((fi_cq_read(b.cq, NULL, 0), has_lied() && is_wrong()));
	want_err(&a, out, FI_ECONNABORTED, "closed the last");
	send_from(&c, from_c);
	want_got(0);
	want_ok(&c, out);
	want_others();
	want_none(&b);
	nodes_close();
}
END_TEST

static TCase *tcase_new(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	return tc;
}

static TCase *tcase_targets(void)
{
	TCase *tc = tcase_new("targets");

	tcase_add_loop_test(tc, a_message_whose_target_lies_arrives, 0,
			    (int)MRF_ARRAY_SIZE(of_targets));
	tcase_add_loop_test(tc, a_target_that_does_not_cease_to_lie_is_left, 0,
			    (int)MRF_ARRAY_SIZE(of_stubborn_targets));
	return tc;
}

static TCase *tcase_initiators(void)
{
	TCase *tc = tcase_new("initiators");

	tcase_add_loop_test(tc, an_initiator_that_lies_is_cut_off, 0,
			    (int)MRF_ARRAY_SIZE(of_initiators));
	return tc;
}

UNIT_MAIN("long messages of wrong peers", tcase_targets, tcase_initiators)
