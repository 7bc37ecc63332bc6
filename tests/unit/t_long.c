/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages whose bytes are asked for, on the fake fabric. */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_tagged.h>
#include "two_ends.h"
#include "contract/budget.h"
#include "proto/frame.h"

#define SHORT 16384u
#define LONG (64u << 10)
#define ROOM (8u << 20)
#define CAPS (FI_MSG | FI_TAGGED | FI_MULTI_RECV)

static void open_with(int mr_mode)
{
	ends_open(&(struct node_opt){ .mr_mode = mr_mode, .caps = CAPS }, ROOM);
}

static void send_at(size_t at, size_t len)
{
	ck_assert_int_eq(fi_send(a.ep, out + at, len, desc_of(out_mr), to, out + at), 0);
}

static void recv_at(size_t at, size_t len)
{
	ck_assert_int_eq(fi_recv(b.ep, in + at, len, desc_of(in_mr), FI_ADDR_UNSPEC, in + at), 0);
}

static void want_sent(size_t at)
{
	struct fi_cq_data_entry entry = want_ok(&a, out + at);

	ck_assert_uint_eq(entry.flags, FI_MSG | FI_SEND);
}

static void want_got(size_t at, size_t len)
{
	struct fi_cq_data_entry entry = want_ok(&b, in + at);

	ck_assert_uint_eq(entry.flags, FI_MSG | FI_RECV);
	ck_assert_uint_eq(entry.len, len);
	ck_assert(!memcmp(in + at, out + at, len));
}

/* --- what arrives --------------------------------------------------------------------- */

static const size_t sizes[] = { SHORT + 1, LONG, MRF_GRANT_BYTES, MRF_GRANT_BYTES + 1,
				3 * MRF_GRANT_BYTES };

START_TEST(a_posted_receive_gets_it)
{
	size_t i;

	open_with(modes[_i]);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++) {
		memset(in, 0, ROOM);
		recv_at(0, sizes[i]);
		send_at(0, sizes[i]);
		want_got(0, sizes[i]);
		want_sent(0);
	}
	ends_close();
}
END_TEST

/* Nobody polls at b, so its agent does: another thread is woken only if there is no descriptor. */
START_TEST(a_pinned_region_takes_no_job)
{
	struct mrf_ep *ep;
	bool job;

	open_with(modes[_i]);
	ep = node_ep(&b);
	recv_at(0, LONG);
	send_at(0, LONG);
	want_sent(0);
	mrf_lock_take(&ep->lock);
	job = ep->inbox->step_job.work;
	mrf_lock_release(&ep->lock);
	ck_assert_int_eq(job, !(modes[_i] & FI_MR_LOCAL));
	want_got(0, LONG);
	ends_close();
}
END_TEST

START_TEST(it_waits_for_its_receive)
{
	size_t i, at = 0;

	open_with(modes[_i]);
	for (i = 0; i < 3; i++, at += sizes[i])
		send_at(at, sizes[i]);
	want_none(&a);
	ck_assert_uint_lt(node_ep(&b)->inbox->kept, SHORT);
	for (i = 0, at = 0; i < 3; i++, at += sizes[i]) {
		recv_at(at, sizes[i]);
		want_got(at, sizes[i]);
		want_sent(at);
	}
	ck_assert_uint_eq(node_ep(&b)->inbox->kept, 0);
	ends_close();
}
END_TEST

/* --- what does not fit ---------------------------------------------------------------- */

/* The next completion of b is that of the receive at `at`, which had room for so many bytes. */
static void want_cut(size_t at, size_t room, size_t len)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry e = { 0 };

	ck_assert_int_eq(fi_cq_sread(b.cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(b.cq, &e, 0), 1);
	ck_assert_int_eq(e.err, FI_ETRUNC);
	ck_assert_int_eq(e.prov_errno, 4320);
	ck_assert_ptr_eq(e.op_context, in + at);
	ck_assert_uint_eq(e.len, room);
	ck_assert_uint_eq(e.olen, len - room);
	ck_assert(!memcmp(in + at, out + at, room));
}

