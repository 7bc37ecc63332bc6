/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "proto/frame.h"
#include "proto/greeting.h"
#include "unit.h"

static struct mrf_answer sample_answer(uint32_t nseg)
{
	struct mrf_answer answer = { .cookie = 0x1122334455667788ull,
				     .key = UINT64_MAX - 1,
				     .status = 2,
				     .access = FI_REMOTE_READ,
				     .base = 0x7fff00001234,
				     .len = 4097,
				     .flags = MRF_ANSWER_ONCE,
				     .serial = 0x99,
				     .event = 0x8000000f,
				     .nseg = nseg };
	uint32_t i;

	for (i = 0; i < nseg; i++)
		answer.seg[i] = (struct mrf_wire_seg){ 0x1000ull * i + 7, 100 + i, 0x200 + i, i };
	return answer;
}

START_TEST(proto_greetings_survive_the_round_trip)
{
	struct mrf_hello hello = { .flags = 5, .lost = 0xabcdef, .ticket = 0xfeedfacecafebeefull },
			 h;
	struct mrf_welcome welcome = { .mr_mode = 0x474,
				       .instance = 9,
				       .space_id = 0x0102030405060708ull,
				       .asks = 8,
				       .flags = 0x80000001 },
			   w;
	uint8_t buf[196] = { 0 };
	uint32_t reason;

	ck_assert_uint_eq(mrf_hello_encode(&hello, buf), MRF_PROTO_HELLO_LEN);
	/* rdma_cm pads to 56 bytes */
	ck_assert_int_eq(mrf_hello_decode(buf, 56, &h), 0);
	ck_assert(h.flags == 5 && h.lost == hello.lost && h.ticket == hello.ticket);
	ck_assert_uint_eq(mrf_welcome_encode(&welcome, buf), MRF_PROTO_WELCOME_LEN);
	ck_assert_int_eq(mrf_welcome_decode(buf, 196, &w), 0);
	ck_assert(w.mr_mode == 0x474 && w.instance == 9 && w.asks == 8 &&
		  w.space_id == welcome.space_id && w.flags == welcome.flags);
	ck_assert_uint_eq(mrf_refuse_encode(MRF_REFUSE_CLOSING, buf), MRF_PROTO_REFUSE_LEN);
	ck_assert_int_eq(mrf_refuse_decode(buf, 148, &reason), 0);
	ck_assert_uint_eq(reason, MRF_REFUSE_CLOSING);
	ck_assert_uint_eq(mrf_full_decode(buf, 148), MRF_FULL_UNKNOWN);
}
END_TEST

/* A refusal for want of room names the limit, to those who know it. */
START_TEST(proto_refusal_names_the_limit_that_was_met)
{
	uint8_t buf[148] = { 0 };
	uint32_t reason, full;

	for (full = 0; full < MRF_FULL_COUNT; full++) {
		ck_assert_uint_eq(mrf_full_encode((enum mrf_full)full, buf), MRF_PROTO_FULL_LEN);
		ck_assert_int_eq(mrf_refuse_decode(buf, 148, &reason), 0);
		ck_assert_uint_eq(reason, MRF_REFUSE_RESOURCES);
		ck_assert_uint_eq(mrf_full_decode(buf, 148), full);
	}
	/* A later version's limit; and an earlier version, which names none. */
	buf[12] = MRF_FULL_COUNT;
	ck_assert_uint_eq(mrf_full_decode(buf, 148), MRF_FULL_UNKNOWN);
	buf[12] = MRF_FULL_QP;
	ck_assert_uint_eq(mrf_full_decode(buf, 148), MRF_FULL_QP);
	mrf_refuse_encode(MRF_REFUSE_RESOURCES, buf);
	ck_assert_uint_eq(mrf_full_decode(buf, 148), MRF_FULL_UNKNOWN);
	/* Cut off. */
	mrf_full_encode(MRF_FULL_QP, buf);
	ck_assert_uint_eq(mrf_full_decode(buf, MRF_PROTO_FULL_LEN - 1), MRF_FULL_UNKNOWN);
}
END_TEST

