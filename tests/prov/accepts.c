/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of the libfabric that is installed: compiled with its headers, linked with its library,
 * and carried by libmrfab's module, as FI_PROVIDER_PATH and FI_PROVIDER say. Each case is something
 * that real programs ask for and that libfabric's own providers accept. It is its own peer.
 *
 * Usage: accepts [NAME...]. Prints "ok NAME" or "not ok NAME: why", then a line with the sums.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define ALL_ACCESS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define LEN 65536
#define WAIT_MS 20000

static char why[400];

#define must(cond, ...)                                          \
	do {                                                     \
		if (!(cond)) {                                   \
			snprintf(why, sizeof(why), __VA_ARGS__); \
			return false;                            \
		}                                                \
	} while (0)
#define must_ok(call)                                                                         \
	do {                                                                                  \
		long must_ret = (long)(call);                                                 \
		must(!must_ret, "%s: %ld, %s", #call, must_ret, fi_strerror((int)-must_ret)); \
	} while (0)

/* --- one endpoint that talks to itself -------------------------------------------------- */

struct node {
	struct fi_info *hints, *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct fid_cntr *put, *get, *arrived; /* of shmem; NULL otherwise */
	fi_addr_t self;
	char *mem;
	size_t cq_size;
};

static struct node n;

static void node_close(void)
{
	struct fid *const fids[] = {
		n.mr ? &n.mr->fid : NULL,	    n.ep ? &n.ep->fid : NULL,
		n.put ? &n.put->fid : NULL,	    n.get ? &n.get->fid : NULL,
		n.arrived ? &n.arrived->fid : NULL, n.cq ? &n.cq->fid : NULL,
		n.av ? &n.av->fid : NULL,	    n.domain ? &n.domain->fid : NULL,
		n.fabric ? &n.fabric->fid : NULL,
	};

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++) {
		if (fids[i])
			fi_close(fids[i]);
	}
	fi_freeinfo(n.info);
	fi_freeinfo(n.hints);
	free(n.mem);
	n = (struct node){ 0 };
}

static bool hints_make(void)
{
	n.hints = fi_allocinfo();
	must(n.hints, "no memory");
	n.hints->caps = FI_RMA | FI_ATOMIC;
	n.hints->mode = FI_CONTEXT | FI_CONTEXT2;
	n.hints->ep_attr->type = FI_EP_RDM;
	n.hints->domain_attr->mr_mode = BASIC;
	return true;
}

static bool info_get(void)
{
	must_ok(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, n.hints, &n.info));
	must(!strcmp(n.info->fabric_attr->prov_name,
		     getenv("PROV_NAME") ? getenv("PROV_NAME") : "mrfab"),
	     "the provider is %s", n.info->fabric_attr->prov_name);
	return true;
}

static bool domain_open(enum fi_av_type av_type)
{
	struct fi_av_attr av_attr = { .type = av_type };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .size = n.cq_size };

	must_ok(fi_fabric(n.info->fabric_attr, &n.fabric, NULL));
	must_ok(fi_domain(n.fabric, n.info, &n.domain, NULL));
	must_ok(fi_av_open(n.domain, &av_attr, &n.av, NULL));
	must_ok(fi_cq_open(n.domain, &cq_attr, &n.cq, NULL));
	n.mem = calloc(1, 2 * LEN);
	must(n.mem, "no memory");
	return true;
}

static bool node_open(void)
{
	if (!domain_open(FI_AV_MAP))
		return false;
	must_ok(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	must_ok(fi_ep_bind(n.ep, &n.av->fid, 0));
	must_ok(fi_ep_bind(n.ep, &n.cq->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(n.ep));
	return true;
}

static bool self_insert(void)
{
	char name[64];
	size_t len = 0;
	int ret = fi_getname(&n.ep->fid, NULL, &len);

	must(ret == -FI_ETOOSMALL && len && len <= sizeof(name), "fi_getname of 0 bytes: %d, %zu",
	     ret, len);
	must_ok(fi_getname(&n.ep->fid, name, &len));
	must(fi_av_insert(n.av, name, 1, &n.self, 0, NULL) == 1, "fi_av_insert");
	return true;
}

static bool opened(void)
{
	return hints_make() && info_get() && node_open() && self_insert();
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

static bool completed(void *context)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entry;
	long end = now_ms() + WAIT_MS;
	ssize_t ret;

	while ((ret = fi_cq_read(n.cq, &entry, 1)) == -FI_EAGAIN)
		must(now_ms() < end, "no completion");
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(n.cq, &err, 0);
		must(false, "error %d, %s", err.err,
		     fi_cq_strerror(n.cq, err.prov_errno, err.err_data, NULL, 0));
	}
	must(ret == 1 && entry.op_context == context, "fi_cq_read: %zd", ret);
	return true;
}

static uint64_t remote(size_t off)
{
	return (n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)n.mem : 0) +
	       off;
}

