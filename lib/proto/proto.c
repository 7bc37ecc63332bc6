/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "proto/frame.h"
#include "proto/head.h"

_Static_assert(MRF_PROTO_MAX_MSG <= 512, "an answer goes inline");
_Static_assert(MRF_PROTO_REPLY_HEAD + MRF_PROTO_REPLY_BODY <= MRF_PROTO_MAX_REPLY,
	       "the longest reply fits");

int mrf_msg_type(const uint8_t *buf, size_t len)
{
	int ret;

	if (!buf || len < HEAD_LEN)
		return -FI_EINVAL;
	ret = check_head(buf, len, buf[0], HEAD_LEN);
	return ret ? ret : buf[0];
}

size_t mrf_msg_len(const uint8_t *buf)
{
	return get16(buf + 2);
}

/* --- questions, answers, data, notes ------------------------------------------------------- */

size_t mrf_ask_encode(const struct mrf_ask *ask, uint8_t *buf)
{
	memset(buf, 0, MRF_PROTO_ASK_LEN);
	put_head(buf, MRF_MSG_ASK, MRF_PROTO_ASK_LEN);
	put32(buf + 4, ask->flags);
	put64(buf + 8, ask->cookie);
	put64(buf + 16, ask->key);
	put64(buf + 24, ask->serial);
	put64(buf + 32, ask->addr);
	put64(buf + 40, ask->len);
	return MRF_PROTO_ASK_LEN;
}

size_t mrf_data_encode(const struct mrf_data *data, uint8_t *buf)
{
	put_head(buf, MRF_MSG_DATA, MRF_PROTO_DATA_LEN);
	put32(buf + 4, 0);
	put64(buf + 8, data->data);
	put64(buf + 16, data->len);
	return MRF_PROTO_DATA_LEN;
}

int mrf_data_decode(const uint8_t *buf, size_t len, struct mrf_data *data)
{
	int ret = check_message(buf, len, MRF_MSG_DATA, MRF_PROTO_DATA_LEN);

	if (ret)
		return ret;
	data->data = get64(buf + 8);
	data->len = get64(buf + 16);
	return 0;
}

size_t mrf_note_encode(enum mrf_msg_type type, uint8_t *buf)
{
	memset(buf, 0, MRF_PROTO_NOTE_LEN);
	put_head(buf, type, MRF_PROTO_NOTE_LEN);
	return MRF_PROTO_NOTE_LEN;
}

size_t mrf_forget_encode(const struct mrf_forget *forget, uint8_t *buf)
{
	size_t len = MRF_PROTO_NOTE_LEN + forget->count * MRF_WIRE_GONE_LEN;
	uint8_t *at = buf + MRF_PROTO_NOTE_LEN;
	uint32_t i;

	memset(buf, 0, MRF_PROTO_NOTE_LEN);
	put_head(buf, MRF_MSG_FORGET, len);
	put32(buf + 4, forget->count);
	for (i = 0; i < forget->count; i++, at += MRF_WIRE_GONE_LEN) {
		put64(at, forget->gone[i].key);
		put64(at + 8, forget->gone[i].pos);
		put64(at + 16, forget->gone[i].len);
	}
	return len;
}

int mrf_forget_decode(const uint8_t *buf, size_t len, struct mrf_forget *forget)
{
	const uint8_t *at = buf + MRF_PROTO_NOTE_LEN;
	int ret = check_message(buf, len, MRF_MSG_FORGET, MRF_PROTO_NOTE_LEN);
	uint32_t i, count;

	if (ret)
		return ret;
	count = get32(buf + 4);
	if (count > MRF_PROTO_MAX_GONE ||
	    get16(buf + 2) < MRF_PROTO_NOTE_LEN + count * MRF_WIRE_GONE_LEN)
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		if (get64(at + i * MRF_WIRE_GONE_LEN + 16) >
		    UINT64_MAX - get64(at + i * MRF_WIRE_GONE_LEN + 8))
			return -FI_EINVAL;
	}
	forget->count = count;
	for (i = 0; i < count; i++, at += MRF_WIRE_GONE_LEN)
		forget->gone[i] =
			(struct mrf_wire_gone){ get64(at), get64(at + 8), get64(at + 16) };
	return 0;
}

