/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a raw key: what fi_mr_raw_attr of one process hands out and fi_mr_map_raw
 * of another takes. The application carries them, however it likes, so they are as little
 * to be trusted as what comes over the wire. Pure: bytes in, structure out.
 *
 * All numbers are little-endian; docs/WIRE.md has the layout. Magic, length, checksum and
 * version stay where they are in every version to come.
 */
#ifndef MRF_PROTO_RAWKEY_H
#define MRF_PROTO_RAWKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/seg.h"

#define MRF_RAWKEY_VERSION 4
#define MRF_RAWKEY_MAX_SEG 16
#define MRF_RAWKEY_HEAD_LEN 64
#define MRF_RAWKEY_ONE_LEN 64 /* with one segment: proto/rawkey_one.h */
/* No raw key is longer: mr_key_size where FI_MR_RAW is in force. */
#define MRF_RAWKEY_MAX (MRF_RAWKEY_HEAD_LEN + MRF_RAWKEY_MAX_SEG * MRF_WIRE_SEG_LEN)

struct mrf_rawkey {
	uint64_t space_id; /* of the domain that made it; never 0 */
	uint64_t key;	   /* what the target is asked about */
	uint64_t serial;   /* which registration of that key is meant; never 0 */
	uint64_t mr_mode;  /* of the domain that made it: how pos is to be read; 16 bits */
	uint64_t access;   /* FI_REMOTE_READ | FI_REMOTE_WRITE, what it grants; 16 bits */
	uint64_t base;	   /* base_addr of fi_mr_raw_attr; 0 without FI_MR_VIRT_ADDR */
	uint64_t len;	   /* bytes in all */
	bool complete;	   /* seg is all there is, for good; else nseg is 0: ask */
	uint32_t nseg; /* complete: at least 1, a region of no bytes has an empty one */
	struct mrf_wire_seg seg[MRF_RAWKEY_MAX_SEG];
};

/* Bytes of a raw key with so many segments. */
static inline size_t mrf_rawkey_size(uint32_t nseg)
{
	return nseg == 1 ? MRF_RAWKEY_ONE_LEN :
			   MRF_RAWKEY_HEAD_LEN + (size_t)nseg * MRF_WIRE_SEG_LEN;
}

/* Bytes of the structure that say something. */
static inline size_t mrf_rawkey_stored(const struct mrf_rawkey *raw)
{
	return offsetof(struct mrf_rawkey, seg) + raw->nseg * sizeof(raw->seg[0]);
}

/* buf has room for mrf_rawkey_size(raw->nseg) bytes, which are returned. */
size_t mrf_rawkey_encode(const struct mrf_rawkey *raw, uint8_t *buf);

/*
 * After the key there may be zeros: applications may send as many bytes as mr_key_size
 * says, or as their buffer has. -FI_EINVAL: no raw key, or damaged; -FI_ENOSYS: one of
 * another version. *why (not NULL) then says in words what is wrong; out is written on
 * success only.
 *
 * What is accepted: lengths and ranges that do not wrap and add up, segments that are
 * packed without holes (or, with FI_MR_VIRT_ADDR, begin at base), iova_off < 64 KiB.
 */
int mrf_rawkey_decode(const void *buf, size_t len, struct mrf_rawkey *out,
		      const char **why);

/* --- the compact form, which proto/rawkey_one.h describes ----------------------------- */

struct mrf_rawkey_said;

/* What the compact form says, right or wrong. */
void mrf_rawkey_one_expand(const struct mrf_rawkey_said *said, struct mrf_rawkey *out);
/* The reverse, of what is complete and has one segment. */
void mrf_rawkey_one_say(const struct mrf_rawkey *raw, struct mrf_rawkey_said *said);

#endif
