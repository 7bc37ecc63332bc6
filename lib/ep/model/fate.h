/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of an operation whose work request had not succeeded when its connection
 * broke. That depends on what broke the connection, on where the work request stood, and on
 * the kind of operation: fate.c has the table. tx/fail.c and tx/rpc.c do what it says.
 *
 * A target carries out work requests in order, and none behind one that it refuses. So what
 * stands behind a refusal, or behind a work request that could not be sent (its local buffer
 * is closed, or there is no way to the peer), has not run, provided that this happened when
 * that one was sent for the first time (otherwise: BEHIND_RAN). It is posted again. Anything
 * else may have run:
 *
 * - A read is posted again, because that changes nothing at the target.
 * - The target is asked about a write or an atomic operation (tx/fail.h). It fails if the
 *   target cannot be asked.
 * - A request (tx/rpc.h) fails: the target keeps no record of it.
 * - The target is asked about a message, whatever broke the connection: it counts those that
 *   it takes, and says how many when it is connected again.
 *
 * An operation that fails says what broke the connection. If that was the refusal or the
 * local buffer of another operation, it says that there was an error on the connection.
 */
#ifndef MRF_EP_MODEL_FATE_H
#define MRF_EP_MODEL_FATE_H

#include <stdbool.h>
#include "ep/model/op.h"
#include "verbs/vcq.h"

/* Where the work request stood; the culprit is the one that broke the connection. */
enum mrf_standing {
	/*
	 * Ahead of the culprit. Linux 6.12 flushes those, too, if a local buffer was closed. A
	 * request stands here if it was acknowledged, and no reply has come.
	 */
	MRF_AHEAD,
	MRF_FIRST,	/* the culprit */
	MRF_BEHIND,	/* behind the culprit, which had not been sent before */
	MRF_BEHIND_RAN, /* behind it, and it may have been sent and carried out before */
	MRF_STANDINGS
};

/* What can break a connection: enum mrf_wc_status, without MRF_WC_OK. */
#define MRF_CAUSES (MRF_WC_OTHER + 1)

enum mrf_deed {
	MRF_AGAIN = 1, /* its unacknowledged part is posted again */
	MRF_ASK,       /* the target is asked whether it was done; status: if it does not know */
	MRF_FATAL      /* it fails with status */
};

struct mrf_fate {
	enum mrf_deed deed;
	enum mrf_wc_status status; /* ASK, FATAL: never OK */
	bool anew;		   /* AGAIN: its key is asked about anew before */
	bool refused;		   /* AGAIN: it counts as refused once more */
	bool alone;		   /* not FATAL: nothing else is in flight with it the next time */
	bool counts;		   /* this was one of its tries (MRF_TIMEOUTS) */
};

/*
 * asks: the target can be asked about this operation; tries: fewer than MRF_TIMEOUTS were
 * counted before the connection broke.
 */
struct mrf_fate mrf_fate(enum mrf_wc_status cause, enum mrf_standing stood, enum mrf_op_kind kind,
			 bool asks, bool tries);

#endif
