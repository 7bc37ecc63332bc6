/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of many messages (FI_MULTI_RECV), on the fake fabric. */
#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_tagged.h>
#include "apart.h"
#include "ep_fixture.h"
#include "ep/msg/inbox.h"
#include "ep/msg/multi.h"

#define CAPS (FI_MSG | FI_TAGGED | FI_MULTI_RECV)
#define LEN 100u
#define ROOM 4096u
#define MAX 16384u

static struct node a, b;
static fi_addr_t to;
static uint8_t *out,
	*in; /* in: two buffers of ROOM, and one byte after each that nothing writes to */
static unsigned sent;

static void open_with(int mr_mode, bool selective)
{
	const struct node_opt opt = { .mr_mode = mr_mode, .caps = CAPS };
	struct node_opt receiver = opt;

	receiver.selective = selective;
	node_open(&a, &opt);
	node_open(&b, &receiver);
	to = node_insert(&a, &b);
	out = pages(MAX);
	in = pages(2 * (ROOM + PAGE));
	memset(in, 0xee, 2 * (ROOM + PAGE));
	sent = 0;
}

static void setup(void)
{
	fixture_setup();
	open_with(FI_MR_ALLOCATED, false);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	fixture_teardown();
}

static void set_min(size_t min)
{
	ck_assert_int_eq(
		fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
		0);
}

static ssize_t try_post(void *buf, size_t len, uint64_t flags)
{
	const struct iovec iov = { buf, len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf
	};

	return fi_recvmsg(b.ep, &msg, flags);
}

static void post(void *buf, size_t len)
{
	ck_assert_int_eq(try_post(buf, len, FI_MULTI_RECV), 0);
}

/* Each message has a pattern of its own. */
static void send_some(unsigned count, size_t len)
{
	while (count--) {
		fill(out, len, sent++);
		ck_assert_int_eq(fi_send(a.ep, out, len, NULL, to, out), 0);
		want_ok(&a, out);
	}
}

/* The next entry is of this message, at this place in the buffer. */
static void want_part(void *buf, size_t at, size_t len, unsigned seed, bool last)
{
	struct fi_cq_data_entry entry = want_ok(&b, buf);

	ck_assert_ptr_eq(entry.buf, (uint8_t *)buf + at);
	ck_assert_uint_eq(entry.len, len);
	ck_assert_uint_eq(entry.flags, FI_MSG | FI_RECV | (last ? FI_MULTI_RECV : 0));
	ck_assert(filled(entry.buf, len, seed));
}

static struct fi_cq_err_entry error_of(void *buf, int err)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_data_entry entry;

	ck_assert_int_eq(fi_cq_sread(b.cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(b.cq, &e, 0), 1);
	ck_assert_int_eq(e.err, err);
	ck_assert_ptr_eq(e.op_context, buf);
	return e;
}

static size_t posted(void)
{
	struct mrf_ep *ep = node_ep(&b);
	size_t n;

	mrf_lock_take(&ep->lock);
	n = ep->inbox->untagged.recvs;
	ck_assert_uint_eq(ep->inbox->multis, n);
	mrf_lock_release(&ep->lock);
	return n;
}

/* --- packing -------------------------------------------------------------------------- */

/* As fi_multi_recv of fabtests: as many entries as messages fit, and the last one says so. */
START_TEST(messages_fill_a_buffer)
{
	unsigned i, round, n = ROOM / LEN;
	uint8_t *two = in + ROOM + PAGE;

	set_min(LEN);
	post(in, ROOM);
	post(two, ROOM);
	for (round = 0; round < 4; round++) {
		uint8_t *buf = round % 2 ? two : in;

		for (i = 0; i < n; i++) {
			send_some(1, LEN);
			want_part(buf, i * LEN, LEN, sent - 1, i == n - 1);
		}
		ck_assert_uint_eq(buf[n * LEN], 0xee);
		ck_assert_uint_eq(posted(), 1);
		post(buf, ROOM);
	}
}
END_TEST

static const struct {
	size_t room, min, len;
	unsigned count; /* of messages, the last of which is cut if that is not a multiple */
} fills[] = {
	{ 10, 0, 1, 10 },					/* to the last byte, */
	{ 10, 1, 1, 10 },					/* which is the same */
	{ 10, 2, 1, 9 },  { 10, 10, 1, 1 }, { 10, 1000, 1, 1 }, /* it takes one in any case */
	{ 10, 3, 5, 2 },  { 10, 6, 5, 1 },  { 10, 0, 10, 1 },	{ ROOM, MAX, 64, 1 },
};

