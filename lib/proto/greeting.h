/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The greeting, in rdma_cm's private data: an initiator says hello, and the target welcomes it,
 * refuses it, or demands a proof of the key. The rest is as proto.h says.
 */
#ifndef MRF_PROTO_GREETING_H
#define MRF_PROTO_GREETING_H

#include "proto/proto.h"

#define MRF_PROTO_HELLO_LEN 32
#define MRF_PROTO_HELLO_MAX 56 /* with a proof; rdma_cm carries 56 bytes in a request */
#define MRF_PROTO_WELCOME_LEN 40
#define MRF_PROTO_LINE_LEN 24
/* With a proof and the fields of a line; rdma_cm carries 196 bytes in a response. */
#define MRF_PROTO_WELCOME_MAX (MRF_PROTO_WELCOME_LEN + MRF_PROTO_PROOF + MRF_PROTO_LINE_LEN)
#define MRF_PROTO_REFUSE_LEN 12 /* rdma_cm carries 148 in a reject */
#define MRF_PROTO_FULL_LEN 16	/* a refusal that names the limit that was met */
#define MRF_PROTO_CHALLENGE_LEN 64

/* The bytes of a proof that fit into a hello. */
#define MRF_PROTO_HELLO_PROOF 16
#define MRF_PROTO_PROOF 32
#define MRF_PROTO_NONCE 32

/* Connection request, from the endpoint that will access memory, or send messages. */
struct mrf_hello {
	uint32_t flags; /* MRF_HELLO_*; unknown ones must be ignored */
	/* The target's queue pair of a connection that was lost: how far did it come? 0: none. */
	uint32_t lost;
	uint64_t ticket; /* random number that the initiator shows this target only */
	/* Sent by an endpoint with a key that has been challenged: auth/auth.h. */
	uint64_t number; /* of the challenge; 0: none, and no fields follow */
	uint64_t salt;
	uint8_t proof[MRF_PROTO_HELLO_PROOF];
};

/*
 * The connection is to be a line: for messages, and for nothing else (frame.h). The port at
 * which the initiator's endpoint listens stands in the upper half of the flags; with the
 * address that the connection comes from, it says who sends the messages.
 */
#define MRF_HELLO_MESSAGES (1u << 0)
#define MRF_HELLO_PORT_SHIFT 16

/* What the initiator of a line needs to know of the target. */
struct mrf_welcome_line {
	/* The most bytes of one frame, head included; at least MRF_FRAME_MESSAGE_MAX. */
	uint32_t slot;
	uint32_t window; /* frames that may be on the way; 0 is legal */
	uint32_t kinds;	 /* MRF_LINE_*, the messages that it takes; unknown ones are ignored */
	/* Frames of the hello's ticket, on all lines so far; with MRF_WELCOME_KNOWN. */
	uint64_t taken;
};

#define MRF_LINE_MSG (1u << 0)	  /* those of fi_msg(3) */
#define MRF_LINE_TAGGED (1u << 1) /* those of fi_tagged(3) */

/*
 * The connection is accepted; the properties of the target that its peers need to know.
 */
struct mrf_welcome {
	uint64_t mr_mode;  /* of its domain: the form of its keys and addresses */
	uint64_t instance; /* random number of the target's endpoint, new at each start */
	uint64_t space_id; /* of the target's key space, as in its raw keys */
	uint32_t asks;	   /* how many questions may be on the way at a time, >= 1 */
	uint32_t flags;	   /* MRF_WELCOME_*; unknown ones are ignored */
	uint8_t proof[MRF_PROTO_PROOF]; /* with MRF_WELCOME_PROOF */
	struct mrf_welcome_line line;	/* with MRF_WELCOME_LINE; otherwise decoded as zeros */
};

/*
 * The target takes immediate data as event numbers; FI_REMOTE_CQ_DATA travel in messages.
 */
#define MRF_WELCOME_EVENTS (1u << 0)
/* The target, too, has the key that the initiator has proved to have. */
#define MRF_WELCOME_PROOF (1u << 1)
/*
 * The target knows how far the queue pair came that the hello asks for. The number of the
 * packet (PSN) with which it stopped stands above the flags.
 */
#define MRF_WELCOME_STOPPED (1u << 2)
#define MRF_WELCOME_PSN_SHIFT 8
/* The fields of a line follow. */
#define MRF_WELCOME_LINE (1u << 3)
/* The target knows the ticket of the hello, so that line.taken counts. */
#define MRF_WELCOME_KNOWN (1u << 4)

enum mrf_refuse_reason {
	MRF_REFUSE_VERSION = 1, /* no common version */
	MRF_REFUSE_CLOSING = 2, /* the endpoint is being closed */
	MRF_REFUSE_RESOURCES = 3,
	MRF_REFUSE_CHALLENGE = 4, /* proof of the key is required: struct mrf_challenge */
	MRF_REFUSE_KEY = 5,	  /* the initiator has another key */
	MRF_REFUSE_MESSAGES = 6,  /* the endpoint takes no messages */
	MRF_REFUSE_BARRED = 7	  /* the last line broke the protocol, a moment ago */
};

/* With MRF_REFUSE_RESOURCES: the limit that was met at the target. */
enum mrf_full {
	MRF_FULL_UNKNOWN,
	MRF_FULL_INBOUND, /* inbound connections of a domain: FI_MRFAB_INBOUND */
	MRF_FULL_HALF,	  /* connections of one address that it has not confirmed */
	MRF_FULL_LOCKED,  /* locked memory, or the device's regions */
	MRF_FULL_QP,	  /* the device's queue pairs, or memory for one */
	MRF_FULL_CQ,	  /* the device's completion queues, or memory for one */
	MRF_FULL_FD,	  /* file descriptors: RLIMIT_NOFILE */
	MRF_FULL_MEMORY,
	MRF_FULL_RECEIVES, /* receives for messages, until other lines have ended */
	MRF_FULL_COUNT
};

/* The data that come with MRF_REFUSE_CHALLENGE. */
struct mrf_challenge {
	uint64_t number;   /* never 0 */
	uint64_t instance; /* of the target's endpoint */
	uint8_t nonce[MRF_PROTO_NONCE];
};

/*
 * Encoders: buf has room for the fixed or the maximal length; each returns the number of
 * bytes written.
 */
size_t mrf_hello_encode(const struct mrf_hello *hello, uint8_t *buf);
size_t mrf_welcome_encode(const struct mrf_welcome *welcome, uint8_t *buf);
size_t mrf_refuse_encode(enum mrf_refuse_reason reason, uint8_t *buf);
/* MRF_REFUSE_RESOURCES, with the limit. */
size_t mrf_full_encode(enum mrf_full full, uint8_t *buf);
size_t mrf_challenge_encode(const struct mrf_challenge *challenge, uint8_t *buf);

/* Decoders: the output is written on success only. */
int mrf_hello_decode(const uint8_t *buf, size_t len, struct mrf_hello *hello);
int mrf_welcome_decode(const uint8_t *buf, size_t len, struct mrf_welcome *welcome);
/* Accepts every version, because a target without a common version refuses in its own. */
int mrf_refuse_decode(const uint8_t *buf, size_t len, uint32_t *reason);
/*
 * The limit that a decoded refusal with the reason MRF_REFUSE_RESOURCES names;
 * MRF_FULL_UNKNOWN if it names none, or one that is not known here.
 */
enum mrf_full mrf_full_decode(const uint8_t *buf, size_t len);
/* Decodes a refusal with the reason MRF_REFUSE_CHALLENGE. */
int mrf_challenge_decode(const uint8_t *buf, size_t len, struct mrf_challenge *challenge);

#endif
