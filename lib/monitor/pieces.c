/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "monitor/pieces.h"

#define FEW 64	     /* pieces, or fewer where the limit is low */
#define FULL_MS 1000 /* before mappings are counted again */

void mrf_pieces_start(struct mrf_pieces *pieces, unsigned half)
{
	*pieces = (struct mrf_pieces){ .half = half, .few = mrf_min(FEW, half / 16) };
}

enum mrf_pieces_room mrf_pieces_room(const struct mrf_pieces *pieces, uint64_t now)
{
	if (pieces->count < pieces->few)
		return MRF_PIECES_FIT;
	if (now < pieces->full_until)
		return MRF_PIECES_FULL;
	return pieces->count < pieces->enough ? MRF_PIECES_FIT : MRF_PIECES_UNKNOWN;
}

/* Twice as many pieces are enough, or as many as make half of what is left. */
bool mrf_pieces_counted(struct mrf_pieces *pieces, unsigned mappings, uint64_t now)
{
	unsigned long left = mappings < pieces->half ? pieces->half - mappings : 0;
	unsigned long more = mrf_min(pieces->count, left / 4);

	pieces->full_until = more ? 0 : now + FULL_MS;
	pieces->enough = pieces->count + more;
	return more;
}
