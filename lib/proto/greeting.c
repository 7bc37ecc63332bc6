/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "proto/frame.h"
#include "proto/greeting.h"
#include "proto/head.h"

_Static_assert(MRF_PROTO_HELLO_MAX <= 56, "rdma_cm request private data");
_Static_assert(MRF_PROTO_WELCOME_MAX <= 196, "rdma_cm reply private data");
_Static_assert(MRF_WELCOME_KNOWN < 1u << MRF_WELCOME_PSN_SHIFT, "the flags are below the PSN");
_Static_assert(MRF_PROTO_CHALLENGE_LEN <= 148, "rdma_cm reject private data");

static const char magic[4] = { 'm', 'r', 'f', 'b' };
#define MAGIC_LEN sizeof(magic)

/* The magic stands in front of a greeting; its length counts it. */
static void put_greeting(uint8_t *buf, enum mrf_msg_type type, size_t len)
{
	memset(buf, 0, len);
	memcpy(buf, magic, MAGIC_LEN);
	put_head(buf + MAGIC_LEN, type, len);
}

static bool is_greeting(const uint8_t *buf, size_t len)
{
	return buf && len >= MAGIC_LEN + HEAD_LEN && !memcmp(buf, magic, MAGIC_LEN);
}

static int check_greeting(const uint8_t *buf, size_t len, int type, size_t at_least)
{
	if (!is_greeting(buf, len))
		return -FI_EREMOTEIO;
	return check_head(buf + MAGIC_LEN, len, type, at_least);
}

size_t mrf_hello_encode(const struct mrf_hello *hello, uint8_t *buf)
{
	size_t len = hello->number ? MRF_PROTO_HELLO_MAX : MRF_PROTO_HELLO_LEN;

	put_greeting(buf, MRF_MSG_HELLO, len);
	put32(buf + 8, hello->flags);
	put32(buf + 12, hello->lost);
	put64(buf + 16, hello->ticket);
	if (hello->number) {
		put64(buf + 24, hello->number);
		put64(buf + 32, hello->salt);
		memcpy(buf + 40, hello->proof, sizeof(hello->proof));
	}
	return len;
}

int mrf_hello_decode(const uint8_t *buf, size_t len, struct mrf_hello *hello)
{
	int ret = check_greeting(buf, len, MRF_MSG_HELLO, MRF_PROTO_HELLO_LEN);

	if (ret)
		return ret;
	/* What is known of a sender is found by its ticket. */
	if (get32(buf + 8) & MRF_HELLO_MESSAGES && !get64(buf + 16))
		return -FI_EINVAL;
	if (get64(buf + 24)) {
		ret = check_greeting(buf, len, MRF_MSG_HELLO, MRF_PROTO_HELLO_MAX);
		if (ret)
			return ret;
		hello->salt = get64(buf + 32);
		memcpy(hello->proof, buf + 40, sizeof(hello->proof));
	}
	hello->flags = get32(buf + 8);
	hello->lost = get32(buf + 12);
	hello->ticket = get64(buf + 16);
	hello->number = get64(buf + 24);
	return 0;
}

/* Where the fields of a line begin in a welcome with these flags: behind the proof. */
static size_t line_at(uint32_t flags)
{
	return MRF_PROTO_WELCOME_LEN + (flags & MRF_WELCOME_PROOF ? MRF_PROTO_PROOF : 0);
}

static size_t welcome_len(uint32_t flags)
{
	return line_at(flags) + (flags & MRF_WELCOME_LINE ? MRF_PROTO_LINE_LEN : 0);
}

/* The four bytes before the last field are reserved; the greeting begins as zeros. */
static void put_line(const struct mrf_welcome_line *line, uint8_t *buf)
{
	put32(buf, line->slot);
	put32(buf + 4, line->window);
	put32(buf + 8, line->kinds);
	put64(buf + 16, line->taken);
}

static struct mrf_welcome_line get_line(const uint8_t *buf)
{
	return (struct mrf_welcome_line){ .slot = get32(buf),
					  .window = get32(buf + 4),
					  .kinds = get32(buf + 8),
					  .taken = get64(buf + 16) };
}

size_t mrf_welcome_encode(const struct mrf_welcome *welcome, uint8_t *buf)
{
	size_t len = welcome_len(welcome->flags);

	put_greeting(buf, MRF_MSG_WELCOME, len);
	put64(buf + 8, welcome->mr_mode);
	put64(buf + 16, welcome->instance);
	put32(buf + 24, welcome->asks);
	put32(buf + 28, welcome->flags);
	put64(buf + 32, welcome->space_id);
	if (welcome->flags & MRF_WELCOME_PROOF)
		memcpy(buf + MRF_PROTO_WELCOME_LEN, welcome->proof, sizeof(welcome->proof));
	if (welcome->flags & MRF_WELCOME_LINE)
		put_line(&welcome->line, buf + line_at(welcome->flags));
	return len;
}

