/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a socket address to the fi_addr_t under which it was inserted: of whom a message is.
 *
 * The index is made when an address vector is asked for the first time, and kept up to date from
 * then on; one that is never asked has none, and pays nothing. It takes about 64 bytes for each
 * address. It is a hash table, with a random seed, because peers choose their addresses: asking,
 * inserting and removing take the same time however many there are.
 */
#ifndef MRF_OBJ_AV_INDEX_H
#define MRF_OBJ_AV_INDEX_H

#include <rdma/fabric.h>
#include "base/addr.h"

struct mrf_av;

/*
 * FI_ADDR_NOTAVAIL: the address is not there, or not of the vector's family. Of an address that
 * was inserted more than once, it is the fi_addr_t that was handed out first, of those that have
 * not been removed: for whoever compares, all of them stand for one peer, and this is its name
 * until it is removed. What is compared is host and port, not the scope of a link-local address,
 * which a connection that comes in does not tell.
 *
 * Takes the lock of the vector (rank AV), so it may wait for another thread's fi_av_insertsym,
 * which looks up names. Never fails: without memory or random numbers for the index it looks at
 * each address.
 */
fi_addr_t mrf_av_find(struct mrf_av *av, const union mrf_addr *addr);
/*
 * How often something was inserted or removed. Takes no lock, a load. Whoever keeps what he was
 * told reads this number before he asks: as long as it stays the same, so do the answers.
 */
uint64_t mrf_av_changes(const struct mrf_av *av);

/* --- for lib/obj; the caller holds av->lock ----------------------------------------- */

/*
 * Entry i was filled, or is about to be emptied, and there is an index. One that cannot grow is
 * dropped, and made again by whoever asks next.
 */
void mrf_av_index_add_locked(struct mrf_av *av, size_t i);
void mrf_av_index_remove_locked(struct mrf_av *av, size_t i);
/* Of no effect without an index. Also when nobody else has the vector any more. */
void mrf_av_index_drop(struct mrf_av *av);

#endif
