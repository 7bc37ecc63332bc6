/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUDA, by its driver interface. Its types and numbers are written down here, so that no
 * toolkit is needed for building.
 *
 * A copy is made in the context that the memory belongs to, on a stream of the library's that
 * does not wait for the application's kernels: one of them may be waiting for the very bytes
 * that are being copied. What kernels have written is visible to copies once they have ended;
 * ordering that is up to the application, as with any transfer. While some thread captures a
 * stream, the driver refuses such calls to all threads, except those that say that they do not
 * care.
 *
 * The host's memory for copies is not registered with the driver, which would make copies of 128
 * KiB about twice as fast: giving it back waits for all kernels of the device.
 *
 * The memory may have been freed since it was looked up, and its context destroyed, which must
 * not be given to the driver then. So each copy looks the memory up again.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/lock.h"
#include "base/param.h"
#include "base/renew.h"
#include "hmem/hmem.h"

#define LIBRARY "libcuda.so.1"
#define MAX_DEVICES 64

/* The driver's results that are told apart here. */
enum { DONE = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101 };

/* Attributes of an address. */
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

enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };

#define STREAM_NON_BLOCKING 1u
#define CAPTURE_RELAXED 2

struct context;
struct stream;
typedef unsigned long long device_ptr;

static struct {
	int (*init)(unsigned flags);
	int (*error_name)(int error, const char **name);
	int (*device_count)(int *count);
	int (*context_retain)(struct context **context, int device);
	int (*context_state)(int device, unsigned *flags, int *active); /* of the primary one */
	int (*context_id)(const struct context *context, unsigned long long *id); /* of CUDA 12 */
	int (*context_push)(struct context *context);
	int (*context_pop)(struct context **context);
	int (*capture_mode)(int *mode); /* of this thread; exchanges it */
	int (*attributes)(unsigned count, const int *attribute, void *const *value, device_ptr ptr);
	int (*copy_to_host)(void *to, device_ptr from, size_t len, struct stream *stream);
	int (*copy_from_host)(device_ptr to, const void *from, size_t len, struct stream *stream);
	int (*stream_create)(struct stream **stream, unsigned flags);
	int (*stream_wait)(struct stream *stream);
	int (*stream_destroy)(struct stream *stream);
} cu;

static const struct mrf_dl_symbol symbols[] = {
	{ "cuInit", &cu.init },
	{ "cuGetErrorName", &cu.error_name },
	{ "cuDeviceGetCount", &cu.device_count },
	{ "cuDevicePrimaryCtxRetain", &cu.context_retain },
	{ "cuDevicePrimaryCtxGetState", &cu.context_state },
	{ "cuCtxPushCurrent_v2", &cu.context_push },
	{ "cuCtxPopCurrent_v2", &cu.context_pop },
	{ "cuThreadExchangeStreamCaptureMode", &cu.capture_mode },
	{ "cuPointerGetAttributes", &cu.attributes },
	{ "cuMemcpyDtoHAsync_v2", &cu.copy_to_host },
	{ "cuMemcpyHtoDAsync_v2", &cu.copy_from_host },
	{ "cuStreamCreate", &cu.stream_create },
	{ "cuStreamSynchronize", &cu.stream_wait },
	{ "cuStreamDestroy_v2", &cu.stream_destroy },
};

/* --- errors ---------------------------------------------------------------------------- */

static int cuda_errno_of(int error)
{
	switch (error) {
	case DONE:
		return 0;
	case INVALID_VALUE:
		return -FI_EINVAL;
	case OUT_OF_MEMORY:
		return -FI_ENOMEM;
	case NO_DEVICE:
	case INVALID_DEVICE:
		return -FI_ENODEV;
	default:
		return -FI_EIO;
	}
}

/* Turns the result of a call into -FI_E*. */
static int cuda_said(const char *call, int error, struct mrf_hmem_why *why)
{
	const char *name = NULL;

	if (mrf_likely(!error))
		return 0;
	if (cu.error_name(error, &name) || !name)
		name = "an unknown error";
	snprintf(why->text, sizeof(why->text), "%s says %s (%d)", call, name, error);
	return cuda_errno_of(error);
}

static int open_cuda(struct mrf_hmem_why *why)
{
	int ret = mrf_dl_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), why), devices;

	mrf_dl_find(LIBRARY, "cuCtxGetId", &cu.context_id);
	if (!ret)
		ret = cuda_said("cuInit", cu.init(0), why);
	if (!ret)
		ret = cuda_said("cuDeviceGetCount", cu.device_count(&devices), why);
	if (!ret && devices < 1) {
		snprintf(why->text, sizeof(why->text), "%s finds no device", LIBRARY);
		ret = -FI_ENODEV;
	}
	return ret;
}

static int cuda_count_devices(int *devices, struct mrf_hmem_why *why)
{
	return cuda_said("cuDeviceGetCount", cu.device_count(devices), why);
}

/* --- contexts ------------------------------------------------------------------------------ */

/* The primary context of each device, once it was retained. */
static struct context *_Atomic primary[MAX_DEVICES];

