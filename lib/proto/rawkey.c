/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "proto/bytes.h"
#include "proto/rawkey.h"

static const char magic[4] = { 'm', 'r', 'f', 'k' };

/* The same in every version: magic, version, length, checksum. */
#define VERSION_AT 4
#define FLAGS_AT 5
#define LENGTH_AT 6
#define SUM_AT 8
#define SUM_LEN 4
#define FRAME_LEN (SUM_AT + SUM_LEN)

#define FLAG_COMPLETE 1u
#define IOVA_OFF_MAX 0xffffu /* pages of 64 KiB are the largest there are */
#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Odd, so that no two words lead from one sum to the same next one. */
#define FACTOR 0x9e3779b97f4a7c15ull

/* Over all of it but the sum, eight bytes at a time: a key of one segment takes twelve steps. */
static inline uint32_t checksum(const uint8_t *buf, size_t len)
{
	uint64_t sum = get64(buf) * FACTOR, tail = 0;
	size_t i;

	sum = (sum ^ (mrf_likely(len >= 16) ? get32(buf + FRAME_LEN) : 0)) * FACTOR;
	for (i = 16; i + 8 <= len; i += 8)
		sum = (sum ^ get64(buf + i)) * FACTOR;
	/* Only keys of another version end within a word. */
	if (mrf_unlikely(i < len)) {
		memcpy(&tail, buf + i, len - i);
		sum = (sum ^ le64toh(tail)) * FACTOR;
	}
	return (uint32_t)(sum >> 32) ^ (uint32_t)sum;
}

/* --- keys of one segment, which nearly all are ------------------------------------ */

#define ONE_LEN (MRF_RAWKEY_HEAD_LEN + MRF_WIRE_SEG_LEN)
#define SEG_AT MRF_RAWKEY_HEAD_LEN

static inline uint64_t step(uint64_t sum, const uint8_t *word)
{
	return (sum ^ get64(word)) * FACTOR;
}

/* The same as checksum, without its loops. */
static inline uint32_t checksum_one(const uint8_t *buf)
{
	uint64_t sum = (step(0, buf) ^ get32(buf + FRAME_LEN)) * FACTOR;

	sum = step(step(step(sum, buf + 16), buf + 24), buf + 32);
	sum = step(step(step(sum, buf + 40), buf + 48), buf + 56);
	sum = step(step(step(step(sum, buf + 64), buf + 72), buf + 80), buf + 88);
	return (uint32_t)(sum >> 32) ^ (uint32_t)sum;
}

/* Magic, version, complete, length: the first word of every one of them. */
static inline uint64_t frame_of_one(void)
{
	return 'm' | 'r' << 8 | 'f' << 16 | (uint64_t)'k' << 24 |
	       (uint64_t)MRF_RAWKEY_VERSION << 32 | (uint64_t)FLAG_COMPLETE << 40 |
	       (uint64_t)ONE_LEN << 48;
}

static inline size_t encode_one(const struct mrf_rawkey *raw, uint8_t *buf)
{
	put64(buf, frame_of_one());
	put32(buf + 12, 1);
	put64(buf + 16, raw->space_id);
	put64(buf + 24, raw->key);
	put64(buf + 32, raw->serial);
	put64(buf + 40, raw->mr_mode);
	put64(buf + 48, raw->access);
	put64(buf + 56, raw->base);
	put64(buf + 64, raw->len);
	put_seg(buf + SEG_AT, &raw->seg[0]);
	put32(buf + SUM_AT, checksum_one(buf));
	return ONE_LEN;
}

/* False: look at it closely, whatever is the matter. */
static inline bool decode_one(const uint8_t *buf, struct mrf_rawkey *out)
{
	uint64_t mode = get64(buf + 40), access = get64(buf + 48), base = get64(buf + 56);
	struct mrf_wire_seg seg = get_seg(buf + SEG_AT);
	bool virt = mode & FI_MR_VIRT_ADDR;

	if (get64(buf) != frame_of_one() || get32(buf + 12) != 1 ||
	    get32(buf + SUM_AT) != checksum_one(buf) || access & ~RIGHTS ||
	    seg.pos != base || (!virt && base) || get64(buf + 64) != seg.len ||
	    seg.iova_off > (virt ? 0 : IOVA_OFF_MAX) || seg.len >= 1ull << 63 ||
	    !mrf_range_ok(seg.pos, seg.len) || !get64(buf + 16) || !get64(buf + 32))
		return false;
	out->space_id = get64(buf + 16);
	out->key = get64(buf + 24);
	out->serial = get64(buf + 32);
	out->mr_mode = mode;
	out->access = access;
	out->base = base;
	out->len = seg.len;
	out->complete = true;
	out->nseg = 1;
	out->seg[0] = seg;
	return true;
}

