/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "proto/frame.h"
#include "proto/head.h"

#define MESSAGE_FLAGS \
	(MRF_FRAME_TAGGED | MRF_FRAME_CQ_DATA | MRF_FRAME_ACK | MRF_FRAME_TELL | MRF_FRAME_TAKEN)

_Static_assert(MESSAGE_FLAGS < 1u << 8, "they fit into an immediate value");
_Static_assert(MRF_FRAME_GRANT_LEN <= MRF_FRAME_MAX_BACK &&
		       MRF_FRAME_NOTE_LEN <= MRF_FRAME_MAX_BACK,
	       "what a target sends");

int mrf_frame_type(const uint8_t *buf, size_t len)
{
	int type = mrf_msg_type(buf, len);

	switch (type) {
	case MRF_FRAME_MESSAGE:
	case MRF_FRAME_OFFER:
	case MRF_FRAME_GRANT:
	case MRF_FRAME_NOTE:
	case MRF_FRAME_ASK:
	case MRF_FRAME_PROBE:
		return type;
	default:
		return type < 0 ? type : -FI_EINVAL;
	}
}

/* --- messages and offers ------------------------------------------------------------ */

/* All but the head and the CQ data. */
static void put_fields(const struct mrf_frame_message *message, uint8_t *buf)
{
	put32(buf + 4, message->flags);
	put32(buf + 8, message->number);
	put32(buf + 12, message->flags & MRF_FRAME_TAKEN ? message->taken : 0);
	put64(buf + 16, message->flags & MRF_FRAME_TAGGED ? message->tag : 0);
}

/* The same; the CQ data are at their place in frames that have it. */
static void get_fields(const uint8_t *buf, struct mrf_frame_message *message)
{
	message->flags = get32(buf + 4);
	message->number = get32(buf + 8);
	message->taken = message->flags & MRF_FRAME_TAKEN ? get32(buf + 12) : 0;
	message->tag = message->flags & MRF_FRAME_TAGGED ? get64(buf + 16) : 0;
	message->cq_data = message->flags & MRF_FRAME_CQ_DATA ? get64(buf + 24) : 0;
}

static bool flags_ok(uint32_t flags, uint32_t known)
{
	return !(flags & ~known);
}

/* What follows the fixed part, if it is flagged. */
static size_t extra_len(uint32_t flags)
{
	return (flags & MRF_FRAME_CQ_DATA ? 8u : 0) + (flags & MRF_FRAME_TAKEN ? 8u : 0);
}

size_t mrf_frame_message_encode(const struct mrf_frame_message *message, uint8_t *buf)
{
	size_t len = MRF_FRAME_MESSAGE_LEN + extra_len(message->flags);

	put_head(buf, MRF_FRAME_MESSAGE, len);
	put_fields(message, buf);
	if (message->flags & MRF_FRAME_CQ_DATA)
		put64(buf + MRF_FRAME_MESSAGE_LEN, message->cq_data);
	if (message->flags & MRF_FRAME_TAKEN)
		put64(buf + len - 8, message->ticket);
	return len;
}

int mrf_frame_message_decode(const uint8_t *buf, size_t len, struct mrf_frame_message *message)
{
	int ret = check_message(buf, len, MRF_FRAME_MESSAGE, MRF_FRAME_MESSAGE_LEN);
	size_t known;

	if (ret)
		return ret;
	known = MRF_FRAME_MESSAGE_LEN + extra_len(get32(buf + 4));
	if (!flags_ok(get32(buf + 4), MESSAGE_FLAGS) || get16(buf + 2) < known)
		return -FI_EINVAL;
	get_fields(buf, message);
	message->ticket = message->flags & MRF_FRAME_TAKEN ? get64(buf + known - 8) : 0;
	message->data = buf + get16(buf + 2);
	message->data_len = len - get16(buf + 2);
	return 0;
}

