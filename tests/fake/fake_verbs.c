/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <netinet/in.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "fake_verbs.h"
#include "verbs/vnode.h"

/* The header wraps these calls in macros; here are the functions. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define KNOWN_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define NEED_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct fake_verbs fake_verbs = { .max_mr = FAKE_MAX_MR, .next_key = 0x100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	unsigned nth;
	bool always;
	int err;
} order[FAKE_CALLS];
static unsigned any_nth;
static int any_err;
static enum fake_call any_failed = FAKE_CALLS;
static void *kept[16];
static unsigned nkept;
static struct fake_mr *mrs;
static uint32_t handles;

static struct ibv_device device = { .name = FAKE_DEVICE };
#define CMD_FD 0x7fff0000
/* librdmacm's, and that of whoever opens the device. */
static struct ibv_context context = { .device = &device, .cmd_fd = -1 };
static struct ibv_context own_context = { .device = &device, .cmd_fd = CMD_FD, .async_fd = -1 };

void fake_verbs_reset(void)
{
	memset(&fake_verbs, 0, sizeof(fake_verbs));
	memset(order, 0, sizeof(order));
	any_nth = 0;
	any_failed = FAKE_CALLS;
	while (nkept)
		free(kept[--nkept]);
	fake_verbs.max_mr = FAKE_MAX_MR;
	fake_verbs.next_key = 0x100;
	mrs = NULL;
}

void fake_verbs_fail(enum fake_call call, unsigned nth, int err)
{
	pthread_mutex_lock(&lock);
	order[call].nth = nth;
	order[call].always = false;
	order[call].err = err;
	pthread_mutex_unlock(&lock);
}

void fake_verbs_fail_always(enum fake_call call, int err)
{
	pthread_mutex_lock(&lock);
	order[call].always = true;
	order[call].err = err;
	pthread_mutex_unlock(&lock);
}

unsigned fake_verbs_live(void)
{
	return fake_verbs.live_channels + fake_verbs.live_ids + fake_verbs.live_contexts +
	       fake_verbs.live_pds + fake_verbs.live_mrs + fake_verbs.live_queues;
}

const struct fake_mr *fake_verbs_find(uint32_t rkey)
{
	const struct fake_mr *mr;

	pthread_mutex_lock(&lock);
	for (mr = mrs; mr && mr->mr.rkey != rkey; mr = mr->next)
		;
	pthread_mutex_unlock(&lock);
	return mr;
}

const struct fake_mr *fake_verbs_by_lkey(uint32_t lkey)
{
	const struct fake_mr *mr;

	pthread_mutex_lock(&lock);
	for (mr = mrs; mr && mr->mr.lkey != lkey; mr = mr->next)
		;
	pthread_mutex_unlock(&lock);
	return mr;
}

uint32_t fake_verbs_next_key(void)
{
	uint32_t key;

	pthread_mutex_lock(&lock);
	key = fake_verbs.next_key;
	pthread_mutex_unlock(&lock);
	return key;
}

unsigned fake_verbs_covering(const void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr;
	const struct fake_mr *mr;
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	for (mr = mrs; mr; mr = mr->next)
		n += (uintptr_t)mr->mr.addr < start + len &&
		     (uintptr_t)mr->mr.addr + mr->mr.length > start;
	pthread_mutex_unlock(&lock);
	return n;
}

/* Counts a call; false: it is the one that was ordered to fail, errno is set. */
static bool goes_on(enum fake_call call)
{
	fake_verbs.calls[call]++;
	if (any_nth && !--any_nth && (any_err || fake_verbs_name(call)[0] == 'r')) {
		any_failed = call;
		errno = any_err;
		return false;
	}
	if (!order[call].always && (!order[call].nth || --order[call].nth))
		return true;
	errno = order[call].err;
	return false;
}

bool fake_verbs_goes_on(enum fake_call call)
{
	bool on;

	pthread_mutex_lock(&lock);
	on = goes_on(call);
	pthread_mutex_unlock(&lock);
	return on;
}

void fake_verbs_fail_any(unsigned nth, int err)
{
	pthread_mutex_lock(&lock);
	any_nth = nth;
	any_err = err;
	any_failed = FAKE_CALLS;
	pthread_mutex_unlock(&lock);
}

enum fake_call fake_verbs_failed(void)
{
	enum fake_call call;

	pthread_mutex_lock(&lock);
	call = any_failed;
	pthread_mutex_unlock(&lock);
	return call;
}

