/* SPDX-License-Identifier: BSD-2-Clause */
/* The device, its protection domains and its regions, on a fake of the kernel's calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "verbs/verbs.h"
#include "../fake/fake_verbs.h"
#include "unit.h"

static struct mrf_vdev *dev;
static struct mrf_vpd *pd;

static union {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} addr;

static void set_addr(const char *text, unsigned short port)
{
	memset(&addr, 0, sizeof(addr));
	if (strchr(text, ':')) {
		addr.in6.sin6_family = AF_INET6;
		addr.in6.sin6_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET6, text, &addr.in6.sin6_addr), 1);
	} else {
		addr.in.sin_family = AF_INET;
		addr.in.sin_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET, text, &addr.in.sin_addr), 1);
	}
}

static void open_pd(void)
{
	fake_verbs_reset();
	set_addr("10.99.1.1", 0);
	ck_assert_int_eq(mrf_vdev_open(&addr.sa, &dev), 0);
	ck_assert_int_eq(mrf_vpd_alloc(dev, &pd), 0);
}

static void close_pd(void)
{
	mrf_vpd_free(pd);
	mrf_vdev_close(dev);
	ck_assert_uint_eq(fake_verbs_live(), 0);
}

START_TEST(vdev_open_reports_name_and_limits)
{
	const struct mrf_vdev_limits *lim;

	fake_verbs_reset();
	set_addr("10.99.1.1", 4711);
	ck_assert_int_eq(mrf_vdev_open(&addr.sa, &dev), 0);
	lim = mrf_vdev_limits(dev);
	ck_assert_str_eq(mrf_vdev_name(dev), FAKE_DEVICE);
	ck_assert_uint_eq(lim->max_mr, FAKE_MAX_MR);
	ck_assert_uint_eq(lim->max_sge, 32);
	ck_assert_uint_eq(lim->max_qp_wr, 16383);
	ck_assert_uint_eq(lim->max_cqe, 32767);
	ck_assert_uint_eq(lim->max_rd_atomic, 128);
	ck_assert_uint_eq(lim->max_inline, 512);
	ck_assert_uint_eq(lim->max_msg_size, 8u << 20);
	mrf_vdev_close(dev);
	ck_assert_uint_eq(fake_verbs_live(), 0);
}
END_TEST

START_TEST(vdev_open_ignores_the_port)
{
	fake_verbs_reset();
	fake_verbs.last_port = 1;
	set_addr("10.99.1.1", 4711);
	ck_assert_int_eq(mrf_vdev_open(&addr.sa, &dev), 0);
	ck_assert_uint_eq(fake_verbs.last_port, 0);
	mrf_vdev_close(dev);

	fake_verbs.last_port = 1;
	set_addr("fd00::1", 4711);
	ck_assert_int_eq(mrf_vdev_open(&addr.sa, &dev), 0);
	ck_assert_uint_eq(fake_verbs.last_port, 0);
	mrf_vdev_close(dev);
	ck_assert_uint_eq(fake_verbs_live(), 0);
}
END_TEST

START_TEST(vdev_open_refuses_an_address_without_device)
{
	static const struct {
		const char *text;
		int err;
	} bad[] = {
		{ "0.0.0.0", -FI_ENODEV },
		{ "::", -FI_ENODEV },
		{ "192.0.2.1", -FI_EADDRNOTAVAIL },
		{ "2001:db8::1", -FI_EADDRNOTAVAIL },
	};
	struct mrf_vdev *untouched = (void *)&addr;
	size_t i;

	fake_verbs_reset();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set_addr(bad[i].text, 0);
		ck_assert_int_eq(mrf_vdev_open(&addr.sa, &untouched), bad[i].err);
		ck_assert_ptr_eq(untouched, &addr);
		ck_assert_uint_eq(fake_verbs_live(), 0);
	}
	addr.sa.sa_family = AF_UNIX;
	ck_assert_int_eq(mrf_vdev_open(&addr.sa, &untouched), -FI_EINVAL);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_CREATE_CHANNEL], 4);
}
END_TEST

START_TEST(vdev_open_leaves_nothing_behind_when_a_call_fails)
{
	static const enum fake_call calls[] = { FAKE_CREATE_CHANNEL, FAKE_CREATE_ID, FAKE_BIND_ADDR,
						FAKE_OPEN_DEVICE, FAKE_QUERY_DEVICE };
	struct mrf_vdev *untouched = (void *)&addr;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		fake_verbs_reset();
		set_addr("10.99.1.1", 0);
		fake_verbs_fail(calls[i], 1, EMFILE);
		ck_assert_int_eq(mrf_vdev_open(&addr.sa, &untouched), -FI_EMFILE);
		ck_assert_ptr_eq(untouched, &addr);
		ck_assert_uint_eq(fake_verbs_live(), 0);
	}
}
END_TEST

START_TEST(vpd_alloc_passes_the_error_on)
{
	struct mrf_vpd *untouched = (void *)&addr;

	open_pd();
	fake_verbs_fail(FAKE_ALLOC_PD, 1, ENOMEM);
	ck_assert_int_eq(mrf_vpd_alloc(dev, &untouched), -FI_ENOMEM);
	ck_assert_ptr_eq(untouched, &addr);
	close_pd();
}
END_TEST

START_TEST(vpd_free_warns_when_the_kernel_keeps_it)
{
	static struct unit_capture cap;
	struct mrf_vpd *stuck;

	open_pd();
	ck_assert_int_eq(mrf_vpd_alloc(dev, &stuck), 0);
	fake_verbs_fail(FAKE_DEALLOC_PD, 1, EBUSY);
	unit_capture(&cap);
	mrf_vpd_free(stuck);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-W5201"));
	ck_assert_uint_eq(fake_verbs.live_pds, 2);
	ck_assert_int_eq(ibv_dealloc_pd(fake_verbs.last_pd), 0);
	close_pd();
}
END_TEST

/* Every set of rights becomes exactly the kernel's bits, LOCAL_WRITE where it insists. */
START_TEST(vmr_reg_asks_for_exactly_the_rights)
{
	static char buf[64];
	struct mrf_vmr vmr = { 0 };
	unsigned rights, want;

	open_pd();
	for (rights = 0; rights < 16; rights++) {
		want = 0;
		if (rights & MRF_RIGHT_REMOTE_READ)
			want |= IBV_ACCESS_REMOTE_READ;
		if (rights & MRF_RIGHT_REMOTE_WRITE)
			want |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
		if (rights & MRF_RIGHT_REMOTE_ATOMIC)
			want |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
		if (rights & MRF_RIGHT_LOCAL_WRITE)
			want |= IBV_ACCESS_LOCAL_WRITE;
		ck_assert_int_eq(mrf_vmr_reg(pd, buf, sizeof(buf), (uintptr_t)buf, rights, &vmr),
				 0);
		ck_assert_uint_eq(fake_verbs.last.access, want);
		ck_assert_ptr_eq(fake_verbs.last.mr.addr, buf);
		ck_assert_uint_eq(fake_verbs.last.mr.length, sizeof(buf));
		ck_assert_uint_eq(fake_verbs.last.iova, (uintptr_t)buf);
		ck_assert_uint_eq(vmr.lkey, fake_verbs.last.mr.lkey);
		ck_assert_uint_eq(vmr.rkey, fake_verbs.last.mr.rkey);
		ck_assert_int_eq(mrf_vmr_dereg(&vmr), 0);
	}
	close_pd();
}
END_TEST

