/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files through which a process reaches an RDMA device: /dev/infiniband/rdma_cm and
 * uverbsN. A user without access to them, or a container without them, meets errors of
 * librdmacm that do not name the file. Plain files, no verbs: mrfab_info uses this, too.
 */
#ifndef MRF_VERBS_VNODE_H
#define MRF_VERBS_VNODE_H

#include <stdbool.h>
#include <stddef.h>

/* Where the files are; tests have others. */
struct mrf_vnode_dirs {
	const char *nodes;   /* "/dev/infiniband" */
	const char *devices; /* "/sys/class/infiniband_verbs" */
};

extern const struct mrf_vnode_dirs mrf_vnode_dirs;

/*
 * True: a file keeps this process from the device (NULL: from every device); why is which
 * one, the reason and what to do. Any thread; lock-free.
 */
bool mrf_vnode_bars(const struct mrf_vnode_dirs *dirs, const char *device, char *why,
		    size_t len);

#endif
