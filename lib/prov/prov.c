/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmrfab-fi.so: the library as a provider of the libfabric that is installed, which finds it in
 * FI_PROVIDER_PATH. The module has the library's objects in it and exports fi_prov_ini only, so
 * that no name meets one of libfabric's.
 *
 * libfabric fills in an fi_info's prov_name and versions, filters by FI_PROVIDER and hints, and
 * copies and frees what it is given by rules of its own release: a newer one has longer
 * structures than ours, and would read beyond them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/env.h"
#include "base/host.h"
#include "base/log.h"
#include "contract/limits.h"
#include "contract/profile.h"
#include "export/fabric_open.h"
#include "info/api.h"

/* What libfabric itself asks by, when it looks for something to build a layer on. */
#define ASKED_BY_LAYER (1ull << 59 | 1ull << 61)
#define ASKED_INTERNALLY (1ull << 58 | 1ull << 60 | ASKED_BY_LAYER)
/* Its layers ask for a registration that no cache keeps; none is kept here. */
#define REGISTERED_BY_LAYER (1ull << 60)

/* The longest of these structures in any release. */
#define DOMAIN_ATTR_SIZE 232
#define EP_ATTR_SIZE 104

_Static_assert(sizeof(struct fi_domain_attr) <= DOMAIN_ATTR_SIZE, "ours is no longer");
_Static_assert(sizeof(struct fi_ep_attr) <= EP_ATTR_SIZE, "ours is no longer");

static int get_info(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info);
static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
static void cleanup(void);

static struct fi_provider provider = {
	.version = FI_VERSION(0, 1),
	/* At least what programs ask libfabric for; what is newer than the library is clamped. */
	.fi_version = FI_VERSION(2, 6),
	.name = MRF_PROV_NAME,
	.getinfo = get_info,
	.fabric = open_fabric,
	.cleanup = cleanup,
};

/* --- libfabric's log ------------------------------------------------------------------ */

static __typeof__(&fi_log) core_log;
static __typeof__(&fi_log_enabled) core_log_enabled;
static __typeof__(&fi_param_define) core_param_define;

/*
 * Among its own lines of that subsystem, which are many and which people leave out, are none of
 * ours.
 */
static enum fi_log_subsys subsys_there(enum fi_log_subsys subsys)
{
	return subsys == FI_LOG_CORE ? FI_LOG_FABRIC : subsys;
}

static bool log_enabled(enum fi_log_level level, enum fi_log_subsys subsys)
{
	return core_log && core_log_enabled &&
	       core_log_enabled(&provider, level, subsys_there(subsys));
}

static void write_line(enum fi_log_level level, enum fi_log_subsys subsys, const char *text)
{
	core_log(&provider, level, subsys_there(subsys), "mrfab", 0, "%s\n", text);
}

static const struct mrf_host host = { .log_enabled = log_enabled,
				      .log = write_line,
				      .mr_flags = REGISTERED_BY_LAYER };

static bool any_enabled(enum fi_log_level level)
{
	int subsys = 0;

	while (subsys < FI_LOG_SUBSYS_MAX && !log_enabled(level, (enum fi_log_subsys)subsys))
		subsys++;
	return subsys < FI_LOG_SUBSYS_MAX;
}

/* Lines of levels above that are not even put together. */
static void set_log_max(void)
{
	int level = FI_LOG_DEBUG;

	while (level > FI_LOG_WARN && !any_enabled((enum fi_log_level)level))
		level--;
	atomic_store(&mrf_log_max, level);
}

/*
 * libfabric may be loaded for a part of the program only (a plug-in), and then is not among the
 * names that everybody sees: it is who calls.
 */
static void find_core(void *caller)
{
	Dl_info core;
	void *object;

	if (!dladdr(caller, &core))
		return;
	object = dlopen(core.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!object)
		object = dlopen(NULL, RTLD_LAZY);
	core_log = (__typeof__(core_log))dlsym(object, "fi_log");
	core_log_enabled = (__typeof__(core_log_enabled))dlsym(object, "fi_log_enabled");
	core_param_define = (__typeof__(core_param_define))dlsym(object, "fi_param_define");
}

/* --- libfabric's list of variables ------------------------------------------------------- */

#define OUR_PREFIX "FI_MRFAB_"

/* fi_info -e shows what was defined so. The core makes the name, and puts ours before the text. */
static void define_variables(void)
{
	static const struct fi_provider ours = { .name = MRF_PROV_NAME };
	const struct mrf_env_row *row;
	const char *help;
	int i;

	for (i = 0; core_param_define && i < MRF_PARAM_COUNT; i++) {
		row = mrf_env_row((enum mrf_param)i);
		if (strncmp(row->name, OUR_PREFIX, strlen(OUR_PREFIX)) != 0)
			continue;
		help = strncmp(row->help, "mrfab: ", 7) ? row->help : row->help + 7;
		core_param_define(&ours, row->name + strlen(OUR_PREFIX), row->type, "%s", help);
	}
	if (core_param_define)
		core_param_define(&ours, "PROVIDER_NAME", FI_PARAM_STRING,
				  "Name by which the provider offers itself (default: mrfab)");
}

