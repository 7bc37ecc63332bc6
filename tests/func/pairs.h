/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs beside the connections of lines.h, and what they promise (verbs/vpair.h) as cases, which
 * two programs run: tests/unit/t_pair.c on the fake fabric, and tests/func/srq.c on a real rxe
 * device. End 0 is the initiator's of the first connection, end 1 the target's.
 */
#ifndef TESTS_FUNC_PAIRS_H
#define TESTS_FUNC_PAIRS_H

#include "lines.h"
#include "verbs/vpair.h"

#define ENDS 2
#define DEPTH 8u
#define PIECES 4
#define LONG_LEN (1u << 20)

static struct pairs {
	struct mrf_vpair *pair[ENDS];
	struct mrf_vcq *sent[ENDS], *received[ENDS];
	struct mrf_vpair_name name[ENDS];
	/* Of what is sent, and of what is received. */
	struct mrf_vmr from, to;
} pairs;

/* The pieces lie apart, so that what is written between them is seen. */
static struct {
	uint8_t out[ENDS][PIECES * LONG_LEN];
	uint8_t in[ENDS][PIECES * LONG_LEN];
} bulk;

/* --- opening and closing --------------------------------------------------------------------- */

static inline struct mrf_vconn *conn_of(int end)
{
	return end ? lines.to[0] : lines.from[0];
}

static inline struct mrf_vpair_attr attr_of(int end)
{
	return (struct mrf_vpair_attr){ .pd = lines.pd,
					.send_cq = pairs.sent[end],
					.recv_cq = pairs.received[end],
					.send_depth = DEPTH,
					.recv_depth = DEPTH,
					.send_sge = PIECES,
					.recv_sge = PIECES,
					.max_inline = 64 };
}

static inline bool open_end(int end)
{
	struct mrf_vpair_attr attr;

	if (!ZERO(mrf_vcq_open(lines.dev, 64, &pairs.sent[end])) ||
	    !ZERO(mrf_vcq_open_beside(pairs.sent[end], 64, &pairs.received[end])))
		return false;
	attr = attr_of(end);
	if (!ZERO(mrf_vpair_open(conn_of(end), &attr, &pairs.pair[end])))
		return false;
	pairs.name[end] = mrf_vpair_name(pairs.pair[end]);
	return true;
}

static inline bool connect_end(int end)
{
	return ZERO(mrf_vpair_connect(pairs.pair[end], conn_of(end), &pairs.name[!end]));
}

/* Both ends, which do not know each other yet. */
static inline bool ends_open(void)
{
	memset(&pairs, 0, sizeof(pairs));
	memset(bulk.in, 0, sizeof(bulk.in));
	return lines_open() &&
	       ZERO(mrf_vmr_reg(lines.pd, bulk.out, sizeof(bulk.out), (uintptr_t)bulk.out, 0,
				&pairs.from)) &&
	       ZERO(mrf_vmr_reg(lines.pd, bulk.in, sizeof(bulk.in), (uintptr_t)bulk.in,
				MRF_RIGHT_LOCAL_WRITE, &pairs.to)) &&
	       open_end(0) && open_end(1);
}

static inline bool pairs_open(void)
{
	return connect_end(0) && connect_end(1);
}

static inline void close_end(int end)
{
	if (pairs.pair[end])
		mrf_vpair_close(pairs.pair[end]);
	pairs.pair[end] = NULL;
}

static inline void pairs_close(void)
{
	for (int end = 0; end < ENDS; end++) {
		close_end(end);
		if (pairs.received[end])
			mrf_vcq_close(pairs.received[end]);
		if (pairs.sent[end])
			mrf_vcq_close(pairs.sent[end]);
	}
	mrf_vmr_drop(&pairs.from);
	mrf_vmr_drop(&pairs.to);
	lines_close();
}

/* --- parts of cases -------------------------------------------------------------------------- */

/*
 * Where the nth piece of len bytes in so many pieces is: all but the last have one byte less each
 * than an equal share, and of few bytes some pieces have none.
 */
static inline struct mrf_sge piece_of(uint8_t *bytes, unsigned n, unsigned pieces, uint32_t len,
				      uint32_t lkey)
{
	uint32_t share = len / pieces - (len >= 2 * pieces);

	return (struct mrf_sge){ (uintptr_t)bytes + (uint64_t)n * LONG_LEN,
				 n + 1 < pieces ? share : len - n * share, lkey };
}

