/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TOOLS_INFO_JSON_H
#define TOOLS_INFO_JSON_H

#include <rdma/fabric.h>

/*
 * Prints the list as a JSON array, one object for each info, on standard output. Names and values are
 * those of fi_tostr(3): a set is an array of strings, a decimal number a number, a pointer that is
 * NULL null, and all else a string.
 */
void info_json_print(const struct fi_info *list);

#endif
