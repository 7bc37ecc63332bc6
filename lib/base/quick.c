/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/quick.h"

#ifdef MRF_LOCKRANK
typedef int mrf_quick_c_is_not_empty;
#else

static void futex(struct mrf_quick *quick, int op, uint32_t value)
{
	int saved = errno;

	/* Any return will do: the callers look at the word again. */
	syscall(SYS_futex, &quick->word, op, value, NULL, NULL, 0);
	errno = saved;
}

void mrf_quick_wait(struct mrf_quick *quick)
{
	/* Taken as 2, for others may sleep, too: the release then wakes the next one. */
	while (atomic_exchange_explicit(&quick->word, 2, memory_order_acquire))
		futex(quick, FUTEX_WAIT_PRIVATE, 2);
}

void mrf_quick_wake(struct mrf_quick *quick)
{
	futex(quick, FUTEX_WAKE_PRIVATE, 1);
}

#endif
