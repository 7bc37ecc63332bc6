/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of receiving long messages may take long, because memory is pinned, copied or let go: the steps
 * of pulls (pull.h). They are done in any order and without ep->lock, by the threads that make
 * progress; in place of the agent by a job. Likewise all copies of short messages that are late
 * (deliver.h). Copies of long ones from and to devices are begun (copies.h).
 *
 * With ep->lock held.
 */
#ifndef MRF_EP_MSG_PULL_STEP_H
#define MRF_EP_MSG_PULL_STEP_H

#include "ep/msg/pull.h"

/* Is there such a step, or anything late, that no thread is at? */
static inline bool mrf_pull_step_has_late_locked(const struct mrf_inbox *inbox)
{
	return inbox && (!mrf_list_empty(&inbox->steps) || mrf_deliver_has_late_locked(inbox) ||
			 mrf_copies_may_begin_locked(&inbox->copies));
}
/* Does all of that. The lock is left meanwhile. */
void mrf_pull_step_late_locked(struct mrf_inbox *inbox);

#endif