START_TEST(a_buffer_leaves_when_too_little_is_left)
{
	size_t room = fills[_i].room, len = fills[_i].len;
	unsigned i, n = fills[_i].count;

	set_min(fills[_i].min);
	post(in, room);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(posted(), 1);
		send_some(1, len);
		want_part(in, i * len, len, sent - 1, i == n - 1);
	}
	ck_assert_uint_eq(posted(), 0);
	ck_assert_uint_eq(in[n * len], 0xee);
	send_some(1, len);
	node_heard(&b);
	want_none(&b);
}
END_TEST

START_TEST(messages_of_no_bytes_take_no_room)
{
	unsigned i;

	set_min(0);
	post(in, 1);
	for (i = 0; i < 100; i++) {
		send_some(1, 0);
		want_part(in, 0, 0, 0, false);
	}
	send_some(1, 1);
	want_part(in, 0, 1, sent - 1, true);
}
END_TEST

START_TEST(what_is_longer_than_the_rest_is_cut)
{
	struct fi_cq_err_entry e;

	set_min(1);
	post(in, ROOM);
	send_some(1, ROOM - 10);
	want_part(in, 0, ROOM - 10, 0, false);
	send_some(1, 20);
	e = error_of(in, FI_ETRUNC);
	ck_assert_uint_eq(e.len, 10);
	ck_assert_uint_eq(e.olen, 10);
	ck_assert_ptr_eq(e.buf, in + ROOM - 10);
	ck_assert_uint_eq(e.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	ck_assert(filled(in + ROOM - 10, 10, 1));
	ck_assert_uint_eq(in[ROOM], 0xee);
	ck_assert_uint_eq(posted(), 0);
}
END_TEST

START_TEST(messages_that_have_come_are_first)
{
	unsigned i;

	set_min(LEN);
	send_some(7, LEN);
	node_heard(&b);
	post(in, 5 * LEN);
	for (i = 0; i < 5; i++)
		want_part(in, i * LEN, LEN, i, i == 4);
	ck_assert_uint_eq(posted(), 0);
	post(in, 5 * LEN);
	ck_assert_uint_eq(posted(), 1);
	send_some(3, LEN);
	for (i = 0; i < 5; i++)
		want_part(in, i * LEN, LEN, 5 + i, i == 4);
}
END_TEST

/* They stand in the same order, whatever their kind. */
START_TEST(receives_of_one_message_are_among_them)
{
	uint8_t *one = in + ROOM + PAGE;

	set_min(LEN);
	post(in, 2 * LEN);
	ck_assert_int_eq(fi_recv(b.ep, one, LEN, NULL, FI_ADDR_UNSPEC, one), 0);
	send_some(3, LEN);
	want_part(in, 0, LEN, 0, false);
	want_part(in, LEN, LEN, 1, true);
	ck_assert_ptr_null(want_ok(&b, one).buf);
	ck_assert(filled(one, LEN, 2));
	ck_assert_int_eq(fi_recv(b.ep, one, LEN, NULL, FI_ADDR_UNSPEC, one), 0);
	post(in, 2 * LEN);
	send_some(2, LEN);
	want_ok(&b, one);
	want_part(in, 0, LEN, 4, false);
}
END_TEST

/* --- the end -------------------------------------------------------------------------- */

START_TEST(a_canceled_buffer_is_given_back)
{
	unsigned i;

	set_min(LEN);
	for (i = 0; i < 3; i++) {
		post(in, ROOM);
		send_some(i, LEN);
		while (fi_cq_read(b.cq, &(struct fi_cq_data_entry){ 0 }, 1) == 1)
			;
		ck_assert_int_eq(fi_cancel(&b.ep->fid, in), 0);
		ck_assert_uint_eq(error_of(in, FI_ECANCELED).flags,
				  FI_MSG | FI_RECV | FI_MULTI_RECV);
		ck_assert_int_eq(fi_cancel(&b.ep->fid, in), -FI_ENOENT);
		ck_assert_uint_eq(posted(), 0);
	}
}
END_TEST

START_TEST(the_end_is_told_even_if_successes_are_not)
{
	unsigned i;

	teardown();
	fixture_setup();
	open_with(FI_MR_ALLOCATED, true);
	set_min(LEN);
	post(in, 5 * LEN);
	for (i = 0; i < 4; i++) {
		send_some(1, LEN);
		node_heard(&b);
		want_none(&b);
	}
	send_some(1, LEN);
	want_part(in, 4 * LEN, LEN, 4, true);
	for (i = 0; i < 4; i++)
		ck_assert(filled(in + i * LEN, LEN, i));
}
END_TEST

/* The buffer is not there: each message is lost, and each is told. */
START_TEST(a_buffer_that_is_not_mapped_loses_its_messages)
{
	uint8_t *gone = map_apart(ROOM);
	unsigned i;

	set_min(LEN);
	ck_assert_int_eq(munmap(gone, ROOM), 0);
	post(gone, 5 * LEN);
	send_some(5, LEN);
	for (i = 0; i < 5; i++)
		ck_assert_uint_eq(error_of(gone, FI_EFAULT).flags,
				  FI_MSG | FI_RECV | (i == 4 ? FI_MULTI_RECV : 0));
	ck_assert_uint_eq(posted(), 0);
}
END_TEST

/* It can take no more when its region is closed. */
START_TEST(a_closed_region_gives_its_buffer_back)
{
	const struct iovec iov = { NULL, 5 * LEN };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };
	struct iovec there = iov;
	struct fid_mr *mr;
	void *desc;

	teardown();
	fixture_setup();
	open_with(FI_MR_ALLOCATED | FI_MR_LOCAL, false);
	set_min(LEN);
	mr = node_reg(&b, in, ROOM, FI_RECV, 1);
	desc = fi_mr_desc(mr);
	there.iov_base = in;
	msg.msg_iov = &there;
	msg.desc = &desc;
	msg.context = in;
	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	ck_assert_int_eq(fi_inject(a.ep, out, 8, to), 0);
	ck_assert_uint_eq(want_ok(&b, in).flags, FI_MSG | FI_RECV);
	must_close(&mr->fid);
	ck_assert_int_eq(fi_inject(a.ep, out, 8, to), 0);
	ck_assert_uint_eq(error_of(in, FI_ECANCELED).flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	ck_assert_uint_eq(posted(), 0);
}
END_TEST

static struct fid_mr *_Atomic to_close;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

/* What a receive needs is allocated after its region was looked at. */
void *__wrap_calloc(size_t n, size_t size)
{
	struct fid_mr *mr =
		size == sizeof(struct mrf_recv_multi) ? atomic_exchange(&to_close, NULL) : NULL;

	if (mr)
		must_close(&mr->fid);
	return __real_calloc(n, size);
}

/* Another thread may do that while messages wait for the receive. */
START_TEST(a_region_may_be_closed_while_its_buffer_is_posted)
{
	struct iovec iov = { NULL, ROOM };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };
	struct fid_mr *mr;
	unsigned i;
	void *desc;

	teardown();
	fixture_setup();
	open_with(FI_MR_ALLOCATED | FI_MR_LOCAL, false);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(fi_inject(a.ep, out, 8, to), 0);
	node_heard(&b);
	want_none(&b);
	mr = node_reg(&b, in, ROOM, FI_RECV, 1);
	desc = fi_mr_desc(mr);
	iov.iov_base = msg.context = in;
	msg.desc = &desc;
	atomic_store(&to_close, mr);
	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	ck_assert_uint_eq(error_of(in, FI_ECANCELED).flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	want_none(&b);
	ck_assert_uint_eq(posted(), 0);
}
END_TEST

/* --- the calls ------------------------------------------------------------------------ */

START_TEST(the_option_is_for_later_receives)
{
	size_t min = 0, len = sizeof(min);

	ck_assert_int_eq(fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len),
			 0);
	ck_assert_uint_eq(len, sizeof(min));
	ck_assert_uint_eq(min, MAX);
	set_min(LEN);
	post(in, 4 * LEN);
	set_min(3 * LEN);
	ck_assert_int_eq(fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len),
			 0);
	ck_assert_uint_eq(min, 3 * LEN);
	send_some(2, LEN);
	want_part(in, 0, LEN, 0, false);
	want_part(in, LEN, LEN, 1, false);
	len = 1;
	ck_assert_int_eq(fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len),
			 -FI_ETOOSMALL);
	ck_assert_uint_eq(len, sizeof(min));
}
END_TEST

