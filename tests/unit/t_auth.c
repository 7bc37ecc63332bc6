/* SPDX-License-Identifier: BSD-2-Clause */
#include "auth/auth.h"
#include "secret.h"
#include "unit.h"

static struct mrf_auth *new_auth(const void *key, size_t size)
{
	struct mrf_auth *auth = NULL;

	ck_assert_int_eq(mrf_auth_new(key, size, &auth), 0);
	return auth;
}

/* --- keys ------------------------------------------------------------------------- */

START_TEST(auth_key_is_the_same_bytes_and_as_many)
{
	struct mrf_auth *auth = new_auth("0123456789", 10);

	ck_assert(mrf_auth_is(auth, "0123456789", 10));
	ck_assert(!mrf_auth_is(auth, "0123456789", 9));
	ck_assert(!mrf_auth_is(auth, "0123456789\0", 11));
	ck_assert(!mrf_auth_is(auth, "0123456780", 10));
	ck_assert(!mrf_auth_is(auth, NULL, 0));
	ck_assert(!mrf_auth_is(NULL, "0", 1));
	ck_assert(mrf_auth_is(NULL, NULL, 0));
	mrf_auth_free(auth);
	mrf_auth_free(NULL);
}
END_TEST

START_TEST(auth_key_is_a_copy_that_is_wiped_when_it_is_freed)
{
	char key[] = SECRET, *volatile copy;
	struct mrf_auth *auth = new_auth(key, SECRET_LEN);

	mrf_auth_wipe(key, sizeof(key));
	ck_assert(!has_secret(key, sizeof(key)));
	ck_assert(mrf_auth_is(auth, SECRET, SECRET_LEN));
	mrf_auth_free(auth);
	ck_assert_uint_eq(secrets_freed, 0);
	/* The test sees what it is about. (A compiler may leave out free(strdup()).) */
	copy = strdup(SECRET);
	free(copy);
	ck_assert_uint_eq(secrets_freed, secrets_seen());
}
END_TEST

/* --- proofs ----------------------------------------------------------------------- */

static struct mrf_auth_talk sample(void)
{
	struct mrf_auth_talk talk = { .number = 7,
				      .salt = 0x1122334455667788,
				      .initiator = 0xa1,
				      .target = 0xb2,
				      .initiator_qpn = 0x11,
				      .target_qpn = 0x12,
				      .addr = { 10, 99, 1, 1 },
				      .port = 4711,
				      .flags = 0x12670001 };
	int i;

	for (i = 0; i < MRF_AUTH_NONCE; i++)
		talk.nonce[i] = (uint8_t)(0x40 + i);
	return talk;
}

static void proves(enum mrf_auth_role role, const char *hex)
{
	uint8_t key[20], proof[MRF_AUTH_PROOF];
	struct mrf_auth_talk talk = sample();
	char text[2 * sizeof(proof) + 1];
	struct mrf_auth *auth;
	size_t i;

	for (i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i + 1);
	auth = new_auth(key, sizeof(key));
	mrf_auth_prove(auth, role, &talk, proof);
	for (i = 0; i < sizeof(proof); i++)
		snprintf(text + 2 * i, 3, "%02x", proof[i]);
	ck_assert_str_eq(text, hex);
	mrf_auth_free(auth);
}

/* As another program would make it that follows docs/WIRE.md. */
START_TEST(auth_proof_is_the_hmac_that_it_is_said_to_be)
{
	proves(MRF_AUTH_INITIATOR,
	       "6d5bc9de158c5ccb4ec38976c71c6124c9b538866b2a1a2d1ab35148a4bd0b71");
	proves(MRF_AUTH_TARGET, "daf572523a7653fdcd6979acd869bc7664039ecf98d3bc5f0afb51f1765cfb56");
}
END_TEST

START_TEST(auth_proof_is_of_one_key_and_one_role)
{
	struct mrf_auth *one = new_auth("one", 3), *other = new_auth("onf", 3);
	struct mrf_auth_talk talk = sample();
	uint8_t proof[MRF_AUTH_PROOF];

	mrf_auth_prove(one, MRF_AUTH_INITIATOR, &talk, proof);
	ck_assert(mrf_auth_proves(one, MRF_AUTH_INITIATOR, &talk, proof, sizeof(proof)));
	ck_assert(mrf_auth_proves(one, MRF_AUTH_INITIATOR, &talk, proof, 16));
	ck_assert(!mrf_auth_proves(other, MRF_AUTH_INITIATOR, &talk, proof, 16));
	ck_assert(!mrf_auth_proves(one, MRF_AUTH_TARGET, &talk, proof, 16));
	proof[15] ^= 1;
	ck_assert(!mrf_auth_proves(one, MRF_AUTH_INITIATOR, &talk, proof, 16));
	mrf_auth_free(one);
	mrf_auth_free(other);
}
END_TEST

/* To an HMAC zeros at the end of a key are nothing, and a long key is its hash. */
START_TEST(auth_proof_is_of_a_key_of_one_length)
{
	struct mrf_auth *one = new_auth("one", 3), *longer = new_auth("one\0", 4);
	struct mrf_auth_talk talk = sample();
	uint8_t proof[MRF_AUTH_PROOF];

	mrf_auth_prove(one, MRF_AUTH_INITIATOR, &talk, proof);
	ck_assert(!mrf_auth_proves(longer, MRF_AUTH_INITIATOR, &talk, proof, 16));
	mrf_auth_free(one);
	mrf_auth_free(longer);
}
END_TEST

