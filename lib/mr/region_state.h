/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a region. mr->state is one of them, guarded by space->lock; this is the
 * only place that decides whether a region may be used.
 *
 *	       fi_mr_reg                     fi_mr_reg, domain reports to an EQ
 *	    |		  |			     |
 *	    | deferred	  |			     v
 *	    |		  |	  done, deferred  pending ---- it fails ---.
 *	    v		  |    .---------------------' | done		   |
 *	disabled <--------+----'		       |		   |
 *	    |		  |			       |		   v
 *	    | fi_mr_enable|			       |		failed
 *	    |		  v			       |		 | ^
 *	    `----------> enabled <---------------------'		 | |
 *			  |   ^						 | |
 *	    fi_mr_refresh |   | the last one returns			 | |
 *			  v   |						 | |
 *		       refreshing					 | |
 *									 | | the kernel
 *	all of them --- fi_close ---> closed <--- fi_close --------------' | keeps a MR
 *				       `-----------------------------------'
 *
 * The calls that the application may make in each state (others are refused with the
 * reason):
 *
 *		    fi_mr_bind	fi_mr_enable  fi_mr_refresh  fi_mr_raw_attr  fi_close
 *	closed	    -		-	      -		     -		     -
 *	pending	    yes		-	      -		     -		     yes
 *	disabled    yes		yes	      -		     -		     yes
 *	enabled	    -		no effect     yes	     yes	     yes
 *	refreshing  -		no effect     yes	     yes	     waits
 *	failed	    -		-	      -		     -		     yes
 *
 * fi_close waits for other threads that are pinning or refreshing the region. The mode
 * decides which objects a region can be bound to (bind.c); a counter can also be bound to
 * an enabled region that was not created disabled (event.c).
 *
 * The invariant that holds whenever space->lock is free (tests/unit/mr_right.h):
 *
 *		    holds the	in space->keys	fi_mr_key and	peers
 *		    domain			fi_mr_desc
 *	closed	    till gone	no		none		"closed", "unknown"
 *	pending	    yes		if requested	none		"disabled"
 *	disabled    yes		yes		none		"disabled"
 *	enabled	    yes		yes		as the mode is	served
 *	refreshing  yes		yes		as the mode is	served
 *	failed	    yes		no		none		"closed"
 *
 * Only regions with a remote right are in space->keys. Kernel regions exist in enabled
 * and refreshing only, with two exceptions: those of a failed region that the kernel
 * keeps, and while a thread that will change the state is making or dropping them. A
 * closed region is gone, and its fid of class UNSPEC, when its kernel regions and
 * everything else of it are gone.
 */
#ifndef MRF_MR_REGION_STATE_H
#define MRF_MR_REGION_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum mrf_mr_state {
	MRF_STATE_CLOSED, /* or never used */
	MRF_STATE_PENDING,
	MRF_STATE_DISABLED,
	MRF_STATE_ENABLED,
	MRF_STATE_REFRESHING,
	MRF_STATE_FAILED,
	MRF_STATES
};

enum mrf_mr_call {
	MRF_CALL_BIND,
	MRF_CALL_ENABLE,
	MRF_CALL_REFRESH,
	MRF_CALL_RAW_ATTR,
	MRF_CALL_CLOSE,
	MRF_CALLS
};

/*
 * The first table above: by state, the bits 1 << enum mrf_mr_call of the allowed calls.
 */
extern const uint8_t mrf_mr_state_calls[MRF_STATES];

static inline bool mrf_mr_state_lets(enum mrf_mr_state state, enum mrf_mr_call call)
{
	return mrf_mr_state_calls[state] >> call & 1;
}

/* Peers and descriptors may use the region. */
static inline bool mrf_mr_state_serves(enum mrf_mr_state state)
{
	return state == MRF_STATE_ENABLED || state == MRF_STATE_REFRESHING;
}

struct mrf_mr;

/* Aborts on a move that is not in the diagram; in builds with --enable-lockrank. */
#ifdef MRF_LOCKRANK
void mrf_mr_move_check(enum mrf_mr_state from, enum mrf_mr_state to);
#else
#define mrf_mr_move_check(from, to) ((void)0)
#endif

/* Logs why the call is refused in this state and returns the errno. */
int mrf_mr_state_refuse(const struct mrf_mr *mr, enum mrf_mr_state state, enum mrf_mr_call call);

/*
 * Brackets the work that a call does on a region without space->lock; the region cannot
 * go meanwhile, because fi_close waits for mrf_mr_leave. Refused (logged) if the state
 * does not allow the call; *state (state may be NULL) is the state at that moment. No
 * lock is held, except that mrf_mr_leave_locked is called with space->lock held.
 */
int mrf_mr_enter(struct mrf_mr *mr, enum mrf_mr_call call, enum mrf_mr_state *state);
/* As mrf_mr_enter, for a caller that has checked the state; space->lock is held. */
void mrf_mr_enter_locked(struct mrf_mr *mr);
void mrf_mr_leave(struct mrf_mr *mr);
void mrf_mr_leave_locked(struct mrf_mr *mr);
/*
 * Waits until no thread is between enter and leave. No lock is held; the region is closed.
 */
void mrf_mr_wait_left(struct mrf_mr *mr);

#endif
