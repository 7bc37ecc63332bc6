/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Target and initiator of one process, with raw verbs and with two domains of the library in the
 * default mode. For the cost_* programs.
 */
#ifndef BENCH_COST_PAIR_H
#define BENCH_COST_PAIR_H

#include <stdint.h>
#include "fab.h"
#include "raw.h"

#define PAIR_PAGE 4096u

extern struct fab pair_target, pair_initiator;
extern struct raw pair_raw_target, pair_raw_initiator;
extern struct work_access pair_access; /* what the initiator does to a region: writes 8 bytes */

/* Connects both; the target's region and the initiator's buffer have a page each. */
void pair_connect(uint8_t *region, uint8_t *local);
/* Raw verbs alone; the ends have buffers of so many bytes. */
void pair_connect_raw(uint8_t *region, uint8_t *local, size_t len);
/* The initiator does its access to this region of the target. */
void pair_access_fab(struct fid_mr *mr);

/* Private memory of len bytes. */
uint8_t *pair_map(size_t len);
/* About n mappings more, each of a page that differs from its neighbours. */
void pair_add_mappings(unsigned n);
/* Lets the process have twice the usual number of mappings. */
void pair_allow_mappings(void);

#endif