const char *fake_verbs_name(enum fake_call call)
{
	static const char *const name[FAKE_CALLS] = {
		[FAKE_CREATE_CHANNEL] = "rdma_create_event_channel",
		[FAKE_CREATE_ID] = "rdma_create_id",
		[FAKE_BIND_ADDR] = "rdma_bind_addr",
		[FAKE_OPEN_DEVICE] = "ibv_open_device",
		[FAKE_QUERY_DEVICE] = "ibv_query_device",
		[FAKE_ALLOC_PD] = "ibv_alloc_pd",
		[FAKE_DEALLOC_PD] = "ibv_dealloc_pd",
		[FAKE_REG_MR] = "ibv_reg_mr",
		[FAKE_DEREG_MR] = "ibv_dereg_mr",
		[FAKE_REVOKE_MR] = "ioctl",
		[FAKE_CLOSE_DEVICE] = "ibv_close_device",
		[FAKE_DESTROY_ID] = "rdma_destroy_id",
		[FAKE_CREATE_COMP_CHANNEL] = "ibv_create_comp_channel",
		[FAKE_CREATE_CQ] = "ibv_create_cq",
		[FAKE_RESIZE_CQ] = "ibv_resize_cq",
		[FAKE_DESTROY_CQ] = "ibv_destroy_cq",
		[FAKE_POLL_CQ] = "ibv_poll_cq",
		[FAKE_REQ_NOTIFY_CQ] = "ibv_req_notify_cq",
		[FAKE_CREATE_SRQ] = "ibv_create_srq",
		[FAKE_POST_SRQ_RECV] = "ibv_post_srq_recv",
		[FAKE_DESTROY_SRQ] = "ibv_destroy_srq",
		[FAKE_CREATE_QP] = "ibv_create_qp",
		[FAKE_MODIFY_QP] = "ibv_modify_qp",
		[FAKE_QUERY_QP] = "ibv_query_qp",
		[FAKE_DESTROY_QP] = "ibv_destroy_qp",
		[FAKE_POST_SEND] = "ibv_post_send",
		[FAKE_POST_RECV] = "ibv_post_recv",
		[FAKE_QUERY_PORT] = "ibv_query_port",
		[FAKE_QUERY_GID] = "ibv_query_gid",
		[FAKE_LISTEN] = "rdma_listen",
		[FAKE_SET_OPTION] = "rdma_set_option",
		[FAKE_RESOLVE_ADDR] = "rdma_resolve_addr",
		[FAKE_RESOLVE_ROUTE] = "rdma_resolve_route",
		[FAKE_CONNECT] = "rdma_connect",
		[FAKE_GET_CM_EVENT] = "rdma_get_cm_event",
		[FAKE_INIT_QP_ATTR] = "rdma_init_qp_attr",
		[FAKE_ACCEPT] = "rdma_accept",
		[FAKE_ESTABLISH] = "rdma_establish",
		[FAKE_REJECT] = "rdma_reject",
		[FAKE_DISCONNECT] = "rdma_disconnect",
		[FAKE_GET_ASYNC_EVENT] = "ibv_get_async_event",
	};

	return name[call];
}

/* Not malloc: a test that makes the library's allocations fail does not mean these. */
static void *zalloc(size_t size)
{
	void *mem;

	if (posix_memalign(&mem, 64, size))
		abort();
	return memset(mem, 0, size);
}

void *fake_verbs_zalloc(size_t size)
{
	return zalloc(size);
}

void fake_verbs_keep(void *object)
{
	if (nkept == sizeof(kept) / sizeof(kept[0]))
		abort();
	kept[nkept++] = object;
}

