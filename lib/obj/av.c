/* SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/av.h"
#include "obj/eq.h"

#define FIRST_CHUNK_BITS 6 /* chunk n holds 2^(n + 6) entries */
#define CHUNKS 26
#define ADDR_WORDS (sizeof(union mrf_addr) / sizeof(uint32_t))
#define NO_INDEX SIZE_MAX

_Static_assert(sizeof(union mrf_addr) % sizeof(uint32_t) == 0,
	       "addresses are copied in words");

/*
 * Read without a lock: generation, words, generation again. Words are stored and loaded
 * in order (release, acquire), so a reader that sees a word of the next use also sees
 * that the generation has changed.
 */
struct entry {
	atomic_uint_fast64_t gen; /* 0: not in use */
	atomic_uint words[ADDR_WORDS];
	size_t next_free; /* guarded by av->lock */
};

struct mrf_av {
	struct fid_av fid;
	struct mrf_obj obj;
	struct mrf_hold parent;
	struct fid_domain *domain;
	sa_family_t family; /* immutable, as the next three */
	size_t addr_len;
	bool table; /* else a map */
	bool async; /* FI_EVENT */
	_Atomic(struct entry *) chunks[CHUNKS];
	atomic_size_t count; /* entries in use; changed under lock */

	struct mrf_lock lock; /* rank AV: guards all below, and changes of entries */
	struct mrf_eq *eq;    /* bound, or NULL */
	struct mrf_hold eq_hold;
	uint64_t last_gen;
	size_t used;	   /* indices handed out so far: the first fresh one */
	size_t lowest;	   /* no index below is free; tables only */
	size_t free_first; /* list of removed indices, oldest first; maps only */
	size_t free_last;
};

static struct mrf_av *to_av(struct fid_av *fid)
{
	return mrf_container_of(fid, struct mrf_av, fid);
}

/*
 * --- entries -------------------------------------------------------------------------
 */

/* Index i lives in the chunk of the highest bit of i + 2^6, at the remaining bits. */
static size_t chunk_of(size_t i, size_t *offset)
{
	size_t n = i + ((size_t)1 << FIRST_CHUNK_BITS);
	unsigned top =
		(unsigned)(sizeof(long) * CHAR_BIT - 1) - (unsigned)__builtin_clzl(n);

	*offset = n - ((size_t)1 << top);
	return top - FIRST_CHUNK_BITS;
}

static struct entry *entry_at(const struct mrf_av *av, fi_addr_t i)
{
	struct entry *chunk;
	size_t offset, c;

	if (i >= ((fi_addr_t)1 << (FIRST_CHUNK_BITS + CHUNKS)) - (1 << FIRST_CHUNK_BITS))
		return NULL;
	c = chunk_of(i, &offset);
	chunk = atomic_load_explicit(&av->chunks[c], memory_order_acquire);
	return chunk ? &chunk[offset] : NULL;
}

/* The entry of a fresh index; NULL: no memory. */
static struct entry *entry_new_locked(struct mrf_av *av, size_t i)
{
	struct entry *chunk;
	size_t offset, c = chunk_of(i, &offset);

	if (c >= CHUNKS)
		return NULL;
	chunk = atomic_load(&av->chunks[c]);
	if (!chunk) {
		chunk = calloc((size_t)1 << (FIRST_CHUNK_BITS + c), sizeof(*chunk));
		if (!chunk)
			return NULL;
		atomic_store_explicit(&av->chunks[c], chunk, memory_order_release);
	}
	return &chunk[offset];
}

uint64_t mrf_av_gen(const struct mrf_av *av, fi_addr_t fi_addr)
{
	struct entry *entry = entry_at(av, fi_addr);

	return entry ? atomic_load_explicit(&entry->gen, memory_order_acquire) : 0;
}

const _Atomic uint64_t *mrf_av_gen_word(const struct mrf_av *av, fi_addr_t fi_addr)
{
	struct entry *entry = entry_at(av, fi_addr);

	return entry ? &entry->gen : NULL;
}

