/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of devices, as the stand-ins for the runtimes have it (tests/runtime). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "hmem/hmem.h"
#include "runtime/rig.h"
#include "fork_inside.h"
#include "unit.h"

#define LEN 10000u

static struct rig_control control;
static const struct rig *rig;
static const struct mrf_hmem *hmem;
static struct mrf_hmem_why why;

static void load(int i)
{
	rig = rig_load(i, &control);
}

static void open_rig(int i)
{
	load(i);
	ck_assert_int_eq(mrf_hmem_open(rig->iface, &hmem), 0);
	ck_assert_int_eq(hmem->iface, rig->iface);
}

static struct mrf_hmem_alloc found(const void *addr)
{
	struct mrf_hmem_alloc alloc;

	ck_assert_msg(!hmem->find((uintptr_t)addr, &alloc, &why), "%s", why.text);
	return alloc;
}

static void fill(uint8_t *bytes, size_t len, unsigned seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

/* --- what an address is ------------------------------------------------------------------ */

START_TEST(hmem_knows_what_an_address_is)
{
	static const enum mrf_hmem_kind kinds[] = { [RT_DEVICE] = MRF_HMEM_DEVICE,
						    [RT_MANAGED] = MRF_HMEM_MANAGED,
						    [RT_HOST] = MRF_HMEM_HOST };
	struct mrf_hmem_alloc alloc;
	uint8_t *mem;
	unsigned k;

	open_rig(_i);
	for (k = 0; k < 3; k++) {
		if (k == RT_MANAGED && !rig->managed)
			continue;
		mem = rig->make((enum rt_kind)k, 1, LEN);
		alloc = found(mem + LEN - 1);
		ck_assert_int_eq(alloc.kind, kinds[k]);
		if (kinds[k] != MRF_HMEM_HOST)
			ck_assert_int_eq(alloc.device, 1);
		ck_assert_uint_eq(alloc.start, (uintptr_t)mem);
		ck_assert_uint_eq(alloc.len, LEN);
		rig->unmake((enum rt_kind)k, mem);
		ck_assert_int_eq(found(mem).kind, MRF_HMEM_NONE);
	}
	ck_assert_int_eq(found(&alloc).kind, MRF_HMEM_NONE);
	ck_assert_int_eq(found(NULL).kind, MRF_HMEM_NONE);
}
END_TEST

START_TEST(hmem_an_allocation_at_the_same_address_is_another)
{
	void *mem, *again;
	uint64_t id;

	open_rig(_i);
	mem = rig->make(RT_DEVICE, 0, LEN);
	id = found(mem).id;
	ck_assert_uint_ne(id, 0);
	ck_assert_uint_eq(found(mem).id, id);
	rig->unmake(RT_DEVICE, mem);
	again = rig->make(RT_DEVICE, 0, LEN);
	ck_assert_ptr_eq(again, mem);
	ck_assert_uint_ne(found(mem).id, id);
	rig->unmake(RT_DEVICE, mem);
}
END_TEST

START_TEST(hmem_counts_devices)
{
	int devices = 0;

	open_rig(_i);
	ck_assert_int_eq(hmem->count(&devices, &why), 0);
	ck_assert_int_eq(devices, 2);
}
END_TEST

/* --- copies ------------------------------------------------------------------------------ */

static void there_and_back(uint8_t *mem, size_t off, size_t len, unsigned seed)
{
	static uint8_t out[LEN], in[LEN];
	struct mrf_hmem_alloc alloc = found(mem);

	fill(out, len, seed);
	memset(in, 0, len);
	ck_assert_msg(!hmem->put(&alloc, (uintptr_t)mem + off, out, len, &why), "%s", why.text);
	ck_assert_msg(!hmem->get(&alloc, in, (uintptr_t)mem + off, len, &why), "%s", why.text);
	ck_assert_int_eq(memcmp(in, out, len), 0);
}

START_TEST(hmem_copies_any_bytes_of_any_device)
{
	static const struct {
		size_t off, len;
	} parts[] = { { 0, LEN }, { 1, 1 }, { LEN - 1, 1 }, { 4095, 2 }, { 3, 8000 } };
	uint8_t *mem;
	unsigned i;

	open_rig(_i / 2);
	mem = rig->make(RT_DEVICE, _i % 2, LEN);
	for (i = 0; i < 5; i++)
		there_and_back(mem, parts[i].off, parts[i].len, i);
	rig->unmake(RT_DEVICE, mem);
}
END_TEST

static void *copy_in_thread(void *mem)
{
	there_and_back(mem, 5, 100, 9);
	return NULL;
}

START_TEST(hmem_any_thread_copies)
{
	pthread_t thread;
	void *mem;

	open_rig(_i);
	mem = rig->make(RT_DEVICE, 1, LEN);
	ck_assert_int_eq(pthread_create(&thread, NULL, copy_in_thread, mem), 0);
	pthread_join(thread, NULL);
	rig->unmake(RT_DEVICE, mem);
}
END_TEST

START_TEST(hmem_freed_memory_is_not_copied)
{
	struct mrf_hmem_alloc alloc;
	uint8_t byte = 1, *mem;
	int ret;

	open_rig(_i);
	mem = rig->make(RT_DEVICE, 0, LEN);
	alloc = found(mem);
	rig->unmake(RT_DEVICE, mem);
	ret = hmem->put(&alloc, (uintptr_t)mem, &byte, 1, &why);
	ck_assert_int_eq(ret, -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(why.text, rig->says));
}
END_TEST

START_TEST(hmem_a_lost_device_is_an_error_of_input_and_output)
{
	struct mrf_hmem_alloc alloc;
	uint8_t byte = 1, *mem;

	open_rig(_i);
	mem = rig->make(RT_DEVICE, 0, LEN);
	alloc = found(mem);
	control.fail_next(rig->put_call, 1, rig->lost);
	ck_assert_int_eq(hmem->put(&alloc, (uintptr_t)mem, &byte, 1, &why), -FI_EIO);
	ck_assert_uint_eq(control.fails_left(), 0);
	there_and_back(mem, 0, 10, 1);
	rig->unmake(RT_DEVICE, mem);
}
END_TEST

/* Everything once, as the library would; 0 or the first error. */
static int do_all(uint8_t *mem)
{
	struct mrf_hmem_alloc alloc;
	uint8_t bytes[16] = { 1, 2, 3 };
	int ret = hmem->find((uintptr_t)mem, &alloc, &why);

	if (!ret)
		ret = hmem->put(&alloc, (uintptr_t)mem, bytes, sizeof(bytes), &why);
	if (!ret)
		ret = hmem->get(&alloc, bytes, (uintptr_t)mem, sizeof(bytes), &why);
	return ret;
}

START_TEST(hmem_every_call_may_fail_once)
{
	unsigned nth, failed = 0;
	uint8_t *mem;
	int ret;

	open_rig(_i);
	mem = rig->make(RT_DEVICE, 0, LEN);
	for (nth = 1; nth < 100; nth++) {
		why.text[0] = 0;
		control.fail_next("*", nth, rig->lost);
		ret = do_all(mem);
		if (control.fails_left())
			break;
		ck_assert(!ret || (ret == -FI_EIO && strstr(why.text, " says ")));
		failed += !!ret;
		control.fail_next("*", 0, 0);
		ck_assert_int_eq(do_all(mem), 0);
	}
	ck_assert_uint_lt(nth, 100);
	ck_assert_uint_ge(failed, 3);
	control.fail_next("*", 0, 0);
	rig->unmake(RT_DEVICE, mem);
}
END_TEST

/* --- CUDA's contexts ------------------------------------------------------------------------ */

START_TEST(cuda_the_thread_keeps_its_context)
{
	void *mine, *now = NULL;
	uint8_t *mem;

	open_rig(0);
	mem = rig->make(RT_DEVICE, 1, LEN);
	ck_assert_int_eq(cu.create(&mine, 0, 0), 0);
	there_and_back(mem, 0, 100, 1);
	ck_assert_int_eq(cu.get_current(&now), 0);
	ck_assert_ptr_eq(now, mine);
	ck_assert_int_eq(cu.set_current(NULL), 0);
	there_and_back(mem, 0, 100, 2);
	ck_assert_int_eq(cu.get_current(&now), 0);
	ck_assert_ptr_null(now);
}
END_TEST

START_TEST(cuda_memory_of_a_context_of_the_application_is_copied_in_it)
{
	unsigned long long ptr;
	void *mine;

	open_rig(0);
	ck_assert_int_eq(cu.init(0), 0);
	ck_assert_int_eq(cu.create(&mine, 0, 1), 0);
	ck_assert_int_eq(cu.alloc(&ptr, LEN), 0);
	ck_assert_int_eq(cu.set_current(NULL), 0);
	there_and_back((uint8_t *)(uintptr_t)ptr, 1, 1000, 3);
}
END_TEST

/* The context is gone, and what was allocated in it. */
START_TEST(cuda_memory_of_a_destroyed_context_is_not_copied)
{
	struct mrf_hmem_alloc alloc;
	unsigned long long ptr;
	uint8_t byte = 1;
	void *mine;

	open_rig(0);
	ck_assert_int_eq(cu.init(0), 0);
	ck_assert_int_eq(cu.create(&mine, 0, 1), 0);
	ck_assert_int_eq(cu.alloc(&ptr, LEN), 0);
	alloc = found((void *)(uintptr_t)ptr);
	ck_assert_int_eq(cu.destroy(mine), 0);
	ck_assert_int_eq(hmem->put(&alloc, (uintptr_t)ptr, &byte, 1, &why), -FI_EINVAL);
	ck_assert_int_eq(hmem->get(&alloc, &byte, (uintptr_t)ptr, 1, &why), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(why.text, "freed"));
}
END_TEST

START_TEST(cuda_a_capture_of_another_thread_is_not_disturbed)
{
	uint8_t *mem;

	open_rig(0);
	mem = rig->make(RT_DEVICE, 0, LEN);
	cu.capture(true);
	there_and_back(mem, 0, 100, 1);
	cu.capture(false);
	rig->unmake(RT_DEVICE, mem);
}
END_TEST

/* Memory of the driver's pools belongs to no context, which is another way to the same one. */
START_TEST(cuda_contexts_and_streams_are_made_once)
{
	static const enum rt_kind kinds[] = { RT_DEVICE, RT_MANAGED };
	unsigned long contexts, streams;
	uint8_t *mem[2];
	unsigned i;

	open_rig(0);
	for (i = 0; i < 2; i++)
		mem[i] = rig->make(_i < 2 ? kinds[_i] : kinds[i], 1, LEN);
	for (i = 0; i < 2; i++)
		there_and_back(mem[i], 0, 10, 1);
	contexts = control.calls("cuDevicePrimaryCtxRetain");
	streams = control.calls("cuStreamCreate");
	for (i = 0; i < 20; i++)
		there_and_back(mem[i % 2], i, 100, i);
	ck_assert_uint_eq(control.calls("cuDevicePrimaryCtxRetain"), contexts);
	ck_assert_uint_eq(control.calls("cuStreamCreate"), streams);
	ck_assert_uint_eq(streams, 1);
	for (i = 0; i < 2; i++)
		rig->unmake(RT_DEVICE, mem[i]);
}
END_TEST

/* As by cudaDeviceReset: streams of the context are gone, and its address is used again. */
START_TEST(cuda_a_device_may_be_reset)
{
	struct mrf_hmem_alloc alloc;
	uint8_t byte = 1, *mem;

	open_rig(0);
	for (unsigned i = 0; i < 3; i++) {
		mem = rig->make(_i ? RT_MANAGED : RT_DEVICE, 0, LEN);
		there_and_back(mem, i, 100, i);
		there_and_back(mem, i, 100, i + 1);
		alloc = found(mem);
		ck_assert_int_eq(cu.reset(0), 0);
		ck_assert_int_eq(hmem->put(&alloc, (uintptr_t)mem, &byte, 1, &why), -FI_EINVAL);
	}
}
END_TEST

/* Likewise a context of the application's. */
START_TEST(cuda_contexts_come_and_go)
{
	unsigned long long ptr;
	void *mine;

	open_rig(0);
	ck_assert_int_eq(cu.init(0), 0);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_int_eq(cu.create(&mine, 0, 0), 0);
		ck_assert_int_eq(cu.alloc(&ptr, LEN), 0);
		there_and_back((uint8_t *)(uintptr_t)ptr, 1, 100, i);
		ck_assert_int_eq(cu.destroy(mine), 0);
	}
}
END_TEST

