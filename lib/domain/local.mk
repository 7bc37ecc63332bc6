libmrfab_internal_la_SOURCES += \
	lib/domain/domain.c \
	lib/domain/domain.h \
	lib/domain/domain_info.c \
	lib/domain/domain_info.h \
	lib/domain/domain_ops.c \
	lib/domain/domain_ops.h \
	lib/domain/fabric.c \
	lib/domain/fabric.h
