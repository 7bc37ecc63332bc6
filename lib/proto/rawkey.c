/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "proto/rawkey_one.h"

static const char magic[4] = { 'm', 'r', 'f', 'k' };

/* The ith segment; the only one of the compact form is in the head. */
static struct mrf_wire_seg seg_at(const uint8_t *buf, uint32_t i)
{
	uint64_t iova = get64(buf + MRF_RAWKEY_BASE_AT);
	bool virt = mrf_rawkey_is_virt(buf);

	if (!mrf_rawkey_is_compact(buf))
		return get_seg(buf + MRF_RAWKEY_SEG_AT(i));
	return (struct mrf_wire_seg){
		.pos = virt ? iova : 0,
		.len = get64(buf + MRF_RAWKEY_LEN_AT),
		.rkey = get32(buf + MRF_RAWKEY_NSEG_AT),
		/* One that does not fit must not look as if it did. */
		.iova_off = virt ? 0 : (uint32_t)mrf_min(iova, UINT32_MAX),
	};
}

/* --- encoding --------------------------------------------------------------------- */

size_t mrf_rawkey_encode(const struct mrf_rawkey *raw, uint8_t *buf)
{
	const struct mrf_wire_seg *seg = raw->seg;
	bool virt = raw->mr_mode & FI_MR_VIRT_ADDR, compact = raw->nseg == 1;
	size_t len = mrf_rawkey_size(raw->nseg);
	uint32_t i;

	memcpy(buf, magic, sizeof(magic));
	buf[MRF_RAWKEY_VERSION_AT] = MRF_RAWKEY_VERSION;
	put16(buf + MRF_RAWKEY_LENGTH_AT, (uint16_t)len);
	put64(buf + MRF_RAWKEY_SPACE_AT, raw->space_id);
	put64(buf + MRF_RAWKEY_KEY_AT, raw->key);
	put64(buf + MRF_RAWKEY_SERIAL_AT, raw->serial);
	put64(buf + MRF_RAWKEY_LEN_AT, raw->len);
	put16(buf + MRF_RAWKEY_MODE_AT, (uint16_t)raw->mr_mode);
	put16(buf + MRF_RAWKEY_ACCESS_AT, (uint16_t)raw->access);
	buf[MRF_RAWKEY_FLAGS_AT] = compact	   ? MRF_RAWKEY_COMPLETE | MRF_RAWKEY_COMPACT
				   : raw->complete ? MRF_RAWKEY_COMPLETE
						   : 0;
	put64(buf + MRF_RAWKEY_BASE_AT, compact && !virt ? seg->iova_off : raw->base);
	put32(buf + MRF_RAWKEY_NSEG_AT, compact ? seg->rkey : raw->nseg);
	for (i = 0; !compact && i < raw->nseg; i++)
		put_seg(buf + MRF_RAWKEY_SEG_AT(i), &seg[i]);
	put64(buf + MRF_RAWKEY_SUM_AT, mrf_rawkey_checksum(buf, len));
	return len;
}

/* --- checking and decoding -------------------------------------------------------- */

/* Says what is wrong with the part that all versions have in common, or NULL. */
static const char *frame_fault(const uint8_t *buf, size_t len)
{
	size_t says;

	if (!buf || len < sizeof(magic) || memcmp(buf, magic, sizeof(magic)))
		return "is not a raw key of this library";
	if (len < MRF_RAWKEY_FRAME_LEN)
		return "is cut off";
	says = mrf_rawkey_len(buf);
	if (says < MRF_RAWKEY_FRAME_LEN || says > len)
		return "is cut off, or its length is damaged";
	if (get64(buf + MRF_RAWKEY_SUM_AT) != mrf_rawkey_checksum(buf, says))
		return MRF_RAWKEY_DAMAGED;
	return NULL;
}

static const char *nseg_fault(const uint8_t *buf)
{
	unsigned flags = buf[MRF_RAWKEY_FLAGS_AT];
	uint32_t nseg;

	if (mrf_rawkey_len(buf) < MRF_RAWKEY_HEAD_LEN || flags & ~MRF_RAWKEY_COMPLETE)
		return "has a head that makes no sense";
	nseg = get32(buf + MRF_RAWKEY_NSEG_AT);
	if (nseg > MRF_RAWKEY_MAX_SEG || nseg == 1 || !nseg != !flags)
		return "has an impossible number of segments";
	if (mrf_rawkey_len(buf) != mrf_rawkey_size(nseg))
		return "has another length than its segments";
	return NULL;
}

