/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/page.h"
#include "monitor/patch.h"

#ifdef __x86_64__

#define BLOCK 16u
#define JUMP 5u /* e9 and a distance of 32 bits */
#define REACH 0x7f000000ul
#define STEP (1ul << 20)

/* --- reading ---------------------------------------------------------------------- */

enum kind {
	COPY,	/* means the same anywhere */
	PUSHED, /* sub $n,%rsp: to be undone before the hook is called */
	JUMPS	/* jmp, of a hook that another library put here before */
};

/* How functions that make a system call begin. */
struct shape {
	unsigned char len;
	unsigned char nmatch;
	unsigned char match[4];
	enum kind kind;
};

static const struct shape shapes[] = {
	{ 4, 4, { 0xf3, 0x0f, 0x1e, 0xfa }, COPY }, /* endbr64 */
	{ 3, 3, { 0x41, 0x89, 0xca }, COPY },	    /* mov %ecx,%r10d */
	{ 3, 3, { 0x49, 0x89, 0xca }, COPY },	    /* mov %rcx,%r10 */
	{ 4, 3, { 0x48, 0x83, 0xec }, PUSHED },	    /* sub $n,%rsp */
	{ 5, 1, { 0xb8 }, COPY },		    /* mov $n,%eax */
	{ 7, 3, { 0x41, 0xf7, 0xc1 }, COPY },	    /* test $n,%r9d */
	{ 5, 4, { 0x4c, 0x89, 0x44, 0x24 }, COPY }, /* mov %r8,n(%rsp) */
	{ 10, 2, { 0x49, 0xbb }, COPY },	    /* movabs $n,%r11: a patch of others */
	{ 10, 2, { 0x48, 0xb8 }, COPY },	    /* movabs $n,%rax: likewise */
	{ 5, 1, { 0xe9 }, JUMPS },
};

static const struct shape *shape_at(const unsigned char *code)
{
	unsigned i;

	for (i = 0; i < MRF_ARRAY_SIZE(shapes); i++) {
		if (!memcmp(code, shapes[i].match, shapes[i].nmatch))
			return &shapes[i];
	}
	return NULL;
}

/* --- writing ---------------------------------------------------------------------- */

struct writer {
	unsigned char *at;
};

static void put_bytes(struct writer *w, const void *bytes, size_t len)
{
	memcpy(w->at, bytes, len);
	w->at += len;
}

/* jmp *0(%rip), and the address behind it. */
static void put_jump(struct writer *w, const void *to)
{
	static const unsigned char jump[] = { 0xff, 0x25, 0, 0, 0, 0 };
	uintptr_t addr = (uintptr_t)to;

	put_bytes(w, jump, sizeof(jump));
	put_bytes(w, &addr, sizeof(addr));
}

static void put_undo(struct writer *w, const unsigned char *sub)
{
	unsigned char add[4] = { 0x48, 0x83, 0xc4, sub[3] };

	put_bytes(w, add, sizeof(add));
}

static const unsigned char *target(const unsigned char *jump)
{
	int32_t distance;

	memcpy(&distance, jump + 1, sizeof(distance));
	return jump + JUMP + distance;
}

/* The whole of the old beginning, and on from there. */
static void put_orig(struct writer *w, const unsigned char *function, const unsigned char *code,
		     const struct shape *shape)
{
	put_bytes(w, function, (size_t)(code - function));
	if (shape->kind == JUMPS) {
		put_jump(w, target(code));
		return;
	}
	put_bytes(w, code, shape->len);
	put_jump(w, code + shape->len);
}

/* The jump to the hook leaves everything as it was when the function was called. */
static void put_entry(struct writer *w, const unsigned char *function, const unsigned char *code,
		      const void *hook)
{
	const struct shape *shape;

	for (; function < code; function += shape->len) {
		shape = shape_at(function);
		if (shape->kind == PUSHED)
			put_undo(w, function);
	}
	put_jump(w, hook);
}

/* --- a patch ---------------------------------------------------------------------- */

/*
 * Finds the first instruction that has room for a jump, if all instructions before it are
 * known.
 */
