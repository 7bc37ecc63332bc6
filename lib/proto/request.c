/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "base/iov.h"
#include "proto/head.h"
#include "proto/request.h"

_Static_assert(MRF_PROTO_MAX_REPLY <= MRF_PROTO_MAX_MSG, "fits where answers come in");

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
	put64(buf + 8, request->cookie);
	put64(buf + 16, request->key);
	put64(buf + 24, request->serial);
	put64(buf + 32, request->addr);
	put64(buf + 40, request->len);
	put32(buf + 48, request->body_len);
	put32(buf + 52, request->turn);
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
	got.cookie = get64(buf + 8);
	got.key = get64(buf + 16);
	got.serial = get64(buf + 24);
	got.addr = get64(buf + 32);
	got.len = get64(buf + 40);
	got.body_len = get32(buf + 48);
	got.turn = get32(buf + 52);
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
	put32(buf + 4, reply->status);
	put64(buf + 8, reply->cookie);
	put64(buf + 16, reply->done);
	put32(buf + 24, reply->err);
	put32(buf + 28, reply->body_len);
	put32(buf + 32, reply->flags);
	put32(buf + 36, 0);
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
	got.status = get32(buf + 4);
	got.cookie = get64(buf + 8);
	got.done = get64(buf + 16);
	got.err = get32(buf + 24);
	got.body_len = get32(buf + 28);
	got.flags = get32(buf + 32);
	got.body = buf + MRF_PROTO_REPLY_HEAD;
	if (got.body_len > get16(buf + 2) - (uint32_t)MRF_PROTO_REPLY_HEAD)
		return -FI_EINVAL;
	*reply = got;
	return 0;
}
