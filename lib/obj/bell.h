/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An eventfd that many threads may ring and one silences; ringing it again costs no system
 * call. Its owner closes fd.
 */
#ifndef MRF_OBJ_BELL_H
#define MRF_OBJ_BELL_H

#include <stdatomic.h>
#include <stdbool.h>

struct mrf_bell {
	int fd;
	atomic_bool rung;
};

/* 0, or the error of eventfd(2). */
int mrf_bell_init(struct mrf_bell *bell);
/* Makes fd readable. Any thread, any lock held. */
void mrf_bell_ring(struct mrf_bell *bell);
/*
 * Makes fd unreadable. What was announced by a ring before this call is visible to the
 * caller afterwards.
 */
void mrf_bell_silence(struct mrf_bell *bell);

#endif
