/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a peer's agent, for operations that RDMA does not have, and their replies.
 * Each has a head that all types share and a body that depends on the type. Like proto.h,
 * this is pure and trusts no byte from a peer.
 */
#ifndef MRF_PROTO_REQUEST_H
#define MRF_PROTO_REQUEST_H

#include "proto/proto.h"

/*
 * Messages of requests and of replies: sixteen compare-and-swaps of eight bytes fit into
 * one, and so do their replies, which go inline.
 */
#define MRF_PROTO_MAX_REQUEST 1024
#define MRF_PROTO_MAX_REPLY 512
#define MRF_PROTO_REQUEST_HEAD 48
#define MRF_PROTO_REQUEST_BODY (MRF_PROTO_MAX_REQUEST - MRF_PROTO_REQUEST_HEAD)
#define MRF_PROTO_REPLY_HEAD 24
#define MRF_PROTO_REPLY_BODY 384

/* A request to do something with these bytes of the region behind key. */
struct mrf_request {
	enum mrf_msg_type type; /* the kind of operation */
	uint32_t what;		/* details, which depend on the type */
	/* number of the request on its connection, which wraps; comes back in the reply */
	uint32_t turn;
	uint64_t key;
	uint64_t serial; /* the registration that is meant (raw keys); 0: any */
	uint64_t addr;	 /* offset, or address with FI_MR_VIRT_ADDR */
	uint64_t len;	 /* bytes; addr + len does not wrap */
	uint32_t body_len;
	const uint8_t *body; /* decoded: inside the message */
};

/* mrf_request.what of a request of type FLUSH */
#define MRF_FLUSH_CHECK 0
#define MRF_FLUSH_DO 1

/*
 * mrf_request.what of a request of type STAGE: bytes of the connection's ring go into the region
 * (PUT), or come from there. The answer about such a region (MRF_ANSWER_STAGED) has the ring's
 * rkey.
 */
#define MRF_STAGE_PUT (1u << 31)
#define MRF_STAGE_COUNT (1u << 30) /* of a write to a region with a number: it is done */
#define MRF_STAGE_OFFSET 0x7ffffu  /* mask: where the bytes are in the ring */
#define MRF_PROTO_RING 0x80000ul   /* bytes of a ring; its first has the address 0 */

/* enum mrf_mr_status, or one of these. */
enum mrf_reply_status {
	MRF_REPLY_DONE = 0,
	MRF_REPLY_RIGHT = 16,  /* the region does not grant the right (any more) */
	MRF_REPLY_FAILED = 17, /* permanently; err holds the reason */
	MRF_REPLY_TURN = 18    /* not done: an earlier request must be sent again first */
};

#define MRF_REPLY_STORED (1u << 0) /* the memory was changed */

struct mrf_reply {
	uint32_t status;
	uint32_t err;	/* FI_E*, positive, below 2^16; with FAILED */
	uint32_t flags; /* MRF_REPLY_*, below 2^8; unknown ones are ignored */
	uint32_t turn;	/* of the request */
	uint64_t done;	/* bytes done, from the first on; <= the request's len */
	uint32_t body_len;
	const uint8_t *body;
};

/*
 * Encoders: buf has room for the longest message, body_len is in bounds, and body may
 * already be at its place in buf. Each returns the number of bytes written.
 */
size_t mrf_request_encode(const struct mrf_request *request, uint8_t *buf);
size_t mrf_reply_encode(const struct mrf_reply *reply, uint8_t *buf);

/* Decoders for every type of request: the output is written on success only. */
int mrf_request_decode(const void *buf, size_t len, struct mrf_request *request);
int mrf_reply_decode(const void *buf, size_t len, struct mrf_reply *reply);

#endif
