/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_HMEM_ZE_H
#define MRF_HMEM_ZE_H

#include "hmem/table.h"

extern const struct mrf_hmem mrf_hmem_ze;

#endif
