/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_tostr: structures and constants in words. A structure is a table of its fields, a
 * constant a table of base/names; the layout is close to libfabric's, so that scripts
 * that read one read the other.
 */
#ifndef MRF_INFO_TOSTR_H
#define MRF_INFO_TOSTR_H

#include <rdma/fabric.h>

/* Returns buf, or NULL without a buffer or without data where data is needed. */
char *mrf_info_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype);

/* As above, in a buffer per thread, so that threads do not overwrite each other's text. */
char *mrf_info_tostr(const void *data, enum fi_type datatype);

#endif
