# Everything that needs a device runs on tests/fake/fake_verbs.c instead of libibverbs and librdmacm.
unit_programs += \
	tests/unit/t_back \
	tests/unit/t_buf \
	tests/unit/t_cache \
	tests/unit/t_cache_scale \
	tests/unit/t_desc \
	tests/unit/t_domain \
	tests/unit/t_enable \
	tests/unit/t_face \
	tests/unit/t_fabric \
	tests/unit/t_group \
	tests/unit/t_map \
	tests/unit/t_mr_async \
	tests/unit/t_mr_event \
	tests/unit/t_mr_key \
	tests/unit/t_mr_locate \
	tests/unit/t_mr_raw \
	tests/unit/t_mr_register \
	tests/unit/t_hmem_region \
	tests/unit/t_mr_space \
	tests/unit/t_mr_state \
	tests/unit/t_refresh \
	tests/unit/t_room \
	tests/unit/t_serve \
	tests/unit/t_verbs_faults \
	tests/unit/t_vloop \
	tests/unit/t_vmr

FAKE_VERBS = tests/fake/fake_verbs.c tests/fake/fake_verbs.h tests/unit/unit.h
# With fabrics and domains, without endpoints.
FAKE_FABRIC = $(FAKE_VERBS) tests/fake/fake_up.c tests/fake/fake_up.h
MR_FIXTURE = $(FAKE_VERBS) tests/unit/mr_fixture.c tests/unit/mr_fixture.h tests/unit/apart.h
BACK_FIXTURE = $(MR_FIXTURE) tests/unit/back_fixture.h
MR_WRAP = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=malloc

tests_unit_t_back_SOURCES = tests/unit/t_back.c $(BACK_FIXTURE)
tests_unit_t_back_LDADD = $(UNIT_LDADD)
tests_unit_t_back_LDFLAGS = $(MR_WRAP),--wrap=fopen,--wrap=mrf_maps_look
tests_unit_t_enable_SOURCES = tests/unit/t_enable.c $(BACK_FIXTURE)
tests_unit_t_enable_LDADD = $(UNIT_LDADD)
tests_unit_t_enable_LDFLAGS = $(MR_WRAP)
tests_unit_t_face_SOURCES = tests/unit/t_face.c $(BACK_FIXTURE)
tests_unit_t_face_LDADD = $(UNIT_LDADD)
tests_unit_t_face_LDFLAGS = $(MR_WRAP)
tests_unit_t_mr_event_SOURCES = tests/unit/t_mr_event.c $(BACK_FIXTURE)
tests_unit_t_mr_event_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_event_LDFLAGS = $(MR_WRAP)
tests_unit_t_group_SOURCES = tests/unit/t_group.c tests/unit/secret.h $(BACK_FIXTURE)
tests_unit_t_group_LDADD = $(UNIT_LDADD)
tests_unit_t_group_LDFLAGS = $(MR_WRAP),--wrap=free
tests_unit_t_refresh_SOURCES = tests/unit/t_refresh.c $(BACK_FIXTURE)
tests_unit_t_refresh_LDADD = $(UNIT_LDADD)
tests_unit_t_refresh_LDFLAGS = $(MR_WRAP) -Wl,--wrap=realloc,--wrap=mincore
tests_unit_t_room_SOURCES = tests/unit/t_room.c $(BACK_FIXTURE)
tests_unit_t_room_LDADD = $(UNIT_LDADD)
tests_unit_t_room_LDFLAGS = $(MR_WRAP)
tests_unit_t_serve_SOURCES = tests/unit/t_serve.c $(FAKE_VERBS)
tests_unit_t_serve_LDADD = $(UNIT_LDADD)
tests_unit_t_buf_SOURCES = tests/unit/t_buf.c $(MR_FIXTURE)
tests_unit_t_buf_LDADD = $(UNIT_LDADD)
tests_unit_t_buf_LDFLAGS = $(MR_WRAP)
tests_unit_t_cache_SOURCES = tests/unit/t_cache.c tools/info_cache.c tools/info_cache.h \
	tools/info_files.c tools/info_files.h \
	$(MR_FIXTURE)
