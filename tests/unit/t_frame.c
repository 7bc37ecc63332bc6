/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of a line: their bytes, round trips, and what decoders refuse. */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "proto/frame.h"
#include "unit.h"

#define V MRF_PROTO_VERSION
#define ALL_FLAGS 0x1fu

static const struct mrf_frame_message message = { .flags = ALL_FLAGS,
						  .number = 0x11121314,
						  .taken = 0x21222324,
						  .ticket = 0x5152535455565758ull,
						  .tag = 0x3132333435363738ull,
						  .cq_data = 0x4142434445464748ull };
static const struct mrf_frame_grant grant = { .length = 0x01020304,
					      .number = 0x1112131415161718ull,
					      .offset = 0x2122232425262728ull,
					      .bulk = { .qp = 0x313233, .psn = 0x414243 } };
static const struct mrf_frame_note note = { .flags = MRF_FRAME_OFFERS_ONLY,
					    .taken = 0x01020304,
					    .window = 0x11121314 };
static const struct mrf_frame_ask ask = { .flags = MRF_FRAME_LAST,
					  .number = 0x0102030405060708ull,
					  .bulk = { .qp = 0x111213, .psn = 0x212223 } };

static struct mrf_frame_offer sample_offer(void)
{
	return (struct mrf_frame_offer){ .message = message,
					 .length = 0x0102030405060708ull,
					 .piece = 0x31323334,
					 .bulk = { .qp = 0x111213, .psn = 0x212223 } };
}

/* --- one of each -------------------------------------------------------------------- */

enum { MESSAGE, CQ_DATA, OFFER, GRANT, NOTE, ASK, PROBE, KINDS };

static const struct {
	int type;
	size_t len;
	uint8_t bytes[64];
} golden[KINDS] = {
	[MESSAGE] = { 14, 32, { 14,   V,    32,	  0,	0x1d, 0,    0,	  0,	0x14, 0x13, 0x12,
				0x11, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33,
				0x32, 0x31, 0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51 } },
	[CQ_DATA] = { 14, 40, { 14,   V,    40,	  0,	0x1f, 0,    0,	  0,	0x14, 0x13,
				0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35,
				0x34, 0x33, 0x32, 0x31, 0x48, 0x47, 0x46, 0x45, 0x44, 0x43,
				0x42, 0x41, 0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51 } },
	[OFFER] = { 15, 64, { 15,   V,	  64,	0,    0x1f, 0,	  0,	0,    0x14, 0x13, 0x12,
			      0x11, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33,
			      0x32, 0x31, 0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x08,
			      0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x13, 0x12, 0x11, 0,
			      0x23, 0x22, 0x21, 0,    0x34, 0x33, 0x32, 0x31, 0,    0,	  0,
			      0,    0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51 } },
	[GRANT] = { 16, 36, { 16,   V,	  36,	0,    0,    0,	  0,	0,    0x18,
			      0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27,
			      0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x04, 0x03, 0x02,
			      0x01, 0x33, 0x32, 0x31, 0,    0x43, 0x42, 0x41, 0 } },
	[NOTE] = { 17,
		   16,
		   { 17, V, 16, 0, 1, 0, 0, 0, 0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11 } },
	[ASK] = { 19, 24, { 19, V, 24, 0, 1,	0,    0,    0, 8,    7,	   6,	 5,
			    4,	3, 2,  1, 0x13, 0x12, 0x11, 0, 0x23, 0x22, 0x21, 0 } },
	[PROBE] = { 20, 4, { 20, V, 4, 0 } },
};

static size_t encode(int kind, uint8_t *buf)
{
	struct mrf_frame_message without = message;
	struct mrf_frame_offer offer = sample_offer();

	without.flags &= ~MRF_FRAME_CQ_DATA;
	switch (kind) {
	case MESSAGE:
		return mrf_frame_message_encode(&without, buf);
	case CQ_DATA:
		return mrf_frame_message_encode(&message, buf);
	case OFFER:
		return mrf_frame_offer_encode(&offer, buf);
	case GRANT:
		return mrf_frame_grant_encode(&grant, buf);
	case NOTE:
		return mrf_frame_note_encode(&note, buf);
	case ASK:
		return mrf_frame_ask_encode(&ask, buf);
	default:
		return mrf_frame_probe_encode(buf);
	}
}

