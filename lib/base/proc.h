/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the kernel tells of this process. */
#ifndef MRF_BASE_PROC_H
#define MRF_BASE_PROC_H

/*
 * The calling thread's folder. What it says of memory and limits it says of the process. The files of
 * /proc/self are empty once main() has ended by pthread_exit while other threads go on.
 */
#define MRF_PROC_SELF "/proc/thread-self"

#endif
