# Stand-ins for the runtimes of devices, under the runtimes' names.
runtime_stand_ins = libcuda.la libhsa-runtime64.la libze_loader.la
check_LTLIBRARIES = $(runtime_stand_ins)
libcuda_la_SOURCES = tests/runtime/cuda.c tests/runtime/memory.c tests/runtime/memory.h \
	tests/runtime/control.h
# What they export is declared by the toolkits, which are not here.
runtime_flags = $(MRF_CFLAGS) -fvisibility=hidden -Wno-missing-prototypes
libcuda_la_CFLAGS = $(runtime_flags)
libcuda_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -rpath /nowhere
libcuda_la_LIBADD = -lpthread
libhsa_runtime64_la_SOURCES = tests/runtime/rocr.c tests/runtime/memory.c tests/runtime/memory.h \
	tests/runtime/control.h
libhsa_runtime64_la_CFLAGS = $(runtime_flags)
libhsa_runtime64_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -rpath /nowhere
libhsa_runtime64_la_LIBADD = -lpthread
libze_loader_la_SOURCES = tests/runtime/ze.c tests/runtime/memory.c tests/runtime/memory.h \
	tests/runtime/control.h
libze_loader_la_CFLAGS = $(runtime_flags)
libze_loader_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -rpath /nowhere
libze_loader_la_LIBADD = -lpthread

# What programs need that use them.
runtime_rig = tests/runtime/rig.c tests/runtime/rig.h tests/runtime/memory.h
runtime_rig_flags = -I$(top_srcdir)/tests -DRUNTIME='"$(abs_builddir)/.libs/"'
