/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending the calls of a function elsewhere by a jump at its entry. So every caller is
 * met: other objects, those that are loaded later, and the library that the function is
 * in, which calls itself by its internal names (free calls __munmap, which is munmap).
 *
 * The jump takes the place of exactly one instruction and is written with one store of 16
 * bytes, while other threads may be in the function: they find either the old one or
 * the new one, and nobody is ever in the middle of it. What was replaced goes on in a
 * copy, so that what others have put at the entry before stays in force. Entries that do
 * not allow it are left alone: this file knows the few forms that they have.
 *
 * x86-64 only; the caller serialises.
 */
#ifndef MRF_MONITOR_PATCH_H
#define MRF_MONITOR_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRF_PATCH_ROOM 128 /* bytes for the code of one patch */

struct mrf_patch {
	void *function;
	void *hook; /* called instead */
	void *orig; /* does what function did; set by prepare */
	/* private */
	unsigned char *block; /* 16 bytes that have the instruction */
	unsigned char before[16];
	unsigned char after[16];
};

/*
 * A page for the code of patches, near enough to a function for a jump; writable. NULL:
 * none can be had.
 */
void *mrf_patch_room(const void *function);
/*
 * Writes the code into room; nothing else changes. -FI_ENOSYS: not on this machine,
 * -FI_EOPNOTSUPP: the function begins in a way that is not known here.
 */
int mrf_patch_prepare(struct mrf_patch *patch, unsigned char *room);
/* Makes the room executable and read-only. 0 or -FI_E*. */
int mrf_patch_seal(void *room);
/* Puts the jump in, or takes it out. 0, or -FI_E* and nothing has changed. */
int mrf_patch_apply(const struct mrf_patch *patch);
int mrf_patch_revert(const struct mrf_patch *patch);
/* Is the jump still there? Others may patch, too. */
bool mrf_patch_holds(const struct mrf_patch *patch);

#endif
