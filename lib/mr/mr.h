/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: the heart of the library, fi_mr(3). A region is one fid_mr and its
 * kernel MRs, with exactly the rights asked for, gone before fi_close returns: one per
 * segment, pinned when it is registered or enabled, or, when the memory need not be there
 * yet, as many as peers have reached so far (mr/demand/back.h).
 *
 * mr/ never sees a domain or an endpoint, only a struct mrf_mr_space that the domain
 * lends: mode, limits, key space, descriptor table, protection domain. So all of it is
 * tested without a peer and without a kernel.
 *
 * Locks: space->lock (rank MR) guards keys, descriptors, bindings and the memory of closed
 * keys; the monitor's lock (rank PIN) guards what is pinned on demand.
 * Regions belong to the application until fi_close. Their memory is kept for the next
 * ones until the space goes, so that closing one twice is found out.
 */
#ifndef MRF_MR_MR_H
#define MRF_MR_MR_H

#include <stdatomic.h>
#include <rdma/fi_domain.h>
#include "base/idmap.h"
#include "base/list.h"
#include "base/lock.h"
#include "obj/obj.h"
#include "verbs/verbs.h"

#define MRF_MR_IOV_LIMIT 16 /* segments of one region (mr_iov_limit) */
#define MRF_MR_CLOSED_KEYS 1024 /* closed keys that the space remembers, for messages */

struct mrf_mr_closed {
	uint64_t key;
	uint64_t seq; /* 0: free slot; otherwise the ordinal number of the close */
	uint64_t group; /* whom it is no secret to: struct mrf_mr_group.id, or 0 */
};

struct mrf_mr_space {
	struct mrf_obj *obj;	   /* the domain */
	struct fid_domain *domain; /* for fi_mr's that ask */
	struct mrf_vdev *vdev;
	struct mrf_vpd *pd;
	struct mrf_auth *auth; /* the authorization key of who says none; NULL: no key */
	uint64_t owner;	      /* obj's: the process that may use all this; base/fork.h */
	uint64_t id;	      /* random, never 0: tells this space's raw keys from others' */
	uint64_t mode;	      /* FI_MR_* in force; BASIC and SCALABLE resolved to bits */
	bool atomics; /* the domain has FI_ATOMIC: remote write implies remote atomics */
	unsigned write_rights; /* enum mrf_right that go with FI_REMOTE_WRITE */
	bool plain; /* regions without flags are pinned and enabled from the start */
	uint32_t api_version; /* what the application asked for in fi_getinfo */
	size_t max_mr;	      /* the device's limit, for messages; 0: unknown */
	struct mrf_lock lock; /* rank MR */
	/*
	 * Every region's hold on the domain. Apart from obj's, so that registering
	 * takes one lock and not two: regions.holds (struct mrf_mr.held) is guarded by
	 * the lock above, not by its own.
	 */
	struct mrf_obj regions;
	struct mrf_idmap keys;	  /* key -> struct mrf_mr; regions with a remote right */
	struct mrf_mr_pool *pool;     /* regions, open and closed */
	struct mrf_mr_closed *closed; /* ring of the last closed keys */
	uint64_t nclosed;
	uint64_t next_serial; /* of registrations; never 0, never used twice */
	struct mrf_map *map;  /* raw keys of peers that the application mapped: mr/map.h */
	struct mrf_list waiters; /* mr_state's: threads that close; guarded by lock */
	struct mrf_list ports; /* struct mrf_mr_port.node; guarded by lock */
	struct mrf_mr_worker *worker; /* mr_async's; NULL: registration is synchronous */
	struct mrf_list groups; /* struct mrf_mr_group.node: mr/face.h; guarded by lock */
	uint64_t last_group;
	struct mrf_mr_backs *backs; /* of regions pinned on demand; NULL: has none */
	/*
	 * What peers were told of regions that are pinned on demand holds no longer: tell
	 * them. Set by ep/ when the agent starts (NULL before and after), with the
	 * monitor's lock held; called by any thread, the monitor's too, with that lock
	 * held: must not block, allocate, free, or take a lock that others hold while they
	 * do.
	 */
	void (*dropped)(void *arg);
	void *dropped_arg;
	/* Any region that peers may write to counts, if a counter is bound: event.c. */
	bool events_all;
	struct mrf_idmap events; /* number -> struct mrf_mr_event; guarded by lock */
	uint32_t last_event;	 /* number that was given out last */
	/*
	 * Counts all that peers have done so far. Set by ep/ when the agent starts (NULL
	 * before and after), under lock; called by the application's threads with no lock held.
	 */
	void (*settle)(void *arg);
	void *settle_arg;
	uint64_t next_prov_key; /* for provider keys that cannot carry the rkey */
	uint64_t page_mask;	/* page size - 1; immutable */
	atomic_uint warned;	/* once-per-domain warnings already given */
	/* What the domain's fid.mr has to point to: so its calls find the space. Immutable. */
	struct fi_ops_mr ops;
	struct fi_ops *region_ops; /* of every region; immutable */
};

