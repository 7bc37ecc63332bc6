/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a provider writes addresses. Inside, the library knows socket addresses only. Under a profile they
 * become the provider's where an application is told of them, and socket addresses again where they come
 * from it; without one they remain what they are. Pure; any thread.
 */
#ifndef MRF_CONTRACT_FORM_H
#define MRF_CONTRACT_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/addr.h"

enum mrf_form_kind {
	MRF_FORM_SOCKET, /* a socket address */
	MRF_FORM_BYTES,	 /* so many bytes, which mean nothing to applications */
	MRF_FORM_STRING, /* "fi_shm://10.99.1.1:4711", with its NUL */
};

struct mrf_form {
	enum mrf_form_kind kind;
	uint32_t format;    /* fi_info.addr_format; of socket addresses it depends on the family */
	size_t len;	    /* of bytes */
	const char *scheme; /* before "://" */
};

#define MRF_FORM_MAX 96 /* bytes of an address in any form, and of its text */

extern const struct mrf_form mrf_form_socket, mrf_form_efa, mrf_form_psmx2, mrf_form_psmx3,
	mrf_form_opx, mrf_form_cxi, mrf_form_shm;

/* The form with this addr_format, or that of socket addresses. */
const struct mrf_form *mrf_form_of(uint32_t format);
/* Is there room for addresses of this family? */
bool mrf_form_has(const struct mrf_form *form, sa_family_t family);
/* What fi_info.addr_format is for addresses of this family. */
uint32_t mrf_form_format(const struct mrf_form *form, sa_family_t family);

/* Writes what there is room for. Returns how many bytes the address has. */
size_t mrf_form_put(const struct mrf_form *form, const union mrf_addr *addr, void *to, size_t room);
/*
 * How many of at most len bytes are the next address, in an array of those of this family. It need not
 * be one.
 */
size_t mrf_form_size(const struct mrf_form *form, sa_family_t family, const void *from, size_t len);
/*
 * Reads an address of len bytes. False: it is NULL or none of this form; the family is then that of the socket
 * address, or AF_UNSPEC.
 */
bool mrf_form_take(const struct mrf_form *form, const void *from, size_t len, union mrf_addr *addr);
/* "fi_addr_efa://10.99.1.1:4711", as fi_av_straddr has it. Returns buf, which has MRF_FORM_MAX bytes. */
char *mrf_form_text(const struct mrf_form *form, const union mrf_addr *addr, char *buf);

#endif
