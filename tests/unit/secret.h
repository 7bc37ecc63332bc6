/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sees to it that a key does not stay behind: programs that are linked with --wrap=free
 * and have this look into all memory that is given back.
 */
#ifndef SECRET_H
#define SECRET_H

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SECRET "Open, sesame: 71 camels and a flute"
#define SECRET_LEN (sizeof(SECRET) - 1)

static atomic_uint secrets_freed; /* blocks that had it when they were given back */

/* Is it, or a good part of it, among these bytes? */
static inline int has_secret(const void *mem, size_t len)
{
	return memmem(mem, len, SECRET, SECRET_LEN / 2) ||
	       memmem(mem, len, &SECRET[SECRET_LEN / 2], SECRET_LEN / 2);
}

/* valgrind minds that some of what is given back was never written; others look. */
static inline bool secrets_seen(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return !preload || !strstr(preload, "vgpreload");
}

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p)
{
	if (p && secrets_seen() && has_secret(p, malloc_usable_size(p)))
		atomic_fetch_add(&secrets_freed, 1);
	__real_free(p);
}

#endif