static inline uint8_t bulk_byte(unsigned n, uint32_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) * 3 + n * 31 + 1);
}

/* Calls what for each byte of message n, in order, until it says false. */
static inline bool each_byte(struct mrf_sge *sge, unsigned pieces, unsigned n,
			     bool (*what)(uint8_t *byte, uint8_t is))
{
	uint32_t at = 0;

	for (unsigned i = 0; i < pieces; i++) {
		for (uint32_t k = 0; k < sge[i].len; k++, at++) {
			if (!what((uint8_t *)(uintptr_t)sge[i].addr + k, bulk_byte(n, at)))
				return fails("byte %u of message %u is wrong", at, n);
		}
	}
	return true;
}

static inline bool set(uint8_t *byte, uint8_t is)
{
	*byte = is;
	return true;
}

static inline bool equals(uint8_t *byte, uint8_t is)
{
	return *byte == is;
}

/* Each message of a case has a part of the buffers for itself. */
static inline void pieces_of(uint8_t *bytes, struct mrf_sge *sge, unsigned pieces, unsigned n,
			     uint32_t len, uint32_t lkey)
{
	for (unsigned i = 0; i < pieces; i++)
		sge[i] = piece_of(bytes + (size_t)n * LONG_LEN / DEPTH, i, pieces, len, lkey);
}

static inline bool post_send(int end, unsigned n, unsigned pieces, uint32_t len)
{
	struct mrf_sge sge[PIECES];

	pieces_of(bulk.out[end], sge, pieces, n, len, pairs.from.lkey);
	each_byte(sge, pieces, n, set);
	return ZERO(mrf_vpair_send(pairs.pair[end], n, sge, (int)pieces, false));
}

/* The bytes are read before the call returns, and need not be registered. */
static inline bool post_inline(int end, unsigned n, uint32_t len)
{
	uint8_t bytes[64];
	struct mrf_sge sge = { (uintptr_t)bytes, len, 0x12345678 };
	bool ok;

	each_byte(&sge, 1, n, set);
	ok = ZERO(mrf_vpair_send(pairs.pair[end], n, &sge, 1, true));
	memset(bytes, 0, sizeof(bytes));
	return ok;
}

static inline bool post_room(int end, unsigned n, unsigned pieces, uint32_t len)
{
	struct mrf_sge sge[PIECES];

	pieces_of(bulk.in[end], sge, pieces, n, len, pairs.to.lkey);
	return ZERO(mrf_vpair_recv(pairs.pair[end], n, sge, (int)pieces));
}

/* The next completion, of the pair at this end, has this number and one of two states. */
static inline bool ends_as(struct mrf_vcq *cq, int end, unsigned n, enum mrf_wc_status status,
			   enum mrf_wc_status or_status)
{
	struct mrf_wc wc;

	if (!next_completion(cq, &wc))
		return false;
	if (wc.wr_id != n || (wc.status != status && wc.status != or_status))
		return fails("request %lu ended with %d (%s, %d), not %u with %d",
			     (unsigned long)wc.wr_id, wc.status, mrf_wc_status_text(wc.raw_status),
			     wc.raw_status, n, status);
	return wc.qpn == pairs.name[end].qpn ||
	       fails("it is of queue pair %u, not %u", wc.qpn, pairs.name[end].qpn);
}

static inline bool send_ends(int end, unsigned n, enum mrf_wc_status status)
{
	return ends_as(pairs.sent[end], end, n, status, status);
}

static inline bool room_ends(int end, unsigned n, enum mrf_wc_status status)
{
	return ends_as(pairs.received[end], end, n, status, status);
}

/* Message n is the next to come at this end, in the pieces of the receive of the same number. */
static inline bool bulk_comes(int end, unsigned n, unsigned pieces, uint32_t room, uint32_t len)
{
	struct mrf_sge sge[PIECES];
	struct mrf_wc wc;
	uint32_t left = len;

	if (!next_completion(pairs.received[end], &wc))
		return false;
	if (wc.status != MRF_WC_OK || wc.kind != MRF_WC_RECV || wc.wr_id != n ||
	    wc.byte_len != len || wc.qpn != pairs.name[end].qpn)
		return fails("receive %lu: status %d, kind %d, %u bytes, queue pair %u",
			     (unsigned long)wc.wr_id, wc.status, wc.kind, wc.byte_len, wc.qpn);
	pieces_of(bulk.in[end], sge, pieces, n, room, 0);
	for (unsigned i = 0; i < pieces; i++) {
		sge[i].len = (uint32_t)mrf_min(sge[i].len, left);
		left -= sge[i].len;
	}
	return each_byte(sge, pieces, n, equals);
}

