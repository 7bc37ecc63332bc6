/* SPDX-License-Identifier: BSD-2-Clause */
/* Selects the paths to the fabric that match a query: names, networks and addresses. */
#ifndef MRF_INFO_ADDR_H
#define MRF_INFO_ADDR_H

#include "info/query.h"

/*
 * Is name in "a,b" (or not in "^a,b")? Case does not matter. NULL and "" match every
 * name.
 */
bool mrf_info_listed(const char *list, const char *name);

/* "10.99.1.0/24": the network of a path. buf: INET6_ADDRSTRLEN + 4 bytes. */
void mrf_info_network(const struct mrf_vnl_path *path, char *buf, size_t len);

/*
 * Turns node, service and the addresses in hints into query->src and query->dest. Errors
 * are logged.
 */
int mrf_info_resolve(struct mrf_info_query *query);

/*
 * Does the path match the query? 0 and *match set; otherwise the code of the refusal,
 * with the reason in why.
 */
unsigned mrf_info_match(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
			struct mrf_info_match *match, char *why, size_t len);

#endif
