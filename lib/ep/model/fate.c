/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/model/fate.h"

struct cell {
	uint8_t deed;
	uint8_t status;
	bool bounded; /* FATAL when it has no try left */
	bool anew;
	bool refused;
};

struct row {
	struct cell of[MRF_OP_SEND + 1];
	bool counts;
	bool alone;
};

/* clang-format off */
/* The words that the table is written in. */
#define AGAIN { .deed = MRF_AGAIN }
/*
 * Refused: resolve.c bounds how often it is tried. With a request, the key was not what was
 * refused.
 */
#define RESEND { .deed = MRF_AGAIN, .refused = true }
#define ANEW { .deed = MRF_AGAIN, .refused = true, .anew = true }
/*
 * Done again a few times: the peer that is reached the next time may be another one, with other
 * keys.
 */
#define TRY(why) { .deed = MRF_AGAIN, .bounded = true, .anew = true, .status = MRF_WC_##why }
/* FAIL(why) if the target cannot be asked; ASK_TRY: or too often. */
#define ASK(why) { .deed = MRF_ASK, .status = MRF_WC_##why }
#define ASK_TRY(why) { .deed = MRF_ASK, .bounded = true, .status = MRF_WC_##why }
#define FAIL(why) { .deed = MRF_FATAL, .status = MRF_WC_##why }

/* A row by kind of operation; TRIED: that was one of the operation's tries. */
#define ROW(read, write, request, atomic, send) { .of = { read, write, request, atomic, send } }
#define TRIED(read, write, request, atomic, send) \
	{ .of = { read, write, request, atomic, send }, .counts = true }
#define ALONE(read, write, request, atomic, send) \
	{ .of = { read, write, request, atomic, send }, .counts = true, .alone = true }

_Static_assert(MRF_OP_READ == 0 && MRF_OP_WRITE == 1 && MRF_OP_RPC == 2 && MRF_OP_ATOMIC == 3 &&
		       MRF_OP_SEND == 4,
	       "the columns of the table");

/*
 * Only requests stand AHEAD, except of a local buffer, and DENIED has no culprit. The other
 * cells of these rows say what would be right, so that none is empty. A message that may have been
 * sent is asked about wherever there may be an answer, however long it takes to connect again.
 */
static const struct row table[MRF_CAUSES][MRF_STANDINGS] = {
	/*
	 * A message has no right that it could lack. Its target refuses it while the process there ends,
	 * because the kernel may take the memory of the receives before the queue pair.
	 */
	[MRF_WC_REFUSED] = {
		[MRF_AHEAD] =
		    TRIED(TRY(OTHER),   ASK(OTHER),    FAIL(OTHER),   ASK(OTHER),    ASK(OTHER)),
		[MRF_FIRST] =
		    ROW(  ANEW,         ANEW,          RESEND,        ANEW,          ASK(FLUSHED)),
		[MRF_BEHIND] =
		    ROW(  AGAIN,        AGAIN,         AGAIN,         AGAIN,         AGAIN),
		[MRF_BEHIND_RAN] =
		    ROW(  AGAIN,        ASK(OTHER),    FAIL(OTHER),   ASK(OTHER),    ASK(OTHER)),
	},
	/* A request's buffer is the library's: the application has closed nothing. */
	[MRF_WC_LOCAL] = {
		[MRF_AHEAD] =
		    TRIED(TRY(OTHER),   ASK(OTHER),    FAIL(OTHER),   ASK(OTHER),    ASK(OTHER)),
		[MRF_FIRST] =
		    ROW(  FAIL(LOCAL),  FAIL(LOCAL),   FAIL(OTHER),   FAIL(LOCAL),   FAIL(LOCAL)),
		[MRF_BEHIND] =
		    ROW(  AGAIN,        AGAIN,         AGAIN,         AGAIN,         AGAIN),
		[MRF_BEHIND_RAN] =
		    ROW(  AGAIN,        ASK(OTHER),    FAIL(OTHER),   ASK(OTHER),    ASK(OTHER)),
	},
	/* Without a link the peer cannot be asked; messages wait for one. */
	[MRF_WC_UNSENT] = {
		[MRF_AHEAD ... MRF_FIRST] =
		    TRIED(TRY(UNSENT),  FAIL(UNSENT),  FAIL(UNSENT),  FAIL(UNSENT),  ASK(UNSENT)),
		[MRF_BEHIND] =
		    ROW(  AGAIN,        AGAIN,         AGAIN,         AGAIN,         AGAIN),
		[MRF_BEHIND_RAN] =
		    ROW(  AGAIN,        FAIL(UNSENT),  FAIL(UNSENT),  FAIL(UNSENT),  ASK(UNSENT)),
	},
	/*
	 * Any operation that was in flight may be at fault. So each is alone the next time, and
	 * fails in the end if it always comes back. A message does so when the target has said that it
	 * has not come (tx/fail.c).
	 */
	[MRF_WC_FLUSHED] = {
		[MRF_AHEAD ... MRF_BEHIND_RAN] =
		    ALONE(TRY(FLUSHED), ASK_TRY(FLUSHED), FAIL(FLUSHED), ASK_TRY(FLUSHED),
			  ASK(FLUSHED)),
	},
	/*
	 * The peer may be gone. It is asked about what is behind a read, which makes a connection
	 * anyway (tx/fail.c).
	 */
	[MRF_WC_TIMEOUT] = {
		[MRF_AHEAD] =
		    TRIED(TRY(TIMEOUT), ASK(TIMEOUT),  FAIL(TIMEOUT), ASK(TIMEOUT),  ASK(TIMEOUT)),
		[MRF_FIRST] =
		    TRIED(TRY(TIMEOUT), FAIL(TIMEOUT), FAIL(TIMEOUT), FAIL(TIMEOUT), ASK(TIMEOUT)),
		[MRF_BEHIND ... MRF_BEHIND_RAN] =
		    ROW(  TRY(TIMEOUT), ASK(TIMEOUT),  FAIL(TIMEOUT), ASK(TIMEOUT),  ASK(TIMEOUT)),
	},
	/* The kernel would not accept it the next time either, even if it is a read. */
	[MRF_WC_DENIED] = {
		[MRF_AHEAD ... MRF_BEHIND_RAN] =
		    ROW(  FAIL(DENIED), FAIL(DENIED),  FAIL(DENIED),  FAIL(DENIED),  FAIL(DENIED)),
	},
	[MRF_WC_OTHER] = {
		[MRF_AHEAD ... MRF_FIRST] =
		    TRIED(TRY(OTHER),   FAIL(OTHER),   FAIL(OTHER),   FAIL(OTHER),   ASK(OTHER)),
		[MRF_BEHIND ... MRF_BEHIND_RAN] =
		    ROW(  TRY(OTHER),   FAIL(OTHER),   FAIL(OTHER),   FAIL(OTHER),   ASK(OTHER)),
	},
};
/* clang-format on */

struct mrf_fate mrf_fate(enum mrf_wc_status cause, enum mrf_standing stood, enum mrf_op_kind kind,
			 bool asks, bool tries)
{
	const struct row *row = &table[cause][stood];
	const struct cell *cell = &row->of[kind];
	bool fails = (cell->bounded && !tries) || (cell->deed == MRF_ASK && !asks);

	return (struct mrf_fate){
		.deed = fails ? MRF_FATAL : (enum mrf_deed)cell->deed,
		.status = (enum mrf_wc_status)cell->status,
		.anew = cell->anew && !fails,
		.refused = cell->refused,
		.alone = row->alone,
		.counts = row->counts,
	};
}
