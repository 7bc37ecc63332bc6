/* SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/lock.h"
#include "monitor/imported.h"

struct fid_mem_monitor *_Atomic mrf_imported_monitor;
static atomic_uint calls;	/* that are under way */
static _Atomic uint64_t number; /* of the last import */

void mrf_imported_begin(struct fid_mem_monitor *monitor)
{
	atomic_fetch_add(&number, 1);
	atomic_store(&mrf_imported_monitor, monitor);
}

void mrf_imported_end(void)
{
	atomic_store(&mrf_imported_monitor, NULL);
	while (atomic_load(&calls))
		usleep(20);
}

void mrf_imported_in_child(void)
{
	atomic_store(&mrf_imported_monitor, NULL);
	atomic_store(&calls, 0);
}

/* NULL: no monitor is imported. Otherwise the monitor stays until leave_monitor. */
static struct fid_mem_monitor *enter_monitor(void)
{
	struct fid_mem_monitor *monitor;

	mrf_slow_call();
	atomic_fetch_add(&calls, 1);
	monitor = atomic_load(&mrf_imported_monitor);
	if (!monitor)
		atomic_fetch_sub(&calls, 1);
	return monitor;
}

static void leave_monitor(void)
{
	atomic_fetch_sub(&calls, 1);
}

int mrf_imported_start(void)
{
	struct fid_mem_monitor *monitor = enter_monitor();
	int ret;

	if (!monitor)
		return -FI_ENOSYS;
	ret = monitor->export_ops->start(monitor);
	leave_monitor();
	return ret;
}

void mrf_imported_stop(void)
{
	struct fid_mem_monitor *monitor = enter_monitor();

	if (!monitor)
		return;
	monitor->export_ops->stop(monitor);
	leave_monitor();
}

bool mrf_subscribe(struct mrf_subscription *sub, uintptr_t start, size_t len)
{
	struct fid_mem_monitor *monitor;
	int ret;

	mrf_unsubscribe(sub);
	monitor = enter_monitor();
	if (!monitor)
		return true;
	ret = monitor->export_ops->subscribe(monitor, (const void *)start, len);
	if (!ret)
		*sub = (struct mrf_subscription){ start, len, atomic_load(&number) };
	leave_monitor();
	return !ret;
}

void mrf_unsubscribe(struct mrf_subscription *sub)
{
	struct fid_mem_monitor *monitor;

	if (!sub->len)
		return;
	monitor = enter_monitor();
	if (monitor && sub->import == atomic_load(&number))
		monitor->export_ops->unsubscribe(monitor, (const void *)sub->start, sub->len);
	if (monitor)
		leave_monitor();
	sub->len = 0;
}

bool mrf_subscription_valid(const struct mrf_subscription *sub)
{
	struct fid_mem_monitor *monitor = enter_monitor();
	bool valid;

	if (!monitor)
		return true;
	valid = sub->len && sub->import == atomic_load(&number) &&
		monitor->export_ops->valid(monitor, (const void *)sub->start, sub->len);
	leave_monitor();
	return valid;
}
