/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-way connections of lib/verbs whose target takes its receives from one shared queue, and what
 * they promise (verbs/vsrq.h, vqp.h, vcq.h) as cases. Two programs run the same cases:
 * tests/unit/t_srq.c on the fake fabric, and tests/func/srq.c on a real rxe device, which shows
 * that the fake is like it. Both ends are in this process, and in one thread.
 */
#ifndef TESTS_FUNC_LINES_H
#define TESTS_FUNC_LINES_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "verbs/vcm.h"
#include "verbs/vcq.h"
#include "verbs/verbs.h"
#include "verbs/vqp.h"
#include "verbs/vsrq.h"

#define LINES 2
#define SLOTS 8
#define SLOT 20000u
#define NOTE 100u    /* of these numbers are the receives of initiators */
#define SOON_MS 5000 /* only a failure takes that long */
#define LONG_MS 30   /* nothing happens in that time: a sender has tried again a few times */

static struct lines {
	struct mrf_vdev *dev;
	struct mrf_vpd *pd;
	struct mrf_vmr mr;
	/* Of the initiators; of the target: what it sent, and what it received. */
	struct mrf_vcq *there, *sent, *received;
	struct mrf_vsrq *srq;
	struct mrf_vcm *cm;
	struct mrf_vconn *listener;
	struct mrf_vconn *from[LINES], *to[LINES];
} lines;

static struct {
	uint8_t slots[SLOTS][SLOT];
	uint8_t out[LINES][SLOT];
	uint8_t notes[LINES][64];
	uint64_t aim;
} memory;

static char why[200];

static inline bool fails(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return false;
}

/* Is this 0? */
static inline bool zero(const char *what, int ret)
{
	return !ret || fails("%s: %s", what, fi_strerror(-ret));
}
#define ZERO(call) zero(#call, call)

static inline uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline void wait_a_bit(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static inline struct sockaddr *at_port(struct sockaddr_in *in, uint16_t port)
{
	*in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, "10.99.1.1", &in->sin_addr);
	return (struct sockaddr *)in;
}

/* --- opening and closing --------------------------------------------------------------------- */

static inline bool next_event(enum mrf_cm_type want, struct mrf_cm_event *event)
{
	uint64_t until = now_ms() + SOON_MS;
	int ret;

	while ((ret = mrf_vcm_next(lines.cm, event)) == -FI_EAGAIN && now_ms() < until)
		wait_a_bit();
	if (!ret && event->type == MRF_CM_ESTABLISHED && want != MRF_CM_ESTABLISHED)
		return next_event(want, event);
	if (!ret && event->type != want)
		return fails("event %d, not %d", event->type, want);
	return zero("the next event", ret);
}

static inline bool post_note_room(int i)
{
	struct mrf_sge sge = { (uintptr_t)memory.notes[i], sizeof(memory.notes[i]), lines.mr.lkey };

	return ZERO(mrf_vconn_post_recv(lines.from[i], NOTE + (unsigned)i, &sge));
}

static inline bool dial(int i, uint16_t port)
{
	struct mrf_vqp_attr attr = { .pd = lines.pd,
				     .send_cq = lines.there,
				     .recv_cq = lines.there,
				     .send_depth = 16,
				     .recv_depth = 2,
				     .send_sge = 2,
				     .max_inline = 128,
				     .sends_only = true };
	struct sockaddr_in src, dst;
	struct mrf_cm_event event;

	return ZERO(mrf_vconn_open(lines.cm, NULL, &lines.from[i])) &&
	       ZERO(mrf_vconn_resolve(lines.from[i], at_port(&src, 0), at_port(&dst, port), SOON_MS,
				      14)) &&
	       next_event(MRF_CM_ADDR_RESOLVED, &event) &&
	       ZERO(mrf_vconn_create_qp(lines.from[i], &attr)) && post_note_room(i) &&
	       ZERO(mrf_vconn_route(lines.from[i], SOON_MS)) &&
	       next_event(MRF_CM_ROUTE_RESOLVED, &event) &&
	       ZERO(mrf_vconn_connect(lines.from[i], "", 1, 6));
}

static inline bool take_in(int i)
{
	struct mrf_vqp_attr attr = { .pd = lines.pd,
				     .send_cq = lines.sent,
				     .recv_cq = lines.received,
				     .send_depth = 4,
				     .send_sge = 1,
				     .max_inline = 64,
				     .srq = lines.srq,
				     .sends_only = true };
	struct mrf_cm_event event;

	if (!next_event(MRF_CM_REQUEST, &event))
		return false;
	lines.to[i] = event.incoming;
	return ZERO(mrf_vconn_create_qp(lines.to[i], &attr)) &&
	       ZERO(mrf_vconn_accept(lines.to[i], "", 1)) && next_event(MRF_CM_RESPONSE, &event) &&
	       ZERO(mrf_vconn_establish(lines.from[i]));
}

