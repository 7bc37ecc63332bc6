/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers ask of a target. Agent thread, no lock held. */
#ifndef MRF_EP_TARGET_SERVE_H
#define MRF_EP_TARGET_SERVE_H

#include "ep/pasv.h"

void mrf_pasv_message(struct mrf_pasv *pasv, unsigned slot, const struct mrf_wc *wc);
/* Its look timer's. */
void mrf_pasv_look(struct mrf_timer *timer);
/* Tells the peer that what it knows of regions pinned on demand is void. */
void mrf_pasv_forget(struct mrf_pasv *pasv);
/* Serves peers, one question or request of each in turn: for a time, until a command comes. */
void mrf_agent_serve(struct mrf_agent *agent);

#endif
