/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the borrower subscribed to is a client's watch like any other. It may be told of a
 * change inside its own call of munmap or free, and unsubscribe there. So that call frees
 * nothing: what it ended is freed when something is subscribed, or at the end.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include "base/compiler.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/page.h"
#include "monitor/lend.h"
#include "monitor/monitor.h"

struct lender {
	struct fid_mem_monitor monitor;
	uint64_t owner; /* the process that opened it: base/fork.h */
	pthread_mutex_t admin;
	unsigned starts; /* admin */
	/* Guarded by the monitor's lock. */
	struct mrf_monitor_client client;
	struct mrf_list subs;  /* struct sub.node */
	struct mrf_list ended; /* the same, to be freed */
	unsigned telling;      /* calls of notify that are under way */
};

struct sub {
	struct mrf_list node;
	struct mrf_watch watch; /* of the whole pages */
	const void *addr;
	size_t len;
};

static struct lender *lender_of(struct fid_mem_monitor *monitor)
{
	return mrf_container_of(monitor, struct lender, monitor);
}

static bool is_ours(const struct lender *lender)
{
	return mrf_fork_ours(lender->owner);
}

/* --- what the borrower is told --------------------------------------------------------- */

/* Nothing of ours relies on it. */
static void drop_nothing(struct mrf_watch *watch)
{
	(void)watch;
}

/* The lock is let go meanwhile, and the subscription may be ended. */
static void notify_locked(struct mrf_watch *watch)
{
	const struct sub *sub = mrf_container_of(watch, struct sub, watch);
	struct lender *lender = mrf_container_of(watch->client, struct lender, client);
	const void *addr = sub->addr;
	size_t len = sub->len;

	mrf_monitor_held();
	if (!lender->monitor.import_ops)
		return;
	lender->telling++;
	mrf_monitor_unlock();
	lender->monitor.import_ops->notify(&lender->monitor, addr, len);
	mrf_monitor_lock();
	lender->telling--;
}

/* --- subscriptions --------------------------------------------------------------------- */

static void free_ended(struct lender *lender)
{
	struct mrf_list *node;
	struct sub *sub;

	do {
		mrf_monitor_lock();
		node = mrf_list_pop(&lender->ended);
		mrf_monitor_unlock();
		if (!node)
			break;
		sub = mrf_list_entry(node, struct sub, node);
		mrf_watch_fini(&sub->watch);
		free(sub);
	} while (true);
}

static void end_sub_locked(struct lender *lender, struct sub *sub)
{
	mrf_monitor_held();
	mrf_monitor_unwatch_locked(&sub->watch);
	mrf_list_del(&sub->watch.group);
	mrf_list_del(&sub->node);
	mrf_list_add_tail(&sub->node, &lender->ended);
}

/*
 * One that is still watched, or one that is not: a borrower may subscribe anew to what
 * changed before it ends the subscription that this ended.
 */
static struct sub *find_sub_locked(const struct lender *lender, const void *addr, size_t len,
				   bool on)
{
	mrf_monitor_held();
	mrf_list_each (node, &lender->subs) {
		struct sub *sub = mrf_list_entry(node, struct sub, node);

		if (sub->addr == addr && sub->len == len && mrf_watch_on(&sub->watch) == on)
			return sub;
	}
	return NULL;
}

static struct sub *sub_new(struct lender *lender, const void *addr, size_t len)
{
	uintptr_t mask = mrf_page_size() - 1, start = (uintptr_t)addr & ~mask;
	struct sub *sub = calloc(1, sizeof(*sub));

	if (!sub || mrf_watch_init(&sub->watch, &lender->client)) {
		free(sub);
		return NULL;
	}
	sub->addr = addr;
	sub->len = len;
	sub->watch.start = start;
	sub->watch.len = (((uintptr_t)addr + len + mask) & ~mask) - start;
	return sub;
}

static int watch_sub(struct lender *lender, struct sub *sub)
{
	int ret;

	mrf_monitor_lock();
	mrf_list_add_tail(&sub->node, &lender->subs);
	ret = mrf_monitor_watch_locked(&sub->watch);
	mrf_monitor_unlock();
	if (!ret && !mrf_monitor_sure(&sub->watch))
		ret = -FI_EINVAL;
	mrf_monitor_lock();
	if (ret)
		end_sub_locked(lender, sub);
	mrf_monitor_unlock();
	return ret;
}

/* -FI_E* without a line: the borrower asks in order to find out. */
static int subscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	struct lender *lender = lender_of(monitor);
	struct sub *sub;

	if (!is_ours(lender))
		return -FI_EPERM;
	if (!len || len > UINTPTR_MAX - mrf_page_size() - (uintptr_t)addr)
		return -FI_EINVAL;
	free_ended(lender);
	sub = sub_new(lender, addr, len);
	return sub ? watch_sub(lender, sub) : -FI_ENOMEM;
}

