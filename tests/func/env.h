/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a case starts from: its own side of the fabric and up to three peers, all in
 * the case's mode, opened when first asked for and shared by the cases of a worker.
 * Buffers and regions go with the case.
 */
#ifndef FUNC_ENV_H
#define FUNC_ENV_H

#include "peer.h"
#include "serve.h"

#define PEERS 4
#define BUFS 16

#define REMOTE_RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

struct env {
	const struct mode *mode;
	struct fab fab;
	bool open;
	struct peer peer[PEERS];
	struct buf buf[BUFS];
	unsigned nbuf;
	int timeout;
};

struct env *env_new(const struct mode *mode);
void env_free(struct env *e);
void env_case(struct env *e, int timeout);
/* Ends a case: closes its memory; no completion may be left anywhere. */
void env_reset(struct env *e);

/* How the driver opens its own side. */
extern struct fab_opt env_own;
/* The driver's own side. */
struct fab *me(struct env *e);
/* Peer 0, 1 or 2. */
struct peer *peer(struct env *e, unsigned i);
static inline struct peer *target(struct env *e)
{
	return peer(e, 0);
}

/* A buffer of the driver, with a descriptor when the mode wants one; closed after the
 * case. */
struct buf *buf(struct env *e, size_t size, uint64_t seed);
void buf_same(const struct buf *b);

/* Fills in everything for an access to len bytes from offset at of r on. */
struct op op_make(struct env *e, bool read, struct buf *b, size_t off, size_t len,
		  const struct region *r, size_t at);
/*
 * Posts the access and notes at both ends what it ought to change, so that buf_same
 * and peer_same can tell. Completion: fab_wait_ok. A read expects the pattern that
 * its slot was filled with.
 */
void start(struct env *e, bool read, struct buf *b, size_t off, size_t len, const struct region *r,
	   size_t at);
/* The same and waits. */
void access_ok(struct env *e, bool read, struct buf *b, size_t off, size_t len,
	       const struct region *r, size_t at);
#define WRITE false
#define READ true

/* Deterministic, seeded by the case. */
uint64_t rnd(uint64_t *state);

#endif