START_TEST(proto_challenge_and_proofs_survive_the_round_trip)
{
	struct mrf_hello hello = { .flags = 5,
				   .ticket = 6,
				   .number = 7,
				   .salt = 8,
				   .proof = { 1, 2, [15] = 16 } },
			 h;
	struct mrf_welcome welcome = { .instance = 9,
				       .asks = 8,
				       .flags = MRF_WELCOME_PROOF,
				       .proof = { 3, 4, [31] = 32 } },
			   w;
	struct mrf_challenge challenge = { .number = 7,
					   .instance = 9,
					   .nonce = { 5, 6, [31] = 33 } },
			     c;
	uint8_t buf[196] = { 0 };
	uint32_t reason;

	ck_assert_uint_eq(mrf_hello_encode(&hello, buf), MRF_PROTO_HELLO_MAX);
	ck_assert_int_eq(mrf_hello_decode(buf, 56, &h), 0);
	ck_assert(h.flags == 5 && h.ticket == 6 && h.number == 7 && h.salt == 8);
	ck_assert_mem_eq(h.proof, hello.proof, sizeof(h.proof));
	ck_assert_uint_eq(mrf_welcome_encode(&welcome, buf),
			  MRF_PROTO_WELCOME_LEN + MRF_PROTO_PROOF);
	ck_assert_int_eq(mrf_welcome_decode(buf, 196, &w), 0);
	ck_assert(w.instance == 9 && w.flags == MRF_WELCOME_PROOF);
	ck_assert_mem_eq(w.proof, welcome.proof, sizeof(w.proof));
	ck_assert_uint_eq(mrf_challenge_encode(&challenge, buf), MRF_PROTO_CHALLENGE_LEN);
	ck_assert_int_eq(mrf_challenge_decode(buf, 148, &c), 0);
	ck_assert(c.number == 7 && c.instance == 9);
	ck_assert_mem_eq(c.nonce, challenge.nonce, sizeof(c.nonce));
	ck_assert_int_eq(mrf_refuse_decode(buf, 148, &reason), 0);
	ck_assert_uint_eq(reason, MRF_REFUSE_CHALLENGE);
	/* Another refusal is no challenge, nor is one without a number. */
	mrf_refuse_encode(MRF_REFUSE_KEY, buf);
	ck_assert_int_lt(mrf_challenge_decode(buf, 148, &c), 0);
	challenge.number = 0;
	ck_assert_int_lt(mrf_challenge_decode(buf, mrf_challenge_encode(&challenge, buf), &c), 0);
}
END_TEST

START_TEST(proto_question_and_answer_survive_the_round_trip)
{
	struct mrf_ask ask = { .cookie = 3,
			       .key = 0,
			       .serial = 4,
			       .addr = UINT64_MAX,
			       .len = UINT64_MAX - 1,
			       .flags = 5 },
		       a;
	uint8_t buf[MRF_PROTO_MAX_MSG];
	uint32_t n, i;

	ck_assert_uint_eq(mrf_ask_encode(&ask, buf), MRF_PROTO_ASK_LEN);
	ck_assert_int_eq(mrf_msg_type(buf, MRF_PROTO_ASK_LEN), MRF_MSG_ASK);
	ck_assert_int_eq(mrf_ask_decode(buf, MRF_PROTO_ASK_LEN, &a), 0);
	ck_assert(a.cookie == 3 && a.key == 0 && a.serial == 4 && a.addr == UINT64_MAX &&
		  a.len == UINT64_MAX - 1 && a.flags == 5);
	for (n = 0; n <= MRF_PROTO_MAX_SEG; n++) {
		struct mrf_answer in = sample_answer(n), out;
		size_t len = mrf_answer_encode(&in, buf);

		ck_assert_uint_le(len, MRF_PROTO_MAX_MSG);
		ck_assert_int_eq(mrf_answer_decode(buf, len, &out), 0);
		ck_assert(out.cookie == in.cookie && out.key == in.key && out.status == in.status &&
			  out.access == in.access && out.base == in.base && out.len == in.len &&
			  out.nseg == n && out.flags == in.flags && out.serial == in.serial &&
			  out.event == in.event);
		for (i = 0; i < n; i++)
			ck_assert(out.seg[i].pos == in.seg[i].pos &&
				  out.seg[i].len == in.seg[i].len &&
				  out.seg[i].rkey == in.seg[i].rkey &&
				  out.seg[i].iova_off == in.seg[i].iova_off);
	}
}
END_TEST

