/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for libze_loader.so.1: drivers, contexts, allocations, immediate command lists,
 * without a device (memory.h). What a program of this library needs is here, not all of the
 * runtime. Names of the exported functions and numbers are Level Zero's.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 8

enum {
	SUCCESS = 0,
	DEVICE_LOST = 0x70000001,
	OUT_OF_HOST_MEMORY = 0x70000002,
	OUT_OF_DEVICE_MEMORY = 0x70000003,
	UNINITIALIZED = 0x78000001,
	UNSUPPORTED_FEATURE = 0x78000003,
	INVALID_ARGUMENT = 0x78000004,
	INVALID_NULL_HANDLE = 0x78000005,
	INVALID_NULL_POINTER = 0x78000007
};

enum { DESC_QUEUE = 0xe, ALLOCATION_PROPERTIES = 0x17, SYNCHRONOUS = 1 };

#define PARTS 2

struct device {
	int number;	      /* -1: not a GPU */
	struct device *parts; /* PARTS, or NULL: it is one itself */
};

struct driver {
	struct device devices[DEVICES];
	int count; /* -1: as many as there are GPUs */
};

struct context {
	struct driver *driver;
};

struct list {
	struct device *device;
};

struct properties {
	int type;
	void *next;
	int memory;
	uint64_t id;
	uint64_t page_size;
};

struct queue_desc {
	int type;
	const void *next;
	uint32_t ordinal, index, flags;
	int mode, priority;
};

static atomic_bool ready;
/* The first driver is that of a neural processor, which the flag of zeInit does not keep away. */
static struct driver neural = { .devices = { { .number = -1 } }, .count = 1 };
static struct driver gpus = { .count = -1 };
static struct device parts[DEVICES][PARTS];

#define BEGIN()                                  \
	do {                                     \
		int error_ = rt_begin(__func__); \
		if (error_)                      \
			return error_;           \
		if (!ready)                      \
			return UNINITIALIZED;    \
	} while (0)

static void make_devices(void)
{
	for (int i = 0; i < DEVICES; i++) {
		gpus.devices[i] = (struct device){ i, parts[i] };
		parts[i][0].number = parts[i][1].number = i;
	}
	atomic_store(&ready, true);
}

/* Without a device there is no driver that could be initialized. */
EXPORT int zeInit(uint32_t flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int error = rt_begin(__func__);

	(void)flags;
	if (error)
		return error;
	if (rt_devices() < 1)
		return UNINITIALIZED;
	pthread_once(&once, make_devices);
	return SUCCESS;
}

EXPORT int zeDriverGet(uint32_t *count, struct driver **drivers)
{
	BEGIN();
	if (*count && drivers)
		drivers[0] = &neural;
	if (*count > 1 && drivers)
		drivers[1] = &gpus;
	*count = drivers && *count < 2 ? *count : 2;
	return SUCCESS;
}

EXPORT int zeDeviceGetSubDevices(struct device *device, uint32_t *count, struct device **found)
{
	uint32_t there = device && device->parts ? PARTS : 0, i;

	BEGIN();
	if (!device)
		return INVALID_NULL_HANDLE;
	for (i = 0; found && i < *count && i < there; i++)
		found[i] = &device->parts[i];
	if (!*count || *count > there)
		*count = there;
	return SUCCESS;
}

enum { DEVICE_PROPERTIES = 0x3, TYPE_GPU = 1, TYPE_NEURAL = 5 };

struct device_properties {
	int type;
	void *next;
	int device_type;
};

EXPORT int zeDeviceGetProperties(struct device *device, struct device_properties *properties)
{
	BEGIN();
	if (!device)
		return INVALID_NULL_HANDLE;
	if (properties->type != DEVICE_PROPERTIES)
		return INVALID_ARGUMENT;
	properties->device_type = device->number < 0 ? TYPE_NEURAL : TYPE_GPU;
	return SUCCESS;
}

EXPORT int zeDeviceGet(struct driver *driver, uint32_t *count, struct device **devices)
{
	uint32_t there, i;

	BEGIN();
	if (!driver)
		return INVALID_NULL_HANDLE;
	there = (uint32_t)(driver->count < 0 ? rt_devices() : driver->count);
	for (i = 0; devices && i < *count && i < there; i++)
		devices[i] = &driver->devices[i];
	if (!*count || *count > there)
		*count = there;
	return SUCCESS;
}

EXPORT int zeContextCreate(struct driver *driver, const void *desc, struct context **context)
{
	BEGIN();
	if (!driver || !desc)
		return INVALID_NULL_HANDLE;
	*context = calloc(1, sizeof(**context));
	if (!*context)
		return OUT_OF_HOST_MEMORY;
	(*context)->driver = driver;
	return SUCCESS;
}

EXPORT int zeContextDestroy(struct context *context)
{
	BEGIN();
	free(context);
	return SUCCESS;
}