/* --- fi_getinfo ----------------------------------------------------------------------- */

/* Hints may name somebody else, or a layer above us. */
static bool names_us(const struct fi_info *hints)
{
	const char *name = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;

	return !name || *name == '^' || !strcasecmp(name, provider.name);
}

static int lengthen(void **struct_at, size_t has, size_t size)
{
	char *longer;

	if (!*struct_at)
		return 0;
	longer = realloc(*struct_at, size);
	if (!longer)
		return -FI_ENOMEM;
	memset(longer + has, 0, size - has);
	*struct_at = longer;
	return 0;
}

/* That of the provider whose contract is in force; 0: none is, or it has none. */
static uint32_t protocol_of_profile(void)
{
	const char *name = mrf_env_str(MRF_PARAM_PROFILE);
	const struct mrf_profile *profile;
	char why[192];

	profile = name ? mrf_profile_find(name, why, sizeof(why)) : NULL;
	return profile ? profile->promise->protocol : FI_PROTO_UNSPEC;
}

static uint32_t protocol_hinted(const struct fi_info *hints)
{
	return hints && hints->ep_attr ? hints->ep_attr->protocol : FI_PROTO_UNSPEC;
}

/*
 * The protocol of the provider in whose name this one comes: what a program demands, or else its profile's;
 * 0: it comes in its own name, or neither says.
 */
static uint32_t protocol_lent(const struct fi_info *hints)
{
	if (!strcmp(provider.name, MRF_PROV_NAME))
		return FI_PROTO_UNSPEC;
	return protocol_hinted(hints) ? protocol_hinted(hints) : protocol_of_profile();
}

static int adapt(struct fi_info *info, uint32_t protocol)
{
	int ret =
		lengthen((void **)&info->domain_attr, sizeof(*info->domain_attr), DOMAIN_ATTR_SIZE);

	if (!ret)
		ret = lengthen((void **)&info->ep_attr, sizeof(*info->ep_attr), EP_ATTR_SIZE);
	if (!ret && protocol)
		info->ep_attr->protocol = protocol;
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = NULL;
	return ret;
}

static int adapt_all(struct fi_info **list, uint32_t protocol)
{
	struct fi_info *info;
	int ret = 0;

	for (info = *list; info && !ret; info = info->next)
		ret = adapt(info, protocol);
	if (!ret)
		return 0;
	mrf_info_free(*list);
	*list = NULL;
	return ret;
}

static uint32_t clamp(uint32_t version)
{
	return FI_VERSION_LT(MRF_API_RULES, version) ? MRF_API_RULES : version;
}

static int get_info(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info)
{
	struct fi_fabric_attr fabric_attr;
	struct fi_ep_attr ep_attr;
	struct fi_info unnamed;
	uint32_t lent = protocol_lent(hints);
	int ret;

	if (flags & ASKED_BY_LAYER || !names_us(hints))
		return -FI_ENODATA;
	if (hints)
		unnamed = *hints;
	if (hints && hints->fabric_attr) {
		fabric_attr = *hints->fabric_attr;
		fabric_attr.prov_name = NULL;
		unnamed.fabric_attr = &fabric_attr;
	}
	if (lent && hints && hints->ep_attr) {
		ep_attr = *hints->ep_attr;
		ep_attr.protocol = FI_PROTO_UNSPEC;
		unnamed.ep_attr = &ep_attr;
	}
	ret = mrf_info_get(clamp(version), node, service, flags & ~ASKED_INTERNALLY,
			   hints ? &unnamed : NULL, info);
	return ret ? ret : adapt_all(info, lent);
}

/* --- the rest ------------------------------------------------------------------------- */

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	static char name[] = MRF_PROV_NAME;
	struct fi_fabric_attr ours = *attr;

	ours.prov_name = name;
	ours.api_version = clamp(attr->api_version);
	return mrf_hosted_fabric(&ours, fabric, context);
}

static void cleanup(void)
{
}

/*
 * Programs that know only one name find us by it, in the place of libfabric's own provider. By a name like
 * verbs;ofi_rxm it would not ask us. NULL: the name is taken, or there is none.
 */
static const char *take_name(void)
{
	const char *name = getenv("FI_MRFAB_PROVIDER_NAME");

	if (!name || !*name)
		return NULL;
	if (mrf_env_bad_name(name))
		return name;
	provider.name = name;
	provider.version = FI_VERSION(999, 0);
	return NULL;
}

/* Once there is a log. */
static void tell_refused(const char *name)
{
	if (name)
		mrf_warn(FI_LOG_FABRIC, 1061,
			 "FI_MRFAB_PROVIDER_NAME=%.64s: the module cannot have a name with %s",
			 name, mrf_env_bad_name(name));
}

MRF_EXPORT struct fi_provider *fi_prov_ini(void);

MRF_EXPORT struct fi_provider *fi_prov_ini(void)
{
	const char *refused;

	find_core(__builtin_return_address(0));
	mrf_host = &host;
	refused = take_name();
	set_log_max();
	tell_refused(refused);
	define_variables();
	return &provider;
}
