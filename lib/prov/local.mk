# libfabric takes each *-fi.so in FI_PROVIDER_PATH for a provider: nothing else is in that folder.
provdir = $(libdir)/mrfab/provider
prov_LTLIBRARIES = libmrfab-fi.la
libmrfab_fi_la_SOURCES = lib/prov/prov.c
libmrfab_fi_la_LIBADD = libmrfab-internal.la $(VERBS_LIBS) $(NL_LIBS) -lpthread -ldl
libmrfab_fi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,nodelete -Wl,-z,now \
	-Wl,--version-script=$(top_srcdir)/lib/prov/prov.map
EXTRA_libmrfab_fi_la_DEPENDENCIES = lib/prov/prov.map
EXTRA_DIST += lib/prov/prov.map
MODULE = $(DESTDIR)$(provdir)/libmrfab-fi
