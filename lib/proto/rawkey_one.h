/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where things are in a raw key, and its two short forms, one of which nearly all raw keys have: the
 * compact form, with one segment, and the bare form, with none (the peer has to be asked). They are
 * checked inline, because fi_mr_map_raw should cost a few instructions only. Pure.
 */
#ifndef MRF_PROTO_RAWKEY_ONE_H
#define MRF_PROTO_RAWKEY_ONE_H

#include <rdma/fabric.h>
#include "base/iov.h"
#include "proto/bytes.h"
#include "proto/rawkey.h"

/* Offsets. Magic, version, length and checksum are the same in every version. */
#define MRF_RAWKEY_VERSION_AT 4
#define MRF_RAWKEY_FLAGS_AT 5
#define MRF_RAWKEY_LENGTH_AT 6
#define MRF_RAWKEY_SUM_AT 8
#define MRF_RAWKEY_FRAME_LEN 16
#define MRF_RAWKEY_SPACE_AT 16
#define MRF_RAWKEY_KEY_AT 24
#define MRF_RAWKEY_SERIAL_AT 32
#define MRF_RAWKEY_LEN_AT 40
#define MRF_RAWKEY_BASE_AT 48 /* compact form: the iova of the first byte */
#define MRF_RAWKEY_MODE_AT 56
#define MRF_RAWKEY_ACCESS_AT 58
#define MRF_RAWKEY_NSEG_AT 60 /* compact form: the rkey of the only segment */
#define MRF_RAWKEY_SEG_AT(i) (MRF_RAWKEY_HEAD_LEN + (i)*MRF_WIRE_SEG_LEN)

#define MRF_RAWKEY_COMPLETE 1u
#define MRF_RAWKEY_COMPACT 2u
#define MRF_RAWKEY_RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MRF_RAWKEY_IOVA_OFF_MAX 0xffffu /* the largest page size is 64 KiB */

#define MRF_RAWKEY_DAMAGED "is damaged: its checksum is wrong"
#define MRF_RAWKEY_BAD_SEGMENT "has an impossible segment"

/* Over all of it but the sum, of at least MRF_RAWKEY_FRAME_LEN bytes. */
static inline uint64_t mrf_rawkey_checksum(const uint8_t *buf, size_t len)
{
	uint64_t sum = get64(buf), factor = 1, tail = 0;
	size_t i;

	/* If len is a constant, the factors are, too. */
#pragma GCC unroll 8
	for (i = MRF_RAWKEY_FRAME_LEN; i + 8 <= len; i += 8) {
		sum += get64(buf + i) * factor;
		factor = factor * 0x5851f42dull & 0x7fffffff;
	}
	/* A word that is cut off: only keys of another version have one. */
	if (i < len) {
		memcpy(&tail, buf + i, len - i);
		sum += le64toh(tail) * factor;
	}
	return sum;
}

static inline bool mrf_rawkey_is_virt(const uint8_t *buf)
{
	return get16(buf + MRF_RAWKEY_MODE_AT) & FI_MR_VIRT_ADDR;
}

/* Has the key, of at least MRF_RAWKEY_ONE_LEN bytes, the frame of the compact form? */
static inline bool mrf_rawkey_is_compact(const uint8_t *buf)
{
	static const uint8_t frame[] = { 'm',
					 'r',
					 'f',
					 'k',
					 MRF_RAWKEY_VERSION,
					 MRF_RAWKEY_COMPLETE | MRF_RAWKEY_COMPACT,
					 MRF_RAWKEY_ONE_LEN,
					 0 };

	return !memcmp(buf, frame, sizeof(frame));
}

/* Has it the frame of the bare form? */
static inline bool mrf_rawkey_is_bare(const uint8_t *buf)
{
	static const uint8_t frame[] = {
		'm', 'r', 'f', 'k', MRF_RAWKEY_VERSION, 0, MRF_RAWKEY_HEAD_LEN, 0
	};

	return !memcmp(buf, frame, sizeof(frame));
}

/* The base address of an accepted key. */
static inline uint64_t mrf_rawkey_base(const uint8_t *buf)
{
	return mrf_rawkey_is_virt(buf) || !mrf_rawkey_is_compact(buf)
		       ? get64(buf + MRF_RAWKEY_BASE_AT)
		       : 0;
}

static inline const char *mrf_rawkey_head_fault(const uint8_t *buf)
{
	if (!get64(buf + MRF_RAWKEY_SPACE_AT) || !get64(buf + MRF_RAWKEY_SERIAL_AT))
		return "names no domain or no region";
	if (get16(buf + MRF_RAWKEY_ACCESS_AT) & ~MRF_RAWKEY_RIGHTS)
		return "grants rights that do not exist";
	return NULL;
}

/* The fault of the only segment of the compact form, or NULL. */
static inline const char *mrf_rawkey_only_seg_fault(const uint8_t *buf)
{
	uint64_t iova = get64(buf + MRF_RAWKEY_BASE_AT);

	if (!mrf_range_ok(iova, get64(buf + MRF_RAWKEY_LEN_AT)) ||
	    (iova > MRF_RAWKEY_IOVA_OFF_MAX && !mrf_rawkey_is_virt(buf)))
		return MRF_RAWKEY_BAD_SEGMENT;
	return NULL;
}

/* The fault of a key whose frame is that of the compact form (its checksum too), or NULL. */
static inline const char *mrf_rawkey_compact_fault(const uint8_t *buf)
{
	const char *fault;

	if (get64(buf + MRF_RAWKEY_SUM_AT) != mrf_rawkey_checksum(buf, MRF_RAWKEY_ONE_LEN))
		return MRF_RAWKEY_DAMAGED;
	fault = mrf_rawkey_head_fault(buf);
	return fault ? fault : mrf_rawkey_only_seg_fault(buf);
}

static inline bool mrf_rawkey_bare_well(const uint8_t *buf)
{
	return get64(buf + MRF_RAWKEY_SUM_AT) == mrf_rawkey_checksum(buf, MRF_RAWKEY_HEAD_LEN) &&
	       !mrf_rawkey_head_fault(buf) && !get32(buf + MRF_RAWKEY_NSEG_AT) &&
	       (mrf_rawkey_is_virt(buf) || !get64(buf + MRF_RAWKEY_BASE_AT));
}

/* Are these MRF_RAWKEY_ONE_LEN bytes a key of a short form, without a fault? */
static inline bool mrf_rawkey_is_short_well(const uint8_t *buf)
{
	if (mrf_rawkey_is_compact(buf))
		return !mrf_rawkey_compact_fault(buf);
	return mrf_rawkey_is_bare(buf) && mrf_rawkey_bare_well(buf);
}

_Static_assert(MRF_RAWKEY_HEAD_LEN == MRF_RAWKEY_ONE_LEN, "the short forms have one length");

#endif
