/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/rules.h"

#include <stdatomic.h>
#include <strings.h>
#include <rdma/fabric.h>
#include "base/host.h"
#include "base/log.h"
#include "base/env.h"

struct rule {
	uint32_t since;
	const char *section;
	const char *text;
};

static const struct rule rules[MRF_RULE_COUNT] = {
	[MRF_RULE_MR_MODE_BITS] = {
		FI_VERSION(1, 5), "MEMORY REGISTRATION MODES",
		"mr_mode is a set of bits; FI_MR_BASIC and FI_MR_SCALABLE stand alone",
	},
	[MRF_RULE_AUTH_KEY] = {
		FI_VERSION(1, 5), "auth_key",
		"a registration may carry an authorization key",
	},
	[MRF_RULE_LEN_ZERO] = {
		FI_VERSION(1, 13), "fi_mr_reg",
		"a region has at least one byte",
	},
	[MRF_RULE_UNSPEC_ACCEPTED] = {
		FI_VERSION(1, 16), "MEMORY REGISTRATION MODES",
		"mr_mode 0 is accepted, remote access is withheld if modes are required",
	},
	[MRF_RULE_REGION_FIRST] = {
		FI_VERSION(2, 3), "fi_close",
		"a region is closed before the endpoint or counter it is bound to",
	},
};

bool mrf_rule_holds(enum mrf_rule rule, uint32_t version)
{
	return FI_VERSION_GE(version, rules[rule].since);
}

uint32_t mrf_rule_since(enum mrf_rule rule)
{
	return rules[rule].since;
}

const char *mrf_rule_text(enum mrf_rule rule)
{
	return rules[rule].text;
}

const char *mrf_rule_section(enum mrf_rule rule)
{
	return rules[rule].section;
}

bool mrf_rule_strict(void)
{
	static atomic_bool said;
	const char *how = mrf_env_str(MRF_PARAM_STRICT);

	if (!how || !*how)
		return !mrf_host;
	if (!strcasecmp(how, "on"))
		return true;
	if (!strcasecmp(how, "off"))
		return false;
	if (!atomic_exchange(&said, true))
		mrf_warn(FI_LOG_CORE, 5904,
			 "FI_MRFAB_STRICT=\"%.64s\": must be on or off; on is in force", how);
	return true;
}
