/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_LEAKS: what the application has not closed when the process ends, or when the library is
 * unloaded: in the log, and as JSON in a file. Fabrics and domains are known from their opening to their closing;
 * what is open on them, they know themselves. Any thread.
 */
#ifndef MRF_DOMAIN_LEAKS_H
#define MRF_DOMAIN_LEAKS_H

#include "base/list.h"

struct mrf_obj;
struct mrf_mr_space;

/* Part of a fabric or domain; guarded by a lock of its own. */
struct mrf_leaks_node {
	struct mrf_list node;
	struct mrf_obj *obj;
	struct mrf_mr_space *space; /* NULL: of a fabric */
	int64_t since;		    /* mrf_now_tick */
};

/* obj is initialised, and so is space. */
void mrf_leaks_opened(struct mrf_leaks_node *node, struct mrf_obj *obj, struct mrf_mr_space *space);
/* Before anything of it goes. */
void mrf_leaks_closed(struct mrf_leaks_node *node);

#endif
