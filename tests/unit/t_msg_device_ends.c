/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from and to memory of devices, of which something goes wrong: memory that was freed, copies
 * that fail, regions and endpoints that are closed, lines that break, no memory to go by way of.
 */
#include "msg_device.h"

static const size_t lens[] = { SHORT, LEN };

static void receive_fails(size_t at, int err, const char *text)
{
	want_err(&p.b, in.mem + at, err, text);
}

/* --- memory that was freed ------------------------------------------------------------------- */

START_TEST(device_memory_that_was_freed_is_not_sent)
{
	open_ends(_i, SENDER, FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	rig->unmake(RT_DEVICE, out.mem);
	ck_assert_int_eq(send_at(0, 8), -FI_EFAULT);
	ck_assert_int_eq(send_at(0, SHORT), -FI_EFAULT);
	/* It is copied when it is asked for. */
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(send_at(0, LEN), 0);
	want_err(&p.a, out.mem, FI_EFAULT, NULL);
	receive_fails(0, FI_ECANCELED, "given the message up");
	end_mr_close(&out);
	end_open(&out, true, false, FI_SEND);
	end_put(&out, 0, want, ROOM);
	one_arrives(0, LEN);
	close_ends();
}
END_TEST

START_TEST(device_memory_that_was_freed_receives_nothing)
{
	size_t i;

	open_ends(_i, RECEIVER, FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	rig->unmake(RT_DEVICE, in.mem);
	for (i = 0; i < MRF_ARRAY_SIZE(lens); i++) {
		ck_assert_int_eq(recv_at(0, LEN), 0);
		ck_assert_int_eq(send_at(0, lens[i]), 0);
		receive_fails(0, FI_EFAULT, "cannot be written");
		want_sent(0);
	}
	end_mr_close(&in);
	end_open(&in, true, false, FI_RECV);
	one_arrives(0, LEN);
	close_ends();
}
END_TEST

/* --- copies that fail ------------------------------------------------------------------------- */

/* The receive has the message, or, if something failed, this error. */
static void received(int err)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_sread(p.b.cq, &entry, 1, NULL, LONG_MS)) == -FI_EAGAIN)
		;
	if (control.fails_left())
		ck_assert_int_eq(ret, 1);
	else
		want_err(&p.b, in.mem, err, NULL);
}

/* Each call that moves bytes fails once. Returns how many there were. */
static unsigned fail_each(size_t len, bool sends)
{
	const char *call = sends ? rig->get_call : rig->put_call;
	unsigned nth = 0, left;
	ssize_t ret;

	do {
		control.fail_next(call, ++nth, rig->lost);
		ck_assert_int_eq(recv_at(0, LEN), 0);
		ret = send_at(0, len);
		ck_assert_int_eq(ret, ret ? -FI_EIO : 0);
		if (ret)
			ck_assert_int_eq(fi_cancel(&p.b.ep->fid, in.mem), 0);
		else if (!ends_well())
			want_err(&p.a, out.mem, FI_EIO, NULL);
		received(sends ? FI_ECANCELED : FI_EIO);
		left = control.fails_left();
		control.fail_next(call, 0, 0);
	} while (!left);
	return nth;
}

START_TEST(device_copies_that_fail_are_told)
{
	enum ends ends = _i / RIGS % 2 ? RECEIVER : SENDER;

	open_ends(_i % RIGS, ends, FI_MR_ALLOCATED);
	ck_assert_uint_ge(fail_each(SHORT, ends == SENDER), 2);
	ck_assert_uint_ge(fail_each(LEN, ends == SENDER), 7);
	want_none(&p.a);
	want_none(&p.b);
	one_arrives(0, LEN);
	close_ends();
}
END_TEST

/* --- regions ---------------------------------------------------------------------------------- */

