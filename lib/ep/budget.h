/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much one peer may ask of another's agent, and how much the agent does for peers before
 * it looks at what else it has to do. All of it in one place, because together these numbers
 * decide how long anybody waits.
 */
#ifndef MRF_EP_BUDGET_H
#define MRF_EP_BUDGET_H

/* --- on one connection, kept by its initiator, enforced by its target --------------------- */

#define MRF_ASKS 8     /* questions without an answer; the target may allow fewer */
#define MRF_REQUESTS 8 /* requests without a reply, in one message or several */

/* --- what peers tell the application ------------------------------------------------------- */

/*
 * With so many completions that the application has not read, no more of peers' data are taken
 * in: they wait at the peer, on this connection with whatever it sends behind them.
 */
#define MRF_UNREAD_MAX 65536
#define MRF_UNREAD_MS 10 /* between two looks whether they have been read */

/* --- connections --------------------------------------------------------------------------- */

/*
 * Those that were let in and have not said so: who takes up a place must come within this time.
 * The kernel repeats what gets lost after 4.3 s.
 */
#define MRF_HALF_MS 10000
#define MRF_HALF_PER_ADDR 32 /* so many from one address */
/* For another one the oldest goes, if it had this time; a peer that is well needs far less. */
#define MRF_HALF_GRACE_MS 500
/* Nobody listens there (yet), or it has no room: it may only just be starting, or be let down. */
#define MRF_RETRY_MS 100
#define MRF_RETRY_FIRST_MS 5 /* where there is no room; twice as long each time, up to the above */
/*
 * An answer to a request for a connection is awaited so long; then, as long as there is time, it is
 * asked for anew, and twice as long is waited: the kernel alone takes 4.3 s to repeat what got lost.
 */
#define MRF_DIAL_MS 2000
#define MRF_REFUSALS 5 /* by an address where nobody listens */
/* A peer that takes connections and drops them again before anything was done. */
#define MRF_LOSSES 5
/* The kernel looks for an address so long, and then again. */
#define MRF_RESOLVE_MS 250
/* Flushes come within milliseconds; do not wait for ever for ones that never will. */
#define MRF_DRAIN_MS 5000

/* --- one turn of the agent, after the application's commands were run --------------------- */

#define MRF_TURN_EVENTS 8   /* events of the connection manager */
#define MRF_TURN_KICKS 64   /* peers that the endpoints' operations want served */
#define MRF_TURN_TAKEN 256  /* completions taken in */
/*
 * Time for peers' questions and requests, one of each connection in turn. The last one is
 * finished whatever it takes; a command of the application ends the time at once.
 */
#define MRF_TURN_US 2000

#endif
