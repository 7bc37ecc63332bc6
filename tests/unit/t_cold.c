/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages for memory that is not there yet, on the fake fabric. A job copies the first message for
 * it, and is held up meanwhile: others go on, buffers for many messages are given back afterwards,
 * senders are not told too early, and closing waits.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "apart.h"
#include "base/known.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"
#include "held_write.h"

#define LEN 1000u
#define N 10u
#define CAPS (FI_MSG | FI_MULTI_RECV)

static struct node a, b;
static fi_addr_t to_b;
static uint8_t *out, *in, *cold;

static atomic_bool keeps;

/* For fake.on_send. */
static enum fake_fate keep_frames(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	(void)len;
	return atomic_load(&keeps) && !from_target ? FAKE_KEEP : FAKE_DELIVER;
}

static void setup(void)
{
	const struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .caps = CAPS };
	struct node_opt sender = opt;

	fixture_setup();
	held_write_init();
	mrf_known_distrust();
	sender.op_flags = FI_DELIVERY_COMPLETE;
	node_open(&a, &sender);
	node_open(&b, &opt);
	to_b = node_insert(&a, &b);
	out = pages(N * LEN);
	in = pages(N * LEN);
	fill(out, N * LEN, 9);
	cold = map_apart(4 * PAGE);
	atomic_store(&keeps, false);
	fake.on_send = keep_frames;
}

static void teardown(void)
{
	atomic_store(&may_go, true);
	node_close(&a);
	node_close(&b);
	ck_assert_int_eq(munmap(cold, 4 * PAGE), 0);
	fixture_teardown();
}

static void send_at(unsigned i)
{
	ck_assert_int_eq(fi_send(a.ep, out + i * LEN, LEN, NULL, to_b, out + i * LEN), 0);
}

static void want_sent(unsigned i)
{
	want_ok(&a, out + i * LEN);
}

static void recv_to(void *buf)
{
	ck_assert_int_eq(fi_recv(b.ep, buf, LEN, NULL, FI_ADDR_UNSPEC, buf), 0);
}

static void want_at(uint8_t *buf, unsigned i)
{
	want_ok(&b, buf);
	ck_assert_int_eq(memcmp(buf, out + i * LEN, LEN), 0);
}

static void begin(void)
{
	recv_to(in);
	send_at(0);
	want_at(in, 0);
	want_sent(0);
	atomic_store(&held, cold);
}

static void want_inside(void)
{
	want_soon((fi_cq_read(b.cq, NULL, 0), atomic_load(&inside)));
}

static void let_go(void)
{
	atomic_store(&may_go, true);
}

/* --- what the sender is told ---------------------------------------------------------- */

/* The slots behind it are free, but its bytes are not there. */
START_TEST(a_message_is_not_delivered_before_it_is_copied)
{
	unsigned i;

	begin();
	recv_to(cold);
	send_at(1);
	want_inside();
	for (i = 2; i < 5; i++) {
		recv_to(in + i * LEN);
		send_at(i);
		want_at(in + i * LEN, i);
	}
	node_heard(&b);
	want_none(&a);
	let_go();
	want_at(cold, 1);
	for (i = 1; i < 5; i++)
		want_sent(i);
}
END_TEST

/* --- buffers for many messages -------------------------------------------------------- */

static void post_many(size_t len)
{
	const struct iovec iov = { cold, len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = cold
	};
	size_t min = LEN;

	ck_assert_int_eq(
		fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
		0);
	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
}

/* Message i + 1 has part i. */
static void want_part(unsigned i, bool last)
{
	struct fi_cq_data_entry entry = want_ok(&b, cold);

	ck_assert_ptr_eq(entry.buf, cold + i * LEN);
	ck_assert_uint_eq(entry.flags, FI_MSG | FI_RECV | (last ? FI_MULTI_RECV : 0));
	ck_assert_int_eq(memcmp(entry.buf, out + (i + 1) * LEN, LEN), 0);
}

