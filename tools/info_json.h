/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TOOLS_INFO_JSON_H
#define TOOLS_INFO_JSON_H

#include <stddef.h>
#include <rdma/fabric.h>

/*
 * Prints the list as a JSON array, one object for each info, on standard output. Names and values are
 * those of fi_tostr(3): a set is an array of strings, a decimal number a number, a pointer that is
 * NULL null, and all else a string.
 */
void info_json_print(const struct fi_info *list);

/* The parts of it: a string; and a set, as fi_tostr has it ("FI_A, FI_B"), as an array of strings. */
void info_json_string(const char *text, size_t len);
void info_json_set(const char *text, size_t len);

#endif
