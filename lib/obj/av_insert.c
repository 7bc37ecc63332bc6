/* SPDX-License-Identifier: BSD-2-Clause */
/* Inserting into an address vector: addresses, names, and names with a counter. */
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/av_int.h"

/*
 * --- one call that inserts -----------------------------------------------------------
 */

struct insertion {
	struct mrf_av *av;
	fi_addr_t *fi_addr; /* may be NULL for a table */
	int *errs;	    /* FI_SYNC_ERR, else NULL */
	void *context;
	size_t i;   /* entry being inserted */
	int done;   /* entries inserted */
	int eq_ret; /* first failure to report an event */
};

static int check_insert(const struct mrf_av *av, size_t count, const fi_addr_t *fi_addr,
			uint64_t flags, const void *context)
{
	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_AV, 2200,
				  "inserting addresses: flags=%#lx: only FI_MORE and "
				  "FI_SYNC_ERR are offered",
				  flags);
	if ((flags & FI_SYNC_ERR) && av->async)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_AV, 2201,
				  "FI_SYNC_ERR is for address vectors without FI_EVENT");
	if ((flags & FI_SYNC_ERR) && !context && count)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2202,
				  "FI_SYNC_ERR: context must not be NULL, but an array "
				  "with one int for each address, of which there are %zu",
				  count);
	if (!fi_addr && !av->table && count)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2203,
				  "fi_addr must not be NULL, because an FI_AV_MAP has "
				  "no other way to return the addresses");
	if (count > INT_MAX)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2204,
				  "%zu addresses are more than one call can count", count);
	return 0;
}

/* 0 with the lock held until insert_end, or why the call is refused. */
static int insert_begin(struct insertion *ins, struct fid_av *fid, size_t count, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	struct mrf_av *av = mrf_av_of(fid);
	int ret = mrf_obj_check(&av->obj, "fi_av_insert");

	if (!ret)
		ret = check_insert(av, count, fi_addr, flags, context);
	if (ret)
		return ret;
	*ins = (struct insertion){
		.av = av,
		.fi_addr = fi_addr,
		.errs = flags & FI_SYNC_ERR ? context : NULL,
		.context = context,
	};
	/*
	 * Held for the whole call: its addresses get consecutive indices, and its events
	 * stay together.
	 */
	mrf_lock_take(&av->lock);
	if (av->async && !av->eq) {
		mrf_lock_release(&av->lock);
		return mrf_refuse(FI_ENOEQ, FI_LOG_AV, 2205,
				  "the address vector has FI_EVENT but no event queue is bound "
				  "to it yet");
	}
	return 0;
}

static void report_failure(struct insertion *ins, int err, unsigned code, const char *text)
{
	struct fi_eq_err_entry entry = {
		.fid = &ins->av->fid.fid,
		.context = ins->context,
		.data = ins->i,
		.err = err,
		.prov_errno = (int)code,
	};
	int ret = mrf_eq_write_err(ins->av->eq, &entry, text);

	if (ret && !ins->eq_ret)
		ins->eq_ret = ret;
}

/* Reports that this entry failed; what is its name in the log. */
static void insert_failed(struct insertion *ins, int err, unsigned code, const char *what,
			  const char *why)
{
	char text[256];

	mrf_refuse_text(text, sizeof(text), err, FI_LOG_AV, code, "address %zu (%s): %s", ins->i,
			what, why);
	if (ins->fi_addr)
		ins->fi_addr[ins->i] = FI_ADDR_NOTAVAIL;
	if (ins->errs)
		ins->errs[ins->i] = err;
	if (ins->av->async)
		report_failure(ins, err, code, text);
	ins->i++;
}

static const char *fault_of(const struct mrf_av *av, const union mrf_addr *addr)
{
	if (av->form->kind != MRF_FORM_SOCKET && addr->sa.sa_family != av->family)
		return "it is not of the form and family that the domain's addresses have: pass on "
		       "what fi_getname has returned";
	return mrf_addr_fault(addr, av->family);
}

static void insert_one_locked(struct insertion *ins, const union mrf_addr *addr)
{
	const char *fault = fault_of(ins->av, addr);
	char text[MRF_ADDR_TEXT];
	fi_addr_t name;

	mrf_lock_held(&ins->av->lock);
	if (fault) {
		insert_failed(ins, FI_EINVAL, 2206, mrf_addr_text(addr, text, sizeof(text)), fault);
		return;
	}
	if (mrf_av_insert_locked(ins->av, addr, &name)) {
		insert_failed(ins, FI_ENOMEM, 2207, mrf_addr_text(addr, text, sizeof(text)),
			      "there is no memory for the entry");
		return;
	}
	if (mrf_unlikely(ins->av->index != NULL))
		mrf_av_index_add_locked(ins->av, name);
	if (ins->fi_addr)
		ins->fi_addr[ins->i] = name;
	if (ins->errs)
		ins->errs[ins->i] = 0;
	ins->i++;
	ins->done++;
}

