/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for libcuda.so.1: allocations, contexts, streams, copies, attributes of addresses,
 * without a device (memory.h). Asynchronous copies are really late: the bytes move when the
 * stream is waited for, and not before. What a program of this library needs is here, not all
 * of the driver. Names of the exported functions and numbers are CUDA's.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "memory.h"

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 8
#define DEPTH 16 /* contexts on a thread's stack */

enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	ALREADY_REGISTERED = 712,
	NOT_REGISTERED = 713,
	INVALID_HANDLE = 400,
	ILLEGAL_ADDRESS = 700,
	LAUNCH_FAILED = 719,
	CAPTURE_UNSUPPORTED = 900
};

enum { DEVICE_BIT = 1 << RT_DEVICE, MANAGED_BIT = 1 << RT_MANAGED, HOST_BIT = 1 << RT_HOST };

typedef unsigned long long device_ptr;

struct context {
	int device;
	_Atomic unsigned long long id; /* another one once it was reset */
	bool dead;
	struct context *next;
};

struct late {
	struct late *next;
	void *to;
	const void *from;
	size_t len;
};

struct stream {
	struct context *context;
	unsigned long long id; /* the context's then */
	struct late *first, **last;
};

static atomic_bool ready;
static pid_t owner; /* the driver does not work in a child of the process that started it */
static atomic_bool capturing;
static _Thread_local int capture_mode; /* 0: refused what might disturb another thread's capture */
static struct context primary[DEVICES];
static atomic_bool retained[DEVICES];	 /* at any time */
static struct context *_Atomic contexts; /* of applications; they stay */
static _Thread_local struct context *stack[DEPTH];
static _Thread_local unsigned depth;
static pthread_mutex_t streams = PTHREAD_MUTEX_INITIALIZER;

/* Calls that wait, or that make something, disturb a capture. */
#define NOT_WHILE_CAPTURING()                                 \
	do {                                                  \
		if (atomic_load(&capturing) && !capture_mode) \
			return CAPTURE_UNSUPPORTED;           \
	} while (0)

/* Every call begins so. */
#define BEGIN()                                  \
	do {                                     \
		int error_ = rt_begin(__func__); \
		if (error_)                      \
			return error_;           \
		if (!ready || owner != getpid()) \
			return NOT_INITIALIZED;  \
	} while (0)

static struct context *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static int need_context(struct context **context)
{
	*context = current();
	return *context && !(*context)->dead ? SUCCESS : INVALID_CONTEXT;
}

/* --- the driver, devices, contexts --------------------------------------------------------- */

static void set_id(struct context *context)
{
	static _Atomic unsigned long long last;

	context->id = atomic_fetch_add(&last, 1) + 1;
}

static void start(void)
{
	for (int i = 0; i < DEVICES; i++) {
		primary[i].device = i;
		set_id(&primary[i]);
	}
	owner = getpid();
	atomic_store(&ready, true);
}

EXPORT int cuInit(unsigned flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int error = rt_begin(__func__);

	if (error)
		return error;
	if (flags)
		return INVALID_VALUE;
	if (rt_devices() < 1)
		return NO_DEVICE;
	pthread_once(&once, start);
	return owner == getpid() ? SUCCESS : NOT_INITIALIZED;
}

/* Another thread captures a stream, or has done so. */
EXPORT void mrfab_runtime_capture(bool on)
{
	atomic_store(&capturing, on);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int was = capture_mode;

	BEGIN();
	if (*mode < 0 || *mode > 2)
		return INVALID_VALUE;
	capture_mode = *mode;
	*mode = was;
	return SUCCESS;
}

