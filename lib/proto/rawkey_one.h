/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compact form of a raw key: complete and of one segment, as nearly all are. It is
 * eight words of 64 bits, little-endian, and small enough to be made, checked and kept as
 * it is; docs/WIRE.md has the layout. Here, because fi_mr_raw_attr and fi_mr_map_raw are
 * to cost a few instructions; all other forms are in proto/rawkey.c. Pure.
 */
#ifndef MRF_PROTO_RAWKEY_ONE_H
#define MRF_PROTO_RAWKEY_ONE_H

#include <endian.h>
#include <rdma/fabric.h>
#include "proto/bytes.h"
#include "proto/rawkey.h"

/* What each word is. */
enum mrf_rawkey_word {
	MRF_RAWKEY_FRAME,  /* the same in all of them */
	MRF_RAWKEY_SUM,	   /* checksum, and rkey in the upper half */
	MRF_RAWKEY_SPACE,  /* space_id */
	MRF_RAWKEY_KEY,	   /* key */
	MRF_RAWKEY_SERIAL, /* serial */
	MRF_RAWKEY_BASE,   /* base, and where the segment begins */
	MRF_RAWKEY_LEN,	   /* len, and that of the segment */
	MRF_RAWKEY_BITS,   /* mr_mode, access, iova_off: 16 bits each; the rest is 0 */
	MRF_RAWKEY_WORDS
};

_Static_assert(MRF_RAWKEY_WORDS * 8 == MRF_RAWKEY_ONE_LEN, "eight words");

/* As it travels. */
struct mrf_rawkey_one {
	uint64_t word[MRF_RAWKEY_WORDS];
};

#define MRF_RAWKEY_ACCESS_SHIFT 16
#define MRF_RAWKEY_IOVA_SHIFT 32
#define MRF_RAWKEY_RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)
/* Pages of 64 KiB are the largest there are. */
#define MRF_RAWKEY_IOVA_OFF_MAX 0xffffu
#define MRF_RAWKEY_BITS_MASK                                        \
	(0xffffull | MRF_RAWKEY_RIGHTS << MRF_RAWKEY_ACCESS_SHIFT | \
	 (uint64_t)MRF_RAWKEY_IOVA_OFF_MAX << MRF_RAWKEY_IOVA_SHIFT)

#define MRF_RAWKEY_COMPLETE 1u
#define MRF_RAWKEY_COMPACT 2u

/* Odd, so that no two words lead from one sum to the same next one. */
#define MRF_RAWKEY_FACTOR 0x9e3779b97f4a7c15ull

static inline uint64_t mrf_rawkey_step(uint64_t sum, uint64_t word)
{
	return (sum ^ word) * MRF_RAWKEY_FACTOR;
}

static inline uint32_t mrf_rawkey_fold(uint64_t sum)
{
	return (uint32_t)(sum >> 32) ^ (uint32_t)sum;
}

/* Magic, version, flags and length. */
static inline uint64_t mrf_rawkey_one_frame(void)
{
	return 'm' | 'r' << 8 | 'f' << 16 | (uint64_t)'k' << 24 |
	       (uint64_t)MRF_RAWKEY_VERSION << 32 |
	       (uint64_t)(MRF_RAWKEY_COMPLETE | MRF_RAWKEY_COMPACT) << 40 |
	       (uint64_t)MRF_RAWKEY_ONE_LEN << 48;
}

/* Of the host's byte order. */
static inline uint64_t mrf_rawkey_word(const struct mrf_rawkey_one *one,
				       enum mrf_rawkey_word which)
{
	return le64toh(one->word[which]);
}

static inline uint32_t mrf_rawkey_one_sum(const struct mrf_rawkey_one *one)
{
	uint64_t sum = mrf_rawkey_step(0, mrf_rawkey_word(one, MRF_RAWKEY_FRAME));

	sum = mrf_rawkey_step(sum, mrf_rawkey_word(one, MRF_RAWKEY_SUM) >> 32);
	sum = mrf_rawkey_step(sum, mrf_rawkey_word(one, MRF_RAWKEY_SPACE));
	sum = mrf_rawkey_step(sum, mrf_rawkey_word(one, MRF_RAWKEY_KEY));
	sum = mrf_rawkey_step(sum, mrf_rawkey_word(one, MRF_RAWKEY_SERIAL));
	sum = mrf_rawkey_step(sum, mrf_rawkey_word(one, MRF_RAWKEY_BASE));
	sum = mrf_rawkey_step(sum, mrf_rawkey_word(one, MRF_RAWKEY_LEN));
	sum = mrf_rawkey_step(sum, mrf_rawkey_word(one, MRF_RAWKEY_BITS));
	return mrf_rawkey_fold(sum);
}

/* What mrf_rawkey_one_put makes a key of. */
struct mrf_rawkey_terms {
	uint64_t space_id, key, serial, base, len;
	uint64_t bits; /* mrf_rawkey_bits */
	uint32_t rkey;
};

static inline uint64_t mrf_rawkey_bits(uint64_t mr_mode, uint64_t access,
				       uint64_t iova_off)
{
	return mr_mode | access << MRF_RAWKEY_ACCESS_SHIFT |
	       iova_off << MRF_RAWKEY_IOVA_SHIFT;
}

/* MRF_RAWKEY_ONE_LEN bytes, at any address. */
static inline void mrf_rawkey_one_put(uint8_t *buf, struct mrf_rawkey_terms t)
{
	uint64_t sum = mrf_rawkey_step(0, mrf_rawkey_one_frame());

	put64(buf, mrf_rawkey_one_frame());
	put32(buf + 12, t.rkey);
	sum = mrf_rawkey_step(sum, t.rkey);
	put64(buf + 16, t.space_id);
	sum = mrf_rawkey_step(sum, t.space_id);
	put64(buf + 24, t.key);
	sum = mrf_rawkey_step(sum, t.key);
	put64(buf + 32, t.serial);
	sum = mrf_rawkey_step(sum, t.serial);
	put64(buf + 40, t.base);
	sum = mrf_rawkey_step(sum, t.base);
	put64(buf + 48, t.len);
	sum = mrf_rawkey_step(sum, t.len);
	put64(buf + 56, t.bits);
	sum = mrf_rawkey_step(sum, t.bits);
	put32(buf + 8, mrf_rawkey_fold(sum));
}

/* False: not this form, or something is wrong; mrf_rawkey_decode knows what. */
static inline bool mrf_rawkey_one_ok(const struct mrf_rawkey_one *one)
{
	uint64_t bits = mrf_rawkey_word(one, MRF_RAWKEY_BITS);
	uint64_t base = mrf_rawkey_word(one, MRF_RAWKEY_BASE);
	uint64_t iova_off = bits >> MRF_RAWKEY_IOVA_SHIFT, end;

	return mrf_rawkey_word(one, MRF_RAWKEY_FRAME) == mrf_rawkey_one_frame() &&
	       (uint32_t)mrf_rawkey_word(one, MRF_RAWKEY_SUM) ==
		       mrf_rawkey_one_sum(one) &&
	       !(bits & ~MRF_RAWKEY_BITS_MASK) &&
	       !(bits & FI_MR_VIRT_ADDR ? iova_off : base) &&
	       /* One of them is 0. */
	       !__builtin_add_overflow(base | iova_off,
				       mrf_rawkey_word(one, MRF_RAWKEY_LEN), &end) &&
	       one->word[MRF_RAWKEY_SPACE] && one->word[MRF_RAWKEY_SERIAL];
}

/* What it says, right or wrong. */
void mrf_rawkey_one_expand(const struct mrf_rawkey_one *one, struct mrf_rawkey *out);

#endif
