/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An object that calls what the hooks are about, for t_hooks.c, which loads it. It is
 * linked in several ways.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN int (*hooked_pointer)(void *, size_t) = munmap;
SHOWN pid_t (*hooked_pointer_too)(void) = getppid;
SHOWN char hooked_room[1 << 16];
SHOWN void (*hooked_at_end)(void);

/* The test says in the environment what is to be called while this is being loaded. */
__attribute__((constructor)) static void at_load(void)
{
	const char *text = getenv("HOOKED_AT_LOAD");
	void *call;

	if (text && sscanf(text, "%p", &call) == 1)
		((void (*)(void))call)();
}

#ifdef OWN_GETPPID
SHOWN pid_t getppid(void)
{
	return 1;
}
#endif

SHOWN pid_t hooked_getppid(void)
{
	return getppid();
}

SHOWN int hooked_munmap(void *mem, size_t len)
{
	return munmap(mem, len);
}

SHOWN int hooked_by_pointer(void *mem, size_t len)
{
	return hooked_pointer(mem, len);
}

SHOWN void hooked_free(void *mem)
{
	free(mem);
}

SHOWN void *hooked_realloc(void *mem, size_t len)
{
	return realloc(mem, len);
}

/* Sees this object's own functions, too, because it is this object that asks. */
SHOWN void *hooked_dlsym(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	__asm__ volatile("");
	return found;
}

SHOWN void *hooked_dlopen(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	/* Not by a jump: this object must stay the caller. */
	__asm__ volatile("");
	return handle;
}

__attribute__((destructor)) static void end(void)
{
	if (hooked_at_end)
		hooked_at_end();
}
