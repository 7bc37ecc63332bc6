/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of the application that may be copied to by ordinary stores: the process's own (anonymous,
 * or its own copy of a page of a file), writable, and unchanged since the library found this out.
 * One small table per process holds pages that are used again and again.
 *
 * A thread that changes mappings (in a hook, monitor/change.h) announces it before and after. A
 * copier takes one of a few places, and only then checks that the page is still known; a thread
 * that begins a change counts it, and only then waits for the places that are taken. So either
 * the copier sees the change, or the change waits for the copier. The wait is limited, because
 * a copier may hang in a page that the application fills in itself (userfaultfd).
 *
 * Nothing is known before mrf_known_trust, nor while the hooks are not in force. A change
 * that no hook sees (a direct system call) makes a page that is known and gone look as if
 * it were there. Any thread; a signal handler may begin changes.
 */
#ifndef MRF_BASE_KNOWN_H
#define MRF_BASE_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At most so many threads copy at a time; the others find that nothing is known. */
#define MRF_KNOWN_PLACES 4
#define MRF_KNOWN_NO_PLACE MRF_KNOWN_PLACES

/* The changes so far, times MRF_KNOWN_CHANGE, and how many are under way. */
#define MRF_KNOWN_CHANGE 0x10000u
#define MRF_KNOWN_UNDER_WAY 0xffffu
extern __attribute__((visibility("hidden"))) _Atomic uint64_t mrf_known_counter;

/* From now on changes are announced while in_force returns true; refresh: hooks.h. */
void mrf_known_trust(bool (*in_force)(void), void (*refresh)(void));
/* Nothing is known for the rest of this process. */
void mrf_known_distrust(void);
/* Was any page ever known? */
bool mrf_known_any(void);

/*
 * A change of any mapping begins: forgets all pages, and waits for copies that are under way.
 * Keeps errno.
 */
void mrf_known_change(void);
void mrf_known_changed(void);

/*
 * Copy len bytes, if all their pages are known. False: nothing was copied.
 */
bool mrf_known_put(void *to, const void *from, size_t len);
/*
 * Finding out about a page costs as much as so many copies by the kernel (measured on Linux 6.1: 59
 * and 4 us), so that is done when as many were made since the last change. Whoever changes mappings
 * more often than that pays for nothing; nobody pays more than twice.
 */
#define MRF_KNOWN_USES 15
/* The kernel has just copied to these bytes, whose pages may be worth knowing. No lock is held. */
void mrf_known_used(const void *addr, size_t len);

/* The two halves of a copy. MRF_KNOWN_NO_PLACE: all are taken. */
unsigned mrf_known_enter(void);
bool mrf_known_is(const void *addr, size_t len);
void mrf_known_leave(unsigned place);

/* Called in a forked child, which has neither the other threads nor all of the memory. */
void mrf_known_in_child(void);

#endif
