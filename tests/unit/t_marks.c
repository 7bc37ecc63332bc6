/* SPDX-License-Identifier: BSD-2-Clause */
/* What marks must not do: keep anything waiting, or anything there. */
#include <string.h>
#include <sys/mman.h>
#include "two_ends.h"
#include "contract/budget.h"

#define LEN 1000u
#define ROOM (64 * LEN)
#define KEY 9
#define CAPS (FI_MSG | FI_RMA)
#define KEPT 8u

static uint8_t *there;
static struct fid_mr *mr;
static uint64_t base;

static void open_with(const char *count)
{
	fixture_unexpected_count(count);
	ends_open(&(struct node_opt){ .mr_mode = FI_MR_ALLOCATED, .caps = CAPS }, ROOM);
	there = pages(ROOM);
	mr = node_reg(&b, there, ROOM, REMOTE_RW, KEY);
	base = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)there : 0;
}

static void setup(void)
{
	fixture_setup();
}

static void teardown(void)
{
	fake_hold(false);
	fake_hold_frames(false);
	fake_hold_pairs(false);
	a_close();
	must_close(&mr->fid);
	b_close();
	fixture_unexpected_count(NULL);
	fixture_teardown();
}

static void write_at(unsigned i, uint64_t flags)
{
	struct iovec iov = { out + i * LEN, LEN };
	struct fi_rma_iov rma = { base + i * LEN, LEN, KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = out + i * LEN };

	ck_assert_int_eq(fi_writemsg(a.ep, &msg, flags), 0);
}

static void send_at(unsigned i, uint64_t flags)
{
	struct iovec iov = { out + i * LEN, LEN };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .context = out + i * LEN
	};

	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, flags), 0);
}

static bool window_is_open(void)
{
	struct mrf_ep *ep = node_ep(&a);
	bool open;

	mrf_lock_take(&ep->lock);
	open = mrf_outlet_is_open(&ep->peers[MRF_CONN_LINE].of[to]->line);
	mrf_lock_release(&ep->lock);
	return open;
}

static bool ok_within(unsigned ms)
{
	struct fi_cq_data_entry entry;

	return fi_cq_sread(a.cq, &entry, 1, NULL, (int)ms) == 1;
}

/*
 * All messages before the fence have ended, and the receiver, which is full of messages, takes no
 * more: the fenced access does not depend on that. (2: one more message could be sent; this passes.)
 */
START_TEST(a_fenced_access_behind_the_last_message_of_a_window)
{
	unsigned i = 0;

	open_with("8");
	write_at(0, 0);
	want_ok(&a, out);
	send_at(0, 0);
	want_ok(&a, out);
	/* Up to the last that may be sent. */
	for (i = 1; i < 40; i++) {
		struct mrf_ep *ep = node_ep(&a);
		struct mrf_outlet line;

		usleep(20000);
		fi_cq_read(a.cq, NULL, 0);
		mrf_lock_take(&ep->lock);
		line = ep->peers[MRF_CONN_LINE].of[to]->line;
		mrf_lock_release(&ep->lock);
		if (line.posted - line.taken + 1 + (_i == 2) >= line.window)
			break;
		send_at(i, 0);
		want_ok(&a, out + i * LEN);
	}
	ck_assert(window_is_open());
	fake_hold_frames(true);
	send_at(i, 0);
	if (_i != 1) {
		write_at(i + 1, FI_FENCE);
	} else {
		/* The access behind a fenced message that waits for the window. */
		send_at(i + 1, FI_FENCE);
		write_at(i + 2, 0);
	}
	want_none(&a);
	ck_assert(window_is_open() == (_i == 2));
	fake_hold_frames(false);
	want_ok(&a, out + i * LEN);
	ck_assert(window_is_open() == (_i == 2));
	ck_assert_msg(ok_within(5000), "the access behind the fence does not start (%u messages)",
		      i);
}
END_TEST

/* A mark is no message: nothing has to linger for it. */
START_TEST(closing_does_not_linger_for_a_mark)
{
	int64_t began;

	open_with(NULL);
	write_at(0, 0);
	want_ok(&a, out);
	fake_hold(true);
	write_at(1, 0);
	if (_i)
		write_at(2, FI_FENCE);
	began = mrf_now_ms();
	must_close(&a.ep->fid);
	began = mrf_now_ms() - began;
	node_try_ep(&a, &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED, .caps = CAPS }, &a.ep);
	fprintf(stderr, "close took %d ms\n", (int)began);
	ck_assert_int_lt(began, 500);
}
END_TEST

