/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions of memory of devices: what may be registered, and copying from and to them. */
#include <pthread.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include "base/log.h"
#include "mr/device.h"
#include "runtime/rig.h"
#include "mr_fixture.h"

#define LOCAL (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define LEN 20000u

static const struct rig *rig;
static struct rig_control control;
static void *addr; /* LEN bytes of device 1 */

static void start(int i, uint64_t mode)
{
	rig = rig_load(i, &control);
	env_open(FI_MR_HMEM | mode);
	addr = rig->make(RT_DEVICE, 1, LEN);
}

static void stop(void)
{
	rig->unmake(RT_DEVICE, addr);
	env_close();
}

/* --- registering ------------------------------------------------------------------------- */

static struct iovec one;

static struct fi_mr_attr attr_of(void *at, size_t len)
{
	struct fi_mr_attr attr = { .mr_iov = &one, .iov_count = 1, .access = LOCAL };

	one = (struct iovec){ at, len };
	attr.iface = rig->iface;
	/* The fields of the union are at the same place. */
	attr.device.cuda = 1;
	return attr;
}

static int reg(const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	int ret;

	*mr = NULL;
	library_enter();
	ret = fi_mr_regattr(&env.domain, attr, flags, mr);
	library_leave();
	ck_assert(!ret == (*mr != NULL));
	return ret;
}

static struct fid_mr *must_reg(void *at, size_t len)
{
	const struct fi_mr_attr attr = attr_of(at, len);
	struct fid_mr *mr;

	ck_assert_int_eq(reg(&attr, 0, &mr), 0);
	return mr;
}

static void refused(const struct fi_mr_attr *attr, uint64_t flags, int err, const char *code)
{
	struct mrf_refusal said = { .code = 0 };
	struct fid_mr *mr;

	mrf_refuse_catch(&said);
	ck_assert_int_eq(reg(attr, flags, &mr), -err);
	mrf_refuse_catch(NULL);
	ck_assert_msg(strstr(said.text, code), "%s instead of %s", said.text, code);
}

static bool is_described(const struct fid_mr *mr)
{
	return mrf_desc_is_device(&env.space, fi_mr_desc((struct fid_mr *)(uintptr_t)mr));
}

START_TEST(device_memory_is_registered_and_not_pinned)
{
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	start(_i, FI_MR_ALLOCATED);
	mr = must_reg((uint8_t *)addr + 7, LEN - 7);
	ck_assert(is_described(mr));
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_must_close(mr);
	attr = attr_of(addr, LEN);
	ck_assert_int_eq(reg(&attr, FI_HMEM_DEVICE_ONLY, &mr), 0);
	ck_assert(is_described(mr));
	env_must_close(mr);
	stop();
}
END_TEST

START_TEST(device_that_is_another_is_refused)
{
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	start(_i, FI_MR_ALLOCATED);
	attr = attr_of(addr, LEN);
	attr.device.cuda = 0;
	if (!rig->numbered) {
		ck_assert_int_eq(reg(&attr, 0, &mr), 0);
		env_must_close(mr);
		stop();
		return;
	}
	refused(&attr, 0, FI_EINVAL, "MRF-E3305");
	attr.device.cuda = 2;
	refused(&attr, 0, FI_ENODEV, "MRF-E3303");
	attr.device.cuda = -1;
	refused(&attr, 0, FI_ENODEV, "MRF-E3303");
	stop();
}
END_TEST

START_TEST(device_memory_that_is_none_is_refused)
{
	struct fi_mr_attr attr;

	start(_i, FI_MR_ALLOCATED);
	attr = attr_of(mem, 100);
	refused(&attr, 0, FI_EINVAL, "MRF-E3304");
	attr = attr_of(NULL, 100);
	refused(&attr, 0, FI_EINVAL, "MRF-E3304");
	attr = attr_of(addr, LEN + 1);
	refused(&attr, 0, FI_EINVAL, "MRF-E3308");
	attr = attr_of((uint8_t *)addr + LEN - 1, 2);
	refused(&attr, 0, FI_EINVAL, "MRF-E3308");
	rig->unmake(RT_DEVICE, addr);
	attr = attr_of(addr, LEN);
	refused(&attr, 0, FI_EINVAL, "MRF-E3304");
	addr = rig->make(RT_DEVICE, 1, LEN);
	stop();
}
END_TEST