int mrf_av_get(const struct mrf_av *av, fi_addr_t fi_addr, union mrf_addr *addr)
{
	struct entry *entry = entry_at(av, fi_addr);
	uint32_t words[ADDR_WORDS];
	uint64_t gen = entry ? atomic_load(&entry->gen) : 0;
	size_t i;

	if (!gen)
		return -FI_EADDRNOTAVAIL;
	for (i = 0; i < ADDR_WORDS; i++)
		words[i] = atomic_load_explicit(&entry->words[i], memory_order_acquire);
	if (atomic_load(&entry->gen) != gen)
		return -FI_EADDRNOTAVAIL;
	memcpy(addr, words, sizeof(words));
	return 0;
}

static void fill_locked(struct mrf_av *av, struct entry *entry,
			const union mrf_addr *addr)
{
	uint32_t words[ADDR_WORDS];
	size_t i;

	memcpy(words, addr, sizeof(words));
	for (i = 0; i < ADDR_WORDS; i++)
		atomic_store_explicit(&entry->words[i], words[i], memory_order_release);
	atomic_store(&entry->gen, ++av->last_gen);
	atomic_fetch_add(&av->count, 1);
}

/* fi_av(3): a table gives out its lowest unused index. */
static size_t lowest_free_locked(struct mrf_av *av)
{
	while (av->lowest < av->used && mrf_av_gen(av, av->lowest))
		av->lowest++;
	return av->lowest < av->used ? av->lowest : NO_INDEX;
}

static size_t oldest_free_locked(struct mrf_av *av)
{
	size_t i = av->free_first;

	if (i == NO_INDEX)
		return NO_INDEX;
	av->free_first = entry_at(av, i)->next_free;
	if (av->free_first == NO_INDEX)
		av->free_last = NO_INDEX;
	return i;
}

static int insert_locked(struct mrf_av *av, const union mrf_addr *addr,
			 fi_addr_t *fi_addr)
{
	size_t i = av->table ? lowest_free_locked(av) : oldest_free_locked(av);
	struct entry *entry;

	if (i == NO_INDEX) {
		i = av->used;
		entry = entry_new_locked(av, i);
		if (!entry)
			return -FI_ENOMEM;
		av->used++;
	} else {
		entry = entry_at(av, i);
	}
	fill_locked(av, entry, addr);
	*fi_addr = i;
	return 0;
}

static void remove_locked(struct mrf_av *av, size_t i)
{
	struct entry *entry = entry_at(av, i);

	atomic_store(&entry->gen, 0);
	atomic_fetch_sub(&av->count, 1);
	if (av->table) {
		av->lowest = mrf_min(av->lowest, i);
		return;
	}
	entry->next_free = NO_INDEX;
	if (av->free_last == NO_INDEX)
		av->free_first = i;
	else
		entry_at(av, av->free_last)->next_free = i;
	av->free_last = i;
}

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
				  "inserting addresses, flags=%#llx: only FI_MORE and "
				  "FI_SYNC_ERR are offered",
				  (unsigned long long)flags);
	if ((flags & FI_SYNC_ERR) && av->async)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_AV, 2201,
				  "FI_SYNC_ERR is for address vectors without FI_EVENT");
	if ((flags & FI_SYNC_ERR) && !context && count)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2202,
				  "FI_SYNC_ERR without an array of %zu int in context",
				  count);
	if (!fi_addr && !av->table && count)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_AV, 2203,
			"fi_addr is NULL: in a FI_AV_MAP nothing else tells the "
			"addresses' names");
	if (count > INT_MAX)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2204,
				  "%zu addresses are more than one call can count",
				  count);
	return 0;
}

/* 0 with the lock held until insert_end, or why the call is refused. */
static int insert_begin(struct insertion *ins, struct fid_av *fid, size_t count,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct mrf_av *av = to_av(fid);
	int ret = check_insert(av, count, fi_addr, flags, context);

	if (ret)
		return ret;
	*ins = (struct insertion){
		.av = av,
		.fi_addr = fi_addr,
		.errs = flags & FI_SYNC_ERR ? context : NULL,
		.context = context,
	};
	/* For the whole call: its addresses get consecutive indices, its events stay
	 * together. */
	mrf_lock_take(&av->lock);
	if (av->async && !av->eq) {
		mrf_lock_release(&av->lock);
		return mrf_refuse(
			FI_ENOEQ, FI_LOG_AV, 2205,
			"the address vector has FI_EVENT but no event queue is bound "
			"to it yet");
	}
	return 0;
}

