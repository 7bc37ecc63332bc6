/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The greeting of endpoints that have an authorization key: who connects to one is refused with
 * a challenge, comes again with a proof that he has the key, and is welcomed with a proof that
 * the target has it, too. Without a key at both ends there is none of this. docs/WIRE.md.
 */
#ifndef MRF_EP_GREET_H
#define MRF_EP_GREET_H

#include "auth/auth.h"
#include "ep/peer.h"
#include "ep/why.h"

/* The endpoint's key; NULL: none. */
static inline const struct mrf_auth *mrf_ep_auth(const struct mrf_ep *ep)
{
	return mrf_mr_port_auth(&ep->domain->space, &ep->port);
}

/* --- the target; agent thread ---------------------------------------------------------- */

enum mrf_greeted {
	MRF_GREET_OK,	     /* come in */
	MRF_GREET_CHALLENGE, /* has proved nothing yet, or too late */
	MRF_GREET_KEY	     /* has another key */
};

/*
 * qpn: the initiator's queue pair. talk: what he has proved, for mrf_greet_welcome; only with
 * MRF_GREET_OK.
 */
enum mrf_greeted mrf_greet_check(struct mrf_ep *ep, const struct mrf_hello *hello, uint32_t qpn,
				 struct mrf_auth_talk *talk);
/* The refusal that goes with MRF_GREET_CHALLENGE; its length. */
size_t mrf_greet_challenge(struct mrf_ep *ep, uint8_t buf[MRF_PROTO_CHALLENGE_LEN]);
/* Adds our proof, if we have a key. */
void mrf_greet_welcome(const struct mrf_ep *ep, struct mrf_auth_talk *talk, uint32_t own_qpn,
		       struct mrf_welcome *welcome);

/* --- the initiator; agent thread, ep->lock held ------------------------------------------ */

/*
 * The target has refused us. True: it wants a proof, and the next attempt will have it. False:
 * why says why not.
 */
bool mrf_greet_again(struct mrf_peer *peer, const void *data, size_t len, struct mrf_why *why);
/* Adds our proof if we were challenged. */
void mrf_greet_hello(struct mrf_conn *conn, struct mrf_hello *hello);
/* Takes in what the target says of itself. False: not to be trusted, why says why. */
bool mrf_greet_welcomed(struct mrf_conn *conn, const struct mrf_cm_event *event,
			struct mrf_why *why);

#endif
