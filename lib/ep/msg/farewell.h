/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last note of a line, when its receiver closes. A receiver may take a message in before the
 * sender's device has the acknowledgement, and then close: the queue pair goes, and the
 * acknowledgement with it. The last note says how many messages have come (not how many were taken,
 * of which the sender will hear no more), so that a send whose message has come succeeds
 * (tx/fail.h); and it closes the window, because nobody will receive what comes now.
 */
#ifndef MRF_EP_MSG_FAREWELL_H
#define MRF_EP_MSG_FAREWELL_H

#include "ep/msg/inbox.h"

/*
 * Takes in what has come, and sends the last note of each line that has not had it, or as soon as the
 * note that is on the way has arrived. False: some have not arrived. ep->lock is held.
 */
bool mrf_farewell_locked(struct mrf_inbox *inbox);

#endif