tests_unit_t_cache_LDADD = $(UNIT_LDADD)
tests_unit_t_cache_LDFLAGS = $(MR_WRAP),--wrap=mrf_page_memlock_read
tests_unit_t_cache_scale_SOURCES = tests/unit/t_cache_scale.c $(MR_FIXTURE)
tests_unit_t_cache_scale_LDADD = $(UNIT_LDADD)
tests_unit_t_cache_scale_LDFLAGS = $(MR_WRAP)
tests_unit_t_desc_SOURCES = tests/unit/t_desc.c $(MR_FIXTURE)
tests_unit_t_desc_LDADD = $(UNIT_LDADD)
tests_unit_t_desc_LDFLAGS = $(MR_WRAP)
tests_unit_t_domain_SOURCES = tests/unit/t_domain.c tests/fake/fake_vnl.h $(FAKE_FABRIC)
tests_unit_t_domain_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_domain_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL) -Wl,--wrap=mrf_random
tests_unit_t_fabric_SOURCES = tests/unit/t_fabric.c $(FAKE_FABRIC)
tests_unit_t_fabric_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_mr_async_SOURCES = tests/unit/t_mr_async.c tests/unit/mr_right.h $(BACK_FIXTURE)
tests_unit_t_mr_async_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_async_LDFLAGS = $(MR_WRAP) -Wl,--wrap=pthread_create,--wrap=sem_post
tests_unit_t_mr_key_SOURCES = tests/unit/t_mr_key.c $(MR_FIXTURE)
tests_unit_t_mr_key_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_key_LDFLAGS = $(MR_WRAP)
tests_unit_t_map_SOURCES = tests/unit/t_map.c tests/unit/fail_alloc.h tests/unit/unit.h
tests_unit_t_map_LDADD = $(UNIT_LDADD)
tests_unit_t_map_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc,--wrap=free
tests_unit_t_mr_locate_SOURCES = tests/unit/t_mr_locate.c tests/unit/unit.h
tests_unit_t_mr_locate_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_raw_SOURCES = tests/unit/t_mr_raw.c $(MR_FIXTURE)
tests_unit_t_mr_raw_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_raw_LDFLAGS = $(MR_WRAP)
tests_unit_t_hmem_region_SOURCES = tests/unit/t_hmem_region.c $(MR_FIXTURE) $(runtime_rig)
tests_unit_t_hmem_region_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_hmem_region_LDADD = $(UNIT_LDADD) -ldl
tests_unit_t_hmem_region_LDFLAGS = $(MR_WRAP) -Wl,--wrap=realloc
EXTRA_tests_unit_t_hmem_region_DEPENDENCIES = $(runtime_stand_ins)

# Built, but not run by make check: scripts/with-cuda does it where there is a device.
func_programs += tests/unit/t_cuda
tests_unit_t_cuda_SOURCES = tests/unit/t_cuda.c $(MR_FIXTURE)
tests_unit_t_cuda_LDADD = $(UNIT_LDADD) -ldl
tests_unit_t_cuda_LDFLAGS = $(MR_WRAP)

tests_unit_t_mr_register_SOURCES = tests/unit/t_mr_register.c $(MR_FIXTURE)
tests_unit_t_mr_register_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_register_LDFLAGS = $(MR_WRAP)
tests_unit_t_mr_space_SOURCES = tests/unit/t_mr_space.c $(MR_FIXTURE)
tests_unit_t_mr_space_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_space_LDFLAGS = $(MR_WRAP)
tests_unit_t_mr_state_SOURCES = tests/unit/t_mr_state.c tests/unit/mr_right.h $(BACK_FIXTURE)
tests_unit_t_mr_state_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_state_LDFLAGS = $(MR_WRAP)
tests_unit_t_verbs_faults_SOURCES = tests/unit/t_verbs_faults.c tests/unit/fail_alloc.h \
	tests/fake/fake_qp.c $(FAKE_VERBS)
tests_unit_t_verbs_faults_LDADD = $(UNIT_LDADD)
tests_unit_t_verbs_faults_LDFLAGS = $(MR_WRAP),--wrap=aligned_alloc,--wrap=mrf_random
tests_unit_t_vmr_SOURCES = tests/unit/t_vmr.c $(FAKE_VERBS)
tests_unit_t_vmr_LDADD = $(UNIT_LDADD)
# One that carries work requests out, and completes them when it is told to.
tests_unit_t_vloop_SOURCES = tests/unit/t_vloop.c tests/fake/fake_loop.c tests/fake/fake_loop.h \
	tests/unit/unit.h
tests_unit_t_vloop_LDADD = $(UNIT_LDADD)
tests_unit_t_vloop_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=poll
