/* SPDX-License-Identifier: BSD-2-Clause */
/* What is measured, in a form that raw verbs and libfabric's interface can both do. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stddef.h>
#include <stdint.h>

#define WORK_DEPTH 16 /* accesses in flight at most; reads that a queue pair allows */

/* Registers the buffer for all remote access and closes it again, times times. */
struct work_register {
	void *buf;
	size_t len;
	unsigned times;
};

/* Where the target's buffer is, as the initiator has to name it. */
struct work_remote {
	uint64_t addr;
	uint64_t key;
};

/* Reads or writes the first len bytes of the target's buffer, times times. */
struct work_access {
	int write;
	void *buf;
	size_t len;
	unsigned depth; /* in flight at a time, <= WORK_DEPTH */
	unsigned times;
	struct work_remote remote;
	int fetch_add;	/* neither: 1 is added to its first 8 bytes, the old ones come back */
	int datatype;	/* neither, of libraries: an atomic operation, op, on an element ... */
	int op;		/* ... of this type there; 0, FI_INT8: none */
	int yield;	/* while nothing is done, others may run */
	int use_inline; /* raw: the data travels in the work request */
	int use_imm;	/* not other libraries: with data, which the target takes */
	int inject;	/* libraries: all but the last of those in flight are injected */
	int use_desc;	/* the local buffer is registered, say where; raw always does */
};

/*
 * Begins so many accesses and waits until all are done without a look for completions, which are then
 * read `batch` at a time: how long that took, each.
 */
#define WORK_COMPLETIONS 64
#define WORK_REST_US 2000

#endif