/* Writes from the second half of the memory into the first, which is registered. */
static bool write_works(size_t off, size_t len)
{
	struct fi_context2 ctx;

	memset(n.mem + LEN, (int)(off % 251) + 1, len);
	must_ok(fi_write(n.ep, n.mem + LEN, len, NULL, n.self, remote(off), fi_mr_key(n.mr), &ctx));
	if (!completed(&ctx))
		return false;
	must(!memcmp(n.mem + off, n.mem + LEN, len), "the bytes are not there");
	return true;
}

static bool region(uint64_t access, uint64_t requested)
{
	must_ok(fi_mr_reg(n.domain, n.mem, LEN, access, 0, requested, 0, &n.mr, NULL));
	return true;
}

/* --- cases -------------------------------------------------------------------------------- */

static bool hints_without_rx_attr(void)
{
	must(hints_make(), "hints");
	free(n.hints->rx_attr);
	n.hints->rx_attr = NULL;
	n.hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	n.hints->tx_attr->inject_size = 16;
	n.hints->domain_attr->mr_key_size = 1;
	n.hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	n.hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	n.hints->domain_attr->threading = FI_THREAD_DOMAIN;
	return info_get() && node_open() && self_insert() && region(ALL_ACCESS, 1) &&
	       write_works(8, 100);
}

static bool a_pointer_as_requested_key(void)
{
	return opened() && region(ALL_ACCESS, (uint64_t)(uintptr_t)&n) && write_works(0, 5000);
}

static bool capability_bits_in_access(void)
{
	return opened() && region(ALL_ACCESS | FI_RMA, 0) && write_works(64, 64);
}

static bool access_of_messages_only(void)
{
	return opened() && region(FI_SEND | FI_RECV, 0xC0DE);
}

/* Sandia OpenSHMEM, with remote virtual addressing: all of memory, by addresses. */
static bool a_region_of_all_memory(void)
{
	struct fi_context2 ctx;

	must(hints_make(), "hints");
	n.hints->domain_attr->mr_mode = 0;
	if (!info_get() || !node_open() || !self_insert())
		return false;
	must_ok(fi_mr_reg(n.domain, NULL, UINT64_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
			  &n.mr, NULL));
	memset(n.mem + LEN, 7, 300);
	must_ok(fi_write(n.ep, n.mem + LEN, 300, NULL, n.self, (uint64_t)(uintptr_t)n.mem + 5, 1,
			 &ctx));
	if (!completed(&ctx))
		return false;
	must(!memcmp(n.mem + 5, n.mem + LEN, 300), "the bytes are not there");
	return true;
}

/* Which would run it without what it is to be tested with. */
static bool mr_mode_0_is_not_taken_for_a_required_mode(void)
{
	static const char *const modes[] = { "LOCAL",	 "RAW",	       "VIRT_ADDR", "ALLOCATED",
					     "PROV_KEY", "MMU_NOTIFY", "RMA_EVENT", "ENDPOINT" };
	int ret = -FI_ENODATA;
	size_t i;

	must(hints_make(), "hints");
	n.hints->domain_attr->mr_mode = 0;
	n.hints->fabric_attr->prov_name = strdup("mrfab");
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]) && ret == -FI_ENODATA; i++) {
		setenv("FI_MRFAB_MR_MODE", modes[i], 1);
		ret = fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, n.hints, &n.info);
	}
	unsetenv("FI_MRFAB_MR_MODE");
	must(ret == -FI_ENODATA, "under %s fi_getinfo gave %d", modes[i - 1], ret);
	return info_get();
}

static bool contexts_are_offered_back(void)
{
	if (!hints_make() || !info_get())
		return false;
	must(!(n.info->mode & ~n.hints->mode), "mode %#lx", (unsigned long)n.info->mode);
	return true;
}

static bool deep_queues(void)
{
	must(hints_make(), "hints");
	n.hints->tx_attr->size = 65536;
	n.hints->rx_attr->size = 65536;
	n.cq_size = 65536;
	return info_get() && node_open() && self_insert() && region(ALL_ACCESS, 0) &&
	       write_works(1, 1);
}

