/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often something is tried, how long something is waited for, how much one peer may ask
 * of another's agent, and how much the agent does for peers before it turns to its other
 * work. All of it is in one place, because together these numbers decide how long anybody
 * waits. mrfab(7) has the sums that a user sees ("HOW LONG AN OPERATION MAY TAKE"), with
 * the variables FI_MRFAB_ACK_TIMEOUT, _RETRY_COUNT, _CONN_TIMEOUT and _ANSWER_TIMEOUT;
 * tests/unit/t_budget.c compares them.
 */
#ifndef MRF_CONTRACT_BUDGET_H
#define MRF_CONTRACT_BUDGET_H

/* --- on one connection, kept by its initiator, enforced by its target --------------- */

#define MRF_ASKS 8	/* questions without an answer; the target may allow fewer */
#define MRF_REQUESTS 16 /* requests without a reply, in one message or several */

/* --- memory of devices ---------------------------------------------------------------- */

#define MRF_STAGE_PIECE (128ul << 10) /* copied at a time */
#define MRF_STAGE_PART (256ul << 10)  /* by a job for a peer, before others get their turns */
/* Peers of an agent that use such memory at a time (ep/rx/staging.h), */
#define MRF_STAGINGS 64
#define MRF_STAGINGS_PER_ADDR 48 /* at one address, so that one host does not take them all */
/* One that leaves it alone for so long makes room for another one, or goes anyway. */
#define MRF_STAGING_GRACE_MS 500
#define MRF_STAGING_MS 10000
/* Messages with requests of this type that are on the way at a time. */
#define MRF_STAGE_MESSAGES 2

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
/* Connections that an agent makes to one host at a time (ep/tx/permits.h). */
#define MRF_PERMITS 4
#define MRF_PERMIT_SILENT_MS 1000 /* all at a time, if the host answers none for so long */
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
/* Connections that have ended whose initiators may still ask how far they came. */
#define MRF_ENDS 128
#define MRF_ENDS_PER_ADDR 64 /* one address does not push out those of others */
/* Proofs given before one connection: a target that is busy forgets its challenges. */
#define MRF_CHALLENGES 3
/* Connections that a peer accepts and drops again before anything was done on them. */
#define MRF_LOSSES 5
/* Senders of messages that have no connection now and may come again (ep/msg/inbox.h). */
#define MRF_ORIGINS 4096
/* Frames that a sender may have on the way: at first, and if it uses them up. */
#define MRF_WINDOW_FIRST 8
#define MRF_WINDOW_MAX 64
/* Parts of long messages that a target has asked for on a line, and not received. */
#define MRF_GRANTS 8
/* ... and how many times it asks before the kernel has acknowledged that. */
#define MRF_GRANTS_SENT 3
/* The longest part of a message that is asked for at a time. */
#define MRF_GRANT_BYTES (1ul << 20)
/* Long messages of a sender that are received at a time: their buffers are pinned. */
#define MRF_PULLS 8
/* So many lines an endpoint keeps, and others until no message has gone over them for so long. */
#define MRF_LINES_KEPT 256
#define MRF_IDLE_MS 60000
/* A line over which nothing comes for so long is silent (ep/msg/silent.h). */
#define MRF_SILENT_MS 1000
/* A sender that has broken the protocol gets no other line for so long. */
#define MRF_BARRED_MS 1000
/* Messages of so few bytes go with their frame also where there is no room for more. */
#define MRF_SEND_FEW 64
/* Receives that an endpoint has posted at most. */
#define MRF_RECVS 1048576
/* How long fi_close waits until senders have been told what has come (ep/msg/farewell.h). */
#define MRF_FAREWELL_MS 50
/* How long nobody polls until the agent takes messages in itself. */
#define MRF_DUTY_MS 10
/* And how long it rests when it has done so, before the device tells it of more. */
#define MRF_REST_MS 1
/* How long the kernel gets to resolve an address before it is asked again. */
#define MRF_RESOLVE_MS 250
/*
 * Flushed work requests come back within milliseconds; this ends the wait for any that
 * never do.
 */
#define MRF_FLUSH_MS 100 /* for the receives of a queue pair that has ended */
#define MRF_DRAIN_MS 5000
/* A peer that owes an answer is probed this often: does its machine still answer? */
#define MRF_PROBE_MS 1000

/* --- one operation ------------------------------------------------------------------ */

/*
 * How often a read is done again after nobody has answered, and any operation after its
 * connection broke without a reason.
 */
#define MRF_TIMEOUTS 2
/*
 * How often the kernel may refuse an operation although each answer allows it: the region
 * comes and goes faster than we ask, or answer and kernel disagree. Memory that is pinned
 * on demand may move often; that is no reason to give up.
 */
#define MRF_OP_REFUSED 8
#define MRF_OP_REFUSED_ON_DEMAND 200
#define MRF_OP_REFUSED_KEPT 2 /* refused more often, it asks for pins of its own */
/*
 * While this many leases are open, only an operation that holds some of them may ask for
 * more, because it needs all of its buffers; every other operation waits until they are
 * released. A lease is an answer that is good once.
 */
#define MRF_LEASES 32
/*
 * Leases that nothing uses any more are released with the next question. Without one they are
 * released after this time, or as soon as nothing uses them then. A question that is held back to be
 * sent with others goes out by then, too.
 */
#define MRF_LEASE_MS 2

/* --- one question or request, at the target ----------------------------------------- */

#define MRF_PIN_TRIES 8 /* memory that changes while it is pinned this often is leased */
/*
 * Swaps and copies by the device in one turn of a connection, about 15 us each: a peer must not
 * keep the agent busy because it changes much memory, or memory that others change, too. The rest
 * is done in its next turns, and the agent takes in new messages before each. So a message waits
 * for up to two such turns of each other peer: tests/func/late.c.
 */
#define MRF_SWAPS 16

/* --- work beside the agent ---------------------------------------------------------- */

/* Threads of one agent; they start when there is something to do. */
#define MRF_FLUSH_THREADS 4
#define MRF_JOB_THREADS \
	64 /* so many peers' results may wait for the application's memory at a time */
#define MRF_FLUSH_PIECE (64ul << 20) /* bytes of a flush, before other peers' get their turn */
#define MRF_FLUSH_BURST (1ul << 20)  /* bytes made dirty, before others get the processor */

/* --- one turn of the agent, after the application's commands --------------------- */

#define MRF_TURN_EVENTS 8  /* events of the connection manager */
#define MRF_TURN_KICKS 64  /* peers whose operations need the agent */
#define MRF_TURN_TAKEN 256 /* completions of messages */
/*
 * Time for peers' questions and requests, one per connection in turn; and for each of these:
 * events, timers, kicks, connections that are closed. The last one is finished however long it
 * takes: the kernel may take 20 ms to close a connection. A command of the application ends the
 * time for peers at once.
 */
#define MRF_TURN_US 500

#endif
