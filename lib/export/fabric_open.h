/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exported calls by other names: to a library that is a module of libfabric they are its own.
 */
#ifndef MRF_EXPORT_FABRIC_OPEN_H
#define MRF_EXPORT_FABRIC_OPEN_H

#include <rdma/fabric.h>

/* fi_fabric */
int mrf_hosted_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