static bool a_queue_of_rxm_s_size(void)
{
	must(hints_make(), "hints");
	n.cq_size = 262144;
	return info_get() && node_open() && self_insert() && region(ALL_ACCESS, 0) &&
	       write_works(1, 1);
}

static bool recv_without_msg(void)
{
	must(hints_make(), "hints");
	n.hints->caps |= FI_RECV | FI_SEND;
	return info_get();
}

static bool a_counter_after_enabling(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	bool ok;

	if (!opened())
		return false;
	must_ok(fi_cntr_open(n.domain, &attr, &cntr, NULL));
	must_ok(fi_ep_bind(n.ep, &cntr->fid, FI_WRITE));
	ok = region(ALL_ACCESS, 0) && write_works(3, 9);
	if (ok && fi_cntr_read(cntr) != 1) {
		snprintf(why, sizeof(why), "the counter is %lu", (unsigned long)fi_cntr_read(cntr));
		ok = false;
	}
	fi_close(&n.ep->fid);
	n.ep = NULL;
	fi_close(&cntr->fid);
	return ok;
}

static bool endpoint_close(void)
{
	must_ok(fi_close(&n.ep->fid));
	n.ep = NULL;
	return true;
}

/* fi_rma_bw -t counter: one counter that waits for what is sent, one that is bound to all else. */
static bool counters_of_fi_rma_bw(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE };

	if (!opened())
		return false;
	must_ok(fi_cntr_open(n.domain, &attr, &n.put, NULL));
	must_ok(fi_cntr_open(n.domain, &attr, &n.arrived, NULL));
	must_ok(fi_ep_bind(n.ep, &n.put->fid, FI_SEND | FI_READ | FI_WRITE));
	must_ok(fi_ep_bind(n.ep, &n.arrived->fid, FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE));
	if (!region(ALL_ACCESS, 0) || !write_works(3, 9))
		return false;
	must_ok(fi_cntr_wait(n.put, 1, WAIT_MS));
	return endpoint_close();
}

/* fi_multi_mr: a counter with FI_WAIT_NONE for each region, which it waits for. */
static bool counters_of_fi_multi_mr(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE };

	must(hints_make(), "hints");
	n.hints->caps |= FI_RMA_EVENT;
	if (!info_get() || !node_open() || !self_insert() || !region(ALL_ACCESS, 0))
		return false;
	must_ok(fi_cntr_open(n.domain, &attr, &n.arrived, NULL));
	must_ok(fi_mr_bind(n.mr, &n.arrived->fid, FI_REMOTE_WRITE));
	if (!write_works(3, 9))
		return false;
	must_ok(fi_cntr_wait(n.arrived, 1, WAIT_MS));
	must_ok(fi_close(&n.arrived->fid));
	n.arrived = NULL;
	return true;
}

/* Nobody waits for ever for one that cannot count, also where the rules are not strict. */
static bool a_counter_that_would_never_count_is_refused(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	int ret;

	if (!opened())
		return false;
	must_ok(fi_cntr_open(n.domain, &attr, &n.arrived, NULL));
	must_ok(fi_mr_reg(n.domain, n.mem, LEN, ALL_ACCESS, 0, 0, FI_RMA_EVENT, &n.mr, NULL));
	ret = fi_mr_bind(n.mr, &n.arrived->fid, FI_REMOTE_WRITE);
	must(ret == -FI_EBADFLAGS, "fi_mr_bind returned %d", ret);
	return true;
}

/* As ofi_rxm registers what it does not want to be cached. */
static bool the_flag_of_a_layer(void)
{
	if (!opened())
		return false;
	must_ok(fi_mr_reg(n.domain, n.mem, LEN, ALL_ACCESS, 0, 0, 1ull << 60, &n.mr, NULL));
	return write_works(8, 8);
}

/* Longer structures than ours are read by newer releases. */
static bool a_copy_of_what_is_offered(void)
{
	struct fi_info *copy;
	bool same;

	if (!hints_make() || !info_get())
		return false;
	copy = fi_dupinfo(n.info);
	must(copy, "fi_dupinfo");
	/* The network card is copied by a call of the provider's. */
	same = !strcmp(copy->domain_attr->name, n.info->domain_attr->name) &&
	       copy->domain_attr->mr_mode == n.info->domain_attr->mr_mode && copy->nic &&
	       copy->nic != n.info->nic &&
	       !strcmp(copy->nic->device_attr->name, n.info->nic->device_attr->name);
	fi_freeinfo(copy);
	must(same, "the copy differs");
	return true;
}