static void report_failure(struct insertion *ins, int err, unsigned code,
			   const char *text)
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

/* This entry fails; what names it in the log. */
static void insert_failed(struct insertion *ins, int err, unsigned code, const char *what,
			  const char *why)
{
	char text[256];

	mrf_refuse_text(text, sizeof(text), err, FI_LOG_AV, code, "address %zu (%s): %s",
			ins->i, what, why);
	if (ins->fi_addr)
		ins->fi_addr[ins->i] = FI_ADDR_NOTAVAIL;
	if (ins->errs)
		ins->errs[ins->i] = err;
	if (ins->av->async)
		report_failure(ins, err, code, text);
	ins->i++;
}

static void insert_one(struct insertion *ins, const union mrf_addr *addr)
{
	const char *fault = mrf_addr_fault(addr, ins->av->family);
	char text[MRF_ADDR_TEXT];
	fi_addr_t name;

	if (fault) {
		insert_failed(ins, FI_EINVAL, 2206,
			      mrf_addr_text(addr, text, sizeof(text)), fault);
		return;
	}
	if (insert_locked(ins->av, addr, &name)) {
		insert_failed(ins, FI_ENOMEM, 2207,
			      mrf_addr_text(addr, text, sizeof(text)),
			      "no memory for the entry");
		return;
	}
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

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	size_t len = to_av(fid)->addr_len, i;
	struct insertion ins;
	int ret;

	if (!addr && count)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2208,
				  "inserting %zu addresses from a NULL buffer", count);
	ret = insert_begin(&ins, fid, count, fi_addr, flags, context);
	if (ret)
		return ret;
	for (i = 0; i < count; i++) {
		union mrf_addr one = { 0 };

		memcpy(&one, (const char *)addr + i * len, len);
		insert_one(&ins, &one);
	}
	return insert_end(&ins);
}

/*
 * --- by name -------------------------------------------------------------------------
 */

#define HOST_TEXT 256 /* a DNS name and its NUL */
#define SERVICE_TEXT 64

/* 0, or an error of getaddrinfo(3). */
static int resolve(const struct mrf_av *av, const char *node, const char *service,
		   union mrf_addr *addr)
{
	struct addrinfo hints = { .ai_family = av->family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	int ret = getaddrinfo(node, service, &hints, &list);

	if (ret)
		return ret;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, list->ai_addr, av->addr_len);
	freeaddrinfo(list);
	return 0;
}

/* Splits FI_ADDR_STR, "fi_sockaddr_in://host:port" or "fi_sockaddr_in6://[host]:port". */
static bool split_addr_str(const char *text, char *node, char *service)
{
	int end = 0;

	if (sscanf(text, "fi_sockaddr_in://%255[^:]:%63[0-9]%n", node, service, &end) ==
		    2 &&
	    end && !text[end])
		return true;
	end = 0;
	return sscanf(text, "fi_sockaddr_in6://[%255[^]]]:%63[0-9]%n", node, service,
		      &end) == 2 &&
	       end && !text[end];
}

static int check_names(const char *call, const char **node, const char **service,
		       char *node_buf, char *service_buf)
{
	if (!*node)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2209, "%s: node is NULL", call);
	if (*service)
		return 0;
	if (!split_addr_str(*node, node_buf, service_buf))
		return mrf_refuse(
			FI_EINVAL, FI_LOG_AV, 2210,
			"%s: service is NULL and node \"%s\" is no FI_ADDR_STR that "
			"carries one",
			call, *node);
	*node = node_buf;
	*service = service_buf;
	return 0;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	char node_buf[HOST_TEXT], service_buf[SERVICE_TEXT];
	struct insertion ins;
	union mrf_addr addr;
	int gai, ret;

	ret = check_names("fi_av_insertsvc", &node, &service, node_buf, service_buf);
	if (ret)
		return ret;
	gai = resolve(to_av(fid), node, service, &addr);
	ret = insert_begin(&ins, fid, 1, fi_addr, flags, context);
	if (ret)
		return ret;
	if (gai)
		insert_failed(&ins, FI_EADDRNOTAVAIL, 2211, node, gai_strerror(gai));
	else
		insert_one(&ins, &addr);
	return insert_end(&ins);
}

