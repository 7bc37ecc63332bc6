UNIT_LDADD = libmrfab-internal.la $(CHECK_LIBS) -lpthread
AM_CFLAGS += $(CHECK_CFLAGS)
if HAVE_CHECK
include tests/unit/local.mk
endif
include tests/func/local.mk
include tests/model/local.mk
include tests/api/local.mk
TESTS += $(check_PROGRAMS)
