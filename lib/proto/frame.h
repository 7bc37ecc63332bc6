/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames: what goes over a line, the connection by which one endpoint sends messages to
 * another. Each is one SEND with the head that every message has (proto.h), of a type
 * that a connection for accesses does not know, as a line knows none of those. Pure:
 * bytes in, structures out. Every byte from a peer is untrusted; decoders check all
 * bounds and fail as those of proto.h do.
 *
 *	type         bytes      from       after the head
 *	14 message   24 to 40   initiator  4 flags, 8 number, 12 taken, 16 tag; CQ data
 *	                                   (8 bytes) and the ticket of taken (8), if
 *	                                   they are flagged; then data
 *	15 offer     56 or 64   initiator  the same with 24 CQ data in any case,
 *	                                   32 length, 40 bulk queue pair, 44 its PSN,
 *	                                   48 piece, 56 the ticket of taken, if it is
 *	                                   flagged
 *	16 grant     36         target     4 flags, 8 number of the offer, 16 offset,
 *	                                   24 length, 28 bulk queue pair, 32 its PSN
 *	17 note      16         target     4 flags, 8 taken, 12 window
 *	19 ask       24         initiator  4 flags, 8 number of the offer, 16 bulk
 *	                                   queue pair, 20 its PSN
 *	20 probe     4          initiator
 *
 * Questions and probes are not numbered, and outside the window. The next question is asked
 * when the target has said how the offer of this one stands, be it that it has not read the
 * question yet.
 *
 * The length that a message states ends where its data begin: these may be longer than 16
 * bits can say, and end where the SEND ends. A later version may put fields before them.
 *
 * Messages and offers are numbered from 0 on, over all lines of one ticket. A target has
 * *taken* so many of them: those with lower numbers. Few are on the way at a time, so the
 * low bits of numbers and counts suffice on the wire (mrf_frame_count). What is said of
 * an offer has its whole number, because an offer may wait for long.
 */
#ifndef MRF_PROTO_FRAME_H
#define MRF_PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/proto.h"

#define MRF_FRAME_MESSAGE_LEN 24
#define MRF_FRAME_MESSAGE_MAX 40 /* with all that is flagged; the message's data not counted */
#define MRF_FRAME_OFFER_LEN 56
#define MRF_FRAME_OFFER_MAX 64
#define MRF_FRAME_GRANT_LEN 36
#define MRF_FRAME_NOTE_LEN 16
#define MRF_FRAME_ASK_LEN 24
#define MRF_FRAME_PROBE_LEN 4
/* What a target sends, and the initiator's receives have room for. */
#define MRF_FRAME_MAX_BACK 64

/*
 * No offer is longer, and no grant ends behind it, so that offset + length does not wrap.
 * What a receiver takes (max_msg_size) is less, and its own matter.
 */
#define MRF_FRAME_MAX_LENGTH (1ull << 62)

enum mrf_frame_type {
	MRF_FRAME_MESSAGE = 14,
	MRF_FRAME_OFFER = 15,
	MRF_FRAME_GRANT = 16,
	MRF_FRAME_NOTE = 17,
	MRF_FRAME_ASK = 19,
	MRF_FRAME_PROBE = 20
};

/* Flags of messages and offers, all in the low 8 bits; there are no others. */
#define MRF_FRAME_TAGGED (1u << 0)
#define MRF_FRAME_CQ_DATA (1u << 1)
#define MRF_FRAME_ACK (1u << 2)	  /* a note is wanted when it is taken */
#define MRF_FRAME_TELL (1u << 3)  /* offers: a note is wanted when it is taken */
#define MRF_FRAME_TAKEN (1u << 4) /* taken and ticket count */

/*
 * A message with its data. What its flags do not name is 0 when decoded, and not looked
 * at.
 */
struct mrf_frame_message {
	uint32_t flags;	  /* MRF_FRAME_* above */
	uint32_t number;  /* of the frame, mod 2^32 */
	uint32_t taken;	  /* on the line the other way, mod 2^32, */
	uint64_t ticket;  /* whose initiator has this ticket */
	uint64_t tag;	  /* with TAGGED */
	uint64_t cq_data; /* with CQ_DATA */
	/*
	 * Of a frame that was decoded, and inside it; the encoder leaves data to its
	 * caller.
	 */
	const uint8_t *data;
	size_t data_len;
};

/* One end of the pair of queue pairs that carries the bytes of offers. */
struct mrf_frame_bulk {
	uint32_t qp;  /* its number, 24 bits; 0: the peer has been told before */
	uint32_t psn; /* of its first packet, 24 bits */
};

/* A message whose data come when they are asked for. */
struct mrf_frame_offer {
	struct mrf_frame_message message; /* without data */
	uint64_t length;
	uint32_t piece;		    /* no grant may be for more bytes; 0: for any number */
	struct mrf_frame_bulk bulk; /* the initiator's */
};

/* The target will never have it: it is closing, or has no room. The length is 0. */
#define MRF_FRAME_REFUSED (1u << 0)
/* Of an offer that was asked about: it waits still. The length is 0. */
#define MRF_FRAME_WAITS (1u << 1)

/* "Send these bytes of the message": a receive for exactly them is posted. */
struct mrf_frame_grant {
	uint32_t flags;	 /* MRF_FRAME_REFUSED or MRF_FRAME_WAITS; there are no others */
	uint64_t number; /* of the offer */
	uint64_t offset;
	uint32_t length;	    /* 0 without flags: all has been received that will be */
	struct mrf_frame_bulk bulk; /* the target's */
};

