/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libcuda.so.1 between a test and the real one: it passes each call on, so that the tests that were
 * written for the stand-in (cuda.c) run on a device, with calls that fail when a test says so.
 * MRFAB_TEST_CUDA is the real library's path (scripts/with-cuda sets it).
 *
 * Tests use two devices (MRFAB_RUNTIME_DEVICES). Where there are fewer, another one is a context of
 * its own on a real device.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "memory.h"

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 8

enum { SUCCESS = 0, NO_DEVICE = 100, INVALID_DEVICE = 101 };
enum { AT_CONTEXT = 1, AT_DEVICE_ORDINAL = 9 };

typedef unsigned long long device_ptr;

static void *driver;

static void load(void)
{
	const char *path = getenv("MRFAB_TEST_CUDA");

	driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!driver) {
		fprintf(stderr, "through: %s\n", path ? dlerror() : "MRFAB_TEST_CUDA is not set");
		abort();
	}
}

static void *find(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	void *found;

	pthread_once(&once, load);
	found = dlsym(driver, name);
	if (!found) {
		fprintf(stderr, "through: %s\n", dlerror());
		abort();
	}
	return found;
}

/* The real function of this name, looked up once. */
#define REAL(function) ((__typeof__(&(function)))find(#function))

/* A call that a test has fail is not made. */
#define PASS(name, parameters, arguments)                    \
	EXPORT int name parameters;                          \
	EXPORT int name parameters                           \
	{                                                    \
		int error = rt_begin(__func__);              \
                                                             \
		return error ? error : REAL(name) arguments; \
	}

/* It is made in any case: what it ends would stay for ever. */
#define PASS_END(name, parameters, arguments)     \
	EXPORT int name parameters;               \
	EXPORT int name parameters                \
	{                                         \
		int error = REAL(name) arguments; \
		int told = rt_begin(__func__);    \
                                                  \
		return error ? error : told;      \
	}

struct context;
struct stream;
struct graph;

PASS(cuGetErrorName, (int error_, const char **name), (error_, name))
PASS(cuCtxGetId, (const struct context *context, unsigned long long *id), (context, id))
PASS(cuCtxPushCurrent_v2, (struct context * context), (context))
PASS(cuCtxGetCurrent, (struct context * *context), (context))
PASS(cuCtxSetCurrent, (struct context * context), (context))
PASS(cuThreadExchangeStreamCaptureMode, (int *mode), (mode))
PASS(cuMemAlloc_v2, (device_ptr * ptr, size_t len), (ptr, len))
PASS(cuMemAllocManaged, (device_ptr * ptr, size_t len, unsigned flags), (ptr, len, flags))
PASS(cuMemAllocHost_v2, (void **addr, size_t len), (addr, len))
PASS(cuMemFree_v2, (device_ptr ptr), (ptr))
PASS(cuMemFreeHost, (void *addr), (addr))
PASS(cuMemcpyHtoD_v2, (device_ptr to, const void *from, size_t len), (to, from, len))
PASS(cuMemcpyDtoH_v2, (void *to, device_ptr from, size_t len), (to, from, len))
PASS(cuMemcpyHtoDAsync_v2, (device_ptr to, const void *from, size_t len, struct stream *stream),
     (to, from, len, stream))
PASS(cuMemcpyDtoHAsync_v2, (void *to, device_ptr from, size_t len, struct stream *stream),
     (to, from, len, stream))
PASS(cuStreamCreate, (struct stream * *stream, unsigned flags), (stream, flags))
PASS(cuMemHostRegister_v2, (void *addr, size_t len, unsigned flags), (addr, len, flags))
PASS_END(cuMemHostUnregister, (void *addr), (addr))
PASS_END(cuStreamSynchronize, (struct stream * stream), (stream))
PASS_END(cuStreamDestroy_v2, (struct stream * stream), (stream))
PASS_END(cuCtxDestroy_v2, (struct context * context), (context))

/* Not made to fail: what the library pushed has to come off. */
EXPORT int cuCtxPopCurrent_v2(struct context **context);
EXPORT int cuCtxPopCurrent_v2(struct context **context)
{
	return REAL(cuCtxPopCurrent_v2)(context);
}

/* --- devices ------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *extra[DEVICES]; /* in the place of a device that is not there */

static int real_devices(void)
{
	int devices = 0;
	int (*count)(int *) = (int (*)(int *))find("cuDeviceGetCount");

	return count(&devices) ? 0 : devices;
}

