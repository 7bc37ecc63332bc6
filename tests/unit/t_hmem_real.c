/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runtimes of devices that the distribution has, on a machine without a device: what they say.
 */
#include <dlfcn.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "hmem/hmem.h"
#include "unit.h"

#define SKIPPED 77

static const struct {
	enum fi_hmem_iface iface;
	const char *library;
	const char *device; /* what there is if there is a device */
	const char *says;
} runtimes[] = {
	{ FI_HMEM_ROCR, "libhsa-runtime64.so.1", "/dev/kfd", "there is no /dev/kfd" },
	{ FI_HMEM_ZE, "libze_loader.so.1", "/dev/dri",
	  "zeInit says ZE_RESULT_ERROR_UNINITIALIZED" },
};
#define RUNTIMES ((int)(sizeof(runtimes) / sizeof(runtimes[0])))

static bool is_there(int i)
{
	void *so = dlopen(runtimes[i].library, RTLD_NOW | RTLD_LOCAL);

	if (so)
		dlclose(so);
	return so && access(runtimes[i].device, F_OK);
}

START_TEST(hmem_real_runtime_without_a_device_is_refused)
{
	struct mrf_refusal said = { .code = 0 };
	const struct mrf_hmem *hmem;

	for (int again = 0; again < 2; again++) {
		mrf_refuse_catch(&said);
		ck_assert_int_eq(mrf_hmem_open(runtimes[_i].iface, &hmem), -FI_ENODEV);
		mrf_refuse_catch(NULL);
		ck_assert_msg(strstr(said.text, runtimes[_i].says), "%s", said.text);
	}
}
END_TEST

static TCase *real(void)
{
	TCase *tc = tcase_create("real");

	for (int i = 0; i < RUNTIMES; i++) {
		if (is_there(i))
			tcase_add_loop_test(tc, hmem_real_runtime_without_a_device_is_refused, i,
					    i + 1);
	}
	return tc;
}

int main(void)
{
	static TCase *(*const cases[])(void) = { real };

	for (int i = 0; i < RUNTIMES; i++) {
		if (is_there(i))
			return unit_run("hmem_real", cases, 1);
	}
	puts("skipped: neither libhsa-runtime64-1 nor libze1 is installed, or there is a device");
	return SKIPPED;
}
