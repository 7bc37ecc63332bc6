/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in the program a call was made, in words. */
#ifndef MRF_BASE_WHERE_H
#define MRF_BASE_WHERE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct mrf_where {
	char function[64]; /* empty: the object does not export it */
	char object[96];   /* file name of the program or library; empty: the place is in none */
	uint64_t offset;   /* in the function */
	uint64_t place;	   /* in the object, as addr2line -e takes it */
};

/* Of the call that returns to this address. The loader is asked, so no lock is held. */
void mrf_where_find(const void *returns_to, struct mrf_where *where);
/* The whole name of the object's file; empty: the place is in none. As mrf_where_find. */
void mrf_where_path(const void *returns_to, char path[PATH_MAX]);
/*
 * "main+0x4f (program+0x1149)" for the address that a call returns to: the function, if the object
 * exports it, and the place. An address in no object is written as it is. As mrf_where_find.
 */
void mrf_where_text(const void *returns_to, char *buf, size_t len);

#endif
