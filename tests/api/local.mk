# Scripts that look at the public headers and at the library from outside.
dist_check_SCRIPTS = \
	tests/api/t_examples.sh \
	tests/api/t_headers.sh \
	tests/api/t_info.sh \
	tests/api/t_inline \
	tests/api/t_layout \
	tests/api/t_readme.sh \
	tests/api/t_run.sh \
	tests/api/t_symbols.sh
EXTRA_DIST += tests/prov \
	tests/api/header_facts.pm \
	tests/api/header_trees.pm \
	tests/api/installcheck \
	tests/api/readme-program \
	tests/api/run-examples \
	tests/api/t_consumer.c \
	tests/api/t_consumer.cpp \
	tests/api/t_selftest.sh
TESTS += $(dist_check_SCRIPTS)
AM_TESTS_ENVIRONMENT = CC='$(CC)'; CXX='$(CXX)'; top_srcdir='$(top_srcdir)'; \
	top_builddir='$(top_builddir)'; builddir='$(top_builddir)'; \
	CHECK_RXE='$(CHECK_RXE)'; export CC CXX top_srcdir top_builddir builddir CHECK_RXE;
# What is to be read at once goes to the terminal by this descriptor.
AM_TESTS_FD_REDIRECT = 9>&2