/* Otherwise bytes of ours that mean nothing would go to the peer. */
START_TEST(proto_encoders_set_every_byte)
{
	const struct mrf_hello hello = { .ticket = 1 }, proof = { .number = 1 };
	const struct mrf_welcome welcome = { .asks = 1 },
				 proved = { .asks = 1, .flags = MRF_WELCOME_PROOF },
				 line = { .asks = 1, .flags = MRF_WELCOME_LINE };
	const struct mrf_challenge challenge = { .number = 1 };
	const struct mrf_ask ask = { .key = 1 };
	const struct mrf_answer answer = sample_answer(MRF_PROTO_MAX_SEG);
	const struct mrf_data data = { .data = 1 };
	const struct mrf_request request = { .type = MRF_MSG_ATOMIC };
	const struct mrf_reply reply = { .status = MRF_REPLY_DONE };
	const struct mrf_forget forget = { .count = 1 };
	uint8_t buf[2][MRF_PROTO_MAX_MSG];
	size_t len = 0;
	int i, j;

	for (i = 0; i < 13; i++) {
		for (j = 0; j < 2; j++) {
			memset(buf[j], j ? 0xff : 0, sizeof(buf[j]));
			len = i == 0	? mrf_hello_encode(&hello, buf[j])
			      : i == 1	? mrf_hello_encode(&proof, buf[j])
			      : i == 2	? mrf_welcome_encode(&welcome, buf[j])
			      : i == 3	? mrf_welcome_encode(&proved, buf[j])
			      : i == 4	? mrf_refuse_encode(MRF_REFUSE_KEY, buf[j])
			      : i == 5	? mrf_challenge_encode(&challenge, buf[j])
			      : i == 6	? mrf_ask_encode(&ask, buf[j])
			      : i == 7	? mrf_answer_encode(&answer, buf[j])
			      : i == 8	? mrf_forget_encode(&forget, buf[j])
			      : i == 9	? mrf_data_encode(&data, buf[j])
			      : i == 10 ? mrf_request_encode(&request, buf[j])
			      : i == 11 ? mrf_welcome_encode(&line, buf[j])
					: mrf_reply_encode(&reply, buf[j]);
		}
		ck_assert_msg(len && !memcmp(buf[0], buf[1], len), "encoder %d", i);
	}
}
END_TEST

START_TEST(proto_data_survive_the_round_trip_and_nothing_shorter_does)
{
	struct mrf_data in = { .data = UINT64_MAX - 2, .len = 1ull << 40 }, out = { 0 };
	uint8_t buf[MRF_PROTO_DATA_LEN];
	size_t cut;

	ck_assert_uint_eq(mrf_data_encode(&in, buf), sizeof(buf));
	for (cut = 0; cut < sizeof(buf); cut++)
		ck_assert_int_lt(mrf_data_decode(buf, cut, &out), 0);
	ck_assert_uint_eq(out.data, 0);
	ck_assert_int_eq(mrf_msg_type(buf, sizeof(buf)), MRF_MSG_DATA);
	ck_assert_int_eq(mrf_data_decode(buf, sizeof(buf), &out), 0);
	ck_assert(out.data == in.data && out.len == in.len);
	buf[0] = MRF_MSG_RELEASE;
	ck_assert_int_lt(mrf_data_decode(buf, sizeof(buf), &out), 0);
	ck_assert_int_lt(mrf_data_decode(NULL, 0, &out), 0);
}
END_TEST

/* Every shorter length, in memory of exactly that size so that a sanitizer sees overreads. */
START_TEST(proto_truncated_messages_are_refused_at_every_length)
{
	struct mrf_answer answer = sample_answer(3), out;
	struct mrf_ask ask = { .cookie = 1, .key = 2 }, a;
	struct mrf_hello hello = { .flags = 1, .ticket = 2 }, h;
	uint8_t full[MRF_PROTO_MAX_MSG];
	size_t len, cut;

	len = mrf_answer_encode(&answer, full);
	for (cut = 0; cut < len; cut++) {
		uint8_t *part = malloc(cut ? cut : 1);

		memcpy(part, full, cut);
		ck_assert_int_lt(mrf_answer_decode(part, cut, &out), 0);
		free(part);
	}
	len = mrf_ask_encode(&ask, full);
	for (cut = 0; cut < len; cut++)
		ck_assert_int_lt(mrf_ask_decode(full, cut, &a), 0);
	len = mrf_hello_encode(&hello, full);
	for (cut = 0; cut < len; cut++)
		ck_assert_int_lt(mrf_hello_decode(full, cut, &h), 0);
}
END_TEST

/* Cut off, or with a length that leaves the proof out. */
START_TEST(proto_truncated_proofs_are_refused_at_every_length)
{
	struct mrf_hello hello = { .number = 1, .proof = { 1 } }, h = { .number = 77 };
	struct mrf_welcome welcome = { .asks = 1, .flags = MRF_WELCOME_PROOF }, w = { .asks = 77 };
	struct mrf_challenge challenge = { .number = 1 }, c = { .number = 77 };
	uint8_t full[196] = { 0 };
	size_t len, cut;

	len = mrf_hello_encode(&hello, full);
	for (cut = 0; cut < len; cut++) {
		ck_assert_int_lt(mrf_hello_decode(full, cut, &h), 0);
		full[6] = (uint8_t)cut;
		ck_assert_int_lt(mrf_hello_decode(full, sizeof(full), &h), 0);
		full[6] = (uint8_t)len;
	}
	len = mrf_welcome_encode(&welcome, full);
	for (cut = 0; cut < len; cut++) {
		ck_assert_int_lt(mrf_welcome_decode(full, cut, &w), 0);
		full[6] = (uint8_t)cut;
		ck_assert_int_lt(mrf_welcome_decode(full, sizeof(full), &w), 0);
		full[6] = (uint8_t)len;
	}
	len = mrf_challenge_encode(&challenge, full);
	for (cut = 0; cut < len; cut++) {
		ck_assert_int_lt(mrf_challenge_decode(full, cut, &c), 0);
		full[6] = (uint8_t)cut;
		ck_assert_int_lt(mrf_challenge_decode(full, sizeof(full), &c), 0);
		full[6] = (uint8_t)len;
	}
	ck_assert(h.number == 77 && w.asks == 77 && c.number == 77);
}
END_TEST

