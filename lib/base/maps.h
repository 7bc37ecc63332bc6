/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is mapped in this process, as /proc/self/maps has it. A look is out of date as
 * soon as it is taken: it says what is worth trying, the kernel then says what is so.
 */
#ifndef MRF_BASE_MAPS_H
#define MRF_BASE_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct mrf_mapping {
	uint64_t start;
	uint64_t end;	/* exclusive */
	char perms[5];	/* "rw-p" */
	uint64_t inode; /* 0: no file */
	bool rdma;	/* a queue of an RDMA device, this library's or another's */
};

/*
 * An open /proc/self/maps, for this thread, which closes it soon; NULL and errno. Where it cannot
 * be opened it is read by the descriptor that is kept, by one thread at a time.
 */
FILE *mrf_maps_open(void);
/* The next one of them, in order of address. False: no more. */
bool mrf_maps_next(FILE *maps, struct mrf_mapping *mapping);

/*
 * Keeps one descriptor of it for the process, so that it can be read when no other descriptor is
 * left or /proc has gone; if it cannot be had, it is done without. Counted. A child of fork
 * starts with none.
 */
void mrf_maps_keep(void);
void mrf_maps_let_go(void);

/*
 * Whether some of it may be pinned, for reading or for writing as well. The kernel would pin
 * queues, too: who can write there makes a library read whatever he likes.
 */
bool mrf_maps_pinnable(const struct mrf_mapping *mapping, bool write);
/* Memory of this process alone and no file's: changes to it can be heard of. */
bool mrf_maps_private(const struct mrf_mapping *mapping);

/* In order of address. All 0: empty. */
struct mrf_maps {
	unsigned count;
	unsigned max;		     /* room */
	unsigned total;		     /* how many the process has, with those elsewhere */
	struct mrf_mapping *mapping; /* not cut to [start, end) */
};

/*
 * Looks at [start, end): maps then has all mappings with a byte there, and no others.
 * -FI_ENOMEM, or why it cannot be read.
 */
int mrf_maps_look(struct mrf_maps *maps, uint64_t start, uint64_t end);
/* How many a process may have at most (vm.max_map_count). */
unsigned mrf_maps_limit(void);
void mrf_maps_fini(struct mrf_maps *maps);
/* The mapping that has this byte, or NULL. */
const struct mrf_mapping *mrf_maps_at(const struct mrf_maps *maps, uint64_t addr);

#endif