/* "host09" -> "host" and 9 with two digits; false: there is no number at its end. */
static bool split_suffix(const char *node, size_t *prefix, unsigned long *number,
			 int *digits)
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
static int resolve_nth(const struct mrf_av *av, const struct symmetric *sym, size_t n,
		       char *name, union mrf_addr *addr)
{
	bool count_on_name = n && !sym->numeric;
	unsigned long number;
	size_t prefix;
	int digits, len, ret;

	if (count_on_name) {
		split_suffix(sym->node, &prefix, &number, &digits);
		len = snprintf(name, HOST_TEXT, "%.*s%0*lu", (int)prefix, sym->node,
			       digits, number + n);
	} else {
		len = snprintf(name, HOST_TEXT, "%s", sym->node);
	}
	if (len >= HOST_TEXT)
		return EAI_NONAME;
	ret = resolve(av, name, sym->service, addr);
	if (!ret && !count_on_name && !mrf_addr_advance(addr, n, 0))
		ret = EAI_NONAME;
	return ret;
}

static void insert_services(struct insertion *ins, const struct symmetric *sym,
			    const union mrf_addr *first)
{
	size_t s;

	for (s = 0; s < sym->svccnt; s++) {
		union mrf_addr addr = *first;
		char text[MRF_ADDR_TEXT];

		if (mrf_addr_advance(&addr, 0, s))
			insert_one(ins, &addr);
		else
			insert_failed(ins, FI_EINVAL, 2212,
				      mrf_addr_text(first, text, sizeof(text)),
				      "the services run past port 65535");
	}
}

static void insert_nodes(struct insertion *ins, const struct symmetric *sym)
{
	char name[HOST_TEXT];
	union mrf_addr addr;
	size_t n, s;
	int gai;

	for (n = 0; n < sym->nodecnt; n++) {
		gai = resolve_nth(ins->av, sym, n, name, &addr);
		if (!gai) {
			insert_services(ins, sym, &addr);
			continue;
		}
		for (s = 0; s < sym->svccnt; s++)
			insert_failed(ins, FI_EADDRNOTAVAIL, 2211, name,
				      gai_strerror(gai));
	}
}

static int check_symmetric(const struct symmetric *sym, size_t *count)
{
	unsigned long number;
	size_t prefix;
	int digits;

	if (!sym->node || !sym->service)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2213,
				  "fi_av_insertsym: %s is NULL",
				  sym->node ? "service" : "node");
	if (!sym->nodecnt || !sym->svccnt ||
	    __builtin_mul_overflow(sym->nodecnt, sym->svccnt, count))
		return mrf_refuse(
			FI_EINVAL, FI_LOG_AV, 2214,
			"fi_av_insertsym: nodecnt=%zu svccnt=%zu: both must be at "
			"least 1 and their product an int",
			sym->nodecnt, sym->svccnt);
	if (sym->nodecnt > 1 && !sym->numeric &&
	    !split_suffix(sym->node, &prefix, &number, &digits))
		return mrf_refuse(
			FI_EINVAL, FI_LOG_AV, 2215,
			"fi_av_insertsym: node \"%s\" is neither an address nor a name "
			"that ends in a number, so there is no next of %zu",
			sym->node, sym->nodecnt);
	return 0;
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
			const char *service, size_t svccnt, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	struct symmetric sym = {
		.node = node, .service = service, .nodecnt = nodecnt, .svccnt = svccnt
	};
	struct insertion ins;
	size_t count = 0;
	int ret;

	sym.numeric = node && is_numeric(to_av(fid), node);
	ret = check_symmetric(&sym, &count);
	if (!ret)
		ret = insert_begin(&ins, fid, count, fi_addr, flags, context);
	if (ret)
		return ret;
	insert_nodes(&ins, &sym);
	return insert_end(&ins);
}

