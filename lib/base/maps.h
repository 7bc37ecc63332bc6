/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mappings of this process, from /proc/self/maps. The result is out of date as soon as it
 * is read: it shows what is worth trying, and then the kernel decides.
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
 * Opens /proc/self/maps for this thread, which should close it soon; NULL and errno on
 * failure. If the file cannot be opened, the kept descriptor is used, by one thread at a
 * time.
 */
FILE *mrf_maps_open(void);
/* Reads the next mapping, in order of address. False: there are no more. */
bool mrf_maps_next(FILE *maps, struct mrf_mapping *mapping);

/*
 * Keeps a descriptor of /proc/self/maps for the process, so that the file can be read
 * even when no other descriptor is left or /proc is gone; failing to open it is not an
 * error. Calls of keep and let_go are counted. A forked child starts with none.
 */
void mrf_maps_keep(void);
void mrf_maps_let_go(void);

/*
 * Asks the kernel (from Linux 6.11 on) for the mapping that has addr, or the next one above it,
 * through the descriptor that is kept. -ENOSYS: it cannot be asked; -ENOENT: there is none; or
 * another error.
 */
int mrf_maps_query(uint64_t addr, struct mrf_mapping *mapping);

/*
 * May memory of this mapping be pinned, for reading, or with write for writing as well?
 * Queues of RDMA devices may not, though the kernel would pin them: a peer that can write
 * to one makes a library read anything the peer likes.
 */
bool mrf_maps_pinnable(const struct mrf_mapping *mapping, bool write);
/* Is this private memory and not of a file? Only then can changes to it be detected. */
bool mrf_maps_private(const struct mrf_mapping *mapping);

/* In order of address. All 0: empty. */
struct mrf_maps {
	unsigned count;
	unsigned max;		     /* room */
	struct mrf_mapping *mapping; /* not cut to [start, end) */
};

/*
 * Reads the file as far as end, which takes longer the more mappings there are. Fills maps with
 * exactly the mappings that overlap [start, end). -FI_ENOMEM, or the error of reading
 * /proc/self/maps.
 */
int mrf_maps_look(struct mrf_maps *maps, uint64_t start, uint64_t end);
/* Is there private memory, not of a file, at all of [start, end)? */
bool mrf_maps_all_private(uint64_t start, uint64_t end);
/* How many mappings this process has; 0: unknown. Slow. */
unsigned mrf_maps_count(void);
/* The most mappings that a process may have (vm.max_map_count). */
unsigned mrf_maps_limit(void);
void mrf_maps_fini(struct mrf_maps *maps);
/* The mapping that contains this byte, or NULL. */
const struct mrf_mapping *mrf_maps_at(const struct mrf_maps *maps, uint64_t addr);

#endif
