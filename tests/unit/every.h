/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MRFAB_TEST_EVERY=N: tests that go through all of many cases take every Nth. For runs in which
 * another suite takes all, or in which each case takes long. N is odd, so that in sets of bits
 * none is left out.
 */
#ifndef EVERY_H
#define EVERY_H

#include <stdlib.h>

static inline unsigned every(void)
{
	const char *text = getenv("MRFAB_TEST_EVERY");
	int n = text ? atoi(text) : 0;

	return n > 0 ? (unsigned)n : 1;
}

#endif
