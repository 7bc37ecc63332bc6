/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/query.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "base/names.h"
#include "base/env.h"
#include "domain/domain.h"
#include "info/decline.h"

/* --- socket addresses ------------------------------------------------------ */

/* 0.0.0.0 or :: */
static bool addr_any(const union mrf_addr *addr)
{
	static const uint8_t zero[sizeof(struct in6_addr)];
	size_t len;
	const uint8_t *bytes = mrf_addr_host(&addr->sa, &len);

	return !memcmp(bytes, zero, len);
}

static bool addr_loopback(const union mrf_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return ntohl(addr->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

/* Do the first bits of two addresses of one family agree? */
static bool addr_same_bits(const struct sockaddr *a, const struct sockaddr *b, unsigned bits)
{
	size_t len, whole = bits / 8;
	const uint8_t *x = mrf_addr_host(a, &len), *y = mrf_addr_host(b, &len);

	if (memcmp(x, y, whole))
		return false;
	return !(bits % 8) || !((x[whole] ^ y[whole]) >> (8 - bits % 8));
}

void mrf_info_network(const struct mrf_vnl_path *path, char *buf, size_t len)
{
	uint8_t network[sizeof(struct in6_addr)] = { 0 };
	char text[INET6_ADDRSTRLEN];
	size_t size, i;
	const uint8_t *bytes = mrf_addr_host(&path->addr.sa, &size);
	unsigned bits = path->prefix;

	for (i = 0; i < size && bits; i++) {
		network[i] = bits >= 8 ? bytes[i] : bytes[i] & (uint8_t)(0xff00 >> bits);
		bits -= bits >= 8 ? 8 : bits;
	}
	inet_ntop(path->addr.sa.sa_family, network, text, sizeof(text));
	snprintf(buf, len, "%s/%u", text, path->prefix);
}

/* --- what is asked --------------------------------------------------------- */

static int hinted_family(const struct fi_info *hints)
{
	if (hints && hints->addr_format == FI_SOCKADDR_IN)
		return AF_INET;
	if (hints && hints->addr_format == FI_SOCKADDR_IN6)
		return AF_INET6;
	return AF_UNSPEC;
}

static const char *or_null(const char *text)
{
	return text ? text : "(none)";
}

static int refuse_name(const struct mrf_info_query *query, int error)
{
	const char *reason = mrf_addr_unresolved(query->service, error);

	if (error == EAI_MEMORY)
		return mrf_refuse(FI_ENOMEM, FI_LOG_FABRIC, 1005, "getaddrinfo failed: %s", reason);
	return mrf_info_decline(1005, NULL, "node=%s service=%s%s: %s", or_null(query->node),
				or_null(query->service),
				query->flags & FI_NUMERICHOST ? " (FI_NUMERICHOST)" : "", reason);
}

/* Without a node the answer is "any local address", at either end. */
static int resolve_name(const struct mrf_info_query *query, struct mrf_info_addrs *addrs)
{
	const struct addrinfo ask = {
		.ai_flags = (query->node ? 0 : AI_PASSIVE) |
			    (query->flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0),
		.ai_family = hinted_family(query->hints),
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *list, *ai;
	int error = mrf_addr_resolve(query->node, query->service, &ask, &list);

	if (error)
		return refuse_name(query, error);
	for (ai = list; ai && addrs->count < MRF_INFO_ADDRS; ai = ai->ai_next) {
		if (ai->ai_family == AF_INET || ai->ai_family == AF_INET6)
			memcpy(&addrs->addr[addrs->count++], ai->ai_addr, ai->ai_addrlen);
	}
	freeaddrinfo(list);
	return 0;
}

/* One in the provider's own form. */
static int take_foreign_hint(const struct mrf_info_query *query, struct mrf_info_addrs *addrs,
			     const char *field, const void *hint, size_t len)
{
	if (!mrf_form_take(query->form, hint, len, &addrs->addr[0]))
		return mrf_info_decline(1008, field,
					"hints->%s, of %zu byte%s, is not an address of format %s, "
					"which FI_MRFAB_PROFILE=%s offers",
					field, len, MRF_S(len),
					mrf_names_enum(&mrf_names_addr_format, query->form->format),
					query->profile->name);
	addrs->count = 1;
	return 0;
}

static int take_hint(const struct mrf_info_query *query, struct mrf_info_addrs *addrs,
		     const char *field, const void *hint, size_t len)
{
	const struct sockaddr *sa = hint;

	if (query->form->kind != MRF_FORM_SOCKET)
		return take_foreign_hint(query, addrs, field, hint, len);
	if (len < sizeof(sa->sa_family))
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 1007,
				  "hints->%slen=%zu is too short for hints->%s", field, len, field);
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return mrf_info_decline(1008, field,
					"hints->%s has family %u: only IPv4 and IPv6 are offered",
					field, sa->sa_family);
	if (!mrf_addr_set(&addrs->addr[0], sa, len))
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 1007,
				  "hints->%slen=%zu: an address of this family has %zu bytes",
				  field, len, mrf_addr_len(&addrs->addr[0]));
	addrs->count = 1;
	return 0;
}

static int refuse_foreign(const struct mrf_info_query *query)
{
	uint32_t asked = query->hints->addr_format;

	return mrf_refuse(FI_ENODATA, FI_LOG_FABRIC, 1037,
			  "hints->addr_format=%u (%s): FI_MRFAB_PROFILE=%s (%s) offers only %s",
			  asked, mrf_names_enum(&mrf_names_addr_format, asked),
			  query->profile->name, query->profile->what,
			  mrf_names_enum(&mrf_names_addr_format, query->form->format));
}

static int check_format(const struct mrf_info_query *query)
{
	const struct fi_info *hints = query->hints;

	if (query->form->kind != MRF_FORM_SOCKET)
		return hints->addr_format && hints->addr_format != query->form->format
			       ? refuse_foreign(query)
			       : 0;
	switch (hints->addr_format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
		return 0;
	default:
		return mrf_info_decline(
			1009, NULL,
			"hints->addr_format=%u (%s): offered are FI_SOCKADDR_IN and "
			"FI_SOCKADDR_IN6",
			hints->addr_format,
			mrf_names_enum(&mrf_names_addr_format, hints->addr_format));
	}
}

int mrf_info_resolve(struct mrf_info_query *query)
{
	const struct fi_info *hints = query->hints;
	bool named = query->node || query->service;
	bool source = query->flags & FI_SOURCE;
	int ret = 0;

	if (hints)
		ret = check_format(query);
	if (!ret && named)
		ret = resolve_name(query, source ? &query->src : &query->dest);
	if (!ret && hints && hints->src_addr && !source)
		ret = take_hint(query, &query->src, "src_addr", hints->src_addr,
				hints->src_addrlen);
	if (!ret && hints && hints->dest_addr && (source || !named))
		ret = take_hint(query, &query->dest, "dest_addr", hints->dest_addr,
				hints->dest_addrlen);
	return ret;
}

/* --- does a path answer it? ------------------------------------------------ */

static bool match_src(const struct mrf_info_addrs *asked, const union mrf_addr *own,
		      union mrf_addr *src)
{
	union mrf_addr want;
	unsigned i;

	*src = *own;
	for (i = 0; i < asked->count; i++) {
		want = asked->addr[i];
		if (want.sa.sa_family != own->sa.sa_family ||
		    (!addr_any(&want) && !mrf_addr_same_host(&want.sa, &own->sa)))
			continue;
		mrf_addr_set_port(src, mrf_addr_port(&want));
		return true;
	}
	return !asked->count;
}

bool mrf_info_from(const struct mrf_info_query *query, const union mrf_addr *addr)
{
	union mrf_addr src;

	return match_src(&query->src, addr, &src);
}

static bool match_dest(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
		       struct mrf_info_match *match)
{
	const struct sockaddr *own = &path->addr.sa;
	union mrf_addr want;
	unsigned i;

	match->near = !query->dest.count;
	for (i = 0; i < query->dest.count && !match->near; i++) {
		want = query->dest.addr[i];
		if (want.sa.sa_family != own->sa_family || addr_loopback(&want))
			continue;
		if (addr_any(&want)) {
			/* "This host": by the address that the path has anyway. */
			match->dest = match->src;
			mrf_addr_set_port(&match->dest, mrf_addr_port(&want));
			match->near = true;
		} else {
			match->near = addr_same_bits(&want.sa, own, path->prefix);
			if (match->has_dest && !match->near)
				continue;
			match->dest = want;
		}
		match->has_dest = true;
	}
	return match->has_dest || !query->dest.count;
}

/* "10.99.1.7:0 and 2 more" */
static char *addrs_text(const struct mrf_info_addrs *addrs, char *buf, size_t len)
{
	char one[64];

	mrf_addr_text(&addrs->addr[0], one, sizeof(one));
	if (addrs->count > 1)
		snprintf(buf, len, "%s and %u more", one, addrs->count - 1);
	else
		snprintf(buf, len, "%s", one);
	return buf;
}

static bool differs(struct mrf_info_match *match, unsigned code, const char *fmt, ...)
	MRF_PRINTF(3, 4);

/* Says why a path does not match. Always false. */
static bool differs(struct mrf_info_match *match, unsigned code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(match->why, sizeof(match->why), fmt, ap);
	va_end(ap);
	match->code = code;
	return false;
}

static bool match_fabric(const struct fi_fabric_attr *attr, const struct mrf_vnl_path *path,
			 struct mrf_info_match *match)
{
	const struct mrf_fabric *fabric;
	char network[INET6_ADDRSTRLEN + 4];
	const char *name = attr->name, *field = "name";

	mrf_info_network(path, network, sizeof(network));
	if (attr->fabric) {
		fabric = mrf_container_of(attr->fabric, struct mrf_fabric, fid);
		name = fabric->name;
		field = "fabric";
	}
	return !name || !strcmp(name, network) ||
	       differs(match, 1051, "hints->fabric_attr->%s asks for \"%s\", but this is \"%s\"",
		       field, name, network);
}

/* An open domain stays on its address and in its mode. */
static bool match_open_domain(const struct mrf_info_query *query, const struct mrf_domain *domain,
			      const struct mrf_vnl_path *path, struct mrf_info_match *match)
{
	uint64_t mode = (uint32_t)domain->mr_mode;
	uint64_t offer = mrf_info_mode_answer(query) | query->mr.mr_mode;
	char addr[64];

	if (!mrf_addr_same_host(&domain->addr.sa, &path->addr.sa))
		return differs(match, 1050, "hints->domain_attr->domain was opened on %s",
			       mrf_addr_text(&domain->addr, addr, sizeof(addr)));
	if ((offer & mode) != mode)
		return differs(match, 1056,
			       "hints->domain_attr->domain runs with mr_mode %#lx, but only %#lx "
			       "is offered",
			       mode, offer);
	if (mode & FI_MR_HMEM || !(query->hints->caps & FI_HMEM))
		return true;
	return differs(match, 1057,
		       "hints->caps has FI_HMEM, but hints->domain_attr->domain was opened "
		       "without it");
}

static bool match_domain(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
			 struct mrf_info_match *match)
{
	const struct fi_domain_attr *attr = query->hints->domain_attr;

	if (attr->name && strcmp(attr->name, path->dev.name))
		return differs(match, 1050,
			       "hints->domain_attr->name asks for \"%s\", but this is \"%s\"",
			       attr->name, path->dev.name);
	return !attr->domain ||
	       match_open_domain(query, mrf_container_of(attr->domain, struct mrf_domain, fid),
				 path, match);
}

static bool match_names(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
			struct mrf_info_match *match)
{
	const struct fi_info *hints = query->hints;
	const char *iface = mrf_env_str(MRF_PARAM_IFACE);
	int family = hinted_family(hints);

	if (iface && strcmp(iface, path->dev.name) && strcmp(iface, path->dev.netdev))
		return differs(match, 1055, "FI_MRFAB_IFACE=%s asks for another device", iface);
	if (family != AF_UNSPEC && family != path->addr.sa.sa_family)
		return differs(match, 1052, "hints->addr_format asks for %s addresses",
			       family == AF_INET ? "IPv4" : "IPv6");
	if (!mrf_form_has(query->form, path->addr.sa.sa_family))
		return differs(match, 1058,
			       "an address of FI_MRFAB_PROFILE=%s cannot hold an IPv6 address",
			       query->profile->name);
	if (hints && hints->fabric_attr && !match_fabric(hints->fabric_attr, path, match))
		return false;
	return !hints || !hints->domain_attr || match_domain(query, path, match);
}

bool mrf_info_match(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
		    struct mrf_info_match *match)
{
	char text[96];

	memset(match, 0, sizeof(*match));
	if (path->state != MRF_VNL_USABLE) {
		mrf_vnl_why(path, match->why, sizeof(match->why));
		match->code = mrf_vnl_code(path->state);
		return false;
	}
	if (!match_names(query, path, match))
		return false;
	if (!match_src(&query->src, &path->addr, &match->src))
		return differs(match, 1053, "the local address asked for is %s",
			       addrs_text(&query->src, text, sizeof(text)));
	if (match_dest(query, path, match))
		return true;
	return differs(match, 1054,
		       "the destination asked for is %s, which is of the other address "
		       "family or a loopback address (rdma_cm does not serve these): "
		       "name an address of the interface that rxe was added to",
		       addrs_text(&query->dest, text, sizeof(text)));
}
