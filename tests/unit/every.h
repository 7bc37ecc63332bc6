/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MRFAB_TEST_EVERY=N: tests that go through all of many cases take every Nth. For runs in which
 * another suite takes all, or in which each case takes long. N is odd, so that in sets of bits
 * none is left out. MRFAB_TEST_FIRST=K: they begin with case number K of 0 to N - 1, so that N runs
 * take all.
 */
#ifndef EVERY_H
#define EVERY_H

#include <stdlib.h>

static inline unsigned every_number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);
	int n = text ? atoi(text) : 0;

	return n > 0 ? (unsigned)n : otherwise;
}

static inline unsigned every(void)
{
	return every_number("MRFAB_TEST_EVERY", 1);
}

static inline unsigned every_first(void)
{
	return every_number("MRFAB_TEST_FIRST", 0) % every();
}

#endif