/* --- memory ------------------------------------------------------------------------------ */

static int allocate(enum rt_kind kind, struct context *context, struct device *device, size_t len,
		    void **ptr)
{
	if (!context)
		return INVALID_NULL_HANDLE;
	/* The owner is the device, or the part of it, that it was asked for. */
	*ptr = rt_new(kind, device ? device->number : -1, (void *)device, len);
	return *ptr ? SUCCESS : OUT_OF_DEVICE_MEMORY;
}

EXPORT int zeMemAllocDevice(struct context *context, const void *desc, size_t len, size_t alignment,
			    struct device *device, void **ptr)
{
	(void)desc;
	(void)alignment;
	BEGIN();
	return device ? allocate(RT_DEVICE, context, device, len, ptr) : INVALID_NULL_HANDLE;
}

EXPORT int zeMemAllocShared(struct context *context, const void *device_desc, const void *host_desc,
			    size_t len, size_t alignment, struct device *device, void **ptr)
{
	(void)device_desc;
	(void)host_desc;
	(void)alignment;
	BEGIN();
	return allocate(RT_MANAGED, context, device, len, ptr);
}

EXPORT int zeMemAllocHost(struct context *context, const void *desc, size_t len, size_t alignment,
			  void **ptr)
{
	(void)desc;
	(void)alignment;
	BEGIN();
	return allocate(RT_HOST, context, NULL, len, ptr);
}

EXPORT int zeMemFree(struct context *context, void *ptr)
{
	BEGIN();
	if (!context)
		return INVALID_NULL_HANDLE;
	return rt_free(ptr, 1 << RT_DEVICE | 1 << RT_MANAGED | 1 << RT_HOST) ? SUCCESS
									     : INVALID_ARGUMENT;
}

enum { TYPE_UNKNOWN, TYPE_HOST, TYPE_DEVICE, TYPE_SHARED };

static int type_of(enum rt_kind kind)
{
	return kind == RT_HOST ? TYPE_HOST : kind == RT_DEVICE ? TYPE_DEVICE : TYPE_SHARED;
}

EXPORT int zeMemGetAllocProperties(struct context *context, const void *ptr,
				   struct properties *properties, struct device **device)
{
	struct rt_alloc alloc;

	BEGIN();
	if (!context || properties->type != ALLOCATION_PROPERTIES)
		return INVALID_ARGUMENT;
	properties->memory = TYPE_UNKNOWN;
	properties->id = 0;
	*device = NULL;
	if (context->driver != &gpus || !rt_find((uintptr_t)ptr, &alloc))
		return SUCCESS;
	properties->memory = type_of(alloc.kind);
	properties->id = alloc.id;
	properties->page_size = 4096;
	*device = alloc.owner;
	return SUCCESS;
}

EXPORT int zeMemGetAddressRange(struct context *context, const void *ptr, void **start, size_t *len)
{
	struct rt_alloc alloc;

	BEGIN();
	if (!context || !rt_find((uintptr_t)ptr, &alloc))
		return INVALID_ARGUMENT;
	*start = alloc.front;
	*len = alloc.len;
	return SUCCESS;
}

/* --- command lists ----------------------------------------------------------------------- */

/* Only synchronous ones: what is appended has been done when the call returns. */
EXPORT int zeCommandListCreateImmediate(struct context *context, struct device *device,
					const struct queue_desc *desc, struct list **list)
{
	BEGIN();
	if (!context || !device)
		return INVALID_NULL_HANDLE;
	if (desc->type != DESC_QUEUE || desc->mode != SYNCHRONOUS)
		return UNSUPPORTED_FEATURE;
	*list = calloc(1, sizeof(**list));
	if (!*list)
		return OUT_OF_HOST_MEMORY;
	(*list)->device = device;
	return SUCCESS;
}

EXPORT int zeCommandListDestroy(struct list *list)
{
	free(list);
	return rt_begin(__func__);
}

/* A side may be memory that the runtime does not know, of the host. NULL: too much. */
static void *side(const void *ptr, size_t len, bool *known)
{
	struct rt_alloc alloc;

	if (!rt_find((uintptr_t)ptr, &alloc))
		return (void *)(uintptr_t)ptr;
	*known = true;
	return rt_bytes((uintptr_t)ptr, len);
}

EXPORT int zeCommandListAppendMemoryCopy(struct list *list, void *to, const void *from, size_t len,
					 void *signal, uint32_t nwaits, void *waits)
{
	bool known = false;
	void *dst, *src;

	(void)signal;
	(void)nwaits;
	(void)waits;
	BEGIN();
	if (!list || !to || !from)
		return INVALID_NULL_POINTER;
	dst = side(to, len, &known);
	src = side(from, len, &known);
	if (!dst || !src || !known)
		return INVALID_ARGUMENT;
	rt_copy(dst, src, len);
	return SUCCESS;
}

#include "control.h"
