/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application as others write them: built with nothing but what pkg-config says
 * about the installed library, in C. Every public header is used; the inline calls
 * must reach the tables of objects that the application made itself, and the calls
 * of the library must answer without any fabric being there.
 * Exit: 0, or 1 with a line for each fault.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strdup(), whatever the -std= */
#endif

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_ext_psm2.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int faults;

#define CHECK(cond)                                                       \
	do {                                                              \
		if (!(cond)) {                                            \
			printf("not ok: line %d: %s\n", __LINE__, #cond); \
			faults++;                                         \
		}                                                         \
	} while (0)

/* a domain and a region of the application's own making */
static struct fid_mr own_mr;
static uint64_t seen_access, seen_key;
static int seen_command, seen_close;

static int own_close(struct fid *fid)
{
	(void)fid;
	seen_close++;
	return 0;
}

static int own_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)bfid;
	return flags == FI_REMOTE_WRITE ? 0 : -FI_EBADFLAGS;
}

static int own_control(struct fid *fid, int command, void *arg)
{
	seen_command = command;
	if (command == FI_REFRESH) {
		const struct fi_mr_modify *modify = (const struct fi_mr_modify *)arg;

		return (int)modify->attr.iov_count;
	}
	if (command == FI_MAP_RAW_MR)
		*((struct fi_mr_map_raw *)arg)->key = 99;
	return fid->fclass == FI_CLASS_MR || fid->fclass == FI_CLASS_DOMAIN ? 0 : -FI_EINVAL;
}

static int own_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		   uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	(void)fid;
	if (!buf || !len || offset || flags)
		return -FI_EINVAL;
	seen_access = access;
	own_mr.key = requested_key;
	own_mr.fid.context = context;
	*mr = &own_mr;
	return 0;
}

static int own_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		       struct fid_mr **mr)
{
	return own_reg(fid, attr->mr_iov->iov_base, attr->mr_iov->iov_len, attr->access,
		       attr->offset, attr->requested_key, flags, mr, attr->context);
}

static ssize_t own_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	(void)ep;
	(void)buf;
	(void)desc;
	(void)dest_addr;
	(void)addr;
	(void)context;
	seen_key = key;
	return (ssize_t)len;
}

static void check_regions(void)
{
	struct fi_ops ops;
	struct fi_ops_mr mr_ops;
	struct fid_domain domain;
	struct fid_mr *mr = NULL;
	struct fi_mr_attr attr;
	struct iovec iov;
	char buf[64] = { 0 };
	uint8_t raw[16] = { 0 };
	uint64_t key = 0;

	memset(&ops, 0, sizeof(ops));
	ops.size = sizeof(ops);
	ops.close = own_close;
	ops.bind = own_bind;
	ops.control = own_control;
	memset(&mr_ops, 0, sizeof(mr_ops));
	mr_ops.size = sizeof(mr_ops);
	mr_ops.reg = own_reg;
	mr_ops.regattr = own_regattr;
	memset(&domain, 0, sizeof(domain));
	domain.fid.fclass = FI_CLASS_DOMAIN;
	domain.fid.ops = &ops;
	domain.mr = &mr_ops;
	own_mr.fid.fclass = FI_CLASS_MR;
	own_mr.fid.ops = &ops;

	CHECK(fi_mr_reg(&domain, buf, sizeof(buf), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 42, 0, &mr,
			buf) == 0);
	CHECK(mr == &own_mr && fi_mr_key(mr) == 42 && !fi_mr_desc(mr));
	CHECK(seen_access == (FI_REMOTE_READ | FI_REMOTE_WRITE));

	memset(&attr, 0, sizeof(attr));
	iov.iov_base = buf;
	iov.iov_len = sizeof(buf);
	attr.mr_iov = &iov;
	attr.iov_count = 1;
	attr.access = FI_REMOTE_READ;
	attr.requested_key = 43;
	attr.iface = FI_HMEM_SYSTEM;
	CHECK(fi_mr_regattr(&domain, &attr, 0, &mr) == 0);
	CHECK(fi_mr_key(mr) == 43 && seen_access == FI_REMOTE_READ);

	CHECK(fi_mr_bind(mr, &domain.fid, FI_REMOTE_WRITE) == 0);
	CHECK(fi_mr_bind(mr, &domain.fid, 0) == -FI_EBADFLAGS);
	CHECK(fi_mr_enable(mr) == 0 && seen_command == FI_ENABLE);
	CHECK(fi_mr_refresh(mr, &iov, 1, 0) == 1 && seen_command == FI_REFRESH);
	CHECK(fi_mr_map_raw(&domain, 0, raw, sizeof(raw), &key, 0) == 0 && key == 99);
	CHECK(fi_mr_unmap_key(&domain, key) == 0 && seen_command == FI_UNMAP_KEY);
	CHECK(fi_close(&mr->fid) == 0 && seen_close == 1);
}

