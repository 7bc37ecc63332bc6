/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys: held, compared, and proved to others without being shown. The only
 * place that includes <sodium.h>; it logs nothing, and a key is never part of a message.
 *
 * A key is immutable and counted; its bytes are overwritten when the last user lets go.
 */
#ifndef MRF_AUTH_AUTH_H
#define MRF_AUTH_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrf_auth;

/* A copy of size > 0 bytes, with one reference. -FI_ENOMEM; -FI_EIO: no randomness. */
int mrf_auth_new(const void *key, size_t size, struct mrf_auth **auth);
void mrf_auth_get(struct mrf_auth *auth);
/* Harmless with NULL. */
void mrf_auth_put(struct mrf_auth *auth);
/* Takes as long whatever the bytes are. NULL is no key, and has 0 bytes. */
bool mrf_auth_is(const struct mrf_auth *auth, const void *key, size_t size);

/* Overwrites memory that held a key, and is not optimised away. */
void mrf_auth_wipe(void *mem, size_t len);
/* Bytes that nobody can guess. */
void mrf_auth_random(void *mem, size_t len);

/* --- proofs ----------------------------------------------------------------------- */

#define MRF_AUTH_NONCE 32
#define MRF_AUTH_PROOF 32

/* Who says that he has the key: one's proof is never the other's. */
enum mrf_auth_role { MRF_AUTH_INITIATOR, MRF_AUTH_TARGET };

/*
 * What a proof is about: this one connection of these two endpoints. The target chose
 * nonce and number, the initiator chose salt, so that neither can be given an old proof;
 * queue pairs and address tie it to the connection, so that nobody can use a proof that
 * was meant for him, or that he has heard, on a connection of his own.
 */
struct mrf_auth_talk {
	uint8_t nonce[MRF_AUTH_NONCE];
	uint64_t number;
	uint64_t salt;
	uint64_t initiator;	/* instances of the endpoints */
	uint64_t target;
	uint32_t initiator_qpn;
	uint32_t target_qpn;	/* 0 in the initiator's proof, which comes before it */
	uint8_t addr[16];	/* of the target, as the initiator knows it */
	uint16_t port;
};

void mrf_auth_prove(const struct mrf_auth *auth, enum mrf_auth_role role,
		    const struct mrf_auth_talk *talk, uint8_t proof[MRF_AUTH_PROOF]);
/* len: how many bytes of the proof there are, from its beginning; at least 16. */
bool mrf_auth_proves(const struct mrf_auth *auth, enum mrf_auth_role role,
		     const struct mrf_auth_talk *talk, const uint8_t *proof, size_t len);

#endif
