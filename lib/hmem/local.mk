libmrfab_internal_la_SOURCES += \
	lib/hmem/cuda.c \
	lib/hmem/cuda.h \
	lib/hmem/dl.c \
	lib/hmem/dl.h \
	lib/hmem/hmem.c \
	lib/hmem/hmem.h \
	lib/hmem/rocr.c \
	lib/hmem/rocr.h \
	lib/hmem/table.h \
	lib/hmem/ze.c \
	lib/hmem/ze.h