/* --- rdma_cm ---------------------------------------------------------------------- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = NULL;

	pthread_mutex_lock(&lock);
	if (goes_on(FAKE_CREATE_CHANNEL)) {
		channel = zalloc(sizeof(*channel));
		channel->fd = eventfd(0, EFD_CLOEXEC);
		fake_verbs.live_channels++;
	}
	pthread_mutex_unlock(&lock);
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	pthread_mutex_lock(&lock);
	fake_verbs.live_channels--;
	pthread_mutex_unlock(&lock);
	close(channel->fd);
	free(channel);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *ctx,
		   enum rdma_port_space ps)
{
	int ret = -1;

	pthread_mutex_lock(&lock);
	if (goes_on(FAKE_CREATE_ID)) {
		*id = zalloc(sizeof(**id));
		(*id)->channel = channel;
		(*id)->context = ctx;
		(*id)->ps = ps;
		fake_verbs.live_ids++;
		ret = 0;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	bool on;

	pthread_mutex_lock(&lock);
	on = goes_on(FAKE_DESTROY_ID);
	fake_verbs.live_ids -= on;
	pthread_mutex_unlock(&lock);
	if (on)
		free(id);
	else
		fake_verbs_keep(id);
	return on ? 0 : -1;
}

/* 10.0.0.0/8 and fd00::/8 are on the device; the wildcards on none; others not here. */
static int bind_to(struct rdma_cm_id *id, const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr->sa_family == AF_INET) {
		fake_verbs.last_port = in->sin_port;
		if (ntohl(in->sin_addr.s_addr) >> 24 == 10)
			id->verbs = &context;
		else if (in->sin_addr.s_addr)
			return EADDRNOTAVAIL;
		return 0;
	}
	fake_verbs.last_port = in6->sin6_port;
	if (in6->sin6_addr.s6_addr[0] == 0xfd)
		id->verbs = &context;
	else if (!IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		return EADDRNOTAVAIL;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	bool on;
	int err = 0;

	pthread_mutex_lock(&lock);
	on = goes_on(FAKE_BIND_ADDR);
	if (on)
		err = bind_to(id, addr);
	pthread_mutex_unlock(&lock);
	if (err)
		errno = err;
	return on && !err ? 0 : -1;
}

/* --- verbs ------------------------------------------------------------------------ */

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	bool opened;

	pthread_mutex_lock(&lock);
	opened = dev == &device && goes_on(FAKE_OPEN_DEVICE);
	fake_verbs.live_contexts += opened;
	pthread_mutex_unlock(&lock);
	return opened ? &own_context : NULL;
}

struct ibv_context *fake_verbs_context(void)
{
	return &own_context;
}

int ibv_close_device(struct ibv_context *ctx)
{
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (goes_on(FAKE_CLOSE_DEVICE))
		fake_verbs.live_contexts -= ctx == &own_context;
	else
		ret = errno;
	pthread_mutex_unlock(&lock);
	return ret;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	int ret = 0;

	(void)ctx;
	pthread_mutex_lock(&lock);
	if (!goes_on(FAKE_QUERY_DEVICE))
		ret = errno;
	pthread_mutex_unlock(&lock);
	if (ret)
		return ret;
	memset(attr, 0, sizeof(*attr));
	attr->max_mr = (int)fake_verbs.max_mr;
	attr->max_sge = 32;
	attr->max_qp_wr = 1048576;
	attr->max_cqe = 32767;
	attr->max_qp_rd_atom = 128;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = NULL;

	pthread_mutex_lock(&lock);
	if (goes_on(FAKE_ALLOC_PD)) {
		pd = zalloc(sizeof(*pd));
		pd->context = ctx;
		fake_verbs.live_pds++;
		fake_verbs.last_pd = pd;
	}
	pthread_mutex_unlock(&lock);
	return pd;
}

static bool in_use(const struct ibv_pd *pd)
{
	const struct fake_mr *mr = mrs;

	while (mr && mr->mr.pd != pd)
		mr = mr->next;
	return mr;
}

/* Done again, it has worked. */
static void no_longer_kept(const void *object)
{
	for (unsigned i = 0; i < nkept; i++) {
		if (kept[i] == object)
			kept[i--] = kept[--nkept];
	}
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (!goes_on(FAKE_DEALLOC_PD))
		ret = errno;
	else if (in_use(pd))
		ret = EBUSY;
	else
		fake_verbs.live_pds--;
	if (!ret)
		no_longer_kept(pd);
	pthread_mutex_unlock(&lock);
	if (!ret)
		free(pd);
	else
		fake_verbs_keep(pd);
	return ret;
}

static bool is_mapped(uint64_t addr, size_t len)
{
	uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	uint64_t page, last = (addr + len - 1) & ~mask;
	unsigned char there;

	for (page = addr & ~mask; page <= last; page += mask + 1) {
		if (mincore((void *)(uintptr_t)page, 1, &there))
			return false;
	}
	return true;
}

