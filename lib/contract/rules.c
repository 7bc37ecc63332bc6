/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/rules.h"

#include <stdatomic.h>
#include "base/host.h"
#include "base/log.h"
#include "base/strict.h"

bool mrf_rule_strict(void)
{
	static atomic_bool said;
	const char *wrong;
	enum mrf_strict how = mrf_strict_read(&wrong);

	if (wrong && !atomic_exchange(&said, true))
		mrf_warn(
			FI_LOG_CORE, 5904,
			"FI_MRFAB_STRICT=\"%.64s\": the value must be off, on, warn or abort; on is "
			"in force",
			wrong);
	if (how == MRF_STRICT_UNSET)
		return wrong || !mrf_host;
	return how != MRF_STRICT_OFF;
}
