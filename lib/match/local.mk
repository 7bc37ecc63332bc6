libmrfab_internal_la_SOURCES += \
	lib/match/match.c \
	lib/match/match.h \
	lib/match/queues.c \
	lib/match/queues.h
