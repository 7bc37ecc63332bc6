/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses in the forms of other providers. t_profile_addr has where applications see them. */
#include <arpa/inet.h>
#include <rdma/fabric.h>
#include "base/compiler.h"
#include "contract/form.h"
#include "some_addr.h"
#include "unit.h"

static const struct mrf_form *const forms[] = { &mrf_form_socket, &mrf_form_efa, &mrf_form_psmx2,
						&mrf_form_psmx3,  &mrf_form_opx, &mrf_form_cxi,
						&mrf_form_shm };
#define FORMS ((int)MRF_ARRAY_SIZE(forms))

static void want_back(const struct mrf_form *form, union mrf_addr addr)
{
	char bytes[2 * MRF_FORM_MAX];
	union mrf_addr got;
	size_t len;

	memset(bytes, 0x5a, sizeof(bytes));
	if (!mrf_form_has(form, addr.sa.sa_family))
		return;
	len = mrf_form_put(form, &addr, bytes, sizeof(bytes));
	ck_assert_uint_le(len, MRF_FORM_MAX);
	ck_assert_int_eq(bytes[len], 0x5a);
	ck_assert_uint_eq(mrf_form_size(form, addr.sa.sa_family, bytes, SIZE_MAX), len);
	ck_assert(mrf_form_take(form, bytes, len, &got));
	ck_assert_int_eq(memcmp(&got, &addr, mrf_addr_len(&addr)), 0);
}

START_TEST(address_comes_back_from_each_form)
{
	const struct mrf_form *form = forms[_i];

	want_back(form, v4("10.99.1.1", 4711));
	want_back(form, v4("0.0.0.0", 0));
	want_back(form, v4("255.255.255.255", 65535));
	want_back(form, v6("fd00::1", 4711, 0));
	want_back(form, v6("fe80::aaaa:bbbb:cccc:dddd", 65535, UINT32_MAX));
	want_back(form, v6("::", 0, 0));
}
END_TEST

/* The lengths that programs of these providers know. */
START_TEST(forms_have_the_lengths_of_their_providers)
{
	static const size_t len[] = { 16, 32, 16, 32, 8, 8, sizeof("fi_shm://10.99.1.1:4711") };
	union mrf_addr four = v4("10.99.1.1", 4711);

	ck_assert_uint_eq(mrf_form_put(forms[_i], &four, NULL, 0), len[_i]);
	ck_assert(mrf_form_has(forms[_i], AF_INET));
	ck_assert_int_eq(mrf_form_has(forms[_i], AF_INET6), forms[_i] != &mrf_form_psmx2 &&
								    forms[_i] != &mrf_form_opx &&
								    forms[_i] != &mrf_form_cxi);
}
END_TEST

START_TEST(forms_are_found_by_their_formats)
{
	int i;

	for (i = 1; i < FORMS; i++) {
		ck_assert_ptr_eq(mrf_form_of(forms[i]->format), forms[i]);
		ck_assert_uint_eq(mrf_form_format(forms[i], AF_INET6), forms[i]->format);
	}
	ck_assert_ptr_eq(mrf_form_of(FI_FORMAT_UNSPEC), &mrf_form_socket);
	ck_assert_ptr_eq(mrf_form_of(FI_ADDR_BGQ), &mrf_form_socket);
	ck_assert_uint_eq(mrf_form_format(&mrf_form_socket, AF_INET), FI_SOCKADDR_IN);
	ck_assert_uint_eq(mrf_form_format(&mrf_form_socket, AF_INET6), FI_SOCKADDR_IN6);
}
END_TEST

START_TEST(no_more_is_written_than_there_is_room_for)
{
	union mrf_addr addr = v4("10.99.1.1", 4711);
	size_t room, len = mrf_form_put(forms[_i], &addr, NULL, 0);
	char bytes[MRF_FORM_MAX], whole[MRF_FORM_MAX];

	mrf_form_put(forms[_i], &addr, whole, sizeof(whole));
	for (room = 0; room < len; room++) {
		memset(bytes, 0x5a, sizeof(bytes));
		ck_assert_uint_eq(mrf_form_put(forms[_i], &addr, bytes, room), len);
		ck_assert_int_eq(memcmp(bytes, whole, room), 0);
		ck_assert_int_eq(bytes[room], 0x5a);
	}
}
END_TEST

