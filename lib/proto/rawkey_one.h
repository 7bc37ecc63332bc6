/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compact form of a raw key that is complete and has one segment, as nearly all raw
 * keys do. It consists of eight little-endian words of 64 bits, small enough to be made,
 * checked and stored in this form; docs/WIRE.md has the layout. It is inline, because
 * fi_mr_raw_attr and fi_mr_map_raw should cost only a few instructions; all other forms
 * are in proto/rawkey.c. Pure.
 */
#ifndef MRF_PROTO_RAWKEY_ONE_H
#define MRF_PROTO_RAWKEY_ONE_H

#include <endian.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <rdma/fabric.h>
#include "base/compiler.h"
#include "proto/bytes.h"
#include "proto/rawkey.h"

/*
 * Offsets: the frame, which is the same in all keys, is followed by the checksum and then
 * by the content.
 */
#define MRF_RAWKEY_SUM_AT 8
#define MRF_RAWKEY_SAID_AT 16

/* The words of the content. */
enum mrf_rawkey_word {
	MRF_RAWKEY_SPACE,  /* space_id */
	MRF_RAWKEY_KEY,	   /* key */
	MRF_RAWKEY_SERIAL, /* serial */
	MRF_RAWKEY_LEN,	   /* len, also that of the segment */
	MRF_RAWKEY_BASE,   /* iova of the first byte; with FI_MR_VIRT_ADDR that is base */
	MRF_RAWKEY_BITS,   /* mr_mode and access, 16 bits each; rkey in the upper half */
	MRF_RAWKEY_WORDS
};

_Static_assert(MRF_RAWKEY_SAID_AT + MRF_RAWKEY_WORDS * 8 == MRF_RAWKEY_ONE_LEN,
	       "eight words");

/* The content in wire format. */
struct mrf_rawkey_said {
	uint64_t word[MRF_RAWKEY_WORDS];
};

#define MRF_RAWKEY_ACCESS_SHIFT 16
#define MRF_RAWKEY_RKEY_SHIFT 32
#define MRF_RAWKEY_RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MRF_RAWKEY_NO_RIGHTS (0xffff & ~MRF_RAWKEY_RIGHTS)
/* The largest page size is 64 KiB. */
#define MRF_RAWKEY_IOVA_OFF_MAX 0xffffu

#define MRF_RAWKEY_COMPLETE 1u
#define MRF_RAWKEY_COMPACT 2u

/*
 * The checksum is the sum of all words, each multiplied by a factor of its own; the
 * factors of the frame and of the first word behind the checksum are 1. All factors are
 * odd, so that every change of a single word is detected, and small, so that each takes
 * one instruction.
 */
#define MRF_RAWKEY_FACTOR(last) ((last) * 0x5851f42dull & 0x7fffffff)
#define MRF_RAWKEY_FACTOR_1 MRF_RAWKEY_FACTOR(1)
#define MRF_RAWKEY_FACTOR_2 MRF_RAWKEY_FACTOR(MRF_RAWKEY_FACTOR_1)
#define MRF_RAWKEY_FACTOR_3 MRF_RAWKEY_FACTOR(MRF_RAWKEY_FACTOR_2)
#define MRF_RAWKEY_FACTOR_4 MRF_RAWKEY_FACTOR(MRF_RAWKEY_FACTOR_3)
#define MRF_RAWKEY_FACTOR_5 MRF_RAWKEY_FACTOR(MRF_RAWKEY_FACTOR_4)

/* Magic, version, flags and length. */
static inline uint64_t mrf_rawkey_one_frame(void)
{
	return 'm' | 'r' << 8 | 'f' << 16 | (uint64_t)'k' << 24 |
	       (uint64_t)MRF_RAWKEY_VERSION << 32 |
	       (uint64_t)(MRF_RAWKEY_COMPLETE | MRF_RAWKEY_COMPACT) << 40 |
	       (uint64_t)MRF_RAWKEY_ONE_LEN << 48;
}

/* A word in the host's byte order. */
static inline uint64_t mrf_rawkey_word(const struct mrf_rawkey_said *said,
				       enum mrf_rawkey_word which)
{
	return le64toh(said->word[which]);
}

static inline uint64_t mrf_rawkey_one_sum(const struct mrf_rawkey_said *said)
{
	return mrf_rawkey_one_frame() + mrf_rawkey_word(said, 0) +
	       mrf_rawkey_word(said, 1) * MRF_RAWKEY_FACTOR_1 +
	       mrf_rawkey_word(said, 2) * MRF_RAWKEY_FACTOR_2 +
	       mrf_rawkey_word(said, 3) * MRF_RAWKEY_FACTOR_3 +
	       mrf_rawkey_word(said, 4) * MRF_RAWKEY_FACTOR_4 +
	       mrf_rawkey_word(said, 5) * MRF_RAWKEY_FACTOR_5;
}

static inline uint64_t mrf_rawkey_bits(uint64_t mr_mode, uint64_t access, uint64_t rkey)
{
	return mr_mode | access << MRF_RAWKEY_ACCESS_SHIFT | rkey << MRF_RAWKEY_RKEY_SHIFT;
}

/* Can a region begin at this iova, if fi_mr_raw_attr returned base for it? */
static MRF_ALWAYS_INLINE bool mrf_rawkey_base_ok(const struct mrf_rawkey_said *said,
						 const uint64_t *base)
{
	if (mrf_likely((uint32_t)mrf_rawkey_word(said, MRF_RAWKEY_BITS) & FI_MR_VIRT_ADDR))
		return mrf_rawkey_word(said, MRF_RAWKEY_BASE) == *base;
	return mrf_rawkey_word(said, MRF_RAWKEY_BASE) <= MRF_RAWKEY_IOVA_OFF_MAX && !*base;
}

/*
 * Keeps the compiler from loading all words into registers at once. It would run out of
 * registers and have to save some, although the words are in the processor's cache
 * anyway.
 */
static MRF_ALWAYS_INLINE void mrf_rawkey_look_again(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Is this key of MRF_RAWKEY_ONE_LEN bytes a valid key in compact form? said: a copy of
 * its content, and the copy is checked; base: the base_addr that came with the key.
 * False: mrf_rawkey_decode finds the fault, unless it is the base.
 */
static MRF_ALWAYS_INLINE bool mrf_rawkey_one_ok(const uint8_t *key,
						const struct mrf_rawkey_said *said,
						const uint64_t *base)
{
	uint64_t end;

	if (mrf_unlikely(get64(key) != mrf_rawkey_one_frame()))
		return false;
	if (mrf_unlikely(!mrf_rawkey_base_ok(said, base)))
		return false;
	if (mrf_unlikely(__builtin_add_overflow(mrf_rawkey_word(said, MRF_RAWKEY_BASE),
						mrf_rawkey_word(said, MRF_RAWKEY_LEN),
						&end)))
		return false;
	mrf_rawkey_look_again();
	if (mrf_unlikely((uint32_t)mrf_rawkey_word(said, MRF_RAWKEY_BITS) &
			 MRF_RAWKEY_NO_RIGHTS << MRF_RAWKEY_ACCESS_SHIFT))
		return false;
	if (mrf_unlikely(!said->word[MRF_RAWKEY_SPACE]))
		return false;
	if (mrf_unlikely(!said->word[MRF_RAWKEY_SERIAL]))
		return false;
	mrf_rawkey_look_again();
	return mrf_likely(get64(key + MRF_RAWKEY_SUM_AT) == mrf_rawkey_one_sum(said));
}

#endif