/* What the call returns: fi_av(3) "RETURN VALUES". */
static int insert_end(struct insertion *ins)
{
	struct fi_eq_entry entry = { .fid = &ins->av->fid.fid,
				     .context = ins->context,
				     .data = (uint64_t)ins->done };
	struct mrf_av *av = ins->av;
	int ret = ins->done;

	if (av->async) {
		ret = mrf_eq_write(av->eq, FI_AV_COMPLETE, &entry, sizeof(entry));
		if (!ret)
			ret = ins->eq_ret;
	}
	mrf_lock_release(&av->lock);
	return ret;
}

int mrf_av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
		  uint64_t flags, void *context)
{
	const struct mrf_av *av = mrf_av_of(fid);
	const char *next = addr;
	struct insertion ins;
	size_t i;
	int ret;

	if (!addr && count)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2208,
				  "inserting addresses: addr must not be NULL, "
				  "because count is %zu",
				  count);
	ret = insert_begin(&ins, fid, count, fi_addr, flags, context);
	if (ret)
		return ret;
	for (i = 0; i < count; i++) {
		union mrf_addr one;

		mrf_av_read(av, next, &one);
		insert_one_locked(&ins, &one);
		next += mrf_form_size(av->form, av->family, next, SIZE_MAX);
	}
	return insert_end(&ins);
}

/*
 * --- by name -------------------------------------------------------------------------
 */

#define HOST_TEXT 256 /* a DNS name and its NUL */
#define SERVICE_TEXT 64

/* 0, or an error of getaddrinfo(3). */
static int resolve_node(const struct mrf_av *av, const char *node, const char *service,
			union mrf_addr *addr)
{
	struct addrinfo hints = { .ai_family = av->family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	int ret = mrf_addr_resolve(node, service, &hints, &list);

	if (ret)
		return ret;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, list->ai_addr, mrf_min(list->ai_addrlen, sizeof(*addr)));
	freeaddrinfo(list);
	return 0;
}

/* Splits FI_ADDR_STR, "fi_sockaddr_in://host:port" or "fi_sockaddr_in6://[host]:port". */
static bool split_addr_str(const char *text, char *node, char *service)
{
	int end = 0;

	if (sscanf(text, "fi_sockaddr_in://%255[^:]:%63[0-9]%n", node, service, &end) == 2 && end &&
	    !text[end])
		return true;
	end = 0;
	return sscanf(text, "fi_sockaddr_in6://[%255[^]]]:%63[0-9]%n", node, service, &end) == 2 &&
	       end && !text[end];
}

static int check_call(const struct mrf_av *av, const char *call)
{
	const struct mrf_profile *profile = av->profile;

	if (!profile || !profile->by_name)
		return 0;
	return mrf_refuse(profile->by_name, FI_LOG_AV, 2234,
			  "%s: this call does not exist with FI_MRFAB_PROFILE=%s (%s)", call,
			  profile->name, profile->what);
}

static int check_names(const char *call, const char **node, const char **service, char *node_buf,
		       char *service_buf)
{
	if (!*node)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2209, "%s: node is NULL", call);
	if (*service)
		return 0;
	if (!split_addr_str(*node, node_buf, service_buf))
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2210,
				  "%s: service is NULL and node \"%s\" is not an "
				  "FI_ADDR_STR that names one",
				  call, *node);
	*node = node_buf;
	*service = service_buf;
	return 0;
}

int mrf_av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	char node_buf[HOST_TEXT], service_buf[SERVICE_TEXT];
	struct insertion ins;
	union mrf_addr addr;
	int gai, ret;

	ret = check_call(mrf_av_of(fid), "fi_av_insertsvc");
	if (!ret)
		ret = check_names("fi_av_insertsvc", &node, &service, node_buf, service_buf);
	if (ret)
		return ret;
	gai = resolve_node(mrf_av_of(fid), node, service, &addr);
	ret = insert_begin(&ins, fid, 1, fi_addr, flags, context);
	if (ret)
		return ret;
	if (gai)
		insert_failed(&ins, FI_EADDRNOTAVAIL, 2211, node,
			      mrf_addr_unresolved(service, gai));
	else
		insert_one_locked(&ins, &addr);
	return insert_end(&ins);
}

/* "host09" -> "host" and 9 with two digits; false: there is no number at its end. */
static bool split_suffix(const char *node, size_t *prefix, unsigned long *number, int *digits)
{
	size_t len = strlen(node);

	*prefix = len;
	while (*prefix && node[*prefix - 1] >= '0' && node[*prefix - 1] <= '9')
		--*prefix;
	*digits = (int)(len - *prefix);
	*number = strtoul(node + *prefix, NULL, 10);
	/* Nine digits cannot overflow when counted on. */
	return *digits > 0 && *digits < 10;
}

static bool is_numeric(const struct mrf_av *av, const char *node)
{
	struct addrinfo hints = { .ai_family = av->family, .ai_flags = AI_NUMERICHOST };
	struct addrinfo *list;

	if (getaddrinfo(node, NULL, &hints, &list))
		return false;
	freeaddrinfo(list);
	return true;
}