static inline bool open_target(uint16_t *port, uint32_t depth)
{
	struct sockaddr_in in;

	if (!ZERO(mrf_vdev_open(at_port(&in, 0), &lines.dev)) ||
	    !ZERO(mrf_vpd_alloc(lines.dev, &lines.pd)) ||
	    !ZERO(mrf_vmr_reg(lines.pd, &memory, sizeof(memory), (uintptr_t)&memory,
			      MRF_RIGHT_LOCAL_WRITE | MRF_RIGHT_REMOTE_READ |
				      MRF_RIGHT_REMOTE_WRITE | MRF_RIGHT_REMOTE_ATOMIC,
			      &lines.mr)) ||
	    !ZERO(mrf_vcq_open(lines.dev, 64, &lines.there)) ||
	    !ZERO(mrf_vcq_open(lines.dev, 64, &lines.sent)) ||
	    !ZERO(mrf_vcq_open_beside(lines.sent, 64, &lines.received)) ||
	    !ZERO(mrf_vsrq_open(lines.pd, depth, &lines.srq)) || !ZERO(mrf_vcm_open(&lines.cm)) ||
	    !ZERO(mrf_vconn_open(lines.cm, NULL, &lines.listener)) ||
	    !ZERO(mrf_vconn_bind(lines.listener, at_port(&in, 0))) ||
	    !ZERO(mrf_vconn_listen(lines.listener)))
		return false;
	*port = ntohs(in.sin_port);
	return true;
}

static inline bool lines_open(void)
{
	uint16_t port;

	memset(&lines, 0, sizeof(lines));
	memset(&memory, 0, sizeof(memory));
	if (!open_target(&port, SLOTS))
		return false;
	for (int i = 0; i < LINES; i++) {
		if (!dial(i, port) || !take_in(i))
			return false;
	}
	return true;
}

static inline void hang_up(struct mrf_vconn **conn)
{
	if (*conn) {
		mrf_vconn_disconnect(*conn);
		mrf_vconn_close(*conn);
	}
	*conn = NULL;
}

/* Whatever there is; in the order that the headers ask for. */
static inline void lines_close(void)
{
	for (int i = 0; i < LINES; i++) {
		hang_up(&lines.from[i]);
		hang_up(&lines.to[i]);
	}
	if (lines.listener)
		mrf_vconn_close(lines.listener);
	if (lines.cm)
		mrf_vcm_close(lines.cm);
	if (lines.srq)
		mrf_vsrq_close(lines.srq);
	if (lines.received)
		mrf_vcq_close(lines.received);
	if (lines.sent)
		mrf_vcq_close(lines.sent);
	if (lines.there)
		mrf_vcq_close(lines.there);
	mrf_vmr_drop(&lines.mr);
	if (lines.pd)
		mrf_vpd_free(lines.pd);
	if (lines.dev)
		mrf_vdev_close(lines.dev);
	memset(&lines, 0, sizeof(lines));
}

/* --- sending and receiving ------------------------------------------------------------------- */

/* What line i sends as its message number n. */
static inline uint8_t byte_of(int i, unsigned n, unsigned at)
{
	return (uint8_t)(1 + (unsigned)i * 101 + n * 31 + at * 7 + at / 256);
}

static inline bool post_slot(unsigned slot, uint32_t len)
{
	struct mrf_sge sge = { (uintptr_t)memory.slots[slot], len, lines.mr.lkey };

	return ZERO(mrf_vsrq_post(lines.srq, slot, &sge));
}

static inline bool send_by(struct mrf_vconn *conn, int i, unsigned n, uint32_t len)
{
	struct mrf_sge sge = { (uintptr_t)memory.out[i], len, lines.mr.lkey };
	struct mrf_vwr wr = {
		.wr_id = n, .op = MRF_VWR_SEND, .is_inline = len <= 64, .nsge = 1, .sge = &sge
	};

	for (unsigned at = 0; at < len; at++)
		memory.out[i][at] = byte_of(i, n, at);
	return ZERO(mrf_vconn_post(conn, &wr));
}

static inline bool send_message(int i, unsigned n, uint32_t len)
{
	return send_by(lines.from[i], i, n, len);
}

