libmrfab_internal_la_SOURCES += \
	lib/api/getinfo.c \
	lib/api/info.c \
	lib/api/info.h \
	lib/api/info_addr.c \
	lib/api/info_hints.c \
	lib/api/info_make.c \
	lib/api/info_mode.c \
	lib/api/info_nic.c
