/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges that were discarded (MADV_DONTNEED, MADV_FREE). A table of fixed size, because
 * it is written while memory can neither be allocated nor freed. When it is full, the two
 * ranges nearest to each other are merged, which errs only on the safe side. Pure; the
 * caller serialises.
 */
#ifndef MRF_MONITOR_DISCARD_H
#define MRF_MONITOR_DISCARD_H

#include <stdbool.h>
#include <stdint.h>

#define MRF_DISCARDS 128
#define MRF_DISCARD_MS 10000 /* by then the kernel has surely discarded it */

struct mrf_discard {
	uintptr_t start;
	uintptr_t end;
	uint64_t at; /* ms: time of the latest discard in the range */
	bool armed;  /* registered with the kernel, so that its unmap is reported */
};

/* Sorted entries that neither overlap nor touch. All 0: empty. */
struct mrf_discards {
	unsigned count;
	struct mrf_discard entry[MRF_DISCARDS + 1];
};

void mrf_discard_add(struct mrf_discards *set, uintptr_t start, uintptr_t end, uint64_t now);
/* Forgets entries that lie wholly inside the range and are older than MRF_DISCARD_MS. */
void mrf_discard_unmapped(struct mrf_discards *set, uintptr_t start, uintptr_t end, uint64_t now);
/* The first entry that overlaps the range, or NULL. */
struct mrf_discard *mrf_discard_find(struct mrf_discards *set, uintptr_t start, uintptr_t end);

#endif
