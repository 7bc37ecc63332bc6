/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A real device of CUDA: what the stand-in cannot show, since it has no kernels, pools, or memory
 * that is mapped piece by piece or comes from another process. scripts/with-cuda runs it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "hmem/hmem.h"
#include "mr/device.h"
#include "mr_fixture.h"

#define SKIPPED 77
#define LEN (1u << 20)

typedef unsigned long long device_ptr;

/* CUmemAllocationProp and its parts; what is not named here is 0. */
struct place {
	int type, id; /* 1: a device */
};
struct piece_prop {
	int type, handles; /* 1: pinned on the device */
	struct place place;
	void *win32;
	unsigned char flags[8];
};
struct piece_access {
	struct place place;
	int access; /* 3: to read and write */
};
struct shared_handle {
	char bytes[64];
};

static struct {
	int (*init)(unsigned flags);
	int (*retain)(void **context, int device);
	int (*reset)(int device);
	int (*set_current)(void *context);
	int (*sync)(void);
	int (*alloc)(device_ptr *ptr, size_t len);
	int (*free)(device_ptr ptr);
	int (*alloc_managed)(device_ptr *ptr, size_t len, unsigned flags);
	int (*memset)(device_ptr ptr, unsigned char byte, size_t len);
	int (*get)(void *to, device_ptr from, size_t len);
	int (*stream)(void **stream, unsigned flags);
	int (*stream_wait)(void *stream);
	int (*alloc_async)(device_ptr *ptr, size_t len, void *stream);
	int (*free_async)(device_ptr ptr, void *stream);
	int (*module)(void **module, const void *image);
	int (*function)(void **function, void *module, const char *name);
	int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
		      void *stream, void **arguments, void **extra);
	int (*granularity)(size_t *size, const struct piece_prop *prop, int option);
	int (*create)(device_ptr *handle, size_t len, const struct piece_prop *prop,
		      uint64_t flags);
	int (*reserve)(device_ptr *ptr, size_t len, size_t alignment, device_ptr addr,
		       uint64_t flags);
	int (*map)(device_ptr ptr, size_t len, size_t offset, device_ptr handle, uint64_t flags);
	int (*unmap)(device_ptr ptr, size_t len);
	int (*set_access)(device_ptr ptr, size_t len, const struct piece_access *access,
			  size_t count);
	int (*release)(device_ptr handle);
	int (*share)(struct shared_handle *handle, device_ptr ptr);
	int (*open_shared)(device_ptr *ptr, struct shared_handle handle, unsigned flags);
	int (*host_register)(void *addr, size_t len, unsigned flags);
	int (*host_unregister)(void *addr);
	int (*capture)(void *stream, int mode);
	int (*capture_end)(void *stream, void **graph);
	int (*graph_destroy)(void *graph);
} cu;

static const struct {
	const char *name;
	void *function;
} symbols[] = {
	{ "cuInit", &cu.init },
	{ "cuDevicePrimaryCtxRetain", &cu.retain },
	{ "cuDevicePrimaryCtxReset_v2", &cu.reset },
	{ "cuCtxSetCurrent", &cu.set_current },
	{ "cuCtxSynchronize", &cu.sync },
	{ "cuMemAlloc_v2", &cu.alloc },
	{ "cuMemFree_v2", &cu.free },
	{ "cuMemAllocManaged", &cu.alloc_managed },
	{ "cuMemsetD8_v2", &cu.memset },
	{ "cuMemcpyDtoH_v2", &cu.get },
	{ "cuStreamCreate", &cu.stream },
	{ "cuStreamSynchronize", &cu.stream_wait },
	{ "cuMemAllocAsync", &cu.alloc_async },
	{ "cuMemFreeAsync", &cu.free_async },
	{ "cuModuleLoadData", &cu.module },
	{ "cuModuleGetFunction", &cu.function },
	{ "cuLaunchKernel", &cu.launch },
	{ "cuMemGetAllocationGranularity", &cu.granularity },
	{ "cuMemCreate", &cu.create },
	{ "cuMemAddressReserve", &cu.reserve },
	{ "cuMemMap", &cu.map },
	{ "cuMemUnmap", &cu.unmap },
	{ "cuMemSetAccess", &cu.set_access },
	{ "cuMemRelease", &cu.release },
	{ "cuIpcGetMemHandle", &cu.share },
	{ "cuIpcOpenMemHandle_v2", &cu.open_shared },
	{ "cuMemHostRegister_v2", &cu.host_register },
	{ "cuMemHostUnregister", &cu.host_unregister },
	{ "cuStreamBeginCapture_v2", &cu.capture },
	{ "cuStreamEndCapture", &cu.capture_end },
	{ "cuGraphDestroy", &cu.graph_destroy },
};
#define SYMBOLS (sizeof(symbols) / sizeof(symbols[0]))

