libmrfab_internal_la_SOURCES += \
	lib/hmem/cuda.c \
	lib/hmem/dl.c \
	lib/hmem/open.c \
	lib/hmem/hmem.h \
	lib/hmem/rocr.c \
	lib/hmem/ze.c
