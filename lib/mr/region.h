/* SPDX-License-Identifier: BSD-2-Clause */
/* The structure of a region, which only lib/mr looks into, and its name in messages. */
#ifndef MRF_MR_REGION_H
#define MRF_MR_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "mr/ledger.h"
#include "mr/seg.h"
#include "mr/space.h"
#include "mr/region_state.h"

#define MRF_MR_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MRF_MR_RIGHTS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | MRF_MR_REMOTE)

/*
 * A region stays at one place in its space's pool until the space goes, so that a late
 * access to it is detected and does not read foreign memory.
 *
 * It is taken from the pool and written under space->lock. From then on until fi_close
 * only its state (mr/region_state.h) changes and, once, before it is enabled, its kernel
 * regions; the agent finds it by its key and reads it under space->lock.
 *
 * mrf_desc_get reads the second half without a lock. While the region is live, the field
 * live is its descriptor; otherwise it differs from every descriptor that leads to this
 * region. The words below it, and nseg, change only while the region is not live, and no
 * descriptor is ever used again (a region that has used up all of its generations is
 * retired). So a reader that finds the descriptor in live both before and after copying
 * has a consistent copy.
 */
struct mrf_mr {
	struct fid_mr fid;	    /* class UNSPEC: closed */
	struct mrf_mr_space *space; /* NULL: never used */
	struct mrf_list held;	    /* in space->regions.holds; guarded by space->lock */
	struct mrf_vmr vmr;	    /* of the only segment; if faced, only local rights */
	/*
	 * The bytes of a raw key of MRF_RAWKEY_ONE_LEN that fi_mr_raw_attr made: this
	 * registration's, if they have its serial. NULL: it never did. Freed with the
	 * pool; guarded by space->lock.
	 */
	uint8_t *raw;
	struct mrf_mr_device *device;	/* NULL: memory of the host; mr/device.h */
	struct mrf_ledger_entry *entry; /* its own; immutable; mr/ledger.h */
	uint64_t len;			/* bytes in all */
	uint64_t key;			/* the real one, which FI_MR_RAW hides from fid.key */
	uint64_t serial;		/* of this registration, never 0 */
	union {
		struct mrf_mr_back *back; /* NULL: not pinned on demand */
		struct mrf_mr *next;	  /* in the pool, while closed */
	};
	struct mrf_mr_task *job;    /* NULL: was registered synchronously; mr/worker.h */
	struct mrf_list bindings;   /* struct mrf_mr_binding.mine; guarded by space->lock */
	struct mrf_mr_face *faces;  /* mr/face.h; guarded by space->lock */
	struct mrf_mr_group *group; /* held; NULL: the default one */
	struct mrf_mr_event *event; /* NULL: writes to it are not counted */
	/* Adjacent, so that one load reads both; guarded by space->lock. */
	uint32_t state; /* enum mrf_mr_state */
	uint32_t users; /* threads between mrf_mr_enter and mrf_mr_leave */
	bool keyed;	/* key is in space->keys; guarded by space->lock */
	uint16_t nseg;	/* at least 1: a region of no bytes has one empty segment */
	uint32_t index; /* in the pool; immutable */
	_Atomic uint64_t live;
	uint64_t access; /* FI_* rights, without bits that were only tolerated */
	/* &seg; or nseg segments followed by nseg struct mrf_vmr, allocated. */
	struct mrf_mr_seg *segs;
	struct mrf_mr_seg seg; /* the first segment */
};

/*
 * Every access turns a descriptor's index into an address; with this size, a shift is
 * enough. A larger structure would be padded to a multiple of 64, which takes one more
 * instruction.
 */
_Static_assert(sizeof(struct mrf_mr) == 256, "a power of two");

static inline struct mrf_vmr *mrf_mr_vmrs(struct mrf_mr *mr)
{
	return mr->nseg == 1 ? &mr->vmr : (struct mrf_vmr *)(mr->segs + mr->nseg);
}

/* Moves the region to another state; space->lock is held. */
static inline void mrf_mr_move_locked(struct mrf_mr *mr, enum mrf_mr_state to)
{
	mrf_lock_held(&mr->space->lock);
	mrf_mr_move_check(mr->state, to);
	mr->state = to;
}

/* "0x7f0000001000, 4096 bytes, key 0x7", for messages. */
void mrf_mr_describe(const struct fid *fid, char *buf, size_t len);
/*
 * As mrf_mr_describe, preceded by the region's address: "0x55d0 (0x7f0000001000, 4096
 * bytes, key 0x7)".
 */
void mrf_mr_name(const struct mrf_mr *mr, char *buf, size_t len);

static inline struct mrf_mr *mrf_mr_from_fid(const struct fid *fid)
{
	return mrf_container_of(fid, struct mrf_mr, fid.fid);
}

/* As mrf_obj_check, for a region. */
static inline int mrf_mr_check(const struct mrf_mr *mr, const char *call)
{
	return mrf_likely(mrf_fork_ours(mr->space->owner))
		       ? 0
		       : mrf_obj_foreign(&mr->fid.fid, mr->space->owner, call);
}

/*
 * Makes fi_mr_key return the key, unless the mode requires raw keys; space->lock is held.
 */
static inline void mrf_mr_key_show_locked(struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	mr->fid.key = mr->space->mode & FI_MR_RAW ? FI_KEY_NOTAVAIL : mr->key;
}

/*
 * May the region be closed before the counter or endpoint that it is bound to, though its
 * API version demands the other order? Only with FI_MRFAB_STRICT=off, after a warning.
 */
bool mrf_mr_lets_go(const struct mrf_mr *mr, const char *bound_to);

#endif
