/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers whose every byte is accounted for: beside the memory itself there is a copy of
 * what it should be. A test says what an access ought to change (buf_want) and then
 * compares the whole, so that bytes outside, the guard zones among them, are compared
 * too.
 *
 * Contents are patterns: byte i of the pattern with a seed depends on both, so that a
 * byte that arrives in the wrong place is seen.
 */
#ifndef FUNC_BUF_H
#define FUNC_BUF_H

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>

#define BUF_GUARD 4096 /* cases keep that far from both ends of what they register */

struct fab;
struct fid_mr;

struct rig;

/*
 * The runtime (runtime/rig.h) whose first device has the memory of buffers that are opened from
 * now on. NULL: they are the host's.
 */
extern const struct rig *buf_rig;

struct buf {
	uint8_t *mem;  /* page aligned; only with rig NULL can it be looked at */
	uint8_t *want; /* what mem should be */
	size_t size;
	const struct rig *rig; /* that mem is of */
	uint64_t seed;	       /* of the pattern that fills it */
	struct fid_mr *mr;     /* FI_MR_LOCAL: all of mem; else NULL */
	struct fab *fab;       /* that mr belongs to */
	void *desc;
};

void pattern(void *dst, uint64_t seed, uint64_t from, size_t len);

void buf_open(struct buf *b, size_t size, uint64_t seed);
void buf_close(struct buf *b);
void buf_fill(struct buf *b, uint64_t seed);
/* These bytes go there, or come from there, wherever that is; what is wanted stays the same. */
void buf_put(const struct buf *b, size_t off, const void *bytes, size_t len);
void buf_get(const struct buf *b, size_t off, void *bytes, size_t len);
/* len bytes at off ought to become those of pattern seed from byte from on. */
void buf_want(struct buf *b, size_t off, size_t len, uint64_t seed, uint64_t from);
/* NULL when all bytes are as wanted, else the first difference; a static text. */
const char *buf_diff(const struct buf *b);
/* The same, but bytes within off, len may be anything. */
const char *buf_diff_outside(const struct buf *b, size_t off, size_t len);

/* Bytes that malloc has given out; 0 under a sanitizer, whose malloc does not tell. */
static inline size_t heap_used(void)
{
	struct mallinfo2 all = mallinfo2();

	return all.uordblks + all.hblkhd;
}

#endif
