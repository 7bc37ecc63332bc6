/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes over lines is taken in: a receive takes each message, or it is kept. */
#ifndef MRF_EP_MSG_ARRIVE_H
#define MRF_EP_MSG_ARRIVE_H

#include "ep/msg/inbox.h"

/*
 * Takes in what has come, and tells peers that it is taken. A line that brings what it must not is
 * left to the agent, which cuts it off. The inbox has its queue; ep->lock is held.
 */
void mrf_arrive_poll_locked(struct mrf_inbox *inbox);
/* The same, but nothing that is there now is left for the next time. */
void mrf_arrive_all_locked(struct mrf_inbox *inbox);

#endif
