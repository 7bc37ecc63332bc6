libmrfab_internal_la_SOURCES += \
	lib/api/log_api.c \
	lib/api/mr_symbols.c \
	lib/api/mr_symbols.h \
	lib/api/open.c \
	lib/api/param_api.c \
	lib/api/strerror.c \
	lib/api/tostr.c \
	lib/api/version.c

TESTS += tests/api/t_symbols.sh
EXTRA_DIST += tests/api/t_symbols.sh
