libmrfab_internal_la_SOURCES += \
	lib/atomic/atomic.c \
	lib/atomic/atomic.h
