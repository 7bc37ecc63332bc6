libmrfab_internal_la_SOURCES += \
	lib/mr/mr.h \
	lib/mr/mr_int.h \
	lib/mr/mr.c \
	lib/mr/mr_access.c \
	lib/mr/mr_attr.c \
	lib/mr/mr_key.c \
	lib/mr/mr_locate.c \
	lib/mr/mr_ops.c \
	lib/mr/mr_pool.c \
	lib/mr/mr_pool.h \
	lib/mr/mr_space.c \
	lib/mr/mr_why.c
