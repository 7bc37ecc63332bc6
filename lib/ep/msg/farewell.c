/* SPDX-License-Identifier: BSD-2-Clause */
#include "ep/model/ep.h"
#include "ep/msg/arrive.h"
#include "ep/msg/farewell.h"

/* A line over which nothing has come needs none. */
static bool wants_note_locked(const struct mrf_inlet *inlet)
{
	return inlet->vconn && inlet->heard && !inlet->wrong && !inlet->parting && !inlet->noting;
}

bool mrf_farewell_locked(struct mrf_inbox *inbox)
{
	bool over = true;

	mrf_lock_held(&inbox->ep->lock);
	mrf_arrive_all_locked(inbox);
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		if (wants_note_locked(inlet)) {
			mrf_inbox_note_locked(inlet, inlet->origin->next, 0);
			inlet->parting = true;
		}
		over &= !inlet->noting;
	}
	return over;
}
