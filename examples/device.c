/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a CUDA device: the target's is registered for peers, and the initiator reads it into
 * memory of its own device. The runtime is loaded when the program runs, so no toolkit is needed
 * to build it. Without a device, a stand-in takes the place of its runtime:
 *
 *	mrfab_with_rxe -- mrfab_run --runtime cuda ./device
 *
 * Other registration modes: mrfab_run --mode LOCAL+VIRT_ADDR+PROV_KEY --runtime cuda ./device
 */
#include <dlfcn.h>
#include "common.h"

#define LEN 10000

struct offer {
	char name[64];
	uint64_t addr, key;
};

static const char text[] = "from one device to another";

static struct fi_info *hints_of_both(void)
{
	return make_hints(FI_RMA | FI_HMEM, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
						    FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_HMEM);
}

/* --- what is used of CUDA's driver: each call returns 0 if it succeeds ---------------------- */

static int (*init)(unsigned flags);
static int (*device_get)(int *device, int ordinal);
static int (*context_retain)(void **context, int device);
static int (*context_set)(void *context);
static int (*mem_alloc)(uintptr_t *addr, size_t len);
static int (*mem_free)(uintptr_t addr);
static int (*copy_to_device)(uintptr_t to, const void *from, size_t len);
static int (*copy_from_device)(void *to, uintptr_t from, size_t len);

static const struct {
	const char *name;
	void *function;
} driver[] = {
	{ "cuInit", &init },
	{ "cuDeviceGet", &device_get },
	{ "cuDevicePrimaryCtxRetain", &context_retain },
	{ "cuCtxSetCurrent", &context_set },
	{ "cuMemAlloc_v2", &mem_alloc },
	{ "cuMemFree_v2", &mem_free },
	{ "cuMemcpyHtoD_v2", &copy_to_device },
	{ "cuMemcpyDtoH_v2", &copy_from_device },
};

#define cuda(call) ((call) ? die("CUDA refuses %s", #call) : (void)0)

/* Memory of device 0. Never touched by this process: the runtime copies to it and from it. */
static uintptr_t device_memory(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *function;
	uintptr_t addr;
	int device;

	if (!library)
		die("%s; without a device, run it by: mrfab_run --runtime cuda", dlerror());
	for (size_t i = 0; i < sizeof(driver) / sizeof(driver[0]); i++) {
		function = dlsym(library, driver[i].name);
		if (!function)
			die("%s", dlerror());
		memcpy(driver[i].function, &function, sizeof(function));
	}
	cuda(init(0));
	cuda(device_get(&device, 0));
	cuda(context_retain(&context, device));
	cuda(context_set(context));
	cuda(mem_alloc(&addr, LEN));
	return addr;
}

/* --- both sides ----------------------------------------------------------------------------- */

/* Only fi_mr_regattr can say whose memory it is. */
static void register_device(struct node *n, uintptr_t addr, uint64_t access)
{
	struct iovec iov = { (void *)addr, LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = access,
				   .requested_key = 5,
				   .iface = FI_HMEM_CUDA,
				   .device.cuda = 0 };

	must(fi_mr_regattr(n->domain, &attr, 0, &n->mr));
	if (node_has(n, FI_MR_ENDPOINT)) {
		must(fi_mr_bind(n->mr, &n->ep->fid, 0));
		must(fi_mr_enable(n->mr));
	}
}

static void target(int fd)
{
	uintptr_t addr = device_memory();
	struct offer offer;
	size_t len = sizeof(offer.name);
	struct node n;
	char done;

	cuda(copy_to_device(addr, text, sizeof(text)));
	node_open(&n, NULL, hints_of_both());
	must(fi_enable(n.ep));
	register_device(&n, addr, FI_REMOTE_READ);
	must(fi_getname(&n.ep->fid, offer.name, &len));
	offer.key = fi_mr_key(n.mr);
	offer.addr = node_has(&n, FI_MR_VIRT_ADDR) ? addr : 0;
	say("target: registers %d bytes of device 0 at %#lx", LEN, (unsigned long)addr);
	tell(fd, &offer, sizeof(offer));
	hear(fd, &done, 1);
	node_close(&n);
	cuda(mem_free(addr)); /* not before its region is closed */
}

/* A local buffer of a device always needs a descriptor, also without FI_MR_LOCAL. */
static void initiator(int fd)
{
	uintptr_t addr = device_memory();
	char bytes[LEN] = "";
	struct offer offer;
	struct node n;

	node_open(&n, NULL, hints_of_both());
	must(fi_enable(n.ep));
	register_device(&n, addr, FI_READ);
	hear(fd, &offer, sizeof(offer));
	post(fi_read(n.ep, (void *)addr, LEN, fi_mr_desc(n.mr), node_insert(&n, offer.name),
		     offer.addr, offer.key, NULL));
	if (node_wait(&n))
		die("initiator: cannot read");
	cuda(copy_from_device(bytes, addr, LEN));
	if (strcmp(bytes, text))
		die("initiator: reads \"%s\"", bytes);
	say("initiator: reads \"%s\" into memory of its own device", bytes);
	tell(fd, "", 1);
	node_close(&n);
	cuda(mem_free(addr));
}

int main(void)
{
	return run_both(target, initiator);
}
