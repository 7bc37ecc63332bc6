/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything fails once, on the paths of messages from and to memory of devices: in round n the nth
 * allocation or the like, or the nth call of the device. Each send and each receive that has met a message
 * ends once, what is told to have arrived is there, messages arrive again afterwards, and nothing is left.
 */
#include "fail_walk.h"
#include "msg_device.h"

#define MSGS 3u
static const size_t lens[MSGS] = { LEN, SHORT, MRF_STAGE_CHUNK + 1 };

static bool sent[MSGS], came[MSGS], ended[2][MSGS];

static size_t place(unsigned i)
{
	return i * LEN;
}

/* A call that fails is done again; programs are told to do so where there is no memory. */
static void again(long ret, unsigned i, bool sends)
{
	if (!ret)
		return;
	if (ret != -FI_EAGAIN || !met())
		may_fail(sends ? "fi_send" : "fi_recv", -ret);
	ret = sends ? LIBRARY(send_at(place(i), lens[i])) : LIBRARY(recv_at(place(i), lens[i]));
	ck_assert_msg(!ret, "%s, failure %u: %ld again", where, nth, ret);
}

static void end_one(unsigned end, const void *context, bool well)
{
	const uint8_t *from = end ? in.mem : out.mem;
	unsigned i = (unsigned)((size_t)((const uint8_t *)context - from) / LEN);

	ck_assert_msg(!ended[end][i], "%s, failure %u: it ends twice", where, nth);
	ended[end][i] = true;
	(end ? came : sent)[i] = well;
}

/* False: there is no completion. */
static bool take(unsigned end)
{
	struct node *node = end ? &p.b : &p.a;
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry e = { 0 };
	ssize_t ret = LIBRARY(fi_cq_read(node->cq, &entry, 1));

	if (ret == 1)
		end_one(end, entry.op_context, true);
	if (ret != -FI_EAVAIL)
		return ret == 1;
	ck_assert_int_eq(LIBRARY(fi_cq_readerr(node->cq, &e, 0)), 1);
	ck_assert_msg(met() || e.err == FI_ECANCELED, "%s: %d before anything failed: %s", where,
		      e.err, e.err_data ? (char *)e.err_data : "");
	end_one(end, e.op_context, false);
	return true;
}

static bool all_ended(unsigned end)
{
	unsigned i;

	while (take(0) || take(1))
		;
	for (i = 0; i < MSGS; i++) {
		if (!ended[end][i])
			return false;
	}
	return true;
}

/* Where a send failed, its receive may wait for ever. */
static void end_receives(void)
{
	unsigned i;

	for (i = 0; i < MSGS; i++) {
		all_ended(1);
		if (!ended[1][i] && !(sent[0] && sent[1] && sent[2]))
			fi_cancel(&p.b.ep->fid, in.mem + place(i));
	}
	want_soon(all_ended(1));
}

/* Has something failed? */
static bool round_run(int runtime, enum ends ends)
{
	unsigned i;
	bool failed;

	open_ends(runtime, ends, FI_MR_ALLOCATED | FI_MR_LOCAL);
	memset(ended, 0, sizeof(ended));
	order();
	for (i = 0; i < MSGS; i++) {
		again(LIBRARY(recv_at(place(i), lens[i])), i, false);
		again(LIBRARY(send_at(place(i), lens[i])), i, true);
	}
	want_soon(all_ended(0));
	failed = met();
	heal();
	end_receives();
	for (i = 0; i < MSGS; i++) {
		ck_assert(failed || (sent[i] && came[i]));
		if (sent[0] && sent[1] && sent[2] && came[i])
			ck_assert(is_there(place(i), place(i), lens[i]));
	}
	one_arrives(0, LEN);
	want_none(&p.a);
	want_none(&p.b);
	close_ends();
	return failed;
}

static void walk(const char *name, int i, int err)
{
	where = name;
	device_err = err;
	outside = 1;
	for (nth = 1 + every_first(); round_run(i % RIGS, (enum ends)(i / RIGS + 1));)
		nth += every_number("MRFAB_TEST_EVERY", 5);
	ck_assert_uint_gt(nth, 10);
}

START_TEST(device_each_allocation_may_fail)
{
	walk("allocations", _i, 0);
}
END_TEST

START_TEST(device_each_call_may_fail)
{
	walk("calls of the device", _i / 2, _i % 2 ? FI_EIO : FI_ENOMEM);
}
END_TEST

static TCase *tcase_faults(void)
{
	TCase *tc = tcase_create("faults");

	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, fixture_setup_impatient, fixture_teardown);
	tcase_add_loop_test(tc, device_each_allocation_may_fail, 0, RIGS * ENDS);
	tcase_add_loop_test(tc, device_each_call_may_fail, 0, 2 * RIGS * ENDS);
	return tc;
}

UNIT_MAIN("faults of messages of devices", tcase_faults)
