/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rig.h"

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rig: %s\n", what);
	abort();
}

#define works(call) need(!(call), #call)

static void find_symbol(void *so, const char *name, void *function)
{
	*(void **)function = dlsym(so, name);
	need(*(void **)function, name);
}

/* --- CUDA -------------------------------------------------------------------------------- */

struct rig_cuda cu;

static void cuda_load(void *so)
{
	find_symbol(so, "cuInit", &cu.init);
	find_symbol(so, "cuCtxCreate_v2", &cu.create);
	find_symbol(so, "cuCtxGetCurrent", &cu.get_current);
	find_symbol(so, "cuCtxSetCurrent", &cu.set_current);
	find_symbol(so, "cuDevicePrimaryCtxRetain", &cu.retain);
	find_symbol(so, "cuMemAlloc_v2", &cu.alloc);
	find_symbol(so, "cuMemAllocManaged", &cu.alloc_managed);
	find_symbol(so, "cuMemAllocHost_v2", &cu.alloc_host);
	find_symbol(so, "cuMemFree_v2", &cu.free);
	find_symbol(so, "cuMemFreeHost", &cu.free_host);
	find_symbol(so, "cuMemcpyHtoD_v2", &cu.put);
	find_symbol(so, "cuMemcpyDtoH_v2", &cu.get);
	find_symbol(so, "cuCtxDestroy_v2", &cu.destroy);
	find_symbol(so, "cuDevicePrimaryCtxReset_v2", &cu.reset);
	find_symbol(so, "mrfab_runtime_capture", &cu.capture);
	find_symbol(so, "mrfab_runtime_pieces", &cu.pieces);
}

static void cuda_enter(int device)
{
	void *context;

	works(cu.init(0));
	works(cu.retain(&context, device));
	works(cu.set_current(context));
}

/* In the device's primary context. */
static void *cuda_make(enum rt_kind kind, int device, size_t len)
{
	unsigned long long ptr = 0;
	void *addr = NULL;

	cuda_enter(device);
	if (kind == RT_HOST)
		works(cu.alloc_host(&addr, len));
	else if (kind == RT_MANAGED)
		works(cu.alloc_managed(&ptr, len, 1));
	else
		works(cu.alloc(&ptr, len));
	works(cu.set_current(NULL));
	return kind == RT_HOST ? addr : (void *)(uintptr_t)ptr;
}

static void cuda_unmake(enum rt_kind kind, void *addr)
{
	works(kind == RT_HOST ? cu.free_host(addr) : cu.free((uintptr_t)addr));
}

/* Memory of a device is copied in that device's context; which one it is, is not asked. */
static void cuda_move(void *to, const void *from, size_t len, bool put)
{
	int device, error = 1;

	for (device = 0; error && device < 2; device++) {
		cuda_enter(device);
		error = put ? cu.put((uintptr_t)to, from, len) : cu.get(to, (uintptr_t)from, len);
		works(cu.set_current(NULL));
	}
	need(!error, "a copy by CUDA");
}

static void cuda_put(void *to, const void *from, size_t len)
{
	cuda_move(to, from, len, true);
}

static void cuda_get(void *to, const void *from, size_t len)
{
	cuda_move(to, from, len, false);
}

/* --- ROCR -------------------------------------------------------------------------------- */

static struct {
	int (*init)(void);
	int (*alloc)(uint64_t pool, size_t len, uint32_t flags, void **ptr);
	int (*free)(void *ptr);
	int (*copy)(void *to, const void *from, size_t len);
	int (*lock)(void *pages, size_t len, void *agents, int nagents, void **there);
} hsa;
void (*rocr_set_type)(const void *ptr, int type);

static void rocr_load(void *so)
{
	find_symbol(so, "hsa_init", &hsa.init);
	find_symbol(so, "hsa_amd_memory_pool_allocate", &hsa.alloc);
	find_symbol(so, "hsa_amd_memory_pool_free", &hsa.free);
	find_symbol(so, "hsa_memory_copy", &hsa.copy);
	find_symbol(so, "hsa_amd_memory_lock", &hsa.lock);
	find_symbol(so, "mrfab_runtime_type", &rocr_set_type);
}

void rocr_lock(void *pages, size_t len)
{
	void *there;

	works(hsa.lock(pages, len, NULL, 0, &there));
}

/* The stand-in's pool 1 is the host's, those of devices follow. */
static void *rocr_make(enum rt_kind kind, int device, size_t len)
{
	void *ptr = NULL;

	works(hsa.init());
	works(hsa.alloc(kind == RT_HOST ? 1 : 2 + (unsigned)device, len, 0, &ptr));
	return ptr;
}

static void rocr_unmake(enum rt_kind kind, void *addr)
{
	(void)kind;
	works(hsa.free(addr));
}

/* The stand-in copies only where a device has a part in it; the processor does the rest. */
static void rocr_move(void *to, const void *from, size_t len)
{
	if (hsa.copy(to, from, len))
		memcpy(to, from, len);
}

/* --- Level Zero ---------------------------------------------------------------------------- */

