/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers may do: the questions that the agent answers. */
#ifndef MRF_MR_SERVE_H
#define MRF_MR_SERVE_H

#include "mr/bind.h"
#include "mr/demand/unpin.h"
#include "mr/seg.h"
#include "mr/space.h"

/* On the wire: never renumber. */
enum mrf_mr_status {
	MRF_MR_OK = 0,
	MRF_MR_UNKNOWN = 1,	  /* never seen here */
	MRF_MR_CLOSED = 2,	  /* was here, was closed */
	MRF_MR_DISABLED = 3,	  /* is here, not enabled (yet) */
	MRF_MR_NOT_BOUND = 4,	  /* FI_MR_ENDPOINT: not bound to the endpoint that asks */
	/* These are about the range that was asked for, not about the region. */
	MRF_MR_OUTSIDE = 5,	  /* not wholly inside the region */
	MRF_MR_NOT_REFRESHED = 6, /* FI_MR_MMU_NOTIFY: no refresh has covered it yet */
	MRF_MR_NOT_MAPPED = 7,	  /* no memory there, or not writable as it would have to be */
	MRF_MR_NO_ROOM = 8,	  /* cannot be pinned: memlock, regions, memory, descriptors */
	MRF_MR_NO_RIGHT = 9	  /* never on the wire: peers know the rights, and look themselves */
};

/* What a peer wants to know: may it access [addr, addr + len) of the region behind key? */
struct mrf_mr_ask {
	uint64_t key;
	uint64_t serial;   /* the registration that is meant; 0: whichever has the key */
	uint64_t addr;	   /* as peers say it: offset, or address with FI_MR_VIRT_ADDR */
	uint64_t len;	   /* bytes; 0: only the rest of the answer matters */
	const struct mrf_mr_port *port; /* the endpoint's that was asked; NULL: of any */
	bool lease;	   /* rather lease than keep: the memory changes all the time */
};

struct mrf_mr_view {
	enum mrf_mr_status status;
	/*
	 * The segments are all there is and stay as they are: what is outside of them is
	 * out of bounds. Else they are what is pinned at the range that was asked for,
	 * sorted and without overlap; for what they do not cover ask (again).
	 */
	bool complete;
	bool once;	 /* good for accesses begun before the question, until the lease ends */
	uint64_t serial;
	uint32_t event;	 /* number for writes to the region; 0: they are not counted */
	uint64_t access; /* what the region grants: FI_REMOTE_*; FI_ATOMIC: that, too, with WRITE */
	uint64_t base;	 /* address of the first segment */
	uint64_t len;	 /* bytes in all */
	unsigned nseg;	 /* complete: at least 1, a region of no bytes has one empty segment */
	/* addr is what peers say: a packed offset, or the address with FI_MR_VIRT_ADDR. */
	struct mrf_mr_seg seg[MRF_MR_IOV_LIMIT];
};

struct mrf_mr;
struct mrf_mr_face;

/*
 * May this peer? The one place where that is decided, for questions, commits and events, in this
 * order: is there a region (NULL: no) for peers of this group, is it the registration that is
 * meant, does its state serve, is it met by those of the port's class (*face: through what, or
 * NULL), has it the rights (FI_REMOTE_*; 0: the peer wants to be told which), and with a right, are
 * the bytes inside. Pure. space->lock held.
 */
enum mrf_mr_status mrf_mr_may(const struct mrf_mr *mr, const struct mrf_mr_ask *ask,
			      uint64_t right, const struct mrf_mr_face **face);

/*
 * Answers a peer: view->status says what is wrong, if anything is. Pins what is asked for
 * where the region is pinned on demand; pins that hold for this access only go into lease.
 * Agent thread; may take as long as the kernel takes to pin.
 */
void mrf_mr_reach(struct mrf_mr_space *space, const struct mrf_mr_ask *ask,
		  struct mrf_mr_lease *lease, struct mrf_mr_view *view);

/*
 * Is what is behind these bytes (len > 0) persistent memory; flush: and makes it so what was
 * written there. Any status but OK is about the region or the range, as in a view; with OK
 * *err is 0, FI_EOPNOTSUPP (registered without FI_RMA_PMEM), FI_EACCES (no peer may write
 * there), or why not. Agent thread; may
 * take as long as the storage takes.
 */
enum mrf_mr_status mrf_mr_commit(struct mrf_mr_space *space, const struct mrf_mr_ask *ask,
				 bool flush, int *err);

#endif
