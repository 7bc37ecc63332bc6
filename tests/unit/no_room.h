/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrays that cannot grow. The test is linked with -Wl,--wrap=realloc and includes this
 * once: while no_room is set, realloc fails for what is called by roomless(), and
 * refusals counts that. Check itself, which may be linked in, goes on.
 */
#ifndef NO_ROOM_H
#define NO_ROOM_H

#include <stdbool.h>
#include <stddef.h>

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool no_room;
static bool inside;
static unsigned refusals;

void *__wrap_realloc(void *old, size_t size)
{
	if (!no_room || !inside)
		return __real_realloc(old, size);
	refusals++;
	return NULL;
}

#define roomless(call)          \
	do {                    \
		inside = true;  \
		call;           \
		inside = false; \
	} while (0)

#endif
