/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What Sandia OpenSHMEM 1.5.2 calls of libfabric, as a trace of it has it, for shmem_calls.c. It is not that
 * library. It knows libfabric only. The trace does not say what a region's addresses begin with where
 * FI_MR_VIRT_ADDR is offered and not required: here each process tells the other, 0 then.
 */
#ifndef MRF_TESTS_PROV_SHMEM_H
#define MRF_TESTS_PROV_SHMEM_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PES 2
#define HEAP_KEY 1
#define DATA_KEY 0
#define DATA_LEN 152
#define BYTES 65536
#define CELLS 8
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Both processes have it at one address. */
struct heap {
	uint64_t arrived, released, flag, lock, guarded;
	int64_t longs[CELLS];
	int32_t ints[CELLS];
	double doubles[CELLS];
	uint64_t taken[PES];
	unsigned char bytes[BYTES];
};

static struct {
	bool scalable, rma_event, endpoint, hard_polling, av_map;
} build;

static int me, peer, out_of_band;
static struct heap *heap;
static unsigned char image[DATA_LEN + 1], *const data = image + 1; /* an odd address */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static fi_addr_t mapped[PES]; /* in a map; in a table the number of a process is its address */
static struct fid_cq *target_cq, *cq;
static struct fid_cntr *target_cntr, *put_cntr, *get_cntr;
static struct fid_ep *target_ep, *ep;
static struct fid_mr *heap_mr, *data_mr;
static uint64_t puts_due, gets_due; /* that the counters are to come to */
static int bounced;		    /* writes whose completion is not there yet */

/* --- what either process says --------------------------------------------------------- */

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "process %d: ", me);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

static void must(const char *call, ssize_t ret)
{
	if (ret < 0)
		die("%s: %s", call, fi_strerror((int)-ret));
}

static void tell(const void *from, size_t len)
{
	if (send(out_of_band, from, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("the other process is gone");
}

static void hear(void *to, size_t len)
{
	if (recv(out_of_band, to, len, MSG_WAITALL) != (ssize_t)len)
		die("the other process is gone");
}

/* --- what is opened ------------------------------------------------------------------- */

static uint64_t modes_offered(void)
{
	uint64_t modes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

	if (build.scalable)
		modes = build.rma_event ? FI_MR_RMA_EVENT : 0;
	return modes | (build.endpoint ? FI_MR_ENDPOINT : 0);
}

static uint64_t event_cap(void)
{
	return build.hard_polling ? 0 : FI_RMA_EVENT;
}

static void get_info(void)
{
	struct fi_fabric_attr fabric_attr = { .prov_name = NULL };
	struct fi_domain_attr domain_attr = {
		.threading = FI_THREAD_DOMAIN,
		.data_progress = FI_PROGRESS_AUTO,
		.resource_mgmt = FI_RM_ENABLED,
		.mr_mode = (int)modes_offered(),
		.mr_key_size = 1,
	};
	struct fi_ep_attr ep_attr = { .type = FI_EP_RDM };
	struct fi_tx_attr tx_attr = {
		.op_flags = FI_DELIVERY_COMPLETE,
		.inject_size = sizeof(long double),
	};
	struct fi_info hints = {
		.caps = FI_RMA | FI_ATOMIC | event_cap(),
		.addr_format = FI_FORMAT_UNSPEC,
		.fabric_attr = &fabric_attr,
		.domain_attr = &domain_attr,
		.ep_attr = &ep_attr,
		.tx_attr = &tx_attr,
	};

	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, &hints, &info));
	if (me == 0)
		printf("# %s gives mr_mode 0x%x, inject_size %zu\n", info->fabric_attr->prov_name,
		       (unsigned int)info->domain_attr->mr_mode, info->tx_attr->inject_size);
}

static bool has_mode(uint64_t mode)
{
	return info->domain_attr->mr_mode & mode;
}

static void open_domain(void)
{
	struct fi_av_attr attr = { .type = build.av_map ? FI_AV_MAP : FI_AV_TABLE, .count = PES };

	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	must("fi_av_open", fi_av_open(domain, &attr, &av, NULL));
}

static struct fid_cntr *open_cntr(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	must("fi_cntr_open", fi_cntr_open(domain, &attr, &cntr, NULL));
	return cntr;
}

static struct fid_cq *open_cq(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE };
	struct fid_cq *one;

	must("fi_cq_open", fi_cq_open(domain, &attr, &one, NULL));
	return one;
}

static struct fid_ep *open_ep(uint64_t caps, uint64_t op_flags, struct fid_cq *with)
{
	struct fid_ep *one;

	info->caps = caps;
	info->tx_attr->op_flags = op_flags;
	info->mode = info->tx_attr->mode = info->rx_attr->mode = 0;
	must("fi_endpoint", fi_endpoint(domain, info, &one, NULL));
	must("fi_ep_bind of an AV", fi_ep_bind(one, &av->fid, 0));
	must("fi_ep_bind of a CQ",
	     fi_ep_bind(one, &with->fid, FI_SELECTIVE_COMPLETION | FI_TRANSMIT | FI_RECV));
	return one;
}