START_TEST(device_memory_is_not_the_hosts)
{
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	start(_i, FI_MR_ALLOCATED);
	attr = attr_of(addr, LEN);
	attr.iface = FI_HMEM_SYSTEM;
	refused(&attr, 0, FI_EINVAL, "MRF-E3301");
	ck_assert_int_eq(fi_mr_reg(&env.domain, addr, LEN, LOCAL, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	attr = attr_of(mem, LEN);
	attr.iface = FI_HMEM_SYSTEM;
	refused(&attr, FI_HMEM_DEVICE_ONLY, FI_EINVAL, "MRF-E3300");
	ck_assert_int_eq(reg(&attr, 0, &mr), 0);
	ck_assert(!is_described(mr));
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(mr);
	stop();
}
END_TEST

START_TEST(device_interfaces_that_are_not_supported_are_refused_by_name)
{
	struct fi_mr_attr attr;

	start(0, FI_MR_ALLOCATED);
	attr = attr_of(addr, LEN);
	attr.iface = FI_HMEM_NEURON;
	refused(&attr, 0, FI_ENOSYS, "FI_HMEM_NEURON");
	attr.iface = FI_HMEM_SYNAPSEAI;
	refused(&attr, 0, FI_ENOSYS, "FI_HMEM_SYNAPSEAI");
	attr.iface = (enum fi_hmem_iface)99;
	refused(&attr, 0, FI_ENOSYS, "iface=99");
	stop();
}
END_TEST

/* What a peer is told of it: no keys, and that it is to be reached otherwise. */
START_TEST(device_memory_has_remote_rights_and_no_rkey)
{
	struct mrf_mr_view view;
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	start(_i, FI_MR_ALLOCATED);
	attr = attr_of(addr, LEN);
	attr.access |= FI_REMOTE_READ;
	attr.requested_key = 7;
	ck_assert_int_eq(reg(&attr, 0, &mr), 0);
	env_look(7, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	ck_assert(view.staged && view.complete && view.nseg == 1);
	ck_assert_uint_eq(view.seg[0].rkey, 0);
	ck_assert_uint_eq(view.access, FI_REMOTE_READ);
	env_must_close(mr);
	stop();
}
END_TEST

/* Memory that the processor can access, too. */
static struct fid_mr *share(enum rt_kind kind, void **at)
{
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	*at = rig->make(kind, 0, LEN);
	attr = attr_of(*at, LEN);
	attr.device.cuda = 0;
	attr.access |= FI_REMOTE_READ | FI_REMOTE_WRITE;
	refused(&attr, FI_HMEM_DEVICE_ONLY, FI_EINVAL, "MRF-E3306");
	ck_assert_int_eq(reg(&attr, 0, &mr), 0);
	return mr;
}

START_TEST(device_memory_of_the_host_is_pinned)
{
	struct fid_mr *mr;
	void *at;

	start(_i, FI_MR_ALLOCATED);
	mr = share(RT_HOST, &at);
	ck_assert(!is_described(mr));
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(mr);
	rig->unmake(RT_HOST, at);
	stop();
}
END_TEST

/* The kernel could pin it, but not hold it where it is. */
START_TEST(device_memory_that_moves_is_not_pinned)
{
	struct mrf_hmem_why why;
	struct fid_mr *mr;
	uint8_t byte;
	void *at;

	start(_i, FI_MR_ALLOCATED);
	if (rig->managed) {
		mr = share(RT_MANAGED, &at);
		ck_assert(is_described(mr));
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
		rig->put((uint8_t *)at + 100, &(uint8_t){ 0x5a }, 1);
		ck_assert_int_eq(mrf_mr_device_get(&env.space, fi_mr_desc(mr), &byte,
						   (uintptr_t)at + 100, 1, &why),
				 0);
		ck_assert_uint_eq(byte, 0x5a);
		env_must_close(mr);
		rig->unmake(RT_MANAGED, at);
	}
	stop();
}
END_TEST

START_TEST(device_memory_that_is_shared_is_not_the_hosts)
{
	struct fi_mr_attr attr;
	struct fid_mr *mr;
	void *at;

	start(_i, FI_MR_ALLOCATED);
	for (int kind = RT_MANAGED; kind <= RT_HOST; kind++) {
		if (kind == RT_MANAGED && !rig->managed)
			continue;
		at = rig->make((enum rt_kind)kind, 0, LEN);
		attr = attr_of(at, LEN);
		attr.iface = FI_HMEM_SYSTEM;
		if (kind == RT_MANAGED) {
			refused(&attr, 0, FI_EINVAL, "MRF-E3301");
		} else {
			ck_assert_int_eq(reg(&attr, 0, &mr), 0);
			env_must_close(mr);
		}
		rig->unmake((enum rt_kind)kind, at);
	}
	stop();
}
END_TEST

START_TEST(device_fields_are_not_looked_at_without_the_capability)
{
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	rig = rig_load(0, &control);
	env_open(FI_MR_ALLOCATED);
	attr = attr_of(mem, LEN);
	attr.device.cuda = 17;
	ck_assert_int_eq(reg(&attr, 0, &mr), 0);
	env_must_close(mr);
	refused(&attr, FI_HMEM_DEVICE_ONLY, FI_EBADFLAGS, "MRF-E3012");
	env_close();
}
END_TEST

/* --- in each mode -------------------------------------------------------------------------- */

static const uint64_t bits[] = { FI_MR_LOCAL,	 FI_MR_RAW,	   FI_MR_VIRT_ADDR, FI_MR_ALLOCATED,
				 FI_MR_PROV_KEY, FI_MR_MMU_NOTIFY, FI_MR_RMA_EVENT };

static uint64_t mode_of(unsigned set)
{
	uint64_t mode = 0;

	for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		mode |= set >> i & 1 ? bits[i] : 0;
	return mode;
}

static void works(struct fid_mr *mr)
{
	uint8_t out[100], in[100];
	struct mrf_hmem_why why;
	uint64_t at = (uintptr_t)addr + 33;

	memset(out, 0x5a, sizeof(out));
	ck_assert_int_eq(mrf_mr_device_put(&env.space, fi_mr_desc(mr), at, out, 100, &why), 0);
	ck_assert_int_eq(mrf_mr_device_get(&env.space, fi_mr_desc(mr), in, at, 100, &why), 0);
	ck_assert_mem_eq(in, out, 100);
	rig->get(in, (uint8_t *)addr + 33, 100);
	ck_assert_mem_eq(in, out, 100);
}

static void serves_device_memory(int i, uint64_t mode)
{
	struct fid_mr *mr;

	start(i, mode);
	mr = must_reg(addr, LEN);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	works(mr);
	env_must_close(mr);
	stop();
}

START_TEST(device_region_in_every_mode)
{
	unsigned set;

	for (set = 0; set < 1u << MRF_ARRAY_SIZE(bits); set++)
		serves_device_memory(_i, mode_of(set));
}
END_TEST

static void refuses_refresh(struct fid_mr *mr, size_t len, const char *code)
{
	const struct iovec iov[] = { { addr, LEN }, { (uint8_t *)addr + 1, len } };
	struct unit_capture cap;

	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_refresh(mr, iov, 2, 0), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), code));
}