/* The state of a thread that has to be restored. */
struct visit {
	int mode;
};

static int enter_context(struct visit *visit, struct context *context, struct mrf_hmem_why *why)
{
	int ret;

	visit->mode = CAPTURE_RELAXED;
	ret = cuda_said("cuThreadExchangeStreamCaptureMode", cu.capture_mode(&visit->mode), why);
	if (ret)
		return ret;
	ret = cuda_said("cuCtxPushCurrent", cu.context_push(context), why);
	if (ret)
		(void)cu.capture_mode(&visit->mode);
	return ret;
}

static void leave_context(struct visit *visit)
{
	struct context *ours;

	(void)cu.context_pop(&ours);
	(void)cu.capture_mode(&visit->mode);
}

/*
 * Memory from a pool, or that was mapped, belongs to no context. A primary context that was reset
 * has to be retained anew.
 */
static int primary_context(int device, struct context **context, struct mrf_hmem_why *why)
{
	unsigned flags;
	int active = 0, ret;

	if (device < 0 || device >= MAX_DEVICES)
		return cuda_said("the device's number", INVALID_DEVICE, why);
	*context = atomic_load(&primary[device]);
	if (*context && !cu.context_state(device, &flags, &active) && active)
		return 0;
	ret = cuda_said("cuDevicePrimaryCtxRetain", cu.context_retain(context, device), why);
	if (!ret)
		atomic_store(&primary[device], *context);
	return ret;
}

/* --- what an address is ------------------------------------------------------------------ */

static enum mrf_hmem_kind cuda_kind_of(unsigned type, unsigned managed)
{
	if (managed)
		return MRF_HMEM_MANAGED;
	if (type == TYPE_DEVICE)
		return MRF_HMEM_DEVICE;
	return type == TYPE_HOST ? MRF_HMEM_HOST : MRF_HMEM_NONE;
}

/* An address that the driver does not know has no type, which is no error of this call. */
static int cuda_ask(uintptr_t addr, struct mrf_hmem_alloc *alloc, struct context **context,
		    struct mrf_hmem_why *why)
{
	static const int attribute[] = { AT_MEMORY_TYPE,    AT_IS_MANAGED, AT_BUFFER_ID,
					 AT_DEVICE_ORDINAL, AT_CONTEXT,	   AT_RANGE_START,
					 AT_RANGE_SIZE };
	unsigned type = 0, managed = 0;
	unsigned long long id = 0;
	device_ptr start = 0;
	size_t len = 0;
	int device = 0, ret;
	void *const value[] = { &type, &managed, &id, &device, context, &start, &len };

	*context = NULL;
	*alloc = (struct mrf_hmem_alloc){ .kind = MRF_HMEM_NONE };
	ret = cuda_said("cuPointerGetAttributes", cu.attributes(7, attribute, value, addr), why);
	if (ret || cuda_kind_of(type, managed) == MRF_HMEM_NONE)
		return ret;
	alloc->kind = cuda_kind_of(type, managed);
	alloc->device = device;
	alloc->id = mrf_param_bool(MRF_PARAM_CUDA_MONITOR) ? id : 0;
	alloc->start = (uintptr_t)start;
	alloc->len = len;
	return 0;
}

/*
 * A range of addresses may be mapped piece by piece (PyTorch's expandable segments), each of which
 * comes and goes by itself and has its own number. A small allocation, on the other hand, is a
 * part of what is mapped.
 */
static void cut_to_piece(uintptr_t addr, struct mrf_hmem_alloc *alloc)
{
	static const int attribute[] = { AT_MAPPING_START, AT_MAPPING_SIZE };
	uintptr_t end = alloc->start + alloc->len, piece_end;
	device_ptr start = 0;
	size_t len = 0;
	void *const value[] = { &start, &len };

	/* A question of its own, because a driver that does not know these attributes fails it. */
	if (cu.attributes(2, attribute, value, addr) || !len)
		return;
	piece_end = mrf_min(end, (uintptr_t)start + len);
	alloc->start = mrf_max(alloc->start, (uintptr_t)start);
	alloc->len = piece_end - alloc->start;
	alloc->more = piece_end < end;
}

static int cuda_find(uintptr_t addr, struct mrf_hmem_alloc *alloc, struct mrf_hmem_why *why)
{
	struct context *context;
	int ret = cuda_ask(addr, alloc, &context, why);

	if (!ret && alloc->kind != MRF_HMEM_NONE)
		cut_to_piece(addr, alloc);
	return ret;
}

/* --- streams ------------------------------------------------------------------------------ */

/*
 * A stream is gone with its context, which the application may destroy, and the driver crashes if
 * it is used then. The address of a context is used again, its number is not. So a stream is
 * kept with the number of its context, and one whose context is gone stays for ever: it is
 * neither used nor destroyed. When all places are taken, copies make streams of their own.
 */
#define KEPT 64

static struct {
	unsigned long long context;
	struct stream *stream; /* NULL: free */
} kept[KEPT];

