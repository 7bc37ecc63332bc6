libmrfab_internal_la_SOURCES += \
	lib/proto/bytes.h \
	lib/proto/frame.c \
	lib/proto/frame.h \
	lib/proto/greeting.c \
	lib/proto/greeting.h \
	lib/proto/head.h \
	lib/proto/proto.c \
	lib/proto/proto.h \
	lib/proto/rawkey.c \
	lib/proto/rawkey.h \
	lib/proto/rawkey_one.h