struct symmetric {
	const char *node;
	const char *service;
	size_t nodecnt;
	size_t svccnt;
	bool numeric; /* node is an address to count on, not a name with a number */
};

/* Address of the n-th node at the first service. 0, or an error of getaddrinfo(3). */
static int resolve_nth(const struct mrf_av *av, const struct symmetric *sym, size_t n, char *name,
		       union mrf_addr *addr)
{
	bool count_on_name = n && !sym->numeric;
	unsigned long number;
	size_t prefix;
	int digits, len, ret;

	if (count_on_name) {
		split_suffix(sym->node, &prefix, &number, &digits);
		len = snprintf(name, HOST_TEXT, "%.*s%0*lu", (int)prefix, sym->node, digits,
			       number + n);
	} else {
		len = snprintf(name, HOST_TEXT, "%s", sym->node);
	}
	if (len >= HOST_TEXT)
		return EAI_NONAME;
	ret = resolve_node(av, name, sym->service, addr);
	if (!ret && !count_on_name && !mrf_addr_advance(addr, n, 0))
		ret = EAI_NONAME;
	return ret;
}

static void insert_services_locked(struct insertion *ins, const struct symmetric *sym,
				   const union mrf_addr *first)
{
	size_t s;

	for (s = 0; s < sym->svccnt; s++) {
		union mrf_addr addr = *first;
		char text[MRF_ADDR_TEXT];

		if (mrf_addr_advance(&addr, 0, s))
			insert_one_locked(ins, &addr);
		else
			insert_failed(ins, FI_EINVAL, 2212,
				      mrf_addr_text(first, text, sizeof(text)),
				      "the services run past port 65535");
	}
}

/* The nodes of a call, looked up before the vector is locked: that may take seconds. */
struct found {
	union mrf_addr addr;
	int gai; /* 0, or an error of getaddrinfo(3) */
	char name[HOST_TEXT];
};

static struct found *find_nodes(const struct mrf_av *av, const struct symmetric *sym)
{
	struct found *found = calloc(sym->nodecnt, sizeof(*found));
	size_t n;

	for (n = 0; found && n < sym->nodecnt; n++)
		found[n].gai = resolve_nth(av, sym, n, found[n].name, &found[n].addr);
	return found;
}

static void insert_nodes_locked(struct insertion *ins, const struct symmetric *sym,
				const struct found *found)
{
	size_t n, s;

	mrf_lock_held(&ins->av->lock);
	for (n = 0; n < sym->nodecnt; n++, found++) {
		if (!found->gai) {
			insert_services_locked(ins, sym, &found->addr);
			continue;
		}
		for (s = 0; s < sym->svccnt; s++)
			insert_failed(ins, FI_EADDRNOTAVAIL, 2211, found->name,
				      mrf_addr_unresolved(sym->service, found->gai));
	}
}

static int check_symmetric(const struct symmetric *sym, size_t *count)
{
	unsigned long number;
	size_t prefix;
	int digits;

	if (!sym->node || !sym->service)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2213, "fi_av_insertsym: %s is NULL",
				  sym->node ? "service" : "node");
	if (!sym->nodecnt || !sym->svccnt ||
	    __builtin_mul_overflow(sym->nodecnt, sym->svccnt, count))
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2214,
				  "fi_av_insertsym: nodecnt=%zu svccnt=%zu: both must be "
				  "at least 1, and their product must fit in an int",
				  sym->nodecnt, sym->svccnt);
	if (sym->nodecnt > 1 && !sym->numeric &&
	    !split_suffix(sym->node, &prefix, &number, &digits))
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2215,
				  "fi_av_insertsym: node \"%s\" is neither an address "
				  "nor a name that ends in a number, so no other node "
				  "follows it (nodecnt is %zu)",
				  sym->node, sym->nodecnt);
	return 0;
}

int mrf_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
		     size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct symmetric sym = {
		.node = node, .service = service, .nodecnt = nodecnt, .svccnt = svccnt
	};
	struct insertion ins;
	struct found *found;
	size_t count = 0;
	int ret;

	sym.numeric = node && is_numeric(mrf_av_of(fid), node);
	ret = check_call(mrf_av_of(fid), "fi_av_insertsym");
	if (!ret)
		ret = check_symmetric(&sym, &count);
	if (!ret)
		ret = check_insert(mrf_av_of(fid), count, fi_addr, flags, context);
	if (ret)
		return ret;
	found = find_nodes(mrf_av_of(fid), &sym);
	if (!found)
		return mrf_refuse(FI_ENOMEM, FI_LOG_AV, 2233,
				  "fi_av_insertsym: there is no memory "
				  "for the addresses of %zu nodes",
				  nodecnt);
	ret = insert_begin(&ins, fid, count, fi_addr, flags, context);
	if (!ret) {
		insert_nodes_locked(&ins, &sym, found);
		ret = insert_end(&ins);
	}
	free(found);
	return ret;
}
