/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ROCR, AMD's runtime below HIP. Its types and numbers are written down here, so that no
 * toolkit is needed for building.
 *
 * The runtime numbers no allocations. It calls us when one that we have asked about is freed;
 * until then it keeps the number that we gave it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/param.h"
#include "base/renew.h"
#include "hmem/hmem.h"

#define LIBRARY "libhsa-runtime64.so.1"
#define MAX_DEVICES 64

enum {
	DONE = 0,
	INVALID_ARGUMENT = 0x1001,
	INVALID_ALLOCATION = 0x1003,
	INVALID_AGENT = 0x1004,
	OUT_OF_RESOURCES = 0x1008
};

enum { AGENT_DEVICE = 17 }; /* an agent's attribute: what kind of device */
enum { DEVICE_GPU = 1 };    /* its value */
/*
 * Kinds of an address: allocated here, locked memory of the host, for drawing, another
 * process's, mapped.
 */
enum { TYPE_HSA = 1, TYPE_LOCKED, TYPE_GRAPHICS, TYPE_IPC, TYPE_RESERVED, TYPE_VMEM };

struct agent {
	uint64_t handle;
};

struct pointer_info {
	uint32_t size;
	int type;
	void *agent_base;
	void *host_base;
	size_t len;
	void *user_data;
	struct agent owner;
	uint32_t global_flags;
};

static struct {
	int (*init)(void);
	int (*error_text)(int error, const char **text);
	int (*each_agent)(int (*found)(struct agent agent, void *arg), void *arg);
	int (*agent_info)(struct agent agent, int attribute, void *value);
	int (*pointer_info)(const void *ptr, struct pointer_info *info, void *(*alloc)(size_t),
			    uint32_t *nagents, struct agent **agents);
	int (*on_free)(void *ptr, void (*freed)(void *ptr, void *arg), void *arg);
	int (*copy)(void *to, const void *from, size_t len);
} hsa;

static const struct mrf_dl_symbol symbols[] = {
	{ "hsa_init", &hsa.init },
	{ "hsa_status_string", &hsa.error_text },
	{ "hsa_iterate_agents", &hsa.each_agent },
	{ "hsa_agent_get_info", &hsa.agent_info },
	{ "hsa_amd_pointer_info", &hsa.pointer_info },
	{ "hsa_amd_register_deallocation_callback", &hsa.on_free },
	{ "hsa_memory_copy", &hsa.copy },
};

static struct agent devices[MAX_DEVICES];
static int ndevices;

/* --- errors ---------------------------------------------------------------------------- */

static int rocr_errno_of(int error)
{
	switch (error) {
	case DONE:
		return 0;
	case INVALID_ARGUMENT:
	case INVALID_ALLOCATION:
		return -FI_EINVAL;
	case INVALID_AGENT:
		return -FI_ENODEV;
	case OUT_OF_RESOURCES:
		return -FI_ENOMEM;
	default:
		return -FI_EIO;
	}
}

static int rocr_said(const char *call, int error, struct mrf_hmem_why *why)
{
	const char *text = NULL;

	if (mrf_likely(!error))
		return 0;
	if (hsa.error_text(error, &text) || !text)
		text = "an unknown error";
	snprintf(why->text, sizeof(why->text), "%s says %s (0x%x)", call, text, (unsigned)error);
	return rocr_errno_of(error);
}

/* --- devices ------------------------------------------------------------------------------ */

static int add_device(struct agent agent, void *arg)
{
	int type = -1, error = hsa.agent_info(agent, AGENT_DEVICE, &type);

	(void)arg;
	if (!error && type == DEVICE_GPU && ndevices < MAX_DEVICES)
		devices[ndevices++] = agent;
	return error;
}

/* Where the kernel has no driver the runtime says that it is out of resources. */
static int init_rocr(struct mrf_hmem_why *why)
{
	int ret = rocr_said("hsa_init", hsa.init(), why);

	if (!ret || !access("/dev/kfd", F_OK))
		return ret;
	snprintf(why->text, sizeof(why->text),
		 "hsa_init fails: there is no /dev/kfd, so no device");
	return -FI_ENODEV;
}

static int open_rocr(struct mrf_hmem_why *why)
{
	int ret = mrf_dl_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), why);

	if (!ret)
		ret = init_rocr(why);
	if (ret)
		return ret;
	ndevices = 0;
	ret = rocr_said("hsa_iterate_agents", hsa.each_agent(add_device, NULL), why);
	if (!ret && !ndevices) {
		snprintf(why->text, sizeof(why->text), "%s finds no device", LIBRARY);
		ret = -FI_ENODEV;
	}
	return ret;
}

static int rocr_count_devices(int *count, struct mrf_hmem_why *why)
{
	(void)why;
	*count = ndevices;
	return 0;
}

/* -1: the agent is the host. */
static int device_of(struct agent agent)
{
	int i = ndevices;

	while (i-- && devices[i].handle != agent.handle)
		;
	return i;
}

/* --- which allocation ---------------------------------------------------------------------- */

/* Finds the number of the allocation at this address. */
static struct mrf_idmap numbers;
static struct mrf_lock numbers_lock = {
#ifdef MRF_LOCKRANK
	.rank = MRF_RANK_HMEM,
#endif
};
static uintptr_t last_number;

