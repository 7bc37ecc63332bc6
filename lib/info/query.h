/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data that the parts of fi_getinfo work on: the caller's request (a query), and the
 * paths to the fabric that match it. A query borrows the caller's arguments and lives for
 * one call; nothing here is shared between threads.
 */
#ifndef MRF_INFO_QUERY_H
#define MRF_INFO_QUERY_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include "base/compiler.h"
#include "contract/mr_offer.h"
#include "obj/addr.h"
#include "verbs/vnl_path.h"

#define MRF_INFO_ADDRS 16 /* addresses of one name that are tried */
#define MRF_INFO_WHY 320  /* bytes of a reason */

/*
 * Any of these addresses will do; an unspecified address (0.0.0.0, ::) means any local
 * one.
 */
struct mrf_info_addrs {
	unsigned count; /* 0: no restriction */
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
	const char *required; /* FI_MRFAB_MR_MODE, owned by the environment, or NULL */
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

#endif
