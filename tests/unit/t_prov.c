/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The module for libfabric, asked as libfabric asks its providers. This program is the core: it
 * exports the functions that the module looks for in whoever calls it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "base/env.h"
#include "base/host.h"
#include "base/log.h"
#include "contract/limits.h"
#include "contract/rules.h"
#include "one_device.h"

/* A newer libfabric's structures are longer than ours, and its fi_dupinfo copies all of them. */
#define DOMAIN_ATTR_SIZE 232
#define EP_ATTR_SIZE 104

#define CORE_API __attribute__((visibility("default")))

struct fi_provider *fi_prov_ini(void);

/* --- the core ------------------------------------------------------------------------------ */

static enum fi_log_level core_level = FI_LOG_WARN;
static char core_line[600], core_params[8000];
static unsigned core_lines;

CORE_API int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
			    enum fi_log_subsys subsys)
{
	(void)prov;
	(void)subsys;
	return level <= core_level;
}

CORE_API void fi_log(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, const char *func, int line, const char *fmt, ...)
{
	va_list ap;

	(void)prov;
	(void)level;
	(void)subsys;
	(void)func;
	(void)line;
	va_start(ap, fmt);
	vsnprintf(core_line, sizeof(core_line), fmt, ap);
	va_end(ap);
	core_lines++;
}

CORE_API int fi_param_define(const struct fi_provider *prov, const char *name,
			     enum fi_param_type type, const char *fmt, ...)
{
	size_t used = strlen(core_params);

	(void)type;
	(void)fmt;
	snprintf(core_params + used, sizeof(core_params) - used, "[%s %s]", prov->name, name);
	return 0;
}

static struct fi_provider *prov;

static void setup(void)
{
	unsetenv("FI_MRFAB_PROVIDER_NAME");
	unsetenv("FI_MRFAB_STRICT");
	setenv("FI_PROVIDER", "^mrfab", 1);
	mrf_env_reload();
	one_device_use();
	core_level = FI_LOG_WARN;
	core_lines = 0;
	core_params[0] = '\0';
	prov = fi_prov_ini();
	ck_assert_ptr_nonnull(prov);
}

static int ask(uint32_t version, uint64_t flags, const char *name, struct fi_info **info)
{
	struct fi_fabric_attr fabric = { .prov_name = (char *)(uintptr_t)name };
	struct fi_info hints = { .fabric_attr = &fabric };

	*info = NULL;
	return prov->getinfo(version, NULL, NULL, flags, &hints, info);
}

static void free_all(struct fi_info *info)
{
	fi_freeinfo(info);
}

/* --- cases --------------------------------------------------------------------------------- */

START_TEST(it_says_who_it_is)
{
	ck_assert_str_eq(prov->name, "mrfab");
	ck_assert(FI_VERSION_GE(prov->fi_version, FI_VERSION(2, 1)));
	ck_assert_ptr_nonnull(prov->getinfo);
	ck_assert_ptr_nonnull(prov->fabric);
	prov->cleanup();
}
END_TEST

/* The core filters by FI_PROVIDER, and writes the name and the version itself. */
START_TEST(what_it_offers_is_as_long_as_the_longest_release_reads)
{
	static const char none[DOMAIN_ATTR_SIZE];
	struct fi_info *info;
	size_t ours = sizeof(*info->domain_attr);

	ck_assert_int_eq(ask(FI_VERSION(1, 17), 0, NULL, &info), 0);
	ck_assert_ptr_null(info->fabric_attr->prov_name);
	ck_assert_int_eq(memcmp((char *)info->domain_attr + ours, none, DOMAIN_ATTR_SIZE - ours),
			 0);
	ours = sizeof(*info->ep_attr);
	ck_assert_int_eq(memcmp((char *)info->ep_attr + ours, none, EP_ATTR_SIZE - ours), 0);
	free_all(info);
}
END_TEST

START_TEST(a_version_that_is_newer_is_answered)
{
	struct fi_info *info;

	ck_assert_int_eq(ask(FI_VERSION(2, 9), 0, NULL, &info), 0);
	free_all(info);
}
END_TEST

static const struct {
	const char *name;
	uint64_t flags;
	int ret;
} asked[] = {
	{ "mrfab", 0, 0 },
	{ "MRFAB", 0, 0 },
	{ NULL, 1ull << 58, 0 },
	{ NULL, 1ull << 60, 0 },
	{ NULL, 1ull << 59, -FI_ENODATA }, /* for a layer above */
	{ NULL, 1ull << 61, -FI_ENODATA },
	{ "tcp", 0, -FI_ENODATA },
	{ "mrfab;ofi_rxm", 0, -FI_ENODATA },
	{ "ofi_rxm", 0, -FI_ENODATA },
};

