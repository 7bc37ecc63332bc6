libmrfab_internal_la_SOURCES += \
	lib/hmem/cuda.c \
	lib/hmem/dl.c \
	lib/hmem/dl.h \
	lib/hmem/hmem.c \
	lib/hmem/hmem.h \
	lib/hmem/rocr.c \
	lib/hmem/table.h \
	lib/hmem/ze.c