/* Room for what any decoder writes: to see whether it wrote. */
union frame {
	struct mrf_frame_message message;
	struct mrf_frame_offer offer;
	struct mrf_frame_grant grant;
	struct mrf_frame_note note;
	struct mrf_frame_ask ask;
	uint8_t bytes[128];
};

static int decode(int kind, const uint8_t *buf, size_t len, union frame *out)
{
	switch (kind) {
	case MESSAGE:
	case CQ_DATA:
		return mrf_frame_message_decode(buf, len, &out->message);
	case OFFER:
		return mrf_frame_offer_decode(buf, len, &out->offer);
	case GRANT:
		return mrf_frame_grant_decode(buf, len, &out->grant);
	case NOTE:
		return mrf_frame_note_decode(buf, len, &out->note);
	case ASK:
		return mrf_frame_ask_decode(buf, len, &out->ask);
	default:
		return mrf_frame_type(buf, len) == MRF_FRAME_PROBE ? 0 : -FI_EINVAL;
	}
}

/* In memory of exactly that size, so that a sanitizer sees every byte read too many. */
static int decode_alone(int kind, const uint8_t *bytes, size_t len, union frame *out)
{
	uint8_t *copy = calloc(1, len ? len : 1);
	int ret;

	memcpy(copy, bytes, len);
	ret = decode(kind, copy, len, out);
	free(copy);
	return ret;
}

static void must_refuse(int kind, const uint8_t *bytes, size_t len, int err)
{
	union frame out, before;

	memset(&out, 0xa5, sizeof(out));
	before = out;
	ck_assert_int_eq(decode_alone(kind, bytes, len, &out), -err);
	ck_assert_mem_eq(&out, &before, sizeof(out));
}

/* --- bytes -------------------------------------------------------------------------- */

START_TEST(frame_has_these_bytes_and_sets_each_of_them)
{
	uint8_t buf[65];
	int fill;

	for (fill = 0; fill < 2; fill++) {
		memset(buf, fill ? 0xff : 0, sizeof(buf));
		ck_assert_uint_eq(encode(_i, buf), golden[_i].len);
		ck_assert_mem_eq(buf, golden[_i].bytes, golden[_i].len);
		ck_assert_uint_eq(buf[golden[_i].len], fill ? 0xff : 0);
		ck_assert_int_eq(mrf_frame_type(buf, golden[_i].len), golden[_i].type);
	}
}
END_TEST

/* A longer one is of a later version: its head may have more fields. */
START_TEST(frame_is_refused_at_every_shorter_length)
{
	uint8_t buf[65] = { 0 };
	union frame out;
	size_t len = golden[_i].len, cut;

	memcpy(buf, golden[_i].bytes, len);
	for (cut = 0; cut < len; cut++)
		must_refuse(_i, buf, cut, FI_EINVAL);
	ck_assert_int_eq(decode_alone(_i, buf, len, &out), 0);
	/* It says that it is shorter than it has to be, or longer than what came. */
	for (cut = 0; cut < len; cut++) {
		buf[2] = (uint8_t)cut;
		must_refuse(_i, buf, len, FI_EINVAL);
	}
	buf[2] = (uint8_t)(len + 1);
	must_refuse(_i, buf, len, FI_EINVAL);
	ck_assert_int_eq(decode_alone(_i, buf, len + 1, &out), 0);
	buf[3] = 1;
	must_refuse(_i, buf, len + 1, FI_EINVAL);
}
END_TEST

START_TEST(frame_of_another_type_or_version_is_refused)
{
	uint8_t buf[64];
	int other;

	memcpy(buf, golden[_i].bytes, sizeof(golden[_i].bytes));
	for (other = 0; other < 256; other++) {
		buf[0] = (uint8_t)other;
		if (other != golden[_i].type)
			must_refuse(_i, buf, golden[_i].len,
				    _i == PROBE ? FI_EINVAL : FI_EREMOTEIO);
	}
	buf[0] = (uint8_t)golden[_i].type;
	buf[1] = V + 1;
	ck_assert_int_eq(mrf_frame_type(buf, golden[_i].len), -FI_ENOSYS);
	if (_i != PROBE)
		must_refuse(_i, buf, golden[_i].len, FI_ENOSYS);
}
END_TEST