/* No byte of it may be changed without the proof being void. */
START_TEST(auth_proof_is_of_one_connection)
{
	struct mrf_auth *auth = new_auth("one", 3);
	struct mrf_auth_talk talk = sample(), other;
	uint8_t proof[MRF_AUTH_PROOF];
	unsigned changed = 0;
	size_t i;

	mrf_auth_prove(auth, MRF_AUTH_TARGET, &talk, proof);
	for (i = 0; i < sizeof(talk); i++) {
		other = talk;
		((uint8_t *)&other)[i] ^= 0x80;
		changed += !mrf_auth_proves(auth, MRF_AUTH_TARGET, &other, proof, 32);
	}
	/* All but padding. */
	ck_assert_uint_eq(changed, MRF_AUTH_NONCE + 4 * 8 + 2 * 4 + 16 + 2 + 4);
	mrf_auth_free(auth);
}
END_TEST

/* The label of a line and its kind are flags: whoever passes them on cannot change them. */
START_TEST(auth_proof_is_of_a_hello_with_these_flags)
{
	struct mrf_auth *auth = new_auth("one", 3);
	struct mrf_auth_talk talk = sample();
	uint8_t proof[MRF_AUTH_PROOF];
	enum mrf_auth_role role = _i < 32 ? MRF_AUTH_INITIATOR : MRF_AUTH_TARGET;

	mrf_auth_prove(auth, role, &talk, proof);
	talk.flags ^= 1u << _i % 32;
	ck_assert(!mrf_auth_proves(auth, role, &talk, proof, 16));
	talk.flags ^= 1u << _i % 32;
	ck_assert(mrf_auth_proves(auth, role, &talk, proof, 16));
	mrf_auth_free(auth);
}
END_TEST

/* --- nonces ----------------------------------------------------------------------- */

START_TEST(nonces_are_good_once_and_not_for_ever)
{
	uint8_t first[MRF_AUTH_NONCE], nonce[MRF_AUTH_NONCE];
	struct mrf_nonces *nonces = malloc(sizeof(*nonces));
	uint64_t number, i;

	mrf_nonces_init(nonces);
	ck_assert(!mrf_nonce_get(nonces, 0, nonce));
	ck_assert(!mrf_nonce_get(nonces, 1, nonce));
	number = mrf_nonce_next(nonces, first);
	ck_assert_uint_ne(number, 0);
	ck_assert(!mrf_nonce_get(nonces, number + 1, nonce));
	for (i = 1; i < MRF_NONCE_WINDOW; i++) {
		ck_assert_uint_gt(mrf_nonce_next(nonces, nonce), number);
		ck_assert_int_ne(memcmp(nonce, first, sizeof(nonce)), 0);
	}
	ck_assert(mrf_nonce_get(nonces, number, nonce));
	ck_assert_mem_eq(nonce, first, sizeof(nonce));
	mrf_nonce_use(nonces, number);
	ck_assert(!mrf_nonce_get(nonces, number, nonce));
	/* Those beside it are not used up, and the one that takes its place is fresh. */
	ck_assert(mrf_nonce_get(nonces, number + 1, nonce));
	ck_assert(!mrf_nonce_get(nonces, number + MRF_NONCE_WINDOW, nonce));
	ck_assert_uint_eq(mrf_nonce_next(nonces, nonce), number + MRF_NONCE_WINDOW);
	ck_assert(mrf_nonce_get(nonces, number + MRF_NONCE_WINDOW, nonce));
	ck_assert(!mrf_nonce_get(nonces, number, nonce));
	ck_assert(mrf_nonce_get(nonces, number + 1, nonce));
	mrf_nonce_next(nonces, nonce);
	ck_assert(!mrf_nonce_get(nonces, number + 1, nonce));
	mrf_nonces_fini(nonces);
	free(nonces);
}
END_TEST

START_TEST(nonces_of_two_endpoints_have_nothing_in_common)
{
	uint8_t a[MRF_AUTH_NONCE], b[MRF_AUTH_NONCE];
	struct mrf_nonces one, two;

	mrf_nonces_init(&one);
	mrf_nonces_init(&two);
	ck_assert_uint_eq(mrf_nonce_next(&one, a), mrf_nonce_next(&two, b));
	ck_assert_int_ne(memcmp(a, b, sizeof(a)), 0);
	mrf_nonces_fini(&one);
	mrf_nonces_fini(&two);
}
END_TEST

static TCase *auth(void)
{
	TCase *tc = tcase_create("auth");

	tcase_add_test(tc, auth_key_is_the_same_bytes_and_as_many);
	tcase_add_test(tc, auth_key_is_a_copy_that_is_wiped_when_it_is_freed);
	tcase_add_test(tc, auth_proof_is_the_hmac_that_it_is_said_to_be);
	tcase_add_test(tc, auth_proof_is_of_one_key_and_one_role);
	tcase_add_test(tc, auth_proof_is_of_a_key_of_one_length);
	tcase_add_test(tc, auth_proof_is_of_one_connection);
	tcase_add_loop_test(tc, auth_proof_is_of_a_hello_with_these_flags, 0, 64);
	tcase_add_test(tc, nonces_are_good_once_and_not_for_ever);
	tcase_add_test(tc, nonces_of_two_endpoints_have_nothing_in_common);
	return tc;
}

UNIT_MAIN("auth", auth)
