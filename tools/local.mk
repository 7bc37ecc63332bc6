# Programs on the public interface only, like any application's.
bin_PROGRAMS += tools/mrfab_info
tools_mrfab_info_SOURCES = tools/mrfab_info.c tools/info_cache.c tools/info_cache.h \
	tools/info_files.c tools/info_files.h tools/info_pid.c tools/info_pid.h tools/info_ledger.c tools/info_ledger.h \
	tools/info_where.c tools/info_where.h tools/info_hints.c tools/info_hints.h \
	tools/info_words.c tools/info_words.h \
	tools/info_options.c tools/info_options.h tools/info_json.c tools/info_json.h \
	tools/info_code.c tools/info_code.h \
	lib/verbs/vnode.c lib/verbs/vnode.h
tools_mrfab_info_CPPFLAGS = -include config.h -I$(top_builddir) -I$(top_srcdir)/include -I$(top_srcdir)/lib
tools_mrfab_info_LDFLAGS = $(MRF_LDFLAGS)
tools_mrfab_info_LDADD = libmrfab.la

# What --code prints.
EXTRA_DIST += tools/messages.awk
CLEANFILES += tools/messages.inc
tools/mrfab_info-info_code.$(OBJEXT): tools/messages.inc
tools/messages.inc: $(top_srcdir)/docs/man/mrfab_messages.7 $(top_srcdir)/tools/messages.awk
	$(AM_V_GEN)$(MKDIR_P) tools && $(AWK) -f $(top_srcdir)/tools/messages.awk \
		$(top_srcdir)/docs/man/mrfab_messages.7 >$@.new && mv $@.new $@

# What scripts/demo runs, and the example in the README.
bin_PROGRAMS += tools/mrfab_demo
tools_mrfab_demo_SOURCES = tools/mrfab_demo.c
tools_mrfab_demo_CPPFLAGS = -I$(top_srcdir)/include
tools_mrfab_demo_LDFLAGS = $(MRF_LDFLAGS)
tools_mrfab_demo_LDADD = libmrfab.la

# What of the library it uses is in the archive; no shared object that the archive names is needed.
bin_PROGRAMS += tools/mrfab_run
tools_mrfab_run_SOURCES = tools/mrfab_run.c tools/run_list.c tools/run_list.h \
	tools/run_module.c tools/run_module.h tools/run_watch.c tools/run_watch.h
tools_mrfab_run_CPPFLAGS = $(AM_CPPFLAGS) -DBINDIR='"$(bindir)"' -DPROVIDERDIR='"$(provdir)"' \
	-DRUNTIMEDIR='"$(runtimedir)"'
tools_mrfab_run_LDFLAGS = $(MRF_LDFLAGS) -Wl,--as-needed
tools_mrfab_run_LDADD = libmrfab-internal.la -lpthread
