/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs and librdmacm, as the rest of the library sees them. Only lib/verbs includes
 * their headers; every error of theirs (NULL + errno, positive errno, -1 + errno) becomes
 * -FI_E* here. Nothing here logs refusals except where said: the caller knows what it
 * wanted. Queues and connections: verbs/vqp.h.
 */
#ifndef MRF_VERBS_VERBS_H
#define MRF_VERBS_VERBS_H

#include "verbs/vagain.h"
#include "verbs/vdev.h"
#include "verbs/vevent.h"
#include "verbs/vmr.h"
#include "verbs/vmr_drop.h"

#endif
