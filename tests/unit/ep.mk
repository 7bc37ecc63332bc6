unit_programs += tests/unit/t_proto
tests_unit_t_proto_SOURCES = tests/unit/t_proto.c tests/unit/unit.h
tests_unit_t_proto_LDADD = $(UNIT_LDADD)
unit_programs += tests/unit/t_frame
tests_unit_t_frame_SOURCES = tests/unit/t_frame.c tests/unit/unit.h
tests_unit_t_frame_LDADD = $(UNIT_LDADD)
unit_programs += tests/unit/t_atomic
tests_unit_t_atomic_SOURCES = tests/unit/t_atomic.c tests/unit/unit.h
tests_unit_t_atomic_LDADD = $(UNIT_LDADD) -lm
unit_programs += tests/unit/t_rawkey
tests_unit_t_rawkey_SOURCES = tests/unit/t_rawkey.c tests/unit/every.h tests/unit/unit.h
tests_unit_t_rawkey_LDADD = $(UNIT_LDADD)

unit_programs += tests/unit/t_fate
tests_unit_t_fate_SOURCES = tests/unit/t_fate.c tests/unit/unit.h
tests_unit_t_fate_LDADD = $(UNIT_LDADD)
unit_programs += tests/unit/t_none
tests_unit_t_none_SOURCES = tests/unit/t_none.c tests/unit/unit.h
tests_unit_t_none_LDADD = $(UNIT_LDADD) $(VERBS_LIBS) $(NL_LIBS)

# Endpoints run on tests/fake/fake_fabric.c instead of lib/verbs.
EP_FIXTURE = tests/fake/fake_fabric.c tests/fake/fake_fabric.h \
	tests/unit/ep_fixture.c tests/unit/ep_fixture.h tests/unit/unit.h
unit_programs += \
	tests/unit/t_agent_cq \
	tests/unit/t_apart \
	tests/unit/t_ask \
	tests/unit/t_breaks \
	tests/unit/t_breaks_device \
	tests/unit/t_breaks_msg \
	tests/unit/t_breaks_long \
	tests/unit/t_breaks_order \
	tests/unit/t_breaks_entries \
	tests/unit/t_close \
	tests/unit/t_conn_state \
	tests/unit/t_denied \
	tests/unit/t_device \
	tests/unit/t_doubt \
	tests/unit/t_ep \
	tests/unit/t_ep_atomic \
	tests/unit/t_ep_faults \
	tests/unit/t_event \
	tests/unit/t_fork \
	tests/unit/t_fuzz_proto \
	tests/unit/t_keyed \
	tests/unit/t_local \
	tests/unit/t_rpc \
	tests/unit/t_msg_calls \
	tests/unit/t_profile_addr \
	tests/unit/t_profile_ep \
	tests/unit/t_profile_mr \
	tests/unit/t_once \
	tests/unit/t_short \
	tests/unit/t_short_msg \
	tests/unit/t_srq \
	tests/unit/t_strict \
	tests/unit/t_fault \
	tests/unit/t_pair \
	tests/unit/t_msg \
	tests/unit/t_tagged \
	tests/unit/t_msg_again \
	tests/unit/t_farewell \
	tests/unit/t_lost \
	tests/unit/t_reverse \
	tests/unit/t_cold \
	tests/unit/t_delivery \
	tests/unit/t_matched \
	tests/unit/t_fence \
	tests/unit/t_marks \
	tests/unit/t_msg_device_rings \
	tests/unit/t_msg_device_mixed \
	tests/unit/t_entries \
	tests/unit/t_order \
	tests/unit/t_idle \
	tests/unit/t_long \
	tests/unit/t_long_breaks \
	tests/unit/t_long_ends \
	tests/unit/t_long_faults \
	tests/unit/t_long_wrong \
	tests/unit/t_multi \
	tests/unit/t_name \
	tests/unit/t_notes \
	tests/unit/t_inbox \
	tests/unit/t_crowd \
	tests/unit/t_three \
	tests/unit/t_never \
	tests/unit/t_stack \
	tests/unit/t_silent \
	tests/unit/t_passive_state \
	tests/unit/t_path_faults \
	tests/unit/t_pmem \
	tests/unit/t_resolve \
	tests/unit/t_bulk \
	tests/unit/t_target \
	tests/unit/t_jobs \
	tests/unit/t_many \
	tests/unit/t_staged \
	tests/unit/t_msg_device \
	tests/unit/t_msg_device_ends \
	tests/unit/t_msg_device_faults \
	tests/unit/t_far_device \
	tests/unit/t_far_pair \
	tests/unit/t_account \
	tests/unit/t_staging \
	tests/unit/t_thread \
	tests/unit/t_permits \
	tests/unit/t_unlocked \
	tests/unit/t_deliver \
	tests/unit/t_swap \
	tests/unit/t_timers \
	tests/unit/t_window
