/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hammer: two processes whose threads keep changing the mappings under their own
 * registered regions, while each reads and writes the other's.
 *
 * The memory of a side is AREAS areas of CELLS cells of two pages each. A cell has a
 * generation: its owner fills all of it with words that carry cell and generation, and
 * announces the generation when that is done (struct cell, in memory that both processes
 * share). A peer that begins a read after that must find this generation or a later one.
 * What peers write are words with the write's number; a write that was completed while
 * the cell did not change must be found by the owner before its next change.
 *
 * Beside that, lanes send and fetch local buffers that nobody has registered, and whose mappings
 * come and go (hammer_local.c).
 *
 * CI gives it two minutes in all. By hand, for a change of the monitors or of the cache:
 *
 *	for monitor in userfaultfd memhooks disabled; do
 *		FI_MR_CACHE_MONITOR=$monitor hammer --seconds 600
 *	done
 *	hammer --seconds 600
 */
#ifndef FUNC_HAMMER_H
#define FUNC_HAMMER_H

#include <stdatomic.h>
#include "env.h"
#include "far.h"

#define AREAS 2
#define CELLS 48
#define CELL (2 * PAGE)
#define AREA (CELLS * CELL)
#define HOT 6 /* the first cells: half of all that happens is there, so that it meets */
#define WORDS (CELL / 8)

/* Of each area: all of it, without its first and last bytes; and all addresses. */
enum { REGION_AREA, REGION_INNER, REGION_ALL, REGIONS };
#define INNER 104ul

/* Peers write in between only: what is outside has to stay the owner's. */
#define WRITE_LOW 512ul
#define WRITE_HIGH (CELL - 512ul)

/* Local buffers of those who access, and where their bytes go: hammer_local.c. */
#define LANES 2u
#define LOCAL_MAX (64ul << 10)
#define LOCAL_MIN (16ul << 10) /* less is copied, whoever asks */

struct cell {
	atomic_uint seq;      /* odd: its owner is changing it */
	atomic_uint gen;      /* announced; 0: a hole */
	atomic_ullong floor;  /* writes up to this one were done before the last change */
	atomic_ullong done;   /* the last write that was done, whatever happened since */
	atomic_ullong stable; /* the last one during which seq stayed: number << 20 | seq */
};

struct region_key {
	bool there;
	uint64_t start, len; /* addresses */
	uint64_t key, base;
	struct raw raw;
};

/* What one side tells the other. */
struct side_shared {
	atomic_int ready, finished;
	char name[NAME_LEN];
	uint64_t area[AREAS];
	struct region_key region[AREAS][REGIONS];
	char depot_name[NAME_LEN];
	struct region_key depot; /* lane by lane, LOCAL_MAX each */
	struct cell cell[AREAS][CELLS];
	atomic_uint begun, ended; /* changes of its memory, wherever */
	atomic_ullong posted;	  /* writes by the peer into this side, the last number */
};

enum fault {
	STALE,	 /* a read showed what was there before */
	GHOST,	 /* an access to a hole went through */
	LOST,	 /* a write that was done is not there */
	OUTSIDE, /* bytes changed that no access names */
	DENIED,	 /* an access to present memory was refused */
	FAULTS
};

struct counts {
	atomic_ullong reads, writes, refused, cut, changes, locals, fault[FAULTS];
};

struct shared {
	struct side_shared side[2];
	struct counts counts;
	atomic_int stop;
};

struct side {
	struct shared *shared;
	struct side_shared *own, *other;
	struct fab fab;
	int number;
	uint64_t seed;
	bool notify; /* fi_mr_refresh after every change */
	unsigned pace_us;
	struct fid_mr *mr[AREAS][REGIONS];
};

/* The words. */
#define OWNER_WORD(gen, area, cell) \
	(0xaull << 60 | (uint64_t)(gen) << 16 | (uint64_t)(area) << 8 | (uint64_t)(cell))
#define PEER_WORD(number) (0xbull << 60 | (uint64_t)(number))
#define IS_OWNER(word) ((word) >> 60 == 0xa)
#define IS_PEER(word) ((word) >> 60 == 0xb)
#define GEN(word) ((unsigned)((word) >> 16))
#define PLACE(word) ((unsigned)(word)&0xffff)
#define NUMBER(word) ((word) & ((1ull << 60) - 1))

/* A cell for something that takes n of them. */
unsigned hammer_cell(uint64_t *state, unsigned n);
/* Where write number goes in its cell. */
void hammer_window(uint64_t number, size_t *low, size_t *high);
/* Counts it, and says what for the first few. */
void hammer_fault(struct side *s, enum fault fault, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Does userfaultfd watch memory, so that what is watched in part cannot always be moved? */
bool hammer_watched(void);
void hammer_own(struct side *s); /* maps and registers */
void hammer_disown(struct side *s);
/* Threads: until stop. */
struct owner {
	struct side *side;
	unsigned area;
};
void *hammer_change(void *owner);
void hammer_access(struct side *s);

/*
 * False: in this mode nothing is local without a descriptor. Otherwise lanes may run, each with
 * the number owner.area, until stop; none does any more when the depot is closed.
 */
bool hammer_depot_open(struct side *s, const struct mode *mode);
void hammer_depot_close(void);
void *hammer_lane(void *owner);

#endif