/* One that others reach. */
static void open_target(void)
{
	target_cq = open_cq();
	target_ep = open_ep(FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE | event_cap(), 0,
			    target_cq);
	must("fi_enable", fi_enable(target_ep));
}

/* And one for what this process does. */
static void open_context(void)
{
	cq = open_cq();
	put_cntr = open_cntr();
	get_cntr = open_cntr();
	ep = open_ep(FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE, FI_DELIVERY_COMPLETE, cq);
	must("fi_ep_bind of a counter", fi_ep_bind(ep, &put_cntr->fid, FI_WRITE));
	must("fi_ep_bind of a counter", fi_ep_bind(ep, &get_cntr->fid, FI_READ));
	must("fi_enable", fi_enable(ep));
}

static struct fid_mr *register_memory(const void *memory, size_t len, uint64_t key)
{
	bool event = has_mode(FI_MR_RMA_EVENT), endpoint = has_mode(FI_MR_ENDPOINT);
	struct fid_mr *mr;

	must("fi_mr_reg", fi_mr_reg(domain, memory, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key,
				    event ? FI_RMA_EVENT : 0, &mr, NULL));
	if (endpoint)
		must("fi_mr_bind of an endpoint", fi_mr_bind(mr, &target_ep->fid, 0));
	if (target_cntr)
		must("fi_mr_bind of a counter", fi_mr_bind(mr, &target_cntr->fid, FI_REMOTE_WRITE));
	if (event || endpoint)
		must("fi_mr_enable", fi_mr_enable(mr));
	return mr;
}

static void register_all(void)
{
	if (!build.hard_polling)
		target_cntr = open_cntr();
	heap_mr = register_memory(heap, sizeof(*heap), HEAP_KEY);
	data_mr = register_memory(data, DATA_LEN, DATA_KEY);
}

/* --- what the processes know of one another ------------------------------------------- */

static struct known {
	unsigned char name[128];
	uint64_t heap_key, heap_base, data_key, data_base;
} known[PES];

/* A table: process n is address n. */
static void insert_names(size_t len)
{
	unsigned char names[PES * sizeof(known->name)];
	int i;

	for (i = 0; i < PES; i++)
		memcpy(names + (size_t)i * len, known[i].name, len);
	if (fi_av_insert(av, names, PES, build.av_map ? mapped : NULL, 0, NULL) != PES)
		die("fi_av_insert did not take all addresses");
}

static void publish(void)
{
	struct known *mine = &known[me];
	size_t len = sizeof(mine->name);

	must("fi_getname", fi_getname(&target_ep->fid, mine->name, &len));
	mine->heap_key = fi_mr_key(heap_mr);
	mine->data_key = fi_mr_key(data_mr);
	mine->heap_base = has_mode(FI_MR_VIRT_ADDR) ? (uintptr_t)heap : 0;
	mine->data_base = has_mode(FI_MR_VIRT_ADDR) ? (uintptr_t)data : 0;
	tell(mine, sizeof(*mine));
	hear(&known[peer], sizeof(*mine));
	known[peer].heap_key = build.scalable ? HEAP_KEY : known[peer].heap_key;
	known[peer].data_key = build.scalable ? DATA_KEY : known[peer].data_key;
	insert_names(len);
}

/* --- accesses ------------------------------------------------------------------------- */

struct place {
	uint64_t addr, key;
};

/* Where what is at this address here is there. */
static struct place place_of(const void *here, int pe)
{
	uintptr_t at = (uintptr_t)here;
	struct known *there = &known[pe];

	if (at >= (uintptr_t)data && at < (uintptr_t)data + DATA_LEN)
		return (struct place){ there->data_base + at - (uintptr_t)data, there->data_key };
	return (struct place){ there->heap_base + at - (uintptr_t)heap, there->heap_key };
}

/* The error entry has the reason. */
static void failed(const char *what, ssize_t ret)
{
	struct fi_cq_err_entry entry = { 0 };
	char text[256] = "";

	if (fi_cq_readerr(cq, &entry, 0) > 0)
		fi_cq_strerror(cq, entry.prov_errno, entry.err_data, text, sizeof(text));
	die("%s: %s; %s: %s", what, fi_strerror((int)-ret), fi_strerror(entry.err), text);
}

static void take_completions(void)
{
	struct fi_cq_entry entries[4];
	ssize_t ret = fi_cq_read(cq, entries, COUNT(entries));

	if (ret > 0)
		bounced -= (int)ret;
	else if (ret != -FI_EAGAIN)
		failed("fi_cq_read", ret);
}

/* Whether the call is to be made again. */
static bool again(const char *call, ssize_t ret)
{
	if (ret != -FI_EAGAIN) {
		must(call, ret);
		return false;
	}
	take_completions();
	sched_yield();
	return true;
}

static void wait_for_counter(const char *what, struct fid_cntr *cntr, uint64_t value)
{
	int ret = fi_cntr_wait(cntr, value, -1);

	if (ret)
		failed(what, ret);
}