static void unsubscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	struct lender *lender = lender_of(monitor);
	struct sub *sub;

	if (!is_ours(lender))
		return;
	mrf_monitor_lock();
	sub = find_sub_locked(lender, addr, len, false);
	if (!sub)
		sub = find_sub_locked(lender, addr, len, true);
	if (sub)
		end_sub_locked(lender, sub);
	mrf_monitor_unlock();
}

static bool lend_valid(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	struct lender *lender = lender_of(monitor);
	bool on;

	if (!is_ours(lender))
		return false;
	mrf_monitor_lock();
	on = find_sub_locked(lender, addr, len, true);
	mrf_monitor_unlock();
	return on;
}

/* --- its life ---------------------------------------------------------------------------- */

static int lend_start(struct fid_mem_monitor *monitor)
{
	struct lender *lender = lender_of(monitor);
	bool usable = true;

	if (!is_ours(lender))
		return -FI_EPERM;
	pthread_mutex_lock(&lender->admin);
	if (!lender->starts) {
		mrf_monitor_add(&lender->client);
		usable = mrf_monitor_usable();
		if (!usable)
			mrf_monitor_remove(&lender->client);
	}
	lender->starts += usable;
	pthread_mutex_unlock(&lender->admin);
	return usable ? 0 : -FI_ENOSYS;
}

static void end_all(struct lender *lender)
{
	mrf_monitor_lock();
	while (!mrf_list_empty(&lender->subs))
		end_sub_locked(lender, mrf_list_entry(lender->subs.next, struct sub, node));
	mrf_monitor_unlock();
	free_ended(lender);
}

static void await_told(struct lender *lender)
{
	bool telling;

	do {
		mrf_monitor_lock();
		telling = lender->telling;
		mrf_monitor_unlock();
		if (telling)
			usleep(20);
	} while (telling);
}

static void lend_stop(struct fid_mem_monitor *monitor)
{
	struct lender *lender = lender_of(monitor);

	if (!is_ours(lender))
		return;
	pthread_mutex_lock(&lender->admin);
	if (lender->starts && !--lender->starts) {
		end_all(lender);
		mrf_monitor_remove(&lender->client);
	}
	pthread_mutex_unlock(&lender->admin);
}

static struct fi_ops_mem_monitor export_ops = {
	.size = sizeof(export_ops),
	.start = lend_start,
	.stop = lend_stop,
	.subscribe = subscribe,
	.unsubscribe = unsubscribe,
	.valid = lend_valid,
};

static int close_lender(struct fid *fid)
{
	struct lender *lender = mrf_container_of(fid, struct lender, monitor.fid);

	if (!is_ours(lender))
		return mrf_refuse(FI_EPERM, FI_LOG_MR, 3076,
				  "fi_close of an exported monitor: the parent of this process "
				  "exported it");
	if (lender->starts)
		return mrf_refuse(FI_EBUSY, FI_LOG_MR, 3077,
				  "fi_close of an exported monitor: it was started and not "
				  "stopped; close the object that it was imported into first");
	await_told(lender);
	free_ended(lender);
	pthread_mutex_destroy(&lender->admin);
	free(lender);
	return 0;
}

static struct fi_ops lender_ops = {
	.size = sizeof(lender_ops),
	.close = close_lender,
};

bool mrf_monitor_lent(const struct fid_mem_monitor *monitor)
{
	return monitor->export_ops == &export_ops;
}

static struct lender *lender_new(void *context)
{
	struct lender *lender = calloc(1, sizeof(*lender));

	if (!lender)
		return NULL;
	lender->monitor.fid.fclass = FI_CLASS_MEM_MONITOR;
	lender->monitor.fid.context = context;
	lender->monitor.fid.ops = &lender_ops;
	lender->monitor.export_ops = &export_ops;
	lender->owner = mrf_fork_here();
	pthread_mutex_init(&lender->admin, NULL);
	lender->client.drop = drop_nothing;
	lender->client.told_locked = notify_locked;
	lender->client.local = true;
	mrf_list_init(&lender->subs);
	mrf_list_init(&lender->ended);
	return lender;
}

int mrf_monitor_export(uint64_t flags, struct fid **expfid, void *context)
{
	struct lender *lender;

	if (flags || !expfid)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3078,
				  "fi_export_fid: flags=0x%llx, expfid=%p: flags must be 0, and "
				  "expfid given",
				  (unsigned long long)flags, (void *)expfid);
	lender = lender_new(context);
	if (!lender)
		return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3079, "fi_export_fid: out of memory");
	*expfid = &lender->monitor.fid;
	return 0;
}
