/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As t_consumer.c, for the eyes of a C++ compiler: all headers, the calls given to
 * templates and lambdas, and the library's functions found by their C names.
 * Exit: 0, or 1 with a line for each fault.
 */
#include <rdma/fi_collective.h>
#include <rdma/fi_trigger.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_ext_psm2.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

static int faults;

static void check(bool good, const char *what)
{
	if (good)
		return;
	std::printf("not ok: %s\n", what);
	faults++;
}

struct info_deleter {
	void operator()(fi_info *info) const { fi_freeinfo(info); }
};

/* wrappers like these stand in most C++ middleware */
template <typename Object>
static int close_object(Object *object)
{
	return fi_close(&object->fid);
}

static_assert(std::is_same<fi_addr_t, uint64_t>::value, "fi_addr_t");
static_assert(std::is_same<decltype(fi_mr_key(nullptr)), uint64_t>::value, "fi_mr_key");
static_assert(std::is_standard_layout<fid_mr>::value, "fid_mr");
static_assert(std::is_trivial<fi_mr_attr>::value, "fi_mr_attr");
static_assert((FI_MR_LOCAL | FI_MR_RAW) == 12, "mr_mode bits");
static_assert(sizeof(fi_triggered_context) >= sizeof(fi_context), "trigger");
static_assert(offsetof(fid_ep, fid) == 0, "container_of");
static_assert(FI_VOID == FI_COLLECTIVE_OFFSET, "collective types");

static void check_inlines()
{
	fi_ops ops = fi_ops();
	fid_mr mr = fid_mr();
	static int closed;

	ops.size = sizeof(ops);
	ops.close = [](fid *) { closed++; return 0; };
	ops.control = [](fid *, int command, void *) {
		return command == FI_ENABLE ? 0 : -FI_ENOSYS;
	};
	mr.fid.ops = &ops;
	mr.key = 5;
	check(fi_mr_key(&mr) == 5, "fi_mr_key");
	check(fi_mr_enable(&mr) == 0, "fi_mr_enable");
	check(fi_mr_refresh(&mr, nullptr, 0, 0) == -FI_ENOSYS, "fi_mr_refresh");
	check(fi_set_ops(&mr.fid, FI_SET_OPS_HMEM_OVERRIDE, 0, nullptr, nullptr) ==
	      -FI_ENOSYS, "fi_set_ops");
	check(close_object(&mr) == 0 && closed == 1, "fi_close");
}

static void check_library()
{
	std::unique_ptr<fi_info, info_deleter> hints(fi_allocinfo());
	fi_info *info = nullptr;

	check(FI_MAJOR(fi_version()) == FI_MAJOR_VERSION, "fi_version");
	check(!std::string(fi_strerror(FI_EINVAL)).empty(), "fi_strerror");
	check(hints != nullptr, "fi_allocinfo");
	if (!hints)
		return;
	hints->fabric_attr->prov_name = strdup("no-such-provider");
	check(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &info) ==
	      -FI_ENODATA, "fi_getinfo");
	check(info == nullptr, "fi_getinfo wrote its output");
}

int main()
{
	check_inlines();
	check_library();
	std::printf("t_consumer (C++): %d faults\n", faults);
	return faults ? 1 : 0;
}
