/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_CACHE_H
#define INFO_CACHE_H

/*
 * Prints what the caches of local buffers of another process have done: lib/buf/gauge.h.
 * False: it cannot be looked at, or has none; standard error says which.
 */
#include <stdbool.h>

bool info_cache_print(const char *pid);

#endif
