/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include "base/addr.h"
#include "base/compiler.h"
#include "some_addr.h"
#include "unit.h"

static void ck_text(union mrf_addr addr, const char *want)
{
	char buf[MRF_ADDR_TEXT];

	ck_assert_ptr_eq(mrf_addr_text(&addr, buf, sizeof(buf)), buf);
	ck_assert_str_eq(buf, want);
}

START_TEST(addr_text_is_host_and_port)
{
	union mrf_addr none = { .sa = { .sa_family = AF_UNIX } }, addr = v4("10.99.1.1", 4711);
	char small[6];

	ck_text(v4("10.99.1.1", 4711), "10.99.1.1:4711");
	ck_text(v4("255.255.255.255", 65535), "255.255.255.255:65535");
	ck_text(v6("fd00::1", 4711, 0), "[fd00::1]:4711");
	ck_text(v6("fe80::1", 1, 7), "[fe80::1%7]:1");
	ck_text(v6("1111:2222:3333:4444:5555:6666:7777:8888", 65535, UINT32_MAX),
		"[1111:2222:3333:4444:5555:6666:7777:8888%4294967295]:65535");
	ck_text(none, "address family 1");
	ck_assert_str_eq(mrf_addr_text(&addr, small, sizeof(small)), "10.99");
}
END_TEST

START_TEST(addr_len_and_port_go_by_family)
{
	union mrf_addr a = v4("1.2.3.4", 5), b = v6("::1", 6, 0);

	ck_assert_uint_eq(mrf_addr_len(&a), 16);
	ck_assert_uint_eq(mrf_addr_len(&b), 28);
	ck_assert_uint_eq(mrf_addr_port(&a), 5);
	ck_assert_uint_eq(mrf_addr_port(&b), 6);
	mrf_addr_set_port(&a, 500);
	mrf_addr_set_port(&b, 600);
	ck_assert_uint_eq(ntohs(a.in.sin_port), 500);
	ck_assert_uint_eq(ntohs(b.in6.sin6_port), 600);
}
END_TEST

static void ck_fault(union mrf_addr addr, sa_family_t family, const char *want)
{
	const char *fault = mrf_addr_fault(&addr, family);

	if (!want)
		ck_assert_msg(!fault, "%s", fault);
	else
		ck_assert_msg(fault && strstr(fault, want), "%s, not %s", fault, want);
}

START_TEST(addr_fault_names_what_cannot_be_a_peer)
{
	ck_fault(v4("10.0.0.1", 1), AF_INET, NULL);
	ck_fault(v4("127.0.0.1", 1), AF_INET, NULL);
	ck_fault(v6("fd00::1", 1, 0), AF_INET6, NULL);
	ck_fault(v6("fe80::1", 1, 3), AF_INET6, NULL);
	ck_fault(v4("10.0.0.1", 0), AF_INET, "port 0");
	ck_fault(v6("fd00::1", 0, 0), AF_INET6, "port 0");
	ck_fault(v4("0.0.0.0", 1), AF_INET, "wildcard");
	ck_fault(v6("::", 1, 0), AF_INET6, "wildcard");
	ck_fault(v4("224.0.0.1", 1), AF_INET, "multicast");
	ck_fault(v4("255.255.255.255", 1), AF_INET, "broadcast");
	ck_fault(v6("ff02::1", 1, 0), AF_INET6, "multicast");
	ck_fault(v6("fe80::1", 1, 0), AF_INET6, "scope");
	ck_fault(v6("fd00::1", 1, 0), AF_INET, "FI_SOCKADDR_IN");
	ck_fault(v4("10.0.0.1", 1), AF_INET6, "FI_SOCKADDR_IN6");
}
END_TEST

