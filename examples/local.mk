# Not built here: they are for users, with a Makefile of their own. tests/api/run-examples runs them.
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	examples/Makefile \
	examples/common.h \
	examples/counter.c \
	examples/device.c \
	examples/rawkey.c \
	examples/refresh.c \
	examples/rma.c