static inline bool goes(int from, unsigned n, unsigned pieces, unsigned room_pieces, uint32_t len)
{
	return post_room(!from, n, room_pieces, len) && post_send(from, n, pieces, len) &&
	       bulk_comes(!from, n, room_pieces, len, len) && send_ends(from, n, MRF_WC_OK);
}

static inline bool nothing_more_comes(void)
{
	for (int end = 0; end < ENDS; end++) {
		if (!nothing_comes(pairs.sent[end]) || !nothing_comes(pairs.received[end]))
			return false;
	}
	return true;
}

/* --- cases ----------------------------------------------------------------------------------- */

static inline bool pair_bytes_go_both_ways_in_pieces(void)
{
	static const uint32_t len[] = { 0, 1, 100, 16384, LONG_LEN };

	for (size_t i = 0; i < MRF_ARRAY_SIZE(len); i++) {
		for (int from = 0; from < ENDS; from++) {
			if (!goes(from, 0, 1, 1, len[i]) || !goes(from, 0, 3, PIECES, len[i]) ||
			    !goes(from, 0, PIECES, 2, len[i]))
				return false;
			memset(bulk.in, 0, sizeof(bulk.in));
		}
	}
	return nothing_more_comes();
}

/* A byte beyond the message is left alone. */
static inline bool pair_receive_may_be_longer_than_what_comes(void)
{
	struct mrf_sge sge[PIECES];

	memset(bulk.in, 0xee, sizeof(bulk.in));
	if (!post_room(1, 2, 2, 20000) || !post_send(0, 2, 1, 10500) ||
	    !bulk_comes(1, 2, 2, 20000, 10500) || !send_ends(0, 2, MRF_WC_OK))
		return false;
	pieces_of(bulk.in[1], sge, 2, 2, 20000, 0);
	return *(uint8_t *)(uintptr_t)(sge[0].addr + sge[0].len) == 0xee &&
			       *(uint8_t *)(uintptr_t)(sge[1].addr + 10500 - sge[0].len) == 0xee
		       ? true
		       : fails("more was written");
}

static inline bool pair_sends_inline(void)
{
	return post_inline(1, 1, 64) && post_room(0, 1, 2, 64) && bulk_comes(0, 1, 2, 64, 64) &&
	       send_ends(1, 1, MRF_WC_OK);
}

static inline bool pair_keeps_the_order(void)
{
	for (unsigned n = 0; n < DEPTH; n++) {
		if (!post_room(1, n, 2, 5000))
			return false;
	}
	for (unsigned n = 0; n < DEPTH; n++) {
		if (!post_send(0, n, 2, 5000 - 600 * n))
			return false;
	}
	for (unsigned n = 0; n < DEPTH; n++) {
		if (!bulk_comes(1, n, 2, 5000, 5000 - 600 * n) || !send_ends(0, n, MRF_WC_OK))
			return false;
	}
	return nothing_more_comes();
}

static inline bool pair_waits_for_a_receive(void)
{
	return post_send(0, 0, 2, 5000) && post_send(0, 1, 1, 16) && nothing_more_comes() &&
	       post_room(1, 0, 1, 5000) && bulk_comes(1, 0, 1, 5000, 5000) &&
	       send_ends(0, 0, MRF_WC_OK) && nothing_more_comes() && post_room(1, 1, 1, 16) &&
	       bulk_comes(1, 1, 1, 16, 16) && send_ends(0, 1, MRF_WC_OK);
}