static bool is_zero(const uint8_t *from, size_t len)
{
	return !len || (!from[0] && !memcmp(from, from + 1, len - 1));
}

static const size_t rooms[] = { 0,
				1,
				100,
				SHORT,
				SHORT + 1,
				LONG + 7,
				MRF_GRANT_BYTES,
				MRF_GRANT_BYTES + 9,
				2 * MRF_GRANT_BYTES - 1 };

START_TEST(what_does_not_fit_is_cut)
{
	const size_t len = 2 * MRF_GRANT_BYTES;
	size_t i;

	open_with(modes[_i]);
	for (i = 0; i < 2 * MRF_ARRAY_SIZE(rooms); i++) {
		size_t room = rooms[i / 2];

		memset(in, 0, ROOM);
		if (i % 2)
			recv_at(0, room);
		send_at(0, len);
		if (i % 2 == 0)
			recv_at(0, room);
		want_cut(0, room, len);
		want_sent(0);
		ck_assert(is_zero(in + room, ROOM - room));
	}
	ends_close();
}
END_TEST

START_TEST(a_receive_may_have_more_room)
{
	open_with(modes[_i]);
	recv_at(0, ROOM / 2);
	send_at(0, LONG + 1);
	want_got(0, LONG + 1);
	want_sent(0);
	ck_assert(is_zero(in + LONG + 1, ROOM - LONG - 1));
	ends_close();
}
END_TEST

/* --- peeking -------------------------------------------------------------------------- */

static struct fi_msg_tagged nothing(void *context)
{
	return (struct fi_msg_tagged){ .addr = FI_ADDR_UNSPEC, .context = context };
}

static void want_peeked(uint64_t flags, size_t at, size_t len)
{
	struct fi_msg_tagged msg = nothing(in + at);
	struct fi_cq_data_entry entry;

	ck_assert_int_eq(fi_trecvmsg(b.ep, &msg, flags), 0);
	entry = want_ok(&b, in + at);
	ck_assert_uint_eq(entry.flags, FI_TAGGED | FI_RECV | (flags & (FI_PEEK | FI_CLAIM)));
	ck_assert_uint_eq(entry.len, len);
}

static void tsend_at(size_t at, size_t len, uint64_t tag)
{
	ck_assert_int_eq(fi_tsend(a.ep, out + at, len, desc_of(out_mr), to, tag, out + at), 0);
}

static void trecv_at(size_t at, size_t len, uint64_t tag)
{
	ck_assert_int_eq(
		fi_trecv(b.ep, in + at, len, desc_of(in_mr), FI_ADDR_UNSPEC, tag, 0, in + at), 0);
}

static void want_tgot(size_t at, size_t len, uint64_t flags)
{
	struct fi_cq_data_entry entry = want_ok(&b, in + at);

	ck_assert_uint_eq(entry.flags, FI_TAGGED | FI_RECV | flags);
	ck_assert_uint_eq(entry.len, len);
	ck_assert(!memcmp(in + at, out + at, len));
}

/* How many offers b has. */
/* In b's inbox; peeking does not wait. */
static void tsend_and_wait(size_t at, size_t len)
{
	unsigned n = offers();

	tsend_at(at, len, 0);
	want_soon(offers() == n + 1);
}

START_TEST(peeking_tells_its_length)
{
	open_with(0);
	tsend_and_wait(0, LONG);
	want_peeked(FI_PEEK, 0, LONG);
	want_peeked(FI_PEEK, 0, LONG);
	want_none(&a);
	ck_assert(is_zero(in, LONG));
	trecv_at(0, LONG, 0);
	want_tgot(0, LONG, 0);
	want_ok(&a, out);
	ends_close();
}
END_TEST

static void recv_claimed(size_t at, size_t len)
{
	struct iovec iov = { in + at, len };
	void *desc = desc_of(in_mr);
	struct fi_msg_tagged msg = nothing(in + at);

	msg.msg_iov = &iov;
	msg.iov_count = 1;
	msg.desc = in_mr ? &desc : NULL;
	ck_assert_int_eq(fi_trecvmsg(b.ep, &msg, FI_CLAIM), 0);
}