START_TEST(whoever_means_another_gets_nothing)
{
	struct fi_info *info;

	ck_assert_int_eq(ask(FI_VERSION(1, 17), asked[_i].flags, asked[_i].name, &info),
			 asked[_i].ret);
	ck_assert(!info == !!asked[_i].ret);
	ck_assert_uint_eq(core_lines, 0);
	if (info)
		free_all(info);
}
END_TEST

/* It is asked with hints that were meant for others: that is no warning. */
START_TEST(hints_that_do_not_fit_are_said_at_the_level_info_only)
{
	struct fi_ep_attr ep = { .type = FI_EP_DGRAM };
	struct fi_info hints = { .ep_attr = &ep }, *info = NULL;

	ck_assert_int_eq(prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &hints, &info),
			 -FI_ENODATA);
	ck_assert_uint_eq(core_lines, 0);
	core_level = FI_LOG_INFO;
	fi_prov_ini();
	ck_assert_int_eq(prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &hints, &info),
			 -FI_ENODATA);
	ck_assert_uint_gt(core_lines, 0);
	ck_assert_ptr_nonnull(strstr(core_line, "FI_EP_RDM"));
}
END_TEST

START_TEST(lines_are_the_core_s_and_end_once)
{
	mrf_refuse(FI_EINVAL, FI_LOG_MR, 3003, "what was wrong");
	ck_assert_uint_eq(core_lines, 1);
	ck_assert_str_eq(core_line, "MRF-E3003: what was wrong (-22, Invalid argument)\n");
	mrf_info(FI_LOG_MR, "nobody wants to know");
	ck_assert_uint_eq(core_lines, 1);
	ck_assert_int_eq(atomic_load(&mrf_log_max), FI_LOG_WARN);
}
END_TEST

START_TEST(its_variables_are_in_the_core_s_list)
{
	ck_assert_ptr_nonnull(strstr(core_params, "[mrfab MR_MODE]"));
	ck_assert_ptr_nonnull(strstr(core_params, "[mrfab STRICT]"));
	ck_assert_ptr_nonnull(strstr(core_params, "[mrfab PROVIDER_NAME]"));
	ck_assert_ptr_null(strstr(core_params, "LOG_LEVEL"));
}
END_TEST

START_TEST(it_is_not_strict_unless_that_is_asked_for)
{
	ck_assert(!mrf_rule_strict());
	setenv("FI_MRFAB_STRICT", "on", 1);
	mrf_env_reload();
	ck_assert(mrf_rule_strict());
}
END_TEST

START_TEST(another_name_has_a_higher_version_and_no_other_contents)
{
	struct fi_info *info;

	setenv("FI_MRFAB_PROVIDER_NAME", "verbs", 1);
	prov = fi_prov_ini();
	ck_assert_str_eq(prov->name, "verbs");
	ck_assert(FI_VERSION_GE(prov->version, FI_VERSION(200, 0)));
	ck_assert_int_eq(ask(FI_VERSION(1, 17), 0, "verbs", &info), 0);
	free_all(info);
	ck_assert_int_eq(ask(FI_VERSION(1, 17), 0, "mrfab", &info), -FI_ENODATA);
	/* Its variables keep their names. */
	ck_assert_ptr_nonnull(strstr(core_params, "[mrfab MR_MODE]"));
	ck_assert_ptr_null(strstr(core_params, "[verbs"));
}
END_TEST

START_TEST(the_name_of_a_stack_of_providers_is_not_taken)
{
	static const char *const names[] = { "verbs;ofi_rxm", "verbs,tcp", "my verbs" };
	char line[80];

	snprintf(line, sizeof(line), "MRF-W1061: FI_MRFAB_PROVIDER_NAME=%s", names[_i]);
	setenv("FI_MRFAB_PROVIDER_NAME", names[_i], 1);
	prov = fi_prov_ini();
	ck_assert_str_eq(prov->name, "mrfab");
	ck_assert_uint_eq(core_lines, 1);
	ck_assert_ptr_nonnull(strstr(core_line, line));
}
END_TEST

/* As Mercury asks, which has a protocol for each name. */
START_TEST(another_name_has_the_protocol_that_is_asked_of_it)
{
	struct fi_fabric_attr fabric = { .prov_name = (char *)"sockets" };
	struct fi_ep_attr ep = { .type = FI_EP_RDM, .protocol = FI_PROTO_SOCK_TCP };
	struct fi_info hints = { .fabric_attr = &fabric, .ep_attr = &ep }, *info = NULL;

	setenv("FI_MRFAB_PROVIDER_NAME", "sockets", 1);
	prov = fi_prov_ini();
	ck_assert_int_eq(prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &hints, &info), 0);
	ck_assert_uint_eq(info->ep_attr->protocol, FI_PROTO_SOCK_TCP);
	free_all(info);
	ep.protocol = FI_PROTO_UNSPEC;
	ck_assert_int_eq(prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &hints, &info), 0);
	ck_assert_uint_eq(info->ep_attr->protocol, MRF_PROTOCOL);
	free_all(info);
	/* By its own name it has its own. */
	setenv("FI_MRFAB_PROVIDER_NAME", "mrfab", 1);
	prov = fi_prov_ini();
	fabric.prov_name = (char *)"mrfab";
	ep.protocol = FI_PROTO_SOCK_TCP;
	ck_assert_int_eq(prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &hints, &info),
			 -FI_ENODATA);
}
END_TEST

