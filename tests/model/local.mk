# A model of fi_mr(3) against the library: on the fake fabric, and on a device.
MODEL = tests/model/exec.c tests/model/exec.h tests/model/exec_access.c \
	tests/model/exec_async.c tests/model/model_async.c \
	tests/model/exec_cntr.c tests/model/exec_int.h tests/model/exec_memory.c tests/model/exec_mr.c \
	tests/model/exec_msg.c tests/model/mail.c tests/model/mail.h tests/model/model.c tests/model/model.h \
	tests/model/model_access.c tests/model/model_applies.c tests/model/model_atomic.c \
	tests/model/model_cntr.c tests/model/model_int.h tests/model/model_msg.c \
	tests/model/run.c tests/model/run.h tests/model/shorten.c tests/model/side.c \
	tests/model/step.c tests/model/step.h tests/model/step_msg.c tests/model/step_print.c tests/model/trace.h \
	$(runtime_rig)
if HAVE_CHECK
unit_programs += tests/unit/t_model
tests_unit_t_model_SOURCES = tests/unit/t_model.c $(MODEL) $(EP_FIXTURE)
tests_unit_t_model_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_unit_t_model_LDADD = $(UNIT_LDADD) $(NL_LIBS) -ldl
EXTRA_tests_unit_t_model_DEPENDENCIES = $(runtime_stand_ins)
unit_programs += tests/unit/t_life_faults
tests_unit_t_life_faults_SOURCES = tests/unit/t_life_faults.c tests/unit/fail_walk.h tests/unit/every.h \
	tests/unit/fail_once.h $(EP_FIXTURE)
tests_unit_t_life_faults_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_life_faults_LDFLAGS = $(FAIL_ONCE_WRAP)
endif
func_programs += tests/func/f_model
tests_func_f_model_SOURCES = tests/func/f_model.c tests/model/device.c tests/model/device.h \
	$(MODEL) $(func_harness)
tests_func_f_model_CPPFLAGS = $(AM_CPPFLAGS) $(runtime_rig_flags)
tests_func_f_model_LDADD = $(func_libs) -lpthread
EXTRA_tests_func_f_model_DEPENDENCIES = $(runtime_stand_ins)
