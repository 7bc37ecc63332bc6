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
#define MRF_REQUESTS 1 /* requests without a reply */

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
