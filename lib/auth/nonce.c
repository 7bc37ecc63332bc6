/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <string.h>
#include <sodium.h>
#include "auth/nonce.h"

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
