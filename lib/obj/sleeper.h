/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads that are blocked on one wait object. Each has a bell of its own, so that no
 * thread can steal another's wakeup; bells are kept for the next threads.
 */
#ifndef MRF_OBJ_SLEEPER_H
#define MRF_OBJ_SLEEPER_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/lock.h"

/*
 * An eventfd that many threads may ring and one silences; ringing it again costs no system
 * call. Its owner closes fd.
 */
struct mrf_bell {
	int fd;
	atomic_bool rung;
};

/* 0, or the error of eventfd(2). */
int mrf_bell_init(struct mrf_bell *bell);
/* Makes fd readable. Any thread, any lock held. */
void mrf_bell_ring(struct mrf_bell *bell);
/*
 * Makes fd unreadable. What was announced by a ring before this call is visible to the
 * caller afterwards.
 */
void mrf_bell_silence(struct mrf_bell *bell);

struct mrf_sleeper {
	struct mrf_list node; /* in asleep or spare */
	struct mrf_bell bell;
};

struct mrf_sleepers {
	struct mrf_lock lock; /* rank WAKE: guards the lists */
	struct mrf_list asleep;
	struct mrf_list spare;
};

void mrf_sleepers_init(struct mrf_sleepers *all);
/* No thread may be asleep. */
void mrf_sleepers_fini(struct mrf_sleepers *all);

/*
 * From now on mrf_sleepers_wake rings the bell of the calling thread. NULL (logged): there is
 * no memory or no descriptor, as errno says.
 */
struct mrf_sleeper *mrf_sleeper_begin(struct mrf_sleepers *all);
void mrf_sleeper_end(struct mrf_sleepers *all, struct mrf_sleeper *sleeper);

/* Any thread, any lock held. */
void mrf_sleepers_wake(struct mrf_sleepers *all);
unsigned mrf_sleepers_count(struct mrf_sleepers *all);

#endif
