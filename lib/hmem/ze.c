/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Level Zero, Intel's runtime. Its types and numbers are written down here, so that no toolkit
 * is needed for building. The GPUs of all drivers are used, each driver's in a context of our
 * own; a driver knows its allocations whatever context they were made in. Memory of a part of a
 * device (a sub-device) is memory of the device.
 */
#include <stdbool.h>
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/param.h"
#include "hmem/hmem.h"

#define LIBRARY "libze_loader.so.1"
#define MAX_DRIVERS 8
#define MAX_DEVICES 64
#define MAX_PARTS 8 /* sub-devices of a device */

enum {
	DONE = 0,
	DEVICE_LOST = 0x70000001,
	OUT_OF_HOST_MEMORY = 0x70000002,
	OUT_OF_DEVICE_MEMORY = 0x70000003,
	UNINITIALIZED = 0x78000001,
	INVALID_ARGUMENT = 0x78000004,
	INVALID_NULL_POINTER = 0x78000007
};

/* Which structure it is. */
enum {
	DEVICE_PROPERTIES = 0x3,
	DESC_CONTEXT = 0xd,
	DESC_QUEUE = 0xe,
	ALLOCATION_PROPERTIES = 0x17
};
enum { GPUS_ONLY = 1 };	 /* for zeInit: drivers of neural processors are not started */
enum { DEVICE_GPU = 1 }; /* but some of these know others, too */
enum { TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_SHARED = 3 }; /* of an address */
enum { SYNCHRONOUS = 1 };

struct driver;
struct device;
struct context;
struct list;

struct context_desc {
	int type;
	const void *next;
	uint32_t flags;
};

struct queue_desc {
	int type;
	const void *next;
	uint32_t ordinal, index, flags;
	int mode, priority;
};

struct properties {
	int type;
	void *next;
	int memory;
	uint64_t id;
	uint64_t page_size;
};

/* The runtime writes more fields, which are of no use here. */
struct device_properties {
	int type;
	void *next;
	int device_type;
	uint8_t more[1024];
};

static struct {
	int (*init)(uint32_t flags);
	int (*drivers)(uint32_t *count, struct driver **drivers);
	int (*devices)(struct driver *driver, uint32_t *count, struct device **devices);
	int (*parts)(struct device *device, uint32_t *count, struct device **parts);
	int (*device_properties)(struct device *device, struct device_properties *properties);
	int (*context_create)(struct driver *driver, const struct context_desc *desc,
			      struct context **context);
	int (*properties)(struct context *context, const void *ptr, struct properties *properties,
			  struct device **device);
	int (*range)(struct context *context, const void *ptr, void **start, size_t *len);
	int (*list_create)(struct context *context, struct device *device,
			   const struct queue_desc *desc, struct list **list);
	int (*list_destroy)(struct list *list);
	int (*copy)(struct list *list, void *to, const void *from, size_t len, void *signal,
		    uint32_t nwaits, void *waits);
} ze;

static const struct mrf_dl_symbol symbols[] = {
	{ "zeInit", &ze.init },
	{ "zeDriverGet", &ze.drivers },
	{ "zeDeviceGet", &ze.devices },
	{ "zeDeviceGetSubDevices", &ze.parts },
	{ "zeDeviceGetProperties", &ze.device_properties },
	{ "zeContextCreate", &ze.context_create },
	{ "zeMemGetAllocProperties", &ze.properties },
	{ "zeMemGetAddressRange", &ze.range },
	{ "zeCommandListCreateImmediate", &ze.list_create },
	{ "zeCommandListDestroy", &ze.list_destroy },
	{ "zeCommandListAppendMemoryCopy", &ze.copy },
};

/* The devices and the parts of each. Constant once the interface is open. */
static struct {
	struct device *device;
	struct device *part[MAX_PARTS];
	uint32_t nparts;
} devices[MAX_DEVICES];
static uint32_t ndevices;
static struct context *contexts[MAX_DRIVERS];
static uint32_t ncontexts;

/* --- errors ---------------------------------------------------------------------------- */

