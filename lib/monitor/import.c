/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include "base/log.h"
#include "monitor/import.h"
#include "monitor/life.h"
#include "monitor/monitor.h"

/* The application calls this from anywhere, also from inside its own hook of munmap. */
static void notify(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr;

	(void)monitor;
	if (len)
		mrf_monitor_changing(start, len > UINTPTR_MAX - start ? UINTPTR_MAX : start + len);
}

static struct fi_ops_mem_notify notify_ops = {
	.size = sizeof(notify_ops),
	.notify = notify,
};

static int close_import(struct fid *fid)
{
	if (mrf_monitor_disown((struct fid_mem_monitor *)(void *)fid))
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3071,
				  "fi_close of a memory monitor: it is no longer imported, or "
				  "another process imported it");
	return 0;
}

static struct fi_ops imported_ops = {
	.size = sizeof(imported_ops),
	.close = close_import,
};

static bool complete(const struct fi_ops_mem_monitor *ops)
{
	return ops && ops->size >= sizeof(*ops) && ops->start && ops->stop && ops->subscribe &&
	       ops->unsubscribe && ops->valid;
}

static int check_import(const struct fid *fid, uint64_t flags)
{
	const struct fid_mem_monitor *monitor = (const void *)fid;

	if (flags)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3072,
				  "fi_import_fid: flags must be 0, not 0x%lx", flags);
	if (!fid || fid->fclass != FI_CLASS_MEM_MONITOR)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3073,
				  "fi_import_fid: fid %p of class %zu is not a memory monitor "
				  "(class %d)",
				  (const void *)fid, fid ? fid->fclass : 0, FI_CLASS_MEM_MONITOR);
	if (!complete(monitor->export_ops))
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3074,
				  "fi_import_fid: export_ops must have size %zu and start, stop, "
				  "subscribe, unsubscribe and valid",
				  sizeof(*monitor->export_ops));
	return 0;
}

int mrf_monitor_import(struct fid *fid, uint64_t flags)
{
	int ret = check_import(fid, flags);

	if (ret)
		return ret;
	ret = mrf_monitor_adopt((struct fid_mem_monitor *)(void *)fid, &notify_ops, &imported_ops);
	if (!ret)
		return 0;
	return mrf_refuse(FI_EBUSY, FI_LOG_MR, 3075, "fi_import_fid: %s",
			  ret == -FI_EALREADY
				  ? "a monitor is imported already: close it first"
				  : "the library's own monitor is in use: import before "
				    "a domain is opened");
}
