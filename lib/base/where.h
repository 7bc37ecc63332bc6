/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in the program a call was made, in words. */
#ifndef MRF_BASE_WHERE_H
#define MRF_BASE_WHERE_H

#include <stddef.h>

/*
 * "main+0x4f (program+0x1149)" for the address that a call returns to: the function, if the object
 * exports it, and the place that addr2line -e takes. An address in no object is written as it is. The
 * loader is asked, so no lock is held.
 */
void mrf_where_text(const void *returns_to, char *buf, size_t len);

#endif
