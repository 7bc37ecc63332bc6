/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/lock.h"
#include "base/addr.h"

size_t mrf_addr_len(const union mrf_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);
}

bool mrf_addr_set(union mrf_addr *addr, const struct sockaddr *from, size_t len)
{
	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = from->sa_family;
	if ((from->sa_family != AF_INET && from->sa_family != AF_INET6) || len < mrf_addr_len(addr))
		return false;
	memcpy(addr, from, mrf_addr_len(addr));
	return true;
}

const uint8_t *mrf_addr_host(const struct sockaddr *sa, size_t *len)
{
	const union mrf_addr *addr = (const void *)sa;
	bool six = sa->sa_family == AF_INET6;

	*len = six ? sizeof(addr->in6.sin6_addr) : sizeof(addr->in.sin_addr);
	return six ? addr->in6.sin6_addr.s6_addr : (const uint8_t *)&addr->in.sin_addr;
}

char *mrf_addr_text(const union mrf_addr *addr, char *buf, size_t len)
{
	char host[INET6_ADDRSTRLEN], scope[16] = "";

	switch (addr->sa.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &addr->in.sin_addr, host, sizeof(host));
		snprintf(buf, len, "%s:%u", host, ntohs(addr->in.sin_port));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, host, sizeof(host));
		if (addr->in6.sin6_scope_id)
			snprintf(scope, sizeof(scope), "%%%u", addr->in6.sin6_scope_id);
		snprintf(buf, len, "[%s%s]:%u", host, scope, ntohs(addr->in6.sin6_port));
		break;
	default:
		snprintf(buf, len, "address family %u", addr->sa.sa_family);
	}
	return buf;
}

uint16_t mrf_addr_port(const union mrf_addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : addr->in.sin_port);
}

void mrf_addr_set_port(union mrf_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
	else
		addr->in.sin_port = htons(port);
}

static const char *fault_in(const struct sockaddr_in *in)
{
	uint32_t host = ntohl(in->sin_addr.s_addr);

	if (host == INADDR_ANY)
		return "the wildcard address names no peer";
	if (IN_MULTICAST(host) || host == INADDR_BROADCAST)
		return "a multicast or broadcast address names no single peer";
	return NULL;
}

static const char *fault_in6(const struct sockaddr_in6 *in6)
{
	if (IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		return "the wildcard address names no peer";
	if (IN6_IS_ADDR_MULTICAST(&in6->sin6_addr))
		return "a multicast address names no single peer";
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) && !in6->sin6_scope_id)
		return "a link-local address needs a scope id";
	return NULL;
}

const char *mrf_addr_fault(const union mrf_addr *addr, sa_family_t family)
{
	const char *fault;

	if (addr->sa.sa_family != family)
		return family == AF_INET ? "the domain's addresses are FI_SOCKADDR_IN"
					 : "the domain's addresses are FI_SOCKADDR_IN6";
	fault = family == AF_INET ? fault_in(&addr->in) : fault_in6(&addr->in6);
	if (fault)
		return fault;
	return mrf_addr_port(addr) ? NULL : "port 0 names no endpoint";
}

/* Adds n to a big-endian number; false when it does not fit. */
static bool add_be(uint8_t *bytes, size_t len, uint64_t n)
{
	unsigned carry = 0;

	while (len--) {
		carry += bytes[len] + (unsigned)(n & 0xff);
		bytes[len] = (uint8_t)carry;
		carry >>= 8;
		n >>= 8;
	}
	return !n && !carry;
}

bool mrf_addr_advance(union mrf_addr *addr, uint64_t hosts, uint64_t ports)
{
	unsigned long port = mrf_addr_port(addr);
	size_t len;
	uint8_t *host = (uint8_t *)mrf_addr_host(&addr->sa, &len);

	if (!add_be(host, len, hosts) || ports > UINT16_MAX - port)
		return false;
	mrf_addr_set_port(addr, (uint16_t)(port + ports));
	return true;
}

bool mrf_addr_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	size_t len;
	const uint8_t *x = mrf_addr_host(a, &len), *y = mrf_addr_host(b, &len);

	return a->sa_family == b->sa_family && !memcmp(x, y, len);
}

uint64_t mrf_addr_hash(const union mrf_addr *addr, const uint64_t seed[2])
{
	uint64_t words[3] = { mrf_addr_port(addr), 0, 0 }, hash;
	size_t len;
	const uint8_t *host = mrf_addr_host(&addr->sa, &len);

	_Static_assert(crypto_shorthash_KEYBYTES == 2 * sizeof(*seed) &&
			       crypto_shorthash_BYTES == sizeof(hash),
		       "as the type of the seed and the hash");
	memcpy(&words[1], host, len);
	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)words, sizeof(words),
			 (const uint8_t *)seed);
	return hash;
}

/* Reads it like getaddrinfo: a number is a port, anything else a name. */
static bool is_no_port(const char *service)
{
	unsigned long port;
	char *end;
	int err = errno;

	if (!service || !*service)
		return false;
	port = strtoul(service, &end, 10);
	errno = err;
	return !*end && port > UINT16_MAX;
}

int mrf_addr_resolve(const char *node, const char *service, const struct addrinfo *hints,
		     struct addrinfo **list)
{
	mrf_slow_call();
	return is_no_port(service) ? EAI_SERVICE : getaddrinfo(node, service, hints, list);
}

const char *mrf_addr_unresolved(const char *service, int error)
{
	if (error == EAI_SYSTEM)
		return strerror(errno);
	if (error == EAI_SERVICE && is_no_port(service))
		return "the service is a number, but not a port: the highest port is 65535";
	return gai_strerror(error);
}
