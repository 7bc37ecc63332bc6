/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/form.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fabric.h>
#include "base/compiler.h"

/*
 * Names are those of libfabric 1.17, and so are the lengths of psm2, psm3 and shm (its fabric.h; shm was
 * measured). That of cxi is its release 2.1's. Those of efa and opx are from general knowledge of these providers.
 */
const struct mrf_form mrf_form_socket = { MRF_FORM_SOCKET, FI_FORMAT_UNSPEC, 0, NULL };
const struct mrf_form mrf_form_efa = { MRF_FORM_BYTES, FI_ADDR_EFA, 32, "fi_addr_efa" };
const struct mrf_form mrf_form_psmx2 = { MRF_FORM_BYTES, FI_ADDR_PSMX2, 16, "fi_addr_psmx2" };
const struct mrf_form mrf_form_psmx3 = { MRF_FORM_BYTES, FI_ADDR_PSMX3, 32, "fi_addr_psmx3" };
const struct mrf_form mrf_form_opx = { MRF_FORM_BYTES, FI_ADDR_OPX, 8, "fi_addr_opx" };
const struct mrf_form mrf_form_cxi = { MRF_FORM_BYTES, FI_ADDR_CXI, 8, "fi_addr_cxi" };
const struct mrf_form mrf_form_shm = { MRF_FORM_STRING, FI_ADDR_STR, 0, "fi_shm" };

const struct mrf_form *mrf_form_of(uint32_t format)
{
	static const struct mrf_form *const forms[] = { &mrf_form_efa,	 &mrf_form_psmx2,
							&mrf_form_psmx3, &mrf_form_opx,
							&mrf_form_cxi,	 &mrf_form_shm };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(forms); i++) {
		if (forms[i]->format == format)
			return forms[i];
	}
	return &mrf_form_socket;
}

/* --- bytes: 4 or 6, 0, the port, the host, and the scope of IPv6; then zeros ----------------- */

enum { PORT = 2, HOST = 4, SCOPE = 20, BYTES_4 = 8, BYTES_6 = 24 };

static void put_bytes(const struct mrf_form *form, const union mrf_addr *addr, uint8_t *to)
{
	uint16_t port = htons(mrf_addr_port(addr));
	size_t len;
	const uint8_t *host = mrf_addr_host(&addr->sa, &len);

	memset(to, 0, form->len);
	to[0] = addr->sa.sa_family == AF_INET6 ? 6 : 4;
	memcpy(to + PORT, &port, sizeof(port));
	memcpy(to + HOST, host, len);
	if (addr->sa.sa_family == AF_INET6)
		memcpy(to + SCOPE, &addr->in6.sin6_scope_id, sizeof(uint32_t));
}

static bool take_bytes(const struct mrf_form *form, const uint8_t *from, union mrf_addr *addr)
{
	addr->sa.sa_family = from[0] == 6 ? AF_INET6 : AF_INET;
	if (!mrf_form_has(form, addr->sa.sa_family))
		return false;
	if (from[0] == 6) {
		memcpy(&addr->in6.sin6_port, from + PORT, sizeof(addr->in6.sin6_port));
		memcpy(&addr->in6.sin6_addr, from + HOST, sizeof(addr->in6.sin6_addr));
		memcpy(&addr->in6.sin6_scope_id, from + SCOPE, sizeof(uint32_t));
	} else {
		memcpy(&addr->in.sin_port, from + PORT, sizeof(addr->in.sin_port));
		memcpy(&addr->in.sin_addr, from + HOST, sizeof(addr->in.sin_addr));
	}
	return true;
}

/* --- strings ------------------------------------------------------------------------------- */

