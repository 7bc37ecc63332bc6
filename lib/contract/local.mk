libmrfab_internal_la_SOURCES += \
	lib/contract/limits.h \
	lib/contract/mr_mode.c \
	lib/contract/mr_mode.h \
	lib/contract/rules.c \
	lib/contract/rules.h
