# SPDX-License-Identifier: BSD-2-Clause
# How programs call libfabric for messages, here with the library itself; tests/prov/run-prov compiles
# the same sources with the libfabric that is installed. These have no part of libmrfab.
func_programs += tests/patterns/patterns
tests_patterns_patterns_SOURCES = tests/patterns/main.c tests/patterns/side.c tests/patterns/side.h \
	tests/patterns/talk.c tests/patterns/rdm.c tests/patterns/tagged.c tests/patterns/rma.c \
	tests/patterns/many.c tests/patterns/calls.c tests/patterns/mpi.c tests/patterns/clients.c
tests_patterns_patterns_LDADD = libmrfab.la
