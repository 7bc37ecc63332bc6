/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_PID_H
#define INFO_PID_H

#include <stdbool.h>

/*
 * Prints all that is known. False: the process cannot be looked at, or uses no domain; standard error
 * says which.
 */
bool info_pid_print(const char *pid, bool json);

#endif
