libmrfab_internal_la_SOURCES += \
	lib/buf/bounce.c \
	lib/buf/bounce.h \
	lib/buf/cache.c \
	lib/buf/cache.h \
	lib/buf/cache_entry.c \
	lib/buf/cache_entry.h \
	lib/buf/gauge.c \
	lib/buf/gauge.h \
	lib/buf/local.c \
	lib/buf/local.h \
	lib/buf/local_int.h \
	lib/buf/local_desc.c \
	lib/buf/local_pin.c \
	lib/buf/rest.c \
	lib/buf/rest.h \
	lib/buf/stage.c \
	lib/buf/stage.h \
	lib/buf/stage_ring.c \
	lib/buf/stage_ring.h \
	lib/buf/uses.c \
	lib/buf/uses.h
