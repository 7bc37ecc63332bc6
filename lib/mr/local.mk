libmrfab_internal_la_SOURCES += \
	lib/mr/map.c \
	lib/mr/map.h \
	lib/mr/back.c \
	lib/mr/back.h \
	lib/mr/mr.h \
	lib/mr/mr_int.h \
	lib/mr/mr.c \
	lib/mr/mr_access.c \
	lib/mr/mr_attr.c \
	lib/mr/mr_bind.c \
	lib/mr/mr_enable.c \
	lib/mr/mr_key.c \
	lib/mr/mr_locate.c \
	lib/mr/mr_ops.c \
	lib/mr/mr_pool.c \
	lib/mr/mr_pool.h \
	lib/mr/mr_raw.c \
	lib/mr/mr_reach.c \
	lib/mr/mr_space.c \
	lib/mr/mr_why.c \
	lib/mr/pin.c \
	lib/mr/pin.h \
	lib/mr/reach.c \
	lib/mr/refresh.c \
	lib/mr/spans.c \
	lib/mr/spans.h \
	lib/mr/unpin.c
