/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MRFAB_FUNC_MEMORY=PLACE:RUNTIME puts what cases know as memory, buffers (buf.h) and the regions
 * that are made of them, into memory of a device, whatever the case: it is written for memory of
 * the host. PLACE is near (the driver's), far (its peers') or both, RUNTIME cuda, rocr or ze: the
 * stand-ins of tests/runtime. All domains have FI_HMEM and FI_MR_HMEM then.
 */
#ifndef FUNC_PLACED_H
#define FUNC_PLACED_H

#include <stdbool.h>

/* In each process, before the first buffer and the first domain: is it a peer? */
void placed_open(bool peer);

#endif
