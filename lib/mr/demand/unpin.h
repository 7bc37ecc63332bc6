/* SPDX-License-Identifier: BSD-2-Clause */
/* Removing pins: see mr/demand/pin.h. "The lock" is the monitor's. */
#ifndef MRF_MR_DEMAND_UNPIN_H
#define MRF_MR_DEMAND_UNPIN_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

struct mrf_mr_back;
struct mrf_mr_backs;
struct mrf_pin;
struct mrf_spans;

/* Pins for single accesses, where changes are not reported; see mr/demand/back.h. */
struct mrf_mr_lease {
	struct mrf_list pins;
	unsigned npins; /* at most MRF_MR_LEASE_PINS: no peer may use up all regions */
};

#define MRF_MR_LEASE_PINS 65536

void mrf_mr_lease_init(struct mrf_mr_lease *lease);
/*
 * Unpins everything in the lease; answers marked once are no longer valid. The lease may
 * be used again. Not called by the monitor's thread, and not after the space is gone.
 */
void mrf_mr_lease_end(struct mrf_mr_lease *lease);

/*
 * Marks the pins that are being made in these spans (NULL: anywhere) as useless. The lock
 * is held.
 */
void mrf_pins_spoil_locked(struct mrf_mr_back *back, const struct mrf_spans *where);
/*
 * Moves the region's kept pins that have an address in these spans (NULL: all kept pins)
 * into list, for mrf_pins_end. The lock is held.
 */
void mrf_pins_take_locked(struct mrf_mr_back *back, const struct mrf_spans *where,
			  struct mrf_list *list);
/*
 * Revokes the kernel MR of a kept pin and moves the pin to backs->dead; frees nothing. changed:
 * because the memory changes. The lock is held.
 */
void mrf_pin_drop_locked(struct mrf_pin *pin, bool changed);
/* As mrf_pin_drop_locked, for a pin that is no longer kept. The lock is held. */
void mrf_pin_revoke_locked(struct mrf_pin *pin);
/* Drops all kept pins, local ones, too. False: there was none. The lock is held. */
bool mrf_pins_drop_all_locked(struct mrf_mr_backs *backs);
/* Frees a pin without a kernel MR that nobody else knows of; pin may be NULL. */
void mrf_pin_free(struct mrf_pin *pin);
/*
 * Unpins and frees the pins in list. A pin that the kernel keeps goes to backs->dead
 * (logged; the first error is returned). No lock is held.
 */
int mrf_pins_end(struct mrf_mr_backs *backs, struct mrf_list *list);
/*
 * Unpins the leased pins in these spans (NULL: anywhere) that are older than clock, as
 * mrf_pins_end does. No lock is held.
 */
int mrf_pins_end_leased(struct mrf_mr_back *back, const struct mrf_spans *where, uint64_t clock);
/*
 * Moves the pins that were dropped, and those that the kernel kept, into list, for mrf_pins_end;
 * and moves back those that were not ended. The lock is held.
 */
void mrf_pins_take_dead_locked(struct mrf_mr_backs *backs, struct mrf_list *list);
void mrf_pins_put_dead_locked(struct mrf_mr_backs *backs, struct mrf_list *list);
/*
 * Frees the pins that were dropped, and tries again to unpin those that the kernel kept. Cheap if
 * there are none. Returns the first error. No lock is held.
 */
int mrf_pins_reap(struct mrf_mr_backs *backs);

/*
 * Unpins everything and prevents further pinning. No lock is held. On failure (the kernel
 * keeps a region; logged) the call may be repeated for what is left.
 */
int mrf_mr_back_close(struct mrf_mr_back *back);

#endif
