/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of connections: of ours to a peer (peer->state, guarded by ep->lock) and of
 * one that a peer has opened to us (passive->state, agent thread only). The tables here are
 * what the code works by: nothing but mrf_peer_move_locked and mrf_passive_move changes a
 * state.
 *
 * Ours, with the moves:
 *
 *	       DIAL		FOUND		 ASK		 UP
 *	IDLE -------> LOOKING -------> ROUTING -------> ASKING -------> READY
 *	 ^					          |		  | BREAK
 *	 |					          | PAUSE	  v
 *	 |					          v		BROKEN
 *	 |					        PAUSED		  | | DRAIN
 *	 |							      CUT | `-----> DRAINING
 *	 |							          v	       |
 *	 |	END, from each of the others			         CUT <---------'
 *	 `-------------------------------------------------------------	       CUT
 *
 *		  what it is				 rdma_cm's events that count
 *	IDLE	  there is no connection		 -
 *	LOOKING	  the kernel looks for the address	 address resolved, not in time, failed
 *	ROUTING	  it is there; the queue pair is made,	 route resolved, failed
 *		  a route is looked for
 *	ASKING	  the target was asked			 response, rejected, failed,
 *							 disconnected
 *	PAUSED	  the target had no room, or nobody	 -
 *		  listened: the deadline is the next
 *		  attempt
 *	READY	  operations are posted			 rejected, failed, disconnected
 *	BROKEN	  nothing is posted any more: what is	 likewise
 *		  in flight comes back
 *	DRAINING  the same; it has a deadline		 likewise
 *	CUT	  the same; we have put our queue pair	 -
 *		  into error
 *
 * The removal of the device counts in all of them but IDLE and CUT. An event that does not
 * count is ignored. BREAK leaves BROKEN, DRAINING and CUT as they are. Only the agent moves
 * a connection out of IDLE, LOOKING, ROUTING, ASKING, PAUSED, BROKEN, DRAINING and CUT.
 *
 * The invariant that holds between two calls to the agent's guest (mrf_peer_right_locked):
 *
 *		  connection  in flight	  deadline, of what
 *	IDLE	  no	      no	  -
 *	LOOKING	  yes	      no	  yes: all attempts
 *	ROUTING	  yes	      no	  yes: all attempts
 *	ASKING	  yes	      no	  yes: the answer
 *	PAUSED	  yes	      no	  yes: the pause
 *	READY	  yes	      perhaps	  only if it is probed: the next probe
 *	BROKEN	  yes	      perhaps	  perhaps: one of READY, which says nothing
 *	DRAINING  yes	      perhaps	  yes while something is in flight: that it comes back
 *	CUT	  yes	      perhaps	  likewise
 *
 * Questions and requests without an answer, and operations that have come back, exist only
 * from READY on.
 *
 * One that a peer has opened:
 *
 *	     ADMIT	      CONFIRM
 *	NEW -------> HALF ----------------> UP
 *		      |	BREAK		     | BREAK
 *		      v	      CONFIRM	     v
 *		 HALF_BROKEN ------------> BROKEN
 *
 *	each of them but NEW ---DISCONNECT--> DISCONNECTED
 *
 *		      what it is
 *	NEW	      its parts are made; the peer has not been let in
 *	HALF	      the peer was let in and has not confirmed it
 *	UP	      the peer is served
 *	HALF_BROKEN   its queue pair is in error: nothing can be answered. The peer
 *		      disconnects, or does not confirm it in time
 *	BROKEN	      likewise; the peer disconnects
 *	DISCONNECTED  we have disconnected; what landed before still counts. It is destroyed
 *		      at the end of the agent's turn
 *
 * It can be destroyed in each of them. CONFIRM leaves UP, BROKEN and DISCONNECTED as they
 * are, BREAK leaves HALF_BROKEN, BROKEN and DISCONNECTED, DISCONNECT leaves DISCONNECTED.
 *
 * The invariant that holds between two calls to the agent's guest (mrf_passive_right): HALF
 * and HALF_BROKEN, and only these, have a deadline and are in mrf_eps.half; DISCONNECTED, and
 * only that, is in mrf_eps.disconnected; only UP, with a message that waits, is in
 * mrf_eps.ready.
 */
