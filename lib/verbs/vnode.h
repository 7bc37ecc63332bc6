/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files through which a process reaches an RDMA device: /dev/infiniband/rdma_cm and
 * uverbsN. A user without access to them, or in a container without them, gets errors
 * from librdmacm that do not name the file. This code uses no verbs, so mrfab_info can
 * use it, too.
 */
#ifndef MRF_VERBS_VNODE_H
#define MRF_VERBS_VNODE_H

#include <stdbool.h>
#include <stddef.h>

/* The directories of the files; tests use others. */
struct mrf_vnode_dirs {
	const char *nodes;   /* "/dev/infiniband" */
	const char *devices; /* "/sys/class/infiniband_verbs" */
};

extern const struct mrf_vnode_dirs mrf_vnode_dirs;

/*
 * True: a file denies this process the device (NULL: every device); why names the file,
 * the reason and the remedy. Any thread; lock-free.
 */
bool mrf_vnode_bars(const struct mrf_vnode_dirs *dirs, const char *device, char *why, size_t len);

/*
 * The device's name as it is now, of which libibverbs does not learn that it has changed. uverbs:
 * "uverbs0". False: it cannot be read. Any thread; lock-free.
 */
bool mrf_vnode_device(const struct mrf_vnode_dirs *dirs, const char *uverbs, char *name,
		      size_t len);

#endif