tests_unit_t_agent_cq_SOURCES = tests/unit/t_agent_cq.c $(EP_FIXTURE)
tests_unit_t_agent_cq_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_agent_cq_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=mrf_vcq_poll,--wrap=mrf_vcq_arm,--wrap=mrf_vcq_ack_one
tests_unit_t_apart_SOURCES = tests/unit/t_apart.c $(EP_FIXTURE)
tests_unit_t_apart_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_keyed_SOURCES = tests/unit/t_keyed.c tests/unit/raw.h tests/unit/secret.h $(EP_FIXTURE)
tests_unit_t_keyed_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_keyed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=free
tests_unit_t_window_SOURCES = tests/unit/t_window.c $(EP_FIXTURE)
tests_unit_t_window_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_window_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_atomic_serve
breaks = tests/unit/breaks.h tests/unit/every.h
tests_unit_t_breaks_SOURCES = tests/unit/t_breaks.c $(breaks) $(EP_FIXTURE)
tests_unit_t_breaks_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_breaks_order_SOURCES = tests/unit/t_breaks_order.c tests/unit/two_ends.h $(breaks) \
	$(EP_FIXTURE)
tests_unit_t_breaks_order_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_breaks_entries_SOURCES = tests/unit/t_breaks_entries.c tests/unit/two_ends.h $(breaks) \
	$(EP_FIXTURE)
tests_unit_t_breaks_entries_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_breaks_msg_SOURCES = tests/unit/t_breaks_msg.c $(breaks) $(EP_FIXTURE)
tests_unit_t_breaks_msg_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_breaks_long_SOURCES = tests/unit/t_breaks_long.c $(breaks) $(EP_FIXTURE)
tests_unit_t_breaks_long_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_timers_SOURCES = tests/unit/t_timers.c $(EP_FIXTURE)
tests_unit_t_timers_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_profile_mr_SOURCES = tests/unit/t_profile_mr.c $(EP_FIXTURE)
tests_unit_t_profile_mr_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_profile_addr_SOURCES = tests/unit/t_profile_addr.c tests/fake/fake_vnl.h tests/unit/one_device.h \
	$(EP_FIXTURE)
tests_unit_t_profile_addr_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_profile_addr_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL)
tests_unit_t_profile_ep_SOURCES = tests/unit/t_profile_ep.c $(EP_FIXTURE)
tests_unit_t_profile_ep_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_msg_calls_SOURCES = tests/unit/t_msg_calls.c $(EP_FIXTURE)
tests_unit_t_msg_calls_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_msg_calls_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_send_submit,--wrap=mrf_recv_post \
	-Wl,--wrap=mrf_recv_cancel_locked,--wrap=mrf_recv_posted_locked
tests_unit_t_tagged_SOURCES = tests/unit/t_tagged.c $(EP_FIXTURE)
tests_unit_t_tagged_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_msg_SOURCES = tests/unit/t_msg.c tests/unit/heads.h tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_msg_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_msg_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_duty_rests_locked
tests_unit_t_crowd_SOURCES = tests/unit/t_crowd.c $(EP_FIXTURE)
tests_unit_t_crowd_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_three_SOURCES = tests/unit/t_three.c $(EP_FIXTURE)
tests_unit_t_three_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_inbox_SOURCES = tests/unit/t_inbox.c $(EP_FIXTURE)
tests_unit_t_inbox_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_lost_SOURCES = tests/unit/t_lost.c $(EP_FIXTURE)
tests_unit_t_lost_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_lost_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
tests_unit_t_short_msg_SOURCES = tests/unit/t_short_msg.c tests/unit/heads.h $(EP_FIXTURE)
tests_unit_t_short_msg_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_short_msg_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_entry_begin,--wrap=mrf_vconn_send,--wrap=mrf_vconn_send_imm
tests_unit_t_cold_SOURCES = tests/unit/t_cold.c tests/unit/held_write.h tests/unit/apart.h \
	$(EP_FIXTURE)
