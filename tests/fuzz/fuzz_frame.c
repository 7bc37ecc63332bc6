/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target for the decoders of frames, in libFuzzer's form. The first byte picks a
 * decoder, the rest is the frame. With an odd one the frame first gets the version that
 * it should have, so that changed bytes get further. What is accepted must survive being
 * encoded and decoded again.
 *
 *	configure CC=clang && make tests/fuzz/fuzz_frame && tests/fuzz/fuzz_frame corpus-copy/
 *
 * The corpus in corpus-frame is replayed, and changed a little, by
 * tests/unit/t_fuzz_frame.c.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"
#include "proto/frame.h"

static void must(int ok)
{
	if (!ok)
		abort();
}

static bool same_message(const struct mrf_frame_message *one, const struct mrf_frame_message *two)
{
	return one->flags == two->flags && one->number == two->number && one->taken == two->taken &&
	       one->tag == two->tag && one->cq_data == two->cq_data;
}

static bool same_bulk(const struct mrf_frame_bulk *one, const struct mrf_frame_bulk *two)
{
	return one->qp == two->qp && one->psn == two->psn && one->qp < 1u << 24 &&
	       one->psn < 1u << 24;
}

static void message(const uint8_t *buf, size_t len)
{
	uint8_t again[MRF_FRAME_MESSAGE_MAX];
	struct mrf_frame_message one, two;
	static volatile uint8_t sink; /* every byte of the data can be read */
	size_t n;

	if (mrf_frame_message_decode(buf, len, &one))
		return;
	must(mrf_frame_type(buf, len) == MRF_FRAME_MESSAGE);
	must(one.data >= buf + MRF_FRAME_MESSAGE_LEN && one.data + one.data_len == buf + len);
	for (n = 0; n < one.data_len; n++)
		sink = one.data[n];
	(void)sink;
	n = mrf_frame_message_encode(&one, again);
	must(n <= len && !mrf_frame_message_decode(again, n, &two));
	must(same_message(&one, &two) && !two.data_len);
}

static void offer(const uint8_t *buf, size_t len)
{
	uint8_t again[MRF_FRAME_OFFER_MAX];
	struct mrf_frame_offer one, two;

	if (mrf_frame_offer_decode(buf, len, &one))
		return;
	must(mrf_frame_type(buf, len) == MRF_FRAME_OFFER);
	must(one.length <= MRF_FRAME_MAX_LENGTH && !one.message.data_len);
	must(!mrf_frame_offer_decode(again, mrf_frame_offer_encode(&one, again), &two));
	must(same_message(&one.message, &two.message) && one.length == two.length &&
	     one.piece == two.piece && same_bulk(&one.bulk, &two.bulk));
}

static void grant(const uint8_t *buf, size_t len)
{
	uint8_t again[MRF_FRAME_GRANT_LEN];
	struct mrf_frame_grant one, two;

	if (mrf_frame_grant_decode(buf, len, &one))
		return;
	must(mrf_frame_type(buf, len) == MRF_FRAME_GRANT);
	must(one.offset <= MRF_FRAME_MAX_LENGTH && one.offset + one.length <= MRF_FRAME_MAX_LENGTH);
	must(!mrf_frame_grant_decode(again, mrf_frame_grant_encode(&one, again), &two));
	must(one.flags == two.flags && one.length == two.length && one.number == two.number &&
	     one.offset == two.offset && same_bulk(&one.bulk, &two.bulk));
}

static void note(const uint8_t *buf, size_t len)
{
	uint8_t again[MRF_FRAME_NOTE_LEN];
	struct mrf_frame_note one, two;

	if (mrf_frame_note_decode(buf, len, &one))
		return;
	must(mrf_frame_type(buf, len) == MRF_FRAME_NOTE);
	must(!mrf_frame_note_decode(again, mrf_frame_note_encode(&one, again), &two));
	must(one.flags == two.flags && one.taken == two.taken && one.window == two.window);
}

static void ask(const uint8_t *buf, size_t len)
{
	uint8_t again[MRF_FRAME_ASK_LEN];
	struct mrf_frame_ask one, two;

	if (mrf_frame_ask_decode(buf, len, &one))
		return;
	must(mrf_frame_type(buf, len) == MRF_FRAME_ASK);
	must(!mrf_frame_ask_decode(again, mrf_frame_ask_encode(&one, again), &two));
	must(one.flags == two.flags && one.number == two.number && same_bulk(&one.bulk, &two.bulk));
}

static void bare(const uint8_t *buf, size_t len)
{
	struct mrf_frame_bare one, two;
	uint32_t imm;

	if (len < sizeof(imm))
		return;
	memcpy(&imm, buf, sizeof(imm));
	if (mrf_frame_bare_decode(imm, &one))
		return;
	must(!mrf_frame_bare_decode(mrf_frame_bare_encode(&one), &two));
	must(one.flags == two.flags && one.taken == two.taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static void (*const decoders[])(const uint8_t *, size_t) = { message, offer, grant,
								     note,    ask,   bare };
	uint8_t *copy;

	if (!size)
		return 0;
	/*
	 * Memory of exactly that size, so that a sanitizer sees every byte read too many.
	 */
	copy = malloc(size > 1 ? size - 1 : 1);
	must(copy != NULL);
	memcpy(copy, input + 1, size - 1);
	if (input[0] & 1 && size > 2)
		copy[1] = MRF_PROTO_VERSION;
	decoders[(input[0] >> 1) % (sizeof(decoders) / sizeof(decoders[0]))](copy, size - 1);
	mrf_frame_type(copy, size - 1);
	free(copy);
	return 0;
}
