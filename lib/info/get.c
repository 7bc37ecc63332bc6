/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/host.h"
#include "base/log.h"
#include "base/env.h"
#include "contract/limits.h"
#include "contract/rules.h"
#include "info/decline.h"
#include "info/query.h"

static int check_args(const struct mrf_info_query *query, struct fi_info **info)
{
	const uint64_t known = FI_SOURCE | FI_NUMERICHOST | FI_PROV_ATTR_ONLY;

	if (!info)
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 1002,
				  "info must not be NULL, because the answer goes there");
	if (FI_VERSION_LT(MRF_API_RULES, query->version))
		return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 1001,
				  "version=%u.%u: the newest version that is known here is %u.%u",
				  FI_MAJOR(query->version), FI_MINOR(query->version),
				  FI_MAJOR(MRF_API_RULES), FI_MINOR(MRF_API_RULES));
	if (query->flags & ~known)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_FABRIC, 1003,
				  "flags=%#lx: only FI_SOURCE, FI_NUMERICHOST and "
				  "FI_PROV_ATTR_ONLY are known",
				  query->flags);
	if ((query->flags & FI_SOURCE) && !query->node && !query->service)
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 1004,
				  "FI_SOURCE: node or service has to name the local address");
	if ((query->flags & FI_NUMERICHOST) && !query->node)
		mrf_info(FI_LOG_FABRIC, "FI_NUMERICHOST without a node has no effect");
	return 0;
}

static int refuse_info_memory(void)
{
	return mrf_refuse(FI_ENOMEM, FI_LOG_FABRIC, 1060,
			  "there is no memory for a struct fi_info");
}

/* Answers with the provider's name, whether it can be used or not. */
static int answer_provider(struct fi_info **info)
{
	struct fi_info *one = mrf_info_dup(NULL);

	if (!one)
		return refuse_info_memory();
	one->fabric_attr->prov_name = strdup(MRF_PROV_NAME);
	one->fabric_attr->prov_version = mrf_info_prov_version();
	if (!one->fabric_attr->prov_name) {
		mrf_info_free(one);
		return refuse_info_memory();
	}
	*info = one;
	return 0;
}

/* --- from paths to infos --------------------------------------------------- */

/* In the order in which they are offered. */
enum distance {
	OWN,  /* the destination is an address of the path's device, which no other one reaches */
	NEAR, /* it is in the path's network; or there is none */
	FAR,
	DISTANCES
};

/* A path, compared with the query. */
struct compared {
	struct mrf_info_match match;
	bool fits;
	enum distance distance;
};

struct answer {
	const struct mrf_info_query *query;
	struct mrf_vnl_path *paths;
	struct compared *compared; /* of each path */
	size_t count;
	struct fi_info *head;
	struct fi_info **tail;
};

static enum distance distance_of(const struct answer *answer, const struct mrf_vnl_path *path,
				 const struct mrf_info_match *match)
{
	const struct mrf_vnl_path *other;

	for (other = answer->paths; match->has_dest && other < answer->paths + answer->count;
	     other++) {
		if (other->state == MRF_VNL_USABLE && !strcmp(other->dev.name, path->dev.name) &&
		    mrf_addr_same_host(&other->addr.sa, &match->dest.sa))
			return OWN;
	}
	return match->near ? NEAR : FAR;
}

/* Appends the matching paths at this distance of their destination. */
static int append_matches(struct answer *answer, enum distance distance)
{
	const struct compared *compared;
	struct fi_info *info;
	size_t i;

	for (i = 0; i < answer->count; i++) {
		compared = &answer->compared[i];
		if (!compared->fits || compared->distance != distance)
			continue;
		info = mrf_info_make(answer->query, &answer->paths[i], &compared->match);
		if (!info)
			return refuse_info_memory();
		*answer->tail = info;
		answer->tail = &info->next;
	}
	return 0;
}

/* "rxe0" or "rxe0 10.99.1.1:0" */
static void path_text(const struct mrf_vnl_path *path, char *buf, size_t len)
{
	char text[64] = "";

	if (path->addr.sa.sa_family)
		mrf_addr_text(&path->addr, text, sizeof(text));
	snprintf(buf, len, "%s%s%s", path->dev.name, *text ? " " : "", text);
}

/* Can any of them be used at all? If not, that is worth a warning each time. */
static bool any_usable(const struct answer *answer)
{
	size_t i;

	for (i = 0; i < answer->count; i++) {
		if (answer->paths[i].state == MRF_VNL_USABLE)
			return true;
	}
	return false;
}

/* Does anything match? Otherwise, is one of the reasons new? */
static enum fi_log_level mismatch_level(const struct answer *answer)
{
	enum fi_log_level level = mrf_host || any_usable(answer) ? FI_LOG_INFO : FI_LOG_WARN;
	size_t i;

	for (i = 0; i < answer->count && !answer->head; i++) {
		if (!answer->compared[i].fits &&
		    mrf_info_level(answer->compared[i].match.code, NULL) == FI_LOG_WARN)
			level = FI_LOG_WARN;
	}
	return level;
}

/*
 * One line for each path that does not match: a refusal when nothing else matched
 * either.
 */
