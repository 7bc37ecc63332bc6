/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pins of regions that are pinned on demand: mr/demand/back.h. "The lock" is the
 * monitor's.
 */
#ifndef MRF_MR_DEMAND_PIN_H
#define MRF_MR_DEMAND_PIN_H

#include "mr/demand/back.h"
#include "mr/demand/unpin.h"

struct mrf_pin;

/* The owner of a pin that belongs to no region. The calls come with the monitor's lock held. */
struct mrf_pin_owner {
	/* The pin has been registered, and its memory has not changed since the watch began. */
	void (*kept_locked)(struct mrf_pin *pin);
	/*
	 * The pin is no longer kept: its memory is about to change (changed), or it gave way.
	 * False: somebody still uses it; the owner calls mrf_pin_revoke_locked later. May not
	 * allocate or free.
	 */
	bool (*ended_locked)(struct mrf_pin *pin, bool changed);
	/* Called instead of free(). The lock is not held. */
	void (*free)(struct mrf_pin *pin);
};

struct mrf_pin {
	struct mrf_list node;  /* in back->making, back->leased, a list to end, or nowhere */
	struct mrf_list lease; /* leased: in lease->pins, a list of the lease's user */
	struct mrf_list all;   /* kept: in backs->pins, or backs->dead */
	struct mrf_watch watch;
	struct mrf_itree_node *place; /* of a region: in back->pins while it is kept */
	struct mrf_mr_back *back;     /* leased: holds a reference */
	uint64_t pos;
	uint64_t addr;
	uint64_t len;
	uint64_t iova;
	uint64_t clock;			   /* leased: back->clock at the time of the question */
	const struct mrf_pin_owner *owner; /* NULL: the region */
	bool stale;   /* while made: the memory was refreshed or the region closed */
	bool revoked; /* the kernel MR is revoked; only memory is left to free */
	bool busy;    /* leased: a thread unpins it without the lock ... */
	bool orphan;  /* ... and has to free it, as the lease has ended meanwhile */
	struct mrf_vmr vmr;
};

static inline struct mrf_pin *mrf_pin_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_pin, node);
}

/* Bytes that a peer wants and that are not pinned, inside one extent and one mapping. */
struct mrf_hole {
	const struct mrf_extent *extent;
	uint64_t start; /* addresses of the bytes: [start, end) */
	uint64_t end;
	uint64_t low; /* limits of the range watched for it: [low, high) */
	uint64_t high;
	uint64_t first; /* limits of the pin itself: [first, last) */
	uint64_t last;
};

enum mrf_pinned {
	MRF_PINNED,	   /* or another thread did it meanwhile */
	MRF_PIN_AGAIN,	   /* the memory or the region has changed: look again */
	MRF_PIN_UNWATCHED, /* changes would not be reported: lease it */
	MRF_PIN_FAILED	   /* *err says why */
};

/*
 * Pages of which only some bytes are wanted are pinned together with their surroundings,
 * in steps of MRF_PIN_WINDOW bytes, or of MRF_PIN_BLOCK bytes where pinning has to
 * allocate the memory.
 */
#define MRF_PIN_WINDOW (1u << 20)
#define MRF_PIN_BLOCK (1u << 16)

/*
 * Pins a hole and keeps the pin. The hole is widened to multiples of grain, a power of
 * two not below the page size, as far as mapping, extent, neighbouring pins and refreshed
 * bytes allow. The whole widened range is watched, even if the pin itself is narrower,
 * because each edge of a watched range splits a mapping. No lock is held.
 */
enum mrf_pinned mrf_pin_keep(struct mrf_mr_back *back, const struct mrf_hole *hole, uint64_t grain,
			     int *err);
/*
 * Pins exactly the pages of a hole, into lease; *pin is valid until the lease ends. No
 * lock is held.
 */
enum mrf_pinned mrf_pin_lease(struct mrf_mr_back *back, const struct mrf_hole *hole,
			      struct mrf_mr_lease *lease, struct mrf_pin **pin, int *err);

/*
 * Registers and keeps [addr, addr + len) of a pin, whole pages, for its owner, who has set
 * addr, len, back and owner, and initialised the lists and the watch (pin.watch.client:
 * backs->local). rights: no remote ones. The lock is held, and released while the kernel
 * works, which first ends the pins that gave way (backs->dead). On any other result than
 * MRF_PINNED the pin is as before the call.
 */
enum mrf_pinned mrf_pin_local_locked(struct mrf_pin *pin, unsigned rights, int *err);

/*
 * The first kept pin that has any byte of [pos, end), or NULL. The lock is held.
 */
static inline struct mrf_pin *mrf_pin_first_locked(const struct mrf_mr_back *back, uint64_t pos,
						   uint64_t end)
{
	struct mrf_itree_node *node = mrf_itree_first(&back->pins, pos, end);

	mrf_monitor_held();
	return node ? mrf_itree_value(node) : NULL;
}

/* The kept pin that contains this byte, or NULL. The lock is held. */
struct mrf_pin *mrf_pin_find_locked(const struct mrf_mr_back *back, uint64_t pos);

#endif