/* The driver does not work in a child of a process that has used it: none of them is of use. */
static void forget_kept(void)
{
	memset(kept, 0, sizeof(kept));
}

static struct mrf_static_lock keeping = MRF_STATIC_LOCK(forget_kept);

/* 0: the driver does not number them, so that no stream is kept. */
static unsigned long long number_of_context(const struct context *context)
{
	unsigned long long id = 0;

	return cu.context_id && !cu.context_id(context, &id) ? id : 0;
}

static struct stream *take_kept(unsigned long long context)
{
	struct stream *stream = NULL;
	unsigned i;

	mrf_static_take(&keeping);
	for (i = 0; i < KEPT && !(kept[i].stream && kept[i].context == context); i++)
		;
	if (i < KEPT) {
		stream = kept[i].stream;
		kept[i].stream = NULL;
	}
	mrf_static_release(&keeping);
	return stream;
}

/* False: there is no room. */
static bool keep(unsigned long long context, struct stream *stream)
{
	unsigned i;

	mrf_static_take(&keeping);
	for (i = 0; i < KEPT && kept[i].stream; i++)
		;
	if (i < KEPT) {
		kept[i].context = context;
		kept[i].stream = stream;
	}
	mrf_static_release(&keeping);
	return i < KEPT;
}

/* A stream of this thread's context. */
static int take_stream(unsigned long long context, struct stream **stream, struct mrf_hmem_why *why)
{
	*stream = context ? take_kept(context) : NULL;
	if (*stream)
		return 0;
	return cuda_said("cuStreamCreate", cu.stream_create(stream, STREAM_NON_BLOCKING), why);
}

/* It is kept for the next copy, if it did its work. */
static void give_stream(unsigned long long context, struct stream *stream, int ret)
{
	if (ret || !context || !keep(context, stream))
		(void)cu.stream_destroy(stream);
}

/* --- copies ------------------------------------------------------------------------------ */

struct copy {
	bool in; /* to the device */
	device_ptr there;
	void *here;
	size_t len;
};

static int copy_on(struct stream *stream, const struct copy *copy, struct mrf_hmem_why *why)
{
	int ret;

	if (copy->in)
		ret = cuda_said("cuMemcpyHtoDAsync",
				cu.copy_from_host(copy->there, copy->here, copy->len, stream), why);
	else
		ret = cuda_said("cuMemcpyDtoHAsync",
				cu.copy_to_host(copy->here, copy->there, copy->len, stream), why);
	/* Even a copy that failed may have been begun. */
	if (ret)
		(void)cu.stream_wait(stream);
	else
		ret = cuda_said("cuStreamSynchronize", cu.stream_wait(stream), why);
	return ret;
}

/* Copies in the memory's context, which is this thread's now. */
static int copy_in_context(const struct context *context, const struct copy *copy,
			   struct mrf_hmem_why *why)
{
	unsigned long long number = number_of_context(context);
	struct stream *stream;
	int ret = take_stream(number, &stream, why);

	if (ret)
		return ret;
	ret = copy_on(stream, copy, why);
	give_stream(number, stream, ret);
	return ret;
}

/* Finds the context of the memory, if it is still the same memory. */
static int find_home(const struct mrf_hmem_alloc *alloc, const struct copy *copy,
		     struct context **context, struct mrf_hmem_why *why)
{
	struct mrf_hmem_alloc now;
	int ret = cuda_ask(copy->there, &now, context, why);

	if (ret)
		return ret;
	if (now.kind != alloc->kind || now.id != alloc->id) {
		snprintf(why->text, sizeof(why->text),
			 "cuPointerGetAttributes says that the memory has been freed");
		return -FI_EINVAL;
	}
	return *context ? 0 : primary_context(now.device, context, why);
}

static int cuda_copy_bytes(const struct mrf_hmem_alloc *alloc, const struct copy *copy,
			   struct mrf_hmem_why *why)
{
	struct context *context;
	struct visit visit;
	int ret = find_home(alloc, copy, &context, why);

	mrf_slow_call();
	if (!ret)
		ret = enter_context(&visit, context, why);
	if (ret)
		return ret;
	ret = copy_in_context(context, copy, why);
	leave_context(&visit);
	return ret;
}

static int cuda_get(const struct mrf_hmem_alloc *alloc, void *to, uintptr_t from, size_t len,
		    struct mrf_hmem_why *why)
{
	struct copy copy = { false, from, to, len };

	return cuda_copy_bytes(alloc, &copy, why);
}

static int cuda_put(const struct mrf_hmem_alloc *alloc, uintptr_t to, const void *from, size_t len,
		    struct mrf_hmem_why *why)
{
	struct copy copy = { true, to, (void *)(uintptr_t)from, len };

	return cuda_copy_bytes(alloc, &copy, why);
}

const struct mrf_hmem mrf_hmem_cuda = {
	.iface = FI_HMEM_CUDA,
	.library = LIBRARY,
	.open = open_cuda,
	.count = cuda_count_devices,
	.find = cuda_find,
	.get = cuda_get,
	.put = cuda_put,
};
