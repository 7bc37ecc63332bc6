libmrfab_internal_la_SOURCES += \
	lib/info/addr.c \
	lib/info/addr.h \
	lib/info/get.c \
	lib/info/get.h \
	lib/info/hints.c \
	lib/info/hints.h \
	lib/info/info.c \
	lib/info/info.h \
	lib/info/make.c \
	lib/info/make.h \
	lib/info/mode.c \
	lib/info/mode.h \
	lib/info/nic.c \
	lib/info/nic.h \
	lib/info/query.h \
	lib/info/tostr.c \
	lib/info/tostr.h
