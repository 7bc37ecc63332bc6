/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_tostr: structures and constants in words. Each structure has a table of its fields,
 * each type of constant a table in base/names; the layout is close to libfabric's, so
 * that scripts can read both.
 */
#ifndef MRF_INFO_TOSTR_H
#define MRF_INFO_TOSTR_H

#include <rdma/fabric.h>

/* Returns buf, or NULL if buf is NULL, or if data is NULL but needed. */
char *mrf_info_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype);

/*
 * As mrf_info_tostr_r, in a buffer per thread, so that threads do not overwrite each
 * other's text.
 */
char *mrf_info_tostr(const void *data, enum fi_type datatype);

#endif