int mrf_ask_decode(const uint8_t *buf, size_t len, struct mrf_ask *ask)
{
	int ret = check_message(buf, len, MRF_MSG_ASK, MRF_PROTO_ASK_LEN);

	if (ret)
		return ret;
	ask->flags = get32(buf + 4);
	ask->cookie = get64(buf + 8);
	ask->key = get64(buf + 16);
	ask->serial = get64(buf + 24);
	ask->addr = get64(buf + 32);
	ask->len = get64(buf + 40);
	return 0;
}

size_t mrf_answer_encode(const struct mrf_answer *answer, uint8_t *buf)
{
	size_t len = MRF_PROTO_ANSWER_HEAD + answer->nseg * MRF_WIRE_SEG_LEN;
	uint8_t *p = buf + MRF_PROTO_ANSWER_HEAD;
	uint32_t i;

	memset(buf, 0, len);
	put_head(buf, MRF_MSG_ANSWER, len);
	put32(buf + 4, answer->status);
	put64(buf + 8, answer->cookie);
	put64(buf + 16, answer->key);
	put64(buf + 24, answer->access);
	put64(buf + 32, answer->base);
	put64(buf + 40, answer->len);
	put32(buf + 48, answer->nseg);
	put32(buf + 52, answer->flags);
	put64(buf + 56, answer->serial);
	put32(buf + 64, answer->event);
	for (i = 0; i < answer->nseg; i++, p += MRF_WIRE_SEG_LEN)
		put_seg(p, &answer->seg[i]);
	return len;
}

static int decode_segs(const uint8_t *p, struct mrf_answer *answer)
{
	uint32_t i;

	for (i = 0; i < answer->nseg; i++, p += MRF_WIRE_SEG_LEN) {
		struct mrf_wire_seg *seg = &answer->seg[i];

		*seg = get_seg(p);
		if (!mrf_range_ok(seg->pos, seg->len) || !mrf_range_ok(seg->iova_off, seg->len))
			return -FI_EINVAL;
	}
	return 0;
}

int mrf_answer_decode(const uint8_t *buf, size_t len, struct mrf_answer *answer)
{
	struct mrf_answer got;
	int ret = check_message(buf, len, MRF_MSG_ANSWER, MRF_PROTO_ANSWER_HEAD);

	if (ret)
		return ret;
	got.status = get32(buf + 4);
	got.cookie = get64(buf + 8);
	got.key = get64(buf + 16);
	got.access = get64(buf + 24);
	got.base = get64(buf + 32);
	got.len = get64(buf + 40);
	got.nseg = get32(buf + 48);
	got.flags = get32(buf + 52);
	got.serial = get64(buf + 56);
	got.event = get32(buf + 64);
	if (got.nseg > MRF_PROTO_MAX_SEG ||
	    get16(buf + 2) < MRF_PROTO_ANSWER_HEAD + got.nseg * MRF_WIRE_SEG_LEN)
		return -FI_EINVAL;
	ret = decode_segs(buf + MRF_PROTO_ANSWER_HEAD, &got);
	if (ret)
		return ret;
	*answer = got;
	return 0;
}

/* --- requests and replies ------------------------------------------------------------------ */

enum mrf_request_kind mrf_request_kind(enum mrf_msg_type type)
{
	switch (type) {
	case MRF_MSG_ATOMIC:
		return MRF_REQUEST_ATOMIC;
	case MRF_MSG_FLUSH:
		return MRF_REQUEST_FLUSH;
	case MRF_MSG_STAGE:
		return MRF_REQUEST_STAGE;
	case MRF_MSG_BYTES:
		return MRF_REQUEST_BYTES;
	case MRF_MSG_SYNC:
		return MRF_REQUEST_SYNC;
	case MRF_MSG_HELLO:
	case MRF_MSG_WELCOME:
	case MRF_MSG_REFUSE:
	case MRF_MSG_ASK:
	case MRF_MSG_ANSWER:
	case MRF_MSG_FORGET:
	case MRF_MSG_RELEASE:
	case MRF_MSG_DATA:
	case MRF_MSG_REPLY:
		break;
	}
	return MRF_NO_REQUEST;
}

