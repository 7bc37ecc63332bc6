/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between two instances of this library: the greeting in rdma_cm's private
 * data; and, as SENDs on the connection, the question "what is behind this key?" with its
 * answer, and requests to a peer's agent, for operations that RDMA does not have, with their
 * replies. Pure: bytes in, structures out. Every byte from a peer is untrusted; decoders check
 * all bounds and fail with -FI_EINVAL (malformed), -FI_EREMOTEIO (not this protocol) or
 * -FI_ENOSYS (an unknown version).
 *
 * All numbers are little-endian on the wire. Every message starts with
 *   0  u8  type     1  u8 version     2  u16 length of the whole message, bytes
 * A greeting starts with the four bytes "mrfb" before that, because rdma_cm pads private
 * data with zeros and does not keep its length. docs/WIRE.md has the layouts.
 */
#ifndef MRF_PROTO_PROTO_H
#define MRF_PROTO_PROTO_H

#include <stddef.h>
#include <stdint.h>

#define MRF_PROTO_VERSION 10

/* A segment of a region on the wire, with the same format in answers and in raw keys. */
#define MRF_WIRE_SEG_LEN 24

struct mrf_wire_seg {
	uint64_t pos;	   /* packed offset; FI_MR_VIRT_ADDR: address */
	uint64_t len;	   /* bytes */
	uint32_t rkey;	   /* raw key: 0 without a remote right */
	uint32_t iova_off; /* iova of the first byte, < page size; FI_MR_VIRT_ADDR: 0 */
};

#define MRF_PROTO_ASK_LEN 48
#define MRF_PROTO_NOTE_LEN 16
#define MRF_PROTO_MAX_GONE 4
#define MRF_WIRE_GONE_LEN 24
#define MRF_PROTO_FORGET_MAX (MRF_PROTO_NOTE_LEN + MRF_PROTO_MAX_GONE * MRF_WIRE_GONE_LEN)
#define MRF_PROTO_MAX_SEG 16
#define MRF_PROTO_ANSWER_HEAD 72
#define MRF_PROTO_DATA_LEN 24
#define MRF_PROTO_MAX_MSG (MRF_PROTO_ANSWER_HEAD + MRF_PROTO_MAX_SEG * MRF_WIRE_SEG_LEN)

/* "What is behind key, and may I access these bytes of it?" */
struct mrf_ask {
	uint64_t cookie; /* comes back in the answer */
	uint64_t key;
	uint64_t serial; /* the registration that is meant (raw keys); 0: any */
	uint64_t addr;	 /* offset, or address with FI_MR_VIRT_ADDR */
	uint64_t len;	 /* bytes; addr + len may wrap: then the answer is "outside" */
	uint32_t flags;	 /* MRF_ASK_*; unknown ones are ignored */
};

#define MRF_ASK_ONCE (1u << 0)	  /* prefer an answer good once: the memory changes */
#define MRF_ASK_RELEASE (1u << 1) /* what RELEASE says, before the question is answered */

#define MRF_ANSWER_COMPLETE (1u << 0) /* the segments are the whole region, for good */
#define MRF_ANSWER_ONCE (1u << 1)     /* only for accesses begun earlier, until RELEASE */
/* The region is reached by STAGE and BYTES requests: rkeys mean nothing. */
#define MRF_ANSWER_STAGED (1u << 2)

struct mrf_answer {
	uint64_t cookie;
	uint64_t key;
	uint32_t status; /* enum mrf_mr_status */
	uint32_t flags;	 /* MRF_ANSWER_*; unknown ones are ignored */
	uint64_t access; /* FI_REMOTE_READ | FI_REMOTE_WRITE */
	uint64_t base;
	uint64_t len;
	uint64_t serial; /* of the registration that has the key */
	uint32_t event;	 /* sent with the last bytes of a write to the region; 0: none */
	uint32_t nseg;
	struct mrf_wire_seg seg[MRF_PROTO_MAX_SEG];
};

/* These bytes of a region that is pinned on demand, */
struct mrf_wire_gone {
	uint64_t key; /* as it was asked for */
	uint64_t pos;
	uint64_t len;
};

/* or all that are: answers about them are no longer valid. */
struct mrf_forget {
	uint32_t count; /* 0: all */
	struct mrf_wire_gone gone[MRF_PROTO_MAX_GONE];
};

/* A write with FI_REMOTE_CQ_DATA has landed. */
struct mrf_data {
	uint64_t data;
	uint64_t len; /* bytes of the write */
};

enum mrf_msg_type {
	MRF_MSG_HELLO = 1,
	MRF_MSG_WELCOME = 2,
	MRF_MSG_REFUSE = 3,
	MRF_MSG_ASK = 4,
	MRF_MSG_ANSWER = 5,
	/* From the target: answers about regions pinned on demand are no longer valid. */
	MRF_MSG_FORGET = 6,
	/* From the initiator: it no longer uses the answers that were good once. */
	MRF_MSG_RELEASE = 7,
	/* A request, as those below. */
	MRF_MSG_BYTES = 8,
	/* From the initiator, behind the write that the message is about. */
	MRF_MSG_DATA = 9,
	/* Requests and their replies. */
	MRF_MSG_ATOMIC = 10,
	MRF_MSG_REPLY = 11,
	MRF_MSG_FLUSH = 12,
	MRF_MSG_STAGE = 13,
	/* 14 to 20: frame.h */
	MRF_MSG_SYNC = 21
};

