/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_FENCE between messages and accesses, on the fake fabric: what waits for what, what comes in the
 * buffers, and what happens if one of the two connections is lost, or never made.
 */
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>
#include "two_ends.h"
#include "contract/budget.h"

#define LEN 1000u
#define LONG (40u << 10)
#define N 16u
#define ROOM (N * LONG)
#define KEY 9
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

static uint8_t *there; /* of b, which a accesses */
static struct fid_mr *mr;
static uint64_t base;

static void open_with(int mr_mode)
{
	ends_open(&(struct node_opt){ .mr_mode = mr_mode, .caps = CAPS }, ROOM);
	if (out_mr) {
		mr_close(&out_mr);
		out_mr = node_reg(&a, out, ROOM, FI_SEND | FI_READ | FI_WRITE, 1);
	}
	there = pages(ROOM);
	mr = node_reg(&b, there, ROOM, REMOTE_RW, KEY);
	base = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)there : 0;
}

static void setup(void)
{
	fixture_setup();
	open_with(FI_MR_ALLOCATED);
}

static void end_b(void)
{
	if (mr)
		must_close(&mr->fid);
	mr = NULL;
	b_close();
}

static void teardown(void)
{
	fake_hold(false);
	fake_hold_frames(false);
	a_close();
	end_b();
	fixture_teardown();
}

/* --- operations, by number: their context is where their bytes are ---------------------------- */

static uint8_t *at(unsigned i)
{
	return out + i * LONG;
}

static void send_len(unsigned i, size_t len, uint64_t flags)
{
	struct iovec iov = { at(i), len };
	void *desc = desc_of(out_mr);
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = out_mr ? &desc : NULL,
			      .iov_count = 1,
			      .addr = to,
			      .context = at(i) };

	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, flags), 0);
}

static void send_at(unsigned i, uint64_t flags)
{
	send_len(i, LEN, flags);
}

static int access_at(bool write, unsigned i, uint64_t flags)
{
	struct iovec iov = { at(i), LEN };
	void *desc = desc_of(out_mr);
	struct fi_rma_iov rma = { base + i * LONG, LEN, KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = out_mr ? &desc : NULL,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = at(i) };

	return (int)(write ? fi_writemsg(a.ep, &msg, flags) : fi_readmsg(a.ep, &msg, flags));
}

static void write_at(unsigned i, uint64_t flags)
{
	ck_assert_int_eq(access_at(true, i, flags), 0);
}

static void read_at(unsigned i, uint64_t flags)
{
	ck_assert_int_eq(access_at(false, i, flags), 0);
}

static void recv_at(unsigned i)
{
	ck_assert_int_eq(
		fi_recv(b.ep, in + i * LONG, LONG, desc_of(in_mr), FI_ADDR_UNSPEC, in + i * LONG),
		0);
}

static void want_done(unsigned i)
{
	want_ok(&a, at(i));
}

static void want_got(unsigned i)
{
	ck_assert_uint_eq(want_ok(&b, in + i * LONG).len, LEN);
	ck_assert_int_eq(memcmp(in + i * LONG, at(i), LEN), 0);
}

static bool is_written(unsigned i)
{
	uint8_t now[LEN];

	fake_copy(now, there + i * LONG, LEN);
	return !memcmp(now, at(i), LEN);
}

/* Both connections are there, and nothing is under way. */
static void begin(void)
{
	recv_at(0);
	send_at(0, 0);
	want_got(0);
	want_done(0);
	write_at(0, 0);
	want_done(0);
}

/* --- what waits for what ---------------------------------------------------------------------- */

/* Without the fence, it overtakes. */
START_TEST(a_fenced_message_waits_for_accesses)
{
	bool write = _i % 2;
	uint64_t fence = _i / 2 ? FI_FENCE : 0;

	begin();
	recv_at(2);
	fake_hold(true);
	if (write)
		write_at(1, 0);
	else
		read_at(1, 0);
	send_at(2, fence);
	if (!fence) {
		want_got(2);
		want_done(2);
		fake_hold(false);
		want_done(1);
		return;
	}
	want_none(&b);
	fake_hold(false);
	want_done(1);
	want_done(2);
	want_got(2);
}
END_TEST