/*
 * obj (initialised), domain, vdev, pd, auth, mode, atomics, api_version, max_mr and events_all
 * are set by the caller, the rest here. -FI_ENOMEM.
 */
int mrf_mr_space_init(struct mrf_mr_space *space);
/* No region may be left. */
void mrf_mr_space_fini(struct mrf_mr_space *space);
/*
 * From now on regions are registered by a thread, and eq tells when it is done (FI_REG_MR).
 * Once; eq outlives the space. -FI_EOPBADSTATE: there are regions; -FI_ENOMEM; -FI_EAGAIN:
 * no more threads. Not logged.
 */
struct mrf_eq;
int mrf_mr_space_report_to(struct mrf_mr_space *space, struct mrf_eq *eq);
/* As mrf_obj_busy, for the regions that hold the domain. */
int mrf_mr_space_busy(struct mrf_mr_space *space);

/*
 * fi_mr_reg, fi_mr_regv and fi_mr_regattr end here. Checks every argument (errno and one
 * line each), registers, reserves the key, writes *mr on success only.
 */
int mrf_mr_register(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		    uint64_t flags, struct fid_mr **mr);

/* fi_mr_map_raw and fi_mr_unmap_key, each with a line for every error. In rawkey.c. */
int mrf_mr_map_raw(struct mrf_mr_space *space, const struct fi_mr_map_raw *attr);
int mrf_mr_unmap_key(struct mrf_mr_space *space, const uint64_t *key);
/* -FI_EBUSY after one line while keys are mapped. */
int mrf_mr_space_mapped(struct mrf_mr_space *space);

/* --- endpoints that regions can be bound to (FI_MR_ENDPOINT) ----------------------- */

struct mrf_mr_class;
struct mrf_mr_group;

/*
 * Inside every endpoint of the domain. All fields are lib/mr's; lists are guarded by
 * space->lock, the rest is immutable while it is open.
 */
struct mrf_mr_port {
	struct mrf_list node;  /* in space->ports */
	struct mrf_list bonds; /* of regions that are bound to it */
	struct mrf_obj *ep;
	struct mrf_mr_group *group; /* those with the same key; NULL: with the domain's */
	struct mrf_mr_class *class; /* in which its peers meet regions: mr/face.h */
	/* Counts what peers write through it to any region; NULL: none. Guarded by space->lock. */
	struct mrf_cntr *writes;
};

/*
 * ep (initialised) can be bound to from now on. key: its authorization key of size bytes;
 * 0: the domain's. -FI_ENOMEM, or the kernel's if it has no protection domain left;
 * nothing is logged then.
 */
int mrf_mr_port_open(struct mrf_mr_space *space, struct mrf_mr_port *port,
		     struct mrf_obj *ep, const void *key, size_t size);