static const struct mrf_hmem *hmem;
static struct mrf_hmem_why why;
static uint8_t out[LEN], in[LEN];

#define works(call) ck_assert_int_eq(call, 0)

static void load(void)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	ck_assert_ptr_nonnull(so);
	for (size_t i = 0; i < SYMBOLS; i++) {
		*(void **)symbols[i].function = dlsym(so, symbols[i].name);
		ck_assert_msg(*(void **)symbols[i].function, "%s", symbols[i].name);
	}
}

static void start(void)
{
	void *context;

	load();
	works(cu.init(0));
	works(cu.retain(&context, 0));
	works(cu.set_current(context));
	works(mrf_hmem_open(FI_HMEM_CUDA, &hmem));
}

static struct mrf_hmem_alloc found(device_ptr ptr)
{
	struct mrf_hmem_alloc alloc;

	ck_assert_msg(!hmem->find(ptr, &alloc, &why), "%s", why.text);
	return alloc;
}

static void is_device(device_ptr ptr, device_ptr front, size_t len)
{
	struct mrf_hmem_alloc alloc = found(ptr);

	ck_assert_int_eq(alloc.kind, MRF_HMEM_DEVICE);
	ck_assert_int_eq(alloc.device, 0);
	ck_assert_uint_eq(alloc.start, front);
	ck_assert_uint_ge(alloc.len, len);
}

static void put(device_ptr to, const void *from, size_t len)
{
	struct mrf_hmem_alloc alloc = found(to);

	ck_assert_msg(!hmem->put(&alloc, to, from, len, &why), "%s", why.text);
}

static void get(void *to, device_ptr from, size_t len)
{
	struct mrf_hmem_alloc alloc = found(from);

	ck_assert_msg(!hmem->get(&alloc, to, from, len, &why), "%s", why.text);
}