#ifndef MRF_EP_MODEL_CONN_STATE_H
#define MRF_EP_MODEL_CONN_STATE_H

#include <stdbool.h>
#include "verbs/vcm.h"

/* --- ours ----------------------------------------------------------------------------- */

enum mrf_peer_state {
	MRF_PEER_IDLE,
	MRF_PEER_LOOKING,
	MRF_PEER_ROUTING,
	MRF_PEER_ASKING,
	MRF_PEER_PAUSED,
	MRF_PEER_READY,
	MRF_PEER_BROKEN,
	MRF_PEER_DRAINING,
	MRF_PEER_CUT,
	MRF_PEER_STATES
};

enum mrf_peer_move {
	MRF_PEER_DIAL,
	MRF_PEER_FOUND,
	MRF_PEER_ASK,
	MRF_PEER_PAUSE,
	MRF_PEER_UP,
	MRF_PEER_BREAK,
	MRF_PEER_DRAIN,
	MRF_PEER_TO_CUT,
	MRF_PEER_END,
	MRF_PEER_MOVES
};

/* A connection is being made, or will be when a pause is over. */
static inline bool mrf_peer_dials(enum mrf_peer_state state)
{
	return state >= MRF_PEER_LOOKING && state <= MRF_PEER_PAUSED;
}

static inline bool mrf_peer_is_broken(enum mrf_peer_state state)
{
	return state >= MRF_PEER_BROKEN;
}

/* Where the move leads to from this state; MRF_PEER_STATES: it is not in the diagram. */
enum mrf_peer_state mrf_peer_next(enum mrf_peer_state state, enum mrf_peer_move move);
/* Does an event of this type count in this state? */
bool mrf_peer_hears(enum mrf_peer_state state, enum mrf_cm_type type);

struct mrf_ep;
struct mrf_peer;

/*
 * Makes the move; ep->lock held. A move that is not in the diagram changes nothing, and
 * aborts in builds with --enable-lockrank.
 */
void mrf_peer_move_locked(struct mrf_peer *peer, enum mrf_peer_move move);
/* Does the invariant hold for the peer? Agent thread, ep->lock held. */
bool mrf_peer_right_locked(const struct mrf_peer *peer);
/*
 * Aborts if the invariant does not hold for one of the endpoint's peers; in builds with
 * --enable-lockrank. Agent thread, ep->lock held.
 */
#ifdef MRF_LOCKRANK
void mrf_peers_check_locked(const struct mrf_ep *ep);
#else
#define mrf_peers_check_locked(ep) ((void)(ep))
#endif

/* --- of a peer ------------------------------------------------------------------------ */

enum mrf_passive_state {
	MRF_PASSIVE_NEW,
	MRF_PASSIVE_HALF,
	MRF_PASSIVE_UP,
	MRF_PASSIVE_HALF_BROKEN,
	MRF_PASSIVE_BROKEN,
	MRF_PASSIVE_DISCONNECTED,
	MRF_PASSIVE_STATES
};

enum mrf_passive_move {
	MRF_PASSIVE_ADMIT,
	MRF_PASSIVE_CONFIRM,
	MRF_PASSIVE_BREAK,
	MRF_PASSIVE_DISCONNECT,
	MRF_PASSIVE_MOVES
};

/* The peer was let in and has not confirmed the connection. */
static inline bool mrf_passive_is_half(enum mrf_passive_state state)
{
	return state == MRF_PASSIVE_HALF || state == MRF_PASSIVE_HALF_BROKEN;
}

/* Where the move leads to from this state; MRF_PASSIVE_STATES: it is not in the diagram. */
enum mrf_passive_state mrf_passive_next(enum mrf_passive_state state, enum mrf_passive_move move);

/* --- both ----------------------------------------------------------------------------- */

/*
 * A connection is not as the tables say: aborts with this text and the two numbers, in
 * builds with --enable-lockrank.
 */
void mrf_conn_state_wrong(const char *what, unsigned state, unsigned move);

#endif