/* Each byte matters, and so does the length; whoever sends anything else gets no address. */
START_TEST(what_is_no_address_is_not_taken)
{
	const struct mrf_form *form = forms[_i];
	union mrf_addr addr = v4("10.99.1.1", 4711), got;
	char bytes[MRF_FORM_MAX + 1] = { 0 };
	size_t len = mrf_form_put(form, &addr, bytes, sizeof(bytes)), i;

	for (i = 0; i < len; i++)
		ck_assert(!mrf_form_take(form, bytes, i, &got) ||
			  (form->kind == MRF_FORM_SOCKET && i >= 16));
	for (i = 0; i < len; i++) {
		bytes[i] ^= 0x40;
		ck_assert(!mrf_form_take(form, bytes, len, &got) ||
			  memcmp(&got, &addr, sizeof(addr.in)));
		ck_assert(form->kind == MRF_FORM_SOCKET || got.sa.sa_family == AF_INET ||
			  got.sa.sa_family == AF_UNSPEC);
		bytes[i] ^= 0x40;
	}
	if (form->kind != MRF_FORM_SOCKET)
		ck_assert(!mrf_form_take(form, bytes, len + 1, &got));
}
END_TEST

START_TEST(strings_are_what_they_are_made_of)
{
	static const char *const wrong[] = {
		"",
		"fi_shm",
		"fi_shm://",
		"fi_shm://10.99.1.1",
		"fi_shm://10.99.1.1:",
		"fi_shm://10.99.1.1:70000",
		"fi_shm://10.99.1.1:04711",
		"fi_shm://10.99.1:4711",
		"fi_shm://10.99.1.1:4711 ",
		"fi_shm://localhost:4711",
		"fi_shm://[fd00::1]",
		"fi_shm://[fd00::1%]:4711",
		"fi_shm://[fd00:0::1]:4711",
		"fi_sockaddr_in://10.99.1.1:4711",
		("fi_shm://[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:"
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:4711"),
	};
	union mrf_addr got;
	size_t i;

	ck_assert(mrf_form_take(&mrf_form_shm, "fi_shm://[fe80::1%2]:4711", 26, &got));
	ck_assert_uint_eq(got.in6.sin6_scope_id, 2);
	for (i = 0; i < MRF_ARRAY_SIZE(wrong); i++)
		ck_assert_msg(!mrf_form_take(&mrf_form_shm, wrong[i], strlen(wrong[i]) + 1, &got),
			      "%s", wrong[i]);
	ck_assert_uint_eq(mrf_form_size(&mrf_form_shm, AF_INET, "ab\0cd", 6), 3);
	ck_assert_uint_eq(mrf_form_size(&mrf_form_shm, AF_INET, "abcd", 2), 2);
}
END_TEST

START_TEST(texts_name_form_host_and_port)
{
	static const char *const want[] = {
		"fi_sockaddr_in://10.99.1.1:4711", "fi_addr_efa://10.99.1.1:4711",
		"fi_addr_psmx2://10.99.1.1:4711",  "fi_addr_psmx3://10.99.1.1:4711",
		"fi_addr_opx://10.99.1.1:4711",	   "fi_addr_cxi://10.99.1.1:4711",
		"fi_shm://10.99.1.1:4711"
	};
	union mrf_addr four = v4("10.99.1.1", 4711), six = v6("fd00::1", 1, 0);
	char text[MRF_FORM_MAX];

	ck_assert_str_eq(mrf_form_text(forms[_i], &four, text), want[_i]);
	if (!_i)
		ck_assert_str_eq(mrf_form_text(forms[0], &six, text),
				 "fi_sockaddr_in6://[fd00::1]:1");
}
END_TEST

static TCase *tcase_form(void)
{
	TCase *tc = tcase_create("form");

	tcase_add_loop_test(tc, address_comes_back_from_each_form, 0, FORMS);
	tcase_add_loop_test(tc, forms_have_the_lengths_of_their_providers, 0, FORMS);
	tcase_add_test(tc, forms_are_found_by_their_formats);
	tcase_add_loop_test(tc, no_more_is_written_than_there_is_room_for, 0, FORMS);
	tcase_add_loop_test(tc, what_is_no_address_is_not_taken, 0, FORMS);
	tcase_add_test(tc, strings_are_what_they_are_made_of);
	tcase_add_loop_test(tc, texts_name_form_host_and_port, 0, FORMS);
	return tc;
}

UNIT_MAIN("form", tcase_form)