/* From this number on, no offer is asked about: there is no answer. */
#define MRF_FRAME_LAST (1u << 0)

/*
 * After a line has been lost: how does this offer stand? The initiator asks about all that it waits
 * for, in the order of their numbers, so that the target knows which ones it has given up. A grant
 * answers.
 */
struct mrf_frame_ask {
	uint32_t flags; /* MRF_FRAME_LAST; there are no others */
	uint64_t number;
	struct mrf_frame_bulk bulk; /* the initiator's */
};

/* Offers only: a message with its data would find no room. */
#define MRF_FRAME_OFFERS_ONLY (1u << 0)

struct mrf_frame_note {
	uint32_t flags;	 /* MRF_FRAME_OFFERS_ONLY; there are no others */
	uint32_t taken;	 /* mod 2^32 */
	uint32_t window; /* so many may be on the way; 0 is legal */
};

/*
 * Encoders: buf has room for the fixed or the maximal length, flags and numbers of queue
 * pairs and packets are in bounds. Each returns the number of bytes written.
 */
size_t mrf_frame_message_encode(const struct mrf_frame_message *message, uint8_t *buf);
size_t mrf_frame_offer_encode(const struct mrf_frame_offer *offer, uint8_t *buf);
size_t mrf_frame_grant_encode(const struct mrf_frame_grant *grant, uint8_t *buf);
size_t mrf_frame_note_encode(const struct mrf_frame_note *note, uint8_t *buf);
size_t mrf_frame_ask_encode(const struct mrf_frame_ask *ask, uint8_t *buf);
size_t mrf_frame_probe_encode(uint8_t *buf);

/*
 * Type of a frame, or -FI_E*: checks the common head only. Of a probe there is no more to
 * decode. -FI_EINVAL, too: it is none of a line.
 */
int mrf_frame_type(const uint8_t *buf, size_t len);

/*
 * Decoders, of the len bytes that a SEND brought: the output is written on success only.
 */
int mrf_frame_message_decode(const uint8_t *buf, size_t len, struct mrf_frame_message *message);
int mrf_frame_offer_decode(const uint8_t *buf, size_t len, struct mrf_frame_offer *offer);
int mrf_frame_grant_decode(const uint8_t *buf, size_t len, struct mrf_frame_grant *grant);
int mrf_frame_note_decode(const uint8_t *buf, size_t len, struct mrf_frame_note *note);
int mrf_frame_ask_decode(const uint8_t *buf, size_t len, struct mrf_frame_ask *ask);

/* --- bare messages ------------------------------------------------------------------ */

/*
 * A message without a head, so that 4096 bytes of data are one packet: SEND WITH IMMEDIATE. It has
 * the next number, and the tag and the ticket that frames with a head have named last on this line.
 * So the first frame on a line has a head, and so has each with CQ data, with another tag or
 * another ticket. Of the immediate value, bits 31..24 are the flags, and 23..0 are taken.
 */
struct mrf_frame_bare {
	uint32_t flags; /* MRF_FRAME_*, except CQ_DATA */
	uint32_t taken; /* mod 2^24 */
};

/* What frames with a head have named last on a line. Both of its ends know it. All 0: nothing. */
struct mrf_frame_last {
	bool any;	 /* there was one */
	bool has_tag;	 /* with a tag, */
	bool has_ticket; /* and with a ticket */
	uint64_t tag;
	uint64_t ticket;
};

/* This message with a head, or the one of an offer, was sent or has come. */
static inline void mrf_frame_named(struct mrf_frame_last *last,
				   const struct mrf_frame_message *message)
{
	last->any = true;
	if (message->flags & MRF_FRAME_TAGGED) {
		last->has_tag = true;
		last->tag = message->tag;
	}
	if (message->flags & MRF_FRAME_TAKEN) {
		last->has_ticket = true;
		last->ticket = message->ticket;
	}
}

/* Does a message need no head? */
static inline bool mrf_frame_may_be_bare(const struct mrf_frame_last *last,
					 const struct mrf_frame_message *message)
{
	uint32_t flags = message->flags;

	if (!last->any || flags & MRF_FRAME_CQ_DATA)
		return false;
	if (flags & MRF_FRAME_TAGGED && !(last->has_tag && last->tag == message->tag))
		return false;
	return !(flags & MRF_FRAME_TAKEN) || (last->has_ticket && last->ticket == message->ticket);
}

/*
 * The value in the processor's order; who posts it and who completes it see to the
 * wire's.
 */
uint32_t mrf_frame_bare_encode(const struct mrf_frame_bare *bare);
int mrf_frame_bare_decode(uint32_t imm, struct mrf_frame_bare *bare);
/*
 * What such a message is, but for its number and its data, which are set to 0 and NULL; taken is
 * mod 2^24. -FI_EINVAL: nothing was named that it needs.
 */
int mrf_frame_bare_message(const struct mrf_frame_last *last, uint32_t imm,
			   struct mrf_frame_message *message);

/* --- counts ------------------------------------------------------------------------- */

/* Of the counts in frames, and in bare messages. */
#define MRF_FRAME_COUNT_BITS 32
#define MRF_FRAME_BARE_BITS 24

/*
 * The greatest count that is not above most, and whose low bits are these: most is what
 * can have been taken at the most, which is what was sent. A count that is a lie is so
 * far below that the last one was greater.
 */
static inline uint64_t mrf_frame_count(uint64_t most, uint32_t low, unsigned bits)
{
	return most - ((most - low) & ((1ull << bits) - 1));
}

#endif