START_TEST(proto_foreign_bytes_and_versions_are_told_apart)
{
	struct mrf_hello hello = { .flags = 1, .ticket = 2 };
	struct mrf_hello h = { .flags = 77, .ticket = 77 };
	struct mrf_ask ask = { .cookie = 1, .key = 2 }, a;
	uint8_t buf[64] = { 0 };
	uint32_t reason = 77;

	ck_assert_int_eq(mrf_hello_decode(buf, 56, &h), -FI_EREMOTEIO);
	ck_assert_int_eq(mrf_hello_decode(NULL, 0, &h), -FI_EREMOTEIO);
	mrf_hello_encode(&hello, buf);
	buf[5]++;
	ck_assert_int_eq(mrf_hello_decode(buf, 56, &h), -FI_ENOSYS);
	buf[5]--;
	buf[4] = MRF_MSG_WELCOME;
	ck_assert_int_eq(mrf_hello_decode(buf, 56, &h), -FI_EREMOTEIO);
	ck_assert_uint_eq(h.flags, 77);
	/* Only a refusal says something to every version: that it is another one. */
	mrf_refuse_encode(MRF_REFUSE_VERSION, buf);
	buf[5]++;
	ck_assert_int_eq(mrf_refuse_decode(buf, sizeof(buf), &reason), 0);
	ck_assert_uint_eq(reason, MRF_REFUSE_VERSION);
	buf[6] = MRF_PROTO_REFUSE_LEN - 1;
	ck_assert_int_eq(mrf_refuse_decode(buf, sizeof(buf), &reason), -FI_EINVAL);
	mrf_ask_encode(&ask, buf);
	buf[1] = 0;
	ck_assert_int_eq(mrf_ask_decode(buf, sizeof(buf), &a), -FI_ENOSYS);
	ck_assert_int_lt(mrf_msg_type(buf, sizeof(buf)), 0);
}
END_TEST

START_TEST(proto_answers_with_impossible_numbers_are_refused)
{
	struct mrf_answer answer = sample_answer(1), out;
	uint8_t buf[MRF_PROTO_MAX_MSG];
	size_t len;

	answer.seg[0].len = UINT64_MAX; /* wraps */
	len = mrf_answer_encode(&answer, buf);
	ck_assert_int_eq(mrf_answer_decode(buf, len, &out), -FI_EINVAL);
	answer = sample_answer(1);
	len = mrf_answer_encode(&answer, buf);
	buf[48] = 2; /* more segments than bytes */
	ck_assert_int_eq(mrf_answer_decode(buf, len, &out), -FI_EINVAL);
	buf[48] = 0xff;
	ck_assert_int_eq(mrf_answer_decode(buf, len, &out), -FI_EINVAL);
	buf[48] = 1;
	buf[2] = 0xff; /* says it is longer than it is */
	ck_assert_int_eq(mrf_answer_decode(buf, len, &out), -FI_EINVAL);
}
END_TEST

START_TEST(proto_forget_survives_the_round_trip_and_nothing_else_does)
{
	struct mrf_forget in = { .count = _i % 5 }, out;
	uint8_t buf[MRF_PROTO_FORGET_MAX];
	size_t len, cut;
	uint32_t i;

	for (i = 0; i < in.count; i++)
		in.gone[i] = (struct mrf_wire_gone){ UINT64_MAX - i, i << 20, 4096 * i };
	len = mrf_forget_encode(&in, buf);
	ck_assert_uint_eq(len, MRF_PROTO_NOTE_LEN + in.count * MRF_WIRE_GONE_LEN);
	ck_assert_int_eq(mrf_forget_decode(buf, len, &out), 0);
	ck_assert_uint_eq(out.count, in.count);
	ck_assert_int_eq(memcmp(out.gone, in.gone, in.count * sizeof(in.gone[0])), 0);
	for (cut = 1; cut <= len; cut++)
		ck_assert_int_lt(mrf_forget_decode(buf, len - cut, &out), 0);
	buf[4] = in.count == 4 ? 5 : in.count + 1;
	ck_assert_int_lt(mrf_forget_decode(buf, len, &out), 0);
	buf[7] = 0x80;
	ck_assert_int_lt(mrf_forget_decode(buf, len, &out), 0);
}
END_TEST