/* Both queues take as many as they were made for. */
static inline bool pair_says_when_a_queue_is_full(void)
{
	struct mrf_sge sge = { (uintptr_t)bulk.in[1], 8, pairs.to.lkey };
	unsigned sends = 0, recvs = 0;
	int ret;

	while (!(ret = mrf_vpair_send(pairs.pair[1], 0, &sge, 1, false)) && sends < 100)
		sends++;
	if (ret != -FI_EAGAIN || sends < DEPTH)
		return fails("%u were sent, and then %d", sends, ret);
	while (!(ret = mrf_vpair_recv(pairs.pair[1], 0, &sge, 1)) && recvs < 100)
		recvs++;
	if (ret != -FI_EAGAIN || recvs < DEPTH)
		return fails("%u receives were posted, and then %d", recvs, ret);
	/* What they hold is forgotten. */
	close_end(1);
	close_end(0);
	return nothing_more_comes();
}

/*
 * All that is posted is flushed at both ends, and so are later sends, but nothing is heard of later
 * receives. The connection goes on.
 */
static inline bool breaks_both(uint32_t room, uint32_t len)
{
	return post_room(1, 0, 2, room) && post_room(1, 1, 1, 8) && post_room(0, 2, 1, 8) &&
	       post_send(0, 3, 2, len) && send_ends(0, 3, MRF_WC_REFUSED) &&
	       room_ends(1, 0, MRF_WC_UNSENT) && room_ends(1, 1, MRF_WC_FLUSHED) &&
	       room_ends(0, 2, MRF_WC_FLUSHED) && post_send(0, 4, 1, 8) &&
	       send_ends(0, 4, MRF_WC_FLUSHED) && post_send(1, 5, 1, 8) &&
	       send_ends(1, 5, MRF_WC_FLUSHED) && post_room(1, 6, 1, 8) && post_room(0, 7, 1, 8) &&
	       nothing_more_comes() && post_slot(0, SLOT) && send_message(0, 0, 5000) &&
	       message_comes(0, 0, 0, 5000) && sender_hears(0, 0, MRF_WC_OK);
}

static inline bool pair_breaks_by_a_byte_too_many(void)
{
	return breaks_both(100, 101);
}

static inline bool pair_breaks_by_a_packet_too_many(void)
{
	return breaks_both(10000, 100000);
}

static inline bool pair_breaks_by_a_receive_whose_memory_is_gone(void)
{
	if (!post_room(1, 0, 2, 10000) || !ZERO(mrf_vmr_dereg(&pairs.to)) ||
	    !post_send(0, 0, 2, 9000))
		return false;
	return send_ends(0, 0, MRF_WC_REFUSED) && room_ends(1, 0, MRF_WC_UNSENT) &&
	       post_send(1, 1, 1, 8) && send_ends(1, 1, MRF_WC_FLUSHED) && nothing_more_comes();
}

/* Of a send that waits: its end alone breaks, and what the other sends is not answered. */
static inline bool pair_breaks_by_a_send_whose_memory_is_gone(void)
{
	struct mrf_wc wc;

	if (!post_room(0, 1, 1, 8) || !post_send(0, 0, 2, 9000) || !nothing_more_comes() ||
	    !ZERO(mrf_vmr_dereg(&pairs.from)) || !post_room(1, 0, 2, 10000) ||
	    !next_completion(pairs.sent[0], &wc))
		return false;
	if (wc.status != MRF_WC_LOCAL && wc.status != MRF_WC_UNSENT && wc.status != MRF_WC_FLUSHED)
		return fails("it ended with %d", wc.status);
	return room_ends(0, 1, MRF_WC_FLUSHED) && post_inline(1, 2, 8) &&
	       send_ends(1, 2, MRF_WC_TIMEOUT) && room_ends(1, 0, MRF_WC_FLUSHED) &&
	       nothing_more_comes();
}

/* What came before can be polled still; nothing else comes. */
static inline bool pair_end_that_is_closed_answers_nothing(void)
{
	struct mrf_wc wc;

	if (!post_room(1, 0, 1, 16) || !post_room(1, 1, 1, 16) || !post_send(0, 0, 1, 16) ||
	    !send_ends(0, 0, MRF_WC_OK) || !post_send(1, 2, 1, 16))
		return false;
	close_end(1);
	if (!bulk_comes(1, 0, 1, 16, 16) || !nothing_comes(pairs.received[1]) ||
	    !nothing_comes(pairs.sent[1]))
		return false;
	if (!post_send(0, 3, 1, 16) || !post_send(0, 4, 2, 9000) ||
	    !send_ends(0, 3, MRF_WC_TIMEOUT) || !send_ends(0, 4, MRF_WC_FLUSHED))
		return false;
	return !mrf_vcq_poll_from(pairs.sent[0], &wc, 1) || fails("something more came");
}