/*
 * --- removing and asking -------------------------------------------------------------
 */

static int no_entry(const char *call, fi_addr_t fi_addr)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2216, "%s: fi_addr %#llx names no entry",
			  call, (unsigned long long)fi_addr);
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct mrf_av *av = to_av(fid);
	int ret = 0;
	size_t i;

	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_AV, 2217,
				  "fi_av_remove flags=%#llx: must be 0",
				  (unsigned long long)flags);
	if (!fi_addr && count)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2218,
				  "fi_av_remove of %zu addresses: fi_addr is NULL",
				  count);
	mrf_lock_take(&av->lock);
	for (i = 0; i < count; i++) {
		if (mrf_av_gen(av, fi_addr[i]))
			remove_locked(av, fi_addr[i]);
		else
			ret = no_entry("fi_av_remove", fi_addr[i]);
	}
	mrf_lock_release(&av->lock);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct mrf_av *av = to_av(fid);
	union mrf_addr found;

	if (!addrlen || (!addr && *addrlen))
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2219, "fi_av_lookup: %s is NULL",
				  addrlen ? "addr" : "addrlen");
	if (mrf_av_get(av, fi_addr, &found))
		return no_entry("fi_av_lookup", fi_addr);
	if (*addrlen)
		memcpy(addr, &found, mrf_min(*addrlen, av->addr_len));
	*addrlen = av->addr_len;
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
			      size_t *len)
{
	char text[MRF_ADDR_TEXT];
	union mrf_addr one = { 0 };
	int n;

	if (!addr || !len) {
		mrf_refuse(FI_EINVAL, FI_LOG_AV, 2220, "fi_av_straddr: %s is NULL",
			   addr ? "len" : "addr");
		return NULL;
	}
	memcpy(&one, addr, to_av(fid)->addr_len);
	n = snprintf(buf, buf ? *len : 0, "%s%s",
		     one.sa.sa_family == AF_INET    ? "fi_sockaddr_in://"
		     : one.sa.sa_family == AF_INET6 ? "fi_sockaddr_in6://"
						    : "",
		     mrf_addr_text(&one, text, sizeof(text)));
	*len = (size_t)n + 1;
	return buf;
}

static int av_no_set(struct fid_av *fid, struct fi_av_set_attr *attr,
		     struct fid_av_set **set, void *context)
{
	(void)fid;
	(void)attr;
	(void)set;
	(void)context;
	return mrf_refuse(
		FI_ENOSYS, FI_LOG_AV, 2221,
		"fi_av_set: address sets belong to collectives, which are not offered");
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_no_set,
};

/*
 * --- opening, binding and closing ----------------------------------------------------
 */

static void av_describe(const struct fid *fid, char *buf, size_t len)
{
	struct mrf_av *av = mrf_container_of(fid, struct mrf_av, fid.fid);

	snprintf(buf, len, "%zu addresses", atomic_load(&av->count));
}

static int check_bind(const struct mrf_av *av, const struct mrf_eq *eq, uint64_t flags)
{
	if (!eq)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_AV, 2222,
			"fi_av_bind: only an event queue can be bound to an address "
			"vector");
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_AV, 2223,
				  "fi_av_bind flags=%#llx: must be 0",
				  (unsigned long long)flags);
	if (!av->async)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_AV, 2224,
			"fi_av_bind: the address vector was opened without FI_EVENT, it "
			"reports nothing");
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrf_av *av = mrf_container_of(fid, struct mrf_av, fid.fid);
	struct mrf_eq *eq = mrf_eq_from_fid(bfid);
	int ret = check_bind(av, eq, flags);

	if (ret)
		return ret;
	mrf_lock_take(&av->lock);
	if (av->eq) {
		ret = mrf_refuse(FI_EINVAL, FI_LOG_AV, 2225,
				 "fi_av_bind: an event queue is bound already");
	} else {
		av->eq = eq;
		mrf_obj_hold(&av->eq_hold, mrf_eq_obj(eq), fid, av_describe);
	}
	mrf_lock_release(&av->lock);
	return ret;
}

