/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/rules.h"

#include <stdatomic.h>
#include <strings.h>
#include "base/host.h"
#include "base/log.h"
#include "base/env.h"

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
			 "FI_MRFAB_STRICT=\"%.64s\": the value must be on or off; on is in force",
			 how);
	return true;
}
