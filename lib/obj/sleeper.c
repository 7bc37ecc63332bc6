/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <rdma/fi_errno.h>
#include "base/fd.h"
#include "base/log.h"
#include "obj/sleeper.h"

/* --- bells ------------------------------------------------------------------------- */

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

/* --- sleepers ---------------------------------------------------------------------- */

static struct mrf_sleeper *sleeper_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_sleeper, node);
}

void mrf_sleepers_init(struct mrf_sleepers *all)
{
	mrf_lock_init(&all->lock, MRF_RANK_WAKE);
	mrf_list_init(&all->asleep);
	mrf_list_init(&all->spare);
}

void mrf_sleepers_fini(struct mrf_sleepers *all)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&all->spare))) {
		close(sleeper_at(node)->bell.fd);
		free(sleeper_at(node));
	}
	mrf_lock_fini(&all->lock);
}

static struct mrf_sleeper *sleeper_new(void)
{
	struct mrf_sleeper *sleeper = malloc(sizeof(*sleeper));
	int ret = sleeper ? mrf_bell_init(&sleeper->bell) : -FI_ENOMEM;

	if (!ret)
		return sleeper;
	free(sleeper);
	mrf_refuse(-ret, FI_LOG_FABRIC, 2015, "a thread cannot block on its object");
	errno = -ret;
	return NULL;
}

struct mrf_sleeper *mrf_sleeper_begin(struct mrf_sleepers *all)
{
	struct mrf_sleeper *sleeper;
	struct mrf_list *node;

	mrf_lock_take(&all->lock);
	node = mrf_list_pop(&all->spare);
	mrf_lock_release(&all->lock);
	sleeper = node ? sleeper_at(node) : sleeper_new();
	if (!sleeper)
		return NULL;
	mrf_lock_take(&all->lock);
	mrf_list_add_tail(&sleeper->node, &all->asleep);
	mrf_lock_release(&all->lock);
	return sleeper;
}

void mrf_sleeper_end(struct mrf_sleepers *all, struct mrf_sleeper *sleeper)
{
	mrf_lock_take(&all->lock);
	mrf_list_del(&sleeper->node);
	mrf_list_add_head(&sleeper->node, &all->spare);
	mrf_lock_release(&all->lock);
}

void mrf_sleepers_wake(struct mrf_sleepers *all)
{
	mrf_lock_take(&all->lock);
	mrf_list_each (node, &all->asleep)
		mrf_bell_ring(&sleeper_at(node)->bell);
	mrf_lock_release(&all->lock);
}

unsigned mrf_sleepers_count(struct mrf_sleepers *all)
{
	unsigned n = 0;

	mrf_lock_take(&all->lock);
	mrf_list_each (node, &all->asleep)
		n++;
	mrf_lock_release(&all->lock);
	return n;
}
