/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that make steps share. */
#ifndef MODEL_STEP_H
#define MODEL_STEP_H

#include "model.h"

static inline uint32_t below(struct actor *a, uint32_t n)
{
	return (uint32_t)(dice(&a->dice) % n);
}

static inline bool one_in(struct actor *a, uint32_t n)
{
	return !below(a, n);
}

/* The rest of a step of messages. */
void message_make(struct actor *a, struct step *step);

#endif