static int av_close(struct fid *fid)
{
	struct mrf_av *av = mrf_container_of(fid, struct mrf_av, fid.fid);
	int ret = mrf_obj_busy(&av->obj);
	size_t i;

	if (ret)
		return ret;
	mrf_obj_drop(&av->eq_hold);
	mrf_obj_drop(&av->parent);
	mrf_obj_fini(&av->obj);
	mrf_lock_fini(&av->lock);
	for (i = 0; i < CHUNKS; i++)
		free(atomic_load(&av->chunks[i]));
	free(av);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = mrf_no_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_no_tostr,
	.ops_set = mrf_no_ops_set,
};

static int check_attr(const struct fi_av_attr *attr)
{
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP &&
	    attr->type != FI_AV_TABLE)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2227,
				  "fi_av_attr.type=%d is no type of fi_av(3)",
				  (int)attr->type);
	if (attr->rx_ctx_bits)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_AV, 2228,
			"fi_av_attr.rx_ctx_bits=%d: must be 0, endpoints have one "
			"receive context",
			attr->rx_ctx_bits);
	if (attr->name || (attr->flags & FI_READ))
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_AV, 2229,
			"fi_av_attr.%s: address vectors shared between processes are "
			"not offered",
			attr->name ? "name" : "flags has FI_READ");
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
		return mrf_refuse(
			FI_EBADFLAGS, FI_LOG_AV, 2230,
			"fi_av_attr.flags=%#llx: only FI_EVENT and FI_SYMMETRIC are "
			"offered",
			(unsigned long long)attr->flags);
	return 0;
}

static struct mrf_av *av_new(uint32_t addr_format, const struct fi_av_attr *attr,
			     void *context)
{
	struct mrf_av *av = calloc(1, sizeof(*av));

	if (!av)
		return NULL;
	av->family = addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	av->addr_len = addr_format == FI_SOCKADDR_IN6 ? sizeof(struct sockaddr_in6)
						      : sizeof(struct sockaddr_in);
	av->table = attr->type != FI_AV_MAP;
	av->async = attr->flags & FI_EVENT;
	av->free_first = av->free_last = NO_INDEX;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fid_ops;
	av->fid.ops = &av_ops;
	mrf_lock_init(&av->lock, MRF_RANK_AV);
	mrf_obj_init(&av->obj, &av->fid.fid, av_describe);
	return av;
}

int mrf_av_open(struct mrf_obj *domain, struct fid_domain *domain_fid,
		uint32_t addr_format, struct fi_av_attr *attr, struct fid_av **av_fid,
		void *context)
{
	struct mrf_av *av;
	int ret;

	if (!attr || !av_fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2226, "fi_av_open: %s is NULL",
				  attr ? "av" : "attr");
	if (addr_format != FI_SOCKADDR_IN && addr_format != FI_SOCKADDR_IN6)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2231,
				  "fi_av_open: addresses of format %u are not offered",
				  addr_format);
	ret = check_attr(attr);
	if (ret)
		return ret;
	av = av_new(addr_format, attr, context);
	if (!av)
		return mrf_refuse(FI_ENOMEM, FI_LOG_AV, 2232,
				  "no memory for an address vector");
	av->domain = domain_fid;
	mrf_obj_hold(&av->parent, domain, &av->fid.fid, av_describe);
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	*av_fid = &av->fid;
	return 0;
}

struct mrf_av *mrf_av_from_fid(struct fid *fid)
{
	if (!fid || fid->fclass != FI_CLASS_AV)
		return NULL;
	return mrf_container_of(fid, struct mrf_av, fid.fid);
}

struct mrf_obj *mrf_av_obj(struct mrf_av *av)
{
	return &av->obj;
}

struct fid_domain *mrf_av_domain(struct mrf_av *av)
{
	return av->domain;
}