static const unsigned char *jump_place(const unsigned char *code)
{
	const unsigned char *end =
		(const unsigned char *)(((uintptr_t)code & ~(uintptr_t)(BLOCK - 1)) + BLOCK - JUMP);
	const struct shape *shape;

	for (; code <= end; code += shape->len) {
		shape = shape_at(code);
		if (!shape)
			return NULL;
		if (shape->len >= JUMP)
			return code;
	}
	return NULL;
}

int mrf_patch_prepare(struct mrf_patch *patch, unsigned char *room)
{
	const unsigned char *function = patch->function, *code = jump_place(function);
	struct writer w = { .at = room };
	unsigned char *jump;
	int32_t distance;

	if (!code)
		return -FI_EOPNOTSUPP;
	put_entry(&w, function, code, patch->hook);
	patch->orig = w.at;
	put_orig(&w, function, code, shape_at(code));

	patch->block = (unsigned char *)((uintptr_t)code & ~(uintptr_t)(BLOCK - 1));
	memcpy(patch->before, patch->block, BLOCK);
	memcpy(patch->after, patch->block, BLOCK);
	jump = patch->after + (code - patch->block);
	distance = (int32_t)(room - (code + JUMP));
	jump[0] = 0xe9;
	memcpy(jump + 1, &distance, sizeof(distance));
	return 0;
}

/*
 * Writes with one store, because other threads run this code. False: the code has
 * changed.
 */
static bool swap(unsigned char *block, const unsigned char *from, const unsigned char *to)
{
	uint64_t was[2], new[2];
	bool same;

	memcpy(was, from, BLOCK);
	memcpy(new, to, BLOCK);
	__asm__ volatile("lock cmpxchg16b (%[at])"
			 : "=@ccz"(same), "+a"(was[0]), "+d"(was[1])
			 : [at] "r"(block), "b"(new[0]), "c"(new[1])
			 : "memory");
	return same;
}

static int rewrite(unsigned char *block, const unsigned char *from, const unsigned char *to)
{
	size_t page = mrf_page_size();
	void *start = (void *)((uintptr_t)block & ~(page - 1));
	bool done;

	if (mprotect(start, page, PROT_READ | PROT_WRITE | PROT_EXEC))
		return -errno;
	done = swap(block, from, to);
	/* A page that stays writable does no harm but to defences. */
	(void)mprotect(start, page, PROT_READ | PROT_EXEC);
	return done ? 0 : -FI_EBUSY;
}

int mrf_patch_apply(const struct mrf_patch *patch)
{
	return rewrite(patch->block, patch->before, patch->after);
}

int mrf_patch_revert(const struct mrf_patch *patch)
{
	return rewrite(patch->block, patch->after, patch->before);
}

bool mrf_patch_holds(const struct mrf_patch *patch)
{
	return patch->block && !memcmp(patch->block, patch->after, BLOCK);
}

/* --- room ------------------------------------------------------------------------- */

static void *map_at(uintptr_t at, size_t len)
{
	void *page = mmap((void *)at, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (page == (void *)at)
		return page;
	munmap(page, len);
	return NULL;
}

void *mrf_patch_room(const void *function)
{
	uintptr_t base = (uintptr_t)function & ~(uintptr_t)(STEP - 1), off;
	void *page = NULL;

	for (off = STEP; !page && off < REACH; off += STEP) {
		if (base > off)
			page = map_at(base - off, mrf_page_size());
		if (!page)
			page = map_at(base + off, mrf_page_size());
	}
	return page;
}

int mrf_patch_seal(void *room)
{
	return mprotect(room, mrf_page_size(), PROT_READ | PROT_EXEC) ? -errno : 0;
}

#else

void *mrf_patch_room(const void *function)
{
	(void)function;
	return NULL;
}

int mrf_patch_prepare(struct mrf_patch *patch, unsigned char *room)
{
	(void)patch;
	(void)room;
	return -FI_ENOSYS;
}

int mrf_patch_seal(void *room)
{
	(void)room;
	return -FI_ENOSYS;
}

int mrf_patch_apply(const struct mrf_patch *patch)
{
	(void)patch;
	return -FI_ENOSYS;
}

int mrf_patch_revert(const struct mrf_patch *patch)
{
	(void)patch;
	return -FI_ENOSYS;
}

bool mrf_patch_holds(const struct mrf_patch *patch)
{
	(void)patch;
	return false;
}

#endif
