/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys: storing and comparing them, and proving their possession without
 * showing them. This is the only layer that includes <sodium.h>; it logs nothing, and a
 * key is never part of a message.
 *
 * A key is immutable and has one owner; its bytes are overwritten when it is freed.
 */
#ifndef MRF_AUTH_AUTH_H
#define MRF_AUTH_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrf_auth;

/*
 * Copies a key of size > 0 bytes; the caller frees the copy. -FI_ENOMEM; -FI_EIO: no
 * randomness.
 */
int mrf_auth_new(const void *key, size_t size, struct mrf_auth **auth);
/* Harmless with NULL. */
void mrf_auth_free(struct mrf_auth *auth);
/*
 * Is auth this key? The comparison takes the same time whatever the bytes are. auth NULL:
 * no key, which equals a size of 0.
 */
bool mrf_auth_is(const struct mrf_auth *auth, const void *key, size_t size);

/* Overwrites memory that held a key; the compiler cannot optimise this away. */
void mrf_auth_wipe(void *mem, size_t len);
/* Fills memory with unpredictable bytes. */
void mrf_auth_random(void *mem, size_t len);

/* --- proofs ----------------------------------------------------------------------- */

#define MRF_AUTH_NONCE 32
#define MRF_AUTH_PROOF 32

/* The side that proves; a proof of one side is never valid for the other. */
enum mrf_auth_role { MRF_AUTH_INITIATOR, MRF_AUTH_TARGET };

/*
 * The content of a proof: one connection of two endpoints. The target chose nonce and
 * number, the initiator chose salt, so that neither accepts an old proof. Queue pairs and
 * address tie the proof to the connection, so that its recipient, or an eavesdropper,
 * cannot use it on another connection.
 */
struct mrf_auth_talk {
	uint8_t nonce[MRF_AUTH_NONCE];
	uint64_t number;
	uint64_t salt;
	uint64_t initiator; /* instances of the endpoints */
	uint64_t target;
	uint32_t initiator_qpn;
	uint32_t target_qpn; /* 0 in the initiator's proof, which is made before */
	uint8_t addr[16];    /* of the target, as the initiator knows it */
	uint16_t port;
};

void mrf_auth_prove(const struct mrf_auth *auth, enum mrf_auth_role role,
		    const struct mrf_auth_talk *talk, uint8_t proof[MRF_AUTH_PROOF]);
/* Is the proof valid? len: the proof may be cut to this many bytes, at least 16. */
bool mrf_auth_proves(const struct mrf_auth *auth, enum mrf_auth_role role,
		     const struct mrf_auth_talk *talk, const uint8_t *proof, size_t len);

#endif
