/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the stand-ins for device runtimes share: allocations, and calls that fail when a test
 * says so.
 *
 * Memory of a device cannot be touched by the processor here either: at its address there is a
 * mapping without any right, and the bytes are in another mapping, which only the stand-in's
 * copies know. So a library that touches it, or hands it to the kernel, crashes or is refused.
 * An address that was freed is used again for the next allocation of that size, with another
 * identity.
 *
 * Thread-safe. For tests, and for running a program's device path without a device.
 */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rt_kind { RT_DEVICE, RT_MANAGED, RT_HOST };

struct rt_alloc {
	enum rt_kind kind;
	int device;
	void *owner;	/* the runtime's context */
	uint8_t *front; /* its address */
	uint8_t *bytes; /* where the bytes are; DEVICE: elsewhere */
	size_t len;	/* as asked for */
	uint64_t id;	/* never used again */
};

/* NULL: no memory. The structure is a copy: what it describes may be freed meanwhile. */
void *rt_new(enum rt_kind kind, int device, void *owner, size_t len);
/* Memory of the host that is not allocated here, known from now on. False: known already. */
bool rt_adopt(void *addr, size_t len, void *owner);
/* False: not the start of an allocation of one of these kinds (bits). */
bool rt_free(void *addr, unsigned kinds);
/* Which allocation is this address in? */
bool rt_find(uintptr_t addr, struct rt_alloc *alloc);
/* All of an owner go. */
void rt_free_of(const void *owner);

/* Where the bytes of [addr, addr + len) are; NULL: not wholly in one allocation. */
uint8_t *rt_bytes(uintptr_t addr, size_t len);

/*
 * The device uses its managed memory at this address: the pages are others afterwards, which no
 * caller of mmap has been told.
 */
void rt_move(uintptr_t addr);

/*
 * Environment: how many devices there are (MRFAB_RUNTIME_DEVICES, 2).
 */
int rt_devices(void);

/*
 * What moves bytes when the runtime is asked to copy. Environment: how many microseconds 1 MiB
 * takes beside that (MRFAB_RUNTIME_US_PER_MIB, 0), in which the caller sleeps, as if the device
 * did it while the processor is free for others.
 */
void rt_copy(void *to, const void *from, size_t len);

/*
 * At the beginning of each call: 0, or the error with which it is to fail. Tests choose by
 * rt_fail_next, which a stand-in exports: the nth call (1: the next) of this name, once. The
 * name "*": of any. rt_fails_left: 0 when it has failed.
 */
int rt_begin(const char *name);
void rt_fail_next(const char *name, unsigned nth, int error);
unsigned rt_fails_left(void);
/* How often that was called; NULL: all calls. */
unsigned long rt_calls(const char *name);

#endif
