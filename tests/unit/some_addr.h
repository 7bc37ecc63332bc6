/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of a host, a port and a scope. */
#ifndef TESTS_SOME_ADDR_H
#define TESTS_SOME_ADDR_H

#include <arpa/inet.h>
#include "base/addr.h"
#include "unit.h"

static union mrf_addr v4(const char *host, uint16_t port)
{
	union mrf_addr addr = { .in = { .sin_family = AF_INET, .sin_port = htons(port) } };

	ck_assert_int_eq(inet_pton(AF_INET, host, &addr.in.sin_addr), 1);
	return addr;
}

static union mrf_addr v6(const char *host, uint16_t port, uint32_t scope)
{
	union mrf_addr addr = {
		.in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope }
	};

	ck_assert_int_eq(inet_pton(AF_INET6, host, &addr.in6.sin6_addr), 1);
	return addr;
}

#endif