START_TEST(proto_notes_are_a_head_and_nothing_else)
{
	uint8_t buf[MRF_PROTO_NOTE_LEN];
	struct mrf_answer answer;
	struct mrf_ask ask;

	ck_assert_uint_eq(mrf_note_encode(MRF_MSG_FORGET, buf), sizeof(buf));
	ck_assert_int_eq(mrf_msg_type(buf, sizeof(buf)), MRF_MSG_FORGET);
	ck_assert_int_eq(mrf_answer_decode(buf, sizeof(buf), &answer), -FI_EREMOTEIO);
	mrf_note_encode(MRF_MSG_RELEASE, buf);
	ck_assert_int_eq(mrf_msg_type(buf, sizeof(buf)), MRF_MSG_RELEASE);
	ck_assert_int_eq(mrf_ask_decode(buf, sizeof(buf), &ask), -FI_EREMOTEIO);
	ck_assert_int_lt(mrf_msg_type(buf, sizeof(buf) - 1), 0);
}
END_TEST

static struct mrf_request sample_request(const uint8_t *body, uint32_t len)
{
	return (struct mrf_request){ .type = MRF_MSG_ATOMIC,
				     .what = 0x10203,
				     .number = 0x11223344,
				     .key = UINT64_MAX,
				     .serial = 9,
				     .addr = UINT64_MAX - 8,
				     .len = 8,
				     .body_len = len,
				     .body = body };
}

START_TEST(proto_request_and_reply_survive_the_round_trip)
{
	uint8_t body[MRF_PROTO_REQUEST_BODY] = { 0 }, buf[MRF_PROTO_MAX_REQUEST];
	struct mrf_request in = sample_request(body, 0), out;
	struct mrf_reply reply = { .status = 17,
				   .err = FI_ERRNO_MAX,
				   .flags = 9,
				   .number = UINT32_MAX - 1,
				   .done = UINT64_MAX - 1,
				   .body = body },
			 r;
	size_t len;

	for (len = 0; len < sizeof(body); len++)
		body[len] = (uint8_t)(len * 7);
	for (in.body_len = 0; in.body_len <= MRF_PROTO_REQUEST_BODY; in.body_len += 8) {
		len = mrf_request_encode(&in, buf);
		ck_assert_uint_eq(len, MRF_PROTO_REQUEST_HEAD + in.body_len);
		ck_assert_int_eq(mrf_msg_type(buf, len), MRF_MSG_ATOMIC);
		ck_assert_int_eq(mrf_request_decode(buf, len, &out), 0);
		ck_assert(out.type == in.type && out.what == in.what && out.number == in.number &&
			  out.key == in.key && out.serial == in.serial && out.addr == in.addr &&
			  out.len == in.len && out.body_len == in.body_len);
		ck_assert_int_eq(memcmp(out.body, body, in.body_len), 0);
	}
	for (; reply.body_len <= MRF_PROTO_REPLY_BODY; reply.body_len += 8) {
		len = mrf_reply_encode(&reply, buf);
		ck_assert_uint_eq(len, MRF_PROTO_REPLY_HEAD + reply.body_len);
		ck_assert_int_eq(mrf_msg_type(buf, len), MRF_MSG_REPLY);
		ck_assert_int_eq(mrf_reply_decode(buf, len, &r), 0);
		ck_assert(r.status == 17 && r.err == FI_ERRNO_MAX && r.flags == 9 &&
			  r.number == UINT32_MAX - 1 && r.done == UINT64_MAX - 1 &&
			  r.body_len == reply.body_len);
		ck_assert_int_eq(memcmp(r.body, body, r.body_len), 0);
	}
}
END_TEST

/* So that nobody has to put it together elsewhere first. */
START_TEST(proto_request_takes_a_body_that_is_in_its_place)
{
	uint8_t buf[MRF_PROTO_MAX_REQUEST] = { 0 };
	struct mrf_request in = sample_request(buf + MRF_PROTO_REQUEST_HEAD, 3), out;
	size_t len;

	memcpy(buf + MRF_PROTO_REQUEST_HEAD, "abc", 3);
	len = mrf_request_encode(&in, buf);
	ck_assert_int_eq(mrf_request_decode(buf, len, &out), 0);
	ck_assert(out.body_len == 3 && !memcmp(out.body, "abc", 3));
}
END_TEST

START_TEST(proto_truncated_requests_and_replies_are_refused_at_every_length)
{
	static const uint8_t body[40];
	struct mrf_request in = sample_request(body, sizeof(body)), out;
	struct mrf_reply reply = { .body_len = sizeof(body), .body = body }, r;
	uint8_t full[MRF_PROTO_MAX_REQUEST], *part;
	size_t len, cut;

	len = mrf_request_encode(&in, full);
	for (cut = 0; cut < len; cut++) {
		part = malloc(cut ? cut : 1);
		memcpy(part, full, cut);
		ck_assert_int_lt(mrf_request_decode(part, cut, &out), 0);
		free(part);
	}
	len = mrf_reply_encode(&reply, full);
	for (cut = 0; cut < len; cut++) {
		part = malloc(cut ? cut : 1);
		memcpy(part, full, cut);
		ck_assert_int_lt(mrf_reply_decode(part, cut, &r), 0);
		free(part);
	}
}
END_TEST

