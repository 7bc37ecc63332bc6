/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "base/compiler.h"
#include "monitor/discard.h"

static void remove_at(struct mrf_discards *set, unsigned i, unsigned n)
{
	memmove(&set->entry[i], &set->entry[i + n], (set->count - i - n) * sizeof(set->entry[0]));
	set->count -= n;
}

static void insert_at(struct mrf_discards *set, unsigned i, const struct mrf_discard *entry)
{
	memmove(&set->entry[i + 1], &set->entry[i], (set->count - i) * sizeof(set->entry[0]));
	set->entry[i] = *entry;
	set->count++;
}

/* Joins the two entries with the least room between them. */
static void merge_nearest(struct mrf_discards *set)
{
	uintptr_t gap, least = UINTPTR_MAX;
	struct mrf_discard *entry;
	unsigned i, at = 0;

	for (i = 0; i + 1 < set->count; i++) {
		gap = set->entry[i + 1].start - set->entry[i].end;
		if (gap < least) {
			least = gap;
			at = i;
		}
	}
	entry = &set->entry[at];
	entry->end = entry[1].end;
	entry->at = mrf_max(entry->at, entry[1].at);
	entry->armed = entry->armed || entry[1].armed;
	remove_at(set, at + 1, 1);
}

void mrf_discard_add(struct mrf_discards *set, uintptr_t start, uintptr_t end, uint64_t now)
{
	struct mrf_discard entry = { .start = start, .end = end, .at = now };
	unsigned i = 0, n = 0;

	while (i < set->count && set->entry[i].end < start)
		i++;
	while (i + n < set->count && set->entry[i + n].start <= end) {
		entry.start = mrf_min(entry.start, set->entry[i + n].start);
		entry.end = mrf_max(entry.end, set->entry[i + n].end);
		entry.armed = entry.armed || set->entry[i + n].armed;
		n++;
	}
	remove_at(set, i, n);
	insert_at(set, i, &entry);
	if (set->count > MRF_DISCARDS)
		merge_nearest(set);
}

void mrf_discard_unmapped(struct mrf_discards *set, uintptr_t start, uintptr_t end, uint64_t now)
{
	unsigned i = 0;

	while (i < set->count) {
		const struct mrf_discard *entry = &set->entry[i];

		if (entry->start >= start && entry->end <= end && now - entry->at >= MRF_DISCARD_MS)
			remove_at(set, i, 1);
		else
			i++;
	}
}

struct mrf_discard *mrf_discard_find(struct mrf_discards *set, uintptr_t start, uintptr_t end)
{
	unsigned i;

	for (i = 0; i < set->count; i++) {
		if (set->entry[i].end > start && set->entry[i].start < end)
			return &set->entry[i];
	}
	return NULL;
}
