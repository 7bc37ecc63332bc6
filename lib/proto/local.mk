libmrfab_internal_la_SOURCES += \
	lib/proto/proto.c \
	lib/proto/proto.h