EXPORT int cuGetErrorName(int error, const char **name)
{
	static const struct {
		int error;
		const char *name;
	} names[] = { { INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
		      { OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
		      { NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED" },
		      { NO_DEVICE, "CUDA_ERROR_NO_DEVICE" },
		      { INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE" },
		      { INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT" },
		      { INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE" },
		      { ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" },
		      { LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED" } };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].error == error) {
			*name = names[i].name;
			return SUCCESS;
		}
	}
	*name = NULL;
	return INVALID_VALUE;
}

EXPORT int cuDriverGetVersion(int *version)
{
	*version = 12000;
	return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count)
{
	BEGIN();
	*count = rt_devices();
	return SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	BEGIN();
	if (ordinal < 0 || ordinal >= rt_devices())
		return INVALID_DEVICE;
	*device = ordinal;
	return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
	BEGIN();
	if (device < 0 || device >= rt_devices() || device >= DEVICES)
		return INVALID_DEVICE;
	*context = &primary[device];
	atomic_store(&retained[device], true);
	return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	BEGIN();
	if (device < 0 || device >= rt_devices() || device >= DEVICES)
		return INVALID_DEVICE;
	*flags = 0;
	*active = atomic_load(&retained[device]);
	return SUCCESS;
}

/* All that is in it goes; its address stays the same. */
EXPORT int cuDevicePrimaryCtxReset_v2(int device)
{
	BEGIN();
	if (device < 0 || device >= rt_devices() || device >= DEVICES)
		return INVALID_DEVICE;
	rt_free_of(&primary[device]);
	set_id(&primary[device]);
	atomic_store(&retained[device], false);
	return SUCCESS;
}

EXPORT int cuCtxGetId(const struct context *context, unsigned long long *id)
{
	BEGIN();
	*id = context->id;
	return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	BEGIN();
	return device < 0 || device >= rt_devices() ? INVALID_DEVICE : SUCCESS;
}

EXPORT int cuCtxCreate_v2(struct context **context, unsigned flags, int device)
{
	(void)flags;
	BEGIN();
	if (device < 0 || device >= rt_devices())
		return INVALID_DEVICE;
	*context = calloc(1, sizeof(**context));
	if (!*context)
		return OUT_OF_MEMORY;
	(*context)->device = device;
	set_id(*context);
	(*context)->next = contexts;
	while (!atomic_compare_exchange_weak(&contexts, &(*context)->next, *context))
		;
	if (depth < DEPTH)
		stack[depth++] = *context;
	return SUCCESS;
}

/* Its structure stays, so that using it is an error and not a crash. */
EXPORT int cuCtxDestroy_v2(struct context *context)
{
	BEGIN();
	if (!context || context->dead)
		return INVALID_CONTEXT;
	context->dead = true;
	rt_free_of(context);
	if (current() == context)
		depth--;
	return SUCCESS;
}

EXPORT int cuCtxPushCurrent_v2(struct context *context)
{
	BEGIN();
	if (!context || context->dead || depth == DEPTH)
		return INVALID_CONTEXT;
	stack[depth++] = context;
	return SUCCESS;
}

/* Not made to fail: what a call of ours pushed has to come off. */
EXPORT int cuCtxPopCurrent_v2(struct context **context)
{
	if (!depth)
		return INVALID_CONTEXT;
	*context = stack[--depth];
	return SUCCESS;
}

EXPORT int cuCtxGetCurrent(struct context **context)
{
	BEGIN();
	*context = current();
	return SUCCESS;
}

EXPORT int cuCtxSetCurrent(struct context *context)
{
	BEGIN();
	if (depth)
		depth--;
	if (context)
		stack[depth++] = context;
	return SUCCESS;
}

EXPORT int cuCtxSynchronize(void)
{
	struct context *context;

	BEGIN();
	return need_context(&context);
}

/* --- memory ------------------------------------------------------------------------------ */

static int allocate(enum rt_kind kind, void **addr, size_t len)
{
	struct context *context;
	int error = need_context(&context);

	if (error)
		return error;
	if (!len)
		return INVALID_VALUE;
	*addr = rt_new(kind, context->device, context, len);
	return *addr ? SUCCESS : OUT_OF_MEMORY;
}

EXPORT int cuMemAlloc_v2(device_ptr *ptr, size_t len)
{
	void *addr;
	int error;

	BEGIN();
	error = allocate(RT_DEVICE, &addr, len);
	if (!error)
		*ptr = (uintptr_t)addr;
	return error;
}

EXPORT int cuMemAllocManaged(device_ptr *ptr, size_t len, unsigned flags)
{
	void *addr;
	int error;

	(void)flags;
	BEGIN();
	error = allocate(RT_MANAGED, &addr, len);
	if (!error)
		*ptr = (uintptr_t)addr;
	return error;
}

EXPORT int cuMemFree_v2(device_ptr ptr)
{
	BEGIN();
	return rt_free((void *)(uintptr_t)ptr, DEVICE_BIT | MANAGED_BIT) ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuMemHostAlloc(void **addr, size_t len, unsigned flags)
{
	(void)flags;
	BEGIN();
	return allocate(RT_HOST, addr, len);
}

EXPORT int cuMemAllocHost_v2(void **addr, size_t len)
{
	BEGIN();
	return allocate(RT_HOST, addr, len);
}

EXPORT int cuMemFreeHost(void *addr)
{
	BEGIN();
	return rt_free(addr, HOST_BIT) ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuMemHostRegister_v2(void *addr, size_t len, unsigned flags)
{
	struct context *context;
	int error;

	(void)flags;
	BEGIN();
	NOT_WHILE_CAPTURING();
	error = need_context(&context);
	if (error)
		return error;
	return rt_adopt(addr, len, context) ? SUCCESS : ALREADY_REGISTERED;
}

EXPORT int cuMemHostUnregister(void *addr)
{
	BEGIN();
	return rt_free(addr, HOST_BIT) ? SUCCESS : NOT_REGISTERED;
}

EXPORT int cuMemGetAddressRange_v2(device_ptr *start, size_t *len, device_ptr ptr)
{
	struct context *context;
	struct rt_alloc alloc;
	int error;

	BEGIN();
	error = need_context(&context);
	if (error)
		return error;
	if (!rt_find(ptr, &alloc) || alloc.kind == RT_HOST)
		return INVALID_VALUE;
	if (start)
		*start = (uintptr_t)alloc.front;
	if (len)
		*len = alloc.len;
	return SUCCESS;
}

enum {
	AT_CONTEXT = 1,
	AT_MEMORY_TYPE = 2,
	AT_BUFFER_ID = 7,
	AT_IS_MANAGED = 8,
	AT_DEVICE_ORDINAL = 9,
	AT_RANGE_START = 11,
	AT_RANGE_SIZE = 12,
	AT_MAPPING_SIZE = 18,
	AT_MAPPING_START = 19
};

/* 0: allocations are whole. Otherwise memory of devices is in pieces of so many bytes. */
static size_t piece_size;
static uintptr_t other_piece; /* an address in one that has been replaced; 0: none */

EXPORT void mrfab_runtime_pieces(size_t size, const void *replaced)
{
	piece_size = size;
	other_piece = (uintptr_t)replaced;
}

static bool is_in_pieces(const struct rt_alloc *alloc)
{
	return alloc && alloc->kind == RT_DEVICE && piece_size;
}

static size_t piece_of(const struct rt_alloc *alloc, uintptr_t addr)
{
	return (addr - (uintptr_t)alloc->front) / piece_size;
}

static unsigned long long id_of(const struct rt_alloc *alloc, uintptr_t addr)
{
	size_t piece;

	if (!is_in_pieces(alloc))
		return alloc ? alloc->id : 0;
	piece = piece_of(alloc, addr);
	return alloc->id << 32 | piece << 1 |
	       (other_piece && piece_of(alloc, other_piece) == piece);
}

/* alloc NULL: no memory of ours. */
static int attribute(int which, void *value, const struct rt_alloc *alloc, uintptr_t addr)
{
	size_t piece = is_in_pieces(alloc) ? piece_of(alloc, addr) * piece_size : 0;

	switch (which) {
	case AT_CONTEXT:
		*(void **)value = alloc && alloc->kind != RT_MANAGED && !is_in_pieces(alloc)
					  ? alloc->owner
					  : NULL;
		return SUCCESS;
	case AT_MEMORY_TYPE:
		*(unsigned *)value = !alloc ? 0 : alloc->kind == RT_HOST ? 1 : 2;
		return SUCCESS;
	case AT_BUFFER_ID:
		*(unsigned long long *)value = id_of(alloc, addr);
		return SUCCESS;
	case AT_IS_MANAGED:
		*(unsigned *)value = alloc && alloc->kind == RT_MANAGED;
		return SUCCESS;
	case AT_DEVICE_ORDINAL:
		*(int *)value = alloc ? alloc->device : -2;
		return SUCCESS;
	case AT_RANGE_START:
		*(device_ptr *)value = alloc ? (uintptr_t)alloc->front : 0;
		return SUCCESS;
	case AT_RANGE_SIZE:
		*(size_t *)value = alloc ? alloc->len : 0;
		return SUCCESS;
	case AT_MAPPING_START:
		*(device_ptr *)value = alloc ? (uintptr_t)alloc->front + piece : 0;
		return SUCCESS;
	case AT_MAPPING_SIZE:
		*(size_t *)value = is_in_pieces(alloc) ? piece_size : alloc ? alloc->len : 0;
		return SUCCESS;
	default:
		return INVALID_VALUE;
	}
}

EXPORT int cuPointerGetAttributes(unsigned count, const int *which, void **value, device_ptr ptr)
{
	struct rt_alloc alloc;
	bool known;
	unsigned i;
	int error = SUCCESS;

	BEGIN();
	known = rt_find(ptr, &alloc);
	for (i = 0; i < count && !error; i++)
		error = attribute(which[i], value[i], known ? &alloc : NULL, ptr);
	return error;
}

EXPORT int cuPointerGetAttribute(void *value, int which, device_ptr ptr)
{
	struct rt_alloc alloc;

	BEGIN();
	return rt_find(ptr, &alloc) ? attribute(which, value, &alloc, ptr) : INVALID_VALUE;
}

/* --- streams and copies ------------------------------------------------------------------ */

EXPORT int cuStreamCreate(struct stream **stream, unsigned flags)
{
	struct context *context;
	int error;

	(void)flags;
	BEGIN();
	NOT_WHILE_CAPTURING();
	error = need_context(&context);
	if (error)
		return error;
	*stream = calloc(1, sizeof(**stream));
	if (!*stream)
		return OUT_OF_MEMORY;
	(*stream)->context = context;
	(*stream)->id = context->id;
	(*stream)->last = &(*stream)->first;
	return SUCCESS;
}

/* The driver crashes, too. */
static void need_stream(const struct stream *stream)
{
	if (stream->id != stream->context->id || stream->context->dead)
		abort();
}

static void run_late(struct stream *stream, bool move)
{
	struct late *late;

	pthread_mutex_lock(&streams);
	while ((late = stream->first)) {
		stream->first = late->next;
		if (move)
			rt_copy(late->to, late->from, late->len);
		free(late);
	}
	stream->last = &stream->first;
	pthread_mutex_unlock(&streams);
}

EXPORT int cuStreamSynchronize(struct stream *stream)
{
	BEGIN();
	NOT_WHILE_CAPTURING();
	if (!stream)
		return SUCCESS;
	need_stream(stream);
	run_late(stream, true);
	return SUCCESS;
}

/* What nobody has waited for is lost. */
EXPORT int cuStreamDestroy_v2(struct stream *stream)
{
	if (!stream)
		return INVALID_HANDLE;
	need_stream(stream);
	run_late(stream, false);
	free(stream);
	return rt_begin(__func__);
}

static int copy_late(struct stream *stream, void *to, const void *from, size_t len)
{
	struct late *late = malloc(sizeof(*late));

	if (!late)
		return OUT_OF_MEMORY;
	*late = (struct late){ NULL, to, from, len };
	pthread_mutex_lock(&streams);
	*stream->last = late;
	stream->last = &late->next;
	pthread_mutex_unlock(&streams);
	return SUCCESS;
}

/*
 * Device memory is only copied in the context that it belongs to. stream NULL: at once. A host
 * address that is device memory is an error here, which a program may get away with elsewhere.
 */
static int copy(void *to, const void *from, size_t len, device_ptr there, struct stream *stream)
{
	struct context *context;
	struct rt_alloc alloc;
	int error = need_context(&context);

	if (error)
		return error;
	if (!to || !from || !rt_find(there, &alloc))
		return INVALID_VALUE;
	if (alloc.kind == RT_DEVICE && alloc.owner != context)
		return INVALID_CONTEXT;
	if (stream) {
		need_stream(stream);
		return copy_late(stream, to, from, len);
	}
	rt_copy(to, from, len);
	return SUCCESS;
}

static bool is_device(const void *here)
{
	struct rt_alloc alloc;

	return rt_find((uintptr_t)here, &alloc) && alloc.kind == RT_DEVICE;
}

EXPORT int cuMemcpyHtoD_v2(device_ptr to, const void *from, size_t len)
{
	BEGIN();
	rt_move(to);
	return is_device(from) ? INVALID_VALUE : copy(rt_bytes(to, len), from, len, to, NULL);
}

EXPORT int cuMemcpyDtoH_v2(void *to, device_ptr from, size_t len)
{
	BEGIN();
	return is_device(to) ? INVALID_VALUE : copy(to, rt_bytes(from, len), len, from, NULL);
}

EXPORT int cuMemcpyHtoDAsync_v2(device_ptr to, const void *from, size_t len, struct stream *stream)
{
	BEGIN();
	return is_device(from) ? INVALID_VALUE : copy(rt_bytes(to, len), from, len, to, stream);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, device_ptr from, size_t len, struct stream *stream)
{
	BEGIN();
	return is_device(to) ? INVALID_VALUE : copy(to, rt_bytes(from, len), len, from, stream);
}

EXPORT int cuMemsetD8_v2(device_ptr to, unsigned char byte, size_t count)
{
	struct context *context;
	uint8_t *bytes;
	int error;

	BEGIN();
	error = need_context(&context);
	if (error)
		return error;
	bytes = rt_bytes(to, count);
	if (!bytes)
		return INVALID_VALUE;
	memset(bytes, byte, count);
	return SUCCESS;
}

#include "control.h"