static void quiet(void)
{
	while (bounced > 0) {
		take_completions();
		sched_yield();
	}
	wait_for_counter("fi_cntr_wait for writes", put_cntr, puts_due);
}

static void get_wait(void)
{
	wait_for_counter("fi_cntr_wait for reads", get_cntr, gets_due);
}

/* Small ones are copied, and others end with quiet(). */
static fi_addr_t addr_of(int pe)
{
	return build.av_map ? mapped[pe] : (fi_addr_t)pe;
}

static void put(void *dest, const void *source, size_t len, int pe)
{
	struct place at = place_of(dest, pe);
	fi_addr_t to = addr_of(pe);

	puts_due++;
	if (len <= info->tx_attr->inject_size) {
		while (again("fi_inject_write",
			     fi_inject_write(ep, source, len, to, at.addr, at.key)))
			;
		return;
	}
	while (again("fi_write", fi_write(ep, source, len, NULL, to, at.addr, at.key, NULL)))
		;
}

/* As those from a bounce buffer, which is free again when the entry has come. */
static void put_bounced(void *dest, const void *source, size_t len, int pe)
{
	static struct fi_context2 context;
	struct place at = place_of(dest, pe);
	struct iovec iov = { .iov_base = (void *)(uintptr_t)source, .iov_len = len };
	struct fi_rma_iov rma = { .addr = at.addr, .len = len, .key = at.key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = addr_of(pe),
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = &context };

	puts_due++;
	bounced++;
	while (again("fi_writemsg", fi_writemsg(ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE)))
		;
}

static void get(void *dest, const void *source, size_t len, int pe)
{
	struct place at = place_of(source, pe);

	gets_due++;
	while (again("fi_read", fi_read(ep, dest, len, NULL, addr_of(pe), at.addr, at.key, NULL)))
		;
	get_wait();
}

static void atomic(void *dest, const void *operand, enum fi_datatype type, enum fi_op op, int pe)
{
	struct place at = place_of(dest, pe);

	puts_due++;
	while (again("fi_inject_atomic",
		     fi_inject_atomic(ep, operand, 1, addr_of(pe), at.addr, at.key, type, op)))
		;
}

static int64_t fetch(int64_t *dest, int64_t operand, enum fi_op op, int pe)
{
	const void *from = op == FI_ATOMIC_READ ? NULL : &operand;
	struct place at = place_of(dest, pe);
	int64_t was = -1;

	gets_due++;
	while (again("fi_fetch_atomic", fi_fetch_atomic(ep, from, 1, NULL, &was, NULL, addr_of(pe),
							at.addr, at.key, FI_INT64, op, NULL)))
		;
	get_wait();
	return was;
}

static int64_t compare(int64_t *dest, int64_t with, int64_t operand, enum fi_op op, int pe)
{
	struct place at = place_of(dest, pe);
	int64_t was = -1;

	gets_due++;
	while (again("fi_compare_atomic",
		     fi_compare_atomic(ep, &operand, 1, NULL, &with, NULL, &was, NULL, addr_of(pe),
				       at.addr, at.key, FI_INT64, op, NULL)))
		;
	get_wait();
	return was;
}

/* --- waiting, barriers ---------------------------------------------------------------- */

static uint64_t load(const uint64_t *cell)
{
	return __atomic_load_n(cell, __ATOMIC_ACQUIRE);
}

/* The counter of the regions says when to look again, if there is one. */
static void wait_until(const uint64_t *cell, uint64_t value)
{
	uint64_t count;

	while (load(cell) != value) {
		if (build.hard_polling) {
			sched_yield();
			continue;
		}
		count = fi_cntr_read(target_cntr);
		if (load(cell) != value)
			wait_for_counter("fi_cntr_wait for the regions", target_cntr, count + 1);
	}
}

static void barrier(void)
{
	static uint64_t round;
	const uint64_t one = 1;

	quiet();
	round++;
	if (me == 0) {
		wait_until(&heap->arrived, round);
		put(&heap->released, &round, sizeof(round), 1);
		quiet();
	} else {
		atomic(&heap->arrived, &one, FI_UINT64, FI_SUM, 0);
		wait_until(&heap->released, round);
	}
}

/* --- beginning and end ---------------------------------------------------------------- */

static void open_all(void)
{
	get_info();
	open_domain();
	open_target();
	register_all();
	open_context();
	publish();
}

/* The trace has no order for this: regions first is one that all providers take. */
static void close_all(void)
{
	struct fid *const all[] = { &ep->fid,	     &heap_mr->fid,   &data_mr->fid,
				    &target_ep->fid, &put_cntr->fid,  &get_cntr->fid,
				    &cq->fid,	     &target_cq->fid, &av->fid };
	size_t i;

	for (i = 0; i < COUNT(all); i++)
		must("fi_close", fi_close(all[i]));
	if (target_cntr)
		must("fi_close of a counter", fi_close(&target_cntr->fid));
	must("fi_close of a domain", fi_close(&domain->fid));
	must("fi_close of a fabric", fi_close(&fabric->fid));
	fi_freeinfo(info);
}

#endif
