unit_programs += \
	tests/unit/t_auth \
	tests/unit/t_heap \
	tests/unit/t_idmap \
	tests/unit/t_import \
	tests/unit/t_iov \
	tests/unit/t_itree \
	tests/unit/t_list \
	tests/unit/t_lock \
	tests/unit/t_log \
	tests/unit/t_maps \
	tests/unit/t_match \
	tests/unit/t_queues \
	tests/unit/t_random \
	tests/unit/t_ground \
	tests/unit/t_monitor \
	tests/unit/t_mutex \
	tests/unit/t_mr_symbols \
	tests/unit/t_page \
	tests/unit/t_pieces \
	tests/unit/t_param \
	tests/unit/t_plain \
	tests/unit/t_present \
	tests/unit/t_strerror \
	tests/unit/t_tostr \
	tests/unit/t_known \
	tests/unit/t_user \
	tests/unit/t_version \
	tests/unit/t_vnode

tests_unit_t_auth_SOURCES = tests/unit/t_auth.c tests/unit/secret.h tests/unit/unit.h
tests_unit_t_auth_LDADD = $(UNIT_LDADD)
tests_unit_t_auth_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=free
tests_unit_t_heap_SOURCES = tests/unit/t_heap.c tests/unit/unit.h
tests_unit_t_heap_LDADD = $(UNIT_LDADD)
tests_unit_t_idmap_SOURCES = tests/unit/t_idmap.c tests/unit/unit.h
tests_unit_t_idmap_LDADD = $(UNIT_LDADD)
tests_unit_t_idmap_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
tests_unit_t_import_SOURCES = tests/unit/t_import.c tests/unit/child.h tests/unit/unit.h
tests_unit_t_import_LDADD = $(UNIT_LDADD)
tests_unit_t_iov_SOURCES = tests/unit/t_iov.c tests/unit/unit.h
tests_unit_t_iov_LDADD = $(UNIT_LDADD)
tests_unit_t_itree_SOURCES = tests/unit/t_itree.c tests/unit/unit.h
tests_unit_t_itree_LDADD = $(UNIT_LDADD)
tests_unit_t_itree_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=aligned_alloc
tests_unit_t_list_SOURCES = tests/unit/t_list.c tests/unit/unit.h
tests_unit_t_list_LDADD = $(UNIT_LDADD)
tests_unit_t_lock_SOURCES = tests/unit/t_lock.c tests/unit/aborts.h tests/unit/unit.h
tests_unit_t_lock_LDADD = $(UNIT_LDADD)
tests_unit_t_log_SOURCES = tests/unit/t_log.c tests/unit/unit.h
tests_unit_t_log_LDADD = $(UNIT_LDADD)
tests_unit_t_log_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
tests_unit_t_ground_SOURCES = tests/unit/t_ground.c tests/unit/child.h tests/unit/unit.h
tests_unit_t_ground_LDADD = $(UNIT_LDADD)
tests_unit_t_ground_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_ground_touches
tests_unit_t_pieces_SOURCES = tests/unit/t_pieces.c tests/unit/unit.h
tests_unit_t_pieces_LDADD = $(UNIT_LDADD)
tests_unit_t_page_SOURCES = tests/unit/t_page.c tests/unit/unit.h
tests_unit_t_page_LDADD = $(UNIT_LDADD)
tests_unit_t_param_SOURCES = tests/unit/t_param.c tests/unit/fork_inside.h tests/unit/child.h \
	tests/unit/unit.h
tests_unit_t_param_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
tests_unit_t_param_LDADD = $(UNIT_LDADD)
tests_unit_t_plain_SOURCES = tests/unit/t_plain.c tests/unit/unit.h
tests_unit_t_plain_LDADD = $(UNIT_LDADD)
tests_unit_t_plain_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_maps_query
tests_unit_t_present_SOURCES = tests/unit/t_present.c tests/unit/unit.h
tests_unit_t_present_LDADD = $(UNIT_LDADD)
tests_unit_t_strerror_SOURCES = tests/unit/t_strerror.c tests/unit/unit.h
tests_unit_t_strerror_LDADD = $(UNIT_LDADD)
tests_unit_t_tostr_SOURCES = tests/unit/t_tostr.c tests/unit/unit.h
tests_unit_t_tostr_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_known_SOURCES = tests/unit/t_known.c tests/unit/unit.h
tests_unit_t_known_LDADD = $(UNIT_LDADD)
tests_unit_t_known_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=madvise
tests_unit_t_user_SOURCES = tests/unit/t_user.c tests/unit/unit.h
tests_unit_t_user_LDADD = $(UNIT_LDADD)
tests_unit_t_user_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv,--wrap=process_vm_writev
tests_unit_t_version_SOURCES = tests/unit/t_version.c tests/unit/unit.h
tests_unit_t_version_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_symbols_SOURCES = tests/unit/t_mr_symbols.c tests/unit/unit.h
tests_unit_t_mr_symbols_LDADD = $(UNIT_LDADD)
tests_unit_t_random_SOURCES = tests/unit/t_random.c tests/unit/unit.h
tests_unit_t_random_LDADD = $(UNIT_LDADD)
tests_unit_t_random_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getrandom,--wrap=open
tests_unit_t_maps_SOURCES = tests/unit/t_maps.c tests/unit/child.h tests/unit/unit.h
tests_unit_t_maps_LDADD = $(UNIT_LDADD)
tests_unit_t_maps_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
tests_unit_t_monitor_SOURCES = tests/unit/t_monitor.c tests/unit/apart.h tests/unit/child.h tests/unit/unit.h
tests_unit_t_monitor_LDADD = $(UNIT_LDADD)
tests_unit_t_mutex_SOURCES = tests/unit/t_mutex.c tests/unit/unit.h
tests_unit_t_mutex_LDADD = $(UNIT_LDADD)
tests_unit_t_vnode_SOURCES = tests/unit/t_vnode.c tests/unit/unit.h
tests_unit_t_vnode_LDADD = $(UNIT_LDADD)
tests_unit_t_match_SOURCES = tests/unit/t_match.c tests/unit/no_room.h tests/unit/every.h \
	tests/unit/unit.h
tests_unit_t_match_LDADD = $(UNIT_LDADD)
tests_unit_t_match_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc,--wrap=mrf_random
tests_unit_t_queues_SOURCES = tests/unit/t_queues.c tests/unit/no_room.h tests/unit/every.h \
	tests/unit/unit.h
tests_unit_t_queues_LDADD = $(UNIT_LDADD)
tests_unit_t_queues_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
