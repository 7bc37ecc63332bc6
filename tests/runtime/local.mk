# Stand-ins for the runtimes of devices, under the runtimes' names, each in a folder of its own:
# mrfab_run --runtime puts one under a program. What they export is declared by the toolkits, which
# are not here.
runtimedir = $(libdir)/mrfab/runtime
cudadir = $(runtimedir)/cuda
rocrdir = $(runtimedir)/rocr
zedir = $(runtimedir)/ze
cuda_LTLIBRARIES = tests/runtime/cuda/libcuda.la
rocr_LTLIBRARIES = tests/runtime/rocr/libhsa-runtime64.la
ze_LTLIBRARIES = tests/runtime/ze/libze_loader.la
runtime_stand_ins = $(cuda_LTLIBRARIES) $(rocr_LTLIBRARIES) $(ze_LTLIBRARIES)
runtime_shared = tests/runtime/memory.c tests/runtime/memory.h tests/runtime/control.h
runtime_flags = $(MRF_CFLAGS) -fvisibility=hidden -Wno-missing-prototypes
runtime_ldflags = $(AM_LDFLAGS) -version-info 1:0:0
tests_runtime_cuda_libcuda_la_SOURCES = tests/runtime/cuda.c $(runtime_shared)
tests_runtime_cuda_libcuda_la_CFLAGS = $(runtime_flags)
tests_runtime_cuda_libcuda_la_LDFLAGS = $(runtime_ldflags)
tests_runtime_cuda_libcuda_la_LIBADD = -lpthread
tests_runtime_rocr_libhsa_runtime64_la_SOURCES = tests/runtime/rocr.c $(runtime_shared)
tests_runtime_rocr_libhsa_runtime64_la_CFLAGS = $(runtime_flags)
tests_runtime_rocr_libhsa_runtime64_la_LDFLAGS = $(runtime_ldflags)
tests_runtime_rocr_libhsa_runtime64_la_LIBADD = -lpthread
tests_runtime_ze_libze_loader_la_SOURCES = tests/runtime/ze.c $(runtime_shared)
tests_runtime_ze_libze_loader_la_CFLAGS = $(runtime_flags)
tests_runtime_ze_libze_loader_la_LDFLAGS = $(runtime_ldflags)
tests_runtime_ze_libze_loader_la_LIBADD = -lpthread

# The real CUDA behind the stand-in's extras, for scripts/with-cuda; not installed.
check_LTLIBRARIES += tests/runtime/through/libcuda.la
tests_runtime_through_libcuda_la_SOURCES = tests/runtime/through.c $(runtime_shared)
tests_runtime_through_libcuda_la_CFLAGS = $(runtime_flags)
tests_runtime_through_libcuda_la_LDFLAGS = $(runtime_ldflags) -rpath $(runtimedir)
tests_runtime_through_libcuda_la_LIBADD = -lpthread -ldl

# What programs need that use them.
runtime_rig = tests/runtime/rig.c tests/runtime/rig.h tests/runtime/memory.h
runtime_rig_flags = -I$(top_srcdir)/tests -DRUNTIME='"$(abs_builddir)/tests/runtime/"'

# The same, made once.
check_LTLIBRARIES += tests/runtime/librig.la
tests_runtime_librig_la_SOURCES = $(runtime_rig)
tests_runtime_librig_la_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_runtime_librig_la_LIBADD = -ldl