/* There is nothing to do for it, but the arguments have to make sense. */
START_TEST(device_region_refuses_to_be_refreshed_outside)
{
	struct iovec all;
	struct fid_mr *mr;

	start(_i, FI_MR_ALLOCATED);
	mr = must_reg(addr, LEN);
	all = (struct iovec){ addr, LEN };
	ck_assert_int_eq(fi_mr_refresh(mr, &all, 1, 0), 0);
	refuses_refresh(mr, LEN, "MRF-E3061");
	refuses_refresh(mr, SIZE_MAX, "MRF-E3060");
	works(mr);
	env_must_close(mr);
	stop();
}
END_TEST

START_TEST(device_region_that_is_disabled_works_once_it_is_enabled)
{
	const uint64_t flags = FI_RMA_EVENT;
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	start(_i, FI_MR_ALLOCATED | FI_MR_RMA_EVENT);
	attr = attr_of(addr, LEN);
	ck_assert_int_eq(reg(&attr, flags, &mr), 0);
	ck_assert_ptr_null(fi_mr_desc(mr));
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	works(mr);
	env_must_close(mr);
	stop();
}
END_TEST

/* --- what fails ----------------------------------------------------------------------------- */

START_TEST(device_region_without_memory_is_refused_and_loses_nothing)
{
	struct fi_mr_attr attr;
	struct fid_mr *mr = NULL;
	unsigned nth = 0;
	int ret;

	start(_i, FI_MR_ALLOCATED);
	env_must_close(must_reg(addr, LEN));
	do {
		attr = attr_of(addr, LEN);
		fail_alloc(++nth);
		ret = reg(&attr, 0, &mr);
		fail_alloc(0);
		ck_assert_int_eq(ret, ret ? -FI_ENOMEM : 0);
	} while (ret);
	ck_assert_uint_gt(nth, 1);
	env_must_close(mr);
	stop();
}
END_TEST

