/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <sodium.h>
#include "auth/auth.h"

_Static_assert(MRF_AUTH_PROOF == crypto_auth_hmacsha256_BYTES, "a proof is an HMAC");

struct mrf_auth {
	size_t size;
	uint8_t key[];
};

int mrf_auth_new(const void *key, size_t size, struct mrf_auth **out)
{
	struct mrf_auth *auth;

	if (sodium_init() < 0)
		return -FI_EIO;
	auth = malloc(sizeof(*auth) + size);
	if (!auth)
		return -FI_ENOMEM;
	auth->size = size;
	memcpy(auth->key, key, size);
	*out = auth;
	return 0;
}

void mrf_auth_free(struct mrf_auth *auth)
{
	if (!auth)
		return;
	sodium_memzero(auth->key, auth->size);
	free(auth);
}

bool mrf_auth_is(const struct mrf_auth *auth, const void *key, size_t size)
{
	if (!auth || !size)
		return !auth && !size;
	return auth->size == size && !sodium_memcmp(auth->key, key, size);
}

void mrf_auth_wipe(void *mem, size_t len)
{
	sodium_memzero(mem, len);
}

void mrf_auth_random(void *mem, size_t len)
{
	randombytes_buf(mem, len);
}

/* --- proofs ----------------------------------------------------------------------- */

/* Labels have one length, so that the bytes after them begin at one place. */
#define LABEL_LEN 24
static const char labels[][LABEL_LEN + 1] = {
	[MRF_AUTH_INITIATOR] = "mrfab auth 1, initiator ",
	[MRF_AUTH_TARGET] = "mrfab auth 1, target    ",
};

static void add_bytes(crypto_auth_hmacsha256_state *state, const void *mem, size_t len)
{
	crypto_auth_hmacsha256_update(state, mem, len);
}

static void add64(crypto_auth_hmacsha256_state *state, uint64_t value)
{
	value = htole64(value);
	add_bytes(state, &value, sizeof(value));
}

void mrf_auth_prove(const struct mrf_auth *auth, enum mrf_auth_role role,
		    const struct mrf_auth_talk *talk, uint8_t proof[MRF_AUTH_PROOF])
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, auth->key, auth->size);
	add_bytes(&state, labels[role], LABEL_LEN);
	add_bytes(&state, talk->nonce, sizeof(talk->nonce));
	add64(&state, talk->number);
	add64(&state, talk->salt);
	add64(&state, talk->initiator);
	add64(&state, talk->target);
	add64(&state, talk->initiator_qpn);
	add64(&state, talk->target_qpn);
	add_bytes(&state, talk->addr, sizeof(talk->addr));
	add64(&state, talk->port);
	add64(&state, talk->flags);
	/* An HMAC pads its key with zeros, and replaces one that is too long by its hash. */
	add64(&state, auth->size);
	crypto_auth_hmacsha256_final(&state, proof);
	sodium_memzero(&state, sizeof(state));
}

bool mrf_auth_proves(const struct mrf_auth *auth, enum mrf_auth_role role,
		     const struct mrf_auth_talk *talk, const uint8_t *proof, size_t len)
{
	uint8_t right[MRF_AUTH_PROOF];

	mrf_auth_prove(auth, role, talk, right);
	return !sodium_memcmp(right, proof, len);
}

/* --- challenges --------------------------------------------------------------------- */

_Static_assert(sizeof(((struct mrf_nonces *)0)->secret) == crypto_auth_hmacsha256_KEYBYTES,
	       "the secret is a key");
_Static_assert(MRF_AUTH_NONCE == crypto_auth_hmacsha256_BYTES, "a nonce is an HMAC");

void mrf_nonces_init(struct mrf_nonces *nonces)
{
	memset(nonces, 0, sizeof(*nonces));
	randombytes_buf(nonces->secret, sizeof(nonces->secret));
	nonces->next = 1;
}

void mrf_nonces_fini(struct mrf_nonces *nonces)
{
	sodium_memzero(nonces, sizeof(*nonces));
}

static void make_nonce(const struct mrf_nonces *nonces, uint64_t number, uint8_t *nonce)
{
	uint64_t wire = htole64(number);

	crypto_auth_hmacsha256(nonce, (const uint8_t *)&wire, sizeof(wire), nonces->secret);
}

static uint64_t *word_of(const struct mrf_nonces *nonces, uint64_t number)
{
	return (uint64_t *)&nonces->used[number % MRF_NONCE_WINDOW / 64];
}

uint64_t mrf_nonce_next(struct mrf_nonces *nonces, uint8_t nonce[MRF_AUTH_NONCE])
{
	uint64_t number = nonces->next++;

	/* It takes the place of one that is too old by now. */
	*word_of(nonces, number) &= ~(1ull << number % 64);
	make_nonce(nonces, number, nonce);
	return number;
}

bool mrf_nonce_get(const struct mrf_nonces *nonces, uint64_t number, uint8_t nonce[MRF_AUTH_NONCE])
{
	if (!number || number >= nonces->next || nonces->next - number > MRF_NONCE_WINDOW ||
	    *word_of(nonces, number) >> number % 64 & 1)
		return false;
	make_nonce(nonces, number, nonce);
	return true;
}

void mrf_nonce_use(struct mrf_nonces *nonces, uint64_t number)
{
	*word_of(nonces, number) |= 1ull << number % 64;
}