/* A primary context takes much of a device's memory: one that nobody uses is not made. */
START_TEST(cuda_no_context_is_made_for_memory_of_another)
{
	unsigned long long ptr;
	void *mine;

	open_rig(0);
	ck_assert_int_eq(cu.init(0), 0);
	ck_assert_int_eq(cu.create(&mine, 0, 1), 0);
	ck_assert_int_eq(cu.alloc(&ptr, LEN), 0);
	there_and_back((uint8_t *)(uintptr_t)ptr, 1, 1000, 3);
	ck_assert_uint_eq(control.calls("cuDevicePrimaryCtxRetain"), 0);
}
END_TEST

/* --- ROCR's kinds of memory ------------------------------------------------------------------- */

START_TEST(rocr_locked_memory_is_where_the_processor_has_it)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));
	struct mrf_hmem_alloc alloc;

	open_rig(1);
	rocr_lock(page, sizeof(page));
	alloc = found(page + 100);
	ck_assert_int_eq(alloc.kind, MRF_HMEM_HOST);
	ck_assert_uint_eq(alloc.start, (uintptr_t)page);
	ck_assert_uint_eq(alloc.len, sizeof(page));
}
END_TEST

/* Another process's memory, and what was mapped piece by piece: the runtime numbers neither. */
START_TEST(rocr_memory_from_elsewhere_is_the_device_s)
{
	static const struct {
		int type;
		enum mrf_hmem_kind kind;
	} types[] = { { 0, MRF_HMEM_NONE }, { 3, MRF_HMEM_DEVICE }, { 4, MRF_HMEM_DEVICE },
		      { 5, MRF_HMEM_NONE }, { 6, MRF_HMEM_DEVICE }, { 7, MRF_HMEM_NONE } };
	struct mrf_hmem_alloc alloc;
	uint8_t *mem;

	open_rig(1);
	mem = rig->make(RT_DEVICE, 1, LEN);
	rocr_set_type(mem, types[_i].type);
	alloc = found(mem + 10);
	ck_assert_int_eq(alloc.kind, types[_i].kind);
	ck_assert_uint_eq(alloc.id, 0);
	if (alloc.kind == MRF_HMEM_DEVICE) {
		ck_assert_int_eq(alloc.device, 1);
		ck_assert_uint_eq(alloc.start, (uintptr_t)mem);
		there_and_back(mem, 3, 100, 4);
	}
	rocr_set_type(NULL, 0);
	rig->unmake(RT_DEVICE, mem);
}
END_TEST