static unsigned realloc_fails; /* the nth one; 0: none */

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	return realloc_fails && !--realloc_fails ? NULL : __real_realloc(old, size);
}

START_TEST(device_region_whose_parts_have_no_memory_is_refused)
{
	struct fi_mr_attr attr;

	start(_i, FI_MR_ALLOCATED);
	attr = attr_of(addr, LEN);
	realloc_fails = 1;
	refused(&attr, 0, FI_ENOMEM, "MRF-E3022");
	env_must_close(must_reg(addr, LEN));
	stop();
}
END_TEST

START_TEST(device_call_that_fails_is_told)
{
	struct fi_mr_attr attr;
	struct fid_mr *mr = NULL;
	unsigned nth = 0;
	int ret;

	start(_i, FI_MR_ALLOCATED);
	do {
		attr = attr_of(addr, LEN);
		control.fail_next("*", ++nth, rig->lost);
		ret = reg(&attr, 0, &mr);
		ck_assert_int_eq(ret, ret ? -FI_EIO : 0);
	} while (ret);
	control.fail_next("*", 0, 0);
	ck_assert_uint_gt(nth, 1);
	works(mr);
	env_must_close(mr);
	stop();
}
END_TEST

START_TEST(device_region_that_is_closed_is_not_copied)
{
	struct mrf_hmem_why why;
	struct fid_mr *mr;
	uint8_t byte = 1;
	void *desc;

	start(_i, FI_MR_ALLOCATED);
	mr = must_reg(addr, LEN);
	desc = fi_mr_desc(mr);
	env_must_close(mr);
	ck_assert(!mrf_desc_is_device(&env.space, desc));
	ck_assert_int_eq(mrf_mr_device_put(&env.space, desc, (uintptr_t)addr, &byte, 1, &why),
			 -FI_ECANCELED);
	stop();
}
END_TEST

START_TEST(device_memory_that_was_freed_is_not_copied)
{
	struct mrf_hmem_why why;
	struct fid_mr *mr;
	uint8_t byte = 1;
	void *again;

	start(_i, FI_MR_ALLOCATED);
	mr = must_reg(addr, LEN);
	rig->unmake(RT_DEVICE, addr);
	ck_assert_int_eq(
		mrf_mr_device_put(&env.space, fi_mr_desc(mr), (uintptr_t)addr, &byte, 1, &why),
		-FI_EINVAL);
	again = rig->make(RT_DEVICE, 1, LEN);
	ck_assert_ptr_eq(again, addr);
	ck_assert_int_eq(
		mrf_mr_device_get(&env.space, fi_mr_desc(mr), &byte, (uintptr_t)addr, 1, &why),
		-FI_EINVAL);
	env_must_close(mr);
	stop();
}
END_TEST

static const char *const monitors[RIGS] = { "FI_MR_CUDA_CACHE_MONITOR_ENABLED",
					    "FI_MR_ROCR_CACHE_MONITOR_ENABLED",
					    "FI_MR_ZE_CACHE_MONITOR_ENABLED" };

/*
 * Where the monitor is off, what has taken its place is used as if it were the same. Each in a
 * process of its own, because a variable is read once.
 */
START_TEST(device_memory_is_watched_by_the_monitor_of_its_interface)
{
	struct mrf_hmem_why why;
	struct fid_mr *mr;
	uint8_t byte = 1;
	int ret;

	setenv(monitors[_i / RIGS], "0", 1);
	start(_i % RIGS, FI_MR_ALLOCATED);
	mr = must_reg(addr, LEN);
	rig->unmake(RT_DEVICE, addr);
	ck_assert_ptr_eq(rig->make(RT_DEVICE, 1, LEN), addr);
	ret = mrf_mr_device_get(&env.space, fi_mr_desc(mr), &byte, (uintptr_t)addr, 1, &why);
	ck_assert_int_eq(ret, _i / RIGS == _i % RIGS ? 0 : -FI_EINVAL);
	env_must_close(mr);
	stop();
}
END_TEST

