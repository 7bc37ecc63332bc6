libmrfab_internal_la_SOURCES += \
	lib/verbs/vnl.c \
	lib/verbs/vnl.h