/* --- all -------------------------------------------------------------------------- */

static size_t encode(const struct mrf_rawkey *raw, uint8_t *buf)
{
	size_t len = mrf_rawkey_size(raw->nseg);
	uint32_t i;

	memcpy(buf, magic, sizeof(magic));
	buf[VERSION_AT] = MRF_RAWKEY_VERSION;
	buf[FLAGS_AT] = raw->complete ? FLAG_COMPLETE : 0;
	put16(buf + LENGTH_AT, (uint16_t)len);
	put32(buf + 12, raw->nseg);
	put64(buf + 16, raw->space_id);
	put64(buf + 24, raw->key);
	put64(buf + 32, raw->serial);
	put64(buf + 40, raw->mr_mode);
	put64(buf + 48, raw->access);
	put64(buf + 56, raw->base);
	put64(buf + 64, raw->len);
	for (i = 0; i < raw->nseg; i++)
		put_seg(buf + mrf_rawkey_size(i), &raw->seg[i]);
	put32(buf + SUM_AT, checksum(buf, len));
	return len;
}

size_t mrf_rawkey_encode(const struct mrf_rawkey *raw, uint8_t *buf)
{
	if (mrf_likely(raw->nseg == 1 && raw->complete))
		return encode_one(raw, buf);
	return encode(raw, buf);
}

/* What is wrong with that which all versions have in common, or NULL. */
static const char *frame_fault(const uint8_t *buf, size_t len)
{
	size_t says;

	if (!buf || len < sizeof(magic) || memcmp(buf, magic, sizeof(magic)))
		return "is no raw key of this library";
	if (len < FRAME_LEN)
		return "is cut off";
	says = get16(buf + LENGTH_AT);
	if (says < FRAME_LEN || says > len)
		return "is cut off, or its length is damaged";
	if (get32(buf + SUM_AT) != checksum(buf, says))
		return "is damaged, its checksum is wrong";
	return NULL;
}

static const char *length_fault(const uint8_t *buf, size_t len)
{
	size_t i, says = get16(buf + LENGTH_AT);
	unsigned flags = buf[FLAGS_AT];
	uint32_t nseg;

	if (says < MRF_RAWKEY_HEAD_LEN || flags & ~FLAG_COMPLETE)
		return "has no sense in its head";
	nseg = get32(buf + 12);
	if (nseg > MRF_RAWKEY_MAX_SEG || !nseg != !flags)
		return "has a number of segments that cannot be";
	if (says != mrf_rawkey_size(nseg))
		return "has another length than its segments";
	for (i = says; i < len; i++) {
		if (buf[i])
			return "is followed by bytes that are no part of it";
	}
	return NULL;
}

/* The length is in order. */
static void take(const uint8_t *buf, struct mrf_rawkey *raw)
{
	uint32_t i;

	raw->complete = buf[FLAGS_AT] & FLAG_COMPLETE;
	raw->nseg = get32(buf + 12);
	raw->space_id = get64(buf + 16);
	raw->key = get64(buf + 24);
	raw->serial = get64(buf + 32);
	raw->mr_mode = get64(buf + 40);
	raw->access = get64(buf + 48);
	raw->base = get64(buf + 56);
	raw->len = get64(buf + 64);
	for (i = 0; i < raw->nseg; i++)
		raw->seg[i] = get_seg(buf + mrf_rawkey_size(i));
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
	return seg->iova_off <= IOVA_OFF_MAX && seg->pos == before;
}

static const char *segs_fault(const struct mrf_rawkey *raw)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < raw->nseg; i++) {
		if (!seg_ok(raw, i, sum) ||
		    __builtin_add_overflow(sum, raw->seg[i].len, &sum))
			return "has a segment that cannot be";
	}
	return sum == raw->len ? NULL : "has segments that do not add up";
}

static const char *content_fault(const struct mrf_rawkey *raw)
{
	if (!raw->space_id || !raw->serial)
		return "names no domain or no region";
	if (raw->access & ~RIGHTS)
		return "grants rights that are none";
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

	if (mrf_likely(buf && len == ONE_LEN && decode_one(buf, out)))
		return 0;
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
