libmrfab_internal_la_SOURCES += \
	lib/monitor/announce.c \
	lib/monitor/announce.h \
	lib/monitor/discard.c \
	lib/monitor/discard.h \
	lib/monitor/hooks.c \
	lib/monitor/hooks.h \
	lib/monitor/life.c \
	lib/monitor/life.h \
	lib/monitor/monitor.c \
	lib/monitor/monitor.h \
	lib/monitor/patch.c \
	lib/monitor/patch.h \
	lib/monitor/uffd.c \
	lib/monitor/uffd.h \
	lib/monitor/uffds.c \
	lib/monitor/uffds.h