static const struct {
	int error;
	int err;
	const char *name;
} errors[] = {
	{ DEVICE_LOST, -FI_EIO, "ZE_RESULT_ERROR_DEVICE_LOST" },
	{ OUT_OF_HOST_MEMORY, -FI_ENOMEM, "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY" },
	{ OUT_OF_DEVICE_MEMORY, -FI_ENOMEM, "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY" },
	{ UNINITIALIZED, -FI_ENODEV, "ZE_RESULT_ERROR_UNINITIALIZED" },
	{ INVALID_ARGUMENT, -FI_EINVAL, "ZE_RESULT_ERROR_INVALID_ARGUMENT" },
	{ INVALID_NULL_POINTER, -FI_EINVAL, "ZE_RESULT_ERROR_INVALID_NULL_POINTER" },
	{ 0, -FI_EIO, "an error" }, /* last: any other */
};

/* The runtime has no text for its errors. */
static int ze_said(const char *call, int error, struct mrf_hmem_why *why)
{
	unsigned i;

	if (mrf_likely(!error))
		return 0;
	for (i = 0; errors[i].error && errors[i].error != error; i++)
		;
	snprintf(why->text, sizeof(why->text), "%s says %s (0x%x)", call, errors[i].name,
		 (unsigned)error);
	return errors[i].err;
}

/* --- devices ------------------------------------------------------------------------------ */

static bool is_gpu(struct device *device)
{
	struct device_properties properties = { .type = DEVICE_PROPERTIES };

	return !ze.device_properties(device, &properties) && properties.device_type == DEVICE_GPU;
}

static void add_gpu(struct device *device)
{
	uint32_t n = MAX_PARTS;

	devices[ndevices].device = device;
	if (ze.parts(device, &n, devices[ndevices].part))
		n = 0;
	devices[ndevices++].nparts = mrf_min(n, MAX_PARTS);
}

/* Takes the driver's GPUs. A driver that fails is left out. */
static int add_driver(struct driver *driver, struct mrf_hmem_why *why)
{
	struct context_desc desc = { .type = DESC_CONTEXT };
	struct device *found[MAX_DEVICES];
	uint32_t n = MAX_DEVICES, i, before = ndevices;
	int ret = ze_said("zeDeviceGet", ze.devices(driver, &n, found), why);

	for (i = 0; !ret && i < n && ndevices < MAX_DEVICES; i++) {
		if (is_gpu(found[i]))
			add_gpu(found[i]);
	}
	if (ret || ndevices == before)
		return ret;
	ret = ze_said("zeContextCreate", ze.context_create(driver, &desc, &contexts[ncontexts]),
		      why);
	if (ret)
		ndevices = before;
	else
		ncontexts++;
	return ret;
}

static int add_drivers(struct mrf_hmem_why *why)
{
	struct driver *drivers[MAX_DRIVERS];
	uint32_t count = MAX_DRIVERS, i;
	int ret = ze_said("zeDriverGet", ze.drivers(&count, drivers), why), last;

	ndevices = ncontexts = 0;
	for (i = 0; !ret && i < mrf_min(count, MAX_DRIVERS); i++) {
		last = add_driver(drivers[i], why);
		ret = i + 1 == count && !ndevices ? last : 0;
	}
	if (!ret && !ndevices) {
		snprintf(why->text, sizeof(why->text), "%s finds no device", LIBRARY);
		ret = -FI_ENODEV;
	}
	return ret;
}

static int open_ze(struct mrf_hmem_why *why)
{
	int ret = mrf_dl_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), why);

	if (!ret)
		ret = ze_said("zeInit", ze.init(GPUS_ONLY), why);
	return ret ? ret : add_drivers(why);
}

static int ze_count_devices(int *count, struct mrf_hmem_why *why)
{
	(void)why;
	*count = (int)ndevices;
	return 0;
}

static bool is_part(uint32_t i, const struct device *device)
{
	uint32_t k = devices[i].nparts;

	while (k-- && devices[i].part[k] != device)
		;
	return k != UINT32_MAX;
}

/* -1: none of the devices here. */
static int ze_number_of(const struct device *device)
{
	uint32_t i = ndevices;

	while (i-- && devices[i].device != device && !is_part(i, device))
		;
	return (int)i;
}

/* --- what an address is ------------------------------------------------------------------ */