START_TEST(proto_requests_and_replies_with_impossible_numbers_are_refused)
{
	static const uint8_t body[8];
	struct mrf_request in = sample_request(body, 8), out;
	struct mrf_reply reply = { .body_len = 8, .body = body }, r;
	uint8_t buf[MRF_PROTO_MAX_REQUEST];
	size_t len;

	in.len = 10; /* wraps */
	len = mrf_request_encode(&in, buf);
	ck_assert_int_eq(mrf_request_decode(buf, len, &out), -FI_EINVAL);
	in.len = 8;
	len = mrf_request_encode(&in, buf);
	buf[40] = 9; /* more body than there is */
	ck_assert_int_eq(mrf_request_decode(buf, len, &out), -FI_EINVAL);
	memset(buf + 40, 0xff, 4);
	ck_assert_int_eq(mrf_request_decode(buf, len, &out), -FI_EINVAL);
	buf[1]--; /* another version */
	ck_assert_int_eq(mrf_request_decode(buf, len, &out), -FI_ENOSYS);
	in.type = MRF_MSG_ASK; /* no request */
	len = mrf_request_encode(&in, buf);
	ck_assert_int_eq(mrf_request_decode(buf, len, &out), -FI_EINVAL);
	len = mrf_reply_encode(&reply, buf);
	buf[12] = 9;
	ck_assert_int_eq(mrf_reply_decode(buf, len, &r), -FI_EINVAL);
	memset(buf + 12, 0xff, 4);
	ck_assert_int_eq(mrf_reply_decode(buf, len, &r), -FI_EINVAL);
	buf[0] = MRF_MSG_ANSWER;
	ck_assert_int_eq(mrf_reply_decode(buf, len, &r), -FI_EREMOTEIO);
}
END_TEST

START_TEST(proto_name_of_a_pair_survives_the_round_trip_and_nothing_else_does)
{
	static const struct mrf_pair_name wrong[] = { { 0, 5 }, { 1u << 24, 5 }, { 7, 1u << 24 } };
	const struct mrf_pair_name name = { 0xffffff, 0xffffff };
	struct mrf_pair_name got = { 0 };
	uint8_t buf[MRF_PROTO_PAIR_NAME + 1] = { 0 };
	unsigned i;

	ck_assert_uint_eq(mrf_pair_name_encode(&name, buf), MRF_PROTO_PAIR_NAME);
	for (i = 0; i < sizeof(buf); i++)
		ck_assert_int_eq(mrf_pair_name_decode(buf, i, &got),
				 i == MRF_PROTO_PAIR_NAME ? 0 : -FI_EINVAL);
	ck_assert_int_eq(mrf_pair_name_decode(buf, sizeof(buf), &got), -FI_EINVAL);
	ck_assert_uint_eq(got.qpn, name.qpn);
	ck_assert_uint_eq(got.psn, name.psn);
	for (i = 0; i < MRF_ARRAY_SIZE(wrong); i++) {
		mrf_pair_name_encode(&wrong[i], buf);
		ck_assert_int_eq(mrf_pair_name_decode(buf, MRF_PROTO_PAIR_NAME, &got), -FI_EINVAL);
	}
}
END_TEST

START_TEST(proto_random_bytes_never_crash_a_decoder)
{
	uint8_t buf[MRF_PROTO_MAX_MSG];
	struct mrf_answer answer = sample_answer(5), out;
	struct mrf_welcome welcome;
	struct mrf_ask ask;
	uint32_t reason;
	int round, i;

	srand(1);
	for (round = 0; round < 20000; round++) {
		size_t len = mrf_answer_encode(&answer, buf);

		for (i = rand() % 8; i >= 0; i--)
			buf[(size_t)rand() % len] = (uint8_t)rand();
		if (!mrf_answer_decode(buf, (size_t)rand() % (len + 1), &out))
			ck_assert_uint_le(out.nseg, MRF_PROTO_MAX_SEG);
		mrf_ask_decode(buf, len, &ask);
		mrf_welcome_decode(buf, len, &welcome);
		mrf_refuse_decode(buf, len, &reason);
	}
}
END_TEST

/* --- lines ------------------------------------------------------------------------------ */