/* before: bytes of the segments before this one. */
static bool seg_ok(const uint8_t *buf, uint32_t i, const struct mrf_wire_seg *seg, uint64_t before)
{
	if (!seg->len || !mrf_range_ok(seg->pos, seg->len) ||
	    !mrf_range_ok(seg->iova_off, seg->len))
		return false;
	if (mrf_rawkey_is_virt(buf))
		return !seg->iova_off && (i || seg->pos == get64(buf + MRF_RAWKEY_BASE_AT));
	return seg->iova_off <= MRF_RAWKEY_IOVA_OFF_MAX && seg->pos == before;
}

static const char *segs_fault(const uint8_t *buf)
{
	uint32_t i, nseg = get32(buf + MRF_RAWKEY_NSEG_AT);
	uint64_t sum = 0;

	if (get64(buf + MRF_RAWKEY_BASE_AT) && !mrf_rawkey_is_virt(buf))
		return "has a base address without FI_MR_VIRT_ADDR";
	for (i = 0; i < nseg; i++) {
		struct mrf_wire_seg seg = get_seg(buf + MRF_RAWKEY_SEG_AT(i));

		if (!seg_ok(buf, i, &seg, sum) || __builtin_add_overflow(sum, seg.len, &sum))
			return MRF_RAWKEY_BAD_SEGMENT;
	}
	if (nseg && sum != get64(buf + MRF_RAWKEY_LEN_AT))
		return "has segments that do not add up";
	return NULL;
}

static const char *tail_fault(const uint8_t *buf, size_t len)
{
	size_t i;

	for (i = mrf_rawkey_len(buf); i < len; i++) {
		if (buf[i])
			return "is followed by bytes that do not belong to it";
	}
	return NULL;
}

static int check_other(const uint8_t *buf, size_t len, const char **why)
{
	const char *fault = frame_fault(buf, len);

	if (!fault && buf[MRF_RAWKEY_VERSION_AT] != MRF_RAWKEY_VERSION) {
		*why = "is of a version that this library does not know";
		return -FI_ENOSYS;
	}
	if (!fault)
		fault = nseg_fault(buf);
	if (!fault)
		fault = mrf_rawkey_head_fault(buf);
	if (!fault)
		fault = segs_fault(buf);
	if (!fault)
		fault = tail_fault(buf, len);
	if (!fault)
		return 0;
	*why = fault;
	return -FI_EINVAL;
}

int mrf_rawkey_check(const void *data, size_t len, const char **why)
{
	const uint8_t *buf = data;
	const char *fault;

	if (!buf || len < MRF_RAWKEY_ONE_LEN || !mrf_rawkey_is_compact(buf))
		return check_other(buf, len, why);
	fault = mrf_rawkey_compact_fault(buf);
	if (!fault)
		fault = tail_fault(buf, len);
	if (!fault)
		return 0;
	*why = fault;
	return -FI_EINVAL;
}

static void take_raw_key(const uint8_t *buf, struct mrf_rawkey *raw)
{
	uint32_t i;

	raw->space_id = get64(buf + MRF_RAWKEY_SPACE_AT);
	raw->key = get64(buf + MRF_RAWKEY_KEY_AT);
	raw->serial = get64(buf + MRF_RAWKEY_SERIAL_AT);
	raw->mr_mode = get16(buf + MRF_RAWKEY_MODE_AT);
	raw->access = get16(buf + MRF_RAWKEY_ACCESS_AT);
	raw->base = mrf_rawkey_base(buf);
	raw->len = get64(buf + MRF_RAWKEY_LEN_AT);
	raw->complete = buf[MRF_RAWKEY_FLAGS_AT] & MRF_RAWKEY_COMPLETE;
	raw->nseg = mrf_rawkey_is_compact(buf) ? 1 : get32(buf + MRF_RAWKEY_NSEG_AT);
	for (i = 0; i < raw->nseg; i++)
		raw->seg[i] = seg_at(buf, i);
}

int mrf_rawkey_decode(const void *buf, size_t len, struct mrf_rawkey *out, const char **why)
{
	int ret = mrf_rawkey_check(buf, len, why);

	if (!ret)
		take_raw_key(buf, out);
	return ret;
}
