/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways in which the same work is done, side by side in one process; and the second
 * process with the memory that they access. A lane that is not there (no libfabric
 * installed) does nothing and has no ratio.
 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include <sys/types.h>
#include "bench.h"
#include "fab.h"
#include "raw.h"

enum lane_id {
	LANE_RAW,
	LANE_DEFAULT,	   /* libmrfab, mr_mode 0; accesses give the descriptor */
	LANE_UNREGISTERED, /* the same, from local memory that nobody registered */
	LANE_NATIVE,	   /* libmrfab, the modes of FAB_NATIVE */
	LANE_OTHER,	   /* libfabric, the modes of FAB_NATIVE */
	LANE_AGAIN,	   /* the same objects as LANE_RAW */
	LANES
};

struct lane {
	struct raw *raw; /* or ... */
	struct fab *fab; /* ... or neither */
	struct work_register reg;
	struct work_access access;
};

struct lanes {
	struct lane lane[LANES];
	struct raw raw;
	struct fab fab[LANES];
	struct fab_lib other;
	/* Apart from the lanes: writes that the target counts; see part_event.c. */
	struct raw event_raw;
	struct fab event_fab, asleep_fab;
	/* Likewise: atomic operations that the device has not got; see part_agent.c. */
	struct fab agent_fab[2];
	/* Likewise: one that has more and more peers; see part_peers.c. */
	struct fab peers_fab;
	uint8_t *buf; /* BENCH_MAX_LEN bytes, local end of all accesses */
	pid_t target;
	int socket; /* to the target */
};

/* Before any other call: starts the process that is accessed; it waits. */
void lanes_fork(struct lanes *lanes);
/* Opens all that registering needs. */
void lanes_open(struct lanes *lanes);
/* Opens the target's half and connects; accesses need it. */
void lanes_connect(struct lanes *lanes);
/* One more endpoint in this process, to access what LANE_NATIVE accesses. */
void lanes_join(struct lanes *lanes, struct fab *fab, int mr_mode, uint64_t caps);
/* Ends the target. */
void lanes_close(struct lanes *lanes);

/* What a process tells the other; of the parts that have more to say. */
void lanes_tell(struct lanes *lanes, const void *what, size_t len);
void lanes_hear(struct lanes *lanes, void *what, size_t len);
/* Of one library's endpoint and region: the target's half, and the initiator's. */
void lanes_serve_fab(struct lanes *lanes, struct fab *fab);
void lanes_connect_fab(struct lanes *lanes, struct fab *fab, struct work_access *access);
/* Of raw, likewise. */
void lanes_serve_raw(struct lanes *lanes, struct raw *raw);
void lanes_connect_raw(struct lanes *lanes, struct raw *raw, struct work_remote *remote);

/* The target's half of the part about memory of devices, in part_device.c. */
void device_serve(struct lanes *lanes);

/* The target's half of the part about events, in part_event.c. */
void event_serve(struct lanes *lanes);

/* Of the part about what the target's process does, in part_agent.c. */
void agent_serve(struct lanes *lanes);

/* Of the part about many peers, in part_peers.c. */
void peers_serve(struct lanes *lanes);

/* The work of a series; arg is a struct lane whose reg or access says what. */
void lane_register(void *arg);
void lane_access(void *arg);

/* Runs one of the two on all lanes. The ratio is NAN for a lane that is not there. */
void lanes_run(struct lanes *lanes, void (*work)(void *arg), int rounds, double ratio[LANES]);

/* What LANE_OTHER is, for the report. */
const char *lanes_other_version(const struct lanes *lanes);

#endif