static enum mrf_hmem_kind ze_kind_of(int memory)
{
	switch (memory) {
	case TYPE_HOST:
		return MRF_HMEM_HOST;
	case TYPE_DEVICE:
		return MRF_HMEM_DEVICE;
	case TYPE_SHARED:
		return MRF_HMEM_MANAGED;
	default:
		return MRF_HMEM_NONE;
	}
}

/* The context of the driver that knows it; NONE if none does. */
static int ask_drivers(uintptr_t addr, struct mrf_hmem_alloc *alloc, struct context **context,
		       struct mrf_hmem_why *why)
{
	struct properties properties = { .memory = 0 };
	struct device *device = NULL;
	uint32_t i;
	int ret = 0;

	*alloc = (struct mrf_hmem_alloc){ .kind = MRF_HMEM_NONE };
	for (i = 0; i < ncontexts && !ret && alloc->kind == MRF_HMEM_NONE; i++) {
		*context = contexts[i];
		properties = (struct properties){ .type = ALLOCATION_PROPERTIES };
		ret = ze_said("zeMemGetAllocProperties",
			      ze.properties(*context, (const void *)addr, &properties, &device),
			      why);
		alloc->kind = ret ? MRF_HMEM_NONE : ze_kind_of(properties.memory);
	}
	if (alloc->kind == MRF_HMEM_NONE)
		return ret;
	alloc->device = ze_number_of(device);
	alloc->id = mrf_param_bool(MRF_PARAM_ZE_MONITOR) ? properties.id : 0;
	alloc->home = device;
	return 0;
}

static int ze_find(uintptr_t addr, struct mrf_hmem_alloc *alloc, struct mrf_hmem_why *why)
{
	struct context *context;
	void *start = NULL;
	int ret = ask_drivers(addr, alloc, &context, why);

	if (ret || alloc->kind == MRF_HMEM_NONE)
		return ret;
	ret = ze_said("zeMemGetAddressRange",
		      ze.range(context, (const void *)addr, &start, &alloc->len), why);
	alloc->start = (uintptr_t)start;
	return ret;
}

/* --- copies ------------------------------------------------------------------------------ */

/* Shared memory may belong to no device: then any device will do. */
static struct device *device_for(const struct mrf_hmem_alloc *alloc)
{
	return alloc->home ? alloc->home : devices[0].device;
}

/* The memory may have been freed since it was looked up. */
static int find_again(const struct mrf_hmem_alloc *alloc, uintptr_t addr, struct context **context,
		      struct mrf_hmem_why *why)
{
	struct mrf_hmem_alloc now;
	int ret = ask_drivers(addr, &now, context, why);

	if (ret || (now.kind == alloc->kind && now.id == alloc->id))
		return ret;
	snprintf(why->text, sizeof(why->text),
		 "zeMemGetAllocProperties says that the memory has been freed");
	return -FI_EINVAL;
}

static int ze_copy_bytes(const struct mrf_hmem_alloc *alloc, uintptr_t there, void *to,
			 const void *from, size_t len, struct mrf_hmem_why *why)
{
	struct queue_desc desc = { .type = DESC_QUEUE, .mode = SYNCHRONOUS };
	struct context *context;
	struct list *list;
	int ret = find_again(alloc, there, &context, why);

	mrf_slow_call();
	if (!ret)
		ret = ze_said("zeCommandListCreateImmediate",
			      ze.list_create(context, device_for(alloc), &desc, &list), why);
	if (ret)
		return ret;
	ret = ze_said("zeCommandListAppendMemoryCopy", ze.copy(list, to, from, len, NULL, 0, NULL),
		      why);
	(void)ze.list_destroy(list);
	return ret;
}

static int ze_get(const struct mrf_hmem_alloc *alloc, void *to, uintptr_t from, size_t len,
		  struct mrf_hmem_why *why)
{
	return ze_copy_bytes(alloc, from, to, (const void *)from, len, why);
}

static int ze_put(const struct mrf_hmem_alloc *alloc, uintptr_t to, const void *from, size_t len,
		  struct mrf_hmem_why *why)
{
	return ze_copy_bytes(alloc, to, (void *)to, from, len, why);
}

const struct mrf_hmem mrf_hmem_ze = {
	.iface = FI_HMEM_ZE,
	.library = LIBRARY,
	.open = open_ze,
	.count = ze_count_devices,
	.find = ze_find,
	.get = ze_get,
	.put = ze_put,
};
