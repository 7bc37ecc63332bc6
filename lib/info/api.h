/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getinfo, what belongs to its answer, and fi_tostr. */
#ifndef MRF_INFO_API_H
#define MRF_INFO_API_H

#include <rdma/fabric.h>

/* Returns the errors of fi_getinfo(3); the reason of each is logged. */
int mrf_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info);

/*
 * fi_dupinfo: a deep copy, or an empty fi_info for NULL. Returns NULL if there is no
 * memory.
 */
struct fi_info *mrf_info_dup(const struct fi_info *info);

/*
 * fi_freeinfo: frees a whole list, which may be NULL. Authorization keys in it are wiped.
 */
void mrf_info_free(struct fi_info *info);

/*
 * fi_tostr: structures and constants in words. Returns buf, or NULL if buf is NULL, or if
 * data is NULL but needed.
 */
char *mrf_info_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype);

/*
 * As mrf_info_tostr_r, in a buffer per thread, so that threads do not overwrite each
 * other's text.
 */
char *mrf_info_tostr(const void *data, enum fi_type datatype);

#endif