START_TEST(device_region_of_several_segments)
{
	void *two = rig_load(_i, &control)->make(RT_DEVICE, 1, LEN);
	uint8_t out[200], in[200];
	struct iovec iov[3];
	struct mrf_hmem_why why;
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	start(_i, FI_MR_ALLOCATED);
	attr = attr_of(addr, LEN);
	iov[0] = (struct iovec){ (uint8_t *)addr + 100, 100 };
	iov[1] = (struct iovec){ two, 0 };
	iov[2] = (struct iovec){ (uint8_t *)addr + 200, 100 };
	attr.mr_iov = iov;
	attr.iov_count = 3;
	ck_assert_int_eq(reg(&attr, 0, &mr), 0);
	for (unsigned i = 0; i < 200; i++)
		out[i] = (uint8_t)(i * 7);
	ck_assert_int_eq(mrf_mr_device_put(&env.space, fi_mr_desc(mr), (uintptr_t)addr + 100, out,
					   200, &why),
			 0);
	rig->get(in, (uint8_t *)addr + 100, 200);
	ck_assert_mem_eq(in, out, 200);
	env_must_close(mr);
	rig->unmake(RT_DEVICE, two);
	stop();
}
END_TEST

/* --- closing waits for a copy ---------------------------------------------------------------- */

static void *close_it(void *mr)
{
	env_must_close(mr);
	return NULL;
}

static void *copy_for_long(void *desc)
{
	static uint8_t bytes[LEN];
	struct mrf_hmem_why why;
	int ret;

	do {
		ret = mrf_mr_device_get(&env.space, desc, bytes, (uintptr_t)addr, LEN, &why);
	} while (!ret);
	return (void *)(intptr_t)ret;
}

/* No copy is under way when fi_close has returned: then the stand-in's memory may go. */
START_TEST(device_region_is_closed_when_its_copies_are_over)
{
	pthread_t copier, closer;
	struct fid_mr *mr;
	void *ret;

	for (unsigned round = 0; round < 20; round++) {
		start(_i, FI_MR_ALLOCATED);
		mr = must_reg(addr, LEN);
		pthread_create(&copier, NULL, copy_for_long, fi_mr_desc(mr));
		pthread_create(&closer, NULL, close_it, mr);
		pthread_join(closer, NULL);
		pthread_join(copier, &ret);
		ck_assert_int_eq((intptr_t)ret, -FI_ECANCELED);
		stop();
	}
}
END_TEST

/* --- memory that the application mapped piece by piece ---------------------------------------- */

#define PIECE 6000u

static int copy_at(struct fid_mr *mr, bool in, size_t at, void *host, size_t len)
{
	uint64_t there = (uintptr_t)addr + at;
	struct mrf_hmem_why why;

	return in ? mrf_mr_device_put(&env.space, fi_mr_desc(mr), there, host, len, &why)
		  : mrf_mr_device_get(&env.space, fi_mr_desc(mr), host, there, len, &why);
}

START_TEST(device_memory_in_pieces_is_copied)
{
	static uint8_t out[LEN], in[LEN];
	struct fid_mr *mr;

	start(0, FI_MR_ALLOCATED);
	cu.pieces(PIECE, NULL);
	mr = must_reg((uint8_t *)addr + 1, LEN - 1);
	for (unsigned at = 1; at < LEN; at += 531) {
		unsigned len = 1 + (at * 7) % (LEN - at);

		memset(out, (int)at, len);
		ck_assert_int_eq(copy_at(mr, true, at, out, len), 0);
		ck_assert_int_eq(copy_at(mr, false, at, in, len), 0);
		ck_assert_mem_eq(in, out, len);
		rig->get(in, (uint8_t *)addr + at, len);
		ck_assert_mem_eq(in, out, len);
	}
	env_must_close(mr);
	cu.pieces(0, NULL);
	stop();
}
END_TEST

