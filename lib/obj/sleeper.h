/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads that are blocked on one wait object. Each has a bell of its own, so that no
 * thread can steal another's wakeup; bells are kept for the next threads.
 */
#ifndef MRF_OBJ_SLEEPER_H
#define MRF_OBJ_SLEEPER_H

#include "base/list.h"
#include "base/lock.h"
#include "obj/bell.h"

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