EXPORT int cuInit(unsigned flags);
EXPORT int cuInit(unsigned flags)
{
	int error = rt_begin(__func__);

	if (!error && rt_devices() < 1)
		error = NO_DEVICE;
	return error ? error : REAL(cuInit)(flags);
}

EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGetCount(int *count)
{
	int error = rt_begin(__func__);

	*count = rt_devices();
	return error;
}

EXPORT int cuCtxCreate_v2(struct context **context, unsigned flags, int device);
EXPORT int cuCtxCreate_v2(struct context **context, unsigned flags, int device)
{
	int error = rt_begin(__func__);

	return error ? error : REAL(cuCtxCreate_v2)(context, flags, device % real_devices());
}

/* Creating a context makes it the thread's current one, which it must not be here. */
static int extra_context(struct context **context, int device)
{
	int error = SUCCESS;

	pthread_mutex_lock(&lock);
	if (!extra[device]) {
		error = REAL(cuCtxCreate_v2)(&extra[device], 0, device % real_devices());
		if (!error)
			error = REAL(cuCtxPopCurrent_v2)(context);
	}
	*context = extra[device];
	pthread_mutex_unlock(&lock);
	return error;
}

EXPORT int cuDevicePrimaryCtxRetain(struct context **context, int device);
EXPORT int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
	int error = rt_begin(__func__);

	if (error)
		return error;
	if (device < 0 || device >= rt_devices() || device >= DEVICES)
		return INVALID_DEVICE;
	if (device >= real_devices())
		return extra_context(context, device);
	return REAL(cuDevicePrimaryCtxRetain)(context, device);
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	int error = rt_begin(__func__);

	if (error)
		return error;
	if (device < real_devices())
		return REAL(cuDevicePrimaryCtxGetState)(device, flags, active);
	*active = device < DEVICES && extra[device];
	return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxReset_v2(int device);
EXPORT int cuDevicePrimaryCtxReset_v2(int device)
{
	int error = rt_begin(__func__);

	return error ? error : REAL(cuDevicePrimaryCtxReset_v2)(device);
}

/* The number of the device that the context stands for; -1: a real one. */
static int stands_for(const struct context *context)
{
	int device;

	pthread_mutex_lock(&lock);
	for (device = DEVICES - 1; device >= 0 && extra[device] != context; device--)
		;
	pthread_mutex_unlock(&lock);
	return context ? device : -1;
}

EXPORT int cuPointerGetAttributes(unsigned count, const int *which, void **value, device_ptr ptr);
EXPORT int cuPointerGetAttributes(unsigned count, const int *which, void **value, device_ptr ptr)
{
	int error = rt_begin(__func__), *number = NULL, device = -1;

	if (!error)
		error = REAL(cuPointerGetAttributes)(count, which, value, ptr);
	for (unsigned i = 0; i < count && !error; i++) {
		if (which[i] == AT_CONTEXT)
			device = stands_for(*(struct context **)value[i]);
		if (which[i] == AT_DEVICE_ORDINAL)
			number = value[i];
	}
	if (number && device >= 0)
		*number = device;
	return error;
}

/* --- a capture ----------------------------------------------------------------------------- */

int cuStreamBeginCapture_v2(struct stream *stream, int mode);
int cuStreamEndCapture(struct stream *stream, struct graph **graph);

static void must(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "through: %s: error %d\n", what, error);
	abort();
}

/* Of all threads; it must end as a good one. */
EXPORT void mrfab_runtime_capture(bool on);
EXPORT void mrfab_runtime_capture(bool on)
{
	static struct stream *stream;
	struct context *context;
	struct graph *graph;

	if (!on) {
		must(REAL(cuStreamEndCapture)(stream, &graph), "the capture was disturbed");
		return;
	}
	must(REAL(cuDevicePrimaryCtxRetain)(&context, 0), "cuDevicePrimaryCtxRetain");
	must(REAL(cuCtxPushCurrent_v2)(context), "cuCtxPushCurrent");
	must(REAL(cuStreamCreate)(&stream, 1), "cuStreamCreate");
	must(REAL(cuCtxPopCurrent_v2)(&context), "cuCtxPopCurrent");
	must(REAL(cuStreamBeginCapture_v2)(stream, 0), "cuStreamBeginCapture");
}

/* Memory in pieces is made by whoever wants some (t_cuda.c). */
EXPORT void mrfab_runtime_pieces(size_t size, const void *replaced);
EXPORT void mrfab_runtime_pieces(size_t size, const void *replaced)
{
	(void)size;
	(void)replaced;
}

#include "control.h"
