/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a test unmaps, and maps again or looks at, lies far below where the kernel looks
 * for room: what another thread maps meanwhile (a sanitizer does when a thread begins) is not
 * put into the gap. It lies elsewhere if there is something at APART already.
 */
#ifndef APART_H
#define APART_H

#include <check.h>
#include <sys/mman.h>

#define APART ((unsigned char *)0x20000000)

static inline unsigned char *map_apart(size_t len)
{
	void *got = mmap(APART, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(got, MAP_FAILED);
	return got;
}

#endif