static const struct {
	const char *profile;
	uint32_t hint, answer;
} protocols[] = {
	{ "efa", FI_PROTO_UNSPEC, FI_PROTO_EFA },
	{ "efa", FI_PROTO_EFA, FI_PROTO_EFA },
	{ "verbs", FI_PROTO_UNSPEC, FI_PROTO_RDMA_CM_IB_RC },
	{ "verbs-rxm", FI_PROTO_UNSPEC, FI_PROTO_RXM },
	{ "tcp", FI_PROTO_UNSPEC, FI_PROTO_XNET },
	{ "tcp-rxm", FI_PROTO_UNSPEC, FI_PROTO_RXM },
	{ "sockets+lenient", FI_PROTO_UNSPEC, FI_PROTO_SOCK_TCP },
	{ "rxd", FI_PROTO_UNSPEC, FI_PROTO_RXD },
	{ "shm", FI_PROTO_UNSPEC, FI_PROTO_SHM },
	{ "cxi-client", FI_PROTO_UNSPEC, FI_PROTO_CXI },
	{ "psm3", FI_PROTO_UNSPEC, FI_PROTO_PSMX3 },
	/* It has no name yet, nothing is known of it, or there is no provider. */
	{ "ucx", FI_PROTO_UNSPEC, MRF_PROTOCOL },
	{ "gni", FI_PROTO_UNSPEC, MRF_PROTOCOL },
	{ "custom:key_size=4", FI_PROTO_UNSPEC, MRF_PROTOCOL },
	/* No such profile exists, which fi_getinfo says. */
	{ "none", FI_PROTO_UNSPEC, 0 },
};

static uint32_t protocol_under(const char *name, const char *profile, uint32_t hint)
{
	struct fi_domain_attr domain = { .mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE) };
	struct fi_ep_attr ep = { .type = FI_EP_RDM, .protocol = hint };
	struct fi_info hints = { .domain_attr = &domain, .ep_attr = &ep }, *info = NULL;
	uint32_t answer = 0;

	setenv("FI_MRFAB_PROVIDER_NAME", name, 1);
	setenv("FI_MRFAB_PROFILE", profile, 1);
	mrf_env_reload();
	prov = fi_prov_ini();
	if (!prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &hints, &info))
		answer = info->ep_attr->protocol;
	free_all(info);
	unsetenv("FI_MRFAB_PROFILE");
	return answer;
}

START_TEST(another_name_has_the_protocol_of_the_profile)
{
	const char *profile = protocols[_i].profile;

	ck_assert_uint_eq(protocol_under("some", profile, protocols[_i].hint),
			  protocols[_i].answer);
	/* By its own name it has its own, and no other. */
	if (protocols[_i].hint)
		ck_assert_uint_eq(protocol_under("mrfab", profile, protocols[_i].hint), 0);
	else if (protocols[_i].answer)
		ck_assert_uint_eq(protocol_under("mrfab", profile, 0), MRF_PROTOCOL);
}
END_TEST

static TCase *tcase_prov(void)
{
	TCase *tc = tcase_create("prov");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, it_says_who_it_is);
	tcase_add_test(tc, what_it_offers_is_as_long_as_the_longest_release_reads);
	tcase_add_test(tc, a_version_that_is_newer_is_answered);
	tcase_add_loop_test(tc, whoever_means_another_gets_nothing, 0, MRF_ARRAY_SIZE(asked));
	tcase_add_test(tc, hints_that_do_not_fit_are_said_at_the_level_info_only);
	tcase_add_test(tc, lines_are_the_core_s_and_end_once);
	tcase_add_test(tc, its_variables_are_in_the_core_s_list);
	tcase_add_test(tc, it_is_not_strict_unless_that_is_asked_for);
	tcase_add_test(tc, another_name_has_a_higher_version_and_no_other_contents);
	tcase_add_loop_test(tc, the_name_of_a_stack_of_providers_is_not_taken, 0, 3);
	tcase_add_test(tc, another_name_has_the_protocol_that_is_asked_of_it);
	tcase_add_loop_test(tc, another_name_has_the_protocol_of_the_profile, 0,
			    MRF_ARRAY_SIZE(protocols));
	return tc;
}

UNIT_MAIN("prov", tcase_prov)
