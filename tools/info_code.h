/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TOOLS_INFO_CODE_H
#define TOOLS_INFO_CODE_H

#include <stdbool.h>

/*
 * Prints what mrfab_messages(7) says of a code: "MRF-E4105", "E4105" or "4105". False: there is no
 * such code; standard error has a line.
 */
bool info_code_print(const char *code);

#endif
