/* SPDX-License-Identifier: BSD-2-Clause */
/* A segment of a region on the wire, with the same format in answers and in raw keys. */
#ifndef MRF_PROTO_SEG_H
#define MRF_PROTO_SEG_H

#include <stdint.h>

#define MRF_WIRE_SEG_LEN 24

struct mrf_wire_seg {
	uint64_t pos;	   /* packed offset; FI_MR_VIRT_ADDR: address */
	uint64_t len;	   /* bytes */
	uint32_t rkey;	   /* raw key: 0 without a remote right */
	uint32_t iova_off; /* iova of the first byte, < page size; FI_MR_VIRT_ADDR: 0 */
};

#endif