START_TEST(vmr_reg_passes_every_errno_on)
{
	static const int errs[] = { EFAULT, ENOMEM, EPERM, EINVAL, EBUSY };
	static char buf[64];
	struct mrf_vmr vmr = { 0 };
	size_t i;

	open_pd();
	for (i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		fake_verbs_fail(FAKE_REG_MR, 1, errs[i]);
		ck_assert_int_eq(mrf_vmr_reg(pd, buf, sizeof(buf), (uintptr_t)buf, 0, &vmr),
				 -errs[i]);
		ck_assert_ptr_null(vmr.handle);
	}
	/* A failure without a reason is still a failure. */
	fake_verbs_fail(FAKE_REG_MR, 1, 0);
	ck_assert_int_eq(mrf_vmr_reg(pd, buf, sizeof(buf), (uintptr_t)buf, 0, &vmr), -FI_EIO);
	close_pd();
}
END_TEST

START_TEST(vmr_dereg_is_harmless_twice_and_can_be_repeated_after_a_failure)
{
	static char buf[64];
	struct mrf_vmr vmr = { 0 };

	open_pd();
	ck_assert_int_eq(mrf_vmr_dereg(&vmr), 0);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_DEREG_MR], 0);
	ck_assert_int_eq(mrf_vmr_reg(pd, buf, sizeof(buf), (uintptr_t)buf, 0, &vmr), 0);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EBUSY);
	ck_assert_int_eq(mrf_vmr_dereg(&vmr), -FI_EBUSY);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_int_eq(mrf_vmr_dereg(&vmr), 0);
	ck_assert_int_eq(mrf_vmr_dereg(&vmr), 0);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_DEREG_MR], 2);
	close_pd();
}
END_TEST

