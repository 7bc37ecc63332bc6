/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/mr: the body of a region, and what its files do for each other.
 */
#ifndef MRF_MR_MR_INT_H
#define MRF_MR_MR_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/compiler.h"
#include "base/iov.h"
#include "mr/mr.h"
#include "mr/state.h"

#define MRF_MR_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MRF_MR_RIGHTS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | MRF_MR_REMOTE)

/*
 * A region lives in its space's pool, at one place until the space goes, so that whoever
 * looks at it too late finds out instead of reading memory that is somebody else's.
 *
 * It is taken from the pool and written under space->lock. From then on until fi_close
 * nothing changes but its state (mr/state.h) and, once, before it is enabled, its kernel
 * regions; the agent reads it under space->lock, through the key.
 *
 * mrf_desc_get reads the second half without a lock. live is the region's descriptor while
 * it is live, else a word that no descriptor equals that leads to this region. The words
 * below it, and nseg, change only while the region is not live, and no descriptor ever comes
 * back (a region that has used up all of its generations is retired), so a reader that finds
 * the descriptor there before and after copying has a whole copy.
 */
struct mrf_mr {
	struct fid_mr fid;	    /* class UNSPEC: closed */
	struct mrf_mr_space *space; /* NULL: never used */
	struct mrf_list held;	    /* in space->regions.holds; guarded by space->lock */
	struct mrf_vmr vmr;	    /* of the only segment; faced: with local rights */
	/*
	 * What fi_mr_raw_attr tells and is not here anyway, made when it is asked for the
	 * first time: then raw_told is space->owner, until the region is no longer enabled.
	 * Written under space->lock, read without.
	 */
	_Atomic uint64_t raw_told;
	uint64_t raw_sum;
	uint64_t raw_bits;
	uint64_t len;		    /* bytes in all */
	uint64_t key;		    /* the real one, which FI_MR_RAW hides from fid.key */
	uint64_t serial;	    /* of this registration, never 0 */
	union {
		struct mrf_mr_back *back; /* NULL: plain, the kernel regions are its own */
		struct mrf_mr *next;	  /* in the pool, while closed */
	};
	struct mrf_mr_job *job;	    /* NULL: was registered synchronously; mr/worker.h */
	struct mrf_list bonds;	    /* struct mrf_mr_bond.mine; guarded by space->lock */
	struct mrf_mr_face *faces;  /* mr/face.h; likewise */
	struct mrf_mr_group *group; /* held; NULL: the default one */
	struct mrf_mr_event *event; /* NULL: writes to it are not counted */
	/* Side by side, so that one look is enough for both; guarded by space->lock. */
	uint32_t state; /* enum mrf_mr_state */
	uint32_t users; /* threads between mrf_mr_enter and mrf_mr_leave */
	bool keyed;	/* key is in space->keys; guarded by space->lock */
	uint16_t nseg;	/* at least 1: no bytes at all are one empty segment */
	uint32_t index; /* in the pool; immutable */
	_Atomic uint64_t live;
	uint64_t access; /* FI_* rights, without what was only tolerated */
	/* &seg; or nseg of them and nseg struct mrf_vmr, allocated. */
	struct mrf_mr_seg *segs;
	struct mrf_mr_seg seg; /* the first segment */
};

/* The number of no process; nor 0, which a forked child may have. */
#define MRF_MR_RAW_UNTOLD UINT64_MAX

/*
 * A descriptor's index is turned into an address for every access: by a shift alone. One that
 * has to be larger is padded to a multiple of 64, which takes one instruction more.
 */
_Static_assert(sizeof(struct mrf_mr) == 256, "a power of two");

static inline struct mrf_vmr *mrf_mr_vmrs(struct mrf_mr *mr)
{
	return mr->nseg == 1 ? &mr->vmr : (struct mrf_vmr *)(mr->segs + mr->nseg);
}

/* The caller holds space->lock. */
static inline void mrf_mr_move(struct mrf_mr *mr, enum mrf_mr_state to)
{
	mrf_mr_move_check(mr->state, to);
	mr->state = to;
	atomic_store_explicit(&mr->raw_told, MRF_MR_RAW_UNTOLD, memory_order_relaxed);
}