static void tell_mismatches(const struct answer *answer)
{
	enum fi_log_level level = mismatch_level(answer);
	const struct mrf_info_match *match;
	char name[160];
	size_t i;

	for (i = 0; i < answer->count; i++) {
		if (answer->compared[i].fits)
			continue;
		match = &answer->compared[i].match;
		path_text(&answer->paths[i], name, sizeof(name));
		if (answer->head)
			mrf_info(FI_LOG_FABRIC, "%s left out: %s", name, match->why);
		else
			mrf_refuse_as(level, NULL, 0, FI_ENODATA, FI_LOG_FABRIC, match->code,
				      "%s: %s", name, match->why);
	}
}

/*
 * Whoever asks libfabric asks all of its providers: there it is no warning that this one has none.
 */
static int refuse_no_device(int err)
{
	if (mrf_host)
		return mrf_decline(FI_ENODATA, FI_LOG_FABRIC, 1040, "there is no soft-RoCE device");
	if (err && err != -FI_ENOSYS)
		return mrf_refuse(-err, FI_LOG_FABRIC, 1048,
				  "the RDMA devices cannot be listed over netlink");
	return mrf_refuse(FI_ENODATA, FI_LOG_FABRIC, 1040,
			  "there is no soft-RoCE device%s: modprobe rdma_rxe; rdma link add rxe0 "
			  "type rxe netdev INTERFACE; or run the program with mrfab_with_rxe",
			  err ? " (RDMA is not loaded)" : "");
}

static int compare_paths(struct answer *answer)
{
	struct compared *compared;
	size_t i;

	answer->compared = calloc(answer->count, sizeof(*compared));
	if (!answer->compared)
		return -FI_ENOMEM;
	for (i = 0; i < answer->count; i++) {
		compared = &answer->compared[i];
		compared->fits = mrf_info_match(answer->query, &answer->paths[i], &compared->match);
		compared->distance = distance_of(answer, &answer->paths[i], &compared->match);
	}
	return 0;
}

static void forget_paths(struct answer *answer)
{
	free(answer->compared);
	free(answer->paths);
	answer->compared = NULL;
	answer->paths = NULL;
	answer->count = 0;
}

struct only {
	struct mrf_vnl_only only;
	const struct mrf_info_query *query;
};

static bool may_match(const struct mrf_vnl_only *arg, const union mrf_addr *addr)
{
	const struct only *only = mrf_container_of(arg, struct only, only);

	return mrf_info_from(only->query, addr);
}

/* all: also those that only a line of the log is about. */
static int find_paths(struct answer *answer, bool all)
{
	const struct only only = { { may_match }, answer->query };
	bool narrow = !all && answer->query->src.count;
	int ret;

	forget_paths(answer);
	ret = mrf_vnl_paths(&answer->paths, &answer->count, all, narrow ? &only.only : NULL);
	if (!ret && answer->count)
		ret = compare_paths(answer);
	if (ret)
		forget_paths(answer);
	return ret;
}

static int offer_paths(struct answer *answer)
{
	bool told = mrf_log_enabled(FI_LOG_INFO, FI_LOG_FABRIC);
	int ret = find_paths(answer, told), at;

	/* What does not match may have been left out: why it does not is told below. */
	if (!ret && !answer->count && !told)
		ret = find_paths(answer, true);
	if (ret || !answer->count)
		return refuse_no_device(ret);
	for (at = 0; !ret && at < DISTANCES; at++)
		ret = append_matches(answer, (enum distance)at);
	if (ret)
		return ret;
	/* Why nothing matches is told with everything that there is. */
	if (!answer->head && !told)
		find_paths(answer, true);
	tell_mismatches(answer);
	return answer->head ? 0 : -FI_ENODATA;
}

/* Not inlined: the hints are looked at without its matches and texts on the stack. */
__attribute__((noinline)) static int answer_query(const struct mrf_info_query *query,
						  struct fi_info **info)
{
	struct answer answer = { .query = query };
	int ret;

	answer.tail = &answer.head;
	ret = offer_paths(&answer);
	forget_paths(&answer);
	if (ret)
		mrf_info_free(answer.head);
	else
		*info = answer.head;
	return ret;
}

int mrf_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	struct mrf_info_query query = {
		.version = version,
		.node = node,
		.service = service,
		.flags = flags,
		.hints = hints,
	};
	const char *listed;
	int ret = check_args(&query, info);

	if (ret)
		return ret;
	*info = NULL;
	/* A value of FI_MRFAB_STRICT that is none is named now: what asks for it later is rare. */
	(void)mrf_rule_strict();
	if (flags & FI_PROV_ATTR_ONLY)
		return answer_provider(info);
	listed = mrf_env_str(MRF_PARAM_PROVIDER);
	if (!mrf_host && !mrf_env_listed(listed, MRF_PROV_NAME))
		return mrf_info_decline(1011, NULL, "FI_PROVIDER=%s leaves out \"%s\"", listed,
					MRF_PROV_NAME);
	ret = mrf_info_mode_set(&query);
	if (!ret)
		ret = mrf_info_check_hints(&query);
	if (!ret)
		ret = mrf_info_resolve(&query);
	if (!ret)
		ret = answer_query(&query, info);
	if (!ret) {
		mrf_info_hints_tell(&query, *info);
		mrf_info_mode_tell(&query, *info);
	}
	mrf_info_mode_fini(&query);
	return ret;
}
