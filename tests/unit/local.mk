include tests/unit/base.mk
include tests/unit/info.mk
include tests/unit/obj.mk
include tests/unit/mr.mk
include tests/unit/ep.mk
include tests/unit/conf.mk
include tests/fuzz/local.mk
