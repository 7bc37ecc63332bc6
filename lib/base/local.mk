libmrfab_internal_la_SOURCES += \
	lib/base/compiler.h \
	lib/base/errtext.c \
	lib/base/errtext.h \
	lib/base/flood.c \
	lib/base/flood.h \
	lib/base/fork.c \
	lib/base/fork.h \
	lib/base/idmap.c \
	lib/base/idmap.h \
	lib/base/iov.h \
	lib/base/list.h \
	lib/base/lock.c \
	lib/base/lock.h \
	lib/base/log.c \
	lib/base/log.h \
	lib/base/maps.c \
	lib/base/maps.h \
	lib/base/names.c \
	lib/base/names.h \
	lib/base/page.c \
	lib/base/page.h \
	lib/base/param.c \
	lib/base/param.h \
	lib/base/present.c \
	lib/base/present.h \
	lib/base/user.c \
	lib/base/user.h
