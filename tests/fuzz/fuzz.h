/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry that libFuzzer calls for each input: always 0, or it aborts. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
