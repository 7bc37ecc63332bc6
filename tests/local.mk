UNIT_LDADD = libmrfab-internal.la $(CHECK_LIBS) -lpthread
AM_CFLAGS += $(CHECK_CFLAGS)
include tests/runtime/local.mk
if HAVE_CHECK
include tests/unit/local.mk
endif
include tests/func/local.mk
include tests/patterns/local.mk
include tests/model/local.mk
include tests/api/local.mk
TESTS += $(unit_programs)

# On an rxe device, when all the others are done: they would disturb each other.
check_rxe = tests/func/check-rxe
TESTS += $(check_rxe)
EXTRA_DIST += $(check_rxe) tests/unit/no-check
$(check_rxe).log: $(filter-out $(check_rxe).log,$(TEST_LOGS))
if !HAVE_CHECK
TESTS += tests/unit/no-check
endif

installcheck-local:
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) \
	DESTDIR='$(DESTDIR)' bindir='$(bindir)' libdir='$(libdir)' mandir='$(mandir)' \
		docdir='$(docdir)' \
		version='$(PACKAGE_VERSION)' $(top_srcdir)/tests/api/installcheck

# A release is checked without a device: scripts/test has the same tests on several kernels.
AM_DISTCHECK_CONFIGURE_FLAGS = --disable-rxe-check
