/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_WHERE_H
#define INFO_WHERE_H

#include <stdint.h>

/* A place in the code of another process. */
struct info_where {
	char object[256];   /* path of the program or library; "": it is in none */
	uint64_t place;	    /* in the object, as addr2line -e takes it; without one, the address */
	char function[128]; /* "": the object does not say */
	uint64_t offset;    /* from the beginning of the function */
};

/* pid is a decimal number. */
void info_where_find(const char *pid, uint64_t address, struct info_where *where);

#endif
