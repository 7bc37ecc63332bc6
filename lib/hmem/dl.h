/* SPDX-License-Identifier: BSD-2-Clause */
/* A runtime's library: loaded, and its functions found, all that are needed or none. */
#ifndef MRF_HMEM_DL_H
#define MRF_HMEM_DL_H

#include "hmem/table.h"

struct mrf_dl_symbol {
	const char *name;
	void *function; /* where a pointer to it goes */
};

/*
 * -FI_ENOSYS: *why names the library and what the loader says, or each function that it
 * lacks. A library that was loaded stays.
 */
int mrf_dl_load(const char *library, const struct mrf_dl_symbol *symbols, size_t count,
		struct mrf_hmem_why *why);

#endif
