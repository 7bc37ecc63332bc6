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
 * cannot use it on another connection. The hello's flags say what the connection is for,
 * and who the initiator is: nobody can change them on the way.
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
	uint32_t flags; /* of the hello */
};

void mrf_auth_prove(const struct mrf_auth *auth, enum mrf_auth_role role,
		    const struct mrf_auth_talk *talk, uint8_t proof[MRF_AUTH_PROOF]);
/* Is the proof valid? len: the proof may be cut to this many bytes, at least 16. */
bool mrf_auth_proves(const struct mrf_auth *auth, enum mrf_auth_role role,
		     const struct mrf_auth_talk *talk, const uint8_t *proof, size_t len);

/* --- challenges --------------------------------------------------------------------- */

/*
 * The challenges of an endpoint that has a key: ascending numbers, each with a nonce that
 * nobody else can predict. No state is kept per challenged peer, so that many of them use
 * up nothing; only the recent numbers that were answered are recorded, so that none is
 * used twice. Belongs to its endpoint; used by the agent thread only.
 */
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