/* The label takes no room of its own, so it fits beside a proof. */
START_TEST(proto_hello_of_a_line_has_the_port_in_its_flags)
{
	struct mrf_hello hello = { .flags = MRF_HELLO_MESSAGES | 4711u << MRF_HELLO_PORT_SHIFT,
				   .ticket = 5,
				   .number = _i ? 7 : 0 },
			 h;
	const uint8_t flags[] = { 1, 0, 0x67, 0x12 };
	uint8_t buf[56] = { 0 };

	ck_assert_uint_eq(mrf_hello_encode(&hello, buf),
			  _i ? MRF_PROTO_HELLO_MAX : MRF_PROTO_HELLO_LEN);
	ck_assert_mem_eq(buf + 8, flags, sizeof(flags));
	ck_assert_int_eq(mrf_hello_decode(buf, sizeof(buf), &h), 0);
	ck_assert_uint_eq(h.flags, hello.flags);
	ck_assert_uint_eq(h.flags >> MRF_HELLO_PORT_SHIFT, 4711);
	/* The bits between the two belong to later versions. */
	buf[9] = 0xff;
	ck_assert_int_eq(mrf_hello_decode(buf, sizeof(buf), &h), 0);
	ck_assert_uint_eq(h.flags, hello.flags | 0xff00);
	/* A line without a ticket would share what is known of others that have none. */
	buf[16] = 0;
	ck_assert_int_eq(mrf_hello_decode(buf, sizeof(buf), &h), -FI_EINVAL);
	buf[8] = 0;
	ck_assert_int_eq(mrf_hello_decode(buf, sizeof(buf), &h), 0);
}
END_TEST

static struct mrf_welcome sample_line(bool proof)
{
	return (struct mrf_welcome){ .instance = 9,
				     .asks = 8,
				     .flags = MRF_WELCOME_LINE | MRF_WELCOME_KNOWN |
					      (proof ? MRF_WELCOME_PROOF : 0),
				     .proof = { 3, 4, [31] = 32 },
				     .line = { .slot = 16448,
					       .window = 8,
					       .kinds = MRF_LINE_TAGGED,
					       .taken = 0x0102030405060708ull } };
}

/* Where its fields are. */
static size_t line_of(bool proof)
{
	return MRF_PROTO_WELCOME_LEN + (proof ? MRF_PROTO_PROOF : 0);
}

static void same_line(const struct mrf_welcome_line *a, const struct mrf_welcome_line *b)
{
	ck_assert_uint_eq(a->slot, b->slot);
	ck_assert_uint_eq(a->window, b->window);
	ck_assert_uint_eq(a->kinds, b->kinds);
	ck_assert_uint_eq(a->taken, b->taken);
}

START_TEST(proto_welcome_of_a_line_survives_the_round_trip)
{
	const uint8_t bytes[MRF_PROTO_LINE_LEN] = { 0x40, 0x40, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0,
						    0,	  0,	0, 0, 8, 7, 6, 5, 4, 3, 2, 1 };
	struct mrf_welcome in = sample_line(_i), out;
	uint8_t buf[196] = { 0 };
	size_t at = line_of(_i);

	ck_assert_uint_eq(mrf_welcome_encode(&in, buf), at + sizeof(bytes));
	ck_assert_uint_le(at + sizeof(bytes), MRF_PROTO_WELCOME_MAX);
	ck_assert_mem_eq(buf + at, bytes, sizeof(bytes));
	/* rdma_cm pads; and the reserved bytes are for later versions to set */
	memset(buf + at + 12, 0xff, 4);
	ck_assert_int_eq(mrf_welcome_decode(buf, sizeof(buf), &out), 0);
	ck_assert(out.flags == in.flags && out.instance == 9 && out.asks == 8);
	same_line(&out.line, &in.line);
	if (_i)
		ck_assert_mem_eq(out.proof, in.proof, sizeof(out.proof));
}
END_TEST

START_TEST(proto_welcome_of_no_line_leaves_its_fields_zero)
{
	const struct mrf_welcome_line none = { .slot = 0 };
	struct mrf_welcome in = sample_line(_i), out = sample_line(_i);
	uint8_t buf[196] = { 0 };

	/* Even if there are bytes at their place. */
	mrf_welcome_encode(&in, buf);
	buf[28] &= (uint8_t)~MRF_WELCOME_LINE;
	ck_assert_int_eq(mrf_welcome_decode(buf, sizeof(buf), &out), 0);
	same_line(&out.line, &none);
	in.flags &= ~MRF_WELCOME_LINE;
	ck_assert_uint_eq(mrf_welcome_encode(&in, buf), line_of(_i));
}
END_TEST

