/* SPDX-License-Identifier: BSD-2-Clause */
/* Deciding what peers may do, and answering their questions. */
#ifndef MRF_MR_SERVE_H
#define MRF_MR_SERVE_H

#include "hmem/hmem.h"
#include "mr/bind.h"
#include "mr/demand/unpin.h"
#include "mr/seg.h"
#include "mr/space.h"

/* On the wire: never renumber. */
enum mrf_mr_status {
	MRF_MR_OK = 0,
	MRF_MR_UNKNOWN = 1,   /* never seen here */
	MRF_MR_CLOSED = 2,    /* was here and was closed */
	MRF_MR_DISABLED = 3,  /* is here, but not enabled (yet) */
	MRF_MR_NOT_BOUND = 4, /* FI_MR_ENDPOINT: not bound to the endpoint asked */
	/* These are about the range that was asked for, not about the region. */
	MRF_MR_OUTSIDE = 5,	  /* not wholly inside the region */
	MRF_MR_NOT_REFRESHED = 6, /* FI_MR_MMU_NOTIFY: no refresh has covered it yet */
	MRF_MR_NOT_MAPPED = 7,	  /* no memory there, or not writable but has to be */
	MRF_MR_NO_ROOM = 8,	  /* cannot pin: memlock, regions, memory, descriptors */
	MRF_MR_NO_RIGHT = 9	  /* not on the wire: replies have MRF_REPLY_RIGHT */
};

/* A peer's question: may it access [addr, addr + len) of the region behind key? */
struct mrf_mr_query {
	uint64_t key;
	uint64_t serial; /* the registration that is meant; 0: any that has the key */
	uint64_t addr;	 /* as peers see it: offset, or address with FI_MR_VIRT_ADDR */
	uint64_t len;	 /* bytes; 0: only the rest of the answer matters */
	const struct mrf_mr_port *port; /* of the endpoint that was asked; NULL: of any */
	bool lease;			/* prefer leased pins: the memory changes all the time */
};

struct mrf_mr_view {
	enum mrf_mr_status status;
	/*
	 * True: the segments are the whole region and do not change; everything outside
	 * them is out of bounds. False: they are the pinned parts of the range that was
	 * asked for, sorted and without overlap; ask (again) for bytes that they do not
	 * cover.
	 */
	bool complete;
	bool once; /* valid for accesses that began before the question, until the lease ends */
	/*
	 * The region has memory of devices, which only mrf_mr_stage_begin reaches; its segments
	 * have no keys.
	 */
	bool staged;
	uint64_t serial;
	uint32_t event;	 /* number for writes to the region; 0: they are not counted */
	uint64_t access; /* FI_REMOTE_*; FI_ATOMIC: REMOTE_WRITE implies atomics */
	uint64_t base;	 /* address of the first segment */
	uint64_t len;	 /* bytes in all */
	unsigned nseg;	 /* if complete, at least 1: no bytes are one empty segment */
	/*
	 * addr is as peers see it: a packed offset, or the address with FI_MR_VIRT_ADDR.
	 */
	struct mrf_mr_seg seg[MRF_MR_IOV_LIMIT];
};

struct mrf_mr;
struct mrf_mr_face;

/*
 * May the peer do this? The only place that decides it, for questions, commits and
 * events, in this order: is there a region (mr not NULL) in this peer's group; is it the
 * registration that is meant; does its state let peers in; is it reachable for the port's
 * class (*face: the face, or NULL); does it grant the right (FI_REMOTE_*; 0: the peer
 * wants to learn the rights); and, with a right, are the bytes inside? Pure. If there is a
 * region, its space->lock is held.
 */
enum mrf_mr_status mrf_mr_may_locked(const struct mrf_mr *mr, const struct mrf_mr_query *query,
				     uint64_t right, const struct mrf_mr_face **face);

/*
 * Answers a peer: view->status says what is wrong, if anything is. Pins the range that
 * was asked for if the region is pinned on demand; pins for this access only go into
 * lease. Agent thread; may take as long as the kernel takes to pin.
 */
void mrf_mr_reach(struct mrf_mr_space *space, const struct mrf_mr_query *query,
		  struct mrf_mr_lease *lease, struct mrf_mr_view *view);

/*
 * Where the bytes are that somebody works on: makes them persistent, or copies them from or to
 * memory of a device. Their region is held until mrf_mr_hold_end, so that fi_close waits.
 */
struct mrf_mr_hold {
	struct mrf_mr *mr;
	unsigned n, at; /* ranges, and the first that is not done yet */
	bool storing;	/* bytes of a device have been stored, or may have been */
	struct {
		uint64_t addr, len;
	} range[MRF_MR_IOV_LIMIT];
};

/*
 * Finds where these bytes (len > 0) are. A status other than OK is about the region or the
 * range, as in a view, or NO_RIGHT: no peer may write there. With OK the region is held
 * until mrf_mr_hold_end.
 */
enum mrf_mr_status mrf_mr_commit_begin(struct mrf_mr_space *space, const struct mrf_mr_query *query,
				       struct mrf_mr_hold *hold);
/*
 * Are the bytes persistent memory? 0, FI_EOPNOTSUPP (registered without FI_RMA_PMEM), or
 * another reason (FI_E*).
 */
int mrf_mr_commit_check(const struct mrf_mr_hold *hold);
/*
 * Makes a part of the bytes persistent. True: call it again. False: *err is set, as by
 * mrf_mr_commit_check; FI_ECANCELED: the region is being closed. Any thread, no lock held;
 * takes as long as the storage takes.
 */
bool mrf_mr_commit_flush(struct mrf_mr_hold *hold, int *err);
/* Harmless if it holds nothing: mr is NULL. */
void mrf_mr_hold_end(struct mrf_mr_hold *hold);

/*
 * As mrf_mr_commit_begin, for bytes of a region with memory of devices that are to be read or
 * written (right: FI_REMOTE_READ or FI_REMOTE_WRITE). Ends with mrf_mr_hold_end. *event: number
 * of the region, or 0.
 */
enum mrf_mr_status mrf_mr_stage_begin(struct mrf_mr_space *space, const struct mrf_mr_query *query,
				      uint64_t right, struct mrf_mr_hold *hold, uint32_t *event);
/*
 * Copies the next part of the bytes from the region, or with `in` to it, and moves *host on by
 * as much. True: call it again. False: *err is 0, FI_ECANCELED (the region is being closed, and
 * nothing was stored), FI_EFAULT (its memory was freed) or FI_EIO; *why has the runtime's words.
 * Storing that has begun goes on when the region is being closed, because a peer that is told of
 * it must not think that nothing was done. Any thread, no lock held.
 */
bool mrf_mr_stage_copy(struct mrf_mr_hold *hold, bool in, uint8_t **host, int *err,
		       struct mrf_hmem_why *why);

#endif
