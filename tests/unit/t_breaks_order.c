/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two connections to a peer break at random, in every way, under messages and accesses some of
 * which are fenced: whatever was started before a fence ends before all that was started with it or
 * behind it.
 */
#include <string.h>
#include "breaks.h"
#include "two_ends.h"

#define LEN 1000u
#define LONG (40u << 10)
#define OPS 12u /* in a round */
#define ROOM (OPS * LONG)
#define KEY 9
#define SETTINGS 12

static uint8_t *there;
static struct fid_mr *mr;
static unsigned fences; /* bits: these are fenced */

/* --- one setting ------------------------------------------------------------------------- */

static void setting_open(void)
{
	fake.flush_local = one_in(3);
	fake.on_send = on_send;
	ends_open(&(struct node_opt){ .mr_mode = modes[any(3)],
				      .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC },
		  ROOM);
	if (out_mr) {
		mr_close(&out_mr);
		out_mr = node_reg(&a, out, ROOM, FI_SEND | FI_READ | FI_WRITE, 1);
	}
	there = pages(ROOM);
	mr = node_reg(&b, there, ROOM, REMOTE_RW, KEY);
}

static void setting_close(void)
{
	must_close(&mr->fid);
	ends_close();
}

/* --- one round ---------------------------------------------------------------------------- */

static uint8_t *at(unsigned i)
{
	return out + i * LONG;
}

static void send_one(unsigned i, size_t len, uint64_t flags)
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

static void access_one(bool write, unsigned i, uint64_t flags)
{
	struct iovec iov = { at(i), LEN };
	bool virt = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct fi_rma_iov rma = { (virt ? (uintptr_t)there : 0) + i * LONG, LEN, KEY };
	void *desc = desc_of(out_mr);
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = out_mr ? &desc : NULL,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = at(i) };
	ssize_t ret = write ? fi_writemsg(a.ep, &msg, flags) : fi_readmsg(a.ep, &msg, flags);

	ck_assert_int_eq((int)ret, 0);
}

static void start_any(unsigned i)
{
	uint64_t flags = one_in(3) ? FI_FENCE : 0;

	fences |= flags ? 1u << i : 0;
	flags |= one_in(3) ? FI_DELIVERY_COMPLETE : 0;
	switch (any(4)) {
	case 0:
		access_one(true, i, flags);
		return;
	case 1:
		access_one(false, i, flags);
		return;
	case 2:
		send_one(i, LONG, flags);
		return;
	default:
		send_one(i, LEN, flags | (one_in(4) ? FI_MATCH_COMPLETE : 0));
	}
}

static void start_all(void)
{
	unsigned i;

	fences = 0;
	fake_hold(one_in(2));
	fake_hold_frames(one_in(2));
	for (i = 0; i < OPS; i++) {
		start_any(i);
		if (one_in(6))
			fake_hold(false);
		if (one_in(6))
			fake_hold_frames(false);
	}
}

static unsigned next_end(unsigned ended)
{
	struct fi_cq_data_entry entry = { 0 };
	struct fi_cq_err_entry e = { 0 };
	ssize_t ret = fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS);

	ck_assert_msg(ret == 1 || ret == -FI_EAVAIL, "seed %u, round %u: %zd, ended %#x", seed,
		      round_no, ret, ended);
	if (ret == 1)
		return (unsigned)(((uint8_t *)entry.op_context - out) / LONG);
	ck_assert_int_eq(fi_cq_readerr(a.cq, &e, 0), 1);
	return (unsigned)(((uint8_t *)e.op_context - out) / LONG);
}

static void check_end(unsigned ended, unsigned i)
{
	unsigned fence = i, before;

	while (fence && !(fences & 1u << fence))
		fence--;
	before = (1u << fence) - 1;
	ck_assert_msg(!(before & ~ended),
		      "seed %u, round %u: operation %u of fences %#x ends after %#x only", seed,
		      round_no, i, fences, ended);
}

/* All have to end, with success or not. */
static void take_ends(void)
{
	unsigned ended = 0, i;

	while (ended != (1u << OPS) - 1) {
		i = next_end(ended);
		check_end(ended, i);
		ck_assert(!(ended & 1u << i));
		ended |= 1u << i;
	}
}

/* More than there are messages: one that has failed may have come, or come in a later round. */
static void post_all(void)
{
	unsigned i;

	for (i = 0; i < 2 * OPS; i++)
		ck_assert_int_eq(fi_recv(b.ep, in, LONG, desc_of(in_mr), FI_ADDR_UNSPEC, in), 0);
}

static void forget_receives(void)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry e;
	ssize_t ret;

	while (!fi_cancel(&b.ep->fid, in))
		;
	while ((ret = fi_cq_read(b.cq, &entry, 1)) != -FI_EAGAIN) {
		e = (struct fi_cq_err_entry){ 0 };
		if (ret == -FI_EAVAIL)
			fi_cq_readerr(b.cq, &e, 0);
	}
}

static void round_run(void)
{
	start_all();
	break_some(&b, false, 6, one_in(2) ? fake_break : fake_break_frame);
	post_all();
	fake_hold(false);
	fake_hold_frames(false);
	take_ends();
	fake_heal();
	refuse(0);
	forget_receives();
}

START_TEST(a_fence_holds_whatever_breaks)
{
	if (!setting_begin((unsigned)_i, SETTINGS))
		return;
	setting_open();
	for (round_no = 1; round_no <= rounds_of(SETTINGS); round_no++) {
		forget_log();
		round_run();
	}
	want_idle(&a);
	setting_close();
}
END_TEST

static TCase *tcase_breaks(void)
{
	TCase *tc = tcase_create("breaks");

	tcase_set_timeout(tc, 600);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, a_fence_holds_whatever_breaks, 0, SETTINGS);
	return tc;
}

UNIT_MAIN("breaks under fences", tcase_breaks)