static inline bool next_completion(struct mrf_vcq *cq, struct mrf_wc *wc)
{
	uint64_t until = now_ms() + SOON_MS;
	int n;

	while (!(n = mrf_vcq_poll_from(cq, wc, 1)) && now_ms() < until)
		wait_a_bit();
	return n == 1 || fails(n ? "the queue is broken" : "no completion came");
}

static inline bool completes(struct mrf_vcq *cq, const struct mrf_vconn *conn, uint64_t wr_id,
			     enum mrf_wc_status status)
{
	struct mrf_wc wc;

	/* With its queue pair, an initiator's own receive comes back at some time. */
	do {
		if (!next_completion(cq, &wc))
			return false;
	} while (wr_id < NOTE && wc.wr_id >= NOTE && wc.status == MRF_WC_FLUSHED);
	if (wc.wr_id != wr_id || wc.status != status)
		return fails("request %lu ended with %d (%s, %d), not %lu with %d",
			     (unsigned long)wc.wr_id, wc.status, mrf_wc_status_text(wc.raw_status),
			     wc.raw_status, (unsigned long)wr_id, status);
	return wc.qpn == mrf_vconn_qpn(conn) ||
	       fails("it is of queue pair %u, not %u", wc.qpn, mrf_vconn_qpn(conn));
}

static inline bool sender_hears(int i, unsigned n, enum mrf_wc_status status)
{
	return completes(lines.there, lines.from[i], n, status);
}

static inline bool receiver_hears(int i, unsigned slot, enum mrf_wc_status status)
{
	return completes(lines.received, lines.to[i], slot, status);
}

static inline bool nothing_comes(struct mrf_vcq *cq)
{
	uint64_t until = now_ms() + LONG_MS;
	struct mrf_wc wc;

	do {
		if (mrf_vcq_poll_from(cq, &wc, 1))
			return fails("request %lu ended with %d", (unsigned long)wc.wr_id,
				     wc.status);
		wait_a_bit();
	} while (now_ms() < until);
	return true;
}

static inline bool holds(const uint8_t *bytes, int i, unsigned n, uint32_t len)
{
	for (unsigned at = 0; at < len; at++) {
		if (bytes[at] != byte_of(i, n, at))
			return fails("byte %u of message %u of line %d is %#x", at, n, i,
				     bytes[at]);
	}
	return true;
}

/* The next completion of a receive is this message. */
static inline bool message_comes(int i, unsigned slot, unsigned n, uint32_t len)
{
	struct mrf_wc wc;

	if (!next_completion(lines.received, &wc))
		return false;
	if (wc.status != MRF_WC_OK || wc.kind != MRF_WC_RECV || wc.wr_id != slot ||
	    wc.byte_len != len || wc.qpn != mrf_vconn_qpn(lines.to[i]))
		return fails("slot %lu: status %d, kind %d, %u bytes, queue pair %u",
			     (unsigned long)wc.wr_id, wc.status, wc.kind, wc.byte_len, wc.qpn);
	return holds(memory.slots[slot], i, n, len);
}

/* --- cases ----------------------------------------------------------------------------------- */

static inline bool bytes_come_with_the_number_of_their_line(void)
{
	static const uint32_t len[] = { 0, 1, 64, 65, 4096, 4120, 16384, SLOT };

	for (unsigned n = 0; n < LINES * MRF_ARRAY_SIZE(len); n++) {
		int i = n % LINES;
		uint32_t bytes = len[n / LINES];

		if (!post_slot(n % SLOTS, SLOT) || !send_message(i, n, bytes) ||
		    !message_comes(i, n % SLOTS, n, bytes) || !sender_hears(i, n, MRF_WC_OK))
			return false;
	}
	return true;
}

static inline bool receives_are_taken_in_their_order_and_lines_keep_theirs(void)
{
	unsigned next[LINES] = { 0 };
	struct mrf_wc wc;

	for (unsigned slot = 0; slot < SLOTS; slot++) {
		if (!post_slot(slot, SLOT))
			return false;
	}
	for (unsigned n = 0; n < SLOTS; n++) {
		if (!send_message((int)(n % LINES), n / LINES, 32))
			return false;
	}
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		int i;

		if (!next_completion(lines.received, &wc))
			return false;
		i = wc.qpn == mrf_vconn_qpn(lines.to[1]);
		if (wc.status != MRF_WC_OK || wc.qpn != mrf_vconn_qpn(lines.to[i]))
			return fails("status %d of queue pair %u", wc.status, wc.qpn);
		if (!holds(memory.slots[wc.wr_id], i, next[i]++, 32))
			return false;
	}
	return true;
}

