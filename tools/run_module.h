/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the files are that mrfab_run puts under a program. */
#ifndef TOOLS_RUN_MODULE_H
#define TOOLS_RUN_MODULE_H

#include <limits.h>
#include <stdbool.h>

#define RUN_MODULE_WHY (2 * PATH_MAX + 256)

/*
 * The folder of the module, and of the stand-in for a device runtime: cuda, rocr or ze. They come from the
 * tree that this program is in, or else from where it was configured. False: why says what is missing.
 */
bool run_module_find(char folder[PATH_MAX], char why[RUN_MODULE_WHY]);
bool run_module_runtime(const char *name, char folder[PATH_MAX], char why[RUN_MODULE_WHY]);

#endif