/* No name is looked up. */
static bool take_string(const struct mrf_form *form, const char *text, union mrf_addr *addr)
{
	size_t len = strlen(form->scheme);
	char host[INET6_ADDRSTRLEN];
	unsigned port, scope = 0;

	if (strncmp(text, form->scheme, len) != 0 || strncmp(text + len, "://", 3) != 0)
		return false;
	text += len + 3;
	if (sscanf(text, "%15[0-9.]:%u", host, &port) == 2) {
		addr->sa.sa_family = AF_INET;
		if (inet_pton(AF_INET, host, &addr->in.sin_addr) != 1)
			return false;
	} else {
		addr->sa.sa_family = AF_INET6;
		if ((sscanf(text, "[%45[0-9a-f:.]%%%u]:%u", host, &scope, &port) != 3 &&
		     sscanf(text, "[%45[0-9a-f:.]]:%u", host, &port) != 2) ||
		    inet_pton(AF_INET6, host, &addr->in6.sin6_addr) != 1)
			return false;
		addr->in6.sin6_scope_id = scope;
	}
	mrf_addr_set_port(addr, (uint16_t)port);
	return true;
}

char *mrf_form_text(const struct mrf_form *form, const union mrf_addr *addr, char *buf)
{
	const char *scheme = form->scheme;
	char text[MRF_ADDR_TEXT];

	if (!scheme)
		scheme = addr->sa.sa_family == AF_INET6 ? "fi_sockaddr_in6" : "fi_sockaddr_in";
	snprintf(buf, MRF_FORM_MAX, "%s://%s", scheme, mrf_addr_text(addr, text, sizeof(text)));
	return buf;
}

/* --- any form ------------------------------------------------------------------------------ */

bool mrf_form_has(const struct mrf_form *form, sa_family_t family)
{
	return form->kind != MRF_FORM_BYTES ||
	       form->len >= (family == AF_INET6 ? BYTES_6 : BYTES_4);
}

uint32_t mrf_form_format(const struct mrf_form *form, sa_family_t family)
{
	if (form->kind != MRF_FORM_SOCKET)
		return form->format;
	return family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

/* to: MRF_FORM_MAX bytes. */
static size_t put_whole(const struct mrf_form *form, const union mrf_addr *addr, char *to)
{
	switch (form->kind) {
	case MRF_FORM_SOCKET:
		memcpy(to, addr, mrf_addr_len(addr));
		return mrf_addr_len(addr);
	case MRF_FORM_BYTES:
		put_bytes(form, addr, (uint8_t *)to);
		return form->len;
	case MRF_FORM_STRING:
		break;
	}
	return strlen(mrf_form_text(form, addr, to)) + 1;
}

size_t mrf_form_put(const struct mrf_form *form, const union mrf_addr *addr, void *to, size_t room)
{
	char whole[MRF_FORM_MAX];
	size_t len = put_whole(form, addr, whole);

	if (room)
		memcpy(to, whole, mrf_min(room, len));
	return len;
}

size_t mrf_form_size(const struct mrf_form *form, sa_family_t family, const void *from, size_t len)
{
	const union mrf_addr any = { .sa.sa_family = family };

	switch (form->kind) {
	case MRF_FORM_SOCKET:
		return mrf_min(len, mrf_addr_len(&any));
	case MRF_FORM_BYTES:
		return mrf_min(len, form->len);
	case MRF_FORM_STRING:
		break;
	}
	/* What is longer is no address, but the next one is behind its end. */
	return mrf_min(len, strnlen(from, len) + 1);
}

/* Nothing else is in it: it is what this address becomes. */
static bool is_address(const struct mrf_form *form, const union mrf_addr *addr, const void *from,
		       size_t len)
{
	char whole[MRF_FORM_MAX];

	return put_whole(form, addr, whole) == len && !memcmp(whole, from, len);
}

static bool take_foreign(const struct mrf_form *form, const void *from, size_t len,
			 union mrf_addr *addr)
{
	char text[MRF_FORM_MAX] = "";
	bool is_one;

	if (form->kind == MRF_FORM_BYTES) {
		is_one = len == form->len && take_bytes(form, from, addr);
	} else {
		memcpy(text, from, mrf_min(len, sizeof(text) - 1));
		is_one = take_string(form, text, addr);
	}
	return is_one && is_address(form, addr, from, len);
}

bool mrf_form_take(const struct mrf_form *form, const void *from, size_t len, union mrf_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (!from)
		return false;
	if (form->kind == MRF_FORM_SOCKET)
		return len >= sizeof(addr->sa.sa_family) && mrf_addr_set(addr, from, len);
	if (take_foreign(form, from, len, addr))
		return true;
	memset(addr, 0, sizeof(*addr));
	return false;
}
