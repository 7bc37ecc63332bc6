/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of a domain that lib/mr uses: mode, limits, key space, descriptors, protection
 * domain.
 */
#ifndef MRF_MR_SPACE_H
#define MRF_MR_SPACE_H

#include <stdatomic.h>
#include <rdma/fi_domain.h>
#include "base/idmap.h"
#include "base/list.h"
#include "base/lock.h"
#include "contract/profile.h"
#include "mr/ledger.h"
#include "obj/obj.h"
#include "verbs/verbs.h"

#define MRF_MR_CLOSED_KEYS 1024 /* closed keys that the space remembers, for messages */

struct mrf_mr_closed {
	uint64_t key;
	uint64_t seq;	/* 0: free slot; otherwise the ordinal number of the close */
	uint64_t group; /* the group that may learn of it: struct mrf_mr_group.id, or 0 */
};

/* What a domain is warned of once. */
enum mrf_mr_warned {
	MRF_WARNED_NO_RIGHT = 1 << 0,
	MRF_WARNED_CAPS = 1 << 1,
	MRF_WARNED_UNWRITTEN = 1 << 2,
	MRF_WARNED_UNCOUNTED = 1 << 3,
	MRF_WARNED_NULL = 1 << 4,
	MRF_WARNED_LONG_KEY = 1 << 5,
	MRF_WARNED_REUSED = 1 << 6,
	MRF_WARNED_LAX = 1 << 7,
};

struct mrf_fault_plan;

struct mrf_mr_space {
	struct mrf_obj *obj; /* the domain */
	struct mrf_vdev *vdev;
	struct mrf_vpd *pd;
	struct mrf_auth *auth; /* the default authorization key; NULL: no key */
	uint64_t owner;	       /* from obj: the process that may use it; base/fork.h */
	uint64_t id;	       /* random, never 0; marks the raw keys of this space */
	uint64_t mode;	       /* FI_MR_* in force; BASIC and SCALABLE resolved to bits */
	const struct mrf_profile *profile; /* whose contract is in force; NULL: the usual one */
	unsigned lax;			   /* enum mrf_profile_lax: what of it is accepted */
	bool atomics;	       /* the domain has FI_ATOMIC: remote write implies remote atomics */
	unsigned write_rights; /* enum mrf_right bits that FI_REMOTE_WRITE implies */
	bool plain;	       /* regions without flags are pinned and enabled from the start */
	uint32_t api_version;  /* the version requested in fi_getinfo */
	size_t max_mr;	       /* the device's limit, for messages; 0: unknown */
	struct mrf_lock lock;  /* rank MR */
	/*
	 * The holds of all regions on the domain. Separate from obj's, so that
	 * registering takes one lock instead of two: regions.holds (struct mrf_mr.held)
	 * is guarded by the lock above, not by its own lock.
	 */
	struct mrf_obj regions;
	struct mrf_idmap keys;	      /* key -> struct mrf_mr; regions with a remote right */
	struct mrf_mr_pool *pool;     /* regions, open and closed */
	struct mrf_ledger ledger;     /* what other processes can see of them */
	struct mrf_mr_closed *closed; /* ring of the last closed keys */
	uint64_t nclosed;
	uint64_t next_serial;	      /* of registrations; never 0, never used twice */
	struct mrf_map *map;	      /* raw keys that the application mapped: mr/map.h */
	struct mrf_list waiters;      /* threads in fi_close, for state.c; guarded by lock */
	struct mrf_list ports;	      /* struct mrf_mr_port.node; guarded by lock */
	struct mrf_mr_worker *worker; /* worker.c; NULL: registration is synchronous */
	struct mrf_list groups;	      /* struct mrf_mr_group.node: mr/face.h; guarded by lock */
	uint64_t last_group;
	struct mrf_mr_backs *backs; /* what is pinned and kept while it does not change */
	/*
	 * Called when answers given to peers about regions pinned on demand are no longer
	 * valid, so that the peers are told. Set by ep/ when the agent starts (NULL
	 * before and after), with the monitor's lock held; called by any thread,
	 * including the monitor's, with that lock held: it must not block, allocate,
	 * free, or take a lock that another thread holds while it does so.
	 */
	void (*dropped)(void *arg);
	void *dropped_arg;
	struct mrf_fault_plan *faults; /* NULL: none; the domain's */
	/* FI_MRFAB_STRICT=warn: what other providers do not take is said; immutable. */
	bool careful;
	bool has_events; /* the domain was opened with FI_RMA_EVENT; immutable */
	/*
	 * Every region that peers may write to counts writes, if a counter is bound:
	 * event.c. Immutable.
	 */
	bool events_all;
	struct mrf_idmap events; /* number -> struct mrf_mr_event; guarded by lock */
	uint32_t last_event;	 /* the last number that was given out */
	/*
	 * Counts everything that peers have done so far. Set by ep/ when the agent starts
	 * (NULL before and after), under lock; called by the application's threads with
	 * no lock held.
	 */
	void (*settle)(void *arg);
	void *settle_arg;
	uint64_t next_prov_key; /* for provider keys that cannot carry the rkey */
	uint64_t page_mask;	/* page size - 1; immutable */
	atomic_uint warned;	/* enum mrf_mr_warned: those already given */
	/*
	 * The domain's fid.mr points here, so that its calls find the space. Immutable.
	 */
	struct fi_ops_mr ops;
	struct fi_ops *region_ops; /* the table of every region; immutable */
};

/*
 * obj (initialised), vdev, pd, auth, mode, profile, lax, faults, atomics, api_version, max_mr and
 * has_events are set by the caller, and all other fields are 0. -FI_ENOMEM;
 * -FI_EIO and errno: there are no random bytes.
 */
int mrf_mr_space_init(struct mrf_mr_space *space);
/* Has the domain not been warned of this yet? True once. Thread-safe. */
static inline bool mrf_mr_space_first(struct mrf_mr_space *space, enum mrf_mr_warned which)
{
	return !(atomic_fetch_or(&space->warned, which) & which);
}

/* No region may be left. */
void mrf_mr_space_fini(struct mrf_mr_space *space);

/* As mrf_obj_busy, for the regions that hold the domain. */
int mrf_mr_space_busy(struct mrf_mr_space *space);

#endif
