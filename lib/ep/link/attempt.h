/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One attempt to connect to a peer, LOOKING to READY: the calls of rdma_cm and what answers them.
 * Each call returns how the attempt stands; whether there is another one, and when, is for the
 * caller to decide (tx/dial.h). Agent thread; ep->lock is held, but not over the calls of rdma_cm
 * (conn.h).
 */
#ifndef MRF_EP_LINK_ATTEMPT_H
#define MRF_EP_LINK_ATTEMPT_H

#include "ep/link/conn.h"

enum mrf_attempt {
	MRF_ATTEMPT_GOES_ON,
	MRF_ATTEMPT_NOT_FOUND, /* no machine has answered for the address yet: look for it again */
	MRF_ATTEMPT_ASKED,     /* ASKING: the peer has been sent a request */
	MRF_ATTEMPT_REFUSED,   /* by an endpoint, which has said why in the event */
	MRF_ATTEMPT_NOBODY,    /* no endpoint listens at the address */
	MRF_ATTEMPT_WELCOMED,  /* accepted, and what the peer said of itself is in peer->target */
	MRF_ATTEMPT_FAILED     /* why */
};

/* FI_MRFAB_CONN_TIMEOUT, in ms. */
int mrf_attempt_timeout(void);
/* Looks for the peer's address: GOES_ON or FAILED. */
enum mrf_attempt mrf_attempt_resolve_locked(struct mrf_conn *conn, struct mrf_why *why);
/* An rdma_cm event that counts in the state of the connection (mrf_peer_hears). */
enum mrf_attempt mrf_attempt_event_locked(struct mrf_conn *conn, const struct mrf_cm_event *event,
					  struct mrf_why *why);
/* The peer has welcomed us: READY and GOES_ON, or FAILED. */
enum mrf_attempt mrf_attempt_establish_locked(struct mrf_conn *conn, struct mrf_why *why);
/* It fails, for a reason that the kernel or the device gives: FAILED. */
enum mrf_attempt mrf_attempt_fail_locked(const struct mrf_peer *peer, int err, int code,
					 const char *text, struct mrf_why *why);
/* The peer went away meanwhile: FAILED. */
enum mrf_attempt mrf_attempt_lost_locked(const struct mrf_peer *peer, struct mrf_why *why);

#endif