START_TEST(a_fenced_access_waits_for_messages)
{
	uint64_t fence = _i ? FI_FENCE : 0;

	begin();
	recv_at(1);
	fake_hold_frames(true);
	send_at(1, 0);
	write_at(2, fence);
	if (!fence) {
		want_done(2);
		fake_hold_frames(false);
		want_done(1);
		want_got(1);
		return;
	}
	want_none(&a);
	ck_assert(!is_written(2));
	fake_hold_frames(false);
	want_done(1);
	want_done(2);
	ck_assert(is_written(2));
	want_got(1);
}
END_TEST

/* They wait for what is before the fence, in either direction, and not for what it waits for alone. */
START_TEST(what_comes_behind_a_fence_waits_too)
{
	begin();
	recv_at(2);
	recv_at(4);
	fake_hold(true);
	write_at(1, 0);
	send_at(2, FI_FENCE);
	ck_assert_int_eq(fi_write(a.ep, at(3), LEN, NULL, to, base + 3 * LONG, KEY, at(3)), 0);
	ck_assert_int_eq(fi_send(a.ep, at(4), LEN, NULL, to, at(4)), 0);
	want_none(&b);
	ck_assert_uint_eq(fake_queued(), 1);
	fake_hold(false);
	want_done(1);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	want_got(2);
	want_got(4);
	ck_assert(is_written(3));
}
END_TEST

START_TEST(accesses_behind_a_fence_wait_for_messages_before_it)
{
	begin();
	fake_hold_frames(true);
	send_at(1, 0);
	write_at(2, FI_FENCE);
	send_at(3, 0);
	write_at(4, 0);
	want_none(&a);
	ck_assert_uint_eq(fake_queued(), 1);
	ck_assert(!is_written(2) && !is_written(4));
	fake_hold_frames(false);
	want_done(1);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	ck_assert(is_written(2) && is_written(4));
	recv_at(1);
	recv_at(3);
	want_got(1);
	want_got(3);
}
END_TEST

/* Messages end as they were asked to: when they are matched, or have come. */
static const struct {
	size_t len;
	uint64_t flags;
} ends[] = { { LONG, 0 }, { LEN, FI_MATCH_COMPLETE }, { LONG, FI_DELIVERY_COMPLETE } };

START_TEST(a_fence_waits_until_a_message_has_ended)
{
	bool access = _i % 2;

	begin();
	send_len(1, ends[_i / 2].len, ends[_i / 2].flags);
	want_soon(offers() == 1);
	if (access)
		write_at(2, FI_FENCE);
	else
		send_at(2, FI_FENCE);
	want_none(&a);
	ck_assert(!is_written(2));
	recv_at(1);
	want_ok(&b, in + LONG);
	want_done(1);
	if (access) {
		want_done(2);
		ck_assert(is_written(2));
		return;
	}
	recv_at(2);
	want_got(2);
	want_done(2);
}
END_TEST

START_TEST(a_fenced_atomic_operation_waits_for_messages)
{
	static uint64_t one = 1;
	struct fi_ioc ioc = { &one, 1 };
	struct fi_rma_ioc rma = { base, 1, KEY };
	struct fi_msg_atomic msg = { .msg_iov = &ioc,
				     .iov_count = 1,
				     .addr = to,
				     .rma_iov = &rma,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_SUM,
				     .context = &one };

	begin();
	fake_hold_frames(true);
	send_at(1, 0);
	ck_assert_int_eq(fi_atomicmsg(a.ep, &msg, FI_FENCE), 0);
	want_none(&a);
	fake_hold_frames(false);
	want_done(1);
	want_ok(&a, &one);
	recv_at(1);
	want_got(1);
}
END_TEST

