unit_programs += \
	tests/unit/t_budget \
	tests/unit/t_contract \
	tests/unit/t_explain \
	tests/unit/t_custom \
	tests/unit/t_getinfo \
	tests/unit/t_mr_mode \
	tests/unit/t_mr_offer \
	tests/unit/t_mr_remedy \
	tests/unit/t_mr_require \
	tests/unit/t_ledger \
	tests/unit/t_profile \
	tests/unit/t_profile_page \
	tests/unit/t_promise \
	tests/unit/t_prov \
	tests/unit/t_vnl
EXTRA_DIST += tests/data/mr_mode-1.17.csv

tests_unit_t_budget_SOURCES = tests/unit/t_budget.c tests/unit/unit.h
tests_unit_t_budget_LDADD = $(UNIT_LDADD)
tests_unit_t_custom_SOURCES = tests/unit/t_custom.c tests/unit/unit.h
tests_unit_t_custom_LDADD = $(UNIT_LDADD)
tests_unit_t_contract_SOURCES = tests/unit/t_contract.c tests/unit/unit.h
tests_unit_t_contract_LDADD = $(UNIT_LDADD)
tests_unit_t_explain_SOURCES = tests/unit/t_explain.c tests/fake/fake_vnl.h tests/unit/one_device.h tests/unit/unit.h
tests_unit_t_explain_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_explain_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL)
tests_unit_t_getinfo_SOURCES = tests/unit/t_getinfo.c tests/fake/fake_vnl.h tests/unit/unit.h
tests_unit_t_getinfo_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_getinfo_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL) \
	-Wl,--wrap=calloc -Wl,--wrap=malloc -Wl,--wrap=strdup
tests_unit_t_mr_mode_SOURCES = tests/unit/t_mr_mode.c tests/unit/unit.h
tests_unit_t_mr_mode_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_offer_SOURCES = tests/unit/t_mr_offer.c tests/unit/every.h tests/unit/unit.h
tests_unit_t_mr_offer_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_remedy_SOURCES = tests/unit/t_mr_remedy.c tests/unit/unit.h
tests_unit_t_mr_remedy_LDADD = $(UNIT_LDADD)
tests_unit_t_mr_require_SOURCES = tests/unit/t_mr_require.c tests/fake/fake_vnl.h tests/unit/one_device.h $(FAKE_FABRIC)
tests_unit_t_mr_require_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_mr_require_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL)
tests_unit_t_ledger_SOURCES = tests/unit/t_ledger.c tests/fake/fake_vnl.h tests/unit/one_device.h $(FAKE_FABRIC)
tests_unit_t_ledger_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_ledger_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL)
tests_unit_t_profile_SOURCES = tests/unit/t_profile.c tests/fake/fake_vnl.h tests/unit/one_device.h $(FAKE_FABRIC)
tests_unit_t_profile_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_profile_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL)
tests_unit_t_profile_page_SOURCES = tests/unit/t_profile_page.c tests/unit/unit.h
tests_unit_t_profile_page_LDADD = $(UNIT_LDADD)
tests_unit_t_promise_SOURCES = tests/unit/t_promise.c tests/fake/fake_vnl.h tests/unit/one_device.h tests/unit/unit.h
tests_unit_t_promise_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_promise_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL)
# The module's object, and a program that shows it functions as libfabric's core does.
tests_unit_t_prov_SOURCES = tests/unit/t_prov.c lib/prov/prov.c tests/fake/fake_vnl.h \
	tests/unit/one_device.h tests/unit/unit.h
# An object of its own, not of libtool.
tests_unit_t_prov_CFLAGS = $(AM_CFLAGS)
tests_unit_t_prov_LDADD = $(UNIT_LDADD) $(VERBS_LIBS) $(NL_LIBS) -ldl
tests_unit_t_prov_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL) -export-dynamic
tests_unit_t_vnl_SOURCES = tests/unit/t_vnl.c tests/fake/fake_vnl.h tests/unit/unit.h
tests_unit_t_vnl_LDADD = $(UNIT_LDADD) $(NL_LIBS)
tests_unit_t_vnl_LDFLAGS = $(AM_LDFLAGS) $(WRAP_VNL) -Wl,--wrap=access \
	-Wl,--wrap=nl_recvmsgs_default -Wl,--wrap=ioctl,--wrap=getsockopt