/* That a region is bound to an endpoint; allocated; in both lists. */
struct mrf_mr_bond {
	struct mrf_list mine;	/* in mr->bonds */
	struct mrf_list theirs; /* in port->bonds */
	struct mrf_mr *mr;
	struct mrf_mr_port *port;
};

/* "0x7f0000001000, 4096 bytes, key 0x7", for messages. */
void mrf_mr_describe(const struct fid *fid, char *buf, size_t len);
/* The same behind its address: "0x55d0 (0x7f0000001000, 4096 bytes, key 0x7)". */
void mrf_mr_name(const struct mrf_mr *mr, char *buf, size_t len);

/* --- mr_ops: the fid's operations besides close ----------------------------------- */

static inline struct mrf_mr *mrf_mr_from_fid(const struct fid *fid)
{
	return mrf_container_of(fid, struct mrf_mr, fid.fid);
}

/* As mrf_obj_check, for a region. */
static inline int mrf_mr_check(const struct mrf_mr *mr, const char *call)
{
	return mrf_likely(mrf_fork_ours(mr->space->owner)) ?
		       0 :
		       mrf_obj_foreign(&mr->fid.fid, mr->space->owner, call);
}

int mrf_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* fi_mr_raw_attr, in rawkey.c. */
int mrf_mr_raw_attr(struct mrf_mr *mr, struct fi_mr_raw_attr *attr);

/* --- mr_bind: endpoints ----------------------------------------------------------- */

/*
 * -FI_EBUSY: endpoints or counters have to be closed before the region (logged, with the name
 * of one). The caller holds space->lock.
 */
int mrf_mr_bound(struct mrf_mr *mr);
/* Unbinds a region of which nothing else is left from its endpoints. No lock held. */
void mrf_mr_unbind(struct mrf_mr *mr);
/*
 * May it close before what it is bound to (a counter or an endpoint) though its version has
 * the other order? With FI_MRFAB_STRICT=off, after a warning.
 */
bool mrf_mr_lets_go(const struct mrf_mr *mr, const char *bound_to);

/* --- mr_event: counters ------------------------------------------------------------- */

/* Of a region to which peers' writes are counted; allocated; guarded by space->lock. */
struct mrf_mr_event {
	struct mrf_mr *mr;
	uint32_t number; /* in space->events; never 0 */
	struct mrf_list counters; /* struct mrf_mr_meter.mine */
};

/* Gives the region a number; the caller holds space->lock. -FI_ENOMEM. */
int mrf_mr_event_open(struct mrf_mr *mr);
/* Takes it back, if it has one, without a look at counters; likewise. */
void mrf_mr_event_drop(struct mrf_mr *mr);
/* -FI_EBUSY: counters have to be closed before the region (logged); likewise. */
int mrf_mr_event_busy(const struct mrf_mr *mr);
/*
 * The region is being closed, and the kernel lets nobody through any more: counts what was
 * written before, then lets go of the counters. No lock held.
 */
void mrf_mr_event_close(struct mrf_mr *mr);
int mrf_mr_bind_cntr(struct mrf_mr *mr, struct fid *cntr, uint64_t flags);

struct mrf_mr_plan;
struct mrf_mr_pins;

/* --- mr_enable -------------------------------------------------------------------- */

/* The region is not live, so what its descriptor leads to may be written. */
void mrf_mr_put_pins(struct mrf_mr *mr, struct mrf_mr_pins *pins);
/* Shows key and descriptor and lets everybody use the region; space->lock is held. */
void mrf_mr_open_locked(struct mrf_mr *mr);
/* fi_mr_enable and fi_mr_refresh. */
int mrf_mr_enable(struct mrf_mr *mr);
/*
 * Registers with the kernel what the region has there while it is enabled, if it is in this
 * state: pins (none if it is pinned on demand), and faces (mr/face.h), some of them
 * on failure, too. Logs why not. The region was entered; no lock held.
 */
