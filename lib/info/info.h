/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a struct fi_info. */
#ifndef MRF_INFO_INFO_H
#define MRF_INFO_INFO_H

#include <rdma/fabric.h>

/* fi_dupinfo: a copy of all of it, or an empty one for NULL. NULL: there is no memory. */
struct fi_info *mrf_info_dup(const struct fi_info *info);

/* fi_freeinfo: a whole list; NULL is none. Authorization keys in it are wiped. */
void mrf_info_free(struct fi_info *info);

#endif