START_TEST(vmr_revoke_gives_no_memory_back_before_free)
{
	static char buf[100];
	struct mrf_vmr vmr = { 0 };
	struct ibv_mr *mr;

	open_pd();
	ck_assert_int_eq(mrf_vmr_reg(pd, buf, sizeof(buf), (uintptr_t)buf, 0, &vmr), 0);
	ck_assert_int_eq(mrf_vmr_revoke(&vmr), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_DEREG_MR], 0);
	mr = vmr.handle;
	ck_assert_uint_eq(mr->length, sizeof(buf));
	mrf_vmr_free(&vmr);
	ck_assert_ptr_null(vmr.handle);
	close_pd();
}
END_TEST

START_TEST(vmr_revoke_goes_the_usual_way_where_the_kernel_knows_no_other)
{
	static char buf[100];
	struct mrf_vmr vmr = { 0 };

	open_pd();
	ck_assert_int_eq(mrf_vmr_reg(pd, buf, sizeof(buf), (uintptr_t)buf, 0, &vmr), 0);
	fake_verbs_fail(FAKE_REVOKE_MR, 1, ENOTTY);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EBUSY);
	ck_assert_int_eq(mrf_vmr_revoke(&vmr), -FI_EBUSY);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	fake_verbs_fail(FAKE_REVOKE_MR, 1, ENOTTY);
	ck_assert_int_eq(mrf_vmr_revoke(&vmr), 0);
	ck_assert_ptr_null(vmr.handle);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	mrf_vmr_free(&vmr);
	close_pd();
}
END_TEST

static TCase *device(void)
{
	TCase *tc = tcase_create("device");

	tcase_add_test(tc, vdev_open_reports_name_and_limits);
	tcase_add_test(tc, vdev_open_ignores_the_port);
	tcase_add_test(tc, vdev_open_refuses_an_address_without_device);
	tcase_add_test(tc, vdev_open_leaves_nothing_behind_when_a_call_fails);
	tcase_add_test(tc, vpd_alloc_passes_the_error_on);
	tcase_add_test(tc, vpd_free_warns_when_the_kernel_keeps_it);
	return tc;
}

static TCase *regions(void)
{
	TCase *tc = tcase_create("regions");

	tcase_add_test(tc, vmr_reg_asks_for_exactly_the_rights);
	tcase_add_test(tc, vmr_reg_passes_every_errno_on);
	tcase_add_test(tc, vmr_dereg_is_harmless_twice_and_can_be_repeated_after_a_failure);
	tcase_add_test(tc, vmr_revoke_gives_no_memory_back_before_free);
	tcase_add_test(tc, vmr_revoke_goes_the_usual_way_where_the_kernel_knows_no_other);
	return tc;
}

UNIT_MAIN("vmr", device, regions)
