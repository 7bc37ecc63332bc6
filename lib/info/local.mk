libmrfab_internal_la_SOURCES += \
	lib/info/addr_hints.c \
	lib/info/api.h \
	lib/info/decline.c \
	lib/info/decline.h \
	lib/info/get.c \
	lib/info/hints.c \
	lib/info/info.c \
	lib/info/make.c \
	lib/info/mode.c \
	lib/info/nic.c \
	lib/info/offer.c \
	lib/info/offer.h \
	lib/info/parts.c \
	lib/info/query.h \
	lib/info/tostr.c
