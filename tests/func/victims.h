/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process survives; others come, one after the other, deal with it, and are killed at some
 * moment: while they open, connect, ask, or in the middle of transfers. The worker forks all of
 * them, with memory that they share, and calls nothing of the library itself.
 *
 * A moment is the life of one victim. MRFAB_SEED makes others (1).
 */
#ifndef FUNC_VICTIMS_H
#define FUNC_VICTIMS_H

#include <stdatomic.h>
#include "env.h"

#define WARM 4	      /* moments until the survivor has all that it keeps */
#define IN_TIME 10000 /* ms; what mrfab(7) says of a peer that goes */

/* Who starts transfers. */
enum role { BOTH, SURVIVOR_ONLY, VICTIM_ONLY, ROLES };

/* What they share: the beginning of what a program's processes do. */
struct victims {
	atomic_bool survivor_there, victim_there;
	atomic_uint current; /* number of the victim; 0: end */
	atomic_uint role;
	atomic_bool dying; /* is about to be killed */
	atomic_bool killed;
	atomic_uint done; /* the survivor is done with this one */
	/* Transfers that the current victim and the survivor started and that were successes. */
	atomic_uint served_by_victim, served_by_survivor;
	/* For people. */
	long worst_ms;
	unsigned errors, finished;
	size_t heap_early, heap_late; /* bytes of the survivor's */
	char text[900];		      /* what failed in a child; empty: nothing */
};

struct plan {
	void (*survivor)(const struct mode *mode);
	void (*victim)(const struct mode *mode, unsigned number);
	unsigned part; /* of the program, for the seed and the report */
	unsigned moments;
	bool at_work;  /* victims alone start transfers, and none dies before it has */
	unsigned last; /* the last one lives until so many went well both ways; 0: as the others */
	/* After so many moments the survivor has the kernel objects that it keeps. */
	unsigned counted;
	size_t slack; /* bytes of the survivor's that may be more in the end than after WARM */
};

/* size: with all that lies behind struct victims. */
void *victims_open(size_t size);
void victims_run(struct env *e, const struct plan *plan);
void victims_close(void);

/* --- for the survivor ------------------------------------------------------------------ */

/* The next victim's number, or 0: the end. */
unsigned victims_next(unsigned number);
/* Waits for the victim to be there; false: it was killed before. */
bool victims_met(void);
/* What it started with this victim failed: may it? */
void victims_error(unsigned number, int err);
/* All that it started has ended, and it was killed at this time. */
void victims_ended(long killed);
/* It is done with this one. */
void victims_done(unsigned number);

#endif