/* Is a welcome with these flags all there, and can its line carry any message? */
static int check_welcome(const uint8_t *buf, size_t len, uint32_t flags)
{
	int ret = check_greeting(buf, len, MRF_MSG_WELCOME, welcome_len(flags));

	if (ret)
		return ret;
	if (flags & MRF_WELCOME_LINE && get_line(buf + line_at(flags)).slot < MRF_FRAME_MESSAGE_MAX)
		return -FI_EINVAL;
	return get32(buf + 24) ? 0 : -FI_EINVAL;
}

int mrf_welcome_decode(const uint8_t *buf, size_t len, struct mrf_welcome *welcome)
{
	int ret = check_greeting(buf, len, MRF_MSG_WELCOME, MRF_PROTO_WELCOME_LEN);
	uint32_t flags;

	if (ret)
		return ret;
	flags = get32(buf + 28);
	ret = check_welcome(buf, len, flags);
	if (ret)
		return ret;
	welcome->mr_mode = get64(buf + 8);
	welcome->instance = get64(buf + 16);
	welcome->asks = get32(buf + 24);
	welcome->flags = flags;
	welcome->space_id = get64(buf + 32);
	if (flags & MRF_WELCOME_PROOF)
		memcpy(welcome->proof, buf + MRF_PROTO_WELCOME_LEN, sizeof(welcome->proof));
	welcome->line = (struct mrf_welcome_line){ .slot = 0 };
	if (flags & MRF_WELCOME_LINE)
		welcome->line = get_line(buf + line_at(flags));
	return 0;
}

size_t mrf_refuse_encode(enum mrf_refuse_reason reason, uint8_t *buf)
{
	put_greeting(buf, MRF_MSG_REFUSE, MRF_PROTO_REFUSE_LEN);
	put32(buf + 8, (uint32_t)reason);
	return MRF_PROTO_REFUSE_LEN;
}

size_t mrf_full_encode(enum mrf_full full, uint8_t *buf)
{
	put_greeting(buf, MRF_MSG_REFUSE, MRF_PROTO_FULL_LEN);
	put32(buf + 8, MRF_REFUSE_RESOURCES);
	put32(buf + 12, (uint32_t)full);
	return MRF_PROTO_FULL_LEN;
}

size_t mrf_challenge_encode(const struct mrf_challenge *challenge, uint8_t *buf)
{
	put_greeting(buf, MRF_MSG_REFUSE, MRF_PROTO_CHALLENGE_LEN);
	put32(buf + 8, MRF_REFUSE_CHALLENGE);
	put64(buf + 16, challenge->number);
	put64(buf + 24, challenge->instance);
	memcpy(buf + 32, challenge->nonce, sizeof(challenge->nonce));
	return MRF_PROTO_CHALLENGE_LEN;
}

int mrf_challenge_decode(const uint8_t *buf, size_t len, struct mrf_challenge *challenge)
{
	int ret = check_greeting(buf, len, MRF_MSG_REFUSE, MRF_PROTO_CHALLENGE_LEN);

	if (ret)
		return ret;
	if (get32(buf + 8) != MRF_REFUSE_CHALLENGE || !get64(buf + 16))
		return -FI_EINVAL;
	challenge->number = get64(buf + 16);
	challenge->instance = get64(buf + 24);
	memcpy(challenge->nonce, buf + 32, sizeof(challenge->nonce));
	return 0;
}

int mrf_refuse_decode(const uint8_t *buf, size_t len, uint32_t *reason)
{
	int ret;

	if (!is_greeting(buf, len))
		return -FI_EREMOTEIO;
	ret = check_type(buf + MAGIC_LEN, len, MRF_MSG_REFUSE, MRF_PROTO_REFUSE_LEN);
	if (ret)
		return ret;
	*reason = get32(buf + 8);
	return 0;
}

enum mrf_full mrf_full_decode(const uint8_t *buf, size_t len)
{
	uint32_t full;

	if (check_type(buf + MAGIC_LEN, len, MRF_MSG_REFUSE, MRF_PROTO_FULL_LEN))
		return MRF_FULL_UNKNOWN;
	full = get32(buf + 12);
	return full < MRF_FULL_COUNT ? (enum mrf_full)full : MRF_FULL_UNKNOWN;
}