/* Before a message comes, or its bytes are asked for. */
START_TEST(device_region_is_closed_before)
{
	size_t len = lens[_i / RIGS % 2];

	open_ends(_i % RIGS, BOTH, _i / RIGS / 2 ? FI_MR_ALLOCATED | FI_MR_LOCAL : FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	end_mr_close(&in);
	ck_assert_int_eq(send_at(0, len), 0);
	receive_fails(0, FI_ECANCELED, "was closed");
	want_sent(0);
	in.mr = reg_device(&p.b, in.mem, ROOM, FI_RECV, 6);
	one_arrives(0, LEN);
	ck_assert_int_eq(send_at(0, LEN), 0);
	ck_assert_int_eq(send_at(0, 100), 0);
	want_sent(0);
	end_mr_close(&out);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	want_got(0, 100);
	want_err(&p.a, out.mem, FI_ECANCELED, "was closed");
	receive_fails(0, FI_ECANCELED, "given the message up");
	close_ends();
}
END_TEST

static void *close_region(void *arg)
{
	end_mr_close(arg);
	return NULL;
}

/* While a part is copied, which fi_close waits for. */
START_TEST(device_region_is_closed_in_the_middle)
{
	struct end *end = _i / RIGS ? &in : &out;
	pthread_t thread;

	open_ends(_i % RIGS, _i / RIGS ? RECEIVER : SENDER, FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	hold(2);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(send_at(0, LEN), 0);
	want_soon((nothing_completed(), fi_cq_read(p.b.cq, NULL, 0), atomic_load(&inside)));
	ck_assert_int_eq(pthread_create(&thread, NULL, close_region, end), 0);
	usleep(10000);
	let_go();
	pthread_join(thread, NULL);
	if (end == &in) {
		receive_fails(0, FI_ECANCELED, "was closed");
		want_sent(0);
	} else {
		want_err(&p.a, out.mem, FI_ECANCELED, "was closed");
		receive_fails(0, FI_ECANCELED, "given the message up");
	}
	end->mr = reg_device(end->node, end->mem, ROOM, end == &in ? FI_RECV : FI_SEND, 6);
	one_arrives(0, LEN);
	close_ends();
}
END_TEST

/* --- lines, endpoints ------------------------------------------------------------------------ */

/* A part breaks off, or its acknowledgement is lost, wherever the bytes are copied. */
START_TEST(device_message_survives_a_line_that_breaks)
{
	unsigned part;

	open_ends(_i % RIGS, (enum ends)(_i / RIGS + 1), FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	for (part = 1; part <= 6; part++) {
		bool ran = part % 2;

		erase();
		fake_break_pair(part, 1, ran ? MRF_WC_TIMEOUT : MRF_WC_FLUSHED, ran);
		ck_assert_int_eq(recv_at(0, LEN), 0);
		ck_assert_int_eq(send_at(0, LEN), 0);
		want_got(0, LEN);
		want_sent(0);
		fake_heal();
	}
	close_ends();
}
END_TEST

/* The line ends while a part is copied, from there or to there. */
START_TEST(device_line_breaks_while_a_part_is_copied)
{
	open_ends(_i % RIGS, _i / RIGS ? RECEIVER : SENDER, FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	erase();
	hold(2);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	fake_break_pair(_i / RIGS ? 3 : 1, 1, MRF_WC_TIMEOUT, _i / RIGS);
	ck_assert_int_eq(send_at(0, LEN), 0);
	want_soon(is_inside());
	usleep(20000);
	let_go();
	want_got(0, LEN);
	want_sent(0);
	close_ends();
}
END_TEST

static void *let_go_later(void *arg)
{
	usleep(20000);
	let_go();
	return arg;
}

/* Either end closes while a part is copied. */
START_TEST(device_endpoint_is_closed_in_the_middle)
{
	bool receiver = _i / RIGS % 2;
	struct node *first = _i / RIGS / 2 ? &p.b : &p.a;
	pthread_t thread;

	open_ends(_i % RIGS, receiver ? RECEIVER : SENDER, FI_MR_ALLOCATED);
	one_arrives(0, LEN);
	hold(2);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(send_at(0, LEN), 0);
	want_soon(is_inside());
	ck_assert_int_eq(pthread_create(&thread, NULL, let_go_later, NULL), 0);
	must_close(&first->ep->fid);
	pthread_join(thread, NULL);
	/* All may have come to the receiver, though not to its device. */
	if (first == &p.b && !(receiver && ends_well()))
		want_err(&p.a, out.mem, FI_ECONNREFUSED, NULL);
	ck_assert_int_eq(node_try_ep(first,
				     &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_HMEM,
							 .caps = MSG_CAPS },
				     &first->ep),
			 0);
	close_ends();
}
END_TEST

/* --- no memory to go by way of ----------------------------------------------------------------- */

START_TEST(device_message_without_a_ring_fails)
{
	enum ends ends = _i / RIGS ? RECEIVER : SENDER;

	/* The other end needs no registration. */
	open_ends(_i % RIGS, ends, FI_MR_ALLOCATED | FI_MR_LOCAL);
	one_arrives(0, SHORT);
	fake_fail(FAKE_VMR_REG, 1, FI_ENOMEM);
	ck_assert_int_eq(recv_at(0, LEN), 0);
	ck_assert_int_eq(send_at(0, LEN), 0);
	if (ends == SENDER)
		want_err(&p.a, out.mem, FI_ENOMEM, "cannot be pinned");
	else
		receive_fails(0, FI_ENOMEM, "cannot be pinned");
	if (ends == SENDER)
		receive_fails(0, FI_ECANCELED, NULL);
	else
		want_sent(0);
	one_arrives(0, LEN);
	close_ends();
}
END_TEST

static TCase *tcase_memory(void)
{
	TCase *tc = tcase_create("memory");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, device_memory_that_was_freed_is_not_sent, 0, RIGS);
	tcase_add_loop_test(tc, device_memory_that_was_freed_receives_nothing, 0, RIGS);
	tcase_add_loop_test(tc, device_copies_that_fail_are_told, 0, 2 * RIGS);
	tcase_add_loop_test(tc, device_message_without_a_ring_fails, 0, 2 * RIGS);
	return tc;
}

static TCase *tcase_ends(void)
{
	TCase *tc = tcase_create("ends");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, device_region_is_closed_before, 0, 4 * RIGS);
	tcase_add_loop_test(tc, device_region_is_closed_in_the_middle, 0, 2 * RIGS);
	tcase_add_loop_test(tc, device_message_survives_a_line_that_breaks, 0, ENDS * RIGS);
	tcase_add_loop_test(tc, device_line_breaks_while_a_part_is_copied, 0, 2 * RIGS);
	tcase_add_loop_test(tc, device_endpoint_is_closed_in_the_middle, 0, 4 * RIGS);
	return tc;
}

UNIT_MAIN("ends of messages of devices", tcase_memory, tcase_ends)
