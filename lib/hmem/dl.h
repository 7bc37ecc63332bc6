/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads a runtime's library and finds its functions. */
#ifndef MRF_HMEM_DL_H
#define MRF_HMEM_DL_H

#include "hmem/table.h"

struct mrf_dl_symbol {
	const char *name;
	void *function; /* the pointer to be set */
};

/*
 * -FI_ENOSYS: the library cannot be loaded, or lacks a function; *why says what the loader says,
 * or names each missing function. A library that was loaded stays loaded.
 */
int mrf_dl_load(const char *library, const struct mrf_dl_symbol *symbols, size_t count,
		struct mrf_hmem_why *why);
/* For a function that older runtimes lack: *function is NULL then. */
void mrf_dl_find(const char *library, const char *name, void *function);

#endif
