/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a copy from or to a device costs by the library, against the driver's own calls with a
 * context that is current and a stream that is kept. For a machine with a device of CUDA:
 * scripts/with-cuda runs it. Prints ratios, of copies in turn, the median of many.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "base/compiler.h"
#include "hmem/hmem.h"
#include "bench.h"

#define MOST (16ul << 20)
#define ROUNDS 401

typedef unsigned long long device_ptr;

static struct {
	int (*init)(unsigned flags);
	int (*retain)(void **context, int device);
	int (*set_current)(void *context);
	int (*alloc)(device_ptr *ptr, size_t len);
	int (*stream)(void **stream, unsigned flags);
	int (*stream_wait)(void *stream);
	int (*to_host)(void *to, device_ptr from, size_t len, void *stream);
	int (*to_device)(device_ptr to, const void *from, size_t len, void *stream);
} cu;

static const struct mrf_hmem *hmem;
static struct mrf_hmem_why why;
static void *stream;
static device_ptr there;
static uint8_t *here;

static void find(void *so, const char *name, void *function)
{
	*(void **)function = dlsym(so, name);
	bench_must(name, !*(void **)function);
}

static void load(void)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!so) {
		fprintf(stderr, "cost_hmem: %s\n", dlerror());
		exit(2);
	}
	find(so, "cuInit", &cu.init);
	find(so, "cuDevicePrimaryCtxRetain", &cu.retain);
	find(so, "cuCtxSetCurrent", &cu.set_current);
	find(so, "cuMemAlloc_v2", &cu.alloc);
	find(so, "cuStreamCreate", &cu.stream);
	find(so, "cuStreamSynchronize", &cu.stream_wait);
	find(so, "cuMemcpyDtoHAsync_v2", &cu.to_host);
	find(so, "cuMemcpyHtoDAsync_v2", &cu.to_device);
}

static void start(void)
{
	void *context;

	load();
	bench_must("cuInit", cu.init(0));
	bench_must("cuDevicePrimaryCtxRetain", cu.retain(&context, 0));
	bench_must("cuCtxSetCurrent", cu.set_current(context));
	bench_must("cuMemAlloc", cu.alloc(&there, MOST));
	bench_must("cuStreamCreate", cu.stream(&stream, 1));
	bench_must("FI_HMEM_CUDA", mrf_hmem_open(FI_HMEM_CUDA, &hmem));
	here = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		    -1, 0);
	bench_must("mmap", here == MAP_FAILED);
}

/* Nanoseconds of one copy. */
static double copy_raw(bool in, size_t len)
{
	uint64_t begin = bench_now();

	if (in)
		bench_must("cuMemcpyHtoDAsync", cu.to_device(there, here, len, stream));
	else
		bench_must("cuMemcpyDtoHAsync", cu.to_host(here, there, len, stream));
	bench_must("cuStreamSynchronize", cu.stream_wait(stream));
	return (double)(bench_now() - begin);
}

static double copy_ours(bool in, size_t len)
{
	struct mrf_hmem_alloc alloc;
	uint64_t begin;

	bench_must("find", hmem->find(there, &alloc, &why));
	begin = bench_now();
	if (in)
		bench_must("put", hmem->put(&alloc, there, here, len, &why));
	else
		bench_must("get", hmem->get(&alloc, here, there, len, &why));
	return (double)(bench_now() - begin);
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double ratio(bool in, size_t len)
{
	static double raw[ROUNDS], ours[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		raw[i] = copy_raw(in, len);
		ours[i] = copy_ours(in, len);
	}
	qsort(raw, ROUNDS, sizeof(raw[0]), order);
	qsort(ours, ROUNDS, sizeof(ours[0]), order);
	return ours[ROUNDS / 2] / raw[ROUNDS / 2];
}

static const struct {
	const char *name;
	size_t len;
} sizes[] = { { "8 B", 8 },	     { "4 KiB", 4096 },	   { "64 KiB", 65536 },
	      { "256 KiB", 262144 }, { "1 MiB", 1048576 }, { "16 MiB", MOST } };

int main(void)
{
	start();
	puts("| bytes | from the device, library / driver | to the device |");
	puts("| --- | ---: | ---: |");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		printf("| %s | %.3f | %.3f |\n", sizes[i].name, ratio(false, sizes[i].len),
		       ratio(true, sizes[i].len));
	return 0;
}
