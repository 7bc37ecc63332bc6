/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a raw key, which fi_mr_raw_attr of one process returns and fi_mr_map_raw
 * of another accepts. The application transports them in any way it likes, so they are as
 * untrusted as bytes from the wire. Pure: bytes in, structure out.
 *
 * All numbers are little-endian; docs/WIRE.md has the layout. Magic, length, checksum and
 * version stay where they are in every version to come.
 */
#ifndef MRF_PROTO_RAWKEY_H
#define MRF_PROTO_RAWKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/proto.h"

#define MRF_RAWKEY_VERSION 4
#define MRF_RAWKEY_MAX_SEG 16
#define MRF_RAWKEY_HEAD_LEN 64
/* Complete and with one segment, as nearly all keys are: the compact form. */
#define MRF_RAWKEY_ONE_LEN 64
/* The length of the longest raw key: mr_key_size where FI_MR_RAW is in force. */
#define MRF_RAWKEY_MAX (MRF_RAWKEY_HEAD_LEN + MRF_RAWKEY_MAX_SEG * MRF_WIRE_SEG_LEN)

struct mrf_rawkey {
	uint64_t space_id; /* of the domain that made it; never 0 */
	uint64_t key;	   /* the key to use in questions to the target */
	uint64_t serial;   /* which registration of that key is meant; never 0 */
	uint64_t mr_mode;  /* of the domain that made it; affects pos; 16 bits */
	uint64_t access;   /* rights: FI_REMOTE_READ | FI_REMOTE_WRITE; 16 bits */
	uint64_t base;	   /* base_addr of fi_mr_raw_attr; 0 without FI_MR_VIRT_ADDR */
	uint64_t len;	   /* bytes in all */
	bool complete;	   /* seg is the whole region, for good; or nseg is 0: ask */
	uint32_t nseg;	   /* if complete, at least 1: no bytes are one empty segment */
	struct mrf_wire_seg seg[MRF_RAWKEY_MAX_SEG];
};

/* The length in bytes of a raw key with this many segments. */
static inline size_t mrf_rawkey_size(uint32_t nseg)
{
	return nseg == 1 ? MRF_RAWKEY_ONE_LEN
			 : MRF_RAWKEY_HEAD_LEN + (size_t)nseg * MRF_WIRE_SEG_LEN;
}

/*
 * Encodes a raw key; returns its length. buf has room for mrf_rawkey_size(raw->nseg)
 * bytes.
 */
size_t mrf_rawkey_encode(const struct mrf_rawkey *raw, uint8_t *buf);

/*
 * Is this a raw key? Zeros may follow it, because applications may send mr_key_size bytes
 * or their whole buffer. -FI_EINVAL: not a raw key, or a damaged one; -FI_ENOSYS: a raw
 * key of another version. *why (why is not NULL) then names the fault in words.
 *
 * An accepted key has lengths and ranges that add up without wrapping, segments that are
 * packed without holes (or, with FI_MR_VIRT_ADDR, begin at base), and iova_off < 64 KiB.
 */
int mrf_rawkey_check(const void *buf, size_t len, const char **why);

/* The length of an accepted key, without the zeros behind it. */
static inline size_t mrf_rawkey_len(const uint8_t *buf)
{
	return (size_t)(buf[6] | buf[7] << 8);
}

/* Checks a raw key and decodes it; out is written on success only. */
int mrf_rawkey_decode(const void *buf, size_t len, struct mrf_rawkey *out, const char **why);

#endif
