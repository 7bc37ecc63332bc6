/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/rules.h"

#include <stdatomic.h>
#include <strings.h>
#include <rdma/fabric.h>
#include "base/host.h"
#include "base/log.h"
#include "base/env.h"

/* The first version that has the rule. */
static const uint32_t since[MRF_RULE_COUNT] = {
	[MRF_RULE_MR_MODE_BITS] = FI_VERSION(1, 5), [MRF_RULE_AUTH_KEY] = FI_VERSION(1, 5),
	[MRF_RULE_LEN_ZERO] = FI_VERSION(1, 13),    [MRF_RULE_UNSPEC_ACCEPTED] = FI_VERSION(1, 16),
	[MRF_RULE_REGION_FIRST] = FI_VERSION(2, 3),
};

bool mrf_rule_holds(enum mrf_rule rule, uint32_t version)
{
	return FI_VERSION_GE(version, since[rule]);
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