/* What the kernel refuses, whatever the memory. */
static int kernel_rules(uint64_t addr, size_t len, uint64_t iova, unsigned access)
{
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

	if (!len || addr + len < addr || iova + len < iova)
		return EINVAL;
	if ((addr & page_mask) != (iova & page_mask))
		return EINVAL;
	if (access & ~(unsigned)KNOWN_ACCESS)
		return EINVAL;
	if ((access & NEED_LOCAL_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (!addr)
		return EFAULT;
	/* As Linux 6.12: 16 bytes for each page have to be in one allocation of 4 MiB. */
	if (((addr + len - 1) / (page_mask + 1)) - addr / (page_mask + 1) >= 262144)
		return ENOMEM;
	if (fake_verbs.check_memory && !is_mapped(addr, len))
		return EFAULT;
	if (fake_verbs.max_bytes && fake_verbs.live_bytes + len > fake_verbs.max_bytes)
		return ENOMEM;
	return fake_verbs.live_mrs >= fake_verbs.max_mr ? ENOMEM : 0;
}

static void enter(struct fake_mr *mr)
{
	mr->prev = NULL;
	mr->next = mrs;
	if (mrs)
		mrs->prev = mr;
	mrs = mr;
	fake_verbs.live_mrs++;
	fake_verbs.live_bytes += mr->mr.length;
	fake_verbs.last = *mr;
}

static void leave(struct fake_mr *mr)
{
	if (mr->next)
		mr->next->prev = mr->prev;
	if (mr->prev)
		mr->prev->next = mr->next;
	else
		mrs = mr->next;
	fake_verbs.live_mrs--;
	fake_verbs.live_bytes -= mr->mr.length;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	struct fake_mr *mr = NULL;
	bool ok;
	int err;

	if (fake_verbs.on_reg)
		fake_verbs.on_reg(addr, len);
	pthread_mutex_lock(&lock);
	ok = goes_on(FAKE_REG_MR);
	err = ok ? kernel_rules((uintptr_t)addr, len, iova, (unsigned)access) : errno;
	if (ok && !err) {
		mr = zalloc(sizeof(*mr));
		mr->mr.context = pd->context;
		mr->mr.pd = pd;
		mr->mr.addr = addr;
		mr->mr.length = len;
		mr->mr.lkey = fake_verbs.next_key;
		mr->mr.rkey = access & REMOTE_ACCESS ? fake_verbs.next_key : 0;
		mr->iova = iova;
		mr->access = (unsigned)access;
		mr->mr.handle = ++handles;
		fake_verbs.next_key += 0x101;
		enter(mr);
	}
	pthread_mutex_unlock(&lock);
	errno = err;
	return mr ? &mr->mr : NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova(pd, addr, len, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned access)
{
	return ibv_reg_mr_iova(pd, addr, len, iova, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int ret = 0;

	if (fake_verbs.on_dereg)
		fake_verbs.on_dereg(mr);
	pthread_mutex_lock(&lock);
	if (goes_on(FAKE_DEREG_MR))
		leave((struct fake_mr *)mr);
	else
		ret = errno;
	pthread_mutex_unlock(&lock);
	if (!ret)
		free(mr);
	return ret;
}

static int revoke_mr(const struct ib_uverbs_ioctl_hdr *cmd)
{
	struct fake_mr *mr;
	int err = 0;

	pthread_mutex_lock(&lock);
	for (mr = mrs; mr && mr->mr.handle != cmd->attrs[0].data; mr = mr->next)
		;
	if (!goes_on(FAKE_REVOKE_MR))
		err = errno;
	else if (!mr || cmd->object_id != UVERBS_OBJECT_MR ||
		 cmd->method_id != UVERBS_METHOD_MR_DESTROY || cmd->num_attrs != 1)
		err = EINVAL;
	else
		leave(mr);
	pthread_mutex_unlock(&lock);
	errno = err;
	return err ? -1 : 0;
}

/* Instead of the C library's, for the sake of the device's command descriptor. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd == CMD_FD && request == RDMA_VERBS_IOCTL)
		return revoke_mr(arg);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* --- files ------------------------------------------------------------------------ */

const struct mrf_vnode_dirs mrf_vnode_dirs;

bool mrf_vnode_bars(const struct mrf_vnode_dirs *dirs, const char *device, char *why, size_t len)
{
	(void)dirs, (void)device;
	if (!fake_verbs.barred)
		return false;
	strncpy(why, fake_verbs.barred, len - 1);
	why[len - 1] = '\0';
	return true;
}

bool mrf_vnode_device(const struct mrf_vnode_dirs *dirs, const char *uverbs, char *name, size_t len)
{
	(void)dirs, (void)uverbs;
	snprintf(name, len, "%s", fake_verbs.renamed ? fake_verbs.renamed : FAKE_DEVICE);
	return true;
}
