/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's end of the pair over which the bytes of long messages come (verbs/vpair.h). Each part
 * is one receive, for exactly its bytes, which is posted before the sender is asked for them
 * (grant.h); so they come in this order.
 *
 * The agent makes the pair, when bytes have to come, and closes it with the line. The rest is done with
 * ep->lock held.
 */
#ifndef MRF_EP_MSG_INTAKE_H
#define MRF_EP_MSG_INTAKE_H

#include "ep/msg/inbox.h"

struct mrf_pull;

struct mrf_intake_part {
	struct mrf_pull *pull;
	struct mrf_place *place; /* NULL: it comes where it belongs */
	uint32_t len;
};

struct mrf_intake {
	struct mrf_vpair *pair;
	bool named; /* the initiator knows its name */
	uint32_t qpn;
	struct mrf_intake_part part[MRF_GRANTS]; /* that may come */
	unsigned first, last;			 /* indices into part; only go up */
};

/* The initiator's end has this name. False: it has another one already. */
bool mrf_intake_name_locked(struct mrf_inlet *inlet, const struct mrf_frame_bulk *name);
/* For struct mrf_inbox_calls. */
bool mrf_intake_grant_locked(struct mrf_inlet *inlet);
/* A part has come, or comes no more. */
void mrf_intake_came_locked(struct mrf_inlet *inlet, const struct mrf_wc *wc);
/* The line has ended, and nothing of it comes any more. */
void mrf_intake_lost_locked(struct mrf_inlet *inlet);

/* --- agent thread, no lock held ------------------------------------------------------- */

/* The pair is made and connected; otherwise all receives that wait for it fail. */
void mrf_intake_open(struct mrf_inlet *inlet);
/* Nothing is sent over the line any more: nothing comes over the pair when this returns. */
void mrf_intake_close(struct mrf_inlet *inlet);

#endif
