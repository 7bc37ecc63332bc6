# SPDX-License-Identifier: BSD-2-Clause
# Cases over a real rxe device, public API only: scripts/run-func runs them.
func_harness = tests/func/case.c tests/func/case.h tests/func/buf.c tests/func/buf.h \
	tests/func/fab.c tests/func/fab.h tests/func/peer.c tests/func/peer.h \
	tests/func/serve.c tests/func/serve.h tests/func/env.c tests/func/env.h \
	tests/func/far.c tests/func/far.h tests/func/atomics.c tests/func/atomics.h tests/func/harness.h \
	tests/func/placed.c tests/func/placed.h
func_libs = libmrfab.la tests/runtime/librig.la

func_programs += tests/func/f_access tests/func/f_refuse tests/func/f_close \
	tests/func/f_peers tests/func/f_ops tests/func/f_desc tests/func/f_self \
	tests/func/f_object tests/func/f_modes tests/func/f_memory tests/func/f_refresh \
	tests/func/f_segments tests/func/f_raw tests/func/f_keys \
	tests/func/f_endpoint tests/func/f_events tests/func/f_fork tests/func/f_apart tests/func/f_auth \
	tests/func/f_async tests/func/foreign tests/func/hammer \
	tests/func/commit tests/func/lost tests/func/late

tests_func_f_access_SOURCES = tests/func/f_access.c $(func_harness)
tests_func_f_access_LDADD = $(func_libs)
func_victims = tests/func/victims.c tests/func/victims.h $(func_harness)
func_programs += tests/func/f_killed tests/func/f_killed_msg
tests_func_f_killed_SOURCES = tests/func/f_killed.c $(func_victims)
tests_func_f_killed_LDADD = $(func_libs)
EXTRA_tests_func_f_killed_DEPENDENCIES = $(runtime_stand_ins)
tests_func_f_killed_msg_SOURCES = tests/func/f_killed_msg.c $(func_victims)
tests_func_f_killed_msg_LDADD = $(func_libs)
func_programs += tests/func/f_atomics
tests_func_f_atomics_SOURCES = tests/func/f_atomics.c lib/atomic/atomic.c $(func_harness)
tests_func_f_atomics_CFLAGS = $(AM_CFLAGS)
tests_func_f_atomics_LDADD = $(func_libs) -lpthread
func_programs += tests/func/f_atomic_rules
tests_func_f_atomic_rules_SOURCES = tests/func/f_atomic_rules.c $(func_harness)
tests_func_f_atomic_rules_LDADD = $(func_libs)
tests_func_f_refuse_SOURCES = tests/func/f_refuse.c $(func_harness)
tests_func_f_refuse_LDADD = $(func_libs)
tests_func_f_close_SOURCES = tests/func/f_close.c $(func_harness)
tests_func_f_close_LDADD = $(func_libs)
func_programs += tests/func/f_fair
tests_func_f_fair_SOURCES = tests/func/f_fair.c $(func_harness)
tests_func_f_fair_LDADD = $(func_libs)
func_programs += tests/func/changes
tests_func_changes_SOURCES = tests/func/changes.c
tests_func_changes_LDADD = libmrfab.la
# The cases of tests/unit/t_srq.c and t_pair.c on a device: lib/verbs alone, which the library does not export.
func_programs += tests/func/srq
tests_func_srq_SOURCES = tests/func/srq.c tests/func/lines.h tests/func/pairs.h
tests_func_srq_LDADD = libmrfab-internal.la $(VERBS_LIBS) $(NL_LIBS)
func_programs += tests/func/f_profile
tests_func_f_profile_SOURCES = tests/func/f_profile.c $(func_harness)
tests_func_f_profile_LDADD = $(func_libs)
func_programs += tests/func/f_main
tests_func_f_main_SOURCES = tests/func/f_main.c $(func_harness)
tests_func_f_main_LDADD = $(func_libs)
func_programs += tests/func/f_msg
tests_func_f_msg_SOURCES = tests/func/f_msg.c $(func_harness)
tests_func_f_msg_LDADD = $(func_libs)
func_programs += tests/func/f_order
tests_func_f_order_SOURCES = tests/func/f_order.c $(func_harness)
tests_func_f_order_LDADD = $(func_libs)
func_programs += tests/func/f_tagged
tests_func_f_tagged_SOURCES = tests/func/f_tagged.c $(func_harness)
tests_func_f_tagged_LDADD = $(func_libs)
func_programs += tests/func/f_cut
tests_func_f_cut_SOURCES = tests/func/f_cut.c $(func_harness)
tests_func_f_cut_LDADD = $(func_libs)
func_programs += tests/func/f_kept
tests_func_f_kept_SOURCES = tests/func/f_kept.c $(func_harness)
tests_func_f_kept_LDADD = $(func_libs)
func_programs += tests/func/f_monitor tests/func/monitors
tests_func_f_monitor_SOURCES = tests/func/f_monitor.c $(func_harness)
tests_func_f_monitor_LDADD = $(func_libs)
tests_func_monitors_SOURCES = tests/func/monitors.c tests/func/fab.c tests/func/fab.h \
	tests/func/buf.c tests/func/buf.h tests/func/case.h
