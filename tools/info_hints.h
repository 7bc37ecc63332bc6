/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_HINTS_H
#define INFO_HINTS_H

#include <rdma/fabric.h>

/*
 * Fills hints, which are empty, from a file with what fi_tostr printed of some; "-": standard input.
 * Addresses, and fields that hints have no use for, are left out, which standard error says if they are set.
 * -EINVAL, or another error of the file, after a line on standard error.
 */
int info_hints_read(const char *path, struct fi_info *hints);

#endif