/* Others may be received meanwhile. */
START_TEST(a_claimed_one_waits_for_its_receive)
{
	open_with(modes[_i]);
	tsend_and_wait(0, LONG);
	tsend_and_wait(LONG, LONG);
	want_peeked(FI_PEEK | FI_CLAIM, 0, LONG);
	trecv_at(LONG, LONG, 0);
	want_tgot(LONG, LONG, 0);
	want_ok(&a, out + LONG);
	want_none(&a);
	recv_claimed(0, LONG);
	want_tgot(0, LONG, FI_CLAIM);
	want_ok(&a, out);
	ck_assert_uint_eq(offers(), 0);
	ends_close();
}
END_TEST

START_TEST(a_claimed_one_is_cut)
{
	open_with(modes[_i]);
	tsend_and_wait(0, LONG);
	want_peeked(FI_PEEK | FI_CLAIM, 0, LONG);
	recv_claimed(0, SHORT);
	want_cut(0, SHORT, LONG);
	want_ok(&a, out);
	ends_close();
}
END_TEST

/* Its sender's operation ends, and what is behind it comes. */
START_TEST(a_discarded_one_is_over)
{
	struct fi_msg_tagged msg;

	open_with(0);
	tsend_and_wait(0, LONG);
	tsend_and_wait(LONG, LONG);
	want_peeked(FI_PEEK | (_i ? FI_CLAIM : FI_DISCARD), 0, LONG);
	if (_i) {
		want_none(&a);
		msg = nothing(in);
		ck_assert_int_eq(fi_trecvmsg(b.ep, &msg, FI_CLAIM | FI_DISCARD), 0);
		want_ok(&b, in);
	}
	want_ok(&a, out);
	trecv_at(LONG, LONG, 0);
	want_tgot(LONG, LONG, 0);
	want_ok(&a, out + LONG);
	ck_assert(is_zero(in, LONG));
	ck_assert_uint_eq(offers(), 0);
	ends_close();
}
END_TEST

/* --- who gets it ---------------------------------------------------------------------- */

START_TEST(a_tag_finds_its_receive)
{
	size_t i;

	open_with(0);
	for (i = 0; i < 8; i++)
		trecv_at(i * LONG, LONG, i);
	for (i = 8; i--;)
		tsend_at(i * LONG, LONG, i);
	for (i = 0; i < 8; i++) {
		struct fi_cq_data_entry entry = want_ok(&b, NULL);
		size_t at = (size_t)((uint8_t *)entry.op_context - in);

		ck_assert(!memcmp(in + at, out + at, LONG));
		want_ok(&a, NULL);
	}
	ends_close();
}
END_TEST

static void trecv_from(size_t at, fi_addr_t from)
{
	ck_assert_int_eq(fi_trecv(b.ep, in + at, LONG, NULL, from, 1, 0, in + at), 0);
}

START_TEST(a_directed_receive_takes_that_of_its_sender)
{
	const struct node_opt opt = { .caps = CAPS | FI_DIRECTED_RECV | FI_SOURCE };
	fi_addr_t from_a, from_c;
	struct node c;

	ends_open(&opt, ROOM);
	node_open(&c, &opt);
	from_a = node_insert(&b, &a);
	from_c = node_insert(&b, &c);
	trecv_from(0, from_c);
	trecv_from(LONG, from_a);
	tsend_at(LONG, LONG, 1);
	want_tgot(LONG, LONG, 0);
	want_ok(&a, out + LONG);
	ck_assert_int_eq(fi_tsend(c.ep, out, LONG, NULL, node_insert(&c, &b), 1, out), 0);
	want_tgot(0, LONG, 0);
	want_ok(&c, out);
	tsend_at(2 * LONG, LONG, 1);
	trecv_from(3 * LONG, from_c);
	want_none(&b);
	trecv_from(2 * LONG, from_a);
	want_tgot(2 * LONG, LONG, 0);
	want_ok(&a, out + 2 * LONG);
	ends_close();
	node_close(&c);
}
END_TEST

