unit_programs += \
	tests/unit/t_addr \
	tests/unit/t_form \
	tests/unit/t_av \
	tests/unit/t_av_index \
	tests/unit/t_cntr \
	tests/unit/t_cq \
	tests/unit/t_eq \
	tests/unit/t_obj \
	tests/unit/t_readers \
	tests/unit/t_wait

obj_test_headers = tests/unit/obj_fixture.h tests/unit/unit.h
wrap_alloc = -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc

tests_unit_t_form_SOURCES = tests/unit/t_form.c tests/unit/some_addr.h tests/unit/unit.h
tests_unit_t_form_LDADD = $(UNIT_LDADD)
tests_unit_t_addr_SOURCES = tests/unit/t_addr.c tests/unit/some_addr.h tests/unit/unit.h
tests_unit_t_addr_LDADD = $(UNIT_LDADD)
tests_unit_t_av_SOURCES = tests/unit/t_av.c tests/unit/fail_alloc.h $(obj_test_headers)
tests_unit_t_av_LDADD = $(UNIT_LDADD)
tests_unit_t_av_LDFLAGS = $(AM_LDFLAGS) $(wrap_alloc) -Wl,--wrap=getaddrinfo
tests_unit_t_av_index_SOURCES = tests/unit/t_av_index.c tests/unit/every.h tests/unit/fail_alloc.h \
	$(obj_test_headers)
tests_unit_t_av_index_LDADD = $(UNIT_LDADD)
tests_unit_t_av_index_LDFLAGS = $(AM_LDFLAGS) $(wrap_alloc) \
	-Wl,--wrap=mrf_addr_hash,--wrap=mrf_random
tests_unit_t_cntr_SOURCES = tests/unit/t_cntr.c tests/unit/fail_alloc.h $(obj_test_headers)
tests_unit_t_cntr_LDADD = $(UNIT_LDADD)
tests_unit_t_cntr_LDFLAGS = $(AM_LDFLAGS) $(wrap_alloc)
tests_unit_t_cq_SOURCES = tests/unit/t_cq.c tests/unit/fail_alloc.h $(obj_test_headers)
tests_unit_t_cq_LDADD = $(UNIT_LDADD)
tests_unit_t_cq_LDFLAGS = $(AM_LDFLAGS) $(wrap_alloc)
tests_unit_t_eq_SOURCES = tests/unit/t_eq.c tests/unit/fail_alloc.h $(obj_test_headers)
tests_unit_t_eq_LDADD = $(UNIT_LDADD)
tests_unit_t_eq_LDFLAGS = $(AM_LDFLAGS) $(wrap_alloc)
tests_unit_t_obj_SOURCES = tests/unit/t_obj.c $(obj_test_headers)
tests_unit_t_obj_LDADD = $(UNIT_LDADD)
tests_unit_t_readers_SOURCES = tests/unit/t_readers.c $(obj_test_headers)
tests_unit_t_readers_LDADD = $(UNIT_LDADD)
tests_unit_t_wait_SOURCES = tests/unit/t_wait.c $(obj_test_headers)
tests_unit_t_wait_LDADD = $(UNIT_LDADD)
tests_unit_t_wait_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=eventfd,--wrap=epoll_create1,--wrap=epoll_ctl,--wrap=write
