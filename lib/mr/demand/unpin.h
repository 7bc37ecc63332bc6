/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking pins away: see mr/demand/pin.h. "Lock" is the monitor's. */
#ifndef MRF_MR_DEMAND_UNPIN_H
#define MRF_MR_DEMAND_UNPIN_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

struct mrf_mr_back;
struct mrf_mr_backs;
struct mrf_pin;
struct mrf_spans;

/* Pins for single accesses, where nobody tells of changes; see mr/demand/back.h. */
struct mrf_mr_lease {
	struct mrf_list pins;
	unsigned npins; /* at most MRF_MR_LEASE_PINS: a peer may not use up all regions */
};

#define MRF_MR_LEASE_PINS 65536

void mrf_mr_lease_init(struct mrf_mr_lease *lease);
/*
 * Unpins; what was answered with once is void. The lease may be used again. Not by the
 * monitor's thread; before the space goes.
 */
void mrf_mr_lease_end(struct mrf_mr_lease *lease);

/* The pins being made there (NULL: anywhere) are of no use any more. Lock held. */
void mrf_pins_spoil(struct mrf_mr_back *back, const struct mrf_spans *where);
/*
 * Takes from the region the kept pins that have an address in these spans (NULL: all)
 * into list, for mrf_pins_end. Lock held.
 */
void mrf_pins_take(struct mrf_mr_back *back, const struct mrf_spans *where,
		   struct mrf_list *list);
/*
 * A kept pin (or all of them) goes to backs->dead, its kernel MR at once; nothing is freed. Lock
 * held. False: there was none.
 */
void mrf_pin_drop(struct mrf_pin *pin);
bool mrf_pins_drop_all(struct mrf_mr_backs *backs);
/*
 * Unpins and frees. What the kernel keeps (logged; the first error is returned) goes to
 * backs->dead. No lock held.
 */
int mrf_pins_end(struct mrf_mr_backs *backs, struct mrf_list *list);
/* Unpins leased pins older than clock; the rest as mrf_pins_end. No lock held. */
int mrf_pins_end_leased(struct mrf_mr_back *back, const struct mrf_spans *where,
			uint64_t clock);
/*
 * Tries again what the kernel kept, frees what was dropped. No lock held. Cheap when
 * there is nothing. The first error.
 */
int mrf_pins_reap(struct mrf_mr_backs *backs);

/*
 * Unpins everything and lets nothing be pinned any more. No lock held. On failure (the
 * kernel keeps a region; logged) what is left may be tried again.
 */
int mrf_mr_back_close(struct mrf_mr_back *back);

#endif
