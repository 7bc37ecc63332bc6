UNIT_LDADD = libmrfab-internal.la $(CHECK_LIBS) -lpthread
AM_CFLAGS += $(CHECK_CFLAGS)
if HAVE_CHECK
include tests/unit/local.mk
endif
include tests/func/local.mk
include tests/model/local.mk
include tests/api/local.mk
TESTS += $(check_PROGRAMS)

# What needs no device.
.PHONY: check-unit
check-unit: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS) $(dist_check_SCRIPTS)
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) check-TESTS