#define OPT(call, ...) call(&b.ep->fid, __VA_ARGS__)

START_TEST(wrong_options_are_refused)
{
	size_t min = 1, len = sizeof(min);

	ck_assert_int_eq(OPT(fi_setopt, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, 4),
			 -FI_EINVAL);
	ck_assert_int_eq(OPT(fi_setopt, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, len),
			 -FI_EINVAL);
	ck_assert_int_eq(OPT(fi_getopt, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, NULL),
			 -FI_EINVAL);
	ck_assert_int_eq(OPT(fi_getopt, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, &len),
			 -FI_EINVAL);
	ck_assert_int_eq(OPT(fi_setopt, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &min, len),
			 -FI_ENOPROTOOPT);
	ck_assert_int_eq(OPT(fi_getopt, FI_OPT_ENDPOINT + 1, FI_OPT_MIN_MULTI_RECV, &min, &len),
			 -FI_ENOPROTOOPT);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
	const struct iovec iov[2] = { { in, 8 }, { in + 8, 8 } };
	struct fi_msg two = { .msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC };
	struct fi_msg_tagged tagged = { .msg_iov = iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };

	ck_assert_int_eq(fi_recvmsg(b.ep, &two, FI_MULTI_RECV), -FI_EINVAL);
	ck_assert_int_eq(try_post(in, 0, FI_MULTI_RECV), -FI_EINVAL);
	ck_assert_int_eq(fi_trecvmsg(b.ep, &tagged, FI_MULTI_RECV), -FI_EBADFLAGS);
	ck_assert_uint_eq(posted(), 0);
}
END_TEST