static struct {
	int (*init)(uint32_t flags);
	int (*drivers)(uint32_t *count, void **drivers);
	int (*devices)(void *driver, uint32_t *count, void **devices);
	int (*parts)(void *device, uint32_t *count, void **parts);
	int (*context)(void *driver, const void *desc, void **context);
	int (*alloc)(void *context, const void *desc, size_t len, size_t alignment, void *device,
		     void **ptr);
	int (*alloc_shared)(void *context, const void *desc, const void *host_desc, size_t len,
			    size_t alignment, void *device, void **ptr);
	int (*alloc_host)(void *context, const void *desc, size_t len, size_t alignment,
			  void **ptr);
	int (*free)(void *context, void *ptr);
	int (*list)(void *context, void *device, const void *desc, void **list);
	int (*copy)(void *list, void *to, const void *from, size_t len, void *signal,
		    uint32_t nwaits, void *waits);
} ze;
static void *ze_driver, *ze_context, *ze_list;
bool ze_part;

static void ze_load(void *so)
{
	find_symbol(so, "zeInit", &ze.init);
	find_symbol(so, "zeDriverGet", &ze.drivers);
	find_symbol(so, "zeDeviceGet", &ze.devices);
	find_symbol(so, "zeDeviceGetSubDevices", &ze.parts);
	find_symbol(so, "zeContextCreate", &ze.context);
	find_symbol(so, "zeMemAllocDevice", &ze.alloc);
	find_symbol(so, "zeMemAllocShared", &ze.alloc_shared);
	find_symbol(so, "zeMemAllocHost", &ze.alloc_host);
	find_symbol(so, "zeMemFree", &ze.free);
	find_symbol(so, "zeCommandListCreateImmediate", &ze.list);
	find_symbol(so, "zeCommandListAppendMemoryCopy", &ze.copy);
}

/* The second driver is that of the GPUs. */
static void ze_open(void)
{
	uint64_t desc[4] = { 0 };
	void *drivers[2];
	uint32_t both = 2;

	works(ze.init(0));
	if (ze_context)
		return;
	works(ze.drivers(&both, drivers));
	ze_driver = drivers[1];
	works(ze.context(ze_driver, desc, &ze_context));
}

static void *ze_device(int device)
{
	void *devices[2], *parts[2];
	uint32_t two = 2;

	works(ze.devices(ze_driver, &two, devices));
	if (!ze_part)
		return devices[device];
	works(ze.parts(devices[device], &two, parts));
	return parts[1];
}

static void *ze_make(enum rt_kind kind, int device, size_t len)
{
	uint64_t desc[4] = { 0 };
	void *ptr = NULL;

	ze_open();
	if (kind == RT_HOST)
		works(ze.alloc_host(ze_context, desc, len, 1, &ptr));
	else if (kind == RT_MANAGED)
		works(ze.alloc_shared(ze_context, desc, desc, len, 1, ze_device(device), &ptr));
	else
		works(ze.alloc(ze_context, desc, len, 1, ze_device(device), &ptr));
	return ptr;
}

static void ze_unmake(enum rt_kind kind, void *addr)
{
	(void)kind;
	works(ze.free(ze_context, addr));
}

/* A synchronous queue. */
static void ze_move(void *to, const void *from, size_t len)
{
	struct {
		int type;
		const void *next;
		uint32_t ordinal, index, flags;
		int mode, priority;
	} queue = { .type = 0xe, .mode = 1 };

	ze_open();
	if (!ze_list)
		works(ze.list(ze_context, ze_device(0), &queue, &ze_list));
	works(ze.copy(ze_list, to, from, len, NULL, 0, NULL));
}

/* --- all --------------------------------------------------------------------------------- */

const struct rig rigs[RIGS] = {
	{ FI_HMEM_CUDA, RUNTIME "cuda/.libs/libcuda.so.1", cuda_load, cuda_make, cuda_unmake,
	  cuda_put, cuda_get, true, true, "cu", 719, "cuMemcpyHtoDAsync_v2",
	  "cuMemcpyDtoHAsync_v2" },
	{ FI_HMEM_ROCR, RUNTIME "rocr/.libs/libhsa-runtime64.so.1", rocr_load, rocr_make,
	  rocr_unmake, rocr_move, rocr_move, false, false, "hsa_", 0x1000, "hsa_memory_copy",
	  "hsa_memory_copy" },
	{ FI_HMEM_ZE, RUNTIME "ze/.libs/libze_loader.so.1", ze_load, ze_make, ze_unmake, ze_move,
	  ze_move, true, true, "ze", 0x70000001, "zeCommandListAppendMemoryCopy",
	  "zeCommandListAppendMemoryCopy" },
};

/* scripts/with-cuda has the tests run on the real one. */
static const char *file_of(int i)
{
	if (rigs[i].iface == FI_HMEM_CUDA && getenv("MRFAB_TEST_CUDA"))
		return RUNTIME "through/.libs/libcuda.so.1";
	return rigs[i].file;
}

const struct rig *rig_load(int i, struct rig_control *control)
{
	void *so = dlopen(file_of(i), RTLD_NOW | RTLD_LOCAL);

	if (!so)
		need(false, dlerror());
	find_symbol(so, "mrfab_runtime_fail", &control->fail_next);
	find_symbol(so, "mrfab_runtime_fails_left", &control->fails_left);
	find_symbol(so, "mrfab_runtime_calls", &control->calls);
	rigs[i].load(so);
	return &rigs[i];
}

/* ROCR's device has no number here: whatever is there is not looked at. */
void rig_attr(const struct rig *rig, int device, struct fi_mr_attr *attr)
{
	attr->iface = rig->iface;
	if (rig->iface == FI_HMEM_CUDA)
		attr->device.cuda = device;
	else if (rig->iface == FI_HMEM_ZE)
		attr->device.ze = device;
	else
		attr->device.reserved = 0x5a5a5a5a5a5a5a5a;
}
