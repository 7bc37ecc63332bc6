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
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <rdma/fabric.h>
#include "base/compiler.h"
#include "proto/bytes.h"
#include "proto/rawkey.h"

/* Where what it says begins: behind the frame, which is the same in all, and the sum. */
#define MRF_RAWKEY_SUM_AT 8
#define MRF_RAWKEY_SAID_AT 16

/* What each word says. */
enum mrf_rawkey_word {
	MRF_RAWKEY_SPACE,  /* space_id */
	MRF_RAWKEY_KEY,	   /* key */
	MRF_RAWKEY_SERIAL, /* serial */
	MRF_RAWKEY_LEN,	   /* len, and that of the segment */
	MRF_RAWKEY_BASE,   /* iova of the first byte; FI_MR_VIRT_ADDR: that is, base */
	MRF_RAWKEY_BITS,   /* mr_mode and access, 16 bits each; rkey in the upper half */
	MRF_RAWKEY_WORDS
};

_Static_assert(MRF_RAWKEY_SAID_AT + MRF_RAWKEY_WORDS * 8 == MRF_RAWKEY_ONE_LEN,
	       "eight words");

/* As it travels. */
struct mrf_rawkey_said {
	uint64_t word[MRF_RAWKEY_WORDS];
};

#define MRF_RAWKEY_ACCESS_SHIFT 16
#define MRF_RAWKEY_RKEY_SHIFT 32
#define MRF_RAWKEY_RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MRF_RAWKEY_NO_RIGHTS (0xffff & ~MRF_RAWKEY_RIGHTS)
/* Pages of 64 KiB are the largest there are. */
#define MRF_RAWKEY_IOVA_OFF_MAX 0xffffu

#define MRF_RAWKEY_COMPLETE 1u
#define MRF_RAWKEY_COMPACT 2u

/*
 * The checksum is the sum of all words, each times a factor of its own; that of the frame
 * and of the first word behind the checksum is 1. All factors are odd, so that no change of a
 * single word is overlooked, and small, so that it takes one instruction.
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

/* Of the host's byte order. */
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

/* Can a region begin there, if fi_mr_raw_attr has said base of it? */
static MRF_ALWAYS_INLINE bool mrf_rawkey_base_ok(const struct mrf_rawkey_said *said,
						 const uint64_t *base)
{
	if (mrf_likely((uint32_t)mrf_rawkey_word(said, MRF_RAWKEY_BITS) & FI_MR_VIRT_ADDR))
		return mrf_rawkey_word(said, MRF_RAWKEY_BASE) == *base;
	return mrf_rawkey_word(said, MRF_RAWKEY_BASE) <= MRF_RAWKEY_IOVA_OFF_MAX && !*base;
}

/*
 * Else the compiler reads all words into registers, more than it has: they would have to be
 * saved first, and are in the processor's hands anyway.
 */
static MRF_ALWAYS_INLINE void mrf_rawkey_look_again(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Is this key, of MRF_RAWKEY_ONE_LEN bytes, of this form, with nothing wrong? said: a copy of
 * what it says, which is what is checked; base: as with it. False: mrf_rawkey_decode knows
 * what is wrong, if it is not the base.
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
