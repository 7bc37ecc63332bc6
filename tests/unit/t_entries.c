/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entry of a write with data (FI_REMOTE_CQ_DATA) and the messages that are sent behind it: the target's
 * agent makes the one, whoever polls takes in the others, and still the program reads them in the order in
 * which they were started. In all tests the agent of the target stands while messages arrive.
 */
#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_tagged.h>
#include "two_ends.h"
#include "loop/agent_calls.h"
#include "proto/proto.h"

#define LEN 1000u
#define LONG (40u << 10)
#define SLOTS 8u
#define ROOM (SLOTS * LONG)
#define KEY 9
#define DATA 0xbeefu
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA)

static uint8_t *there; /* of b, which a writes to */
static struct fid_mr *mr;

/* --- the target's agent ---------------------------------------------------------------------- */

static atomic_bool stands, stood;

static void stand(struct mrf_kick *kick)
{
	(void)kick;
	atomic_store(&stood, true);
	while (atomic_load(&stands))
		usleep(200);
}

static struct mrf_kick standing;

static void stop(void)
{
	mrf_list_init(&standing.node);
	standing.look = stand;
	atomic_store(&stood, false);
	atomic_store(&stands, true);
	mrf_agent_kick(node_agent(&b), &standing);
	want_soon(atomic_load(&stood));
}

static void go_on(void)
{
	atomic_store(&stands, false);
}

/* --- what is started, by number -------------------------------------------------------------- */

static uint8_t *at(unsigned i)
{
	return out + i * LONG;
}

static void recv_at(unsigned i)
{
	ck_assert_int_eq(fi_recv(b.ep, in + i * LONG, LONG, NULL, FI_ADDR_UNSPEC, in + i * LONG),
			 0);
}

static void write_key(unsigned i, bool with_data, uint64_t key)
{
	struct iovec iov = { at(i), LEN };
	struct fi_rma_iov rma = { i * LONG, LEN, key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = at(i),
				  .data = DATA };

	ck_assert_int_eq(
		fi_writemsg(a.ep, &msg, FI_COMPLETION | (with_data ? FI_REMOTE_CQ_DATA : 0)), 0);
}

static void write_at(unsigned i, bool with_data)
{
	write_key(i, with_data, KEY);
}

static void send_flags(unsigned i, size_t len, uint64_t flags)
{
	struct iovec iov = { at(i), len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to, .context = at(i) };

	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_COMPLETION | flags), 0);
}

static void send_short(unsigned i)
{
	ck_assert_int_eq(fi_send(a.ep, at(i), LEN, NULL, to, at(i)), 0);
}

static void send_long(unsigned i)
{
	ck_assert_int_eq(fi_send(a.ep, at(i), LONG, NULL, to, at(i)), 0);
}

static void send_fenced(unsigned i)
{
	send_flags(i, LEN, FI_FENCE);
}

static void send_delivered(unsigned i)
{
	send_flags(i, LEN, FI_DELIVERY_COMPLETE);
}

static void inject(unsigned i)
{
	ck_assert_int_eq(fi_inject(a.ep, at(i), 8, to), 0);
}

static void want_done(unsigned i)
{
	want_ok(&a, at(i));
}

