/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an endpoint knows of a peer's regions, by key: what the peer has answered, or what a
 * raw key says. A good answer is kept until the kernel or the peer contradicts it.
 *
 * Of a region that is pinned for good all ways are known (complete). Of one that is pinned on
 * demand only what has been asked for: a way holds until the peer says FORGET (peer->epoch goes
 * up), or, if it is good once, until the leases are released (peer->lease_epoch), for operations
 * that began before the question. All guarded by ep->lock; remotes belong to their peer.
 */
#ifndef MRF_EP_REMOTE_H
#define MRF_EP_REMOTE_H

#include <stdbool.h>
#include "base/list.h"
#include "mr/mr.h"
#include "proto/proto.h"

struct mrf_peer;
struct mrf_why;

struct mrf_range {
	uint64_t addr; /* as peers say it */
	uint64_t len;
};

/* A piece of the peer's region, and how to reach it. */
struct mrf_way {
	uint64_t addr; /* as peers say it */
	uint64_t len;
	uint64_t iova;
	uint32_t rkey;
	uint64_t once;	/* 0, or: for operations that are not younger than this cookie */
	uint64_t epoch; /* of the peer's epoch or lease_epoch; complete: not looked at */
};

struct mrf_remote {
	uint64_t key;	     /* the application's: plain, or mapped from a raw key */
	uint64_t peer_key;   /* the peer's for it */
	uint64_t serial;     /* the registration that a raw key means; 0: any */
	uint64_t space_id;   /* ... and the key space that it is in */
	struct mrf_list node; /* in peer->to_ask when wanted, in peer->asked when asking */
	bool wanted;	     /* ask (again) as soon as possible */
	bool asking;	     /* a question is on the way */
	uint64_t asked_at;   /* its cookie: the endpoint's clock when it was asked */
	struct mrf_range ask; /* what to ask for, or was asked for */
	bool ask_once;	     /* an answer that is good once would be better */

	bool known;	     /* what follows is an answer */
	bool complete;
	bool once;	     /* the last ways were */
	uint64_t cookie;     /* of the question that was answered; 0: a raw key says so */
	struct mrf_range answered; /* what status is about, unless it is about the region */
	uint32_t status;     /* enum mrf_mr_status */
	uint64_t instance;   /* serial of the registration that answered */
	uint64_t access;
	uint32_t event;	     /* goes with the last bytes of a write; 0: nothing does */
	uint64_t base;
	uint64_t len;
	unsigned nways;	     /* sorted and apart unless complete */
	unsigned max;	     /* room in ways */
	struct mrf_way *ways; /* &one, or allocated */
	struct mrf_way one;
};

/* NULL: nothing is known, and nothing was asked. */
struct mrf_remote *mrf_remote_find(const struct mrf_peer *peer, uint64_t key);
/*
 * The same, made when needed, with what a raw key tells. NULL: the key cannot be used, why
 * says so: the peer wants raw keys, the raw key is another peer's or unmapped, no memory.
 */
struct mrf_remote *mrf_remote_get(struct mrf_peer *peer, uint64_t key, struct mrf_why *why);
void mrf_remote_drop(struct mrf_remote *remote);
/* Takes in an answer. -FI_ENOMEM: nothing is known now. */
int mrf_remote_learn(struct mrf_peer *peer, struct mrf_remote *remote,
		     const struct mrf_answer *answer);
/*
 * How many bytes from addr on, at most len, one work request can reach, and where, for an
 * operation with this stamp (UINT64_MAX: for any, so nothing that is good once); 0: none that
 * is known. A len of 0 gives 1 when addr is in bounds.
 */
uint64_t mrf_remote_locate(const struct mrf_peer *peer, const struct mrf_remote *remote,
			   uint64_t stamp, uint64_t addr, uint64_t len, uint32_t *rkey,
			   uint64_t *remote_addr);
/* How many bytes from addr on are known, over however many ways. */
uint64_t mrf_remote_covered(const struct mrf_peer *peer, const struct mrf_remote *remote,
			    uint64_t stamp, uint64_t addr, uint64_t len);
extern unsigned mrf_remote_max_ways; /* of one region; tests lower it */
/* Might another answer be too much to remember? Then the ways that are known are dropped. */
bool mrf_remote_is_full(const struct mrf_remote *remote);
/* Over how many ways these bytes go, all of which are covered. Of a region that is not complete. */
unsigned mrf_remote_ways(const struct mrf_remote *remote, uint64_t addr, uint64_t len);
void mrf_remote_forget_all(struct mrf_peer *peer);
void mrf_remote_fini(struct mrf_peer *peer);

#endif