static void check_endpoint(void)
{
	struct fi_ops_rma rma;
	struct fi_ops_cm cm;
	struct fid_ep ep;
	struct fi_rma_iov rma_iov = { 0, 8, 7 };

	memset(&rma, 0, sizeof(rma));
	rma.size = sizeof(rma);
	rma.write = own_write;
	memset(&cm, 0, sizeof(cm));
	cm.size = offsetof(struct fi_ops_cm, join);
	memset(&ep, 0, sizeof(ep));
	ep.rma = &rma;
	ep.cm = &cm;
	CHECK(fi_write(&ep, &rma_iov, rma_iov.len, NULL, FI_ADDR_UNSPEC, rma_iov.addr, rma_iov.key,
		       NULL) == 8);
	CHECK(seen_key == 7);
	CHECK(fi_join(&ep, NULL, 0, NULL, NULL) == -FI_ENOSYS);
}

/* what is only named here must be there, and hold what its subject needs */
static void check_types(void)
{
	struct fi_triggered_context2 triggered;
	struct fi_msg_tagged tagged;
	struct fi_msg_atomic atomic;
	struct fi_msg_collective collective;
	struct fid_mem_monitor monitor;
	struct fi_cq_err_entry error;

	CHECK(sizeof(triggered) >= sizeof(struct fi_context2));
	CHECK(sizeof(struct fi_triggered_context) >= sizeof(struct fi_context));
	CHECK(sizeof(tagged.tag) == 8 && sizeof(tagged.ignore) == 8);
	CHECK(sizeof(atomic.op) == sizeof(enum fi_op));
	CHECK(sizeof(collective.coll) == sizeof(enum fi_collective_op));
	CHECK(sizeof(monitor.import_ops->notify) == sizeof(void *));
	CHECK(sizeof(error.err_data_size) == sizeof(size_t));
	CHECK(sizeof(fi_param_get_int(NULL, NULL, NULL)) == sizeof(int));
	CHECK(sizeof(&fi_log) == sizeof(void *));
	CHECK(count_of(((struct fi_context2 *)0)->internal) == 8);
	CHECK(FI_LOG_MAX > FI_LOG_DEBUG && FI_LOG_SUBSYS_MAX > FI_LOG_MR);
	CHECK(FI_PSM2_DISCONNECT == (FI_PROV_SPECIFIC | 1));
	CHECK(FI_DATATYPE_LAST == FI_INT128 && FI_BARRIER != FI_GATHER);
	CHECK(fi_tc_dscp_get(fi_tc_dscp_set(46)) == 46);
}

/* --- a memory monitor, as Open MPI 4.1 and 5 lend theirs ------------------------------------ */

static int monitor_start(struct fid_mem_monitor *monitor)
{
	(void)monitor;
	return 0;
}

static void monitor_stop(struct fid_mem_monitor *monitor)
{
	(void)monitor;
}

static int monitor_subscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
	return 0;
}

static void monitor_unsubscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
}

static bool monitor_valid(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
	return true;
}

static struct fi_ops_mem_monitor monitor_ops = {
	.size = sizeof(struct fi_ops_mem_monitor),
	.start = monitor_start,
	.stop = monitor_stop,
	.subscribe = monitor_subscribe,
	.unsubscribe = monitor_unsubscribe,
	.valid = monitor_valid,
};

/* The monitor has no operations of its own to close it; the cache is closed before it. */
static void check_monitor(void)
{
	struct fid_mem_monitor *monitor = calloc(1, sizeof(*monitor));
	struct fid *cache = NULL;

	CHECK(fi_open(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &cache, NULL) == 0);
	if (!cache || !monitor)
		return;
	monitor->fid.fclass = FI_CLASS_MEM_MONITOR;
	monitor->export_ops = &monitor_ops;
	CHECK(fi_import_fid(cache, &monitor->fid, 0) == 0);
	CHECK(monitor->import_ops && monitor->import_ops->notify);
	monitor->import_ops->notify(monitor, &cache, sizeof(cache));
	CHECK(fi_close(cache) == 0);
	CHECK(fi_close(&monitor->fid) == 0);
	CHECK(fi_import(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &monitor->fid, NULL) == 0);
	CHECK(fi_close(&monitor->fid) == 0);
	free(monitor);
}

static void check_library(void)
{
	struct fi_info *hints, *info = NULL;
	uint32_t version = fi_version();
	int ret;

	CHECK(FI_VERSION_GE(version, FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)));
	CHECK(FI_MAJOR(version) == FI_MAJOR_VERSION);
	CHECK(fi_strerror(FI_ENOKEY) && strlen(fi_strerror(FI_ENOKEY)) > 0);
	CHECK(strcmp(fi_strerror(FI_ENOKEY), fi_strerror(FI_EINVAL)) != 0);

	hints = fi_allocinfo();
	CHECK(hints && hints->fabric_attr && hints->domain_attr && hints->ep_attr);
	if (!hints)
		return;
	hints->fabric_attr->prov_name = strdup("no-such-provider");
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	CHECK(ret == -FI_ENODATA && !info);
	fi_freeinfo(hints);
}

int main(void)
{
	check_regions();
	check_endpoint();
	check_types();
	check_library();
	check_monitor();
	printf("t_consumer: %d faults\n", faults);
	return faults ? 1 : 0;
}