/* The key that its peers have to have; NULL: none. The port's. */
const struct mrf_auth *mrf_mr_port_auth(const struct mrf_mr_space *space,
					const struct mrf_mr_port *port);
/* What the queue pairs that serve its peers have to be in. */
struct mrf_vpd *mrf_mr_port_pd(const struct mrf_mr_space *space,
			       const struct mrf_mr_port *port);
/*
 * Before the endpoint goes: unbinds all regions from it; the kernel lets its peers through
 * to none. -FI_EBUSY, from API version 2.3 on: they have to be closed first (logged, with
 * the name of one); nothing changed.
 */
int mrf_mr_port_close(struct mrf_mr_space *space, struct mrf_mr_port *port);
/* After that, and when those queue pairs are gone. Before the endpoint is freed. */
void mrf_mr_port_free(struct mrf_mr_port *port);

/* --- keys as peers see them: the initiator needs these, too ----------------------- */

/*
 * A provider key of a region with one segment carries what a peer needs, so that no
 * question is asked:
 *   FI_MR_VIRT_ADDR:  the plain rkey (< 2^32), usable by any verbs program
 *   0-based:          01 in bits 63..62, in-page offset in bits 47..32, rkey
 * Any other provider key has 10 in bits 63..62 and is resolved by asking: that of several
 * segments, and every one where rkeys come and go (memory not pinned for good, regions
 * that are enabled later).
 */
struct mrf_key_direct {
	uint32_t rkey;
	uint64_t iova_base; /* add to the peer's address: in-page offset or 0 */
};

#define MRF_KEY_DIRECT (1ull << 62)  /* carries in-page offset and rkey */
#define MRF_KEY_COUNTER (2ull << 62) /* says nothing: the target has to be asked */
#define MRF_KEY_OFFSET_SHIFT 32
#define MRF_KEY_OFFSET_MASK (0xffffull << MRF_KEY_OFFSET_SHIFT)

uint64_t mrf_key_pack(uint64_t mode, uint32_t rkey, uint64_t page_offset);

/* What keys look like that carry it, in the domains of one mr_mode. */
struct mrf_key_form {
	uint64_t fixed;	 /* the bits that are the same in all of them ... */
	uint64_t want;	 /* ... and what they are; beside them: there is no such key */
	uint64_t offset; /* the bits of the offset */
};

static inline struct mrf_key_form mrf_key_form(uint64_t target_mode)
{
	bool virt = target_mode & FI_MR_VIRT_ADDR;
	uint64_t offset = virt ? 0 : MRF_KEY_OFFSET_MASK;

	/* Where raw keys are required, no other will do. */
	if ((target_mode & (FI_MR_PROV_KEY | FI_MR_RAW)) != FI_MR_PROV_KEY)
		return (struct mrf_key_form){ .want = 1 };
	return (struct mrf_key_form){ .fixed = ~(offset | UINT32_MAX),
				      .want = virt ? 0 : MRF_KEY_DIRECT,
				      .offset = offset };
}

/* False: ask the target. Inline for the sake of 8-byte accesses. */
static inline bool mrf_key_take(const struct mrf_key_form *form, uint64_t key,
				struct mrf_key_direct *direct)
{
	if ((key & form->fixed) != form->want || !(uint32_t)key)
		return false;
	direct->rkey = (uint32_t)key;
	direct->iova_base = (key & form->offset) >> MRF_KEY_OFFSET_SHIFT;
	return true;
}

/* The same; target_mode: mr_mode of the domain that made the key. */
static inline bool mrf_key_unpack(uint64_t target_mode, uint64_t key,
				  struct mrf_key_direct *direct)
{
	struct mrf_key_form form = mrf_key_form(target_mode);

	return mrf_key_take(&form, key, direct);
}

/* --- the target's side: what the agent answers ------------------------------------ */

