/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "base/iov.h"
#include "proto/head.h"
#include "proto/request.h"

_Static_assert(MRF_PROTO_REPLY_HEAD + MRF_PROTO_REPLY_BODY <= MRF_PROTO_MAX_REPLY,
	       "the longest reply fits");

static void put_body(uint8_t *to, const uint8_t *body, uint32_t len)
{
	if (len && body != to)
		memmove(to, body, len);
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
	put32(buf + 44, request->turn);
	put_body(buf + MRF_PROTO_REQUEST_HEAD, request->body, request->body_len);
	return len;
}

int mrf_request_decode(const void *data, size_t len, struct mrf_request *request)
{
	const uint8_t *buf = data;
	struct mrf_request got;
	int ret;

	if (!buf || len < HEAD_LEN)
		return -FI_EINVAL;
	ret = check_head(buf, len, buf[0], MRF_PROTO_REQUEST_HEAD);
	if (ret)
		return ret;
	got.type = buf[0];
	got.what = get32(buf + 4);
	got.key = get64(buf + 8);
	got.serial = get64(buf + 16);
	got.addr = get64(buf + 24);
	got.len = get64(buf + 32);
	got.body_len = get32(buf + 40);
	got.turn = get32(buf + 44);
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
	put32(buf + 8, reply->turn);
	put32(buf + 12, reply->body_len);
	put64(buf + 16, reply->done);
	put_body(buf + MRF_PROTO_REPLY_HEAD, reply->body, reply->body_len);
	return len;
}

int mrf_reply_decode(const void *data, size_t len, struct mrf_reply *reply)
{
	const uint8_t *buf = data;
	struct mrf_reply got;
	int ret;

	if (!buf || len < HEAD_LEN)
		return -FI_EINVAL;
	ret = check_head(buf, len, MRF_MSG_REPLY, MRF_PROTO_REPLY_HEAD);
	if (ret)
		return ret;
	got.status = buf[4];
	got.flags = buf[5];
	got.err = get16(buf + 6);
	got.turn = get32(buf + 8);
	got.body_len = get32(buf + 12);
	got.done = get64(buf + 16);
	got.body = buf + MRF_PROTO_REPLY_HEAD;
	if (got.body_len > get16(buf + 2) - (uint32_t)MRF_PROTO_REPLY_HEAD)
		return -FI_EINVAL;
	*reply = got;
	return 0;
}
