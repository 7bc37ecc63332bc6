/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which lines to an endpoint are silent: nothing has come over them for a second or longer. That is
 * asked rarely, when others need what a silent line has. So no message costs a look at the clock;
 * instead each line remembers what had come when somebody asked before, a second ago or longer.
 * With ep->lock held.
 */
#ifndef MRF_EP_MSG_SILENT_H
#define MRF_EP_MSG_SILENT_H

#include "ep/msg/inbox.h"

/* Of a new line: it was not looked at. */
#define MRF_SILENT_UNSEEN UINT64_MAX

/*
 * Looks at all lines, unless the last time was less than MRF_SILENT_MS ago. What becomes of those
 * that are silent is up to each caller, whoever has looked.
 */
void mrf_silent_look_locked(struct mrf_inbox *inbox);

/*
 * As far as is known: who becomes silent is known to be so when it was looked at twice. One that is
 * still being made is not: its initiator would take its end for that of the endpoint.
 */
static inline bool mrf_silent(const struct mrf_inlet *inlet)
{
	return inlet->confirmed && inlet->silent && inlet->seen == inlet->last;
}

#endif