START_TEST(an_endpoint_sends_to_itself)
{
	fi_addr_t self;

	open_with(0);
	self = node_insert(&b, &b);
	recv_at(0, LONG);
	ck_assert_int_eq(fi_send(b.ep, out, LONG, NULL, self, out), 0);
	if (want_ok(&b, NULL).op_context == in) {
		want_ok(&b, out);
	} else {
		want_ok(&b, in);
	}
	ck_assert(!memcmp(in, out, LONG));
	ends_close();
}
END_TEST

/* --- one buffer for many -------------------------------------------------------------- */

static struct fi_cq_err_entry error_of(struct node *n)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_data_entry entry;

	ck_assert_int_eq(fi_cq_sread(n->cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(n->cq, &e, 0), 1);
	return e;
}

static void recv_many(size_t len)
{
	struct iovec iov = { in, len };
	void *desc = desc_of(in_mr);
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = in_mr ? &desc : NULL,
			      .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC,
			      .context = in };

	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
}

/*
 * Long and short ones, which complete in any order: each where its place was when it came. The last
 * one is cut; posted: the receive comes first.
 */
static void fill_one(bool posted)
{
	static const size_t lens[] = { LONG, 100, MRF_GRANT_BYTES + 5, SHORT, SHORT + 1, 7, LONG };
	const size_t n = MRF_ARRAY_SIZE(lens), last = SHORT;
	size_t i, all = last;

	memset(in, 0, ROOM);
	for (i = 0; i + 1 < n; i++)
		all += lens[i];
	if (posted)
		recv_many(all);
	for (i = 0, all = 0; i < n; all += lens[i++])
		send_at(all, lens[i]);
	all = all - lens[n - 1] + last;
	if (!posted)
		recv_many(all);
	for (i = 0; i < n; i++)
		want_ok(&a, NULL);
}

static void want_filled(unsigned n)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_data_entry entry;
	unsigned cut = 0, over = 0;
	ssize_t ret;

	while (n--) {
		ret = fi_cq_sread(b.cq, &entry, 1, NULL, LONG_MS);
		if (ret == -FI_EAVAIL) {
			ck_assert_int_eq(fi_cq_readerr(b.cq, &e, 0), 1);
			ck_assert_int_eq(e.err, FI_ETRUNC);
			ck_assert_uint_eq(e.len, SHORT);
			ck_assert_uint_eq(e.olen, LONG - SHORT);
			over += !!(e.flags & FI_MULTI_RECV);
			cut++;
			continue;
		}
		ck_assert_int_eq(ret, 1);
		ck_assert_ptr_eq(entry.op_context, in);
		ck_assert(!memcmp(entry.buf, out + ((uint8_t *)entry.buf - in), entry.len));
		over += !!(entry.flags & FI_MULTI_RECV);
		/* The buffer is the application's when its last message is there. */
		ck_assert_uint_eq(over, !n);
	}
	ck_assert_uint_eq(cut, 1);
	ck_assert_uint_eq(over, 1);
	want_none(&b);
}

START_TEST(long_and_short_ones_share_a_buffer)
{
	open_with(modes[_i / 2]);
	fill_one(_i % 2);
	want_filled(7);
	ends_close();
}
END_TEST

/* --- what a completion says ----------------------------------------------------------- */

static bool late; /* what has come to b does not show */

static bool is_late(const struct mrf_vcq *cq)
{
	return late && cq == node_ep(&b)->inbox->vcq;
}

static void set_late(bool value)
{
	fake_freeze(true);
	late = value;
	fake.is_late = is_late;
	fake_freeze(false);
}

static void send_with(size_t at, size_t len, uint64_t flags)
{
	struct iovec iov = { out + at, len };
	void *desc = desc_of(out_mr);
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = out_mr ? &desc : NULL,
			      .iov_count = 1,
			      .addr = to,
			      .context = out + at,
			      .data = 77 };

	ck_assert_int_eq(fi_sendmsg(a.ep, &msg, flags), 0);
}

