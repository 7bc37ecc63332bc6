# A runtime that lacks nearly everything.
tests/unit/libold_cuda.so: tests/unit/old_cuda.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) -shared -fPIC -Wl,-soname,libcuda.so.1 -o $@ \
		$(srcdir)/tests/unit/old_cuda.c

EXTRA_DIST += tests/unit/old_cuda.c
CLEANFILES += tests/unit/libold_cuda.so
unit_programs += tests/unit/t_hmem
tests_unit_t_hmem_SOURCES = tests/unit/t_hmem.c tests/unit/fork_inside.h tests/unit/child.h \
	tests/unit/unit.h $(runtime_rig)
tests_unit_t_hmem_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlerror
tests_unit_t_hmem_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags) \
	-DOLD='"$(abs_builddir)/tests/unit/"'
tests_unit_t_hmem_LDADD = $(UNIT_LDADD) -ldl
EXTRA_tests_unit_t_hmem_DEPENDENCIES = $(runtime_stand_ins) tests/unit/libold_cuda.so
unit_programs += tests/unit/t_hmem_real
tests_unit_t_hmem_real_SOURCES = tests/unit/t_hmem_real.c tests/unit/unit.h
tests_unit_t_hmem_real_LDADD = $(UNIT_LDADD) -ldl
