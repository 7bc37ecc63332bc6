# Programs on the public interface only, like any application's.
TOOLS_CPPFLAGS = -I$(top_srcdir)/include

noinst_PROGRAMS += tools/mrfab_demo
tools_mrfab_demo_SOURCES = tools/mrfab_demo.c
tools_mrfab_demo_CPPFLAGS = $(TOOLS_CPPFLAGS)
tools_mrfab_demo_LDADD = libmrfab.la
tools_mrfab_demo_LDFLAGS = $(AM_LDFLAGS) -no-install
