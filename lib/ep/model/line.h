/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines: the connections that carry messages. A line is one-way, as a connection for accesses is,
 * and neither end has a right to the memory of the other: nothing but SENDs goes over it, frames
 * from the initiator (proto/frame.h) and notes from the target. It belongs to a struct mrf_peer of
 * its own (peer.h), beside the one whose memory is accessed.
 *
 * The initiator numbers the frames of a ticket from 0 on, over all lines that it has there. The
 * target says in each welcome how many have come, so that what was lost with a line is sent again,
 * and nothing else. Guarded by ep->lock.
 */
#ifndef MRF_EP_MODEL_LINE_H
#define MRF_EP_MODEL_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"
#include "contract/budget.h"
#include "proto/frame.h"

/* What a connection carries. */
enum mrf_conn_kind {
	MRF_CONN_ACCESS, /* reads, writes, atomic operations, and requests */
	MRF_CONN_LINE,	 /* messages */
	MRF_CONN_KINDS
};

/* Bytes of the longest frame, which is a slot of the target's (ep/msg/shared.h). */
#define MRF_LINE_DATA 16384
#define MRF_LINE_SLOT (MRF_LINE_DATA + 64)

/*
 * Receives of a line at its initiator: for notes, and for what a target asks for of long messages. Those
 * are posted with the first one.
 */
#define MRF_LINE_NOTES 4
#define MRF_LINE_BACKS (MRF_LINE_NOTES + MRF_GRANTS)

struct mrf_inlet;

/* The initiator's end: what the target has said. */
struct mrf_outlet {
	uint64_t posted; /* frames so far: the number of the next one */
	uint64_t taken;	 /* of these, which the target has done with */
	uint32_t window; /* so many more than taken may be posted */
	uint32_t slot;	 /* bytes of the longest frame, */
	uint32_t eager;	 /* and of the longest message that goes with it; others are offered */
	uint32_t kinds;	 /* of messages that it takes: MRF_LINE_* (proto/proto.h) */
	struct mrf_frame_last said; /* in the frames of this line */
	struct mrf_inlet *reverse;  /* the line the other way: ep/msg/reverse.h; NULL: unknown */
	/* tx/idle.h: how many had been posted when that was looked at, and since when, in ms */
	uint64_t seen;
	int64_t since;
	/* The line is a new one, and its target is asked how offers stand: tx/offer_op.h. */
	bool offers;	/* there were some, on lines before */
	bool gave_up;	/* ... and the target has to be told of one that was given up */
	bool asks;	/* there are more to be asked about, */
	bool asked;	/* and an answer is awaited, */
	uint64_t ask;	/* about this one, or one that comes after it, */
	uint64_t begun; /* but not from here on */
};

/* May another frame be posted? */
static inline bool mrf_outlet_is_open(const struct mrf_outlet *outlet)
{
	return outlet->posted - outlet->taken < outlet->window;
}

#endif
