/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who sent a message (FI_DIRECTED_RECV, FI_SOURCE): a sender says where it listens, and its label is
 * the fi_addr_t that the address vector has for that. The labels of all senders are looked up again
 * when the vector has changed, and the messages that are kept move along: one that came before its
 * sender was inserted is taken by a directed receive that is posted afterwards. An endpoint that
 * was opened without these capabilities looks nothing up. ep->lock held; takes the lock of rank AV.
 */
#ifndef MRF_EP_MSG_LABEL_H
#define MRF_EP_MSG_LABEL_H

#include "ep/msg/inbox.h"

/* A new sender: looks it up. */
void mrf_label_new_locked(struct mrf_inbox *inbox, struct mrf_origin *origin);
/*
 * If the address vector has changed since the labels were looked up, looks them up again. A message
 * that is kept may meet a receive then, and be delivered.
 */
void mrf_label_refresh_locked(struct mrf_inbox *inbox);

#endif
