/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/proto: little-endian numbers, and segments, at any address.
 */
#ifndef MRF_PROTO_BYTES_H
#define MRF_PROTO_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>
#include "proto/proto.h"

#define LOW24 0xffffffu /* what a number of 24 bits may have */

static inline void put16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* MRF_WIRE_SEG_LEN bytes. */
static inline void put_seg(uint8_t *p, const struct mrf_wire_seg *seg)
{
	put64(p, seg->pos);
	put64(p + 8, seg->len);
	put32(p + 16, seg->rkey);
	put32(p + 20, seg->iova_off);
}

static inline struct mrf_wire_seg get_seg(const uint8_t *p)
{
	return (struct mrf_wire_seg){ .pos = get64(p),
				      .len = get64(p + 8),
				      .rkey = get32(p + 16),
				      .iova_off = get32(p + 20) };
}

#endif