/* That of the bytes is there, and that of the receive is not: one end does not know that. */
START_TEST(a_delivered_one_has_completed_its_receive)
{
	open_with(modes[_i % MODES]);
	fake_hold_pairs(true);
	recv_at(0, LONG);
	send_with(0, LONG, _i < MODES ? FI_DELIVERY_COMPLETE : FI_TRANSMIT_COMPLETE);
	want_soon((fi_cq_read(a.cq, NULL, 0), fake_queued() == 1));
	want_none(&a);
	set_late(true);
	fake_hold_pairs(false);
	if (_i < MODES)
		want_none(&a);
	else
		want_sent(0);
	set_late(false);
	if (_i < MODES)
		want_sent(0);
	ck_assert(!memcmp(in, out, LONG));
	want_got(0, LONG);
	ends_close();
}
END_TEST

START_TEST(data_come_with_it)
{
	struct fi_cq_data_entry entry;

	open_with(0);
	recv_at(0, LONG);
	send_with(0, LONG, FI_REMOTE_CQ_DATA);
	entry = want_ok(&b, in);
	ck_assert_uint_eq(entry.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(entry.data, 77);
	ck_assert_uint_eq(entry.len, LONG);
	want_sent(0);
	ends_close();
}
END_TEST

START_TEST(data_come_with_what_is_cut)
{
	struct fi_cq_err_entry e;

	open_with(0);
	send_with(0, LONG, FI_REMOTE_CQ_DATA);
	recv_at(0, 5);
	e = error_of(&b);
	ck_assert_int_eq(e.err, FI_ETRUNC);
	ck_assert_uint_eq(e.data, 77);
	ck_assert(e.flags & FI_REMOTE_CQ_DATA);
	want_sent(0);
	ends_close();
}
END_TEST

START_TEST(successes_are_told_as_asked_for_and_failures_always)
{
	struct iovec iov = { .iov_len = LONG };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };

	ends_open(&(struct node_opt){ .selective = true, .caps = CAPS }, ROOM);
	msg.context = iov.iov_base = in;
	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, 0), 0);
	send_with(0, LONG, 0);
	msg.context = iov.iov_base = in + LONG;
	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, FI_COMPLETION), 0);
	send_with(LONG, LONG, FI_COMPLETION);
	want_got(LONG, LONG);
	want_sent(LONG);
	iov.iov_len = 3;
	msg.context = iov.iov_base = in + 2 * LONG;
	ck_assert_int_eq(fi_recvmsg(b.ep, &msg, 0), 0);
	send_with(2 * LONG, LONG, 0);
	want_cut(2 * LONG, 3, LONG);
	want_none(&b);
	want_none(&a);
	ends_close();
}
END_TEST

static struct fid_cntr *counter(struct node *n, uint64_t flag)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr = NULL;

	ck_assert_int_eq(fi_cntr_open(n->domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(n->ep, &cntr->fid, flag), 0);
	return cntr;
}

START_TEST(they_are_counted_at_both_ends)
{
	struct fid_cntr *sent, *got;

	open_with(0);
	sent = counter(&a, FI_SEND);
	got = counter(&b, FI_RECV);
	recv_at(0, LONG);
	recv_at(LONG, 9);
	send_at(0, LONG);
	send_at(LONG, LONG);
	ck_assert_int_eq(fi_cntr_wait(sent, 2, LONG_MS), 0);
	want_got(0, LONG);
	want_cut(LONG, 9, LONG);
	ck_assert_uint_eq(fi_cntr_read(got), 1);
	ck_assert_uint_eq(fi_cntr_readerr(got), 1);
	must_close(&a.ep->fid);
	must_close(&b.ep->fid);
	a.ep = b.ep = NULL;
	must_close(&sent->fid);
	must_close(&got->fid);
	ends_close();
}
END_TEST

/* --- many buffers --------------------------------------------------------------------- */

#define BUFS 128u
#define SPAN (32u << 10) /* each buffer is in a place of its own */

struct bufs {
	struct iovec iov[BUFS];
	void *desc[BUFS];
	size_t n;
};

