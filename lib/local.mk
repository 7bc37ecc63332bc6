# All objects in one archive that the unit tests link; the library is that plus the map.
noinst_LTLIBRARIES += libmrfab-internal.la
libmrfab_internal_la_SOURCES =
libmrfab_internal_la_LIBADD = $(SODIUM_LIBS)

include lib/base/local.mk
include lib/atomic/local.mk
include lib/auth/local.mk
include lib/contract/local.mk
include lib/match/local.mk
include lib/obj/local.mk
include lib/proto/local.mk
include lib/verbs/local.mk
include lib/hmem/local.mk
include lib/monitor/local.mk
include lib/mr/local.mk
include lib/buf/local.mk
include lib/domain/local.mk
include lib/loop/local.mk
include lib/ep/local.mk
include lib/info/local.mk
include lib/export/local.mk

lib_LTLIBRARIES += libmrfab.la
libmrfab_la_SOURCES =
libmrfab_la_LIBADD = libmrfab-internal.la $(VERBS_LIBS) $(NL_LIBS) -lpthread
# dlclose leaves it where it is: librdmacm, which would go with it, never closes the two
# descriptors that it opens, and would open two more the next time. All symbols are bound when
# it is loaded: a hook that called a function for the first time would take the loader's lock.
libmrfab_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(MRF_ABI) -Wl,-z,nodelete -Wl,-z,now \
	-Wl,--version-script=$(top_srcdir)/lib/libmrfab.map -Wl,--no-undefined-version
if !SANITIZED
libmrfab_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_libmrfab_la_DEPENDENCIES = lib/libmrfab.map

include lib/prov/local.mk

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = lib/mrfab.pc