START_TEST(fences_of_both_kinds_follow_each_other)
{
	unsigned i;

	begin();
	fake_hold(true);
	fake_hold_frames(true);
	for (i = 1; i < N; i++) {
		if (i % 2)
			write_at(i, FI_FENCE);
		else
			send_at(i, FI_FENCE);
	}
	want_none(&a);
	ck_assert_uint_eq(fake_queued(), 1);
	fake_hold(false);
	fake_hold_frames(false);
	for (i = 1; i < N; i++) {
		want_done(i);
		if (i % 2)
			continue;
		recv_at(i);
		want_got(i);
	}
	want_idle(&a);
}
END_TEST

START_TEST(a_fence_holds_for_messages_with_tags)
{
	struct iovec iov = { at(2), LEN };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .tag = 7, .context = at(2)
	};
	uint8_t *into = in + 2 * LONG;

	begin();
	ck_assert_int_eq(fi_trecv(b.ep, into, LONG, NULL, FI_ADDR_UNSPEC, 7, 0, into), 0);
	/* Behind accesses, */
	fake_hold(true);
	read_at(1, 0);
	ck_assert_int_eq(fi_tsendmsg(a.ep, &msg, FI_FENCE), 0);
	want_none(&b);
	fake_hold(false);
	want_done(1);
	want_done(2);
	want_got(2);
	/* and before them. */
	ck_assert_int_eq(fi_tsendmsg(a.ep, &msg, FI_MATCH_COMPLETE), 0);
	write_at(3, FI_FENCE);
	want_none(&a);
	ck_assert(!is_written(3));
	ck_assert_int_eq(fi_trecv(b.ep, into, LONG, NULL, FI_ADDR_UNSPEC, 7, 0, into), 0);
	want_done(2);
	want_done(3);
	want_got(2);
}
END_TEST

/* --- what does not wait --------------------------------------------------------------------- */

/* Nothing is before it, so no other connection is made for it. */
START_TEST(a_fence_with_nothing_before_it_starts_at_once)
{
	write_at(1, FI_FENCE);
	want_done(1);
	fake_hold(true);
	write_at(2, 0);
	write_at(3, FI_FENCE);
	want_none(&a);
	ck_assert_uint_eq(fake_connects(), 1);
	fake_hold(false);
	want_done(2);
	want_done(3);
	ck_assert_uint_eq(fake_connects(), 1);
	want_idle(&a);
	/* A message behind it makes one. */
	fake_hold(true);
	write_at(4, 0);
	write_at(5, FI_FENCE);
	send_at(6, 0);
	recv_at(6);
	want_none(&b);
	fake_hold(false);
	want_got(6);
	ck_assert_uint_eq(fake_connects(), 2);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
}
END_TEST

START_TEST(a_fence_is_for_one_peer)
{
	struct node c;
	fi_addr_t to_b = to, to_c;
	unsigned i;

	node_open(&c, &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED, .caps = CAPS });
	to_c = node_insert(&a, &c);
	begin();
	fake_hold(true);
	write_at(1, 0);
	send_at(2, FI_FENCE);
	to = to_c;
	for (i = 3; i < 5; i++) {
		send_at(i, i == 4 ? FI_FENCE : 0);
		want_done(i);
	}
	to = to_b;
	fake_hold(false);
	want_done(1);
	want_done(2);
	node_close(&c);
}
END_TEST

/* --- its bytes -------------------------------------------------------------------------------- */

static const size_t lens[] = { 8, 256, LEN, 16384, LONG };
#define LENS ((int)MRF_ARRAY_SIZE(lens))