static bool atomics(void)
{
	uint64_t one = 1, two = 2, old = 0, *there;
	struct fi_context2 ctx;

	if (!opened() || !region(ALL_ACCESS, 0))
		return false;
	there = (uint64_t *)(void *)n.mem;
	*there = 41;
	must_ok(fi_fetch_atomic(n.ep, &one, 1, NULL, &old, NULL, n.self, remote(0), fi_mr_key(n.mr),
				FI_UINT64, FI_SUM, &ctx));
	if (!completed(&ctx))
		return false;
	must(old == 41 && *there == 42, "%lu, %lu", (unsigned long)old, (unsigned long)*there);
	one = 42;
	must_ok(fi_compare_atomic(n.ep, &two, 1, NULL, &one, NULL, &old, NULL, n.self, remote(0),
				  fi_mr_key(n.mr), FI_UINT64, FI_CSWAP, &ctx));
	if (!completed(&ctx))
		return false;
	must(old == 42 && *there == 2, "%lu, %lu", (unsigned long)old, (unsigned long)*there);
	return true;
}

/* --- as OpenSHMEM does it, in the modes that it is built for ------------------------------- */

static bool shmem_hints(int mr_mode)
{
	must(hints_make(), "hints");
	free(n.hints->rx_attr);
	n.hints->rx_attr = NULL;
	n.hints->caps |= FI_RMA_EVENT;
	n.hints->mode = 0;
	n.hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	n.hints->tx_attr->inject_size = 16;
	n.hints->domain_attr->mr_key_size = 1;
	n.hints->domain_attr->mr_mode = mr_mode;
	n.hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	n.hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	n.hints->domain_attr->threading = FI_THREAD_DOMAIN;
	return true;
}

static bool shmem_counters(void)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP,
					  .wait_obj = FI_WAIT_UNSPEC };

	must_ok(fi_cntr_open(n.domain, &cntr_attr, &n.put, NULL));
	must_ok(fi_cntr_open(n.domain, &cntr_attr, &n.get, NULL));
	must_ok(fi_cntr_open(n.domain, &cntr_attr, &n.arrived, NULL));
	return true;
}

