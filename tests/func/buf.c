/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../runtime/rig.h"
#include "buf.h"
#include "case.h"

const struct rig *buf_rig;

static uint64_t pattern_word(uint64_t seed, uint64_t i)
{
	uint64_t x = (i + seed * 0x632be59bd9b4e019ull + 1) * 0x9e3779b97f4a7c15ull;

	return x ^ x >> 29;
}

void pattern(void *dst, uint64_t seed, uint64_t from, size_t len)
{
	uint8_t *d = dst;

	while (len) {
		uint64_t w = pattern_word(seed, from / 8);
		size_t skip = from % 8;
		size_t n = 8 - skip < len ? 8 - skip : len;

		memcpy(d, (uint8_t *)&w + skip, n);
		d += n;
		from += n;
		len -= n;
	}
}

/*
 * Faulting in small pages one by one is what takes longest in an emulator: the copy, and
 * what is very large, may have huge ones.
 */
static void *map(size_t size, bool huge)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		case_fail("no memory for a buffer of %zu bytes", size);
	madvise(p, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return p;
}

void buf_open(struct buf *b, size_t size, uint64_t seed)
{
	*b = (struct buf){ .size = size, .rig = buf_rig };
	b->mem = b->rig ? b->rig->make(RT_DEVICE, 0, size) : map(size, size > 16 * 1024 * 1024);
	if (!b->mem)
		case_fail("the device has no memory");
	b->want = map(size, true);
	buf_fill(b, seed);
}

void buf_close(struct buf *b)
{
	if (!b->mem)
		return;
	if (b->rig)
		b->rig->unmake(RT_DEVICE, b->mem);
	else
		munmap(b->mem, b->size);
	munmap(b->want, b->size);
	*b = (struct buf){ 0 };
}

void buf_fill(struct buf *b, uint64_t seed)
{
	b->seed = seed;
	pattern(b->want, seed, 0, b->size);
	buf_put(b, 0, b->want, b->size);
}

void buf_put(const struct buf *b, size_t off, const void *bytes, size_t len)
{
	if (b->rig)
		b->rig->put(b->mem + off, bytes, len);
	else
		memcpy(b->mem + off, bytes, len);
}

void buf_get(const struct buf *b, size_t off, void *bytes, size_t len)
{
	if (b->rig)
		b->rig->get(bytes, b->mem + off, len);
	else
		memcpy(bytes, b->mem + off, len);
}

void buf_want(struct buf *b, size_t off, size_t len, uint64_t seed, uint64_t from)
{
	if (off > b->size || len > b->size - off)
		case_fail("the case wants bytes outside its buffer");
	pattern(b->want + off, seed, from, len);
}

static const char *diff_text(const struct buf *b, size_t first, size_t end)
{
	static char text[160];
	size_t n = 0, last = first;

	for (size_t i = first; i < end; i++) {
		if (b->mem[i] != b->want[i]) {
			n++;
			last = i;
		}
	}
	snprintf(text, sizeof(text),
		 "byte %zu of %zu is 0x%02x instead of 0x%02x; %zu differ, the last is "
		 "%zu",
		 first, b->size, b->mem[first], b->want[first], n, last);
	return text;
}

static const char *diff_range(const struct buf *b, size_t off, size_t end)
{
	if (off >= end || !memcmp(b->mem + off, b->want + off, end - off))
		return NULL;
	while (b->mem[off] == b->want[off])
		off++;
	return diff_text(b, off, end);
}

static const char *diff_outside(const struct buf *b, size_t off, size_t len)
{
	const char *text = diff_range(b, 0, off);

	return text ? text : diff_range(b, off + len, b->size);
}

const char *buf_diff(const struct buf *b)
{
	return buf_diff_outside(b, 0, 0);
}

const char *buf_diff_outside(const struct buf *b, size_t off, size_t len)
{
	struct buf copy = *b;
	const char *text;

	if (!b->rig)
		return diff_outside(b, off, len);
	copy.mem = malloc(b->size);
	if (!copy.mem)
		case_fail("no memory");
	buf_get(b, 0, copy.mem, b->size);
	text = diff_outside(&copy, off, len);
	free(copy.mem);
	return text;
}
