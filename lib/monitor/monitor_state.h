/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor's lock (rank PIN), which process has the monitor, and how that learns of changes:
 * monitor.h, which includes this.
 */
#ifndef MRF_MONITOR_MONITOR_STATE_H
#define MRF_MONITOR_MONITOR_STATE_H

#include <signal.h>
#include <stdbool.h>

/*
 * False: changes are not reported (no client yet, FI_MR_CACHE_MONITOR=disabled, hooks or
 * userfaultfd not available, or this is a forked child), and mrf_monitor_watch_locked
 * always fails.
 */
bool mrf_monitor_usable(void);

void mrf_monitor_lock(void);
void mrf_monitor_unlock(void);
/*
 * Releases the lock for something brief, and takes it again in the same thread. Its signals
 * stay blocked meanwhile, which costs less than two system calls.
 */
struct mrf_monitor_pause {
	sigset_t signals;
};
void mrf_monitor_pause_locked(struct mrf_monitor_pause *pause);
void mrf_monitor_resume(const struct mrf_monitor_pause *pause);
/* As mrf_lock_held: aborts in builds with --enable-lockrank unless the lock is held. */
#ifdef MRF_LOCKRANK
void mrf_monitor_held(void);
#else
#define mrf_monitor_held() ((void)0)
#endif

/* --- inside lib/monitor --------------------------------------------------------------- */

/* Does the calling thread hold the lock? */
bool mrf_monitor_holds(void);

/* The source of reports. All false: there is no monitor. Guarded by the lock. */
extern struct mrf_monitor_parts {
	bool hooks;
	bool uffd;   /* userfaultfd (uffd.h, which is open) */
	bool import; /* the application's own monitor (imported.h), and neither of the others */
} mrf_monitor_parts;

/* This process has the monitor, or nobody has it. */
void mrf_monitor_own(bool own);
/* In a forked child: nobody has the monitor, or its lock. True: the parent had a monitor. */
bool mrf_monitor_forget_state(void);

#endif
