/* SPDX-License-Identifier: BSD-2-Clause */
#include "info_pid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "info_cache.h"
#include "info_ledger.h"

bool info_pid_print(const char *pid, bool json)
{
	struct info_pid of = { .pid = pid, .json = json };
	int ret;

	if (json)
		printf("[");
	ret = info_cache_print(&of);
	if (!ret)
		ret = info_ledger_print(&of);
	if (json)
		printf("%s]\n", of.shown ? "\n" : "");
	if (ret)
		fprintf(stderr, "mrfab_info: process %s cannot be looked at: %s\n", pid,
			strerror(errno));
	else if (!of.shown)
		fprintf(stderr, "mrfab_info: process %s uses no domain\n", pid);
	return !ret && of.shown;
}
