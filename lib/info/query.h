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
#include "contract/mr_offer.h"
#include "contract/profile.h"
#include "base/addr.h"
#include "info/offer.h"
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
	struct mrf_mr_mode_hints mr;
	struct mrf_mr_offer offer;
	/* FI_MRFAB_MR_MODE or FI_MRFAB_PROFILE, and its value, owned by the environment; or NULL */
	const char *variable, *required;
	const struct mrf_profile *profile; /* or NULL */
	const struct mrf_form *form;	   /* of addresses, in hints and in the answer */
	/* mrf_info_offer; or own, which is within the profile's limits. */
	const struct mrf_info_offer *has;
	struct mrf_info_offer *own; /* NULL without a profile; freed by mrf_info_mode_fini */
	struct mrf_info_addrs src;
	struct mrf_info_addrs dest;
};

/* A path with the addresses that a query selects on it. */
struct mrf_info_match {
	union mrf_addr src;
	bool has_dest;
	bool near; /* no destination, or one inside the path's own network */
	union mrf_addr dest;
	unsigned code; /* if the path does not match: of the refusal, and the reason */
	char why[MRF_INFO_WHY];
};

/* --- addresses and names: addr.c -------------------------------------------------- */

/* "10.99.1.0/24": the network of a path. buf: INET6_ADDRSTRLEN + 4 bytes. */
void mrf_info_network(const struct mrf_vnl_path *path, char *buf, size_t len);

/*
 * Turns node, service and the addresses in hints into query->src and query->dest. Errors
 * are logged.
 */
int mrf_info_resolve(struct mrf_info_query *query);

/* Could a path with this address match what the query says of the local address? */
bool mrf_info_from(const struct mrf_info_query *query, const union mrf_addr *addr);
/* Does the path match the query? *match says how, or why not. */
bool mrf_info_match(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
		    struct mrf_info_match *match);

/* --- mr_mode, from the hints and FI_MRFAB_MR_MODE: mode.c ------------------------- */

/*
 * Sets mr, offer, has, profile, form and required from the hints and the present environment. -FI_ENODATA
 * (logged): FI_MRFAB_MR_MODE or FI_MRFAB_PROFILE makes no sense.
 */
int mrf_info_mode_set(struct mrf_info_query *query);
/* Also after mrf_info_mode_set has failed. */
void mrf_info_mode_fini(struct mrf_info_query *query);
/* Is the mr_mode in the hints sufficient? 0, or -FI_ENODATA and a logged line. */
int mrf_info_mode_check(const struct mrf_info_query *query);
/* Says what of the registration modes in an answer the application may not expect. */
void mrf_info_mode_tell(const struct mrf_info_query *query, const struct fi_info *info);
/* Is remote access withheld because the needed modes are not offered? */
bool mrf_info_mode_withheld(const struct mrf_info_query *query);
/* What hints ask for: directions of messages without messages are nothing. */
uint64_t mrf_info_asked_caps(uint64_t caps);
/* FI_MSG, FI_RMA and FI_ATOMIC without a direction mean all that are offered. */
uint64_t mrf_info_with_directions(uint64_t caps, uint64_t offered);
/* The values to return: caps, and domain_attr->mr_mode if no domain is open yet. */
uint64_t mrf_info_mode_caps(const struct mrf_info_query *query);
uint64_t mrf_info_mode_answer(const struct mrf_info_query *query);

/* --- the other hints: hints.c ------------------------------------------------------ */

/*
 * Compares the hints with the offer of every path; logs one line for each hint that asks
 * for more. 0, -FI_ENODATA, or -FI_EINVAL for hints that make no sense.
 */
int mrf_info_check_hints(const struct mrf_info_query *query);
/*
 * Says at level info what the application finds otherwise than hinted in an answer, by which rule, and
 * which hints its version does not have. All infos of an answer are alike in that.
 */
void mrf_info_hints_tell(const struct mrf_info_query *query, const struct fi_info *info);

/* The unsigned number of 1, 2, 4 or 8 bytes at a place. */
uint64_t mrf_info_number(const void *at, size_t size);

/* --- the answer: make.c, nic.c, parts.c -------------------------------------------- */

/* The version of this provider, for fabric_attr->prov_version. */
uint32_t mrf_info_prov_version(void);

/* Makes the fi_info of a path, adapted to the hints; NULL when there is no memory. */
struct fi_info *mrf_info_make(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
			      const struct mrf_info_match *match);

/*
 * The description of a network interface, with its own close operation; NULL when there is
 * no memory.
 */
struct fid_nic *mrf_info_nic_make(const struct mrf_vnl_path *path, const char *address);
struct fid_nic *mrf_info_nic_dup(const struct fid_nic *nic);

/* A structure that another one, its owner, points to, and what belongs to it in turn. */
struct mrf_info_part {
	size_t at; /* of the pointer, in the owner */
	size_t size;
	unsigned nstrings;
	size_t string[6];     /* of pointers to strings, in the part */
	size_t key, key_size; /* of an authorization key and its size; 0: there is none */
};

#define MRF_INFO_PART(owner, member) \
	.at = offsetof(struct owner, member), .size = sizeof(*((struct owner *)0)->member)

/* Makes a part, all 0, unless there is one. False: no memory. */
bool mrf_info_part_new(const struct mrf_info_part *part, void *owner);
/* Makes a deep copy of the part of another owner, if that has one. False: no memory. */
bool mrf_info_part_copy(const struct mrf_info_part *part, void *owner, const void *from);
/* Frees a part, which may be NULL; its key is wiped. */
void mrf_info_part_free(const struct mrf_info_part *part, void *owner);
/* Copies len bytes. NULL: there is nothing to copy, or no memory. */
void *mrf_info_copy(const void *from, size_t len);
/* Puts such a copy in the place of what belongs to the original. False: no memory. */
bool mrf_info_own(void **at, size_t len);

#endif