static void fill_out(unsigned seed)
{
	for (size_t i = 0; i < LEN; i++)
		out[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

/* The driver itself finds what put has written. */
static void there_and_back(device_ptr ptr, size_t len)
{
	fill_out((unsigned)(ptr >> 12));
	put(ptr, out, len);
	memset(in, 0, len);
	get(in, ptr, len);
	ck_assert_mem_eq(in, out, len);
	memset(in, 0, len);
	works(cu.get(in, ptr, len));
	ck_assert_mem_eq(in, out, len);
}

/* --- kernels ------------------------------------------------------------------------------ */

/* Waits until *flag is not 0, but not for ever, and writes what it saw to *seen. */
static const char waiter[] = ".version 7.0\n"
			     ".target sm_70\n"
			     ".address_size 64\n"
			     ".visible .entry waiter(.param .u64 flag, .param .u64 seen)\n"
			     "{\n"
			     ".reg .u64 %f, %s, %n;\n"
			     ".reg .u32 %v;\n"
			     ".reg .pred %p, %q;\n"
			     "ld.param.u64 %f, [flag];\n"
			     "ld.param.u64 %s, [seen];\n"
			     "mov.u64 %n, 0;\n"
			     "again:\n"
			     "ld.volatile.global.u32 %v, [%f];\n"
			     "add.u64 %n, %n, 1;\n"
			     "setp.ne.u32 %p, %v, 0;\n"
			     "@%p bra found;\n"
			     "setp.lt.u64 %q, %n, 20000000;\n"
			     "@%q bra again;\n"
			     "found:\n"
			     "st.volatile.global.u32 [%s], %v;\n"
			     "ret;\n"
			     "}\n";

static void launch(device_ptr flag, device_ptr seen, void *stream)
{
	void *arguments[] = { &flag, &seen }, *module, *function;

	works(cu.module(&module, waiter));
	works(cu.function(&function, module, "waiter"));
	works(cu.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

/*
 * A copy that waited for the kernel would wait for the very bytes that it brings. The kernel runs
 * on a stream of its own, and on the default stream, for which many calls of the driver wait.
 */
START_TEST(cuda_a_kernel_gets_the_bytes_that_it_waits_for)
{
	const uint32_t value = 0x12345678;
	uint32_t seen = 0;
	void *stream = NULL;
	device_ptr mem;

	start();
	works(cu.alloc(&mem, LEN));
	works(cu.memset(mem, 0, LEN));
	/* The library has to make something for its first copy. */
	if (_i / 2)
		put(mem + LEN / 2, &value, 4);
	if (_i % 2)
		works(cu.stream(&stream, 0));
	works(cu.sync());
	launch(mem, mem + 64, stream);
	put(mem, &value, 4);
	works(cu.sync());
	get(&seen, mem + 64, 4);
	ck_assert_uint_eq(seen, value);
	works(cu.free(mem));
}
END_TEST

/* --- kinds of memory ----------------------------------------------------------------------- */

START_TEST(cuda_memory_of_a_pool_is_copied)
{
	struct mrf_hmem_alloc alloc;
	device_ptr mem, other;
	void *stream;

	start();
	works(cu.stream(&stream, 1));
	works(cu.alloc_async(&mem, LEN, stream));
	works(cu.alloc_async(&other, LEN, stream));
	works(cu.stream_wait(stream));
	is_device(mem + LEN - 1, mem, LEN);
	there_and_back(mem, LEN);
	alloc = found(mem);
	ck_assert(alloc.id != found(other).id);
	works(cu.free_async(mem, stream));
	works(cu.stream_wait(stream));
	ck_assert_int_eq(hmem->put(&alloc, mem, out, 8, &why), -FI_EINVAL);
	works(cu.alloc_async(&mem, LEN, stream));
	works(cu.stream_wait(stream));
	ck_assert(alloc.id != found(mem).id);
	works(cu.free_async(mem, stream));
	works(cu.free_async(other, stream));
	works(cu.stream_wait(stream));
}
END_TEST

/* As PyTorch's expandable segments: one range of addresses, mapped piece by piece. */
static device_ptr make_pieces(unsigned pieces, size_t *size)
{
	const struct piece_prop prop = { .type = 1, .place = { 1, 0 } };
	const struct piece_access access = { { 1, 0 }, 3 };
	device_ptr range, handle;

	works(cu.granularity(size, &prop, 0));
	works(cu.reserve(&range, pieces * *size, 0, 0, 0));
	for (unsigned i = 0; i < pieces; i++) {
		works(cu.create(&handle, *size, &prop, 0));
		works(cu.map(range + i * *size, *size, 0, handle, 0));
		works(cu.release(handle));
	}
	works(cu.set_access(range, pieces * *size, &access, 1));
	return range;
}

START_TEST(cuda_memory_that_is_mapped_is_copied)
{
	struct mrf_hmem_alloc first, second;
	device_ptr range;
	size_t size;

	start();
	range = make_pieces(2, &size);
	first = found(range);
	second = found(range + size);
	ck_assert_int_eq(first.kind, MRF_HMEM_DEVICE);
	there_and_back(range, LEN);
	there_and_back(range + size + 100, LEN - 100);
	works(cu.unmap(range + size, size));
	ck_assert_int_eq(hmem->put(&second, range + size, out, 8, &why), -FI_EINVAL);
	works(cu.unmap(range, size));
}
END_TEST

static int copy(struct fid_mr *mr, bool to_device, device_ptr there, void *host, size_t len)
{
	return to_device ? mrf_mr_device_put(&env.space, fi_mr_desc(mr), there, host, len, &why)
			 : mrf_mr_device_get(&env.space, fi_mr_desc(mr), host, there, len, &why);
}

static void copies(struct fid_mr *mr, device_ptr there)
{
	fill_out((unsigned)(there >> 8));
	ck_assert_msg(!copy(mr, true, there, out, LEN), "%s", why.text);
	memset(in, 0, LEN);
	ck_assert_msg(!copy(mr, false, there, in, LEN), "%s", why.text);
	ck_assert_mem_eq(in, out, LEN);
}

static void replace_piece(device_ptr piece, size_t size)
{
	const struct piece_prop prop = { .type = 1, .place = { 1, 0 } };
	const struct piece_access access = { { 1, 0 }, 3 };
	device_ptr handle;

	works(cu.unmap(piece, size));
	works(cu.create(&handle, size, &prop, 0));
	works(cu.map(piece, size, 0, handle, 0));
	works(cu.release(handle));
	works(cu.set_access(piece, size, &access, 1));
}

/* A tensor may begin in any piece, and cross from one to the next. */
START_TEST(cuda_a_region_of_several_pieces_is_copied)
{
	struct fi_mr_attr attr = { .iov_count = 1, .access = FI_SEND | FI_RECV };
	struct fid_mr *mr;
	struct iovec iov;
	device_ptr range;
	size_t size;

	start();
	range = make_pieces(3, &size);
	iov = (struct iovec){ (void *)(uintptr_t)(range + 16), 3 * size - 16 };
	attr.mr_iov = &iov;
	attr.iface = FI_HMEM_CUDA;
	env_open(FI_MR_HMEM | FI_MR_ALLOCATED);
	works(fi_mr_regattr(&env.domain, &attr, 0, &mr));
	copies(mr, range + 16);
	copies(mr, range + size - LEN / 2);
	copies(mr, range + size + 100);
	copies(mr, range + 3 * size - LEN);
	replace_piece(range + size, size);
	ck_assert_int_eq(copy(mr, true, range + size, out, 1), -FI_EINVAL);
	ck_assert_int_eq(copy(mr, false, range + 2 * size - 1, in, 2), -FI_EINVAL);
	copies(mr, range + 16);
	copies(mr, range + 2 * size);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(cuda_managed_memory_is_copied)
{
	device_ptr mem;

	start();
	works(cu.alloc_managed(&mem, LEN, 1));
	ck_assert_int_eq(found(mem + 5).kind, MRF_HMEM_MANAGED);
	there_and_back(mem, LEN);
	ck_assert_mem_eq((void *)(uintptr_t)mem, out, LEN);
	works(cu.free(mem));
}
END_TEST

START_TEST(cuda_registered_memory_is_the_hosts)
{
	static uint8_t pages[2 * 4096] __attribute__((aligned(4096)));
	struct mrf_hmem_alloc alloc;

	start();
	ck_assert_int_eq(found((uintptr_t)pages).kind, MRF_HMEM_NONE);
	works(cu.host_register(pages, sizeof(pages), 1));
	alloc = found((uintptr_t)pages + 5000);
	ck_assert_int_eq(alloc.kind, MRF_HMEM_HOST);
	ck_assert_uint_eq(alloc.start, (uintptr_t)pages);
	ck_assert_uint_eq(alloc.len, sizeof(pages));
	works(cu.host_unregister(pages));
	ck_assert_int_eq(found((uintptr_t)pages).kind, MRF_HMEM_NONE);
}
END_TEST

/* What cudaDeviceReset does; the context that the library has retained is another one then. */
START_TEST(cuda_a_device_is_reset)
{
	struct mrf_hmem_alloc alloc;
	void *context;
	device_ptr mem;

	start();
	works(cu.alloc(&mem, LEN));
	there_and_back(mem, LEN);
	alloc = found(mem);
	works(cu.reset(0));
	ck_assert_int_eq(hmem->put(&alloc, mem, out, 8, &why), -FI_EINVAL);
	works(cu.retain(&context, 0));
	works(cu.set_current(context));
	works(cu.alloc(&mem, LEN));
	there_and_back(mem, LEN);
	works(cu.free(mem));
}
END_TEST

/* --- memory of another process ---------------------------------------------------------------- */

static int reads(int fd, void *to, size_t len)
{
	return read(fd, to, len) == (ssize_t)len ? 0 : -1;
}

/* The child: 0 if it can use the memory of its parent. */
static int use_shared(int fd)
{
	struct shared_handle handle;
	device_ptr mem;

	if (reads(fd, &handle, sizeof(handle)))
		return 1;
	start();
	works(cu.open_shared(&mem, handle, 1));
	is_device(mem + LEN - 1, mem, LEN);
	get(in, mem, LEN);
	fill_out(77);
	ck_assert_mem_eq(in, out, LEN);
	fill_out(78);
	put(mem, out, LEN);
	return 0;
}

START_TEST(cuda_memory_of_another_process_is_copied)
{
	struct shared_handle handle;
	int fd[2], status;
	device_ptr mem;
	pid_t child;

	works(pipe(fd));
	child = fork();
	if (!child)
		_exit(use_shared(fd[0]));
	start();
	works(cu.alloc(&mem, LEN));
	fill_out(77);
	put(mem, out, LEN);
	works(cu.share(&handle, mem));
	ck_assert_int_eq(write(fd[1], &handle, sizeof(handle)), sizeof(handle));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	fill_out(78);
	get(in, mem, LEN);
	ck_assert_mem_eq(in, out, LEN);
	works(cu.free(mem));
}
END_TEST

/*
 * --- many threads ------------------------------------------------------------------------------
 */

#define THREADS 6
#define TURNS 300

static atomic_bool over;

/* Each thread's own memory, which comes and goes. */
static void *copy_much(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	uint8_t here[4096], back[4096];
	void *context;
	device_ptr mem;

	works(cu.retain(&context, 0));
	for (unsigned turn = 0; turn < TURNS; turn++) {
		size_t len = 1 + rand_r(&seed) % sizeof(here);

		works(cu.set_current(context));
		works(cu.alloc(&mem, 3 * sizeof(here)));
		works(cu.set_current(NULL));
		memset(here, (int)turn, len);
		put(mem + turn, here, len);
		get(back, mem + turn, len);
		ck_assert_mem_eq(back, here, len);
		works(cu.set_current(context));
		works(cu.free(mem));
	}
	return NULL;
}

/* Captures that are for this thread only do not refuse what the others do. */
static void *capture_much(void *arg)
{
	void *context, *stream, *graph;
	unsigned *captures = arg;

	works(cu.retain(&context, 0));
	works(cu.set_current(context));
	works(cu.stream(&stream, 1));
	for (; !atomic_load(&over); ++*captures) {
		works(cu.capture(stream, 1));
		usleep(100);
		works(cu.capture_end(stream, &graph));
		works(cu.graph_destroy(graph));
	}
	return NULL;
}

START_TEST(cuda_threads_copy_while_another_captures)
{
	pthread_t thread[THREADS], captor;
	unsigned captures = 0;

	start();
	works(pthread_create(&captor, NULL, capture_much, &captures));
	for (uintptr_t i = 0; i < THREADS; i++)
		works(pthread_create(&thread[i], NULL, copy_much, (void *)i));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&over, true);
	pthread_join(captor, NULL);
	ck_assert_uint_gt(captures, 0);
}
END_TEST

static TCase *cuda_cases(void)
{
	TCase *tc = tcase_create("cuda");

	tcase_add_loop_test(tc, cuda_a_kernel_gets_the_bytes_that_it_waits_for, 0, 4);
	tcase_add_test(tc, cuda_memory_of_a_pool_is_copied);
	tcase_add_test(tc, cuda_memory_that_is_mapped_is_copied);
	tcase_add_test(tc, cuda_a_region_of_several_pieces_is_copied);
	tcase_add_test(tc, cuda_managed_memory_is_copied);
	tcase_add_test(tc, cuda_registered_memory_is_the_hosts);
	tcase_add_test(tc, cuda_a_device_is_reset);
	tcase_add_test(tc, cuda_memory_of_another_process_is_copied);
	tcase_add_test(tc, cuda_threads_copy_while_another_captures);
	return tc;
}

/* The stand-in has no kernels. */
static bool is_there(void)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	return so && dlsym(so, "cuLaunchKernel") && !access("/dev/nvidiactl", F_OK);
}

int main(void)
{
	static TCase *(*const cases[])(void) = { cuda_cases };

	if (is_there())
		return unit_run("cuda", cases, 1);
	puts("skipped: there is no device of CUDA");
	return SKIPPED;
}