static void put_bulk(uint8_t *buf, const struct mrf_frame_bulk *bulk)
{
	put32(buf, bulk->qp);
	put32(buf + 4, bulk->qp ? bulk->psn : 0);
}

static struct mrf_frame_bulk get_bulk(const uint8_t *buf)
{
	struct mrf_frame_bulk bulk = { .qp = get32(buf), .psn = get32(buf + 4) };

	if (!bulk.qp)
		bulk.psn = 0;
	return bulk;
}

static bool bulk_ok(const struct mrf_frame_bulk *bulk)
{
	return bulk->qp <= LOW24 && bulk->psn <= LOW24;
}

size_t mrf_frame_offer_encode(const struct mrf_frame_offer *offer, uint8_t *buf)
{
	bool longer = offer->message.flags & MRF_FRAME_TAKEN;
	size_t len = longer ? MRF_FRAME_OFFER_MAX : MRF_FRAME_OFFER_LEN;

	put_head(buf, MRF_FRAME_OFFER, len);
	put_fields(&offer->message, buf);
	put64(buf + 24, offer->message.flags & MRF_FRAME_CQ_DATA ? offer->message.cq_data : 0);
	put64(buf + 32, offer->length);
	put_bulk(buf + 40, &offer->bulk);
	put32(buf + 48, offer->piece);
	put32(buf + 52, 0);
	if (longer)
		put64(buf + MRF_FRAME_OFFER_LEN, offer->message.ticket);
	return len;
}

int mrf_frame_offer_decode(const uint8_t *buf, size_t len, struct mrf_frame_offer *offer)
{
	int ret = check_message(buf, len, MRF_FRAME_OFFER, MRF_FRAME_OFFER_LEN);
	struct mrf_frame_offer got = { .length = 0 };

	if (ret)
		return ret;
	get_fields(buf, &got.message);
	got.length = get64(buf + 32);
	got.bulk = get_bulk(buf + 40);
	got.piece = get32(buf + 48);
	if (got.message.flags & MRF_FRAME_TAKEN) {
		if (get16(buf + 2) < MRF_FRAME_OFFER_MAX)
			return -FI_EINVAL;
		got.message.ticket = get64(buf + MRF_FRAME_OFFER_LEN);
	}
	if (!flags_ok(got.message.flags, MESSAGE_FLAGS) || !bulk_ok(&got.bulk) ||
	    got.length > MRF_FRAME_MAX_LENGTH)
		return -FI_EINVAL;
	*offer = got;
	return 0;
}

/* --- what goes back ----------------------------------------------------------------- */

size_t mrf_frame_grant_encode(const struct mrf_frame_grant *grant, uint8_t *buf)
{
	put_head(buf, MRF_FRAME_GRANT, MRF_FRAME_GRANT_LEN);
	put32(buf + 4, grant->flags);
	put64(buf + 8, grant->number);
	put64(buf + 16, grant->offset);
	put32(buf + 24, grant->length);
	put_bulk(buf + 28, &grant->bulk);
	return MRF_FRAME_GRANT_LEN;
}

static bool grant_ok(const struct mrf_frame_grant *grant)
{
	if (!flags_ok(grant->flags, MRF_FRAME_REFUSED | MRF_FRAME_WAITS) || !bulk_ok(&grant->bulk))
		return false;
	if (grant->flags == (MRF_FRAME_REFUSED | MRF_FRAME_WAITS) ||
	    (grant->flags && grant->length))
		return false;
	return grant->offset <= MRF_FRAME_MAX_LENGTH &&
	       grant->length <= MRF_FRAME_MAX_LENGTH - grant->offset;
}

int mrf_frame_grant_decode(const uint8_t *buf, size_t len, struct mrf_frame_grant *grant)
{
	int ret = check_message(buf, len, MRF_FRAME_GRANT, MRF_FRAME_GRANT_LEN);
	struct mrf_frame_grant got;

	if (ret)
		return ret;
	got.flags = get32(buf + 4);
	got.number = get64(buf + 8);
	got.offset = get64(buf + 16);
	got.length = get32(buf + 24);
	got.bulk = get_bulk(buf + 28);
	if (!grant_ok(&got))
		return -FI_EINVAL;
	*grant = got;
	return 0;
}