int mrf_mr_make(struct mrf_mr *mr, enum mrf_mr_state state, struct mrf_mr_pins *pins,
		struct mrf_mr_face **faces);
int mrf_mr_refresh(struct mrf_mr *mr, const struct fi_mr_modify *modify);

/* --- mr_attr: arguments ----------------------------------------------------------- */

/* What is left of an attribute structure that is in order. */
struct mrf_mr_plan {
	uint64_t access;
	uint64_t len;
	unsigned nseg; /* segments with bytes in them; 1 when there are no bytes */
	bool deferred; /* created disabled */
	bool at_once;  /* ... but enabled before the call returns */
	bool demand;   /* pinned on demand */
	bool event;    /* writes to it are counted */
	bool pending;  /* made by the worker, see mr/worker.h */
	struct mrf_mr_group *group; /* of its authorization key; NULL: the default one */
};

/*
 * Everything that can be said about a registration without looking at the memory or the
 * key space. -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOSYS, each with its line.
 */
int mrf_mr_attr_check(const struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		      uint64_t flags, struct mrf_mr_plan *plan);

/*
 * True for what nearly every registration is: pinned at once, one segment with bytes, rights
 * and nothing else. mrf_mr_attr_check and mrf_mr_access_warn would find nothing to say about
 * it.
 */
static inline bool mrf_mr_attr_usual(const struct mrf_mr_space *space,
				     const struct fi_mr_attr *attr, uint64_t flags)
{
	const struct iovec *iov = attr->mr_iov;

	return space->plain && !(flags | attr->offset | attr->auth_key_size) && iov &&
	       attr->iov_count == 1 && iov->iov_len && attr->access &&
	       !(attr->access & ~MRF_MR_RIGHTS) &&
	       mrf_range_ok((uintptr_t)iov->iov_base, iov->iov_len);
}

/* --- mr_access: rights ------------------------------------------------------------ */

/* Bits of access that are no rights but let pass, and those that are neither. */
uint64_t mrf_mr_access_tolerated(uint64_t access);
uint64_t mrf_mr_access_unknown(uint64_t access);

/* enum mrf_right bits for which the memory has to be writable. */
#define MRF_RIGHTS_WRITE \
	(MRF_RIGHT_LOCAL_WRITE | MRF_RIGHT_REMOTE_WRITE | MRF_RIGHT_REMOTE_ATOMIC)

/* enum mrf_right bits: exactly what the kernel needs for these FI_* rights. */
static inline unsigned mrf_mr_access_kernel(const struct mrf_mr_space *space,
					    uint64_t access)
{
	unsigned rights = 0;

	/* The device reads for FI_SEND and FI_WRITE, which needs no right at all. */
	if (access & (FI_RECV | FI_READ))
		rights |= MRF_RIGHT_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		rights |= MRF_RIGHT_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		rights |= space->write_rights;
	return rights;
}

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
 * key and fid.key. -FI_ENOKEY (*holder filled in) or -FI_ENOMEM: nothing changed.
 */
int mrf_mr_key_take(struct mrf_mr *mr, uint64_t requested, struct mrf_mr_holder *holder);
/* For one that could not be told its provider key before it is pinned; else harmless. */
int mrf_mr_key_take_own(struct mrf_mr *mr);
/* What fi_mr_key tells: the key, unless it is a raw one. */
static inline void mrf_mr_key_show(struct mrf_mr *mr)
{
	mr->fid.key = mr->space->mode & FI_MR_RAW ? FI_KEY_NOTAVAIL : mr->key;
}
/* Takes it out and remembers it as closed. Harmless without a key. */
void mrf_mr_key_release(struct mrf_mr *mr);

/* --- mr_why: saying why the kernel refused ---------------------------------------- */

/* Logs why pinning [addr, addr + len) failed with err (-FI_E*) and returns err. Slow. */
int mrf_mr_why(const struct mrf_mr_space *space, const void *addr, size_t len,
	       unsigned rights, int err);

#endif
