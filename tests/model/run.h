/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs of the model: worlds one after the other, each in a process of its own that is
 * forked for it, so that the caller must not have used the library. The steps of a world
 * are made by its threads while they go and noted in memory that the caller sees. When
 * they fail, parts of them are done again until none can be left out, and are printed.
 */
#ifndef MODEL_RUN_H
#define MODEL_RUN_H

#include <stdio.h>
#include "exec.h"

struct plan {
	const struct backend *backend;
	uint64_t seed;
	unsigned first, worlds; /* numbers of worlds: mode and version go by them */
	unsigned steps;		/* of a world: all of its threads together */
	unsigned threads;
	unsigned seconds; /* for one world; longer is a hang */
	unsigned budget;  /* seconds to shorten what fails */
	bool files;	  /* where it runs, a file is kept */
	bool messages;	  /* worlds in which messages are sent, too */
	FILE *out;
};

/* MRFAB_SEED, or else. */
uint64_t plan_seed(uint64_t otherwise);
/* Number of an environment variable, or else. */
unsigned plan_number(const char *name, unsigned otherwise);

/* Is no part of it a hole in the memory of the world in this process, or a device's? */
bool model_memory_there(const void *addr, size_t len);

/* True: library and model agreed, and nothing was left. */
bool model_run(const struct plan *plan);

#endif
