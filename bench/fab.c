/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "bench.h"
#include "fab.h"

#define RIGHTS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

int fab_find_other(struct fab_lib *lib)
{
	void *so;

	/* For more peers it wants a longer completion queue than rxe has. */
	setenv("FI_UNIVERSE_SIZE", "2", 0);
	/* Else it registers nothing: it finds what is already registered. */
	setenv("FI_MR_CACHE_MAX_COUNT", "0", 0);
	/* Its own symbols first: the names are the same as libmrfab's. */
	so = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!so)
		return 0;
	lib->provider = "verbs";
	*(void **)&lib->getinfo = dlsym(so, "fi_getinfo");
	*(void **)&lib->fabric = dlsym(so, "fi_fabric");
	*(void **)&lib->dupinfo = dlsym(so, "fi_dupinfo");
	*(void **)&lib->version = dlsym(so, "fi_version");
	return lib->getinfo && lib->fabric && lib->dupinfo && lib->version;
}

static struct fi_info *wanted(const struct fab_lib *lib, int mr_mode, uint64_t caps)
{
	struct fi_info *hints = lib->dupinfo(NULL);

	bench_must_errno("fi_allocinfo", !!hints);
	hints->caps = FI_RMA | caps;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	hints->fabric_attr->prov_name = strdup(lib->provider);
	return hints;
}

int fab_open_domain(struct fab *fab, const struct fab_lib *lib, int mr_mode, uint64_t caps)
{
	/* Never freed: what the process opens here it keeps. */
	struct fi_info *hints = wanted(lib, mr_mode, caps);
	int ret;

	ret = lib->getinfo(FI_VERSION(1, 17), BENCH_ADDRESS, NULL, FI_SOURCE, hints, &fab->info);
	if (!ret)
		ret = lib->fabric(fab->info->fabric_attr, &fab->fabric, NULL);
	if (!ret)
		ret = fi_domain(fab->fabric, fab->info, &fab->domain, NULL);
	return ret;
}

static int open_endpoint(struct fab *fab)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT,
				      .size = 256,
				      .wait_obj = fab->waits ? FI_WAIT_UNSPEC : FI_WAIT_NONE };
	int ret = fi_av_open(fab->domain, &av_attr, &fab->av, NULL);

	if (!ret)
		ret = fi_cq_open(fab->domain, &cq_attr, &fab->cq, NULL);
	if (!ret)
		ret = fi_endpoint(fab->domain, fab->info, &fab->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(fab->ep, &fab->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(fab->ep, &fab->cq->fid, FI_TRANSMIT | FI_RECV);
	return ret ? ret : fi_enable(fab->ep);
}

static void count(struct fab *fab)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };

	bench_must("fi_cntr_open", fi_cntr_open(fab->domain, &attr, &fab->cntr, NULL));
	bench_must("fi_mr_bind", fi_mr_bind(fab->mr, &fab->cntr->fid, FI_REMOTE_WRITE));
}

int fab_open(struct fab *fab, const struct fab_lib *lib, int mr_mode, uint64_t caps, void *buf,
	     size_t len)
{
	int ret;

	ret = fab_open_domain(fab, lib, mr_mode, caps);
	if (!ret)
		ret = open_endpoint(fab);
	if (ret)
		return ret;
	fab->mr = fab_register_one(fab, buf, len);
	if (caps & FI_RMA_EVENT)
		count(fab);
	return 0;
}

void fab_name(const struct fab *fab, char name[FAB_NAME_LEN])
{
	size_t len = FAB_NAME_LEN;

	memset(name, 0, FAB_NAME_LEN);
	bench_must("fi_getname", fi_getname(&fab->ep->fid, name, &len));
}

void fab_remote(const struct fab *fab, void *buf, struct work_remote *remote)
{
	int virt = fab->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

	remote->addr = virt ? (uintptr_t)buf : 0;
	remote->key = fi_mr_key(fab->mr);
}

void fab_insert(struct fab *fab, const char name[FAB_NAME_LEN])
{
	bench_must("fi_av_insert", fi_av_insert(fab->av, name, 1, &fab->peer, 0, NULL) - 1);
}

void fab_progress(struct fab *fab)
{
	struct fi_cq_entry entry;

	fi_cq_read(fab->cq, &entry, 1);
}

struct fid_mr *fab_register_one(struct fab *fab, void *buf, size_t len)
{
	struct fid_mr *mr;

	bench_must("fi_mr_reg",
		   fi_mr_reg(fab->domain, buf, len, RIGHTS, 0, fab->next_key++, 0, &mr, NULL));
	return mr;
}

void fab_register(struct fab *fab, const struct work_register *work)
{
	for (unsigned i = 0; i < work->times; i++) {
		struct fid_mr *mr = fab_register_one(fab, work->buf, work->len);

		bench_must("fi_close", fi_close(&mr->fid));
	}
}

