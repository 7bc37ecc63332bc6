/* SPDX-License-Identifier: BSD-2-Clause */
/* The model on a device: each thread's peer is a process. */
#ifndef MODEL_DEVICE_H
#define MODEL_DEVICE_H

#include <stdbool.h>

/*
 * Worlds from number first on, with messages or without; false: library and model did not agree, or kernel objects
 * were left (left says whether this process has some), as told on standard output.
 */
bool model_on_device(unsigned first, unsigned worlds, unsigned steps, unsigned threads,
		     unsigned budget, bool messages, bool (*left)(void));

#endif