tests_func_monitors_LDADD = libmrfab.la
func_programs += tests/func/closer
tests_func_closer_SOURCES = tests/func/closer.c
tests_func_closer_LDADD = -ldl
func_programs += tests/func/f_deadlock
tests_func_f_deadlock_SOURCES = tests/func/f_deadlock.c $(func_harness)
tests_func_f_deadlock_LDADD = $(func_libs) -lpthread -ldl
func_programs += tests/func/f_unlocked
tests_func_f_unlocked_SOURCES = tests/func/f_unlocked.c $(func_harness)
tests_func_f_unlocked_LDADD = $(func_libs) -lpthread
func_programs += tests/func/f_scale
tests_func_f_scale_SOURCES = tests/func/f_scale.c $(func_harness)
tests_func_f_scale_LDADD = $(func_libs)
func_programs += tests/func/f_hooks
tests_func_f_hooks_SOURCES = tests/func/f_hooks.c $(func_harness)
tests_func_f_hooks_LDADD = $(func_libs) -lpthread
tests_func_f_peers_SOURCES = tests/func/f_peers.c $(func_harness)
tests_func_f_peers_LDADD = $(func_libs)
tests_func_f_ops_SOURCES = tests/func/f_ops.c $(func_harness)
tests_func_f_ops_LDADD = $(func_libs)
tests_func_f_desc_SOURCES = tests/func/f_desc.c $(func_harness)
tests_func_f_desc_LDADD = $(func_libs)
tests_func_f_self_SOURCES = tests/func/f_self.c $(func_harness)
tests_func_f_self_LDADD = $(func_libs)
tests_func_f_object_SOURCES = tests/func/f_object.c $(func_harness)
tests_func_f_object_LDADD = $(func_libs)
tests_func_f_modes_SOURCES = tests/func/f_modes.c $(func_harness)
tests_func_f_modes_LDADD = $(func_libs)
tests_func_f_memory_SOURCES = tests/func/f_memory.c $(func_harness)
tests_func_f_memory_LDADD = $(func_libs)
tests_func_f_refresh_SOURCES = tests/func/f_refresh.c $(func_harness)
tests_func_f_refresh_LDADD = $(func_libs)
tests_func_f_segments_SOURCES = tests/func/f_segments.c $(func_harness)
tests_func_f_segments_LDADD = $(func_libs)
tests_func_f_raw_SOURCES = tests/func/f_raw.c $(func_harness)
tests_func_f_raw_LDADD = $(func_libs)
tests_func_f_keys_SOURCES = tests/func/f_keys.c $(func_harness)
tests_func_f_keys_LDADD = $(func_libs)
tests_func_f_endpoint_SOURCES = tests/func/f_endpoint.c $(func_harness)
tests_func_f_endpoint_LDADD = $(func_libs)
tests_func_f_events_SOURCES = tests/func/f_events.c $(func_harness)
tests_func_f_events_LDADD = $(func_libs)
tests_func_f_fork_SOURCES = tests/func/f_fork.c $(func_harness)
tests_func_f_fork_LDADD = $(func_libs)
tests_func_f_apart_SOURCES = tests/func/f_apart.c tests/func/stranger.c \
	tests/func/stranger.h $(func_harness)
tests_func_f_apart_LDADD = $(func_libs)
tests_func_f_async_SOURCES = tests/func/f_async.c $(func_harness)
tests_func_f_async_LDADD = $(func_libs)
tests_func_f_auth_SOURCES = tests/func/f_auth.c tests/func/stranger.c \
	tests/func/stranger.h $(func_harness)
tests_func_f_auth_LDADD = $(func_libs)
tests_func_foreign_SOURCES = tests/func/foreign.c lib/proto/proto.c lib/proto/greeting.c
tests_func_foreign_CFLAGS = $(AM_CFLAGS)
tests_func_foreign_LDADD = $(VERBS_LIBS)
tests_func_commit_SOURCES = tests/func/commit.c tests/func/fab.c tests/func/fab.h \
	tests/func/buf.c tests/func/buf.h tests/func/case.h
tests_func_commit_LDADD = libmrfab.la
tests_func_lost_SOURCES = tests/func/lost.c tests/func/fab.c tests/func/fab.h \
	tests/func/buf.c tests/func/buf.h tests/func/case.h
tests_func_lost_LDADD = libmrfab.la
tests_func_late_SOURCES = tests/func/late.c tests/func/stranger.c tests/func/stranger.h tests/func/fab.c tests/func/fab.h \
	tests/func/buf.c tests/func/buf.h tests/func/case.h $(runtime_rig)
tests_func_late_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_func_late_LDADD = libmrfab.la -lpthread -ldl
EXTRA_tests_func_late_DEPENDENCIES = $(runtime_stand_ins)
tests_func_hammer_SOURCES = tests/func/hammer.c tests/func/hammer.h tests/func/hammer_owner.c tests/func/hammer_local.c \
	tests/func/hammer_peer.c tests/func/fab.c tests/func/buf.c
tests_func_hammer_LDADD = libmrfab.la -lpthread
func_programs += tests/func/f_device tests/func/f_device_fail tests/func/f_device_far \
	tests/func/f_device_msg
func_device = tests/func/device.c tests/func/device.h $(func_harness)
tests_func_f_device_SOURCES = tests/func/f_device.c $(func_device)
tests_func_f_device_LDADD = $(func_libs)
EXTRA_tests_func_f_device_DEPENDENCIES = $(runtime_stand_ins)
tests_func_f_device_far_SOURCES = tests/func/f_device_far.c $(func_device)
tests_func_f_device_far_LDADD = $(func_libs)
EXTRA_tests_func_f_device_far_DEPENDENCIES = $(runtime_stand_ins)
tests_func_f_device_msg_SOURCES = tests/func/f_device_msg.c $(func_device)
tests_func_f_device_msg_LDADD = $(func_libs)
EXTRA_tests_func_f_device_msg_DEPENDENCIES = $(runtime_stand_ins)
tests_func_f_device_fail_SOURCES = tests/func/f_device_fail.c $(func_device)
tests_func_f_device_fail_LDADD = $(func_libs)
EXTRA_tests_func_f_device_fail_DEPENDENCIES = $(runtime_stand_ins)
