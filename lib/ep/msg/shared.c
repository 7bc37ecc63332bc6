/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "base/page.h"
#include "base/param.h"
#include "ep/msg/shared.h"
#include "mr/demand/backs.h"
#include "verbs/vqp.h"
#include "verbs/vsrq.h"

struct mrf_slots_chunk {
	struct mrf_vmr vmr;
	uint8_t *bytes;
	struct mrf_slot slot[MRF_SLOTS_CHUNK];
};

#define CHUNK_BYTES ((size_t)MRF_SLOTS_CHUNK * MRF_LINE_SLOT)

static uint64_t slot_id(unsigned number)
{
	return UINT64_MAX - number;
}

struct mrf_slot *mrf_slots_find(const struct mrf_slots *slots, uint64_t wr_id)
{
	unsigned number = (unsigned)(UINT64_MAX - wr_id);

	return &slots->chunk[number / MRF_SLOTS_CHUNK]->slot[number % MRF_SLOTS_CHUNK];
}

/* --- chunks -------------------------------------------------------------------------- */

static void free_chunk(struct mrf_slots_chunk *chunk)
{
	/* Memory that the kernel keeps registered may still be written to. */
	if (mrf_vmr_drop(&chunk->vmr))
		free(chunk->bytes);
	free(chunk);
}

int mrf_slots_make(const struct mrf_slots *slots, struct mrf_slots_chunk **out)
{
	struct mrf_slots_chunk *chunk = calloc(1, sizeof(*chunk));
	unsigned i;
	int ret;

	if (!chunk)
		return -FI_ENOMEM;
	if (posix_memalign((void **)&chunk->bytes, mrf_page_size(), CHUNK_BYTES)) {
		free(chunk);
		return -FI_ENOMEM;
	}
	ret = mrf_room_reg(slots->pd, chunk->bytes, CHUNK_BYTES, (uintptr_t)chunk->bytes,
			   MRF_RIGHT_LOCAL_WRITE, &chunk->vmr);
	if (ret) {
		free(chunk->bytes);
		free(chunk);
		return ret;
	}
	for (i = 0; i < MRF_SLOTS_CHUNK; i++) {
		chunk->slot[i].bytes = chunk->bytes + (size_t)i * MRF_LINE_SLOT;
		chunk->slot[i].lkey = chunk->vmr.lkey;
	}
	*out = chunk;
	return 0;
}

void mrf_shared_post(struct mrf_slots *slots, struct mrf_slot *slot)
{
	struct mrf_sge sge = { .addr = (uintptr_t)slot->bytes,
			       .len = MRF_LINE_SLOT,
			       .lkey = slot->lkey };

	slot->posting = ++slots->postings;
	if (mrf_unlikely(mrf_vsrq_post(slots->srq, slot_id(slot->number), &sge)))
		mrf_info(FI_LOG_EP_DATA, "the device takes no receive for messages any more");
}

void mrf_shared_add(struct mrf_slots *slots, struct mrf_slots_chunk *chunk)
{
	unsigned i;

	slots->chunk[slots->count / MRF_SLOTS_CHUNK] = chunk;
	for (i = 0; i < MRF_SLOTS_CHUNK; i++) {
		chunk->slot[i].number = slots->count++;
		mrf_shared_post(slots, &chunk->slot[i]);
	}
}

/* --- those that do not come back ----------------------------------------------------- */

static struct mrf_slot *numbered_slot(const struct mrf_slots *slots, unsigned number)
{
	return mrf_slots_find(slots, slot_id(number));
}

static bool is_out_before(const struct mrf_slot *slot, uint64_t posting)
{
	return slot->posting && slot->posting < posting;
}

void mrf_shared_post_before(struct mrf_slots *slots, uint64_t posting)
{
	unsigned i;

	for (i = 0; i < slots->count; i++) {
		if (is_out_before(numbered_slot(slots, i), posting))
			mrf_shared_post(slots, numbered_slot(slots, i));
	}
}

struct mrf_vsrq *mrf_shared_move(struct mrf_slots *slots, struct mrf_vsrq *srq)
{
	struct mrf_vsrq *before = slots->srq;

	slots->srq = srq;
	mrf_shared_post_before(slots, UINT64_MAX);
	return before;
}

uint64_t mrf_shared_oldest(const struct mrf_slots *slots, const struct mrf_origin *origin)
{
	uint64_t oldest = UINT64_MAX;
	unsigned i;

	for (i = 0; i < slots->count; i++) {
		const struct mrf_slot *slot = numbered_slot(slots, i);

		if (!slot->posting && slot->origin == origin)
			oldest = mrf_min(oldest, slot->frame);
	}
	return oldest;
}

unsigned mrf_shared_out_before(const struct mrf_slots *slots, uint64_t posting, uint64_t *oldest)
{
	unsigned i, n = 0;

	for (i = 0; i < slots->count; i++) {
		const struct mrf_slot *slot = numbered_slot(slots, i);

		if (!is_out_before(slot, posting))
			continue;
		*oldest = n++ ? mrf_min(*oldest, slot->posting) : slot->posting;
	}
	return n;
}

/* --- all of them --------------------------------------------------------------------- */

/* In whole chunks, at least one. */
static unsigned how_many(void)
{
	uint64_t most = (uint64_t)mrf_param_int(MRF_PARAM_RX_SLOTS);
	struct mrf_page_memlock lock;

	mrf_page_memlock_read(&lock);
	if (!lock.exempt)
		most = mrf_min(most, lock.limit / 4 / MRF_LINE_SLOT);
	most -= most % MRF_SLOTS_CHUNK;
	return (unsigned)mrf_max(most, (uint64_t)MRF_SLOTS_CHUNK);
}

int mrf_slots_open_queue(const struct mrf_slots *slots, struct mrf_vsrq **srq)
{
	return mrf_vsrq_open(slots->pd, MRF_SLOTS_MAX, srq);
}

int mrf_slots_open(struct mrf_slots *slots, struct mrf_vpd *pd)
{
	struct mrf_slots_chunk *chunk;
	int ret;

	slots->pd = pd;
	ret = mrf_slots_make(slots, &chunk);
	if (ret)
		return ret;
	ret = mrf_slots_open_queue(slots, &slots->srq);
	if (ret) {
		free_chunk(chunk);
		return ret;
	}
	slots->max = how_many();
	mrf_shared_add(slots, chunk);
	return 0;
}

void mrf_slots_close(struct mrf_slots *slots)
{
	unsigned i;

	if (slots->srq)
		mrf_vsrq_close(slots->srq);
	for (i = 0; i < slots->count; i += MRF_SLOTS_CHUNK)
		free_chunk(slots->chunk[i / MRF_SLOTS_CHUNK]);
	slots->srq = NULL;
	slots->count = 0;
}