/* A line and a connection for accesses have no types in common. */
START_TEST(types_of_frames_are_14_to_20_without_18)
{
	uint8_t buf[4] = { 0, V, 4, 0 };
	int type, frame;

	for (type = 0; type < 256; type++) {
		buf[0] = (uint8_t)type;
		frame = type >= 14 && type <= 20 && type != 18;
		ck_assert_int_eq(mrf_frame_type(buf, 4), frame ? type : -FI_EINVAL);
		ck_assert_int_eq(mrf_request_kind((enum mrf_msg_type)type) && frame, 0);
	}
	ck_assert_int_eq(mrf_frame_type(buf, 3), -FI_EINVAL);
	ck_assert_int_eq(mrf_frame_type(NULL, 0), -FI_EINVAL);
	ck_assert_int_lt(MRF_MSG_STAGE, MRF_FRAME_MESSAGE);
}
END_TEST

/* --- round trips -------------------------------------------------------------------- */

static void must_be(const struct mrf_frame_message *got, uint32_t flags)
{
	ck_assert_uint_eq(got->flags, flags);
	ck_assert_uint_eq(got->number, message.number);
	ck_assert_uint_eq(got->taken, flags & MRF_FRAME_TAKEN ? message.taken : 0);
	ck_assert_uint_eq(got->tag, flags & MRF_FRAME_TAGGED ? message.tag : 0);
	ck_assert_uint_eq(got->cq_data, flags & MRF_FRAME_CQ_DATA ? message.cq_data : 0);
	ck_assert_uint_eq(got->ticket, flags & MRF_FRAME_TAKEN ? message.ticket : 0);
}

/* With all flags: as a message with data of some lengths, and as an offer. */
START_TEST(message_and_offer_survive_the_round_trip_with_any_flags)
{
	struct mrf_frame_message in = message, out;
	struct mrf_frame_offer offer = sample_offer(), got;
	static uint8_t buf[100000];
	size_t ticket = _i & MRF_FRAME_TAKEN ? 8 : 0, head, extra;

	in.flags = offer.message.flags = (uint32_t)_i;
	head = mrf_frame_message_encode(&in, buf);
	ck_assert_uint_eq(head, (_i & MRF_FRAME_CQ_DATA ? 32 : 24) + ticket);
	for (extra = 0; extra < sizeof(buf) - head; extra = extra * 3 + 1) {
		ck_assert_int_eq(mrf_frame_message_decode(buf, head + extra, &out), 0);
		must_be(&out, in.flags);
		ck_assert_ptr_eq(out.data, buf + head);
		ck_assert_uint_eq(out.data_len, extra);
	}
	ck_assert_uint_eq(mrf_frame_offer_encode(&offer, buf), 56 + ticket);
	ck_assert_int_eq(mrf_frame_offer_decode(buf, 56 + ticket, &got), 0);
	must_be(&got.message, in.flags);
	ck_assert_uint_eq(got.length, offer.length);
	ck_assert_uint_eq(got.piece, offer.piece);
	ck_assert(got.bulk.qp == offer.bulk.qp && got.bulk.psn == offer.bulk.psn);
	ck_assert(!got.message.data && !got.message.data_len);
}
END_TEST

/* What the flags do not name is not sent, and not looked at. */
START_TEST(fields_without_their_flags_are_zeros)
{
	struct mrf_frame_message in = message, out;
	struct mrf_frame_offer offer = sample_offer(), got;
	uint8_t buf[56], zeros[20] = { 0 };

	in.flags = offer.message.flags = 0;
	offer.bulk.qp = 0;
	mrf_frame_message_encode(&in, buf);
	ck_assert_mem_eq(buf + 12, zeros, 12);
	memset(buf + 12, 0xff, 12);
	ck_assert_int_eq(mrf_frame_message_decode(buf, 24, &out), 0);
	must_be(&out, 0);
	mrf_frame_offer_encode(&offer, buf);
	ck_assert_mem_eq(buf + 12, zeros, 20);
	ck_assert_mem_eq(buf + 40, zeros, 8);
	memset(buf + 12, 0xff, 20);
	memset(buf + 44, 0xff, 4);
	ck_assert_int_eq(mrf_frame_offer_decode(buf, 56, &got), 0);
	must_be(&got.message, 0);
	ck_assert(!got.bulk.qp && !got.bulk.psn);
}
END_TEST