tests_unit_t_cold_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_cold_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_writev,--wrap=mrf_eps_remove
tests_unit_t_delivery_SOURCES = tests/unit/t_delivery.c tests/unit/heads.h $(EP_FIXTURE)
tests_unit_t_delivery_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_matched_SOURCES = tests/unit/t_matched.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_matched_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_marks_SOURCES = tests/unit/t_marks.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_marks_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_msg_device_mixed_SOURCES = tests/unit/t_msg_device_mixed.c $(msg_device) $(EP_FIXTURE) $(runtime_rig)
tests_unit_t_msg_device_mixed_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_msg_device_mixed_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_msg_device_mixed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_mr_device_get,--wrap=mrf_mr_device_put
EXTRA_tests_unit_t_msg_device_mixed_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_msg_device_rings_SOURCES = tests/unit/t_msg_device_rings.c $(msg_device) $(EP_FIXTURE) $(runtime_rig)
tests_unit_t_msg_device_rings_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_msg_device_rings_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_msg_device_rings_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_stage_ring_take -Wl,--wrap=mrf_mr_device_get,--wrap=mrf_mr_device_put
EXTRA_tests_unit_t_msg_device_rings_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_fence_SOURCES = tests/unit/t_fence.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_fence_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_entries_SOURCES = tests/unit/t_entries.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_entries_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_order_SOURCES = tests/unit/t_order.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_order_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_idle_SOURCES = tests/unit/t_idle.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_idle_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_long_SOURCES = tests/unit/t_long.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_long_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_long_breaks_SOURCES = tests/unit/t_long_breaks.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_long_breaks_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_long_breaks_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_local_drop
tests_unit_t_long_ends_SOURCES = tests/unit/t_long_ends.c tests/unit/two_ends.h $(EP_FIXTURE)
tests_unit_t_long_ends_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_long_faults_SOURCES = tests/unit/t_long_faults.c tests/unit/fail_walk.h tests/unit/two_ends.h \
	tests/unit/every.h tests/unit/fail_once.h $(EP_FIXTURE)
tests_unit_t_long_faults_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_long_faults_LDFLAGS = $(FAIL_ONCE_WRAP)
tests_unit_t_long_wrong_SOURCES = tests/unit/t_long_wrong.c $(EP_FIXTURE)
tests_unit_t_long_wrong_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_multi_SOURCES = tests/unit/t_multi.c $(EP_FIXTURE)
tests_unit_t_multi_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_multi_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
tests_unit_t_name_SOURCES = tests/unit/t_name.c $(EP_FIXTURE)
tests_unit_t_name_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_notes_SOURCES = tests/unit/t_notes.c $(EP_FIXTURE)
tests_unit_t_notes_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_notes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=mrf_vconn_establish \
	-Wl,--wrap=mrf_vconn_accept
tests_unit_t_reverse_SOURCES = tests/unit/t_reverse.c tests/unit/heads.h $(EP_FIXTURE)
tests_unit_t_reverse_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_farewell_SOURCES = tests/unit/t_farewell.c $(EP_FIXTURE)
tests_unit_t_farewell_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_msg_again_SOURCES = tests/unit/t_msg_again.c $(EP_FIXTURE)
tests_unit_t_msg_again_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_msg_again_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_inlet_end
tests_unit_t_never_SOURCES = tests/unit/t_never.c $(EP_FIXTURE)
tests_unit_t_never_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_stack_SOURCES = tests/unit/t_stack.c $(EP_FIXTURE)
tests_unit_t_stack_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_stack_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,now
tests_unit_t_strict_SOURCES = tests/unit/t_strict.c tests/unit/aborts.h $(EP_FIXTURE)
tests_unit_t_strict_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_fault_SOURCES = tests/unit/t_fault.c $(EP_FIXTURE)
tests_unit_t_fault_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_short_SOURCES = tests/unit/t_short.c $(EP_FIXTURE)
tests_unit_t_short_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_short_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_vconn_post,--wrap=mrf_vconn_access \
	-Wl,--wrap=mrf_vconn_fetch_add,--wrap=mrf_entry_begin
tests_unit_t_srq_SOURCES = tests/unit/t_srq.c tests/func/lines.h \
	tests/fake/fake_fabric.c tests/fake/fake_fabric.h tests/unit/unit.h
tests_unit_t_srq_LDADD = $(UNIT_LDADD)
tests_unit_t_pair_SOURCES = tests/unit/t_pair.c tests/func/pairs.h tests/func/lines.h \
	tests/fake/fake_fabric.c tests/fake/fake_fabric.h tests/unit/unit.h