/* Another thread may have been at the map, whose allocations are not the child's. */
static void numbers_in_child(struct mrf_renewal *renewal)
{
	(void)renewal;
	mrf_lock_renew(&numbers_lock);
	mrf_idmap_init(&numbers);
}

static struct mrf_renewal renewal = { .in_child = numbers_in_child };

/* Called by the thread that frees the allocation. */
static void alloc_freed(void *ptr, void *arg)
{
	(void)arg;
	mrf_lock_take(&numbers_lock);
	(void)mrf_idmap_remove(&numbers, (uintptr_t)ptr);
	mrf_lock_release(&numbers_lock);
}

/* 0: the allocation has no number. */
static uintptr_t rocr_number_of(uintptr_t start)
{
	uintptr_t number;

	mrf_renewal_add(&renewal);
	mrf_lock_take(&numbers_lock);
	number = (uintptr_t)mrf_idmap_find(&numbers, start);
	mrf_lock_release(&numbers_lock);
	return number;
}

/* Another thread may be doing the same: then one of the two numbers stays. */
static int give_number(uintptr_t start, struct mrf_hmem_why *why)
{
	int ret;

	mrf_renewal_add(&renewal);
	mrf_lock_take(&numbers_lock);
	ret = mrf_idmap_insert(&numbers, start, (void *)++last_number);
	mrf_lock_release(&numbers_lock);
	if (ret == -FI_EALREADY)
		return 0;
	if (ret) {
		snprintf(why->text, sizeof(why->text), "there is no memory");
		return ret;
	}
	ret = rocr_said("hsa_amd_register_deallocation_callback",
			hsa.on_free((void *)start, alloc_freed, NULL), why);
	if (ret)
		alloc_freed((void *)start, NULL);
	return ret;
}

static int number_alloc(struct mrf_hmem_alloc *alloc, struct mrf_hmem_why *why)
{
	int ret = 0;

	alloc->id = rocr_number_of(alloc->start);
	if (!alloc->id) {
		ret = give_number(alloc->start, why);
		alloc->id = rocr_number_of(alloc->start);
	}
	return ret;
}

/* Addresses that are only reserved have nothing behind them. */
static bool is_memory(const struct pointer_info *info)
{
	return info->type >= TYPE_HSA && info->type <= TYPE_VMEM && info->type != TYPE_RESERVED;
}

/* Memory of the host may have another address for the processor than for the devices. */
static uintptr_t start_of(const struct pointer_info *info)
{
	return (uintptr_t)(info->host_base ? info->host_base : info->agent_base);
}

static int rocr_find(uintptr_t addr, struct mrf_hmem_alloc *alloc, struct mrf_hmem_why *why)
{
	struct pointer_info info = { .size = sizeof(info) };
	bool host;
	int ret;

	*alloc = (struct mrf_hmem_alloc){ .kind = MRF_HMEM_NONE };
	if (!addr)
		return 0;
	ret = rocr_said("hsa_amd_pointer_info",
			hsa.pointer_info((const void *)addr, &info, NULL, NULL, NULL), why);
	if (ret || !is_memory(&info))
		return ret;
	host = info.type == TYPE_LOCKED || device_of(info.owner) < 0;
	alloc->kind = host ? MRF_HMEM_HOST : MRF_HMEM_DEVICE;
	alloc->device = device_of(info.owner);
	alloc->start = host ? start_of(&info) : (uintptr_t)info.agent_base;
	alloc->len = info.len;
	/* The runtime tells of the end of its own allocations only. */
	if (info.type != TYPE_HSA || host || !mrf_param_bool(MRF_PARAM_ROCR_MONITOR))
		return 0;
	return number_alloc(alloc, why);
}

/* --- copies ------------------------------------------------------------------------------ */

/* The memory may have been freed since it was looked up. */
static int check_same(const struct mrf_hmem_alloc *alloc, struct mrf_hmem_why *why)
{
	if (!alloc->id || rocr_number_of(alloc->start) == alloc->id)
		return 0;
	snprintf(why->text, sizeof(why->text),
		 "hsa_amd_register_deallocation_callback has reported that the memory was freed");
	return -FI_EINVAL;
}

static int rocr_copy(const struct mrf_hmem_alloc *alloc, void *to, const void *from, size_t len,
		     struct mrf_hmem_why *why)
{
	int ret = check_same(alloc, why);

	mrf_slow_call();
	return ret ? ret : rocr_said("hsa_memory_copy", hsa.copy(to, from, len), why);
}

static int rocr_get(const struct mrf_hmem_alloc *alloc, void *to, uintptr_t from, size_t len,
		    struct mrf_hmem_why *why)
{
	return rocr_copy(alloc, to, (const void *)from, len, why);
}

static int rocr_put(const struct mrf_hmem_alloc *alloc, uintptr_t to, const void *from, size_t len,
		    struct mrf_hmem_why *why)
{
	return rocr_copy(alloc, (void *)to, from, len, why);
}

const struct mrf_hmem mrf_hmem_rocr = {
	.iface = FI_HMEM_ROCR,
	.library = LIBRARY,
	.open = open_rocr,
	.count = rocr_count_devices,
	.find = rocr_find,
	.get = rocr_get,
	.put = rocr_put,
};
