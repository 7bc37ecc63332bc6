/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_CACHE_H
#define INFO_CACHE_H

#include <stdbool.h>

/*
 * Prints what the caches of local buffers of another process have done (lib/buf/gauge.h).
 * False: the process cannot be looked at, or has no cache; standard error says which.
 */
bool info_cache_print(const char *pid);

#endif