tests_unit_t_pair_LDADD = $(UNIT_LDADD)
tests_unit_t_swap_SOURCES = tests/unit/t_swap.c $(EP_FIXTURE)
tests_unit_t_swap_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_ask_SOURCES = tests/unit/t_ask.c $(EP_FIXTURE)
tests_unit_t_ask_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_close_SOURCES = tests/unit/t_close.c $(EP_FIXTURE)
tests_unit_t_close_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_close_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=free,--wrap=close
tests_unit_t_conn_state_SOURCES = tests/unit/t_conn_state.c tests/unit/aborts.h $(EP_FIXTURE)
tests_unit_t_conn_state_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_bulk_SOURCES = tests/unit/t_bulk.c $(EP_FIXTURE)
tests_unit_t_bulk_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_bulk_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_vconn_close
tests_unit_t_jobs_SOURCES = tests/unit/t_jobs.c $(EP_FIXTURE)
tests_unit_t_jobs_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_jobs_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=pthread_create,--wrap=msync,--wrap=madvise,--wrap=statfs
held_copy = tests/unit/held_copy.h tests/unit/device_fixture.h
far_fixture = tests/unit/far_fixture.h $(held_copy)
tests_unit_t_account_SOURCES = tests/unit/t_account.c tests/unit/aborts.h $(far_fixture) \
	$(EP_FIXTURE) $(runtime_rig)
tests_unit_t_account_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_account_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_account_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_mr_device_copy
EXTRA_tests_unit_t_account_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_breaks_device_SOURCES = tests/unit/t_breaks_device.c $(held_copy) \
	$(breaks) $(EP_FIXTURE) $(runtime_rig)
tests_unit_t_breaks_device_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_breaks_device_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_breaks_device_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_mr_device_copy
EXTRA_tests_unit_t_breaks_device_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_far_device_SOURCES = tests/unit/t_far_device.c $(far_fixture) \
	$(EP_FIXTURE) $(runtime_rig)
tests_unit_t_far_device_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_far_device_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_far_device_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_mr_device_copy,--wrap=clock_gettime \
	-Wl,--wrap=mrf_mr_hold_end
EXTRA_tests_unit_t_far_device_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_far_pair_SOURCES = tests/unit/t_far_pair.c $(far_fixture) $(EP_FIXTURE) $(runtime_rig)
tests_unit_t_far_pair_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_far_pair_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_far_pair_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_mr_device_copy,--wrap=mrf_vpair_send
EXTRA_tests_unit_t_far_pair_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_staging_SOURCES = tests/unit/t_staging.c $(held_copy) tests/unit/raw.h \
	$(EP_FIXTURE) $(runtime_rig)
tests_unit_t_staging_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_staging_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_staging_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_mr_device_copy,--wrap=clock_gettime \
	-Wl,--wrap=mrf_mr_hold_end,--wrap=free
EXTRA_tests_unit_t_staging_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_staged_SOURCES = tests/unit/t_staged.c tests/unit/device_fixture.h $(EP_FIXTURE) $(runtime_rig)
tests_unit_t_staged_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_staged_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_staged_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=mrf_mr_device_get,--wrap=mrf_mr_device_put
EXTRA_tests_unit_t_staged_DEPENDENCIES = $(runtime_stand_ins)
msg_device = tests/unit/msg_device.h tests/unit/device_fixture.h
tests_unit_t_msg_device_SOURCES = tests/unit/t_msg_device.c $(msg_device) $(EP_FIXTURE) $(runtime_rig)
tests_unit_t_msg_device_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_msg_device_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_msg_device_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=mrf_mr_device_get,--wrap=mrf_mr_device_put
EXTRA_tests_unit_t_msg_device_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_msg_device_faults_SOURCES = tests/unit/t_msg_device_faults.c tests/unit/fail_walk.h \
	tests/unit/every.h tests/unit/fail_once.h \
	$(msg_device) $(EP_FIXTURE) $(runtime_rig)
tests_unit_t_msg_device_faults_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_msg_device_faults_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_msg_device_faults_LDFLAGS = $(FAIL_ONCE_WRAP) \
	-Wl,--wrap=mrf_mr_device_get,--wrap=mrf_mr_device_put
EXTRA_tests_unit_t_msg_device_faults_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_msg_device_ends_SOURCES = tests/unit/t_msg_device_ends.c $(msg_device) $(EP_FIXTURE) \
	$(runtime_rig)
