/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Senders that have offered long messages, lost their line, and do not come again: what they have
 * offered is given up after FI_MRFAB_CONN_TIMEOUT. Agent thread, no lock held.
 */
#ifndef MRF_EP_MSG_ORPHANS_H
#define MRF_EP_MSG_ORPHANS_H

#include "ep/msg/inbox.h"

void mrf_orphans_init(struct mrf_inbox *inbox);
/* An origin has lost its line. */
void mrf_orphans_later(struct mrf_inbox *inbox);
/* The agent lets go of the endpoint. */
void mrf_orphans_end(struct mrf_inbox *inbox);

#endif
