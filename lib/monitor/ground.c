/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include "base/compiler.h"
#include "monitor/ground.h"

/*
 * A range: the chunk's address, and in the bits below it the step, the first page and the
 * last one. 0: none, so there is no ground in the first chunk of all.
 */
#define PAGE_SHIFT 12 /* of the smallest page */
#define FIRST_SHIFT 9
#define STEP_SHIFT 18
#define NUMBER 511u

static atomic_uintptr_t sets[MRF_GROUND_SETS][MRF_GROUND_WAYS];
static unsigned count;

_Static_assert(MRF_CHUNK >> PAGE_SHIFT == NUMBER + 1, "a page's number has 9 bits");
_Static_assert(MRF_CHUNK >> STEP_SHIFT > MRF_GROUND_EXACT, "a step has the bits above");

static uintptr_t chunk_with(uintptr_t addr)
{
	return addr & ~(MRF_CHUNK - 1);
}

static atomic_uintptr_t *set_of(uintptr_t addr)
{
	return sets[addr / MRF_CHUNK % MRF_GROUND_SETS];
}

static uintptr_t pack(const struct mrf_ground *range)
{
	uintptr_t chunk = chunk_with(range->start);

	return chunk | (uintptr_t)range->step << STEP_SHIFT |
	       (range->start - chunk) >> PAGE_SHIFT << FIRST_SHIFT |
	       (range->end - 1 - chunk) >> PAGE_SHIFT;
}

static uintptr_t start_in(uintptr_t word)
{
	return chunk_with(word) + ((word >> FIRST_SHIFT & NUMBER) << PAGE_SHIFT);
}

static uintptr_t end_in(uintptr_t word)
{
	return chunk_with(word) + (((word & NUMBER) + 1) << PAGE_SHIFT);
}

static struct mrf_ground unpack(uintptr_t word)
{
	return (struct mrf_ground){ .start = start_in(word),
				    .end = end_in(word),
				    .step = word >> STEP_SHIFT & MRF_GROUND_EXACT };
}

static bool overlaps(uintptr_t word, uintptr_t start, uintptr_t end)
{
	return word && start_in(word) < end && end_in(word) > start;
}

static uintptr_t word_at(const atomic_uintptr_t *set, unsigned i)
{
	return atomic_load(&set[i]);
}

/* Looks at each set once. */
bool mrf_ground_next(uintptr_t start, uintptr_t end, unsigned *at, struct mrf_ground *found)
{
	uintptr_t first = start / MRF_CHUNK, last = (end - 1) / MRF_CHUNK;
	unsigned n = (unsigned)mrf_min(last - first + 1, MRF_GROUND_SETS) * MRF_GROUND_WAYS;

	for (; *at < n; ++*at) {
		uintptr_t set = (first + *at / MRF_GROUND_WAYS) % MRF_GROUND_SETS;
		uintptr_t word = word_at(sets[set], *at % MRF_GROUND_WAYS);

		if (overlaps(word, start, end)) {
			*found = unpack(word);
			++*at;
			return true;
		}
	}
	return false;
}

/* In most cases there is nothing of the chunk: then four words are compared. */
bool mrf_ground_touches(uintptr_t start, uintptr_t end)
{
	uintptr_t chunk = chunk_with(start);
	const atomic_uintptr_t *set;
	struct mrf_ground found;
	unsigned i = 0;

	if (mrf_unlikely(chunk_with(end - 1) != chunk))
		return mrf_ground_next(start, end, &i, &found);
	set = set_of(start);
	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		uintptr_t word = word_at(set, i);

		if (mrf_unlikely(chunk_with(word) == chunk) && overlaps(word, start, end))
			return true;
	}
	return false;
}

bool mrf_ground_has(uintptr_t start, uintptr_t end)
{
	const atomic_uintptr_t *set = set_of(start);
	unsigned i;

	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		uintptr_t word = word_at(set, i);

		if (word && start_in(word) <= start && end_in(word) >= end)
			return true;
	}
	return false;
}

bool mrf_ground_first(uintptr_t start, uintptr_t end, struct mrf_ground *found)
{
	const atomic_uintptr_t *set = set_of(start);
	bool any = false;
	unsigned i;

	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		uintptr_t word = word_at(set, i);

		if (overlaps(word, start, end) && (!any || start_in(word) < found->start)) {
			*found = unpack(word);
			any = true;
		}
	}
	return any;
}

bool mrf_ground_in_set(uintptr_t addr, unsigned i, struct mrf_ground *found)
{
	uintptr_t word = word_at(set_of(addr), i);

	if (word)
		*found = unpack(word);
	return word;
}

bool mrf_ground_add(const struct mrf_ground *range)
{
	atomic_uintptr_t *set = set_of(range->start);
	unsigned i;

	for (i = 0; chunk_with(range->start) && i < MRF_GROUND_WAYS; i++) {
		if (!word_at(set, i)) {
			atomic_store(&set[i], pack(range));
			count++;
			return true;
		}
	}
	return false;
}

/* Puts a word in the place of a range; 0: removes the range. */
static void replace_word(const struct mrf_ground *range, uintptr_t with)
{
	uintptr_t step = (uintptr_t)MRF_GROUND_EXACT << STEP_SHIFT, word = pack(range) & ~step;
	atomic_uintptr_t *set = set_of(range->start);
	unsigned i;

	for (i = 0; i < MRF_GROUND_WAYS; i++) {
		if (!word_at(set, i) || (word_at(set, i) & ~step) != word)
			continue;
		atomic_store(&set[i], with);
		count -= !with;
		return;
	}
}

void mrf_ground_remove(const struct mrf_ground *range)
{
	replace_word(range, 0);
}

static uintptr_t size(const struct mrf_ground *range)
{
	return range->end - range->start;
}

/* A reader without the lock finds every range that stays, at any time. */
bool mrf_ground_cut(const struct mrf_ground *range, uintptr_t start, uintptr_t end,
		    struct mrf_ground *lost)
{
	struct mrf_ground low = *range, high = *range;

	low.step = high.step = mrf_min(range->step + 1, MRF_GROUND_EXACT);
	low.end = mrf_max(mrf_min(start, range->end), range->start);
	high.start = mrf_min(mrf_max(end, range->start), range->end);
	if (!size(&low) && !size(&high)) {
		replace_word(range, 0);
	} else if (!size(&low) || !size(&high)) {
		replace_word(range, pack(size(&low) ? &low : &high));
	} else if (mrf_ground_add(&high)) {
		replace_word(range, pack(&low));
	} else {
		*lost = size(&low) < size(&high) ? low : high;
		replace_word(range, pack(size(&low) < size(&high) ? &high : &low));
		return true;
	}
	return false;
}

unsigned mrf_ground_count(void)
{
	return count;
}

void mrf_ground_clear(void)
{
	unsigned i, way;

	for (i = 0; i < MRF_GROUND_SETS; i++) {
		for (way = 0; way < MRF_GROUND_WAYS; way++)
			atomic_store(&sets[i][way], 0);
	}
	count = 0;
}