static inline bool without_a_receive_the_sender_waits(void)
{
	struct mrf_wc wc;
	int first;

	if (!send_message(0, 0, 5000) || !send_message(1, 0, 16) || !nothing_comes(lines.there) ||
	    !nothing_comes(lines.received) || !post_slot(0, SLOT) ||
	    !next_completion(lines.received, &wc))
		return false;
	first = wc.qpn == mrf_vconn_qpn(lines.to[1]);
	return holds(memory.slots[0], first, 0, first ? 16 : 5000) &&
	       sender_hears(first, 0, MRF_WC_OK) && nothing_comes(lines.there) &&
	       post_slot(1, SLOT) && message_comes(!first, 1, 0, first ? 5000 : 16) &&
	       sender_hears(!first, 0, MRF_WC_OK);
}

static inline bool too_long(int i, unsigned slot, uint32_t room, uint32_t len)
{
	return post_slot(slot, room) && send_message(i, slot, len) &&
	       sender_hears(i, slot, MRF_WC_REFUSED) && receiver_hears(i, slot, MRF_WC_UNSENT) &&
	       send_message(i, 9, 1) && sender_hears(i, 9, MRF_WC_FLUSHED);
}

/* One packet, and several. */
static inline bool message_that_is_too_long_breaks_its_line_alone(void)
{
	return too_long(0, 1, 100, 101) && post_slot(0, SLOT) && send_message(1, 0, 8) &&
	       message_comes(1, 0, 0, 8) && sender_hears(1, 0, MRF_WC_OK) &&
	       too_long(1, 2, 4500, 5000) && nothing_comes(lines.received);
}

static inline bool forbidden(struct mrf_vconn *conn, struct mrf_vcq *cq, enum mrf_vwr_op op,
			     uint32_t len)
{
	struct mrf_sge sge = { (uintptr_t)memory.out[0], len, lines.mr.lkey };
	struct mrf_vwr wr = { .wr_id = 5,
			      .op = op,
			      .nsge = 1,
			      .sge = &sge,
			      .remote_addr = (uintptr_t)&memory.aim,
			      .rkey = lines.mr.rkey,
			      .operand = 1 };

	return ZERO(mrf_vconn_post(conn, &wr)) && completes(cq, conn, 5, MRF_WC_REFUSED);
}

/* The region lets everybody in, and is in the protection domain of both ends. */
static inline bool peers_may_only_send_with(enum mrf_vwr_op op, uint32_t len)
{
	memset(memory.out[0], 0xee, sizeof(memory.out[0]));
	return forbidden(lines.from[0], lines.there, op, len) &&
	       forbidden(lines.to[1], lines.sent, op, len) &&
	       (!memory.aim || fails("it was done: %#lx", (unsigned long)memory.aim));
}

static inline bool peers_may_not_write(void)
{
	return peers_may_only_send_with(MRF_VWR_WRITE, 8);
}

static inline bool peers_may_not_write_nothing(void)
{
	return peers_may_only_send_with(MRF_VWR_WRITE, 0);
}

static inline bool peers_may_not_read(void)
{
	return peers_may_only_send_with(MRF_VWR_READ, 8);
}

static inline bool peers_may_not_add(void)
{
	return peers_may_only_send_with(MRF_VWR_FETCH_ADD, 8);
}

/* Writes with immediate data would take a shared receive. */
static inline bool peers_may_not_write_with_immediate(void)
{
	return post_slot(0, SLOT) && peers_may_only_send_with(MRF_VWR_WRITE_IMM, 8);
}

static inline bool becomes_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, SOON_MS) == 1 || fails("nothing made the descriptor readable");
}

static inline bool is_of(const struct mrf_vcq *cq)
{
	return mrf_vcq_ack_one(lines.sent) == cq || fails("the event is of another queue");
}