static const struct line_case pair_cases[] = {
	LINE_CASE(pair_bytes_go_both_ways_in_pieces),
	LINE_CASE(pair_receive_may_be_longer_than_what_comes),
	LINE_CASE(pair_sends_inline),
	LINE_CASE(pair_keeps_the_order),
	LINE_CASE(pair_waits_for_a_receive),
	LINE_CASE(pair_says_when_a_queue_is_full),
	LINE_CASE(pair_breaks_by_a_byte_too_many),
	LINE_CASE(pair_breaks_by_a_packet_too_many),
	LINE_CASE(pair_breaks_by_a_receive_whose_memory_is_gone),
	LINE_CASE(pair_breaks_by_a_send_whose_memory_is_gone),
	LINE_CASE(pair_end_that_is_closed_answers_nothing),
};

/* --- cases of ends that do not know each other yet -------------------------------------------- */

static inline bool is_name(struct mrf_vpair_name name)
{
	return (name.qpn && name.qpn < 1u << 24 && name.psn < 1u << 24) ||
	       fails("a pair is called %#x, %#x", name.qpn, name.psn);
}

/* Four psns are alike by chance once in ten million. */
static inline bool end_names_differ(void)
{
	struct mrf_vpair *more[2] = { NULL };
	struct mrf_vpair_name name[4] = { pairs.name[0], pairs.name[1] };
	struct mrf_vpair_attr attr = attr_of(0);
	bool ok = true;

	for (int i = 0; ok && i < 2; i++) {
		ok = ZERO(mrf_vpair_open(conn_of(0), &attr, &more[i]));
		if (ok)
			name[i + 2] = mrf_vpair_name(more[i]);
	}
	for (int i = 0; ok && i < 4; i++) {
		ok = is_name(name[i]);
		for (int k = 0; ok && k < i; k++)
			ok = (name[i].qpn != name[k].qpn && name[i].psn != name[k].psn) ||
			     fails("%d and %d are alike: %#x, %#x", i, k, name[i].qpn, name[i].psn);
	}
	for (int i = 0; i < 2; i++) {
		if (more[i])
			mrf_vpair_close(more[i]);
	}
	return ok;
}

/* Receives are taken before, and a send is sent again for a while. */
static inline bool end_may_connect_later(void)
{
	return post_room(1, 0, 2, 5000) && post_room(0, 1, 1, 8) && connect_end(0) &&
	       post_send(0, 0, 2, 5000) && nothing_comes(pairs.received[1]) && connect_end(1) &&
	       bulk_comes(1, 0, 2, 5000, 5000) && send_ends(0, 0, MRF_WC_OK) &&
	       post_send(1, 1, 1, 8) && bulk_comes(0, 1, 1, 8, 8) && send_ends(1, 1, MRF_WC_OK);
}

static inline bool end_takes_nothing_from_others(void)
{
	struct mrf_vpair_name wrong = { pairs.name[0].qpn, (pairs.name[0].psn - 9) & 0xffffff };

	return connect_end(0) && ZERO(mrf_vpair_connect(pairs.pair[1], conn_of(1), &wrong)) &&
	       post_room(1, 0, 1, 8) && post_send(0, 0, 1, 8) && nothing_comes(pairs.received[1]);
}

static inline bool end_needs_its_connection(void)
{
	struct mrf_vpair_attr attr = attr_of(0);
	struct mrf_vpair *pair = NULL;
	int ret;

	mrf_vconn_disconnect(lines.from[0]);
	ret = mrf_vpair_open(lines.from[0], &attr, &pair);
	if (ret != -FI_ECONNRESET || pair)
		return fails("opening: %d", ret);
	ret = mrf_vpair_connect(pairs.pair[0], lines.from[0], &pairs.name[1]);
	return ret == -FI_ECONNRESET || fails("connecting: %d", ret);
}

static const struct line_case end_cases[] = {
	LINE_CASE(end_names_differ),
	LINE_CASE(end_may_connect_later),
	LINE_CASE(end_takes_nothing_from_others),
	LINE_CASE(end_needs_its_connection),
};

#endif
