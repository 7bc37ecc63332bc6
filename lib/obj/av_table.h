/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of an address vector. Reading takes no lock: entries are in chunks that
 * never move.
 */
#ifndef MRF_OBJ_AV_TABLE_H
#define MRF_OBJ_AV_TABLE_H

#include <stdatomic.h>
#include <rdma/fabric.h>
#include "base/addr.h"

struct mrf_av;

/* Generation of an entry (never 0), or 0 when fi_addr names no entry. Lock-free, fast
 * path. */
uint64_t mrf_av_gen(const struct mrf_av *av, fi_addr_t fi_addr);
/*
 * The place where that generation is kept, for a caller that checks it with every access;
 * valid until the address vector is closed, even after the entry was removed. NULL if
 * there never was such an entry.
 */
const _Atomic uint64_t *mrf_av_gen_word(const struct mrf_av *av, fi_addr_t fi_addr);
/* -FI_EADDRNOTAVAIL when fi_addr names no entry. */
int mrf_av_get(const struct mrf_av *av, fi_addr_t fi_addr, union mrf_addr *addr);

/* --- for lib/obj; _locked: the caller holds av->lock ------------------------------- */

/* Initialises the table; the lists of free indices are empty. */
void mrf_av_table_init(struct mrf_av *av);
void mrf_av_table_fini(struct mrf_av *av);
/* Makes a new entry for addr; *fi_addr is its index. -FI_ENOMEM. */
int mrf_av_insert_locked(struct mrf_av *av, const union mrf_addr *addr, fi_addr_t *fi_addr);
void mrf_av_remove_locked(struct mrf_av *av, size_t i);

#endif
