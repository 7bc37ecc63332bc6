/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a peer by address, and its regions step by step: what cases need that
 * change mappings under registered regions, or do not do what a mode demands.
 *
 * A peer makes system calls for the driver. Contents are patterns (buf.h); the pattern
 * with the seed 0 is zeros.
 */
#ifndef FUNC_FAR_H
#define FUNC_FAR_H

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include "env.h"

#define PAGE 4096ul
#define FAR_TEXT 0xfeedbeeffeedbeefull /* as an argument: the text goes along */
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

/* Returns errno, and what the call returned in *result. */
int far_sys(struct peer *p, uint64_t *result, const char *text, const uint64_t call[7]);
/* For one that must succeed. */
#define far_call(p, ...) far_call_(p, #__VA_ARGS__, (uint64_t[7]){ __VA_ARGS__ })
uint64_t far_call_(struct peer *p, const char *what, const uint64_t call[7]);

/*
 * at 0: where nothing has been before, so that the library knows nothing of the place, and
 * where the kernel maps nothing by itself, so that a hole stays one.
 */
uint64_t far_map(struct peer *p, uint64_t at, size_t len, int prot, int flags);
/* Such a place, with nothing in it. */
uint64_t far_hole(size_t len);
void far_unmap(struct peer *p, uint64_t at, size_t len);
void far_advise(struct peer *p, uint64_t at, size_t len, int advice);
void far_move(struct peer *p, uint64_t from, size_t len, uint64_t to);
int far_memfd(struct peer *p, size_t len, unsigned flags);
uint64_t far_map_fd(struct peer *p, uint64_t at, size_t len, int prot, int flags, int fd);
/* Writes a pattern there; compares what is there with one. */
void far_poke(struct peer *p, uint64_t at, size_t len, uint64_t seed, uint64_t from);
void far_peek(struct peer *p, uint64_t at, size_t len, uint64_t seed, uint64_t from);
/* kB, by the kernel's count. */
uint64_t far_pinned(struct peer *p);
uint64_t far_stack(struct peer *p, size_t *size);

/* --- regions ----------------------------------------------------------------------- */

/* As the call leaves it; nothing that the mode demands is done. */
int far_try_regv(struct peer *p, const struct iovec *iov, size_t count, uint64_t access,
		 uint64_t key, uint64_t flags, struct region *r);
int far_try_reg(struct peer *p, uint64_t at, uint64_t len, uint64_t access, uint64_t key,
		struct region *r);
/* With all that the mode demands. */
struct region far_regv(struct peer *p, const struct iovec *iov, size_t count, uint64_t access,
		       uint64_t key);
struct region far_reg(struct peer *p, uint64_t at, uint64_t len, uint64_t access, uint64_t key);
int far_bind(const struct region *r);
int far_enable(const struct region *r);
/* iov NULL: count and flags go as they are. */
int far_refresh(const struct region *r, const struct iovec *iov, size_t count, uint64_t flags);
/* fi_mr_key, fi_mr_desc. */
uint64_t far_key(const struct region *r, uint64_t *desc);

struct raw {
	uint8_t bytes[600];
	size_t size; /* in: room; out: as the call says */
	uint64_t base;
};
int far_raw(const struct region *r, struct raw *raw);
/* Sets r->key to what peers use in this mode: the key, or the mapped raw key. */
void far_take_key(struct region *r);

/* --- accesses ---------------------------------------------------------------------- */

/* Any end; the length moved is all or nothing of interest to cases. */
struct done far_access(struct env *e, bool read, struct buf *b, size_t off, size_t len,
		       const struct region *r, uint64_t at);
/* A write arrives where addr says, and nothing goes wrong. */
void far_lands(struct env *e, struct buf *b, size_t off, size_t len, const struct region *r,
	       uint64_t at, uint64_t addr);
/* A read brings this, and nothing else of b changes. */
void far_brings(struct env *e, struct buf *b, size_t off, size_t len, const struct region *r,
		uint64_t at, uint64_t seed, uint64_t from);
/* err (positive) with one of the words, parted by bars, in its text; b is unchanged. */
void far_refused(struct env *e, bool read, struct buf *b, size_t len, const struct region *r,
		 uint64_t at, int err, const char *words);

#endif
