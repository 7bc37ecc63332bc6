/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots that are lost. If a message breaks off with its line after it has begun to fill a shared
 * receive, Linux 6.12 never gives that receive back, and 6.1 does so only if the queue pair is put
 * into error before it goes. Enough of them, and no message arrives any more.
 *
 * They are found by numbers. Each posting of a slot has one, and the device takes slots in this
 * order. Only one message at a time comes over a line. So when a slot has come back over a line,
 * that line holds none whose number is lower. A slot that was posted before the last one of each
 * line that there is, and that has not come back, is held by none of them: its line is gone, and it
 * is posted again.
 *
 * A line over which nothing comes stands in the way of that, however long it is silent: the first
 * half of a message may have come over it, and the second half would be written into a slot that
 * another message is in by then. But a peer may well have nothing to say for an hour. So while a
 * quarter of the slots waits for such lines, those that are silent (silent.h) are closed. Nothing
 * is lost by that (model/line.h): their peers dial again when they have something to send.
 *
 * A line that ends may also hold a slot that was taken after the last one that came back, which no
 * number tells. So lines that end while nothing comes are counted. When they may hold half of the
 * slots, silent lines are closed, too, and none is let in; after the last line the queue is replaced
 * by another one, where all slots are posted that have not come back.
 *
 * With ep->lock held. No message costs anything for this, but for its number.
 */
#ifndef MRF_EP_MSG_LOST_H
#define MRF_EP_MSG_LOST_H

#include "ep/msg/inbox.h"

/* The inlet is new: it holds nothing that was taken before. It is not in inbox->inlets yet. */
void mrf_lost_begin_locked(struct mrf_inlet *inlet);
/* It has ended, and is not in inbox->inlets any more. All that has come over it was taken in. */
void mrf_lost_end_locked(struct mrf_inlet *inlet);
/* Messages have come, and slots wait for a line: looks whether it has spoken. */
void mrf_lost_again_locked(struct mrf_inbox *inbox);

static inline bool mrf_lost_waits(const struct mrf_inbox *inbox)
{
	return inbox->lost.holder;
}

/* --- the agent, no lock held ---------------------------------------------------------- */

void mrf_lost_init(struct mrf_inbox *inbox);
/* Looks again after a while, if that is needed. */
void mrf_lost_later(struct mrf_inbox *inbox);
/* Are all lines to be gone first, so that the queue can be replaced? Then there is no new one. */
bool mrf_lost_bars(struct mrf_inbox *inbox);
/* A line has ended, and its queue pair is gone. Replaces the queue, if it has to be. */
void mrf_lost_replace(struct mrf_inbox *inbox);
/* The endpoint closes. */
void mrf_lost_stop(struct mrf_inbox *inbox);

#endif
