/* SPDX-License-Identifier: BSD-2-Clause */
/* What mrfab_run --profile=list prints. */
#ifndef TOOLS_RUN_LIST_H
#define TOOLS_RUN_LIST_H

/* A paragraph for each profile of the table, on standard output: what it requires, has and lacks. */
void run_list_profiles(void);

#endif
