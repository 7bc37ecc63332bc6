/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Redirects all calls of a function by a jump at its entry. This covers every caller:
 * other objects, objects that are loaded later, and the function's own library, which
 * calls itself by internal names (free calls __munmap, which is munmap).
 *
 * The jump replaces exactly one instruction and is written with one store of 16 bytes,
 * while other threads may be in the function: they execute either the old instruction or
 * the new one, never a mixture. The replaced instruction is executed from a copy, so that
 * patches made by others at the entry before stay in force. Only the few known forms of
 * entries are patched; all others are left alone.
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
	void *orig; /* calls the original function; set by prepare */
	/* private */
	unsigned char *block; /* the 16 bytes that contain the instruction */
	unsigned char before[16];
	unsigned char after[16];
};

/*
 * Allocates a writable page for the code of patches, close enough to a function for a
 * jump. NULL: there is none.
 */
void *mrf_patch_room(const void *function);
/*
 * Writes the code into room; nothing else changes. -FI_ENOSYS: this machine is not
 * supported; -FI_EOPNOTSUPP: the function begins in an unknown way.
 */
int mrf_patch_prepare(struct mrf_patch *patch, unsigned char *room);
/* Makes the room executable and read-only. 0 or -FI_E*. */
int mrf_patch_seal(void *room);
/* Writes the jump, or removes it. 0; or -FI_E*, and nothing has changed. */
int mrf_patch_apply(const struct mrf_patch *patch);
int mrf_patch_revert(const struct mrf_patch *patch);
/* Is the jump still there? Other libraries may patch the function, too. */
bool mrf_patch_holds(const struct mrf_patch *patch);

#endif
