/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses of the two families that endpoints have. Pure.
 */
#ifndef MRF_BASE_ADDR_H
#define MRF_BASE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union mrf_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

#define MRF_ADDR_TEXT 64 /* always enough for mrf_addr_text */

/* The length of the address in bytes, by its family: 16 or 28. */
size_t mrf_addr_len(const union mrf_addr *addr);
/*
 * Copies an address of at least len bytes (SIZE_MAX: as many as it needs). False: it is of
 * neither family, or too short; only its family was copied.
 */
bool mrf_addr_set(union mrf_addr *addr, const struct sockaddr *from, size_t len);
/* The bytes that name the host: *len is 4 or 16. */
const uint8_t *mrf_addr_host(const struct sockaddr *sa, size_t *len);
/* "10.99.1.1:4711", "[fd00::1]:4711"; returns buf. */
char *mrf_addr_text(const union mrf_addr *addr, char *buf, size_t len);

/* Do both name the same host? Ports do not matter. */
bool mrf_addr_same_host(const struct sockaddr *a, const struct sockaddr *b);

/*
 * A hash of host and port, not of the scope. Without the seed nobody can choose addresses whose
 * hashes are alike: libsodium's short hash.
 */
uint64_t mrf_addr_hash(const union mrf_addr *addr, const uint64_t seed[2]);

/* In host order. The family must be one of the two. */
uint16_t mrf_addr_port(const union mrf_addr *addr);
void mrf_addr_set_port(union mrf_addr *addr, uint16_t port);

/*
 * getaddrinfo(3), except that a port above 65535 is EAI_SERVICE; getaddrinfo would take
 * 70000 for 4464. mrf_addr_unresolved returns the meaning of the error in words; for it
 * errno must still be as mrf_addr_resolve left it.
 */
struct addrinfo;
int mrf_addr_resolve(const char *node, const char *service, const struct addrinfo *hints,
		     struct addrinfo **list);
const char *mrf_addr_unresolved(const char *service, int error);

/* Why this cannot be the address of a peer in a domain of that family, or NULL. */
const char *mrf_addr_fault(const union mrf_addr *addr, sa_family_t family);

/*
 * Advances the address by so many hosts and ports. False: that is past the last address
 * or port, and addr must not be used any more.
 */
bool mrf_addr_advance(union mrf_addr *addr, uint64_t hosts, uint64_t ports);

#endif
