/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocating, copying and freeing a struct fi_info. */
#ifndef MRF_INFO_INFO_H
#define MRF_INFO_INFO_H

#include <rdma/fabric.h>

/*
 * fi_dupinfo: a deep copy, or an empty fi_info for NULL. Returns NULL if there is no
 * memory.
 */
struct fi_info *mrf_info_dup(const struct fi_info *info);

/*
 * fi_freeinfo: frees a whole list, which may be NULL. Authorization keys in it are wiped.
 */
void mrf_info_free(struct fi_info *info);

#endif