/* In any order, as each may be copied by a job of its own. */
static void want_last_two_parts(void)
{
	unsigned i, seen = 0;

	for (i = 0; i < 2; i++) {
		struct fi_cq_data_entry entry = want_ok(&b, cold);
		unsigned part = (unsigned)((uint8_t *)entry.buf - cold) / LEN;

		ck_assert_uint_eq(entry.flags, FI_MSG | FI_RECV);
		ck_assert(part == 1 || part == 2);
		ck_assert_int_eq(memcmp(entry.buf, out + (part + 1) * LEN, LEN), 0);
		seen |= 1u << part;
	}
	ck_assert_uint_eq(seen, 6);
}

static void send_three(void)
{
	unsigned i;

	for (i = 1; i <= 3; i++)
		send_at(i);
	want_inside();
	want_last_two_parts();
	node_heard(&b);
	want_none(&b);
}

/* The one that is there last gives the buffer back. */
START_TEST(a_buffer_is_given_back_when_all_parts_are_there)
{
	begin();
	post_many(3 * LEN);
	send_three();
	let_go();
	want_part(0, true);
	want_none(&b);
}
END_TEST

START_TEST(a_canceled_buffer_is_given_back_when_all_parts_are_there)
{
	struct fi_cq_err_entry e = { 0 };

	begin();
	post_many(4 * PAGE);
	send_three();
	ck_assert_int_eq(fi_cancel(&b.ep->fid, cold), 0);
	ck_assert_int_eq(fi_cancel(&b.ep->fid, cold), -FI_ENOENT);
	want_none(&b);
	let_go();
	want_part(0, false);
	want_soon(fi_cq_readerr(b.cq, &e, 0) == 1);
	ck_assert_int_eq(e.err, FI_ECANCELED);
	ck_assert_uint_eq(e.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	want_none(&b);
}
END_TEST

/* --- the endpoint closes -------------------------------------------------------------- */

static void *let_go_later(void *arg)
{
	usleep(100000);
	let_go();
	return arg;
}

static void close_b(void)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, let_go_later, NULL), 0);
	must_close(&b.ep->fid);
	b.ep = NULL;
	/* It has waited. */
	ck_assert(atomic_load(&may_go) && !atomic_load(&inside));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(closing_waits_for_parts)
{
	begin();
	post_many(_i ? 3 * LEN : 4 * PAGE);
	send_three();
	close_b();
}
END_TEST

static struct mrf_ep *_Atomic closing;

void __real_mrf_eps_remove(struct mrf_ep *ep);
void __wrap_mrf_eps_remove(struct mrf_ep *ep);

/* What was on the way comes when the endpoint is not polled any more. */
void __wrap_mrf_eps_remove(struct mrf_ep *ep)
{
	if (ep == atomic_load(&closing)) {
		atomic_store(&keeps, false);
		fake_deliver();
	}
	__real_mrf_eps_remove(ep);
}

START_TEST(closing_waits_for_a_message_that_comes_last)
{
	begin();
	recv_to(cold);
	atomic_store(&keeps, true);
	send_at(1);
	atomic_store(&closing, node_ep(&b));
	close_b();
	atomic_store(&closing, NULL);
	ck_assert_int_eq(memcmp(cold, out + LEN, LEN), 0);
}
END_TEST

static TCase *tcase_cold(void)
{
	TCase *tc = tcase_create("cold");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_message_is_not_delivered_before_it_is_copied);
	tcase_add_test(tc, a_buffer_is_given_back_when_all_parts_are_there);
	tcase_add_test(tc, a_canceled_buffer_is_given_back_when_all_parts_are_there);
	tcase_add_loop_test(tc, closing_waits_for_parts, 0, 2);
	tcase_add_test(tc, closing_waits_for_a_message_that_comes_last);
	return tc;
}

UNIT_MAIN("messages for memory that is not there", tcase_cold)
