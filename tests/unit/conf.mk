# Sentences of fi_mr(3) that no other test shows; docs/CONFORMANCE.md cites them.
unit_programs += \
	tests/unit/t_conf_mode \
	tests/unit/t_conf_reg

tests_unit_t_conf_mode_SOURCES = tests/unit/t_conf_mode.c tests/fake/fake_vnl.h tests/unit/one_device.h tests/unit/unit.h
tests_unit_t_conf_mode_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_conf_mode_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL)
tests_unit_t_conf_reg_SOURCES = tests/unit/t_conf_reg.c $(MR_FIXTURE)
tests_unit_t_conf_reg_LDADD = $(UNIT_LDADD)
tests_unit_t_conf_reg_LDFLAGS = $(MR_WRAP)
