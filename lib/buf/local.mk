libmrfab_internal_la_SOURCES += \
	lib/buf/bounce.c \
	lib/buf/bounce.h \
	lib/buf/local.c \
	lib/buf/local.h