/* Their lengths go on as a walk from `step` on, and a few have none; together all bytes. */
static void cut_up(struct bufs *bufs, uint8_t *mem, struct fid_mr *mr, size_t n, size_t all,
		   unsigned step)
{
	size_t i, len;

	bufs->n = n;
	for (i = 0; i < n; i++) {
		step = step * 1103515245u + 12345u;
		len = i + 1 == n ? all : mrf_min(all, (size_t)(step >> 16) % (2 * all / (n - i)));
		len = step % 7 == 0 && i + 1 < n ? 0 : mrf_min(len, (size_t)SPAN * (BUFS / n));
		bufs->iov[i] = (struct iovec){ mem + i * SPAN * (BUFS / n), len };
		bufs->desc[i] = desc_of(mr);
		all -= len;
	}
}

static void gather(const struct bufs *bufs, uint8_t *to_there)
{
	size_t i;

	for (i = 0; i < bufs->n; i++) {
		memcpy(to_there, bufs->iov[i].iov_base, bufs->iov[i].iov_len);
		to_there += bufs->iov[i].iov_len;
	}
}

static const size_t counts[] = { 1, 2, 3, 8, 9, 17, 64, 128 };

static void pass_on(size_t nout, size_t nin, unsigned step, bool posted)
{
	static uint8_t left[BUFS * SPAN], right[BUFS * SPAN];
	size_t len = LONG + step % 1000;
	struct bufs from, into;

	cut_up(&from, out, out_mr, nout, len, step);
	cut_up(&into, in, in_mr, nin, len, step + 1);
	if (posted)
		ck_assert_int_eq(fi_recvv(b.ep, into.iov, into.desc, nin, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_sendv(a.ep, from.iov, from.desc, nout, to, out), 0);
	if (!posted)
		ck_assert_int_eq(fi_recvv(b.ep, into.iov, into.desc, nin, FI_ADDR_UNSPEC, in), 0);
	ck_assert_uint_eq(want_ok(&b, in).len, len);
	want_ok(&a, out);
	gather(&from, left);
	gather(&into, right);
	ck_assert_msg(!memcmp(left, right, len), "%zu to %zu buffers, %u", nout, nin, step);
}

START_TEST(many_buffers_are_one_message)
{
	unsigned step = 0;
	size_t i, j;

	open_with(modes[_i]);
	for (i = 0; i < MRF_ARRAY_SIZE(counts); i++) {
		for (j = 0; j < MRF_ARRAY_SIZE(counts); j++, step++)
			pass_on(counts[i], counts[j], step, step % 2);
	}
	ends_close();
}
END_TEST

/* The receive's buffers have room for all but the last bytes. */
START_TEST(many_buffers_cut_it)
{
	static uint8_t right[BUFS * SPAN];
	struct fi_cq_err_entry e;
	struct bufs into;
	size_t i;

	open_with(modes[_i]);
	for (i = 0; i < MRF_ARRAY_SIZE(counts); i++) {
		cut_up(&into, in, in_mr, counts[i], LONG - 3, (unsigned)i);
		ck_assert_int_eq(fi_recvv(b.ep, into.iov, into.desc, into.n, FI_ADDR_UNSPEC, in),
				 0);
		send_at(0, LONG);
		e = error_of(&b);
		ck_assert_int_eq(e.err, FI_ETRUNC);
		ck_assert_uint_eq(e.len, LONG - 3);
		ck_assert_uint_eq(e.olen, 3);
		gather(&into, right);
		ck_assert(!memcmp(right, out, LONG - 3));
		want_sent(0);
	}
	ends_close();
}
END_TEST

/* Mapped again and again behind each other, so that it takes a MiB. */
static uint8_t *repeated(size_t len)
{
	size_t unit = 1 << 20, at;
	uint8_t *mem = pages(len);
	int fd = memfd_create("repeated", 0);

	ck_assert(fd >= 0 && !ftruncate(fd, (off_t)unit));
	for (at = 0; at < len; at += unit)
		ck_assert_ptr_eq(
			mmap(mem + at, unit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
			mem + at);
	close(fd);
	return mem;
}

/* The next completion, which may take long where each byte that is copied is looked at. */
static struct fi_cq_data_entry want_late(struct node *n)
{
	struct fi_cq_data_entry entry = { 0 };
	int i;

	for (i = 0; i < 5; i++) {
		if (fi_cq_sread(n->cq, &entry, 1, NULL, LONG_MS) == 1)
			return entry;
	}
	return want_ok(n, NULL);
}

/* max_msg_size. What a part brings, the next one overwrites, but for what is behind the last. */
START_TEST(it_may_be_as_long_as_is_offered)
{
	size_t len = MRF_LIMIT_MSG_SIZE;
	uint8_t *from, *into;

	open_with(0);
	from = repeated(len);
	into = repeated(len);
	fill(from, 1 << 20, 7);
	ck_assert_int_eq(fi_recv(b.ep, into, len, NULL, FI_ADDR_UNSPEC, into), 0);
	ck_assert_int_eq(fi_send(a.ep, from, len, NULL, to, from), 0);
	ck_assert_uint_eq(want_late(&b).len, len);
	want_ok(&a, from);
	ck_assert_int_eq(memcmp(from, into, 1 << 20), 0);
	ends_close();
	munmap(from, len);
	munmap(into, len);
}
END_TEST

/* One whose messages nobody receives leaves places for others. */
START_TEST(offers_of_one_peer_leave_places_for_others)
{
	struct node c;
	fi_addr_t to_c;
	unsigned n = 0;

	open_with(0);
	node_open(&c, &(struct node_opt){ .caps = CAPS });
	to_c = node_insert(&a, &c);
	while (!fi_send(a.ep, out, LONG, NULL, to, out))
		n++;
	ck_assert_uint_ge(n, MRF_LIMIT_TX_SIZE);
	/* When all are offered, nothing of them waits at this side any more. */
	want_soon(offers() == n);
	ck_assert_int_eq(fi_send(a.ep, out, LONG, NULL, to, out), -FI_EAGAIN);
	ck_assert_int_eq(fi_recv(c.ep, in, LONG, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_send(a.ep, out, LONG, NULL, to_c, in), 0);
	want_ok(&c, in);
	want_ok(&a, in);
	node_close(&c);
	ends_close();
}
END_TEST

/* --- who makes progress --------------------------------------------------------------- */

START_TEST(nobody_polls_and_it_is_received)
{
	open_with(modes[_i]);
	recv_at(0, LONG);
	send_at(0, LONG);
	want_sent(0);
	send_at(LONG, LONG);
	want_soon(offers() == 1);
	recv_at(LONG, LONG);
	want_sent(LONG);
	want_got(0, LONG);
	want_got(LONG, LONG);
	ends_close();
}
END_TEST

/* --- many ----------------------------------------------------------------------------- */

#define MANY 1000u
#define PLACES 32u

struct end {
	struct node *n;
	fi_addr_t dest;
	uint8_t *from, *into;
	unsigned next; /* to be sent */
	unsigned sent, got;
};

static size_t len_of(unsigned i)
{
	return 20000 + i * 7919ul % 180000;
}

static uint8_t *place(uint8_t *mem, unsigned i)
{
	return mem + (i % PLACES) * (256ul << 10);
}

/* In blocks of PLACES, each from its last tag to its first. */
static void post_block(struct end *end)
{
	unsigned i = end->got, left = mrf_min(PLACES, MANY - i);

	for (; left--;)
		ck_assert_int_eq(fi_trecv(end->n->ep, place(end->into, i + left), len_of(i + left),
					  NULL, FI_ADDR_UNSPEC, i + left, 0,
					  place(end->into, i + left)),
				 0);
}

static void send_block(struct end *end)
{
	unsigned i;

	for (i = 0; i < PLACES && end->next < MANY; i++, end->next++)
		ck_assert_int_eq(fi_tsend(end->n->ep, place(end->from, end->next),
					  len_of(end->next), NULL, end->dest, end->next, NULL),
				 0);
}

static void take_one(struct end *end)
{
	struct fi_cq_data_entry entry = want_ok(end->n, NULL);

	if (!entry.op_context) {
		end->sent++;
		return;
	}
	end->got++;
}

static bool is_right(const struct end *end, const struct end *other, unsigned from)
{
	unsigned i;

	for (i = from; i < end->got; i++) {
		if (memcmp(place(end->into, i), place(other->from, i), len_of(i)))
			return false;
	}
	return true;
}

/* At both ends, by one thread: each end's agent does what the other waits for. */
static void exchange(struct end *one, struct end *two)
{
	unsigned from = one->got;

	post_block(one);
	post_block(two);
	send_block(one);
	send_block(two);
	while (one->got != one->next || one->sent != one->next)
		take_one(one);
	while (two->got != two->next || two->sent != two->next)
		take_one(two);
	ck_assert(is_right(one, two, from));
	ck_assert(is_right(two, one, from));
}

START_TEST(many_go_both_ways_at_once)
{
	struct end one = { .n = &a }, two = { .n = &b };

	open_with(0);
	one.dest = to;
	two.dest = node_insert(&b, &a);
	one.from = out;
	two.from = pages(ROOM);
	one.into = pages(ROOM);
	two.into = in;
	fill(two.from, ROOM, 9);
	while (one.got < MANY)
		exchange(&one, &two);
	want_none(&a);
	want_none(&b);
	ck_assert_uint_eq(offers(), 0);
	ends_close();
}
END_TEST

static TCase *tcase_new(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 120);
	return tc;
}

static TCase *tcase_receives(void)
{
	TCase *tc = tcase_new("receives");

	tcase_add_loop_test(tc, a_posted_receive_gets_it, 0, MODES);
	tcase_add_loop_test(tc, a_pinned_region_takes_no_job, 0, MODES);
	tcase_add_loop_test(tc, it_waits_for_its_receive, 0, MODES);
	tcase_add_test(tc, it_may_be_as_long_as_is_offered);
	tcase_add_test(tc, offers_of_one_peer_leave_places_for_others);
	tcase_add_loop_test(tc, what_does_not_fit_is_cut, 0, MODES);
	tcase_add_loop_test(tc, a_receive_may_have_more_room, 0, MODES);
	tcase_add_test(tc, a_tag_finds_its_receive);
	tcase_add_test(tc, a_directed_receive_takes_that_of_its_sender);
	tcase_add_test(tc, an_endpoint_sends_to_itself);
	tcase_add_loop_test(tc, long_and_short_ones_share_a_buffer, 0, 2 * MODES);
	tcase_add_loop_test(tc, many_buffers_are_one_message, 0, MODES);
	tcase_add_loop_test(tc, many_buffers_cut_it, 0, MODES);
	return tc;
}

static TCase *tcase_peek(void)
{
	TCase *tc = tcase_new("peek");

	tcase_add_test(tc, peeking_tells_its_length);
	tcase_add_loop_test(tc, a_claimed_one_waits_for_its_receive, 0, MODES);
	tcase_add_loop_test(tc, a_claimed_one_is_cut, 0, MODES);
	tcase_add_loop_test(tc, a_discarded_one_is_over, 0, 2);
	return tc;
}

static TCase *tcase_completions(void)
{
	TCase *tc = tcase_new("completions");

	tcase_add_loop_test(tc, a_delivered_one_has_completed_its_receive, 0, 2 * MODES);
	tcase_add_test(tc, data_come_with_it);
	tcase_add_test(tc, data_come_with_what_is_cut);
	tcase_add_test(tc, they_are_counted_at_both_ends);
	tcase_add_loop_test(tc, nobody_polls_and_it_is_received, 0, MODES);
	return tc;
}

static TCase *tcase_selective(void)
{
	TCase *tc = tcase_new("selective");

	tcase_add_test(tc, successes_are_told_as_asked_for_and_failures_always);
	return tc;
}

static TCase *tcase_many(void)
{
	TCase *tc = tcase_new("many");

	tcase_add_test(tc, many_go_both_ways_at_once);
	return tc;
}

UNIT_MAIN("long messages", tcase_receives, tcase_peek, tcase_completions, tcase_selective,
	  tcase_many)
