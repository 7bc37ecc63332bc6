/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two connections to a peer break at random, in every way, under messages and writes with data. Each
 * operation ends once, each message comes once if it was sent, and so does each entry. While the connection
 * of the writes is whole, what is read at the target comes in the order in which it was started, but for
 * messages ahead of entries of later writes.
 */
#include <string.h>
#include "breaks.h"
#include "two_ends.h"
#include "loop/agent_calls.h"

#define LEN 64u
#define LONG (40u << 10)
#define OPS 16u /* in a round */
#define RECVS (4 * OPS)
#define ROOM (RECVS * LONG)
#define KEY 9
#define SETTINGS 12

static uint8_t *there;
static struct fid_mr *mr[2];
/* Of a round, by number in bits. */
static unsigned writes, silent;
static unsigned round_base; /* what data tell of a round */

/* --- the target's agent, which makes the entries, may be slow --------------------------------- */

static struct mrf_kick slow;

static void sleep_some(struct mrf_kick *kick)
{
	(void)kick;
	usleep(3000);
}

static void slow_down(void)
{
	mrf_agent_kick(node_agent(&b), &slow);
}

/* --- one setting ------------------------------------------------------------------------- */

static void setting_open(void)
{
	static const uint64_t orders[] = { 0, 0, FI_ORDER_SAW, FI_ORDER_WAS };
	int mode = modes[any(3)];
	bool events = one_in(4);

	fake.flush_local = one_in(3);
	fake.packets = one_in(2);
	fake.on_send = on_send;
	ends_open(&(struct node_opt){ .mr_mode = mode | (events ? FI_MR_RMA_EVENT : 0),
				      .caps = FI_MSG | FI_TAGGED | FI_RMA |
					      (events ? FI_RMA_EVENT : 0),
				      .order = orders[any(4)] },
		  ROOM);
	if (out_mr) {
		mr_close(&out_mr);
		out_mr = node_reg(&a, out, ROOM, FI_SEND | FI_READ | FI_WRITE, 1);
	}
	there = pages(ROOM);
	mrf_list_init(&slow.node);
	slow.look = sleep_some;
}

static void setting_close(void)
{
	node_heard(&b);
	ends_close();
}

static void regs(void)
{
	mr[0] = node_reg(&b, there, ROOM, REMOTE_RW, KEY);
	mr[1] = node_reg(&b, there, ROOM, REMOTE_RW, KEY + 1);
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
			      .context = at(i),
			      .data = round_base + i };

	at(i)[0] = (uint8_t)i;
	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, flags | FI_REMOTE_CQ_DATA), 0);
}

static void inject_one(unsigned i)
{
	silent |= 1u << i;
	at(i)[0] = (uint8_t)i;
	ck_assert_int_eq(fi_injectdata(a.ep, at(i), LEN, round_base + i, to), 0);
}

static void write_one(unsigned i, uint64_t flags)
{
	struct iovec iov = { at(i), LEN };
	bool virt = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct fi_rma_iov rma = { (virt ? (uintptr_t)there : 0) + i * LONG, LEN, KEY + one_in(2) };
	void *desc = desc_of(out_mr);
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = out_mr ? &desc : NULL,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = at(i),
				  .data = round_base + i };

	writes |= 1u << i;
	ck_assert_int_eq((int)fi_writemsg(a.ep, &msg, flags | FI_REMOTE_CQ_DATA), 0);
}

static unsigned canceled;

static void cancel_some(unsigned i)
{
	if (!one_in(8))
		return;
	if (!fi_cancel(&a.ep->fid, at(i)))
		canceled |= 1u << i;
}

static void start_any(unsigned i)
{
	uint64_t flags = one_in(4) ? FI_FENCE : 0;

	switch (any(6)) {
	case 0:
	case 1:
	case 2:
		write_one(i, flags);
		break;
	case 3:
		inject_one(i);
		return;
	case 4:
		send_one(i, LONG, flags | (one_in(3) ? FI_DELIVERY_COMPLETE : 0));
		break;
	default:
		send_one(i, LEN, flags | (one_in(3) ? FI_DELIVERY_COMPLETE : 0));
	}
	cancel_some(one_in(2) ? i : any(i + 1));
}

static void start_all(void)
{
	unsigned i;

	writes = silent = canceled = 0;
	fake_hold(one_in(2));
	fake_hold_frames(one_in(3));
	for (i = 0; i < OPS; i++) {
		start_any(i);
		if (one_in(5))
			usleep(any(300));
		if (one_in(6))
			fake_hold(false);
		if (one_in(6))
			fake_hold_frames(false);
		if (one_in(6))
			slow_down();
		if (one_in(6))
			fi_cq_read(a.cq, NULL, 0);
	}
}

