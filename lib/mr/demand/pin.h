/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pins of regions that are pinned on demand: mr/demand/back.h. "Lock" is the monitor's.
 */
#ifndef MRF_MR_DEMAND_PIN_H
#define MRF_MR_DEMAND_PIN_H

#include "mr/demand/back.h"
#include "mr/demand/unpin.h"

struct mrf_pin {
	struct mrf_list node;  /* in back->making, back->pins, back->leased, or nowhere */
	struct mrf_list lease; /* leased: in lease->pins, which is its user's */
	struct mrf_list all;   /* kept: in backs->pins, or backs->dead */
	struct mrf_watch watch;
	struct mrf_mr_back *back; /* leased: with a reference */
	uint64_t pos;
	uint64_t addr;
	uint64_t len;
	uint64_t iova;
	uint64_t clock; /* leased: back->clock when it was asked for */
	bool stale;	/* being made, and the memory was refreshed or the region closed */
	bool revoked;	/* only memory is left to be given back */
	bool busy;	/* leased: somebody unpins it without the lock ... */
	bool orphan;	/* ... and frees it, because the lease has ended meanwhile */
	struct mrf_vmr vmr;
};

/* Bytes that peers want and that are not pinned: inside one extent and one mapping. */
struct mrf_hole {
	const struct mrf_extent *extent;
	uint64_t start; /* addresses of the bytes: [start, end) */
	uint64_t end;
	uint64_t low; /* how far what is watched for a pin of them may go */
	uint64_t high;
	uint64_t first; /* how far the pin itself may go, if not so far: [first, last) */
	uint64_t last;
};

enum mrf_pinned {
	MRF_PINNED,	   /* or somebody else did it meanwhile */
	MRF_PIN_AGAIN,	   /* the memory or the region changed meanwhile: look again */
	MRF_PIN_UNWATCHED, /* nobody would tell of changes: lease it */
	MRF_PIN_FAILED	   /* *err says why */
};

/*
 * Pages of which only some bytes are wanted are pinned in steps of so much; those that have no
 * memory yet, which is allocated then, in steps of a block.
 */
#define MRF_PIN_WINDOW (1u << 20)
#define MRF_PIN_BLOCK (1u << 16)

/*
 * Pins a hole widened to multiples of grain, a power of two not below the page size, as
 * far as mapping, extent, neighbouring pins and refreshed bytes let it, for good. All of that is
 * watched, also where the pin itself does not go so far: each edge of what is watched parts a mapping.
 * No lock held.
 */
enum mrf_pinned mrf_pin_keep(struct mrf_mr_back *back, const struct mrf_hole *hole,
			     uint64_t grain, int *err);
/* Pins exactly the pages of a hole, into lease; *pin until that ends. No lock held. */
enum mrf_pinned mrf_pin_lease(struct mrf_mr_back *back, const struct mrf_hole *hole,
			      struct mrf_mr_lease *lease, struct mrf_pin **pin, int *err);

/* The kept pin that has this byte, or NULL. Lock held. */
struct mrf_pin *mrf_pin_find(const struct mrf_mr_back *back, uint64_t pos);

#endif
