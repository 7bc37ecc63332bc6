/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The challenges of an endpoint that has a key: ascending numbers, each with a nonce that
 * nobody else can predict. No state is kept per challenged peer, so that many of them use
 * up nothing; only the recent numbers that were answered are recorded, so that none is
 * used twice. Belongs to its endpoint; used by the agent thread only.
 */
#ifndef MRF_AUTH_NONCE_H
#define MRF_AUTH_NONCE_H

#include "auth/auth.h"

#define MRF_NONCE_WINDOW 4096 /* a number is valid until so many later ones were issued */

struct mrf_nonces {
	uint8_t secret[MRF_AUTH_NONCE];
	uint64_t next;
	uint64_t used[MRF_NONCE_WINDOW / 64];
};

void mrf_nonces_init(struct mrf_nonces *nonces);
void mrf_nonces_fini(struct mrf_nonces *nonces);
/* Issues a new number with its nonce. */
uint64_t mrf_nonce_next(struct mrf_nonces *nonces, uint8_t nonce[MRF_AUTH_NONCE]);
/*
 * Recomputes the nonce of a number. False: the number was never issued, was issued too
 * long ago, or has been used.
 */
bool mrf_nonce_get(const struct mrf_nonces *nonces, uint64_t number, uint8_t nonce[MRF_AUTH_NONCE]);
/* Marks a number as used; mrf_nonce_get has just accepted it. */
void mrf_nonce_use(struct mrf_nonces *nonces, uint64_t number);

#endif
