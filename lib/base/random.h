/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_BASE_RANDOM_H
#define MRF_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills buf with random bytes: by getrandom(2) or, where a filter of system calls denies that, from
 * /dev/urandom. False and errno: neither can be had. Waits until the kernel has randomness, as early
 * as at boot. Thread-safe.
 */
bool mrf_random(void *buf, size_t len);

#endif
