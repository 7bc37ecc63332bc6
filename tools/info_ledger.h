/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_LEDGER_H
#define INFO_LEDGER_H

#include "info_files.h"

/* Prints the memory regions that the process has open (lib/mr/ledger.h). -1 and errno. */
int info_ledger_print(struct info_pid *of);

#endif
