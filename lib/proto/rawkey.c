/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "proto/rawkey_one.h"

static const char magic[4] = { 'm', 'r', 'f', 'k' };

/* These are the same in every version: magic, version, length, checksum. */
#define VERSION_AT 4
#define FLAGS_AT 5
#define LENGTH_AT 6
#define FRAME_LEN (MRF_RAWKEY_SUM_AT + 8)

/*
 * After the frame the head is that of a compact key, except for this in the place of
 * rkey.
 */
#define NSEG_AT 60
#define WORD_AT(which) (MRF_RAWKEY_SAID_AT + 8 * (which))
#define SEG_AT(i) (MRF_RAWKEY_HEAD_LEN + (i) * MRF_WIRE_SEG_LEN)

/* Over all of it but the sum, of at least FRAME_LEN bytes. */
static uint64_t checksum(const uint8_t *buf, size_t len)
{
	uint64_t sum = get64(buf), factor = 1, tail = 0;
	size_t i;

	for (i = MRF_RAWKEY_SAID_AT; i + 8 <= len; i += 8) {
		sum += get64(buf + i) * factor;
		factor = MRF_RAWKEY_FACTOR(factor);
	}
	/* Only keys of another version end within a word. */
	if (i < len) {
		memcpy(&tail, buf + i, len - i);
		sum += le64toh(tail) * factor;
	}
	return sum;
}

/* --- the compact form ------------------------------------------------------------- */

void mrf_rawkey_one_say(const struct mrf_rawkey *raw, struct mrf_rawkey_said *said)
{
	bool virt = raw->mr_mode & FI_MR_VIRT_ADDR;

	said->word[MRF_RAWKEY_SPACE] = htole64(raw->space_id);
	said->word[MRF_RAWKEY_KEY] = htole64(raw->key);
	said->word[MRF_RAWKEY_SERIAL] = htole64(raw->serial);
	said->word[MRF_RAWKEY_LEN] = htole64(raw->len);
	said->word[MRF_RAWKEY_BASE] = htole64(virt ? raw->base : raw->seg[0].iova_off);
	said->word[MRF_RAWKEY_BITS] = htole64(
		mrf_rawkey_bits(raw->mr_mode, raw->access, raw->seg[0].rkey));
}

static size_t encode_one(const struct mrf_rawkey *raw, uint8_t *buf)
{
	struct mrf_rawkey_said said;

	mrf_rawkey_one_say(raw, &said);
	put64(buf, mrf_rawkey_one_frame());
	put64(buf + MRF_RAWKEY_SUM_AT, mrf_rawkey_one_sum(&said));
	memcpy(buf + MRF_RAWKEY_SAID_AT, &said, sizeof(said));
	return MRF_RAWKEY_ONE_LEN;
}

void mrf_rawkey_one_expand(const struct mrf_rawkey_said *said, struct mrf_rawkey *out)
{
	uint64_t bits = mrf_rawkey_word(said, MRF_RAWKEY_BITS);
	uint64_t iova = mrf_rawkey_word(said, MRF_RAWKEY_BASE);
	bool virt = bits & FI_MR_VIRT_ADDR;

	out->space_id = mrf_rawkey_word(said, MRF_RAWKEY_SPACE);
	out->key = mrf_rawkey_word(said, MRF_RAWKEY_KEY);
	out->serial = mrf_rawkey_word(said, MRF_RAWKEY_SERIAL);
	out->mr_mode = (uint16_t)bits;
	out->access = (uint16_t)(bits >> MRF_RAWKEY_ACCESS_SHIFT);
	out->base = virt ? iova : 0;
	out->len = mrf_rawkey_word(said, MRF_RAWKEY_LEN);
	out->complete = true;
	out->nseg = 1;
	out->seg[0].pos = out->base;
	out->seg[0].len = out->len;
	out->seg[0].rkey = (uint32_t)(bits >> MRF_RAWKEY_RKEY_SHIFT);
	/* A key that does not fit the compact form must not look like a compact one. */
	out->seg[0].iova_off = virt ? 0 : (uint32_t)mrf_min(iova, UINT32_MAX);
}

/* --- all -------------------------------------------------------------------------- */

static size_t encode(const struct mrf_rawkey *raw, uint8_t *buf)
{
	size_t len = mrf_rawkey_size(raw->nseg);
	uint32_t i;

	memcpy(buf, magic, sizeof(magic));
	buf[VERSION_AT] = MRF_RAWKEY_VERSION;
	buf[FLAGS_AT] = raw->complete ? MRF_RAWKEY_COMPLETE : 0;
	put16(buf + LENGTH_AT, (uint16_t)len);
	put64(buf + WORD_AT(MRF_RAWKEY_SPACE), raw->space_id);
	put64(buf + WORD_AT(MRF_RAWKEY_KEY), raw->key);
	put64(buf + WORD_AT(MRF_RAWKEY_SERIAL), raw->serial);
	put64(buf + WORD_AT(MRF_RAWKEY_LEN), raw->len);
	put64(buf + WORD_AT(MRF_RAWKEY_BASE), raw->base);
	put64(buf + WORD_AT(MRF_RAWKEY_BITS),
	      mrf_rawkey_bits(raw->mr_mode, raw->access, raw->nseg));
	for (i = 0; i < raw->nseg; i++)
		put_seg(buf + SEG_AT(i), &raw->seg[i]);
	put64(buf + MRF_RAWKEY_SUM_AT, checksum(buf, len));
	return len;
}

