/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"
#include "contract/budget.h"
#include "ep/model/ep.h"
#include "ep/msg/silent.h"

void mrf_silent_look_locked(struct mrf_inbox *inbox)
{
	int64_t now = mrf_now_ms();

	mrf_lock_held(&inbox->ep->lock);
	if (now - inbox->looked < MRF_SILENT_MS)
		return;
	inbox->looked = now;
	mrf_list_each (node, &inbox->inlets) {
		struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		inlet->silent = inlet->seen == inlet->last;
		inlet->seen = inlet->last;
	}
}
