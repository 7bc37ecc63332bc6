libmrfab_internal_la_SOURCES += \
	lib/export/calls.c \
	lib/export/fabric_open.c \
	lib/export/fabric_open.h \
	lib/export/info_api.c \
	lib/export/mr_symbols.c \
	lib/export/mr_symbols.h \
	lib/export/fi_open.c
