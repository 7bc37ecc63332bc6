/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include "base/fd.h"
#include "obj/bell.h"

int mrf_bell_init(struct mrf_bell *bell)
{
	atomic_init(&bell->rung, false);
	bell->fd = mrf_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	return bell->fd < 0 ? -errno : 0;
}

void mrf_bell_ring(struct mrf_bell *bell)
{
	const uint64_t one = 1;
	ssize_t ret;

	if (atomic_exchange(&bell->rung, true))
		return;
	/* Fails only if the application closed the descriptor under us. */
	ret = write(bell->fd, &one, sizeof(one));
	(void)ret;
}

/*
 * First the descriptor, then the flag: a ring in between that found the flag set is lost,
 * but the exchange makes what it announced visible to the caller, who looks after this.
 * If there is nothing to read, another thread has set the flag and is about to write: the
 * flag stays, so that the next call finds what is written then.
 */
void mrf_bell_silence(struct mrf_bell *bell)
{
	uint64_t count;
	ssize_t ret;

	if (!atomic_load(&bell->rung))
		return;
	ret = read(bell->fd, &count, sizeof(count));
	if (ret > 0)
		atomic_exchange(&bell->rung, false);
}
