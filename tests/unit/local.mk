# The tests say what devices and addresses there are: tests/fake/fake_vnl.h.
WRAP_VNL = -Wl,--wrap=mrf_vnl_devs,--wrap=mrf_vnl_ifaddrs

include tests/unit/base.mk
include tests/unit/hmem.mk
include tests/unit/hooked.mk
include tests/unit/info.mk
include tests/unit/obj.mk
include tests/unit/mr.mk
include tests/unit/ep.mk
include tests/unit/conf.mk
include tests/fuzz/local.mk