/*
 * Encoders: buf has room for the fixed or the maximal length; each returns the number of
 * bytes written.
 */
size_t mrf_ask_encode(const struct mrf_ask *ask, uint8_t *buf);
size_t mrf_answer_encode(const struct mrf_answer *answer, uint8_t *buf);
size_t mrf_data_encode(const struct mrf_data *data, uint8_t *buf);
size_t mrf_forget_encode(const struct mrf_forget *forget, uint8_t *buf);
/* RELEASE: only a head, for which mrf_msg_type is the only decoder needed. */
size_t mrf_note_encode(enum mrf_msg_type type, uint8_t *buf);

/* Decoders: the output is written on success only. */
int mrf_ask_decode(const uint8_t *buf, size_t len, struct mrf_ask *ask);
int mrf_answer_decode(const uint8_t *buf, size_t len, struct mrf_answer *answer);
int mrf_data_decode(const uint8_t *buf, size_t len, struct mrf_data *data);
int mrf_forget_decode(const uint8_t *buf, size_t len, struct mrf_forget *forget);
/* Type of a message that came by SEND, or -FI_E*: checks the common head only. */
int mrf_msg_type(const uint8_t *buf, size_t len);
/* The length of a message, from its head; the message has been decoded successfully. */
size_t mrf_msg_len(const uint8_t *buf);

/* --- requests and replies -------------------------------------------------------------- */

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

/* The types of messages that are requests: this is the one list of them. */
enum mrf_request_kind {
	MRF_NO_REQUEST,
	MRF_REQUEST_ATOMIC, /* several go into a message, with their replies */
	MRF_REQUEST_FLUSH,  /* takes as long as the storage does: has a message of its own */
	MRF_REQUEST_STAGE,  /* takes as long as a device does; its bytes go over a pair */
	MRF_REQUEST_BYTES,  /* takes as long as a device does; but several go into a message */
	MRF_REQUEST_SYNC    /* only its reply matters: it is about no region, and a single byte */
};

enum mrf_request_kind mrf_request_kind(enum mrf_msg_type type);

/* A request to do something with these bytes of the region behind key. */
struct mrf_request {
	enum mrf_msg_type type; /* one of a request */
	uint32_t what;		/* details, which depend on the type */
	/* number of the request on its connection, which wraps; comes back in the reply */
	uint32_t number;
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
 * mrf_request.what of a request of type STAGE: the next SEND over the pair of the connection is put
 * into the region (PUT), or brings what is there. A request has one SEND, whatever becomes of it: one
 * to the initiator is empty if it brings nothing. One with a body does not do anything, but names the
 * initiator's end of the pair, and its reply, which has nothing done, the target's: either is a number
 * of a queue pair (4 bytes), and that of its first packet (4).
 */
#define MRF_STAGE_PUT (1u << 31)
#define MRF_STAGE_COUNT (1u << 30) /* of a write to a region with a number: it is done */
#define MRF_PROTO_STAGE 0x10000ul  /* bytes of a request at most */
#define MRF_PROTO_STAGES 8	   /* PUTs without a reply, and likewise others */
#define MRF_PROTO_PAIR_NAME 8	   /* bytes of a body */
/*
 * A request of type BYTES is for such a region, too, with the same details, but the bytes are the body
 * of the request (PUT), or of the reply.
 */

/* One end of a pair. Both are numbers of 24 bits. */
struct mrf_pair_name {
	uint32_t qpn; /* not 0 */
	uint32_t psn;
};

size_t mrf_pair_name_encode(const struct mrf_pair_name *name, uint8_t *buf);
/* -FI_EINVAL: it is none. */
int mrf_pair_name_decode(const uint8_t *buf, size_t len, struct mrf_pair_name *name);

/* enum mrf_mr_status, or one of these. */
enum mrf_reply_status {
	MRF_REPLY_DONE = 0,
	MRF_REPLY_RIGHT = 16,	/* the region does not grant the right (any more) */
	MRF_REPLY_FAILED = 17,	/* permanently; err holds the reason */
	MRF_REPLY_NOT_NEXT = 18 /* not done: an earlier request must be sent again first */
};

#define MRF_REPLY_STORED (1u << 0) /* the memory was changed */

struct mrf_reply {
	uint32_t status;
	uint32_t err;	 /* FI_E*, positive, below 2^16; with FAILED */
	uint32_t flags;	 /* MRF_REPLY_*, below 2^8; unknown ones are ignored */
	uint32_t number; /* of the request */
	uint64_t done;	 /* bytes done, from the first on; <= the request's len */
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
int mrf_request_decode(const uint8_t *buf, size_t len, struct mrf_request *request);
int mrf_reply_decode(const uint8_t *buf, size_t len, struct mrf_reply *reply);

#endif
