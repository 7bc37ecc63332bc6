/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "mr/mr_int.h"

/* A descriptor: tag in bits 63..48, generation in 47..24, slot number in 23..0. */
#define GEN_SHIFT MRF_DESC_INDEX_BITS
#define TAG_SHIFT (MRF_DESC_INDEX_BITS + MRF_DESC_GEN_BITS)
#define INDEX_MASK ((1u << MRF_DESC_INDEX_BITS) - 1)
#define NO_SLOT UINT32_MAX

_Static_assert(sizeof(void *) == 8, "a descriptor needs a pointer of 64 bits");
_Static_assert(sizeof(struct mrf_desc_slot) == 64, "a slot fills a cache line");

/* Chunk 0 holds slots 0..255, chunk n > 0 the slots from 128 << n up to twice that. */
static unsigned chunk_of(uint32_t index)
{
	uint32_t high = index / MRF_DESC_CHUNK0;

	return high ? 32 - (unsigned)__builtin_clz(high) : 0;
}

static uint32_t chunk_start(unsigned chunk)
{
	return chunk ? (uint32_t)MRF_DESC_CHUNK0 << (chunk - 1) : 0;
}

static uint32_t chunk_slots(unsigned chunk)
{
	return chunk ? chunk_start(chunk) : MRF_DESC_CHUNK0;
}

static struct mrf_desc_slot *slot_at(const struct mrf_desc_table *table, uint32_t index)
{
	unsigned chunk = chunk_of(index);
	struct mrf_desc_slot *slots =
		atomic_load_explicit(&table->chunk[chunk], memory_order_acquire);

	return slots ? &slots[index - chunk_start(chunk)] : NULL;
}

struct mrf_desc_table *mrf_desc_table_new(void)
{
	static atomic_uint tables;
	struct mrf_desc_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->tag = 1 + atomic_fetch_add(&tables, 1) % UINT16_MAX;
	table->first_free = NO_SLOT;
	return table;
}

void mrf_desc_table_free(struct mrf_desc_table *table)
{
	unsigned i;

	for (i = 0; i < MRF_DESC_CHUNKS; i++)
		free(atomic_load_explicit(&table->chunk[i], memory_order_relaxed));
	free(table);
}

/* A slot number that was never used, with memory behind it. */
static int extend(struct mrf_desc_table *table, uint32_t *index)
{
	unsigned chunk = chunk_of(table->used);
	struct mrf_desc_slot *slots;

	if (table->used > INDEX_MASK)
		return -FI_ENOMEM;
	if (!atomic_load_explicit(&table->chunk[chunk], memory_order_relaxed)) {
		slots = calloc(chunk_slots(chunk), sizeof(*slots));
		if (!slots)
			return -FI_ENOMEM;
		atomic_store_explicit(&table->chunk[chunk], slots, memory_order_release);
	}
	*index = table->used++;
	return 0;
}

static void put(_Atomic uint64_t *word, uint64_t value)
{
	/* Release: who sees the new word also sees that the slot had gone dead before. */
	atomic_store_explicit(word, value, memory_order_release);
}

static uint64_t get(const _Atomic uint64_t *word)
{
	/* Acquire: keeps the second look at the state behind the copy. */
	return atomic_load_explicit(word, memory_order_acquire);
}

int mrf_desc_add(struct mrf_desc_table *table, const struct mrf_mr *mr, void **desc)
{
	const struct mrf_mr_seg *seg = mr->seg;
	struct mrf_desc_slot *slot;
	uint32_t index, state;
	int ret;

	if (table->first_free != NO_SLOT) {
		index = table->first_free;
		slot = slot_at(table, index);
		table->first_free = slot->next_free;
	} else {
		ret = extend(table, &index);
		if (ret)
			return ret;
		slot = slot_at(table, index);
	}
	put(&slot->access, mr->access);
	put(&slot->nseg, mr->nseg);
	put(&slot->segs, mr->nseg > 1 ? (uintptr_t)seg : 0);
	put(&slot->addr, seg->addr);
	put(&slot->len, seg->len);
	put(&slot->iova, seg->iova);
	put(&slot->keys, (uint64_t)seg->lkey << 32 | seg->rkey);
	state = atomic_load_explicit(&slot->state, memory_order_relaxed);
	atomic_store_explicit(&slot->state, state | 1, memory_order_release);
	*desc = (void *)((uintptr_t)table->tag << TAG_SHIFT |
			 (uintptr_t)(state >> 1) << GEN_SHIFT | index);
	return 0;
}

void mrf_desc_del(struct mrf_desc_table *table, void *desc)
{
	uint32_t index = (uintptr_t)desc & INDEX_MASK;
	uint32_t gen = (uintptr_t)desc >> GEN_SHIFT & MRF_DESC_GEN_MAX;
	struct mrf_desc_slot *slot;

	if (!desc)
		return;
	slot = slot_at(table, index);
	if (gen == MRF_DESC_GEN_MAX) {
		/* Retired: another use would make a descriptor that was valid before. */
		atomic_store_explicit(&slot->state, gen << 1, memory_order_release);
		return;
	}
	atomic_store_explicit(&slot->state, (gen + 1) << 1, memory_order_release);
	slot->next_free = table->first_free;
	table->first_free = index;
}

bool mrf_desc_get(const struct mrf_mr_space *space, const void *desc,
		  struct mrf_desc *out)
{
	const struct mrf_desc_table *table = space->descs;
	uintptr_t value = (uintptr_t)desc;
	uint32_t live = (uint32_t)(value >> GEN_SHIFT & MRF_DESC_GEN_MAX) << 1 | 1;
	const struct mrf_desc_slot *slot;
	uint64_t keys;

	if (mrf_unlikely(value >> TAG_SHIFT != table->tag))
		return false;
	slot = slot_at(table, value & INDEX_MASK);
	if (mrf_unlikely(!slot || atomic_load_explicit(&slot->state,
						       memory_order_acquire) != live))
		return false;
	out->access = get(&slot->access);
	out->nseg = (unsigned)get(&slot->nseg);
	out->segs = (const struct mrf_mr_seg *)(uintptr_t)get(&slot->segs);
	out->seg.addr = get(&slot->addr);
	out->seg.len = get(&slot->len);
	out->seg.iova = get(&slot->iova);
	keys = get(&slot->keys);
	out->seg.lkey = (uint32_t)(keys >> 32);
	out->seg.rkey = (uint32_t)keys;
	return atomic_load_explicit(&slot->state, memory_order_relaxed) == live;
}
