/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/proto: the head that every message and every frame has.
 */
#ifndef MRF_PROTO_HEAD_H
#define MRF_PROTO_HEAD_H

#include <rdma/fi_errno.h>
#include "proto/bytes.h"
#include "proto/proto.h"

#define HEAD_LEN 4

/* Writes the head alone. */
static inline void put_head(uint8_t *buf, unsigned type, size_t len)
{
	buf[0] = (uint8_t)type;
	buf[1] = MRF_PROTO_VERSION;
	put16(buf + 2, (uint16_t)len);
}

/*
 * Checks len received bytes: are they a message of this type, in any version, and at
 * least this long?
 */
static inline int check_type(const uint8_t *head, size_t len, int type, size_t at_least)
{
	size_t says = get16(head + 2);

	if (head[0] != type)
		return -FI_EREMOTEIO;
	if (says > len || says < at_least)
		return -FI_EINVAL;
	return 0;
}

/* As check_type, and is the version the one that this library speaks? */
static inline int check_head(const uint8_t *head, size_t len, int type, size_t at_least)
{
	if (head[1] != MRF_PROTO_VERSION)
		return -FI_ENOSYS;
	return check_type(head, len, type, at_least);
}

/* As check_head, for len bytes that came by SEND. */
static inline int check_message(const uint8_t *buf, size_t len, int type, size_t at_least)
{
	return buf && len >= HEAD_LEN ? check_head(buf, len, type, at_least) : -FI_EINVAL;
}

#endif