/* --- what is read ------------------------------------------------------------------------- */

static unsigned ended, failed, came;

static void note_end(const void *context, bool ok)
{
	unsigned i = (unsigned)(((const uint8_t *)context - out) / LONG);

	ck_assert_uint_lt(i, OPS);
	ck_assert_msg(!(ended & 1u << i), "seed %u, round %u: %u ends twice", seed, round_no, i);
	ended |= 1u << i;
	failed |= ok ? 0 : 1u << i;
}

static bool read_a(void)
{
	struct fi_cq_data_entry entry = { 0 };
	struct fi_cq_err_entry e = { 0 };
	ssize_t ret = fi_cq_read(a.cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == 1) {
		note_end(entry.op_context, true);
		return true;
	}
	ck_assert_int_eq((int)ret, -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(a.cq, &e, 0), 1);
	/* An injected one has no context. */
	if (e.op_context)
		note_end(e.op_context, false);
	return true;
}

static bool breaks_writes;
static unsigned posted; /* receives */

static void note_came(unsigned i)
{
	unsigned before = (1u << i) - 1, wanted;

	ck_assert_msg(!(came & 1u << i), "seed %u, round %u: %u comes twice", seed, round_no, i);
	wanted = before & writes & ~canceled;
	ck_assert_msg(breaks_writes || !(wanted & ~came),
		      "seed %u, round %u: %u comes after %#x only (writes %#x, canceled %#x)", seed,
		      round_no, i, came, writes, canceled);
	came |= 1u << i;
}

static bool read_b(void)
{
	struct fi_cq_data_entry entry = { 0 };
	struct fi_cq_err_entry e = { 0 };
	ssize_t ret = fi_cq_read(b.cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		ck_assert_int_eq(fi_cq_readerr(b.cq, &e, 0), 1);
		return true;
	}
	ck_assert_int_eq((int)ret, 1);
	ck_assert(entry.flags & FI_REMOTE_CQ_DATA);
	/* One that has failed may come later. */
	if (entry.data - round_base < OPS)
		note_came((unsigned)(entry.data - round_base));
	return true;
}

static bool is_over(void)
{
	const unsigned all = (1u << OPS) - 1;

	return (ended | silent) == all && !(all & ~silent & ~failed & ~came);
}

static void take_all(void)
{
	int64_t end = mrf_now_ms() + LONG_MS;

	while (!is_over()) {
		bool any_read = read_a();

		any_read |= read_b();
		if (any_read)
			end = mrf_now_ms() + LONG_MS;
		else
			usleep(50);
		if (one_in(50))
			slow_down();
		ck_assert_msg(
			mrf_now_ms() < end,
			"seed %u, round %u: hangs; ended %#x, silent %#x, failed %#x, came %#x, "
			"writes %#x",
			seed, round_no, ended, silent, failed, came, writes);
	}
}

/* Each has memory of its own: those of the program and of the agent may be filled at the same time. */
static void post_all(void)
{
	unsigned i;

	for (i = 0; i < 2 * OPS; i++, posted++)
		ck_assert_int_eq(fi_recv(b.ep, in + posted % RECVS * LONG, LONG, desc_of(in_mr),
					 FI_ADDR_UNSPEC, in),
				 0);
}

static void forget_receives(void)
{
	while (!fi_cancel(&b.ep->fid, in))
		;
	while (read_b())
		;
}

static void one_break(void)
{
	breaks_writes = one_in(2);
	if (breaks_writes)
		break_some(&b, false, 6, one_in(2) ? fake_break : fake_break_frame);
	else if (one_in(2))
		fake_break_frame(1 + any(4), 1, one_in(2) ? MRF_WC_FLUSHED : MRF_WC_TIMEOUT,
				 one_in(2));
}

static void round_run(void)
{
	ended = failed = came = 0;
	round_base = round_no * OPS * 2;
	regs();
	/* What is broken decides what may be said of the order. */
	start_all();
	if (one_in(2))
		post_all();
	one_break();
	post_all();
	fake_hold(false);
	fake_hold_frames(false);
	take_all();
	fake_heal();
	refuse(0);
	want_soon((read_a(), read_b(), node_idle(&a)));
	forget_receives();
	must_close(&mr[0]->fid);
	must_close(&mr[1]->fid);
}

START_TEST(entries_and_messages_come_whatever_breaks)
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
	tcase_add_loop_test(tc, entries_and_messages_come_whatever_breaks, 0, SETTINGS);
	return tc;
}

UNIT_MAIN("breaks under writes with data and messages", tcase_breaks)