tests_unit_t_msg_device_ends_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_msg_device_ends_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
tests_unit_t_msg_device_ends_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=mrf_mr_device_get,--wrap=mrf_mr_device_put
EXTRA_tests_unit_t_msg_device_ends_DEPENDENCIES = $(runtime_stand_ins)
tests_unit_t_many_SOURCES = tests/unit/t_many.c $(EP_FIXTURE)
tests_unit_t_many_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_many_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_vmr_reg
tests_unit_t_thread_SOURCES = tests/unit/t_thread.c $(EP_FIXTURE)
tests_unit_t_thread_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_thread_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_create
tests_unit_t_device_SOURCES = tests/unit/t_device.c $(EP_FIXTURE)
tests_unit_t_device_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_denied_SOURCES = tests/unit/t_denied.c $(EP_FIXTURE)
tests_unit_t_denied_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_ep_SOURCES = tests/unit/t_ep.c $(EP_FIXTURE)
tests_unit_t_ep_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_ep_atomic_SOURCES = tests/unit/t_ep_atomic.c $(EP_FIXTURE)
tests_unit_t_ep_atomic_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_ep_faults_SOURCES = tests/unit/t_ep_faults.c tests/unit/fail_once.h $(EP_FIXTURE)
tests_unit_t_ep_faults_LDADD = $(UNIT_LDADD) $(NL_LIBS)
FAIL_ONCE_WRAP = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign,--wrap=aligned_alloc \
	-Wl,--wrap=strdup,--wrap=eventfd,--wrap=epoll_create1,--wrap=pthread_create \
	-Wl,--wrap=fopen,--wrap=getline
tests_unit_t_ep_faults_LDFLAGS = $(FAIL_ONCE_WRAP)
tests_unit_t_event_SOURCES = tests/unit/t_event.c $(EP_FIXTURE)
tests_unit_t_event_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_unlocked_SOURCES = tests/unit/t_unlocked.c $(EP_FIXTURE)
tests_unit_t_unlocked_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_unlocked_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv \
	-Wl,--wrap=mrf_user_take \
	-Wl,--wrap=mrf_vconn_open,--wrap=mrf_vconn_resolve,--wrap=mrf_vconn_create_qp \
	-Wl,--wrap=mrf_vconn_route,--wrap=mrf_vconn_connect,--wrap=mrf_vconn_establish \
	-Wl,--wrap=mrf_vconn_disconnect,--wrap=mrf_vconn_close,--wrap=mrf_vcq_open_beside
tests_unit_t_deliver_SOURCES = tests/unit/t_deliver.c tests/unit/held_write.h $(EP_FIXTURE)
tests_unit_t_deliver_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_deliver_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_writev
tests_unit_t_local_SOURCES = tests/unit/t_local.c tests/unit/apart.h $(EP_FIXTURE)
tests_unit_t_local_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_rpc_SOURCES = tests/unit/t_rpc.c $(EP_FIXTURE)
tests_unit_t_rpc_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_rpc_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_job_serve
tests_unit_t_silent_SOURCES = tests/unit/t_silent.c $(EP_FIXTURE)
tests_unit_t_silent_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_doubt_SOURCES = tests/unit/t_doubt.c tests/unit/raw.h $(EP_FIXTURE)
tests_unit_t_doubt_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_once_SOURCES = tests/unit/t_once.c $(EP_FIXTURE)
tests_unit_t_once_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_passive_state_SOURCES = tests/unit/t_passive_state.c tests/unit/aborts.h tests/unit/raw.h $(EP_FIXTURE)
tests_unit_t_passive_state_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_path_faults_SOURCES = tests/unit/t_path_faults.c tests/unit/fail_walk.h tests/unit/every.h tests/unit/fail_once.h $(EP_FIXTURE)
tests_unit_t_path_faults_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_path_faults_LDFLAGS = $(FAIL_ONCE_WRAP)
tests_unit_t_fork_SOURCES = tests/unit/t_fork.c tests/unit/child.h $(EP_FIXTURE)
tests_unit_t_fork_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_pmem_SOURCES = tests/unit/t_pmem.c tests/unit/raw.h $(EP_FIXTURE)
tests_unit_t_pmem_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_pmem_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=madvise,--wrap=msync,--wrap=statfs
tests_unit_t_resolve_SOURCES = tests/unit/t_resolve.c $(EP_FIXTURE)
tests_unit_t_resolve_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_permits_SOURCES = tests/unit/t_permits.c $(EP_FIXTURE)
tests_unit_t_permits_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_permits_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_addr_same_host
tests_unit_t_target_SOURCES = tests/unit/t_target.c tests/unit/raw.h $(EP_FIXTURE)
tests_unit_t_target_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_target_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mrf_job_serve

