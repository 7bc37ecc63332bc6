/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies to memory of the application that may not be there can be counted, slowed down, and held.
 * Included once, by programs that are linked with --wrap=process_vm_writev; they call
 * held_write_init in each test, and then mrf_known_distrust, so that each copy is one.
 */
#ifndef HELD_WRITE_H
#define HELD_WRITE_H

#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "ep_fixture.h"

static void *_Atomic held;	    /* what is copied there waits for may_go */
static atomic_bool inside;	    /* a thread is copying that */
static atomic_bool may_go;	    /* it may go on */
static atomic_uint copies, copy_us; /* so far; us that each takes */

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
				 const struct iovec *to, unsigned long nto, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
				 const struct iovec *to, unsigned long nto, unsigned long flags);

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
				 const struct iovec *to, unsigned long nto, unsigned long flags)
{
	int64_t end = mrf_now_ms() + LONG_MS;
	unsigned us = atomic_load(&copy_us);
	bool hold = to[0].iov_base == atomic_load(&held);

	atomic_fetch_add(&copies, 1);
	if (us)
		usleep(us);
	if (hold)
		atomic_store(&inside, true);
	while (hold && !atomic_load(&may_go) && mrf_now_ms() < end)
		usleep(200);
	if (hold)
		atomic_store(&inside, false);
	return __real_process_vm_writev(pid, from, nfrom, to, nto, flags);
}

static void held_write_init(void)
{
	atomic_store(&held, NULL);
	atomic_store(&inside, false);
	atomic_store(&may_go, false);
	atomic_store(&copies, 0);
	atomic_store(&copy_us, 0);
}

#endif
