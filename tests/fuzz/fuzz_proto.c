/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target for the decoders of lib/proto, in libFuzzer's form. The first byte picks
 *one, the rest is the message. What a decoder accepts must survive being encoded and
 *decoded again.
 *
 *	configure CC=clang && make tests/fuzz/fuzz_proto && tests/fuzz/fuzz_proto
 *corpus-copy/
 *
 * The corpus beside this file is replayed, and mutated a little, by
 *tests/unit/t_fuzz_proto.c.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"
#include "proto/frame.h"
#include "proto/greeting.h"

static void must(int ok)
{
	if (!ok)
		abort();
}

static void hello(const uint8_t *data, size_t len)
{
	struct mrf_hello one, two;
	uint8_t again[MRF_PROTO_HELLO_MAX];

	if (mrf_hello_decode(data, len, &one))
		return;
	must(!mrf_hello_decode(again, mrf_hello_encode(&one, again), &two));
	must(one.flags == two.flags && one.ticket == two.ticket && one.number == two.number);
	must(!one.number ||
	     (one.salt == two.salt && !memcmp(one.proof, two.proof, sizeof(one.proof))));
}

static bool same_line(const struct mrf_welcome_line *a, const struct mrf_welcome_line *b)
{
	return a->slot == b->slot && a->window == b->window && a->kinds == b->kinds &&
	       a->taken == b->taken;
}

static void welcome(const uint8_t *data, size_t len)
{
	struct mrf_welcome one, two;
	uint8_t again[MRF_PROTO_WELCOME_MAX];

	if (mrf_welcome_decode(data, len, &one))
		return;
	must(one.asks > 0);
	must(!mrf_welcome_decode(again, mrf_welcome_encode(&one, again), &two));
	must(one.mr_mode == two.mr_mode && one.instance == two.instance && one.asks == two.asks &&
	     one.space_id == two.space_id && one.flags == two.flags);
	must(!(one.flags & MRF_WELCOME_PROOF) || !memcmp(one.proof, two.proof, sizeof(one.proof)));
	must(same_line(&one.line, &two.line));
	must(one.flags & MRF_WELCOME_LINE ? one.line.slot >= MRF_FRAME_MESSAGE_MAX
					  : !one.line.slot);
}

static void challenge(const uint8_t *data, size_t len)
{
	struct mrf_challenge one, two;
	uint8_t again[MRF_PROTO_CHALLENGE_LEN];

	if (mrf_challenge_decode(data, len, &one))
		return;
	must(one.number != 0);
	must(!mrf_challenge_decode(again, mrf_challenge_encode(&one, again), &two));
	must(one.number == two.number && one.instance == two.instance &&
	     !memcmp(one.nonce, two.nonce, sizeof(one.nonce)));
}

static void refuse(const uint8_t *data, size_t len)
{
	uint8_t again[MRF_PROTO_REFUSE_LEN];
	uint32_t one, two;

	if (mrf_refuse_decode(data, len, &one))
		return;
	must(!mrf_refuse_decode(again, mrf_refuse_encode(one, again), &two));
	must(one == two);
}

static void ask(const uint8_t *data, size_t len)
{
	struct mrf_ask one, two;
	uint8_t again[MRF_PROTO_ASK_LEN];

	if (mrf_ask_decode(data, len, &one))
		return;
	must(mrf_msg_type(data, len) == MRF_MSG_ASK);
	must(!mrf_ask_decode(again, mrf_ask_encode(&one, again), &two));
	must(one.cookie == two.cookie && one.key == two.key && one.serial == two.serial &&
	     one.addr == two.addr && one.len == two.len && one.flags == two.flags);
}

