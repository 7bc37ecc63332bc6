/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Level Zero, Intel's runtime. Its types and numbers are written down here, so that no toolkit
 * is needed for building. Of several drivers the first that has a device is used, in a context
 * of our own; the driver knows its allocations whatever context they were made in.
 */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "hmem/dl.h"
#include "hmem/ze.h"

#define LIBRARY "libze_loader.so.1"
#define MAX_DRIVERS 8
#define MAX_DEVICES 64

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
enum { DESC_CONTEXT = 0xd, DESC_QUEUE = 0xe, ALLOCATION_PROPERTIES = 0x17 };
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

static struct {
	int (*init)(uint32_t flags);
	int (*drivers)(uint32_t *count, struct driver **drivers);
	int (*devices)(struct driver *driver, uint32_t *count, struct device **devices);
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
	{ "zeContextCreate", &ze.context_create },
	{ "zeMemGetAllocProperties", &ze.properties },
	{ "zeMemGetAddressRange", &ze.range },
	{ "zeCommandListCreateImmediate", &ze.list_create },
	{ "zeCommandListDestroy", &ze.list_destroy },
	{ "zeCommandListAppendMemoryCopy", &ze.copy },
};

static struct device *devices[MAX_DEVICES];
static uint32_t ndevices;
static struct context *context;

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

/* The first driver that has a device; NULL: there is none. */
static int find_driver(struct driver **driver, struct mrf_hmem_why *why)
{
	struct driver *drivers[MAX_DRIVERS];
	uint32_t count = MAX_DRIVERS, i;
	int ret = ze_said("zeDriverGet", ze.drivers(&count, drivers), why);

	*driver = NULL;
	for (i = 0; i < count && !ret && !*driver; i++) {
		ndevices = MAX_DEVICES;
		ret = ze_said("zeDeviceGet", ze.devices(drivers[i], &ndevices, devices), why);
		if (!ret && ndevices)
			*driver = drivers[i];
	}
	if (!ret && !*driver) {
		snprintf(why->text, sizeof(why->text), "%s knows no device", LIBRARY);
		ret = -FI_ENODEV;
	}
	return ret;
}

static int open_ze(struct mrf_hmem_why *why)
{
	struct context_desc desc = { .type = DESC_CONTEXT };
	struct driver *driver;
	int ret = mrf_dl_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), why);

	if (!ret)
		ret = ze_said("zeInit", ze.init(0), why);
	if (!ret)
		ret = find_driver(&driver, why);
	if (!ret)
		ret = ze_said("zeContextCreate", ze.context_create(driver, &desc, &context), why);
	return ret;
}

static int ze_count_devices(int *count, struct mrf_hmem_why *why)
{
	(void)why;
	*count = (int)ndevices;
	return 0;
}

static int ze_number_of(const struct device *device)
{
	uint32_t i = ndevices;

	while (i-- && devices[i] != device)
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

static int ze_find(uintptr_t addr, struct mrf_hmem_alloc *alloc, struct mrf_hmem_why *why)
{
	struct properties properties = { .type = ALLOCATION_PROPERTIES };
	struct device *device = NULL;
	void *start = NULL;
	int ret = ze_said("zeMemGetAllocProperties",
			  ze.properties(context, (const void *)addr, &properties, &device), why);

	*alloc = (struct mrf_hmem_alloc){ .kind = MRF_HMEM_NONE };
	if (ret || ze_kind_of(properties.memory) == MRF_HMEM_NONE)
		return ret;
	ret = ze_said("zeMemGetAddressRange",
		      ze.range(context, (const void *)addr, &start, &alloc->len), why);
	alloc->kind = ze_kind_of(properties.memory);
	alloc->device = ze_number_of(device);
	alloc->start = (uintptr_t)start;
	alloc->id = properties.id;
	alloc->home = device;
	return ret;
}

/* --- copies ------------------------------------------------------------------------------ */

static int ze_copy_bytes(const struct mrf_hmem_alloc *alloc, void *to, const void *from, size_t len,
			 struct mrf_hmem_why *why)
{
	struct queue_desc desc = { .type = DESC_QUEUE, .mode = SYNCHRONOUS };
	struct list *list;
	int ret = ze_said("zeCommandListCreateImmediate",
			  ze.list_create(context, alloc->home, &desc, &list), why);

	mrf_slow_call();
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
	return ze_copy_bytes(alloc, to, (const void *)from, len, why);
}

static int ze_put(const struct mrf_hmem_alloc *alloc, uintptr_t to, const void *from, size_t len,
		  struct mrf_hmem_why *why)
{
	return ze_copy_bytes(alloc, (void *)to, from, len, why);
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