START_TEST(device_memory_in_pieces_has_an_end)
{
	struct fi_mr_attr attr;

	start(0, FI_MR_ALLOCATED);
	cu.pieces(PIECE, NULL);
	attr = attr_of(addr, LEN + 1);
	refused(&attr, 0, FI_EINVAL, "MRF-E3308");
	attr = attr_of((uint8_t *)addr + PIECE, LEN);
	refused(&attr, 0, FI_EINVAL, "MRF-E3308");
	cu.pieces(0, NULL);
	stop();
}
END_TEST

/* Only with what is there now has the region nothing to do. */
START_TEST(device_memory_of_a_replaced_piece_is_not_copied)
{
	static uint8_t bytes[LEN];
	struct fid_mr *mr;

	start(0, FI_MR_ALLOCATED);
	cu.pieces(PIECE, NULL);
	mr = must_reg(addr, LEN);
	cu.pieces(PIECE, (uint8_t *)addr + PIECE + 1);
	if (!getenv("MRFAB_TEST_CUDA")) {
		ck_assert_int_eq(copy_at(mr, true, PIECE, bytes, 1), -FI_EINVAL);
		ck_assert_int_eq(copy_at(mr, false, 2 * PIECE - 1, bytes, 2), -FI_EINVAL);
		ck_assert_int_eq(copy_at(mr, false, 0, bytes, LEN), -FI_EINVAL);
	}
	ck_assert_int_eq(copy_at(mr, true, 0, bytes, PIECE), 0);
	ck_assert_int_eq(copy_at(mr, true, 2 * PIECE, bytes, LEN - 2 * PIECE), 0);
	env_must_close(mr);
	cu.pieces(0, NULL);
	stop();
}
END_TEST

static TCase *device_regions(void)
{
	TCase *tc = tcase_create("hmem_region");

	tcase_add_loop_test(tc, device_memory_is_registered_and_not_pinned, 0, RIGS);
	tcase_add_loop_test(tc, device_that_is_another_is_refused, 0, RIGS);
	tcase_add_loop_test(tc, device_memory_that_is_none_is_refused, 0, RIGS);
	tcase_add_loop_test(tc, device_memory_is_not_the_hosts, 0, RIGS);
	tcase_add_test(tc, device_interfaces_that_are_not_supported_are_refused_by_name);
	tcase_add_loop_test(tc, device_memory_has_remote_rights_and_no_rkey, 0, RIGS);
	tcase_add_loop_test(tc, device_memory_of_the_host_is_pinned, 0, RIGS);
	tcase_add_loop_test(tc, device_memory_that_moves_is_not_pinned, 0, RIGS);
	tcase_add_loop_test(tc, device_memory_that_is_shared_is_not_the_hosts, 0, RIGS);
	tcase_add_test(tc, device_fields_are_not_looked_at_without_the_capability);
	tcase_add_loop_test(tc, device_region_in_every_mode, 0, RIGS);
	tcase_add_loop_test(tc, device_region_refuses_to_be_refreshed_outside, 0, RIGS);
	tcase_add_loop_test(tc, device_region_that_is_disabled_works_once_it_is_enabled, 0, RIGS);
	tcase_add_loop_test(tc, device_region_without_memory_is_refused_and_loses_nothing, 0, RIGS);
	tcase_add_loop_test(tc, device_region_whose_parts_have_no_memory_is_refused, 0, RIGS);
	tcase_add_loop_test(tc, device_call_that_fails_is_told, 0, RIGS);
	tcase_add_loop_test(tc, device_region_that_is_closed_is_not_copied, 0, RIGS);
	tcase_add_loop_test(tc, device_memory_that_was_freed_is_not_copied, 0, RIGS);
	tcase_add_loop_test(tc, device_memory_is_watched_by_the_monitor_of_its_interface, 0,
			    RIGS * RIGS);
	tcase_add_loop_test(tc, device_region_of_several_segments, 0, RIGS);
	tcase_add_loop_test(tc, device_region_is_closed_when_its_copies_are_over, 0, RIGS);
	tcase_add_test(tc, device_memory_in_pieces_is_copied);
	tcase_add_test(tc, device_memory_in_pieces_has_an_end);
	tcase_add_test(tc, device_memory_of_a_replaced_piece_is_not_copied);
	return tc;
}

UNIT_MAIN("hmem_region", device_regions)