static void answer(const uint8_t *data, size_t len)
{
	struct mrf_answer one, two;
	uint8_t again[MRF_PROTO_MAX_MSG];
	size_t n;
	uint32_t i;

	if (mrf_answer_decode(data, len, &one))
		return;
	must(mrf_msg_type(data, len) == MRF_MSG_ANSWER);
	must(one.nseg <= MRF_PROTO_MAX_SEG);
	n = mrf_answer_encode(&one, again);
	must(n <= sizeof(again) && !mrf_answer_decode(again, n, &two));
	must(one.status == two.status && one.key == two.key && one.nseg == two.nseg &&
	     one.flags == two.flags && one.serial == two.serial && one.event == two.event);
	for (i = 0; i < one.nseg; i++) {
		must(!memcmp(&one.seg[i], &two.seg[i], sizeof(one.seg[i])));
		must(one.seg[i].len <= UINT64_MAX - one.seg[i].pos);
	}
}

static void request(const uint8_t *data, size_t len)
{
	uint8_t again[UINT16_MAX + 1];
	struct mrf_request one, two;
	size_t n;

	if (mrf_request_decode(data, len, &one))
		return;
	must(mrf_msg_type(data, len) == (int)one.type);
	must(one.body >= data && one.body_len <= len - (size_t)(one.body - data));
	must(one.len <= UINT64_MAX - one.addr);
	n = mrf_request_encode(&one, again);
	must(n <= len && !mrf_request_decode(again, n, &two));
	must(one.type == two.type && one.what == two.what && one.number == two.number &&
	     one.key == two.key && one.serial == two.serial && one.addr == two.addr &&
	     one.len == two.len && one.body_len == two.body_len);
	must(!memcmp(one.body, two.body, one.body_len));
}

static void reply(const uint8_t *data, size_t len)
{
	uint8_t again[UINT16_MAX + 1];
	struct mrf_reply one, two;
	size_t n;

	if (mrf_reply_decode(data, len, &one))
		return;
	must(mrf_msg_type(data, len) == MRF_MSG_REPLY);
	must(one.body >= data && one.body_len <= len - (size_t)(one.body - data));
	n = mrf_reply_encode(&one, again);
	must(n <= len && !mrf_reply_decode(again, n, &two));
	must(one.status == two.status && one.err == two.err && one.flags == two.flags &&
	     one.number == two.number && one.done == two.done && one.body_len == two.body_len);
	must(!memcmp(one.body, two.body, one.body_len));
}

static void data(const uint8_t *buf, size_t len)
{
	struct mrf_data one, two;
	uint8_t again[MRF_PROTO_DATA_LEN];

	if (mrf_data_decode(buf, len, &one))
		return;
	must(mrf_msg_type(buf, len) == MRF_MSG_DATA);
	must(!mrf_data_decode(again, mrf_data_encode(&one, again), &two));
	must(one.data == two.data && one.len == two.len);
}

static void forget(const uint8_t *buf, size_t len)
{
	struct mrf_forget one, two;
	uint8_t again[MRF_PROTO_FORGET_MAX];
	size_t n;

	if (mrf_forget_decode(buf, len, &one))
		return;
	must(mrf_msg_type(buf, len) == MRF_MSG_FORGET);
	n = mrf_forget_encode(&one, again);
	must(n <= len && !mrf_forget_decode(again, n, &two));
	must(one.count == two.count);
	must(!memcmp(one.gone, two.gone, one.count * sizeof(one.gone[0])));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static void (*const decoders[])(const uint8_t *,
					size_t) = { hello,   welcome, refuse, ask,	 answer,
						    request, reply,   data,   challenge, forget };
	uint8_t *copy;

	if (!size)
		return 0;
	/* Memory of exactly that size, so that a sanitizer sees every byte read too many.
	 */
	copy = malloc(size > 1 ? size - 1 : 1);
	must(copy != NULL);
	memcpy(copy, input + 1, size - 1);
	decoders[input[0] % (sizeof(decoders) / sizeof(decoders[0]))](copy, size - 1);
	mrf_msg_type(copy, size - 1);
	free(copy);
	return 0;
}
