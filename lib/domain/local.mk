libmrfab_internal_la_SOURCES += \
	lib/domain/domain.c \
	lib/domain/domain.h \
	lib/domain/domain_int.h \
	lib/domain/domain_info.c \
	lib/domain/domain_ops.c \
	lib/domain/fabric.c \
	lib/domain/fabric.h \
	lib/domain/faults.c \
	lib/domain/faults.h \
	lib/domain/leaks.c \
	lib/domain/leaks.h
