/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "hmem/hmem.h"

/* Adds a name to the missing ones, unless the text is full. */
static void add_missing(struct mrf_hmem_why *why, const char *library, const char *name)
{
	size_t used = strlen(why->text);

	if (!used)
		snprintf(why->text, sizeof(why->text), "%s has no %s", library, name);
	else
		snprintf(why->text + used, sizeof(why->text) - used, ", %s", name);
}

int mrf_dl_load(const char *library, const struct mrf_dl_symbol *symbols, size_t count,
		struct mrf_hmem_why *why)
{
	void *so = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	size_t i;

	why->text[0] = '\0';
	if (!so) {
		snprintf(why->text, sizeof(why->text), "%s", dlerror());
		return -FI_ENOSYS;
	}
	for (i = 0; i < count; i++) {
		void *found = dlsym(so, symbols[i].name);

		if (!found)
			add_missing(why, library, symbols[i].name);
		*(void **)symbols[i].function = found;
	}
	return why->text[0] ? -FI_ENOSYS : 0;
}

void mrf_dl_find(const char *library, const char *name, void *function)
{
	void *so = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	*(void **)function = so ? dlsym(so, name) : NULL;
}