struct mrf_mr_seg {
	uint64_t addr; /* where the application thinks it is: address in this process */
	uint64_t len;  /* bytes */
	uint64_t iova; /* what the kernel calls its first byte */
	uint32_t rkey;
	uint32_t lkey;
};

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
	MRF_MR_NO_ROOM = 8	  /* cannot be pinned: memlock, regions, memory, descriptors */
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

/* Pins for single accesses, where nobody tells of changes; see mr/demand/back.h. */
struct mrf_mr_lease {
	struct mrf_list pins;
	unsigned npins; /* at most MRF_MR_LEASE_PINS: a peer may not use up all regions */
};

#define MRF_MR_LEASE_PINS 65536

void mrf_mr_lease_init(struct mrf_mr_lease *lease);
/*
 * Unpins; what was answered with once is void. The lease may be used again. Not by the
 * monitor's thread; before the space goes.
 */
void mrf_mr_lease_end(struct mrf_mr_lease *lease);

/*
 * Answers a peer: view->status says what is wrong, if anything is. Pins what is asked for
 * where the region is pinned on demand; pins that hold for this access only go into lease.
 * Agent thread; may take as long as the kernel takes to pin.
 */
void mrf_mr_reach(struct mrf_mr_space *space, const struct mrf_mr_ask *ask,
		  struct mrf_mr_lease *lease, struct mrf_mr_view *view);

/*
 * From now on cntr counts what peers write through the endpoint at port, as far as the
 * regions have numbers. It outlives the port. Once.
 */
struct mrf_cntr;
void mrf_mr_port_count(struct mrf_mr_space *space, struct mrf_mr_port *port,
		       struct mrf_cntr *cntr);

/*
 * A peer's operation through the endpoint at port has modified the region that has this
 * number: its counters and the port's count it. Numbers that peers made up count nothing. Agent thread.
 */
void mrf_mr_event(struct mrf_mr_space *space, uint32_t number,
		  const struct mrf_mr_port *port);

/*
 * Is what is behind these bytes (len > 0) persistent memory; flush: and makes it so what was
 * written there. Any status but OK is about the region or the range, as in a view; with OK
 * *err is 0, FI_EOPNOTSUPP (registered without FI_RMA_PMEM), or why not. Agent thread; may
 * take as long as the storage takes.
 */
enum mrf_mr_status mrf_mr_commit(struct mrf_mr_space *space, const struct mrf_mr_ask *ask,
				 bool flush, int *err);

/*
 * Which segment serves the access at addr of at most len bytes: with virt addr is an
 * address inside a segment (the first that contains it), else an offset into the
 * segments packed one after the other. Returns the number of bytes that this segment
 * can serve (<= len) and sets *seg and *offset, or 0 when addr is outside. A len of 0
 * is in bounds up to and including the end: 1 is returned then (never 0 for in bounds).
 * Pure.
 */
uint64_t mrf_mr_locate(const struct mrf_mr_seg *segs, unsigned nseg, bool virt,
		       uint64_t addr, uint64_t len, unsigned *seg, uint64_t *offset);

/* --- local descriptors: fi_mr_desc ------------------------------------------------ */

/*
 * A descriptor is not a pointer but a slot number with a generation: one that is stale,
 * foreign or garbage is recognised without touching memory that may be gone. Slots are
 * copied out without a lock (a sequence number guards them).
 */
struct mrf_desc {
	uint64_t access; /* FI_SEND | FI_RECV | FI_READ | FI_WRITE ... of the region */
	unsigned nseg;
	/* With nseg > 1 all of them, valid while the region is open; else NULL. */
	const struct mrf_mr_seg *segs;
	/* The first segment. lkey 0: not pinned; right and bounds hold, register as needed. */
	struct mrf_mr_seg seg;
};

/* False: not a live descriptor of this space. Lock-free; fast path. Short forms: mr/desc.h. */
bool mrf_desc_get(const struct mrf_mr_space *space, const void *desc,
		  struct mrf_desc *out);

#endif
