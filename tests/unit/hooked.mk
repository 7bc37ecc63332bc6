# Objects for t_hooks: one source, linked in the ways that decide which slots an object has.
hooked_objects = \
	tests/unit/hooked_lazy.so \
	tests/unit/hooked_now.so \
	tests/unit/hooked_noplt.so \
	tests/unit/hooked_path.so \
	tests/unit/hooked_own.so \
	tests/unit/hooked_sub/hooked_found.so
hooked_link = $(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(CPPFLAGS) -g -O1 -fPIC -shared \
	-o $@ $(srcdir)/tests/unit/hooked.c

tests/unit/hooked_lazy.so: tests/unit/hooked.c
	$(hooked_link) -Wl,-z,lazy
tests/unit/hooked_now.so: tests/unit/hooked.c
	$(hooked_link) -Wl,-z,relro -Wl,-z,now
tests/unit/hooked_noplt.so: tests/unit/hooked.c
	$(hooked_link) -fno-plt -Wl,-z,relro
tests/unit/hooked_path.so: tests/unit/hooked.c
	$(hooked_link) -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN/hooked_sub'
tests/unit/hooked_own.so: tests/unit/hooked.c
	$(hooked_link) -DOWN_GETPPID
tests/unit/hooked_sub/hooked_found.so: tests/unit/hooked.c
	$(hooked_link) -Wl,-z,lazy

EXTRA_DIST += tests/unit/hooked.c
CLEANFILES += $(hooked_objects)

unit_programs += tests/unit/t_hooks tests/unit/t_hook_heap tests/unit/t_hook_load \
	tests/unit/t_slots tests/unit/t_stub
hooked_flags = $(AM_CPPFLAGS) -DHOOKED='"$(abs_builddir)/tests/unit/"'
tests_unit_t_hooks_SOURCES = tests/unit/t_hooks.c tests/unit/hooked.h tests/unit/child.h \
	tests/unit/unit.h
tests_unit_t_hooks_CPPFLAGS = $(hooked_flags)
tests_unit_t_hooks_LDADD = $(UNIT_LDADD)
EXTRA_tests_unit_t_hooks_DEPENDENCIES = $(hooked_objects)
tests_unit_t_hook_heap_SOURCES = tests/unit/t_hook_heap.c tests/unit/hooked.h tests/unit/unit.h
tests_unit_t_hook_heap_CPPFLAGS = $(hooked_flags)
tests_unit_t_hook_heap_LDADD = $(UNIT_LDADD)
EXTRA_tests_unit_t_hook_heap_DEPENDENCIES = $(hooked_objects)
tests_unit_t_hook_load_SOURCES = tests/unit/t_hook_load.c tests/unit/hooked.h tests/unit/fork_inside.h \
	tests/unit/child.h tests/unit/unit.h
tests_unit_t_hook_load_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dl_iterate_phdr
tests_unit_t_hook_load_CPPFLAGS = $(hooked_flags)
tests_unit_t_hook_load_LDADD = $(UNIT_LDADD)
EXTRA_tests_unit_t_hook_load_DEPENDENCIES = $(hooked_objects)
tests_unit_t_slots_SOURCES = tests/unit/t_slots.c tests/unit/hooked.h tests/unit/unit.h
tests_unit_t_slots_CPPFLAGS = $(hooked_flags)
tests_unit_t_slots_LDADD = $(UNIT_LDADD)
EXTRA_tests_unit_t_slots_DEPENDENCIES = $(hooked_objects)
tests_unit_t_stub_SOURCES = tests/unit/t_stub.c tests/unit/hooked.h tests/unit/unit.h
tests_unit_t_stub_CPPFLAGS = $(hooked_flags)
tests_unit_t_stub_CFLAGS = $(AM_CFLAGS) -fno-pie
tests_unit_t_stub_LDFLAGS = $(AM_LDFLAGS) -no-pie
tests_unit_t_stub_LDADD = $(UNIT_LDADD)
EXTRA_tests_unit_t_stub_DEPENDENCIES = $(hooked_objects)