size_t mrf_frame_note_encode(const struct mrf_frame_note *note, uint8_t *buf)
{
	put_head(buf, MRF_FRAME_NOTE, MRF_FRAME_NOTE_LEN);
	put32(buf + 4, note->flags);
	put32(buf + 8, note->taken);
	put32(buf + 12, note->window);
	return MRF_FRAME_NOTE_LEN;
}

int mrf_frame_note_decode(const uint8_t *buf, size_t len, struct mrf_frame_note *note)
{
	int ret = check_message(buf, len, MRF_FRAME_NOTE, MRF_FRAME_NOTE_LEN);

	if (ret)
		return ret;
	if (!flags_ok(get32(buf + 4), MRF_FRAME_OFFERS_ONLY))
		return -FI_EINVAL;
	note->flags = get32(buf + 4);
	note->taken = get32(buf + 8);
	note->window = get32(buf + 12);
	return 0;
}

/* --- what the initiator asks about -------------------------------------------------- */

size_t mrf_frame_ask_encode(const struct mrf_frame_ask *ask, uint8_t *buf)
{
	put_head(buf, MRF_FRAME_ASK, MRF_FRAME_ASK_LEN);
	put32(buf + 4, ask->flags);
	put64(buf + 8, ask->number);
	put_bulk(buf + 16, &ask->bulk);
	return MRF_FRAME_ASK_LEN;
}

int mrf_frame_ask_decode(const uint8_t *buf, size_t len, struct mrf_frame_ask *ask)
{
	int ret = check_message(buf, len, MRF_FRAME_ASK, MRF_FRAME_ASK_LEN);
	struct mrf_frame_ask got;

	if (ret)
		return ret;
	got.flags = get32(buf + 4);
	got.number = get64(buf + 8);
	got.bulk = get_bulk(buf + 16);
	if (!flags_ok(got.flags, MRF_FRAME_LAST) || !bulk_ok(&got.bulk))
		return -FI_EINVAL;
	*ask = got;
	return 0;
}

size_t mrf_frame_probe_encode(uint8_t *buf)
{
	put_head(buf, MRF_FRAME_PROBE, MRF_FRAME_PROBE_LEN);
	return MRF_FRAME_PROBE_LEN;
}

/* --- bare messages ------------------------------------------------------------------ */

uint32_t mrf_frame_bare_encode(const struct mrf_frame_bare *bare)
{
	uint32_t taken = bare->flags & MRF_FRAME_TAKEN ? bare->taken : 0;

	return bare->flags << 24 | (taken & LOW24);
}

int mrf_frame_bare_decode(uint32_t imm, struct mrf_frame_bare *bare)
{
	uint32_t flags = imm >> 24;

	if (!flags_ok(flags, MESSAGE_FLAGS & ~MRF_FRAME_CQ_DATA))
		return -FI_EINVAL;
	bare->flags = flags;
	bare->taken = flags & MRF_FRAME_TAKEN ? imm & LOW24 : 0;
	return 0;
}

int mrf_frame_bare_message(const struct mrf_frame_last *last, uint32_t imm,
			   struct mrf_frame_message *message)
{
	struct mrf_frame_bare bare;

	if (mrf_frame_bare_decode(imm, &bare))
		return -FI_EINVAL;
	*message = (struct mrf_frame_message){ .flags = bare.flags, .taken = bare.taken };
	if (bare.flags & MRF_FRAME_TAGGED)
		message->tag = last->tag;
	if (bare.flags & MRF_FRAME_TAKEN)
		message->ticket = last->ticket;
	return mrf_frame_may_be_bare(last, message) ? 0 : -FI_EINVAL;
}