/* Its capability was not asked for. */
START_TEST(an_endpoint_without_it_refuses_it)
{
	const struct node_opt opt = { .caps = FI_MSG };
	uint64_t flags = FI_RECV | FI_MULTI_RECV;
	size_t min = 1;

	node_close(&b);
	node_open(&b, &opt);
	ck_assert_int_eq(try_post(in, 8, FI_MULTI_RECV), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_control(&b.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	ck_assert_int_eq(OPT(fi_setopt, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
			 -FI_ENOPROTOOPT);
}
END_TEST

/* Among the flags of the endpoint, it is for untagged receives. */
START_TEST(the_endpoint_may_have_the_flag)
{
	uint64_t flags = FI_RECV | FI_MULTI_RECV;
	uint8_t *one = in + ROOM + PAGE;

	set_min(LEN);
	ck_assert_int_eq(fi_control(&b.ep->fid, FI_SETOPSFLAG, &flags), 0);
	ck_assert_int_eq(fi_recv(b.ep, in, 2 * LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_trecv(b.ep, one, 2 * LEN, NULL, FI_ADDR_UNSPEC, 5, 0, one), 0);
	send_some(2, LEN);
	want_part(in, 0, LEN, 0, false);
	want_part(in, LEN, LEN, 1, true);
	ck_assert_int_eq(fi_tsend(a.ep, out, LEN, NULL, to, 5, out), 0);
	ck_assert_uint_eq(want_ok(&b, one).flags, FI_TAGGED | FI_RECV);
}
END_TEST

/* Half used, it goes with its endpoint. */
START_TEST(a_buffer_goes_with_its_endpoint)
{
	set_min(LEN);
	post(in, ROOM);
	post(in + ROOM + PAGE, ROOM);
	send_some(3, LEN);
	want_ok(&b, in);
}
END_TEST

static TCase *tcase_multi(void)
{
	TCase *tc = tcase_create("multi");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, messages_fill_a_buffer);
	tcase_add_loop_test(tc, a_buffer_leaves_when_too_little_is_left, 0, MRF_ARRAY_SIZE(fills));
	tcase_add_test(tc, messages_of_no_bytes_take_no_room);
	tcase_add_test(tc, what_is_longer_than_the_rest_is_cut);
	tcase_add_test(tc, messages_that_have_come_are_first);
	tcase_add_test(tc, receives_of_one_message_are_among_them);
	tcase_add_test(tc, a_canceled_buffer_is_given_back);
	tcase_add_test(tc, the_end_is_told_even_if_successes_are_not);
	tcase_add_test(tc, a_buffer_that_is_not_mapped_loses_its_messages);
	tcase_add_test(tc, a_closed_region_gives_its_buffer_back);
	tcase_add_test(tc, a_region_may_be_closed_while_its_buffer_is_posted);
	tcase_add_test(tc, the_option_is_for_later_receives);
	tcase_add_test(tc, wrong_options_are_refused);
	tcase_add_test(tc, what_cannot_be_is_refused);
	tcase_add_test(tc, an_endpoint_without_it_refuses_it);
	tcase_add_test(tc, the_endpoint_may_have_the_flag);
	tcase_add_test(tc, a_buffer_goes_with_its_endpoint);
	return tc;
}

UNIT_MAIN("receives of many messages", tcase_multi)
