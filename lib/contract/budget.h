/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much one peer may ask of another's agent, and how much the agent does for peers
 * before it turns to its other work. All of it is in one place, because together these
 * numbers decide how long anybody waits.
 */
#ifndef MRF_CONTRACT_BUDGET_H
#define MRF_CONTRACT_BUDGET_H

/* --- on one connection, kept by its initiator, enforced by its target --------------- */

#define MRF_ASKS 8      /* questions without an answer; the target may allow fewer */
#define MRF_REQUESTS 16 /* requests without a reply, in one message or several */

/* --- immediate data from peers ----------------------------------------------------- */

/*
 * While the application has left this many completions unread, no more immediate data are
 * accepted from peers: they wait at the peer, together with everything that it sends
 * behind them on the same connection.
 */
#define MRF_UNREAD_MAX 65536
#define MRF_UNREAD_MS 10 /* how often to check whether they have been read */

/* --- connections -------------------------------------------------------------------- */

/*
 * An accepted peer occupies a place and has to confirm the connection within this time.
 * The kernel repeats a lost message after 4.3 s.
 */
#define MRF_HALF_MS 10000
#define MRF_HALF_PER_ADDR 32 /* unconfirmed connections from one address */
/*
 * To accept one more, the oldest is dropped if it has had this long; a healthy peer needs
 * far less.
 */
#define MRF_HALF_GRACE_MS 500
/*
 * The next attempt after a peer did not listen or had no room: it may just be starting,
 * or room may be freed soon.
 */
#define MRF_RETRY_MS 100
#define MRF_RETRY_FIRST_MS 5 /* if it had no room; doubles up to MRF_RETRY_MS */
/*
 * How long to wait for the answer to a connection request. After that, as long as there
 * is time, a new request goes out and is given twice as long: the kernel alone takes 4.3
 * s to repeat a lost message.
 */
#define MRF_DIAL_MS 2000
#define MRF_REFUSALS 5 /* attempts at an address where nobody listens */
/* Connections that a peer accepts and drops again before anything was done on them. */
#define MRF_LOSSES 5
/* How long the kernel gets to resolve an address before it is asked again. */
#define MRF_RESOLVE_MS 250
/*
 * Flushed work requests come back within milliseconds; this ends the wait for any that
 * never do.
 */
#define MRF_DRAIN_MS 5000

/* --- one turn of the agent, after the application's commands --------------------- */

#define MRF_TURN_EVENTS 8   /* events of the connection manager */
#define MRF_TURN_KICKS 64   /* peers whose operations need the agent */
#define MRF_TURN_TAKEN 256  /* completions taken from agent->cq */
/*
 * Time for peers' questions and requests, one per connection in turn. The last one is
 * finished however long it takes; a command of the application ends the time at once.
 */
#define MRF_TURN_US 2000

#endif
