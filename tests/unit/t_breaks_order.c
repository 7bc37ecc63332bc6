/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two connections to a peer break at random, in every way, under messages and accesses some of
 * which are fenced: whatever was started before a fence ends before all that was started with it or
 * behind it. If the endpoint was opened with all orders, messages that wait for no receive end before
 * accesses that come behind them, and accesses before messages that do; what fails may end earlier.
 * (That holds where results are not copied: a copy may delay what is known to have been done.)
 */
#include <string.h>
#include "breaks.h"
#include "two_ends.h"

#define LEN 1000u
#define LONG (40u << 10)
#define OPS 12u /* in a round */
#define RECVS (2 * OPS)
#define ROOM (RECVS * LONG)
#define KEY 9
#define ORDERS (FI_ORDER_SAW | FI_ORDER_SAR | FI_ORDER_RAS | FI_ORDER_WAS)
#define SETTINGS 12

static uint8_t *there;
static struct fid_mr *mr;
static bool ordered;
/* Of a round, by number in bits. */
static unsigned fences, accesses, shorts; /* shorts: messages that wait for no receive */

/* --- one setting ------------------------------------------------------------------------- */

static void setting_open(void)
{
	int mode;

	fake.flush_local = one_in(3);
	fake.on_send = on_send;
	mode = modes[any(3)];
	ordered = mode & FI_MR_LOCAL && one_in(2);
	ends_open(&(struct node_opt){ .mr_mode = mode,
				      .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC,
				      .order = ordered ? ORDERS : 0 },
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
	unsigned bit = 1u << i, what = any(4);

	fences |= flags ? bit : 0;
	flags |= one_in(3) ? FI_DELIVERY_COMPLETE : 0;
	switch (what) {
	case 0:
	case 1:
		accesses |= bit;
		access_one(what, i, flags);
		return;
	case 2:
		send_one(i, LONG, flags);
		return;
	default:
		if (one_in(4))
			flags |= FI_MATCH_COMPLETE;
		else
			shorts |= bit;
		send_one(i, LEN, flags);
	}
}

static void start_all(void)
{
	unsigned i;

	fences = accesses = shorts = 0;
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

/* The next that ends; *ok: with success. */
static unsigned next_end(unsigned ended, bool *ok)
{
	struct fi_cq_data_entry entry = { 0 };
	struct fi_cq_err_entry e = { 0 };
	ssize_t ret = fi_cq_sread(a.cq, &entry, 1, NULL, LONG_MS);

	ck_assert_msg(ret == 1 || ret == -FI_EAVAIL, "seed %u, round %u: %zd, ended %#x", seed,
		      round_no, ret, ended);
	*ok = ret == 1;
	if (*ok)
		return (unsigned)(((uint8_t *)entry.op_context - out) / LONG);
	ck_assert_int_eq(fi_cq_readerr(a.cq, &e, 0), 1);
	return (unsigned)(((uint8_t *)e.op_context - out) / LONG);
}

/* The operations that have to have ended before this one does. */
static unsigned before(unsigned i, bool ok)
{
	unsigned all = (1u << i) - 1, fence = i, fenced;

	while (fence && !(fences & 1u << fence))
		fence--;
	fenced = (1u << fence) - 1;
	if (!ordered || !ok)
		return fenced;
	return fenced | (all & (accesses & 1u << i ? shorts : accesses));
}

/* All have to end, with success or not. */
static void take_ends(void)
{
	unsigned ended = 0, i;
	bool ok;

	while (ended != (1u << OPS) - 1) {
		i = next_end(ended, &ok);
		ck_assert_msg(!(before(i, ok) & ~ended),
			      "seed %u, round %u: operation %u %s after %#x only (fences %#x, "
			      "%sordered, accesses %#x, short messages %#x)",
			      seed, round_no, i, ok ? "ends" : "fails", ended, fences,
			      ordered ? "" : "not ", accesses, shorts);
		ck_assert(!(ended & 1u << i));
		ended |= 1u << i;
	}
}

/* More than there are messages: one that has failed may have come, or come in a later round. */
static void post_all(void)
{
	unsigned i;

	for (i = 0; i < RECVS; i++)
		ck_assert_int_eq(
			fi_recv(b.ep, in + i * LONG, LONG, desc_of(in_mr), FI_ADDR_UNSPEC, in), 0);
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

START_TEST(an_order_holds_whatever_breaks)
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
	tcase_add_loop_test(tc, an_order_holds_whatever_breaks, 0, SETTINGS);
	return tc;
}

UNIT_MAIN("breaks under fences and orders", tcase_breaks)