tests_unit_t_fuzz_proto_SOURCES = tests/unit/t_fuzz_proto.c tests/fuzz/fuzz_proto.c \
	tests/fuzz/fuzz.h tests/fuzz/replay.h tests/unit/unit.h
tests_unit_t_fuzz_proto_LDADD = $(UNIT_LDADD)
# With libFuzzer, which clang has; not built unless asked for.
EXTRA_PROGRAMS += tests/fuzz/fuzz_proto
tests_fuzz_fuzz_proto_SOURCES = tests/fuzz/fuzz_proto.c tests/fuzz/fuzz.h lib/proto/proto.c \
	lib/proto/greeting.c
tests_fuzz_fuzz_proto_CFLAGS = $(AM_CFLAGS) -fsanitize=fuzzer,address,undefined
tests_fuzz_fuzz_proto_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer,address,undefined
EXTRA_DIST += \
	tests/fuzz/corpus/answer-0 \
	tests/fuzz/corpus/answer-1 \
	tests/fuzz/corpus/answer-16 \
	tests/fuzz/corpus/answer-17-segments \
	tests/fuzz/corpus/answer-event \
	tests/fuzz/corpus/answer-says-short \
	tests/fuzz/corpus/answer-truncated \
	tests/fuzz/corpus/answer-unknown-flags \
	tests/fuzz/corpus/answer-version-1 \
	tests/fuzz/corpus/answer-wraps \
	tests/fuzz/corpus/ask \
	tests/fuzz/corpus/ask-as-answer \
	tests/fuzz/corpus/ask-truncated \
	tests/fuzz/corpus/ask-wraps \
	tests/fuzz/corpus/challenge \
	tests/fuzz/corpus/challenge-number-0 \
	tests/fuzz/corpus/challenge-says-short \
	tests/fuzz/corpus/challenge-truncated \
	tests/fuzz/corpus/data \
	tests/fuzz/corpus/data-as-answer \
	tests/fuzz/corpus/data-says-long \
	tests/fuzz/corpus/data-truncated \
	tests/fuzz/corpus/forget-4 \
	tests/fuzz/corpus/forget-5 \
	tests/fuzz/corpus/forget-all \
	tests/fuzz/corpus/forget-says-more \
	tests/fuzz/corpus/forget-truncated \
	tests/fuzz/corpus/hello \
	tests/fuzz/corpus/hello-proof \
	tests/fuzz/corpus/hello-proof-says-short \
	tests/fuzz/corpus/hello-proof-truncated \
	tests/fuzz/corpus/hello-short \
	tests/fuzz/corpus/hello-version \
	tests/fuzz/corpus/hello-zeros \
	tests/fuzz/corpus/note-as-data \
	tests/fuzz/corpus/note-forget \
	tests/fuzz/corpus/note-release-as-answer \
	tests/fuzz/corpus/refuse \
	tests/fuzz/corpus/refuse-as-challenge \
	tests/fuzz/corpus/refuse-challenge \
	tests/fuzz/corpus/refuse-too-long \
	tests/fuzz/corpus/reply \
	tests/fuzz/corpus/reply-body-too-long \
	tests/fuzz/corpus/reply-failed \
	tests/fuzz/corpus/reply-longest \
	tests/fuzz/corpus/reply-says-short \
	tests/fuzz/corpus/request-as-reply \
	tests/fuzz/corpus/request-atomic \
	tests/fuzz/corpus/request-body-enormous \
	tests/fuzz/corpus/request-body-too-long \
	tests/fuzz/corpus/request-flush \
	tests/fuzz/corpus/request-longest \
	tests/fuzz/corpus/request-truncated \
	tests/fuzz/corpus/request-wraps \
	tests/fuzz/corpus/welcome \
	tests/fuzz/corpus/welcome-events \
	tests/fuzz/corpus/welcome-no-questions \
	tests/fuzz/corpus/welcome-proof \
	tests/fuzz/corpus/welcome-proof-says-short \
	tests/fuzz/corpus/welcome-proof-truncated
