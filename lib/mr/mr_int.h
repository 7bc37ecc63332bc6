/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/mr: the body of a region, and what its files do for each other.
 */
#ifndef MRF_MR_MR_INT_H
#define MRF_MR_MR_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include "mr/mr.h"

#define MRF_MR_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

/*
 * One allocation a region: the segments, and after them one struct mrf_vmr each. All
 * fields are written before the region is published and never change while it is; from
 * then on until fi_close the agent reads them under space->lock, through the key.
 */
struct mrf_mr {
	struct fid_mr fid;
	struct mrf_mr_space *space;
	struct mrf_hold parent; /* in space->regions; guarded by space->lock */
	uint64_t access;	/* FI_* rights, without what was only tolerated */
	uint64_t len;		/* bytes in all */
	unsigned nseg;		/* at least 1: no bytes at all are one empty segment */
	bool keyed;		/* fid.key is in space->keys; guarded by space->lock */
	struct mrf_mr_seg seg[];
};

static inline struct mrf_vmr *mrf_mr_vmr(struct mrf_mr *mr)
{
	return (struct mrf_vmr *)(mr->seg + mr->nseg);
}

/* "0x7f0000001000, 4096 bytes, key 0x7", for messages. */
void mrf_mr_describe(const struct fid *fid, char *buf, size_t len);

/* --- mr_ops: the fid's operations besides close ----------------------------------- */

int mrf_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int mrf_mr_control(struct fid *fid, int command, void *arg);

/* --- mr_attr: arguments ----------------------------------------------------------- */

/* What is left of an attribute structure that is in order. */
struct mrf_mr_plan {
	uint64_t access;
	uint64_t len;
	unsigned nseg; /* segments with bytes in them; 1 when there are no bytes */
};

/*
 * Everything that can be said about a registration without looking at the memory or the
 * key space. -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOSYS, each with its line.
 */
int mrf_mr_attr_check(uint32_t api_version, const struct fi_mr_attr *attr, uint64_t flags,
		      struct mrf_mr_plan *plan);

/* --- mr_access: rights ------------------------------------------------------------ */

/* Bits of access that are rights, that are merely tolerated, and that are neither. */
uint64_t mrf_mr_access_rights(uint64_t access);
uint64_t mrf_mr_access_tolerated(uint64_t access);
uint64_t mrf_mr_access_unknown(uint64_t access);
/* enum mrf_right bits: exactly what the kernel needs for these FI_* rights. */
unsigned mrf_mr_access_kernel(uint64_t access);
/* Says once per domain that no right was asked for, or capabilities were. */
void mrf_mr_access_warn(struct mrf_mr_space *space, uint64_t access);

/* --- mr_key: the key space; the caller holds space->lock -------------------------- */

/* Who has the key that was asked for: copied under the lock, told after it. */
struct mrf_mr_holder {
	uint64_t addr;
	uint64_t len;
};

/*
 * Enters a region with a remote right under the requested key or one of ours and sets
 * fid.key. -FI_ENOKEY (*holder filled in) or -FI_ENOMEM: nothing changed.
 */
int mrf_mr_key_take(struct mrf_mr *mr, uint64_t requested, struct mrf_mr_holder *holder);
/* Takes it out and remembers it as closed. Harmless without a key. */
void mrf_mr_key_release(struct mrf_mr *mr);

/* --- mr_desc: the descriptor table ------------------------------------------------ */

#define MRF_DESC_INDEX_BITS 24
#define MRF_DESC_GEN_BITS 24
#define MRF_DESC_GEN_MAX ((1u << MRF_DESC_GEN_BITS) - 1)
/* Slots in the first chunk; each next one doubles the table. */
#define MRF_DESC_CHUNK0 256
#define MRF_DESC_CHUNKS (MRF_DESC_INDEX_BITS - 8 + 1)

/*
 * state is generation << 1 | live. The other words change only while the slot is not
 * live, and a generation never comes back (a slot that has used up all of them is
 * retired), so a reader that finds the same live state before and after copying has a
 * whole copy.
 */
struct mrf_desc_slot {
	_Atomic uint32_t state;
	uint32_t next_free; /* guarded by space->lock */
	_Atomic uint64_t access;
	_Atomic uint64_t nseg;
	_Atomic uint64_t segs;
	_Atomic uint64_t addr;
	_Atomic uint64_t len;
	_Atomic uint64_t iova;
	_Atomic uint64_t keys; /* lkey << 32 | rkey */
};

/* Chunks never move and live as long as the table. Writers hold space->lock. */
struct mrf_desc_table {
	uint32_t tag;	     /* never 0: tells tables, and descriptors from pointers */
	uint32_t used;	     /* slots ever handed out */
	uint32_t first_free; /* list through next_free; UINT32_MAX: empty */
	_Atomic(struct mrf_desc_slot *) chunk[MRF_DESC_CHUNKS];
};

struct mrf_desc_table *mrf_desc_table_new(void); /* NULL: no memory */
void mrf_desc_table_free(struct mrf_desc_table *table);
/* Writes *desc on success. -FI_ENOMEM. The caller holds space->lock. */
int mrf_desc_add(struct mrf_desc_table *table, const struct mrf_mr *mr, void **desc);
/* From now on mrf_desc_get refuses it. Harmless on NULL. The caller holds space->lock. */
void mrf_desc_del(struct mrf_desc_table *table, void *desc);

/* --- mr_space --------------------------------------------------------------------- */

/* The caller holds space->lock. */
void mrf_mr_space_remember_closed(struct mrf_mr_space *space, uint64_t key);

/* --- mr_why: saying why the kernel refused ---------------------------------------- */

/* Logs why pinning [addr, addr + len) failed with err (-FI_E*) and returns err. Slow. */
int mrf_mr_why(const struct mrf_mr_space *space, const void *addr, size_t len,
	       unsigned rights, int err);

#endif
