check_PROGRAMS += tests/unit/t_proto
tests_unit_t_proto_SOURCES = tests/unit/t_proto.c tests/unit/unit.h
tests_unit_t_proto_LDADD = $(UNIT_LDADD)

check_PROGRAMS += tests/unit/t_none
tests_unit_t_none_SOURCES = tests/unit/t_none.c tests/unit/unit.h
tests_unit_t_none_LDADD = $(UNIT_LDADD)
