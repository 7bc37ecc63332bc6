/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of fi_getinfo: what the caller asks (a query), which paths to the fabric
 * answer it, and the fi_info that is made of a path. A query borrows the caller's
 * arguments and lives for one call; nothing here is shared between threads.
 */
#ifndef MRF_API_INFO_H
#define MRF_API_INFO_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include "base/compiler.h"
#include "contract/mr_offer.h"
#include "obj/addr.h"
#include "verbs/vnl.h"

#define MRF_INFO_ADDRS 16 /* addresses of one name that are looked at */
#define MRF_INFO_WHY 320  /* bytes of a reason */

/*
 * Any of these addresses will do; an unspecified address (0.0.0.0, ::) means any local
 * one.
 */
struct mrf_info_addrs {
	unsigned count; /* 0: nothing asked */
	union mrf_addr addr[MRF_INFO_ADDRS];
};

struct mrf_info_query {
	uint32_t version;
	const char *node;
	const char *service;
	uint64_t flags;
	const struct fi_info *hints; /* or NULL */
	struct mrf_mr_mode_ask mr;
	struct mrf_mr_offer offer;
	const char *required; /* FI_MRFAB_MR_MODE: the environment's, or NULL */
	struct mrf_info_addrs src;
	struct mrf_info_addrs dest;
};

/* A path with the addresses that a query selects on it. */
struct mrf_info_match {
	union mrf_addr src;
	bool has_dest;
	bool near; /* no destination, or one inside the path's own network */
	union mrf_addr dest;
};

/*
 * Is name in "a,b" (or not in "^a,b")? Case does not matter. NULL and "" list
 * everything.
 */
bool mrf_info_listed(const char *list, const char *name);

/* "10.99.1.0/24": the network of a path. buf: INET6_ADDRSTRLEN + 4 bytes. */
void mrf_info_network(const struct mrf_vnl_path *path, char *buf, size_t len);

/* Version of this provider as fabric_attr->prov_version has it. */
uint32_t mrf_info_prov_version(void);

/*
 * Compares the hints with what every path offers; one line for each that asks for more.
 * 0, -FI_ENODATA, or -FI_EINVAL for hints that make no sense.
 */
int mrf_info_check_hints(const struct mrf_info_query *query);

/*
 * Sets mr, offer and required, by the hints and by what the environment says now. Logs;
 * -FI_ENODATA when FI_MRFAB_MR_MODE makes no sense.
 */
int mrf_info_mode_set(struct mrf_info_query *query);
/* Is mr_mode as hinted good enough? 0 or -FI_ENODATA and a line. */
int mrf_info_mode_check(const struct mrf_info_query *query);
/* Is remote access withheld, because the needed modes are not offered? */
bool mrf_info_mode_withheld(const struct mrf_info_query *query);
/* As answered: caps, and domain_attr->mr_mode where no domain is open yet. */
uint64_t mrf_info_mode_caps(const struct mrf_info_query *query);
uint64_t mrf_info_mode_answer(const struct mrf_info_query *query);

/*
 * Turns node, service and the addresses in hints into query->src and query->dest. Logs.
 */
int mrf_info_resolve(struct mrf_info_query *query);

/*
 * Does the path answer the query? 0 and *match; else the code of the refusal, with the
 * reason in why.
 */
unsigned mrf_info_match(const struct mrf_info_query *query,
			const struct mrf_vnl_path *path, struct mrf_info_match *match,
			char *why, size_t len);

/* The fi_info of a path, altered by the hints; NULL when there is no memory. */
struct fi_info *mrf_info_make(const struct mrf_info_query *query,
			      const struct mrf_vnl_path *path,
			      const struct mrf_info_match *match);

/* A fid_nic with its own close operation; NULL when there is no memory. */
struct fid_nic *mrf_info_nic_make(const char *device, const char *netdev,
				  const char *address);
struct fid_nic *mrf_info_nic_dup(const struct fid_nic *nic);

#endif