/* A fenced message sends what the operations before it have brought. */
START_TEST(a_fenced_message_takes_what_a_read_has_brought)
{
	size_t len = lens[_i / MODES];
	struct iovec parts[10];
	struct fi_msg msg = { .msg_iov = parts };
	void *descs[10];
	unsigned i;

	teardown();
	fixture_setup();
	open_with(modes[_i % MODES]);
	begin();
	fill(there, LONG, 77);
	msg.addr = to;
	msg.context = out;
	for (i = 0; i < 10; i++) {
		parts[i] = (struct iovec){ out + i * (len / 10),
					   i < 9 ? len / 10 : len - 9 * (len / 10) };
		descs[i] = desc_of(out_mr);
	}
	for (i = 1; i <= 10; i += 9) {
		memset(out, 0, len);
		fake_hold(true);
		ck_assert_int_eq(fi_read(a.ep, out, len, desc_of(out_mr), to, base, KEY, out), 0);
		parts[0].iov_len = i == 1 ? len : len / 10;
		msg.iov_count = i;
		msg.desc = out_mr ? descs : NULL;
		ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_FENCE), 0);
		recv_at(0);
		want_none(&b);
		fake_hold(false);
		ck_assert_uint_eq(want_ok(&b, in).len, len);
		ck_assert_int_eq(memcmp(in, there, len), 0);
		want_ok(&a, out);
		want_ok(&a, out);
	}
}
END_TEST

/* Those of an injected one are the application's again. */
START_TEST(an_injected_message_keeps_its_bytes)
{
	begin();
	recv_at(2);
	fake_hold(true);
	write_at(1, 0);
	send_len(2, 64, FI_FENCE | FI_INJECT);
	memset(at(2), 0xee, 64);
	want_none(&b);
	fake_hold(false);
	ck_assert_uint_eq(want_ok(&b, in + 2 * LONG).len, 64);
	ck_assert_uint_ne(in[2 * LONG], 0xee);
	want_done(1);
	want_done(2);
}
END_TEST

/* --- what fails, is canceled or closed ------------------------------------------------------- */

START_TEST(a_fence_that_is_canceled_holds_nothing_up)
{
	bool access = _i;

	begin();
	recv_at(3);
	fake_hold(true);
	fake_hold_frames(true);
	if (access)
		send_at(1, 0);
	else
		write_at(1, 0);
	if (access)
		write_at(2, FI_FENCE);
	else
		send_at(2, FI_FENCE);
	if (access)
		write_at(3, 0);
	else
		send_at(3, 0);
	/* Its mark has no context, and is not canceled. */
	ck_assert_int_eq(fi_cancel(&a.ep->fid, NULL), -FI_ENOENT);
	ck_assert_int_eq(fi_cancel(&a.ep->fid, at(2)), 0);
	want_err(&a, at(2), FI_ECANCELED, NULL);
	/* What was behind it goes. */
	want_soon(fake_queued() == 2);
	fake_hold(false);
	fake_hold_frames(false);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	want_idle(&a);
}
END_TEST

/* One of the connections is lost and made again. */
START_TEST(a_fence_holds_while_a_connection_is_lost)
{
	bool access = _i;

	begin();
	recv_at(1);
	fake_hold(true);
	fake_hold_frames(true);
	if (access) {
		fake_break_frame(1, 1, MRF_WC_TIMEOUT, false);
		send_at(1, 0);
		write_at(2, FI_FENCE);
	} else {
		fake_break(1, 1, MRF_WC_REFUSED, false);
		write_at(1, 0);
		send_at(2, FI_FENCE);
	}
	fake_hold(false);
	fake_hold_frames(false);
	want_done(1);
	want_done(2);
	ck_assert(is_written(access ? 2 : 1));
	ck_assert_uint_ge(fake_connects(), 3);
	want_idle(&a);
}
END_TEST

/* What was before the fence fails, which is an end, too. Then there is nobody for the rest. */
START_TEST(a_peer_that_goes_ends_it_all)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry e;
	unsigned i;

	teardown();
	fixture_setup_impatient();
	open_with(FI_MR_ALLOCATED);
	begin();
	fake_hold(true);
	fake_hold_frames(true);
	for (i = 1; i < 7; i++) {
		if ((i + (unsigned)_i) % 2)
			write_at(i, i == 3 ? FI_FENCE : 0);
		else
			send_at(i, i == 4 ? FI_FENCE : 0);
	}
	fake_kill(node_agent(&b)->cm);
	fake_hold(false);
	fake_hold_frames(false);
	for (i = 1; i < 7; i++) {
		ssize_t ret = fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS);

		ck_assert(ret == 1 || ret == -FI_EAVAIL);
		e = (struct fi_cq_err_entry){ 0 };
		if (ret != 1)
			ck_assert_int_eq(fi_cq_readerr(a.cq, &e, 0), 1);
	}
	want_idle(&a);
}
END_TEST

