/* SPDX-License-Identifier: BSD-2-Clause */
/* The entries of an address vector: found without a lock, in chunks that never move. */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "obj/av_int.h"
#include "obj/av_table.h"

#define NO_INDEX SIZE_MAX

void mrf_av_table_init(struct mrf_av *av)
{
	mrf_list_init(&av->watches);
	av->free_first = NO_INDEX;
	av->free_last = NO_INDEX;
}

void mrf_av_table_fini(struct mrf_av *av)
{
	size_t i;

	for (i = 0; i < MRF_AV_CHUNKS; i++)
		free(atomic_load(&av->chunks[i]));
}

static struct mrf_av_entry *entry_at(const struct mrf_av *av, fi_addr_t i)
{
	struct mrf_av_entry *chunk;
	size_t offset, c;

	if (i >= ((fi_addr_t)1 << (MRF_AV_FIRST_BITS + MRF_AV_CHUNKS)) - (1 << MRF_AV_FIRST_BITS))
		return NULL;
	c = mrf_av_chunk_of(i, &offset);
	chunk = atomic_load_explicit(&av->chunks[c], memory_order_acquire);
	return chunk ? &chunk[offset] : NULL;
}

/* The entry of a fresh index; NULL: no memory. */
static struct mrf_av_entry *entry_new_locked(struct mrf_av *av, size_t i)
{
	struct mrf_av_entry *chunk;
	size_t offset, c = mrf_av_chunk_of(i, &offset);

	if (c >= MRF_AV_CHUNKS)
		return NULL;
	chunk = atomic_load(&av->chunks[c]);
	if (!chunk) {
		chunk = calloc((size_t)1 << (MRF_AV_FIRST_BITS + c), sizeof(*chunk));
		if (!chunk)
			return NULL;
		atomic_store_explicit(&av->chunks[c], chunk, memory_order_release);
	}
	return &chunk[offset];
}

uint64_t mrf_av_gen(const struct mrf_av *av, fi_addr_t fi_addr)
{
	struct mrf_av_entry *entry = entry_at(av, fi_addr);

	return entry ? atomic_load_explicit(&entry->gen, memory_order_acquire) : 0;
}

const _Atomic uint64_t *mrf_av_gen_word(const struct mrf_av *av, fi_addr_t fi_addr)
{
	struct mrf_av_entry *entry = entry_at(av, fi_addr);

	return entry ? &entry->gen : NULL;
}

int mrf_av_get(const struct mrf_av *av, fi_addr_t fi_addr, union mrf_addr *addr)
{
	struct mrf_av_entry *entry = entry_at(av, fi_addr);
	uint32_t words[MRF_AV_WORDS];
	uint64_t gen = entry ? atomic_load(&entry->gen) : 0;
	size_t i;

	if (!gen)
		return -FI_EADDRNOTAVAIL;
	for (i = 0; i < MRF_AV_WORDS; i++)
		words[i] = atomic_load_explicit(&entry->words[i], memory_order_acquire);
	if (atomic_load(&entry->gen) != gen)
		return -FI_EADDRNOTAVAIL;
	memcpy(addr, words, sizeof(words));
	return 0;
}

/* Counts a change of the table. */
static uint64_t count_change_locked(struct mrf_av *av)
{
	uint64_t n = atomic_load_explicit(&av->changes, memory_order_relaxed) + 1;

	atomic_store_explicit(&av->changes, n, memory_order_release);
	return n;
}

static void fill_locked(struct mrf_av *av, struct mrf_av_entry *entry, const union mrf_addr *addr)
{
	uint32_t words[MRF_AV_WORDS];
	size_t i;

	memcpy(words, addr, sizeof(words));
	for (i = 0; i < MRF_AV_WORDS; i++)
		atomic_store_explicit(&entry->words[i], words[i], memory_order_release);
	atomic_store(&entry->gen, count_change_locked(av));
	atomic_fetch_add(&av->count, 1);
}

/* fi_av(3): a table gives out its lowest unused index. */
static size_t lowest_free_locked(struct mrf_av *av)
{
	while (av->lowest < av->used && mrf_av_gen(av, av->lowest))
		av->lowest++;
	return av->lowest < av->used ? av->lowest : NO_INDEX;
}

static size_t oldest_free_locked(struct mrf_av *av)
{
	size_t i = av->free_first;

	if (i == NO_INDEX)
		return NO_INDEX;
	av->free_first = entry_at(av, i)->next_free;
	if (av->free_first == NO_INDEX)
		av->free_last = NO_INDEX;
	return i;
}

int mrf_av_insert_locked(struct mrf_av *av, const union mrf_addr *addr, fi_addr_t *fi_addr)
{
	size_t i = av->table ? lowest_free_locked(av) : oldest_free_locked(av);
	struct mrf_av_entry *entry;

	mrf_lock_held(&av->lock);
	if (i == NO_INDEX) {
		i = av->used;
		entry = entry_new_locked(av, i);
		if (!entry)
			return -FI_ENOMEM;
		av->used++;
	} else {
		entry = entry_at(av, i);
	}
	fill_locked(av, entry, addr);
	*fi_addr = i;
	return 0;
}

void mrf_av_remove_locked(struct mrf_av *av, size_t i)
{
	struct mrf_av_entry *entry = entry_at(av, i);

	mrf_lock_held(&av->lock);
	atomic_store(&entry->gen, 0);
	count_change_locked(av);
	atomic_fetch_sub(&av->count, 1);
	if (av->table) {
		av->lowest = mrf_min(av->lowest, i);
		return;
	}
	entry->next_free = NO_INDEX;
	if (av->free_last == NO_INDEX)
		av->free_first = i;
	else
		entry_at(av, av->free_last)->next_free = i;
	av->free_last = i;
}