START_TEST(addr_advance_counts_hosts_and_ports)
{
	union mrf_addr a = v4("10.1.1.255", 5000), b = v6("fd00::ffff:ffff:ffff:ffff", 1, 0);

	ck_assert(mrf_addr_advance(&a, 0, 0));
	ck_text(a, "10.1.1.255:5000");
	ck_assert(mrf_addr_advance(&a, 2, 3));
	ck_text(a, "10.1.2.1:5003");
	ck_assert(mrf_addr_advance(&b, 1, 0));
	ck_text(b, "[fd00:0:0:1::]:1");
	a = v4("1.0.0.0", 1);
	ck_assert(mrf_addr_advance(&a, 0xfeffffff, 65534));
	ck_text(a, "255.255.255.255:65535");
}
END_TEST

START_TEST(addr_advance_ends_at_the_last_address_and_port)
{
	union mrf_addr a = v4("255.255.255.255", 1), b = v4("10.0.0.1", 65535),
		       c = v6("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 1, 0),
		       d = v4("10.0.0.1", 1);

	ck_assert(!mrf_addr_advance(&a, 1, 0));
	ck_assert(!mrf_addr_advance(&b, 0, 1));
	ck_assert(!mrf_addr_advance(&c, 1, 0));
	ck_assert(!mrf_addr_advance(&d, 0, UINT64_MAX));
	d = v4("10.0.0.1", 1);
	ck_assert(!mrf_addr_advance(&d, UINT64_MAX, 0));
}
END_TEST

START_TEST(addr_hash_is_of_host_port_and_seed)
{
	static const uint64_t seed[3][2] = { { 1, 2 }, { 1, 3 }, { 2, 2 } };
	union mrf_addr a[] = { v4("10.0.0.1", 7),   v4("10.0.0.2", 7),	 v4("10.0.0.1", 8),
			       v6("fd00::1", 7, 0), v6("fd00::2", 7, 0), v6("fd01::1", 7, 0),
			       v6("fd00::1", 8, 0) };
	union mrf_addr scoped = v6("fd00::1", 7, 9);
	uint64_t hash[MRF_ARRAY_SIZE(a)];

	for (size_t i = 0; i < MRF_ARRAY_SIZE(a); i++) {
		hash[i] = mrf_addr_hash(&a[i], seed[0]);
		ck_assert_uint_eq(hash[i], mrf_addr_hash(&a[i], seed[0]));
		ck_assert_uint_ne(hash[i], mrf_addr_hash(&a[i], seed[1]));
		ck_assert_uint_ne(hash[i], mrf_addr_hash(&a[i], seed[2]));
		for (size_t j = 0; j < i; j++)
			ck_assert_uint_ne(hash[i], hash[j]);
	}
	ck_assert_uint_eq(mrf_addr_hash(&scoped, seed[0]), hash[3]);
}
END_TEST

/* Ports and hosts that differ in one bit are spread over all values. */
START_TEST(addr_hash_spreads_what_is_close)
{
	static const uint64_t seed[2] = { 4711, 42 };
	unsigned in[256] = { 0 };

	for (unsigned n = 0; n < 65536; n++) {
		union mrf_addr addr = v4(n & 1 ? "10.0.0.1" : "10.0.0.2", (uint16_t)(n / 2));

		in[mrf_addr_hash(&addr, seed) % 256]++;
	}
	/* 256 each on average, with a deviation of 16. */
	for (unsigned i = 0; i < 256; i++)
		ck_assert(in[i] > 160 && in[i] < 352);
}
END_TEST

static TCase *tcase_addr(void)
{
	TCase *tc = tcase_create("addr");

	tcase_add_test(tc, addr_text_is_host_and_port);
	tcase_add_test(tc, addr_len_and_port_go_by_family);
	tcase_add_test(tc, addr_fault_names_what_cannot_be_a_peer);
	tcase_add_test(tc, addr_advance_counts_hosts_and_ports);
	tcase_add_test(tc, addr_advance_ends_at_the_last_address_and_port);
	tcase_add_test(tc, addr_hash_is_of_host_port_and_seed);
	tcase_add_test(tc, addr_hash_spreads_what_is_close);
	return tc;
}

UNIT_MAIN("addr", tcase_addr)
