libmrfab_internal_la_SOURCES += \
	lib/hmem/cuda.c \
	lib/hmem/dl.c \
	lib/hmem/runtimes.c \
	lib/hmem/hmem.h \
	lib/hmem/rocr.c \
	lib/hmem/ze.c