/* Either queue wakes whoever sleeps on the descriptor, and is armed for itself. */
static inline bool both_queues_wake_the_same_descriptor(void)
{
	int fd = mrf_vcq_fd(lines.sent);

	mrf_vcq_arm(lines.sent);
	mrf_vcq_arm(lines.received);
	if (mrf_vcq_fd(lines.received) != fd || poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 0))
		return fails("the descriptor is another one, or readable");
	if (!post_slot(0, SLOT) || !send_message(0, 0, 16) || !becomes_readable(fd) ||
	    !is_of(lines.received) || !message_comes(0, 0, 0, 16) || !sender_hears(0, 0, MRF_WC_OK))
		return false;
	if (!send_by(lines.to[1], 1, 3, 40) || !becomes_readable(fd) || !is_of(lines.sent) ||
	    !completes(lines.sent, lines.to[1], 3, MRF_WC_OK) ||
	    !completes(lines.there, lines.from[1], NOTE + 1, MRF_WC_OK) ||
	    !holds(memory.notes[1], 1, 3, 40))
		return false;
	/* Events of both at once; then none is left. */
	mrf_vcq_arm(lines.sent);
	mrf_vcq_arm(lines.received);
	if (!post_note_room(1) || !post_slot(1, SLOT) || !send_message(0, 1, 16) ||
	    !send_by(lines.to[1], 1, 4, 40) || !message_comes(0, 1, 1, 16) ||
	    !completes(lines.sent, lines.to[1], 4, MRF_WC_OK) || !becomes_readable(fd))
		return false;
	mrf_vcq_ack(lines.received);
	return !mrf_vcq_ack_one(lines.sent) || fails("an event is left");
}

static inline bool queue_takes_what_it_was_made_for(void)
{
	struct mrf_sge sge = { (uintptr_t)memory.slots[0], SLOT, lines.mr.lkey };
	unsigned n = 0;
	int ret;

	while (!(ret = mrf_vsrq_post(lines.srq, 0, &sge)) && n < 100)
		n++;
	if (ret != -FI_EAGAIN || n < SLOTS)
		return fails("%u were posted, and then %d", n, ret);
	/* The lines end before the queue does, and nothing is said of what it holds. */
	for (int i = 0; i < LINES; i++) {
		hang_up(&lines.from[i]);
		hang_up(&lines.to[i]);
	}
	return nothing_comes(lines.received);
}

/* Nobody takes them out; the slots are written to again and again. */
static inline bool some_complete(unsigned from, unsigned upto)
{
	for (unsigned n = from; n < upto; n++) {
		struct mrf_sge sge = { (uintptr_t)memory.slots[n % SLOTS], SLOT, lines.mr.lkey };

		if (!ZERO(mrf_vsrq_post(lines.srq, n, &sge)) || !send_message(0, n, 8) ||
		    !sender_hears(0, n, MRF_WC_OK))
			return false;
	}
	return true;
}

/* rxe makes it longer than it was asked to, but not so long as 200 are. */
static inline bool queue_that_grows_keeps_what_is_in_it(void)
{
	int fd = mrf_vcq_fd(lines.sent);

	if (!some_complete(0, 60))
		return false;
	mrf_vcq_arm(lines.received);
	if (!ZERO(mrf_vcq_grow(lines.received, 200)) || !some_complete(60, 200) ||
	    !becomes_readable(fd) || !is_of(lines.received))
		return false;
	for (unsigned n = 0; n < 200; n++) {
		if (!receiver_hears(0, n, MRF_WC_OK))
			return false;
	}
	return nothing_comes(lines.received);
}

static inline bool receives_outlive_a_line(void)
{
	if (!post_slot(0, SLOT) || !post_slot(1, SLOT))
		return false;
	mrf_vconn_disconnect(lines.to[0]);
	if (!nothing_comes(lines.received))
		return false;
	hang_up(&lines.to[0]);
	hang_up(&lines.from[0]);
	return send_message(1, 0, 5000) && message_comes(1, 0, 0, 5000) && send_message(1, 1, 1) &&
	       message_comes(1, 1, 1, 1) && sender_hears(1, 0, MRF_WC_OK) &&
	       sender_hears(1, 1, MRF_WC_OK);
}

static const struct line_case {
	const char *name;
	bool (*run)(void);
} line_cases[] = {
#define LINE_CASE(name)     \
	{                   \
#name, name \
	}
	LINE_CASE(bytes_come_with_the_number_of_their_line),
	LINE_CASE(receives_are_taken_in_their_order_and_lines_keep_theirs),
	LINE_CASE(without_a_receive_the_sender_waits),
	LINE_CASE(message_that_is_too_long_breaks_its_line_alone),
	LINE_CASE(peers_may_not_write),
	LINE_CASE(peers_may_not_write_nothing),
	LINE_CASE(peers_may_not_read),
	LINE_CASE(peers_may_not_add),
	LINE_CASE(peers_may_not_write_with_immediate),
	LINE_CASE(both_queues_wake_the_same_descriptor),
	LINE_CASE(queue_takes_what_it_was_made_for),
	LINE_CASE(queue_that_grows_keeps_what_is_in_it),
	LINE_CASE(receives_outlive_a_line),
};

#endif