static void put_body(uint8_t *to, const uint8_t *body, uint32_t len)
{
	if (len && body != to)
		memmove(to, body, len);
}

size_t mrf_pair_name_encode(const struct mrf_pair_name *name, uint8_t *buf)
{
	put32(buf, name->qpn);
	put32(buf + 4, name->psn);
	return MRF_PROTO_PAIR_NAME;
}

int mrf_pair_name_decode(const uint8_t *buf, size_t len, struct mrf_pair_name *name)
{
	struct mrf_pair_name got;

	if (len != MRF_PROTO_PAIR_NAME)
		return -FI_EINVAL;
	got = (struct mrf_pair_name){ .qpn = get32(buf), .psn = get32(buf + 4) };
	if (!got.qpn || got.qpn > LOW24 || got.psn > LOW24)
		return -FI_EINVAL;
	*name = got;
	return 0;
}

size_t mrf_request_encode(const struct mrf_request *request, uint8_t *buf)
{
	size_t len = MRF_PROTO_REQUEST_HEAD + request->body_len;

	put_head(buf, request->type, len);
	put32(buf + 4, request->what);
	put64(buf + 8, request->key);
	put64(buf + 16, request->serial);
	put64(buf + 24, request->addr);
	put64(buf + 32, request->len);
	put32(buf + 40, request->body_len);
	put32(buf + 44, request->number);
	put_body(buf + MRF_PROTO_REQUEST_HEAD, request->body, request->body_len);
	return len;
}

int mrf_request_decode(const uint8_t *buf, size_t len, struct mrf_request *request)
{
	struct mrf_request got;
	int type = mrf_msg_type(buf, len);
	int ret = type < 0 ? type : check_message(buf, len, type, MRF_PROTO_REQUEST_HEAD);

	if (ret)
		return ret;
	got.type = (enum mrf_msg_type)type;
	if (!mrf_request_kind(got.type))
		return -FI_EINVAL;
	got.what = get32(buf + 4);
	got.key = get64(buf + 8);
	got.serial = get64(buf + 16);
	got.addr = get64(buf + 24);
	got.len = get64(buf + 32);
	got.body_len = get32(buf + 40);
	got.number = get32(buf + 44);
	got.body = buf + MRF_PROTO_REQUEST_HEAD;
	if (got.body_len > get16(buf + 2) - (uint32_t)MRF_PROTO_REQUEST_HEAD ||
	    !mrf_range_ok(got.addr, got.len))
		return -FI_EINVAL;
	*request = got;
	return 0;
}

size_t mrf_reply_encode(const struct mrf_reply *reply, uint8_t *buf)
{
	size_t len = MRF_PROTO_REPLY_HEAD + reply->body_len;

	put_head(buf, MRF_MSG_REPLY, len);
	buf[4] = (uint8_t)reply->status;
	buf[5] = (uint8_t)reply->flags;
	put16(buf + 6, (uint16_t)reply->err);
	put32(buf + 8, reply->number);
	put32(buf + 12, reply->body_len);
	put64(buf + 16, reply->done);
	put_body(buf + MRF_PROTO_REPLY_HEAD, reply->body, reply->body_len);
	return len;
}

int mrf_reply_decode(const uint8_t *buf, size_t len, struct mrf_reply *reply)
{
	struct mrf_reply got;
	int ret = check_message(buf, len, MRF_MSG_REPLY, MRF_PROTO_REPLY_HEAD);

	if (ret)
		return ret;
	got.status = buf[4];
	got.flags = buf[5];
	got.err = get16(buf + 6);
	got.number = get32(buf + 8);
	got.body_len = get32(buf + 12);
	got.done = get64(buf + 16);
	got.body = buf + MRF_PROTO_REPLY_HEAD;
	if (got.body_len > get16(buf + 2) - (uint32_t)MRF_PROTO_REPLY_HEAD)
		return -FI_EINVAL;
	*reply = got;
	return 0;
}
