/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The challenges of an endpoint that has a key: numbers that go up, and for each a nonce that
 * nobody else can foretell. Nothing is remembered of those who were challenged, so that many
 * of them use up nothing; only which of the last numbers were answered, so that none is twice.
 * Belongs to its endpoint; used by the agent thread alone.
 */
#ifndef MRF_AUTH_NONCE_H
#define MRF_AUTH_NONCE_H

#include "auth/auth.h"

#define MRF_NONCE_WINDOW 4096 /* a number is good until so many others were given out */

struct mrf_nonces {
	uint8_t secret[MRF_AUTH_NONCE];
	uint64_t next;
	uint64_t used[MRF_NONCE_WINDOW / 64];
};

void mrf_nonces_init(struct mrf_nonces *nonces);
void mrf_nonces_fini(struct mrf_nonces *nonces);
/* A number that was never given out, with its nonce. */
uint64_t mrf_nonce_next(struct mrf_nonces *nonces, uint8_t nonce[MRF_AUTH_NONCE]);
/* False: was not given out, or too long ago, or is used. */
bool mrf_nonce_get(const struct mrf_nonces *nonces, uint64_t number,
		   uint8_t nonce[MRF_AUTH_NONCE]);
/* mrf_nonce_get has found it just now. */
void mrf_nonce_use(struct mrf_nonces *nonces, uint64_t number);

#endif