size_t mrf_rawkey_encode(const struct mrf_rawkey *raw, uint8_t *buf)
{
	if (raw->nseg == 1)
		return encode_one(raw, buf);
	return encode(raw, buf);
}

/* Says what is wrong with the part that all versions have in common, or NULL. */
static const char *frame_fault(const uint8_t *buf, size_t len)
{
	size_t says;

	if (!buf || len < sizeof(magic) || memcmp(buf, magic, sizeof(magic)))
		return "is not a raw key of this library";
	if (len < FRAME_LEN)
		return "is cut off";
	says = get16(buf + LENGTH_AT);
	if (says < FRAME_LEN || says > len)
		return "is cut off, or its length is damaged";
	if (get64(buf + MRF_RAWKEY_SUM_AT) != checksum(buf, says))
		return "is damaged: its checksum is wrong";
	return NULL;
}

static bool is_compact(const uint8_t *buf)
{
	return buf[FLAGS_AT] == (MRF_RAWKEY_COMPLETE | MRF_RAWKEY_COMPACT);
}

static const char *nseg_fault(const uint8_t *buf, size_t says)
{
	unsigned flags = buf[FLAGS_AT];
	uint32_t nseg;

	if (is_compact(buf))
		return says == MRF_RAWKEY_ONE_LEN ?
			       NULL :
			       "has another length than its segments";
	if (says < MRF_RAWKEY_HEAD_LEN || flags & ~MRF_RAWKEY_COMPLETE)
		return "has a head that makes no sense";
	nseg = get32(buf + NSEG_AT);
	if (nseg > MRF_RAWKEY_MAX_SEG || nseg == 1 || !nseg != !flags)
		return "has an impossible number of segments";
	if (says != mrf_rawkey_size(nseg))
		return "has another length than its segments";
	return NULL;
}

static const char *length_fault(const uint8_t *buf, size_t len)
{
	size_t i, says = get16(buf + LENGTH_AT);
	const char *fault = nseg_fault(buf, says);

	if (fault)
		return fault;
	for (i = says; i < len; i++) {
		if (buf[i])
			return "is followed by bytes that do not belong to it";
	}
	return NULL;
}

/* The length is in order. */
static void take(const uint8_t *buf, struct mrf_rawkey *raw)
{
	struct mrf_rawkey_said said;
	uint32_t i;

	memcpy(&said, buf + MRF_RAWKEY_SAID_AT, sizeof(said));
	mrf_rawkey_one_expand(&said, raw);
	if (is_compact(buf))
		return;
	raw->complete = buf[FLAGS_AT] & MRF_RAWKEY_COMPLETE;
	raw->nseg = get32(buf + NSEG_AT);
	raw->base = get64(buf + WORD_AT(MRF_RAWKEY_BASE));
	for (i = 0; i < raw->nseg; i++)
		raw->seg[i] = get_seg(buf + SEG_AT(i));
}

/* before: bytes of the segments before this one. */
static bool seg_ok(const struct mrf_rawkey *raw, uint32_t i, uint64_t before)
{
	const struct mrf_wire_seg *seg = &raw->seg[i];

	if ((!seg->len && raw->nseg > 1) || !mrf_range_ok(seg->pos, seg->len) ||
	    !mrf_range_ok(seg->iova_off, seg->len))
		return false;
	if (raw->mr_mode & FI_MR_VIRT_ADDR)
		return !seg->iova_off && (i || seg->pos == raw->base);
	return seg->iova_off <= MRF_RAWKEY_IOVA_OFF_MAX && seg->pos == before;
}

static const char *segs_fault(const struct mrf_rawkey *raw)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < raw->nseg; i++) {
		if (!seg_ok(raw, i, sum) ||
		    __builtin_add_overflow(sum, raw->seg[i].len, &sum))
			return "has an impossible segment";
	}
	return sum == raw->len ? NULL : "has segments that do not add up";
}

static const char *content_fault(const struct mrf_rawkey *raw)
{
	if (!raw->space_id || !raw->serial)
		return "names no domain or no region";
	if (raw->access & ~MRF_RAWKEY_RIGHTS)
		return "grants rights that do not exist";
	if (raw->base && !(raw->mr_mode & FI_MR_VIRT_ADDR))
		return "has a base address without FI_MR_VIRT_ADDR";
	return raw->complete ? segs_fault(raw) : NULL;
}

int mrf_rawkey_decode(const void *data, size_t len, struct mrf_rawkey *out,
		      const char **why)
{
	struct mrf_rawkey got; /* only as many segments as there are */
	const uint8_t *buf = data;
	const char *fault;

	fault = frame_fault(buf, len);
	if (!fault && buf[VERSION_AT] != MRF_RAWKEY_VERSION) {
		*why = "is of a version that this library does not know";
		return -FI_ENOSYS;
	}
	if (!fault)
		fault = length_fault(buf, len);
	if (!fault) {
		take(buf, &got);
		fault = content_fault(&got);
	}
	if (fault) {
		*why = fault;
		return -FI_EINVAL;
	}
	memcpy(out, &got, mrf_rawkey_stored(&got));
	return 0;
}