static bool has_peers(void)
{
	struct mrf_ep *ep = node_ep(&a);
	bool has;

	mrf_lock_take(&ep->lock);
	has = !mrf_list_empty(&ep->all_peers);
	mrf_lock_release(&ep->lock);
	return has;
}

START_TEST(a_peer_is_removed_and_the_fence_holds)
{
	begin();
	fake_hold(true);
	write_at(1, 0);
	send_at(2, FI_FENCE);
	write_at(3, 0);
	ck_assert_int_eq(fi_av_remove(a.av, &to, 1, 0), 0);
	want_none(&a);
	fake_hold(false);
	want_done(1);
	want_ok(&a, NULL);
	want_ok(&a, NULL);
	ck_assert(is_written(3));
	want_soon(!has_peers());
}
END_TEST

START_TEST(an_endpoint_closes_with_fences)
{
	begin();
	fake_hold(true);
	fake_hold_frames(true);
	if (_i % 2)
		write_at(1, 0);
	send_at(2, FI_FENCE);
	write_at(3, FI_FENCE);
	send_at(4, 0);
	if (_i / 2)
		end_b();
	a_close();
}
END_TEST

/* A mark takes the place of an operation: if there is none, the call says so. */
START_TEST(an_endpoint_without_places_refuses_fences)
{
	struct mrf_ep *ep = node_ep(&a);
	struct iovec iov = { at(2), LEN };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = at(2) };
	unsigned places;

	begin();
	msg.addr = to;
	fake_hold(true);
	write_at(1, 0);
	mrf_lock_take(&ep->lock);
	places = ep->nops;
	ep->nops = MRF_EP_ALL_OPS(ep) - 1;
	mrf_lock_release(&ep->lock);
	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, FI_FENCE), -FI_EAGAIN);
	mrf_lock_take(&ep->lock);
	ck_assert_uint_eq(ep->nops, MRF_EP_ALL_OPS(ep) - 1);
	ep->nops = places;
	mrf_lock_release(&ep->lock);
	fake_hold(false);
	want_done(1);
	want_idle(&a);
}
END_TEST

static TCase *tcase_fence(void)
{
	TCase *tc = tcase_create("fence");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_fenced_message_waits_for_accesses, 0, 4);
	tcase_add_loop_test(tc, a_fenced_access_waits_for_messages, 0, 2);
	tcase_add_test(tc, what_comes_behind_a_fence_waits_too);
	tcase_add_test(tc, accesses_behind_a_fence_wait_for_messages_before_it);
	tcase_add_loop_test(tc, a_fence_waits_until_a_message_has_ended, 0,
			    2 * (int)MRF_ARRAY_SIZE(ends));
	tcase_add_test(tc, a_fenced_atomic_operation_waits_for_messages);
	tcase_add_test(tc, fences_of_both_kinds_follow_each_other);
	tcase_add_test(tc, a_fence_holds_for_messages_with_tags);
	tcase_add_test(tc, a_fence_with_nothing_before_it_starts_at_once);
	tcase_add_test(tc, a_fence_is_for_one_peer);
	tcase_add_loop_test(tc, a_fenced_message_takes_what_a_read_has_brought, 0, LENS * MODES);
	tcase_add_test(tc, an_injected_message_keeps_its_bytes);
	tcase_add_loop_test(tc, a_fence_that_is_canceled_holds_nothing_up, 0, 2);
	tcase_add_loop_test(tc, a_fence_holds_while_a_connection_is_lost, 0, 2);
	tcase_add_loop_test(tc, a_peer_that_goes_ends_it_all, 0, 2);
	tcase_add_test(tc, a_peer_is_removed_and_the_fence_holds);
	tcase_add_loop_test(tc, an_endpoint_closes_with_fences, 0, 4);
	tcase_add_test(tc, an_endpoint_without_places_refuses_fences);
	return tc;
}

UNIT_MAIN("fences", tcase_fence)
