/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an endpoint knows of a peer's regions, by key, from the peer's answers or from raw
 * keys. A good answer is kept until the kernel or the peer contradicts it.
 *
 * A part is a piece of a region with the rkey that reaches it. All parts of a region that
 * is pinned for good are known (complete). For a region that is pinned on demand, only
 * the parts that have been asked for are known: a part holds until the peer sends FORGET
 * about it (or about all: peer->known.epoch goes up), or, if it is good once, until the leases are released
 * (peer->known.lease_epoch goes up), and then only for operations that began before the
 * question. Everything is guarded by ep->lock; remotes belong to their peer.
 */
#ifndef MRF_EP_RESOLVE_REMOTE_H
#define MRF_EP_RESOLVE_REMOTE_H

#include <stdbool.h>
#include "base/list.h"
#include "proto/proto.h"

struct mrf_peer;
struct mrf_why;

struct mrf_range {
	uint64_t addr; /* offset, or address with FI_MR_VIRT_ADDR */
	uint64_t len;
};

/* A piece of the peer's region, and how to reach it. */
struct mrf_part {
	uint64_t addr; /* as in struct mrf_range */
	uint64_t len;
	uint64_t iova;
	uint32_t rkey;
	uint64_t once;	/* 0, or a cookie: good for operations no younger than it */
	uint64_t epoch; /* peer->known.epoch or lease_epoch; unused if complete */
};

struct mrf_remote {
	uint64_t key;	      /* the application's: plain, or mapped from a raw key */
	uint64_t peer_key;    /* the key that the peer knows it by */
	uint64_t serial;      /* the registration that a raw key stands for; 0: any */
	uint64_t space_id;    /* the key space of that registration */
	struct mrf_list node; /* in peer->known.to_ask if wanted, in peer->known.asked if asking */
	bool wanted;	      /* ask (again) as soon as possible */
	bool asking;	      /* a question is on the way */
	uint64_t asked_at;    /* its cookie: the endpoint's clock when it was asked */
	struct mrf_range ask; /* the range to ask for, or that was asked for */
	bool ask_once;	      /* an answer that is good once would be better */

	bool known; /* the fields below are an answer */
	bool complete;
	bool once;		   /* the latest parts are good once */
	uint64_t cookie;	   /* of the question that was answered; 0: from a raw key */
	struct mrf_range answered; /* status is about this range or the whole region */
	uint32_t status;	   /* enum mrf_mr_status */
	uint64_t found_serial;	   /* of the registration that answered */
	uint64_t access;
	uint64_t quick; /* the rights that the short ways may use: those of access, or 0 */
	bool staged;	/* memory of devices: rkeys and iovas of parts mean nothing */
	uint32_t event; /* number to send with the last bytes of a write; 0: none */
	uint64_t base;
	uint64_t len;
	unsigned nparts; /* unless complete, sorted and not overlapping */
	unsigned max;	 /* room in parts */
	struct mrf_part *parts;
};

/* NULL: nothing is known about the key, and nothing was asked. */
struct mrf_remote *mrf_remote_find_locked(const struct mrf_peer *peer, uint64_t key);
/*
 * As mrf_remote_find_locked, but makes a missing entry, filled in from the raw key if there is
 * one. NULL: the key cannot be used, and why holds the reason: the peer requires raw
 * keys, the raw key is another peer's or unmapped, or there is no memory.
 */
struct mrf_remote *mrf_remote_get_locked(struct mrf_peer *peer, uint64_t key, struct mrf_why *why);
void mrf_remote_drop_locked(struct mrf_remote *remote);
/* Records an answer. -FI_ENOMEM: nothing is known about the region now. */
int mrf_remote_learn_locked(struct mrf_peer *peer, struct mrf_remote *remote,
			    const struct mrf_answer *answer);
/*
 * Returns how many bytes from addr on, at most len, one work request of an operation with
 * this stamp can reach, and sets where they are; 0: no part is known. With a stamp of
 * UINT64_MAX only parts that are good for every operation count, none that is good once. A
 * len of 0 gives 1 if addr is in bounds.
 */
uint64_t mrf_remote_locate_locked(const struct mrf_peer *peer, const struct mrf_remote *remote,
				  uint64_t stamp, uint64_t addr, uint64_t len, uint32_t *rkey,
				  uint64_t *remote_addr);
/* Returns how many bytes from addr on are reachable, over any number of parts. */
uint64_t mrf_remote_covered_locked(const struct mrf_peer *peer, const struct mrf_remote *remote,
				   uint64_t stamp, uint64_t addr, uint64_t len);
/*
 * Returns the number of parts that these bytes go over. The region is not complete, and
 * the bytes are all covered.
 */
unsigned mrf_remote_parts_locked(const struct mrf_remote *remote, uint64_t addr, uint64_t len);
/* What the peer said about these bytes is no longer valid. */
void mrf_remote_gone_locked(struct mrf_peer *peer, struct mrf_forget *forget);
/* There is a new connection. all: to another endpoint. */
void mrf_remote_forget_locked(struct mrf_peer *peer, bool all);
void mrf_remote_fini_locked(struct mrf_peer *peer);

#endif
