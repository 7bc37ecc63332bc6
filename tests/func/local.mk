# SPDX-License-Identifier: BSD-2-Clause
# Cases over a real rxe device, public API only: scripts/run-func runs them.
func_harness = tests/func/case.c tests/func/case.h tests/func/buf.c tests/func/buf.h \
	tests/func/fab.c tests/func/fab.h tests/func/peer.c tests/func/peer.h \
	tests/func/serve.c tests/func/serve.h tests/func/env.c tests/func/env.h \
	tests/func/harness.h

noinst_PROGRAMS += tests/func/f_access tests/func/f_refuse tests/func/f_close \
	tests/func/f_peers tests/func/f_ops tests/func/f_desc tests/func/f_self \
	tests/func/f_object

tests_func_f_access_SOURCES = tests/func/f_access.c $(func_harness)
tests_func_f_access_LDADD = libmrfab.la
tests_func_f_refuse_SOURCES = tests/func/f_refuse.c $(func_harness)
tests_func_f_refuse_LDADD = libmrfab.la
tests_func_f_close_SOURCES = tests/func/f_close.c $(func_harness)
tests_func_f_close_LDADD = libmrfab.la
tests_func_f_peers_SOURCES = tests/func/f_peers.c $(func_harness)
tests_func_f_peers_LDADD = libmrfab.la
tests_func_f_ops_SOURCES = tests/func/f_ops.c $(func_harness)
tests_func_f_ops_LDADD = libmrfab.la
tests_func_f_desc_SOURCES = tests/func/f_desc.c $(func_harness)
tests_func_f_desc_LDADD = libmrfab.la
tests_func_f_self_SOURCES = tests/func/f_self.c $(func_harness)
tests_func_f_self_LDADD = libmrfab.la
tests_func_f_object_SOURCES = tests/func/f_object.c $(func_harness)
tests_func_f_object_LDADD = libmrfab.la