/* A later version's head is longer; the data are behind it. */
START_TEST(data_begin_where_the_head_says)
{
	struct mrf_frame_message out;
	uint8_t buf[100];

	encode(MESSAGE, buf);
	buf[2] = 38;
	ck_assert_int_eq(mrf_frame_message_decode(buf, 100, &out), 0);
	ck_assert_ptr_eq(out.data, buf + 38);
	ck_assert_uint_eq(out.data_len, 62);
	ck_assert_int_eq(mrf_frame_message_decode(buf, 38, &out), 0);
	ck_assert_uint_eq(out.data_len, 0);
	/* CQ data are not the beginning of the data. */
	buf[4] |= MRF_FRAME_CQ_DATA;
	must_refuse(MESSAGE, buf, 100, FI_EINVAL);
}
END_TEST

START_TEST(grant_note_and_numbers_survive_the_round_trip)
{
	struct mrf_frame_grant in = grant;
	union frame out;
	uint8_t buf[64];
	int i;

	for (i = 0; i < 4; i++) {
		in.length = i ? 0 : grant.length;
		in.flags = i == 2 ? MRF_FRAME_REFUSED : i == 3 ? MRF_FRAME_WAITS : 0;
		mrf_frame_grant_encode(&in, buf);
		ck_assert_int_eq(decode(GRANT, buf, 36, &out), 0);
		ck_assert(out.grant.flags == in.flags && out.grant.length == in.length &&
			  out.grant.number == in.number && out.grant.offset == in.offset &&
			  out.grant.bulk.qp == in.bulk.qp && out.grant.bulk.psn == in.bulk.psn);
	}
	encode(NOTE, buf);
	ck_assert_int_eq(decode(NOTE, buf, 16, &out), 0);
	ck_assert(out.note.flags == note.flags && out.note.taken == note.taken &&
		  out.note.window == note.window);
	encode(ASK, buf);
	ck_assert_int_eq(decode(ASK, buf, 24, &out), 0);
	ck_assert(out.ask.flags == ask.flags && out.ask.number == ask.number &&
		  out.ask.bulk.qp == ask.bulk.qp && out.ask.bulk.psn == ask.bulk.psn);
}
END_TEST

/* --- what is refused ---------------------------------------------------------------- */

/* Each flag that is none: of a message, an offer, a grant, a note and a question. */
START_TEST(unknown_flags_are_refused)
{
	static const struct {
		int kind;
		unsigned at, from, to; /* bits of a byte at which the flags begin */
	} flags[] = { { MESSAGE, 4, 5, 32 },
		      { OFFER, 4, 5, 32 },
		      { GRANT, 4, 2, 32 },
		      { NOTE, 4, 1, 32 },
		      { ASK, 4, 1, 32 } };
	uint8_t buf[64];
	unsigned bit;

	for (bit = flags[_i].from; bit < flags[_i].to; bit++) {
		size_t len = encode(flags[_i].kind, buf);

		buf[flags[_i].at + bit / 8] |= (uint8_t)(1 << bit % 8);
		must_refuse(flags[_i].kind, buf, len, FI_EINVAL);
	}
}
END_TEST

START_TEST(lengths_that_wrap_are_refused)
{
	static const uint64_t most = MRF_FRAME_MAX_LENGTH;
	const uint64_t lengths[] = { 0, 1, most, most + 1, 1ull << 63, UINT64_MAX };
	struct mrf_frame_offer offer = sample_offer();
	struct mrf_frame_grant in = grant;
	union frame out;
	uint8_t buf[64];
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(lengths); i++) {
		offer.length = lengths[i];
		mrf_frame_offer_encode(&offer, buf);
		if (lengths[i] > most)
			must_refuse(OFFER, buf, 64, FI_EINVAL);
		else
			ck_assert_int_eq(decode(OFFER, buf, 64, &out), 0);
	}
	for (in.length = 0; in.length <= UINT32_MAX / 2; in.length = in.length * 2 + 1) {
		in.offset = most - in.length;
		mrf_frame_grant_encode(&in, buf);
		ck_assert_int_eq(decode(GRANT, buf, 36, &out), 0);
		in.offset++;
		mrf_frame_grant_encode(&in, buf);
		must_refuse(GRANT, buf, 36, FI_EINVAL);
		in.offset = UINT64_MAX - in.length / 2;
		mrf_frame_grant_encode(&in, buf);
		must_refuse(GRANT, buf, 36, FI_EINVAL);
	}
}
END_TEST

