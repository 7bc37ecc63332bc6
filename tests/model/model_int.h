/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the model do for each other. */
#ifndef MODEL_MODEL_INT_H
#define MODEL_MODEL_INT_H

#include "model.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SHARED_KEY 0x5000u

/* A success, when nothing was found to be wrong. */
void want_done(struct want *want);
/*
 * A registration that goes on refuses what needs a region; one that has failed refuses
 * everything, too. After what else there is to want.
 */
void want_state(const struct region *r, struct want *want);
bool has_failed(const struct region *r);
/* A region of the thread that is about to fail and has this key until then, or NULL. */
struct region *find_doomed(struct actor *a, uint64_t key);
/* Not closed. */
bool is_open(const struct region *r);
/* What the region is called by peers, as far as anybody can know. */
uint64_t key_of(const struct conf *conf, const struct region *r);
/* The thread's own region that has the key, or NULL. */
struct region *find_key(struct actor *a, uint64_t key);
/* Of packed offset off: where it is in the thread's memory. Past the end: behind it. */
uint32_t unpack(const struct region *r, uint32_t off);
/* Is this byte of the thread's memory in a segment (or at its end)? Are all of these? */
bool in_some(const struct region *r, uint32_t place, bool or_end);
bool range_inside(const struct region *r, uint32_t off, uint32_t len);

#endif