/*
 * --- Level Zero's drivers and parts of devices -------------------------------------------------
 */

START_TEST(ze_memory_of_a_part_is_the_device_s)
{
	uint8_t *mem;

	open_rig(2);
	ze_part = true;
	mem = rig->make(RT_DEVICE, 1, LEN);
	ze_part = false;
	ck_assert_int_eq(found(mem).device, 1);
	there_and_back(mem, 3, 100, 4);
	rig->unmake(RT_DEVICE, mem);
}
END_TEST

/* The neural processor's driver is the first, and fails. */
START_TEST(ze_a_driver_that_fails_does_not_end_the_search)
{
	static const char *const calls[] = { "zeDeviceGet", "zeDeviceGetProperties",
					     "zeDeviceGetSubDevices" };
	int devices = 0;

	load(2);
	control.fail_next(calls[_i], 1, rig->lost);
	ck_assert_int_eq(mrf_hmem_open(FI_HMEM_ZE, &hmem), 0);
	ck_assert_uint_eq(control.fails_left(), 0);
	ck_assert_int_eq(hmem->count(&devices, &why), 0);
	ck_assert_int_eq(devices, 2);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------ */

static void refused(enum fi_hmem_iface iface, int err, const char *word)
{
	struct unit_capture cap;

	unit_capture(&cap);
	ck_assert_int_eq(mrf_hmem_open(iface, &hmem), err);
	unit_captured(&cap);
	ck_assert_msg(strstr(cap.text, word), "%s is not in: %s", word, cap.text);
}

START_TEST(hmem_other_interfaces_are_refused_by_name)
{
	refused(FI_HMEM_NEURON, -FI_ENOSYS, "FI_HMEM_NEURON");
	refused(FI_HMEM_SYNAPSEAI, -FI_ENOSYS, "FI_HMEM_SYNAPSEAI");
	refused((enum fi_hmem_iface)99, -FI_ENOSYS, "99");
	refused(FI_HMEM_SYSTEM, -FI_ENOSYS, "FI_HMEM_SYSTEM");
}
END_TEST

START_TEST(hmem_without_a_device_it_is_refused)
{
	setenv("MRFAB_RUNTIME_DEVICES", "0", 1);
	load(_i);
	refused(rig->iface, -FI_ENODEV, rig->iface == FI_HMEM_ROCR ? "no device" : rig->says);
	/* It may come. */
	unsetenv("MRFAB_RUNTIME_DEVICES");
	ck_assert_int_eq(mrf_hmem_open(rig->iface, &hmem), 0);
}
END_TEST

START_TEST(hmem_an_old_runtime_is_refused_with_what_it_lacks)
{
	ck_assert_msg(dlopen(OLD "libold_cuda.so", RTLD_NOW), "%s", dlerror());
	refused(FI_HMEM_CUDA, -FI_ENOSYS, "libcuda.so.1 has no cuGetErrorName, cuDeviceGetCount");
}
END_TEST

START_TEST(hmem_without_a_runtime_it_is_refused)
{
	static const char *const names[] = { "libcuda.so.1", "libhsa-runtime64.so.1",
					     "libze_loader.so.1" };
	static const enum fi_hmem_iface ifaces[] = { FI_HMEM_CUDA, FI_HMEM_ROCR, FI_HMEM_ZE };

	if (dlopen(names[_i], RTLD_LAZY))
		return; /* This machine has the real one. */
	refused(ifaces[_i], -FI_ENOSYS, names[_i]);
}
END_TEST

char *__real_dlerror(void);
char *__wrap_dlerror(void);

char *__wrap_dlerror(void)
{
	stop_inside();
	return __real_dlerror();
}

static void *find_no_runtime(void *arg)
{
	const struct mrf_hmem *got;

	(void)mrf_hmem_open(FI_HMEM_ZE, &got);
	return arg;
}

static bool looks_for_it(void)
{
	return !find_no_runtime(NULL);
}

static bool is_refused(void)
{
	const struct mrf_hmem *got;

	return mrf_hmem_open(FI_HMEM_CUDA, &got) == -FI_EIO;
}

/* CUDA does not work in a child of the process that uses it: it says so, once more. */
START_TEST(hmem_a_child_asks_the_runtime_anew)
{
	int status;
	pid_t child;

	open_rig(0);
	child = fork();
	if (!child)
		_exit(!is_refused());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(mrf_hmem_open(FI_HMEM_CUDA, &hmem), 0);
}
END_TEST

START_TEST(hmem_a_child_that_is_forked_while_a_runtime_is_looked_for_looks_too)
{
	if (!dlopen("libze_loader.so.1", RTLD_LAZY))
		ck_assert(child_of_fork_inside_ends(find_no_runtime, NULL, looks_for_it));
}
END_TEST

static TCase *hmem_cases(void)
{
	TCase *tc = tcase_create("hmem");

	tcase_add_loop_test(tc, hmem_knows_what_an_address_is, 0, RIGS);
	tcase_add_loop_test(tc, hmem_an_allocation_at_the_same_address_is_another, 0, RIGS);
	tcase_add_loop_test(tc, hmem_counts_devices, 0, RIGS);
	tcase_add_loop_test(tc, hmem_copies_any_bytes_of_any_device, 0, 2 * RIGS);
	tcase_add_loop_test(tc, hmem_any_thread_copies, 0, RIGS);
	tcase_add_loop_test(tc, hmem_freed_memory_is_not_copied, 0, RIGS);
	tcase_add_loop_test(tc, hmem_a_lost_device_is_an_error_of_input_and_output, 0, RIGS);
	tcase_add_loop_test(tc, hmem_every_call_may_fail_once, 0, RIGS);
	tcase_add_test(tc, cuda_the_thread_keeps_its_context);
	tcase_add_test(tc, cuda_memory_of_a_context_of_the_application_is_copied_in_it);
	tcase_add_test(tc, cuda_memory_of_a_destroyed_context_is_not_copied);
	tcase_add_test(tc, cuda_a_capture_of_another_thread_is_not_disturbed);
	tcase_add_loop_test(tc, cuda_contexts_and_streams_are_made_once, 0, 3);
	tcase_add_loop_test(tc, cuda_a_device_may_be_reset, 0, 2);
	tcase_add_test(tc, cuda_contexts_come_and_go);
	tcase_add_test(tc, cuda_no_context_is_made_for_memory_of_another);
	tcase_add_test(tc, rocr_locked_memory_is_where_the_processor_has_it);
	tcase_add_loop_test(tc, rocr_memory_from_elsewhere_is_the_device_s, 0, 6);
	tcase_add_test(tc, ze_memory_of_a_part_is_the_device_s);
	tcase_add_loop_test(tc, ze_a_driver_that_fails_does_not_end_the_search, 0, 3);
	tcase_add_test(tc, hmem_a_child_asks_the_runtime_anew);
	tcase_add_test(tc, hmem_other_interfaces_are_refused_by_name);
	tcase_add_loop_test(tc, hmem_without_a_device_it_is_refused, 0, RIGS);
	tcase_add_test(tc, hmem_an_old_runtime_is_refused_with_what_it_lacks);
	tcase_add_loop_test(tc, hmem_without_a_runtime_it_is_refused, 0, 3);
	tcase_add_test(tc, hmem_a_child_that_is_forked_while_a_runtime_is_looked_for_looks_too);
	return tc;
}

UNIT_MAIN("hmem", hmem_cases)
