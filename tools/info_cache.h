/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_CACHE_H
#define INFO_CACHE_H

#include "info_files.h"

/* Prints what the caches of local buffers of the process have done (lib/buf/gauge.h). -1 and errno. */
int info_cache_print(struct info_pid *of);

#endif
