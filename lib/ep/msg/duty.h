/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who takes messages in. Whoever polls the endpoint's queues or counters does, and threads that
 * sleep on them do. While that goes on, the agent must not be woken by messages: where process and
 * agent share a processor, that doubles a round trip. So the agent looks each MRF_DUTY_MS whether
 * anybody has polled; if not, it has itself told of messages, and takes them in until somebody
 * polls again. It does so each MRF_REST_MS at most: while many messages come one after the other, to
 * be woken for each of them would take longer than they do. Agent thread.
 */
#ifndef MRF_EP_MSG_DUTY_H
#define MRF_EP_MSG_DUTY_H

#include "ep/msg/inbox.h"

void mrf_duty_init(struct mrf_inbox *inbox);
/* There is a queue to be looked at, from now on. */
void mrf_duty_begin(struct mrf_inbox *inbox);
/* Lines wait until something has been received: looks at them each MRF_DUTY_MS from now on. */
void mrf_duty_look(struct mrf_inbox *inbox);
/* The agent has been told of completions, and has taken them in. ep->lock is held. */
void mrf_duty_rests_locked(struct mrf_inbox *inbox);
/* The endpoint closes. */
void mrf_duty_end(struct mrf_inbox *inbox);

#endif
