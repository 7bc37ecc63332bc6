/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/budget.h"
#include "ep/rx/ends.h"

/* Where the next end of a connection from addr is kept: in place of the oldest one. */
static struct mrf_end *end_place(struct mrf_ends *ends, const union mrf_addr *addr)
{
	struct mrf_end *oldest = NULL, *own = NULL, *end;
	unsigned n = 0;

	for (end = ends->last; end < ends->last + MRF_ENDS; end++) {
		if (!oldest || end->order < oldest->order)
			oldest = end;
		if (!end->order || !mrf_addr_same_host(&addr->sa, &end->addr.sa))
			continue;
		if (!own || end->order < own->order)
			own = end;
		n++;
	}
	return n < MRF_ENDS_PER_ADDR ? oldest : own;
}

void mrf_ends_keep(struct mrf_ends *ends, const struct mrf_end *end)
{
	struct mrf_end *place = end_place(ends, &end->addr);

	*place = *end;
	place->order = ++ends->order;
}

static const struct mrf_end *find_end(const struct mrf_ends *ends, const struct mrf_hello *hello)
{
	const struct mrf_end *found = NULL, *end;

	/* Numbers of queue pairs are re-used. */
	for (end = ends->last; end < ends->last + MRF_ENDS; end++) {
		if (end->order && end->ticket == hello->ticket && end->qpn == hello->lost &&
		    (!found || end->order > found->order))
			found = end;
	}
	return found;
}

uint32_t mrf_ends_tell(const struct mrf_ends *ends, const struct mrf_hello *hello)
{
	const struct mrf_end *end = hello->lost ? find_end(ends, hello) : NULL;

	return end ? MRF_WELCOME_STOPPED | end->psn << MRF_WELCOME_PSN_SHIFT : 0;
}
