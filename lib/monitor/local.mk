libmrfab_internal_la_SOURCES += \
	lib/monitor/discard.c \
	lib/monitor/discard.h \
	lib/monitor/monitor.c \
	lib/monitor/monitor.h \
	lib/monitor/uffd.c \
	lib/monitor/uffd.h