/* Cut off, or with a length that leaves out part of it. */
START_TEST(proto_truncated_lines_are_refused_at_every_length)
{
	struct mrf_welcome in = sample_line(_i), out = { .asks = 77, .line = { .window = 77 } };
	uint8_t full[196] = { 0 };
	size_t len = mrf_welcome_encode(&in, full), cut;

	for (cut = 0; cut < len; cut++) {
		uint8_t *part = malloc(cut ? cut : 1);

		memcpy(part, full, cut);
		ck_assert_int_lt(mrf_welcome_decode(part, cut, &out), 0);
		free(part);
		full[6] = (uint8_t)cut;
		ck_assert_int_eq(mrf_welcome_decode(full, sizeof(full), &out), -FI_EINVAL);
		full[6] = (uint8_t)len;
	}
	ck_assert(out.asks == 77 && out.line.window == 77);
	ck_assert_int_eq(mrf_welcome_decode(full, len, &out), 0);
}
END_TEST

/* A later version may add fields at the end; but all that is said must be there. */
START_TEST(proto_longer_welcome_of_a_line_is_taken_if_it_is_all_there)
{
	struct mrf_welcome in = sample_line(_i), out;
	uint8_t buf[196];
	size_t len;

	memset(buf, 0xff, sizeof(buf));
	len = mrf_welcome_encode(&in, buf);
	buf[6] = (uint8_t)(len + 8);
	ck_assert_int_eq(mrf_welcome_decode(buf, len + 7, &out), -FI_EINVAL);
	ck_assert_int_eq(mrf_welcome_decode(buf, len + 8, &out), 0);
	same_line(&out.line, &in.line);
}
END_TEST

START_TEST(proto_line_has_room_for_a_message_or_is_refused)
{
	struct mrf_welcome in = sample_line(_i), out = { .asks = 77 };
	uint8_t buf[196] = { 0 };

	in.line = (struct mrf_welcome_line){ .slot = MRF_FRAME_MESSAGE_MAX - 1 };
	mrf_welcome_encode(&in, buf);
	ck_assert_int_eq(mrf_welcome_decode(buf, sizeof(buf), &out), -FI_EINVAL);
	ck_assert_uint_eq(out.asks, 77);
	/* It may take none now, and none of a kind that is known here. */
	in.line.slot++;
	mrf_welcome_encode(&in, buf);
	ck_assert_int_eq(mrf_welcome_decode(buf, sizeof(buf), &out), 0);
	same_line(&out.line, &in.line);
	in.asks = 0;
	mrf_welcome_encode(&in, buf);
	ck_assert_int_eq(mrf_welcome_decode(buf, sizeof(buf), &out), -FI_EINVAL);
}
END_TEST

static TCase *tcase_lines(void)
{
	TCase *tc = tcase_create("lines");

	tcase_add_loop_test(tc, proto_hello_of_a_line_has_the_port_in_its_flags, 0, 2);
	tcase_add_loop_test(tc, proto_welcome_of_a_line_survives_the_round_trip, 0, 2);
	tcase_add_loop_test(tc, proto_welcome_of_no_line_leaves_its_fields_zero, 0, 2);
	tcase_add_loop_test(tc, proto_truncated_lines_are_refused_at_every_length, 0, 2);
	tcase_add_loop_test(tc, proto_longer_welcome_of_a_line_is_taken_if_it_is_all_there, 0, 2);
	tcase_add_loop_test(tc, proto_line_has_room_for_a_message_or_is_refused, 0, 2);
	return tc;
}

static TCase *tcase_proto(void)
{
	TCase *tc = tcase_create("proto");

	tcase_add_test(tc, proto_greetings_survive_the_round_trip);
	tcase_add_test(tc, proto_encoders_set_every_byte);
	tcase_add_test(tc, proto_data_survive_the_round_trip_and_nothing_shorter_does);
	tcase_add_test(tc, proto_challenge_and_proofs_survive_the_round_trip);
	tcase_add_test(tc, proto_refusal_names_the_limit_that_was_met);
	tcase_add_test(tc, proto_truncated_proofs_are_refused_at_every_length);
	tcase_add_test(tc, proto_question_and_answer_survive_the_round_trip);
	tcase_add_test(tc, proto_truncated_messages_are_refused_at_every_length);
	tcase_add_test(tc, proto_foreign_bytes_and_versions_are_told_apart);
	tcase_add_test(tc, proto_answers_with_impossible_numbers_are_refused);
	tcase_add_loop_test(tc, proto_forget_survives_the_round_trip_and_nothing_else_does, 0, 5);
	tcase_add_test(tc, proto_notes_are_a_head_and_nothing_else);
	tcase_add_test(tc, proto_request_and_reply_survive_the_round_trip);
	tcase_add_test(tc, proto_request_takes_a_body_that_is_in_its_place);
	tcase_add_test(tc, proto_truncated_requests_and_replies_are_refused_at_every_length);
	tcase_add_test(tc, proto_requests_and_replies_with_impossible_numbers_are_refused);
	tcase_add_test(tc, proto_name_of_a_pair_survives_the_round_trip_and_nothing_else_does);
	tcase_add_test(tc, proto_random_bytes_never_crash_a_decoder);
	return tc;
}

UNIT_MAIN("proto", tcase_proto, tcase_lines)
