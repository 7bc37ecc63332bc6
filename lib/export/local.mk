libmrfab_internal_la_SOURCES += \
	lib/export/fabric_open.c \
	lib/export/fabric_open.h \
	lib/export/info_api.c \
	lib/export/log_api.c \
	lib/export/mr_symbols.c \
	lib/export/mr_symbols.h \
	lib/export/open.c \
	lib/export/param_api.c \
	lib/export/strerror.c \
	lib/export/version.c
