/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the operations in flight that use a region by its descriptor, so that fi_close can say that it
 * came too early. In careful domains only (struct mrf_mr_space.careful). Any thread; no lock.
 */
#ifndef MRF_BUF_USES_H
#define MRF_BUF_USES_H

#include "buf/local.h"

/* True: something was counted, which mrf_uses_end has to undo before anybody learns of the end. */
bool mrf_uses_begin(const struct mrf_buf *buf, const struct mrf_local *local);
void mrf_uses_end(const struct mrf_buf *buf, const struct mrf_local *local);

#endif
