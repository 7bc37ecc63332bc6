/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The greeting of endpoints that have an authorization key: an initiator that connects to
 * one is refused with a challenge, connects again with a proof that it has the key, and
 * is welcomed with a proof that the target has the key, too. Without a key at both ends
 * there is no such exchange. See docs/WIRE.md.
 */
#ifndef MRF_EP_LINK_GREET_H
#define MRF_EP_LINK_GREET_H

#include "auth/auth.h"
#include "ep/model/peer.h"
#include "ep/model/why.h"

/* The endpoint's key; NULL: none. */
static inline const struct mrf_auth *mrf_greet_auth(const struct mrf_ep *ep)
{
	return mrf_mr_port_auth(&ep->domain->space, &ep->port);
}

/* The name of a limit that was met at a target, for messages. */
const char *mrf_full_text(enum mrf_full full);

/* --- the target; agent thread ------------------------------------------------------- */

enum mrf_greeted {
	MRF_GREET_OK,	     /* accepted */
	MRF_GREET_CHALLENGE, /* has not proved anything yet, or not in time */
	MRF_GREET_KEY	     /* has another key */
};

/*
 * Judges an initiator's hello. qpn: its queue pair. talk: the key exchange so far, for
 * mrf_greet_welcome; set with MRF_GREET_OK only.
 */
enum mrf_greeted mrf_greet_check(struct mrf_ep *ep, const struct mrf_hello *hello, uint32_t qpn,
				 struct mrf_auth_talk *talk);
/* Writes the refusal that goes with MRF_GREET_CHALLENGE; returns its length. */
size_t mrf_greet_challenge(struct mrf_ep *ep, uint8_t buf[MRF_PROTO_CHALLENGE_LEN]);
/* Adds our proof, if we have a key. */
void mrf_greet_welcome(const struct mrf_ep *ep, struct mrf_auth_talk *talk, uint32_t own_qpn,
		       struct mrf_welcome *welcome);

/* --- the initiator; agent thread, ep->lock held ------------------------------------- */

/*
 * The target has refused the connection. True: it wants a proof, and the next attempt
 * will carry it. False: there is no use in another attempt; why holds the reason.
 */
bool mrf_greet_again_locked(struct mrf_peer *peer, const void *data, size_t len,
			    struct mrf_why *why);
/* Why a target that had no room for us, or has not answered since, is given up. */
void mrf_greet_no_room_locked(const struct mrf_peer *peer, struct mrf_why *why);
/*
 * Adds our proof if we were challenged. It covers the flags and the ticket of the hello,
 * which are final already.
 */
void mrf_greet_hello_locked(struct mrf_conn *conn, struct mrf_hello *hello);
/*
 * Checks the target's welcome and records what it says about the target, and about the
 * connection that was lost. False: the
 * target cannot be trusted; why holds the reason.
 */
bool mrf_greet_welcomed_locked(struct mrf_conn *conn, const struct mrf_cm_event *event,
			       struct mrf_why *why);

#endif
