/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the report. Each measures and adds its table and its targets. */
#ifndef BENCH_PARTS_H
#define BENCH_PARTS_H

#include "lane.h"

/* Starts programs that lie beside this one; before lanes_open: small processes fork fast.
 */
void part_open(void);
/* Start one that needs a process of its own. */
void part_cache(void);
void part_demand(void);
void part_match(void);
void part_message(void);
void part_discover(void);
void part_register(struct lanes *lanes);
void part_alive(struct lanes *lanes);
void part_rawkey(struct lanes *lanes);
/* After lanes_connect. */
void part_completions(struct lanes *lanes);
void part_access(struct lanes *lanes);
void part_local(struct lanes *lanes);
void part_device(struct lanes *lanes);
void part_atomic(struct lanes *lanes);
void part_beside(struct lanes *lanes);
/* Likewise; connects what it needs itself. */
void part_event(struct lanes *lanes);
void part_agent(struct lanes *lanes);
void part_peers(struct lanes *lanes);

#endif
