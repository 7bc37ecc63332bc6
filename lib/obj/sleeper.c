/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/sleeper.h"

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
