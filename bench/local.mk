# SPDX-License-Identifier: BSD-2-Clause
# make bench: libmrfab against raw verbs; rewrites docs/PERFORMANCE.md and fails when a
# target is missed. In a guest where one instruction takes 1 ns, so that it repeats.
bench_programs = bench/mrfab_bench bench/open_raw bench/open_ours bench/open_other \
	bench/cost_cache bench/cost_demand bench/cost_lease bench/cost_discover \
	bench/cost_match bench/cost_message
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs) bench/PERFORMANCE.md
EXTRA_DIST += docs/PERFORMANCE.md

BENCH_CPPFLAGS = -include config.h -I$(top_builddir) -I$(top_srcdir)/include
bench_raw_sources = bench/raw.c bench/raw.h bench/bench.c bench/bench.h bench/work.h
bench_fab_sources = bench/fab.c bench/fab.h
bench_cost_sources = bench/cost.c bench/cost.h
bench_pair_sources = bench/cost_pair.c bench/cost_pair.h bench/ours.c $(bench_raw_sources) \
	$(bench_fab_sources) $(bench_cost_sources)

# Started from beside mrfab_bench, so real programs and no wrappers.
bench_mrfab_bench_SOURCES = bench/mrfab_bench.c bench/lane.c bench/lane.h bench/parts.h \
	bench/part_open.c bench/part_register.c bench/part_access.c bench/part_event.c \
	bench/part_atomic.c bench/part_beside.c bench/part_agent.c bench/part_peers.c \
	bench/part_rawkey.c bench/part_cache.c bench/part_demand.c bench/part_match.c bench/part_message.c \
	bench/part_local.c bench/part_device.c bench/part_discover.c $(runtime_rig) \
	$(bench_cost_sources) \
	bench/report.c bench/ours.c $(bench_raw_sources) $(bench_fab_sources)
bench_mrfab_bench_CPPFLAGS = $(BENCH_CPPFLAGS) $(runtime_rig_flags)
bench_mrfab_bench_LDADD = libmrfab.la $(VERBS_LIBS) -lm -ldl
EXTRA_bench_mrfab_bench_DEPENDENCIES = $(runtime_stand_ins)
bench_mrfab_bench_LDFLAGS = $(AM_LDFLAGS) -no-install
bench_open_raw_SOURCES = bench/open_raw.c $(bench_raw_sources)
bench_open_raw_CPPFLAGS = $(BENCH_CPPFLAGS)
bench_open_raw_LDADD = $(VERBS_LIBS)
bench_open_ours_SOURCES = bench/open_ours.c bench/ours.c bench/bench.c bench/bench.h \
	$(bench_fab_sources)
bench_open_ours_CPPFLAGS = $(BENCH_CPPFLAGS)
bench_open_ours_LDADD = libmrfab.la
bench_open_ours_LDFLAGS = $(AM_LDFLAGS) -no-install
bench_open_other_SOURCES = bench/open_other.c bench/bench.c bench/bench.h $(bench_fab_sources)
bench_open_other_CPPFLAGS = $(BENCH_CPPFLAGS)
# With the library's objects, as unit tests are: the cache has no exported calls.
bench_cost_cache_SOURCES = bench/cost_cache.c bench/ours.c $(bench_raw_sources) \
	$(bench_fab_sources) $(bench_cost_sources)
bench_cost_cache_CPPFLAGS = $(BENCH_CPPFLAGS) -I$(top_srcdir)/lib
bench_cost_cache_LDADD = libmrfab-internal.la $(VERBS_LIBS) $(NL_LIBS) -lpthread
bench_cost_match_SOURCES = bench/cost_match.c bench/bench.c bench/bench.h $(bench_cost_sources)
bench_cost_match_CPPFLAGS = $(BENCH_CPPFLAGS) -I$(top_srcdir)/lib
bench_cost_match_LDADD = libmrfab-internal.la $(NL_LIBS) -lpthread
bench_cost_demand_SOURCES = bench/cost_demand.c $(bench_pair_sources)
bench_cost_demand_CPPFLAGS = $(BENCH_CPPFLAGS)
bench_cost_demand_LDADD = libmrfab.la $(VERBS_LIBS) -lpthread
bench_cost_demand_LDFLAGS = $(AM_LDFLAGS) -no-install
bench_cost_lease_SOURCES = bench/cost_lease.c $(bench_pair_sources)
bench_cost_lease_CPPFLAGS = $(BENCH_CPPFLAGS)
bench_cost_lease_LDADD = libmrfab.la $(VERBS_LIBS) -lpthread
bench_cost_lease_LDFLAGS = $(AM_LDFLAGS) -no-install
bench_cost_message_SOURCES = bench/cost_message.c bench/message.h bench/message_raw.c \
	bench/message_fab.c $(bench_pair_sources)
bench_cost_message_CPPFLAGS = $(BENCH_CPPFLAGS)
bench_cost_message_LDADD = libmrfab.la $(VERBS_LIBS) -lpthread -ldl
bench_cost_message_LDFLAGS = $(AM_LDFLAGS) -no-install
bench_cost_discover_SOURCES = bench/cost_discover.c bench/bench.c bench/bench.h bench/fab.h \
	$(bench_cost_sources)
bench_cost_discover_CPPFLAGS = $(BENCH_CPPFLAGS)
bench_cost_discover_LDADD = libmrfab.la
bench_cost_discover_LDFLAGS = $(AM_LDFLAGS) -no-install

# For a machine with a device: scripts/with-cuda.
EXTRA_PROGRAMS += bench/cost_hmem
CLEANFILES += bench/cost_hmem
bench_cost_hmem_SOURCES = bench/cost_hmem.c bench/bench.c bench/bench.h
bench_cost_hmem_CPPFLAGS = $(BENCH_CPPFLAGS) -I$(top_srcdir)/lib
bench_cost_hmem_LDADD = libmrfab-internal.la $(NL_LIBS) -lpthread -ldl

# The report is taken over whole or not at all: status 1 is one with a missed target.
.PHONY: bench
bench: $(bench_programs)
	$(AM_V_at)$(top_srcdir)/scripts/with-rxe --icount --kernel 6.1 --timeout 1200 -- \
		bench/mrfab_bench >bench/PERFORMANCE.md; status=$$?; \
	if test $$status -le 1; then \
		cp bench/PERFORMANCE.md $(top_srcdir)/docs/PERFORMANCE.md; \
		sed -n '/^## Targets/,/^## From/p' bench/PERFORMANCE.md | sed '$$d'; \
	fi; exit $$status