static void want_entry(void)
{
	struct fi_cq_data_entry entry = want_ok(&b, NULL);

	ck_assert(entry.flags & FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(entry.data, DATA);
	ck_assert_uint_eq(entry.len, LEN);
}

static void want_got(unsigned i)
{
	struct fi_cq_data_entry entry = want_ok(&b, in + i * LONG);

	ck_assert_int_eq(memcmp(in + i * LONG, at(i), entry.len), 0);
}

/* Both connections are there, and nothing is under way. */
static void open_with(const struct node_opt *opt)
{
	ends_open(opt, ROOM);
	there = pages(ROOM);
	mr = node_reg(&b, there, ROOM, REMOTE_RW, KEY);
	recv_at(0);
	send_short(0);
	want_got(0);
	want_done(0);
	write_at(0, false);
	want_done(0);
}

static void open_plain(void)
{
	open_with(&(struct node_opt){ .mr_mode = FI_MR_ALLOCATED, .caps = CAPS });
}

static void end(void)
{
	go_on();
	fake_hold(false);
	a_close();
	must_close(&mr->fid);
	b_close();
}

static atomic_uint syncs, lose;

static bool is_sync(const uint8_t *msg, size_t len, bool from_target)
{
	return !from_target && mrf_msg_type(msg, len) == MRF_MSG_SYNC;
}

static enum fake_fate keep_sync(uint8_t *msg, size_t *len, bool from_target)
{
	if (!is_sync(msg, *len, from_target))
		return FAKE_DELIVER;
	atomic_fetch_add(&syncs, 1);
	return FAKE_KEEP;
}

/* --- the order ------------------------------------------------------------------------------- */

static const struct {
	void (*send)(unsigned i);
	bool completes;
} sends[] = { { send_short, true },
	      { send_long, true },
	      { send_fenced, true },
	      { send_delivered, true },
	      { inject, false } };
#define SENDS ((int)MRF_ARRAY_SIZE(sends))
static const struct node_opt opts[] = {
	{ .mr_mode = FI_MR_ALLOCATED, .caps = CAPS },
	{ .mr_mode = FI_MR_ALLOCATED | FI_MR_RMA_EVENT, .caps = CAPS | FI_RMA_EVENT },
	{ .mr_mode = FI_MR_ALLOCATED, .caps = CAPS, .order = FI_ORDER_SAW }
};
#define OPTS ((int)MRF_ARRAY_SIZE(opts))

START_TEST(a_message_comes_behind_the_entry_of_a_write_that_has_completed)
{
	open_with(&opts[_i / SENDS]);
	recv_at(2);
	stop();
	write_at(1, true);
	want_done(1);
	sends[_i % SENDS].send(2);
	want_none(&b);
	go_on();
	want_entry();
	want_got(2);
	if (sends[_i % SENDS].completes)
		want_done(2);
	want_idle(&a);
	end();
}
END_TEST

/* It is under way, or waits for others, when the message is started. */
START_TEST(a_message_comes_behind_the_entry_of_a_write_that_goes_on)
{
	open_with(&opts[_i / 2]);
	recv_at(3);
	stop();
	if (_i % 2)
		fake_hold(true);
	write_at(1, false);
	write_at(2, true);
	send_short(3);
	want_none(&b);
	fake_hold(false);
	want_none(&b);
	go_on();
	want_entry();
	want_got(3);
	want_done(1);
	want_done(2);
	want_done(3);
	want_idle(&a);
	end();
}
END_TEST

/* Both wait, the message for one before it: whichever connection is idle first. */
START_TEST(a_fenced_message_comes_behind_the_entry_and_what_was_before_it)
{
	open_plain();
	recv_at(1);
	recv_at(3);
	stop();
	fake_hold_frames(true);
	send_short(1);
	fake_hold(_i);
	write_at(2, true);
	if (!_i)
		want_done(2);
	send_fenced(3);
	want_none(&b);
	fake_hold_frames(false);
	want_got(1);
	want_done(1);
	want_none(&b);
	fake_hold(false);
	if (_i)
		want_done(2);
	want_none(&b);
	go_on();
	want_entry();
	want_got(3);
	want_done(3);
	want_idle(&a);
	end();
}
END_TEST

/* Each entry is waited for once: this costs nobody anything else. */
START_TEST(other_messages_wait_for_no_agent)
{
	open_plain();
	recv_at(1);
	recv_at(3);
	recv_at(4);
	write_at(2, true);
	want_done(2);
	send_short(3);
	want_entry();
	want_ok(&b, in + LONG);
	want_done(3);
	stop();
	write_at(2, false);
	want_done(2);
	send_short(4);
	want_ok(&b, in + 3 * LONG);
	want_done(4);
	end();
}
END_TEST

/* Of two writes with data, the second waits behind the sync of the first when a message follows it. */
START_TEST(a_message_comes_behind_the_entry_of_a_write_that_waits_for_a_sync)
{
	struct fid_mr *other;

	open_plain();
	other = node_reg(&b, there, ROOM, REMOTE_RW, KEY + 1);
	recv_at(2);
	recv_at(4);
	atomic_store(&syncs, 0);
	fake.on_send = keep_sync;
	stop();
	/* It asks first. */
	write_key(1, true, KEY + 1);
	send_short(2);
	write_at(3, true);
	go_on();
	want_soon(atomic_load(&syncs));
	send_short(4);
	want_done(1);
	fake_hold(true);
	fake.on_send = NULL;
	fake_deliver();
	want_entry();
	want_got(2);
	want_done(2);
	want_none(&b);
	fake_hold(false);
	want_entry();
	want_got(4);
	want_done(3);
	want_done(4);
	want_idle(&a);
	must_close(&other->fid);
	end();
}
END_TEST

/* --- what goes wrong ------------------------------------------------------------------------- */

/* Whether it is started before that one is canceled or afterwards. */
START_TEST(what_follows_a_canceled_message_comes_behind_the_entry)
{
	open_plain();
	recv_at(3);
	stop();
	write_at(1, true);
	want_done(1);
	send_short(2);
	if (_i)
		send_short(3);
	ck_assert_int_eq(fi_cancel(&a.ep->fid, at(2)), 0);
	want_err(&a, at(2), FI_ECANCELED, NULL);
	if (!_i)
		send_short(3);
	want_none(&b);
	go_on();
	want_entry();
	want_got(3);
	want_done(3);
	want_idle(&a);
	end();
}
END_TEST

static enum fake_fate on_sync(uint8_t *msg, size_t *len, bool from_target)
{
	if (!is_sync(msg, *len, from_target))
		return FAKE_DELIVER;
	return atomic_fetch_add(&syncs, 1) < atomic_load(&lose) ? FAKE_REFUSE : FAKE_DELIVER;
}

/* Once; or so often that the message goes without it. */
START_TEST(a_sync_that_is_lost_is_sent_again)
{
	open_plain();
	atomic_store(&syncs, 0);
	atomic_store(&lose, _i ? 100 : 1);
	fake.on_send = on_sync;
	recv_at(2);
	write_at(1, true);
	want_done(1);
	send_short(2);
	want_entry();
	want_got(2);
	want_done(2);
	ck_assert_uint_gt(atomic_load(&syncs), 1);
	want_idle(&a);
	end();
}
END_TEST

/* The target may be kept from answering by entries that its program does not read, which is no error. */
START_TEST(a_sync_waits_longer_than_for_an_answer)
{
	ck_assert_int_eq(setenv("FI_MRFAB_ANSWER_TIMEOUT", "1000", 1), 0);
	open_plain();
	recv_at(2);
	stop();
	write_at(1, true);
	want_done(1);
	send_short(2);
	write_at(3, false);
	sleep(3);
	want_none(&a);
	go_on();
	want_entry();
	want_got(2);
	want_done(3);
	want_done(2);
	want_idle(&a);
	end();
	ck_assert_int_eq(unsetenv("FI_MRFAB_ANSWER_TIMEOUT"), 0);
}
END_TEST

/* The order ends with the connection; nothing waits for ever. */
START_TEST(a_message_goes_when_the_connection_of_the_write_is_lost)
{
	open_plain();
	recv_at(2);
	write_at(1, true);
	want_done(1);
	want_entry();
	fake_hang_up(node_agent(&b)->cq);
	send_short(2);
	want_got(2);
	want_done(2);
	want_idle(&a);
	end();
}
END_TEST

/* Of a's connection for accesses. */
static enum mrf_peer_state state(void)
{
	struct mrf_ep *ep = node_ep(&a);
	enum mrf_peer_state state;

	mrf_lock_take(&ep->lock);
	state = ep->peers[MRF_CONN_ACCESS].of[to]->state;
	mrf_lock_release(&ep->lock);
	return state;
}

static atomic_bool late;

static bool is_late(const struct mrf_vcq *cq)
{
	return atomic_load(&late) && cq == node_ep(&a)->scq;
}

/* It is posted again over the next one, which its target is slow to accept. */
START_TEST(a_message_comes_behind_the_entry_of_a_write_that_is_posted_again)
{
	fake.packets = true;
	open_plain();
	recv_at(2);
	stop();
	fake_hold(true);
	write_at(1, true);
	fake_break(1, 1, MRF_WC_FLUSHED, false);
	fake_hold(false);
	want_none(&a);
	want_soon(state() == MRF_PEER_ASKING);
	send_short(2);
	want_none(&b);
	go_on();
	want_entry();
	want_got(2);
	want_done(1);
	want_done(2);
	want_idle(&a);
	end();
}
END_TEST

/* Nobody has seen yet what has become of it. */
START_TEST(a_message_waits_until_it_is_known_what_a_lost_connection_has_done)
{
	fake.packets = true;
	open_plain();
	recv_at(2);
	stop();
	fake_hold(true);
	write_at(1, true);
	atomic_store(&late, true);
	fake.is_late = is_late;
	fake_break(1, 1, MRF_WC_FLUSHED, false);
	fake_hold(false);
	fake_hang_up(node_agent(&b)->cq);
	want_soon(state() == MRF_PEER_DRAINING);
	send_short(2);
	want_none(&b);
	atomic_store(&late, false);
	want_none(&b);
	go_on();
	want_entry();
	want_got(2);
	want_done(1);
	want_done(2);
	want_idle(&a);
	end();
}
END_TEST

START_TEST(an_endpoint_closes_while_a_message_waits)
{
	open_plain();
	stop();
	write_at(1, true);
	want_done(1);
	send_short(2);
	want_none(&a);
	a_close();
	go_on();
	want_entry();
	must_close(&mr->fid);
	b_close();
}
END_TEST

static TCase *tcase_entries(void)
{
	TCase *tc = tcase_create("entries");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, a_message_comes_behind_the_entry_of_a_write_that_has_completed, 0,
			    OPTS * SENDS);
	tcase_add_loop_test(tc, a_message_comes_behind_the_entry_of_a_write_that_goes_on, 0,
			    OPTS * 2);
	tcase_add_loop_test(tc, a_fenced_message_comes_behind_the_entry_and_what_was_before_it, 0,
			    2);
	tcase_add_test(tc, other_messages_wait_for_no_agent);
	tcase_add_loop_test(tc, what_follows_a_canceled_message_comes_behind_the_entry, 0, 2);
	tcase_add_loop_test(tc, a_sync_that_is_lost_is_sent_again, 0, 2);
	tcase_add_test(tc, a_sync_waits_longer_than_for_an_answer);
	tcase_add_test(tc, a_message_goes_when_the_connection_of_the_write_is_lost);
	tcase_add_test(tc, a_message_comes_behind_the_entry_of_a_write_that_waits_for_a_sync);
	tcase_add_test(tc, a_message_comes_behind_the_entry_of_a_write_that_is_posted_again);
	tcase_add_test(tc, a_message_waits_until_it_is_known_what_a_lost_connection_has_done);
	tcase_add_test(tc, an_endpoint_closes_while_a_message_waits);
	return tc;
}

UNIT_MAIN("entries of writes, and messages", tcase_entries)