static unsigned peers(void)
{
	struct mrf_ep *ep = node_ep(&a);
	unsigned n = 0;

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->all_peers)
		n++;
	mrf_lock_release(&ep->lock);
	return n;
}

/* A peer without a connection, with nothing but a mark, whose address is removed. (0: no mark.) */
START_TEST(a_peer_that_had_a_mark_goes_when_it_is_removed)
{
	open_with(NULL);
	write_at(0, 0);
	want_ok(&a, out);
	fake_hold(true);
	write_at(1, 0);
	write_at(2, _i ? FI_FENCE : 0);
	ck_assert_uint_eq(peers(), 1 + _i);
	ck_assert_int_eq(fi_av_remove(a.av, &to, 1, 0), 0);
	want_none(&a);
	fake_hold(false);
	want_ok(&a, out + LEN);
	want_ok(&a, out + 2 * LEN);
	for (int i = 0; i < 300 && peers(); i++)
		usleep(10000);
	ck_assert_uint_eq(peers(), 0);
}
END_TEST

/*
 * The target has had all of an offer and says so, but the acknowledgement of the last part is not there
 * yet. The address is removed. (0: it is not removed, which passes.)
 */
START_TEST(a_removed_peer_waits_for_parts_in_flight)
{
	struct iovec iov;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };

	open_with(NULL);
	iov = (struct iovec){ out, LEN };
	msg.context = out;
	msg.addr = to;
	send_at(0, FI_MATCH_COMPLETE);
	ck_assert_int_eq(fi_recv(b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	want_ok(&b, in);
	want_ok(&a, out);
	fake_hold_pairs(true);
	ck_assert_int_eq(fi_recv(b.ep, in, LEN / 2, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_MATCH_COMPLETE), 0);
	want_none(&a);
	if (_i)
		ck_assert_int_eq(fi_av_remove(a.av, &to, 1, 0), 0);
	want_none(&a);
	fake_run_unacknowledged();
	want_err(&b, in, FI_ETRUNC, NULL);
	want_none(&a);
	fake_hold_pairs(false);
	ck_assert_msg(ok_within(5000), "the message never completes");
	want_idle(&a);
}
END_TEST

static unsigned leases(void)
{
	struct mrf_ep *ep = node_ep(&a);
	unsigned n;

	mrf_lock_take(&ep->lock);
	n = ep->peers[MRF_CONN_ACCESS].of[to]->known.leases;
	mrf_lock_release(&ep->lock);
	return n;
}

/*
 * Leases end when the accesses have, however long a fenced message waits: its mark uses none. (0: the
 * message has no fence, which passes.)
 */
START_TEST(a_mark_holds_no_leases)
{
	unsigned i;

	ends_open(&(struct node_opt){ .mr_mode = 0, .caps = CAPS }, ROOM);
	there = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(there, 0, ROOM);
	mr = node_reg(&b, there, ROOM, REMOTE_RW, KEY);
	base = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)there : 0;
	send_at(0, 0);
	want_ok(&a, out);
	write_at(1, 0);
	want_ok(&a, out + LEN);
	send_at(2, FI_MATCH_COMPLETE);
	want_none(&a);
	fake_hold(true);
	write_at(1, 0);
	usleep(100000);
	send_at(3, _i ? FI_FENCE : 0);
	fprintf(stderr, "%u leases\n", leases());
	ck_assert_uint_gt(leases(), 0);
	fake_hold(false);
	for (i = 0; i < 200 && leases(); i++) {
		struct fi_cq_data_entry entry;

		fi_cq_sread(a.cq, &entry, 1, NULL, 10);
	}
	ck_assert_msg(!leases(), "%u lease is held while the message waits", leases());
}
END_TEST

static TCase *tcase_all(void)
{
	TCase *tc = tcase_create("fence");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_fenced_access_behind_the_last_message_of_a_window, 0, 3);
	tcase_add_loop_test(tc, closing_does_not_linger_for_a_mark, 0, 2);
	tcase_add_loop_test(tc, a_peer_that_had_a_mark_goes_when_it_is_removed, 0, 2);
	tcase_add_loop_test(tc, a_removed_peer_waits_for_parts_in_flight, 0, 2);
	tcase_add_loop_test(tc, a_mark_holds_no_leases, 0, 2);
	return tc;
}

UNIT_MAIN("marks", tcase_all)