/*
 * What is added, 16 bytes at most; with FI_MR_LOCAL it has to be registered. On the heap, as
 * a program would have it there or on a stack: initialised data are a mapping of a file.
 */
static uint64_t *one;

static void make_one(void)
{
	one = bench_alloc(2 * sizeof(*one));
	one[0] = 1;
	one[1] = 0;
}

static void *desc_of_one(struct fab *fab)
{
	if (!fab->one)
		fab->one = fab_register_one(fab, one, 2 * sizeof(*one));
	return fi_mr_desc(fab->one);
}

/* False: no room just now. */
static int start_one(struct fab *fab, const struct work_access *work, void *desc, void *one_desc,
		     void *context)
{
	const struct work_remote *remote = &work->remote;
	ssize_t ret;

	if (work->datatype)
		ret = fi_atomic(fab->ep, one, 1, one_desc, fab->peer, remote->addr, remote->key,
				(enum fi_datatype)work->datatype, (enum fi_op)work->op, context);
	else if (work->fetch_add)
		ret = fi_fetch_atomic(fab->ep, one, 1, one_desc, work->buf, desc, fab->peer,
				      remote->addr, remote->key, FI_UINT64, FI_SUM, context);
	else if (work->use_imm)
		ret = fi_writedata(fab->ep, work->buf, work->len, desc, 1, fab->peer, remote->addr,
				   remote->key, context);
	else
		ret = work->write ? fi_write(fab->ep, work->buf, work->len, desc, fab->peer,
					     remote->addr, remote->key, context)
				  : fi_read(fab->ep, work->buf, work->len, desc, fab->peer,
					    remote->addr, remote->key, context);
	if (ret == -FI_EAGAIN)
		return 0;
	bench_must(work->write ? "fi_write" : "fi_read", ret);
	return 1;
}

static unsigned collect(struct fab *fab)
{
	struct fi_cq_entry entry[WORK_DEPTH];
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_read(fab->cq, entry, WORK_DEPTH);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL && fi_cq_readerr(fab->cq, &err, 0) == 1)
		bench_must("completion", err.err);
	bench_must_errno("fi_cq_read", n > 0);
	return (unsigned)n;
}

static void inject_one(struct fab *fab, const struct work_access *work)
{
	ssize_t ret;

	do
		ret = fi_inject_write(fab->ep, work->buf, work->len, fab->peer, work->remote.addr,
				      work->remote.key);
	while (ret == -FI_EAGAIN && !collect(fab));
	bench_must("fi_inject_write", ret);
}

/* What is injected has no completion: the write behind it tells that all have been done. */
static void inject_all(struct fab *fab, const struct work_access *work, void *desc)
{
	static struct fi_context context;

	for (unsigned done = 0; done < work->times; done += work->depth) {
		for (unsigned i = 1; i < work->depth; i++)
			inject_one(fab, work);
		while (!start_one(fab, work, desc, NULL, &context))
			;
		while (!collect(fab))
			;
	}
}

void fab_access(struct fab *fab, const struct work_access *work)
{
	void *desc = work->use_desc ? fi_mr_desc(fab->mr) : NULL;
	void *one_desc = NULL;
	static struct fi_context contexts[WORK_DEPTH];
	unsigned posted = 0, done = 0, got;

	if (work->inject) {
		inject_all(fab, work, desc);
		return;
	}
	if (!one)
		make_one();
	if (work->fetch_add || work->datatype)
		one_desc = desc_of_one(fab);
	while (done < work->times) {
		while (posted < work->times && posted - done < work->depth &&
		       start_one(fab, work, desc, one_desc, &contexts[posted % WORK_DEPTH]))
			posted++;
		got = collect(fab);
		done += got;
		if (!got && work->yield)
			sched_yield();
	}
}

double fab_completions(struct fab *fab, const struct work_access *work, size_t batch)
{
	void *desc = work->use_desc ? fi_mr_desc(fab->mr) : NULL;
	static struct fi_context contexts[WORK_COMPLETIONS];
	struct fi_cq_entry entry[WORK_COMPLETIONS];
	uint64_t start;
	ssize_t done = 0;

	for (int i = 0; i < WORK_COMPLETIONS; i++)
		bench_must_errno("fi_write", start_one(fab, work, desc, NULL, &contexts[i]));
	usleep(WORK_REST_US);
	start = bench_now();
	while (done < WORK_COMPLETIONS) {
		ssize_t n = fi_cq_read(fab->cq, entry, batch);

		done += n > 0 ? n : 0;
	}
	return (double)(bench_now() - start) / WORK_COMPLETIONS;
}