static bool shmem_endpoint(void)
{
	must_ok(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	must_ok(fi_ep_bind(n.ep, &n.av->fid, 0));
	must_ok(fi_ep_bind(n.ep, &n.put->fid, FI_WRITE));
	must_ok(fi_ep_bind(n.ep, &n.get->fid, FI_READ));
	must_ok(fi_ep_bind(n.ep, &n.cq->fid, FI_SELECTIVE_COMPLETION | FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(n.ep));
	return true;
}

/* The address is not asked for: it is the index. */
static bool shmem_insert(void)
{
	char name[64];
	size_t len = sizeof(name);

	must_ok(fi_getname(&n.ep->fid, name, &len));
	must(fi_av_insert(n.av, name, 1, NULL, 0, NULL) == 1, "fi_av_insert");
	n.self = 0;
	return true;
}

static bool shmem_region(int mr_mode)
{
	uint64_t flags = mr_mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;

	must_ok(fi_mr_reg(n.domain, n.mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, flags,
			  &n.mr, NULL));
	must_ok(fi_mr_bind(n.mr, &n.arrived->fid, FI_REMOTE_WRITE));
	if (mr_mode & FI_MR_ENDPOINT)
		must_ok(fi_mr_bind(n.mr, &n.ep->fid, 0));
	if (mr_mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT))
		must_ok(fi_mr_enable(n.mr));
	return true;
}

static bool counted(struct fid_cntr *cntr, uint64_t want, const char *name)
{
	int ret = fi_cntr_wait(cntr, want, WAIT_MS);

	must(!ret && fi_cntr_read(cntr) == want, "%s: %d, %lu of %lu", name, ret,
	     (unsigned long)fi_cntr_read(cntr), (unsigned long)want);
	return true;
}

/* No descriptor anywhere; one of the three is to be completed. */
static bool shmem_puts(void)
{
	char *from = n.mem + LEN;
	struct iovec iov = { from, 4000 };
	struct fi_rma_iov there = { remote(8192), 4000, fi_mr_key(n.mr) };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = n.self,
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = &iov };

	memset(from, 9, 4000);
	must_ok(fi_inject_write(n.ep, from, 8, n.self, remote(0), there.key));
	must_ok(fi_write(n.ep, from, 4000, NULL, n.self, remote(4096), there.key, NULL));
	must_ok(fi_writemsg(n.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	if (!completed(&iov) || !counted(n.put, 3, "put") || !counted(n.arrived, 3, "arrived"))
		return false;
	must(!memcmp(n.mem, from, 8) && !n.mem[8] && !memcmp(n.mem + 4096, from, 4000) &&
		     !memcmp(n.mem + 8192, from, 4000),
	     "the bytes are not there");
	return true;
}

static bool valid(enum fi_datatype type, enum fi_op op, const char *name)
{
	size_t count = 0;

	must(!fi_atomicvalid(n.ep, type, op, &count) && count, "fi_atomicvalid %s", name);
	must(!fi_fetch_atomicvalid(n.ep, type, op, &count) && count, "fi_fetch_atomicvalid %s",
	     name);
	return true;
}

static bool shmem_queries(void)
{
	size_t count = 0;

	must(!fi_compare_atomicvalid(n.ep, FI_UINT32, FI_MSWAP, &count) && count, "FI_MSWAP");
	return valid(FI_INT32, FI_SUM, "int32") && valid(FI_INT64, FI_BXOR, "int64") &&
	       valid(FI_FLOAT, FI_MAX, "float") && valid(FI_DOUBLE, FI_MIN, "double") &&
	       valid(FI_INT16, FI_ATOMIC_WRITE, "int16");
}

static bool shmem_atomics(void)
{
	uint32_t value = 3, mask = 0xff00, old = 0, *there = (uint32_t *)(void *)(n.mem + 64);
	uint64_t key = fi_mr_key(n.mr);

	must_ok(fi_inject_atomic(n.ep, &value, 1, n.self, remote(64), key, FI_UINT32, FI_SUM));
	if (!counted(n.put, 4, "put"))
		return false;
	must(*there == 3, "%u", *there);
	value = 0xabcd;
	must_ok(fi_compare_atomic(n.ep, &value, 1, NULL, &mask, NULL, &old, NULL, n.self,
				  remote(64), key, FI_UINT32, FI_MSWAP, NULL));
	if (!counted(n.get, 1, "get"))
		return false;
	must(old == 3 && *there == 0xab03, "%u, %#x", old, *there);
	return true;
}

static bool shmem_gets(void)
{
	char *to = n.mem + LEN;

	memset(to, 0, 4000);
	must_ok(fi_read(n.ep, to, 4000, NULL, n.self, remote(4096), fi_mr_key(n.mr), NULL));
	if (!counted(n.get, 2, "get"))
		return false;
	must(!memcmp(n.mem + 4096, to, 4000) && *to == 9, "other bytes");
	return true;
}

static bool shmem(int mr_mode)
{
	if (!shmem_hints(mr_mode) || !info_get())
		return false;
	mr_mode = n.info->domain_attr->mr_mode;
	return domain_open(FI_AV_TABLE) && shmem_counters() && shmem_endpoint() && shmem_insert() &&
	       shmem_region(mr_mode) && shmem_puts() && shmem_queries() && shmem_atomics() &&
	       shmem_gets();
}

static bool shmem_basic(void)
{
	return shmem(BASIC);
}

static bool shmem_scalable(void)
{
	return shmem(0);
}

static bool shmem_rma_event(void)
{
	return shmem(FI_MR_RMA_EVENT);
}

static bool shmem_endpoints(void)
{
	return shmem(FI_MR_ENDPOINT | FI_MR_RMA_EVENT);
}

/* --- as LCI does it -------------------------------------------------------------------------- */

static bool lci_hints(void)
{
	struct fi_info *all = NULL;
	int ret = fi_getinfo(FI_VERSION(1, 6), NULL, NULL, 0, NULL, &all);

	fi_freeinfo(all);
	must(!ret && hints_make(), "fi_getinfo without hints: %d", ret);
	n.hints->domain_attr->mr_mode = BASIC | FI_MR_LOCAL | FI_MR_ENDPOINT;
	n.hints->domain_attr->threading = FI_THREAD_SAFE;
	n.hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	n.hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	n.hints->tx_attr->inject_size = 64;
	n.cq_size = 65536;
	return true;
}

static bool lci_region(void)
{
	struct iovec iov = { n.mem, LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = ALL_ACCESS | FI_SEND | FI_RECV | FI_RMA };

	must_ok(fi_mr_regattr(n.domain, &attr, 0, &n.mr));
	if (!(n.info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return true;
	must_ok(fi_mr_bind(n.mr, &n.ep->fid, 0));
	must_ok(fi_mr_enable(n.mr));
	return true;
}

static bool entries_come(int count)
{
	struct fi_cq_entry entry;
	long end = now_ms() + WAIT_MS;

	while (count) {
		ssize_t ret = fi_cq_read(n.cq, &entry, 1);

		must(ret == 1 || (ret == -FI_EAGAIN && now_ms() < end), "fi_cq_read: %zd", ret);
		count -= ret == 1;
	}
	return true;
}

/* From the second half of the region, which is its descriptor, too, into the first. */
static bool lci_message(bool read, uint64_t flags, size_t len, int entries)
{
	void *desc = fi_mr_desc(n.mr);
	struct iovec iov = { n.mem + LEN / 2, len };
	struct fi_rma_iov there = { remote(0), len, fi_mr_key(n.mr) };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &desc,
				  .iov_count = 1,
				  .addr = n.self,
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = n.mem,
				  .data = 77 };

	memset(n.mem + LEN / 2, (int)(len % 100) + 1, len);
	memset(n.mem, (int)(len % 90) + 2, len);
	must_ok(read ? fi_readmsg(n.ep, &msg, flags) : fi_writemsg(n.ep, &msg, flags));
	if (!entries_come(entries))
		return false;
	must(!memcmp(n.mem, n.mem + LEN / 2, len), "the bytes of %zu differ", len);
	must(*n.mem == (int)(read ? len % 90 + 2 : len % 100 + 1), "they went the wrong way");
	return true;
}

static bool lci_calls(void)
{
	if (!lci_hints() || !info_get() || !node_open() || !self_insert() || !lci_region())
		return false;
	must(n.info->domain_attr->cq_data_size >= 4 && n.info->domain_attr->mr_key_size <= 8,
	     "sizes");
	/* What is to be told to the target is told to this very queue. */
	return lci_message(false, FI_INJECT | FI_COMPLETION, 40, 1) &&
	       lci_message(false, FI_INJECT | FI_COMPLETION | FI_REMOTE_CQ_DATA, 64, 2) &&
	       lci_message(false, FI_COMPLETION | FI_REMOTE_CQ_DATA, 9000, 2) &&
	       lci_message(false, FI_COMPLETION | FI_DELIVERY_COMPLETE, 20000, 1) &&
	       lci_message(true, FI_COMPLETION, 12345, 1);
}

/* What a domain or a fabric of libfabric's own is asked for, and may lack. */
static bool other_providers_are_others(void)
{
	struct fi_info *info = NULL;
	int ret;

	must(hints_make(), "hints");
	n.hints->fabric_attr->prov_name = strdup("tcp");
	ret = fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, n.hints, &info);
	fi_freeinfo(info);
	must(ret == -FI_ENODATA, "tcp under FI_PROVIDER=mrfab: %d", ret);
	free(n.hints->fabric_attr->prov_name);
	n.hints->fabric_attr->prov_name = strdup("mrfab;ofi_rxm");
	ret = fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, n.hints, &info);
	must(ret == -FI_ENODATA, "mrfab;ofi_rxm: %d", ret);
	return true;
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	CASE(hints_without_rx_attr),
	CASE(a_pointer_as_requested_key),
	CASE(capability_bits_in_access),
	CASE(access_of_messages_only),
	CASE(a_region_of_all_memory),
	CASE(mr_mode_0_is_not_taken_for_a_required_mode),
	CASE(contexts_are_offered_back),
	CASE(deep_queues),
	CASE(a_queue_of_rxm_s_size),
	CASE(recv_without_msg),
	CASE(a_counter_after_enabling),
	CASE(counters_of_fi_rma_bw),
	CASE(counters_of_fi_multi_mr),
	CASE(a_counter_that_would_never_count_is_refused),
	CASE(the_flag_of_a_layer),
	CASE(a_copy_of_what_is_offered),
	CASE(atomics),
	CASE(other_providers_are_others),
	CASE(shmem_basic),
	CASE(shmem_scalable),
	CASE(shmem_rma_event),
	CASE(shmem_endpoints),
	CASE(lci_calls),
};

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return true;
	}
	return argc < 2;
}

int main(int argc, char **argv)
{
	unsigned passed = 0, failed = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool ok;

		if (!is_wanted(cases[i].name, argc, argv))
			continue;
		ok = cases[i].run();
		node_close();
		if (ok)
			printf("ok %s\n", cases[i].name);
		else
			printf("not ok %s: %s\n", cases[i].name, why);
		fflush(stdout);
		passed += ok;
		failed += !ok;
	}
	printf("accepts: %u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
