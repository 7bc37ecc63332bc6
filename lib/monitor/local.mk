libmrfab_internal_la_SOURCES += \
	lib/monitor/announce.c \
	lib/monitor/announce.h \
	lib/monitor/change.c \
	lib/monitor/change.h \
	lib/monitor/discard.c \
	lib/monitor/discard.h \
	lib/monitor/elf.c \
	lib/monitor/elf.h \
	lib/monitor/hook_heap.c \
	lib/monitor/hook_heap.h \
	lib/monitor/hook_load.c \
	lib/monitor/hook_load.h \
	lib/monitor/hook_map.c \
	lib/monitor/hook_map.h \
	lib/monitor/hooks.c \
	lib/monitor/hooks.h \
	lib/monitor/life.c \
	lib/monitor/life.h \
	lib/monitor/monitor.c \
	lib/monitor/monitor.h \
	lib/monitor/slots.c \
	lib/monitor/slots.h \
	lib/monitor/uffd.c \
	lib/monitor/uffd.h \
	lib/monitor/uffds.c \
	lib/monitor/uffds.h