START_TEST(numbers_of_queue_pairs_and_packets_have_24_bits)
{
	uint8_t buf[64];

	encode(OFFER, buf);
	buf[43] = 1;
	must_refuse(OFFER, buf, 64, FI_EINVAL);
	encode(OFFER, buf);
	buf[47] = 1;
	must_refuse(OFFER, buf, 64, FI_EINVAL);
	encode(GRANT, buf);
	buf[31] = 1;
	must_refuse(GRANT, buf, 36, FI_EINVAL);
	encode(GRANT, buf);
	buf[35] = 1;
	must_refuse(GRANT, buf, 36, FI_EINVAL);
	encode(ASK, buf);
	buf[19] = 1;
	must_refuse(ASK, buf, 24, FI_EINVAL);
	encode(ASK, buf);
	buf[23] = 1;
	must_refuse(ASK, buf, 24, FI_EINVAL);
}
END_TEST

START_TEST(refusal_that_grants_bytes_is_refused)
{
	uint8_t buf[64];

	encode(GRANT, buf);
	buf[4] = MRF_FRAME_REFUSED;
	must_refuse(GRANT, buf, 36, FI_EINVAL);
	encode(GRANT, buf);
	buf[4] = MRF_FRAME_WAITS;
	must_refuse(GRANT, buf, 36, FI_EINVAL);
}
END_TEST

/* --- bare messages, and counts ------------------------------------------------------ */

START_TEST(bare_message_has_flags_and_taken_in_its_immediate_value)
{
	struct mrf_frame_bare bare = { .flags = MRF_FRAME_TAKEN | MRF_FRAME_ACK,
				       .taken = 0xff123456 },
			      out;
	uint32_t flags;

	ck_assert_uint_eq(mrf_frame_bare_encode(&bare), 0x14123456);
	for (flags = 0; flags < 256; flags++) {
		out = (struct mrf_frame_bare){ 7, 7 };
		if (flags & ~ALL_FLAGS || flags & MRF_FRAME_CQ_DATA) {
			ck_assert_int_eq(mrf_frame_bare_decode(flags << 24, &out), -FI_EINVAL);
			ck_assert(out.flags == 7 && out.taken == 7);
			continue;
		}
		ck_assert_int_eq(mrf_frame_bare_decode(flags << 24 | 0xabcdef, &out), 0);
		ck_assert_uint_eq(out.flags, flags);
		ck_assert_uint_eq(out.taken, flags & MRF_FRAME_TAKEN ? 0xabcdef : 0);
		ck_assert_uint_eq(mrf_frame_bare_encode(&out), flags << 24 | out.taken);
	}
	bare.flags = 0;
	ck_assert_uint_eq(mrf_frame_bare_encode(&bare), 0);
}
END_TEST

#define TAG 0x1122334455667788u
#define TICKET 0x99aabbccddeeff00u

static struct mrf_frame_message message_with(uint32_t flags)
{
	return (struct mrf_frame_message){
		.flags = flags, .tag = TAG, .ticket = TICKET, .taken = 5
	};
}

START_TEST(bare_message_has_what_was_named_last)
{
	struct mrf_frame_last last = { .any = false };
	struct mrf_frame_message named = message_with(0), got;
	uint32_t tagged = MRF_FRAME_TAGGED << 24, counted = MRF_FRAME_TAKEN << 24 | 0xabcdef;

	ck_assert_int_eq(mrf_frame_bare_message(&last, 0, &got), -FI_EINVAL);
	mrf_frame_named(&last, &named);
	ck_assert_int_eq(mrf_frame_bare_message(&last, MRF_FRAME_ACK << 24, &got), 0);
	ck_assert(got.flags == MRF_FRAME_ACK && !got.tag && !got.ticket && !got.taken);
	ck_assert_int_eq(mrf_frame_bare_message(&last, tagged, &got), -FI_EINVAL);
	ck_assert_int_eq(mrf_frame_bare_message(&last, counted, &got), -FI_EINVAL);
	named = message_with(MRF_FRAME_TAGGED);
	mrf_frame_named(&last, &named);
	ck_assert_int_eq(mrf_frame_bare_message(&last, tagged, &got), 0);
	ck_assert(got.flags == MRF_FRAME_TAGGED && got.tag == TAG && !got.ticket);
	ck_assert_int_eq(mrf_frame_bare_message(&last, counted, &got), -FI_EINVAL);
	named = message_with(MRF_FRAME_TAKEN);
	mrf_frame_named(&last, &named);
	/* What has no tag leaves the one before. */
	ck_assert_int_eq(mrf_frame_bare_message(&last, tagged | counted, &got), 0);
	ck_assert(got.tag == TAG && got.ticket == TICKET && got.taken == 0xabcdef);
	ck_assert_int_eq(mrf_frame_bare_message(&last, MRF_FRAME_CQ_DATA << 24, &got), -FI_EINVAL);
}
END_TEST

