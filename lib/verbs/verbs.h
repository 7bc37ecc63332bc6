/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs and librdmacm, as the rest of the library sees them. Only lib/verbs includes
 * their headers; each of their errors (NULL + errno, positive errno, -1 + errno) becomes
 * -FI_E* here. Errors are not logged here except where documented, because only the
 * caller knows the purpose of the call. Queues and connections: verbs/vqp.h.
 */
#ifndef MRF_VERBS_VERBS_H
#define MRF_VERBS_VERBS_H

#include "verbs/vagain.h"
#include "verbs/vdev.h"
#include "verbs/vevent.h"
#include "verbs/vmr.h"
#include "verbs/vmr_drop.h"

#endif