/* What the target would take for something else has a head. */
START_TEST(messages_are_bare_if_all_of_them_was_named)
{
	struct mrf_frame_message named = message_with(MRF_FRAME_TAGGED | MRF_FRAME_TAKEN), next;
	struct mrf_frame_last last = { .any = false };
	uint32_t flags;

	for (flags = 0; flags <= ALL_FLAGS; flags++) {
		next = message_with(flags);
		ck_assert(!mrf_frame_may_be_bare(&last, &next));
	}
	mrf_frame_named(&last, &named);
	for (flags = 0; flags <= ALL_FLAGS; flags++) {
		next = message_with(flags);
		ck_assert_int_eq(mrf_frame_may_be_bare(&last, &next), !(flags & MRF_FRAME_CQ_DATA));
		next.tag++;
		ck_assert_int_eq(mrf_frame_may_be_bare(&last, &next),
				 !(flags & (MRF_FRAME_CQ_DATA | MRF_FRAME_TAGGED)));
		next = message_with(flags);
		next.ticket++;
		ck_assert_int_eq(mrf_frame_may_be_bare(&last, &next),
				 !(flags & (MRF_FRAME_CQ_DATA | MRF_FRAME_TAKEN)));
	}
}
END_TEST

START_TEST(count_is_known_from_its_low_bits)
{
	static const uint64_t sent[] = { 0, 63, 1ull << 24, (1ull << 32) + 5, UINT64_MAX - 1 };
	uint64_t taken;
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(sent); i++) {
		for (taken = sent[i] - mrf_min(sent[i], 64); taken <= sent[i]; taken++) {
			ck_assert_uint_eq(mrf_frame_count(sent[i], (uint32_t)taken, 32), taken);
			ck_assert_uint_eq(mrf_frame_count(sent[i], taken & 0xffffff, 24), taken);
		}
	}
	/* More than was sent: such a count cannot be, so it is an old one. */
	ck_assert_uint_eq(mrf_frame_count(1ull << 40, 1, 32), (1ull << 40) - (1ull << 32) + 1);
}
END_TEST

static TCase *tcase_frames(void)
{
	TCase *tcase = tcase_create("frames");

	tcase_add_loop_test(tcase, frame_has_these_bytes_and_sets_each_of_them, 0, KINDS);
	tcase_add_loop_test(tcase, frame_is_refused_at_every_shorter_length, 0, KINDS);
	tcase_add_loop_test(tcase, frame_of_another_type_or_version_is_refused, 0, KINDS);
	tcase_add_test(tcase, types_of_frames_are_14_to_20_without_18);
	tcase_add_loop_test(tcase, message_and_offer_survive_the_round_trip_with_any_flags, 0,
			    ALL_FLAGS + 1);
	tcase_add_test(tcase, fields_without_their_flags_are_zeros);
	tcase_add_test(tcase, data_begin_where_the_head_says);
	tcase_add_test(tcase, grant_note_and_numbers_survive_the_round_trip);
	tcase_add_loop_test(tcase, unknown_flags_are_refused, 0, 5);
	tcase_add_test(tcase, lengths_that_wrap_are_refused);
	tcase_add_test(tcase, numbers_of_queue_pairs_and_packets_have_24_bits);
	tcase_add_test(tcase, refusal_that_grants_bytes_is_refused);
	tcase_add_test(tcase, bare_message_has_flags_and_taken_in_its_immediate_value);
	tcase_add_test(tcase, bare_message_has_what_was_named_last);
	tcase_add_test(tcase, messages_are_bare_if_all_of_them_was_named);
	tcase_add_test(tcase, count_is_known_from_its_low_bits);
	return tcase;
}

UNIT_MAIN("frame", tcase_frames)
