# The second fuzz target; the first is in tests/unit/ep.mk.
unit_programs += tests/unit/t_fuzz_rawkey
tests_unit_t_fuzz_rawkey_SOURCES = tests/unit/t_fuzz_rawkey.c tests/fuzz/fuzz_rawkey.c \
	tests/fuzz/fuzz.h tests/fuzz/replay.h tests/unit/unit.h
tests_unit_t_fuzz_rawkey_LDADD = $(UNIT_LDADD)
EXTRA_PROGRAMS += tests/fuzz/fuzz_rawkey
tests_fuzz_fuzz_rawkey_SOURCES = tests/fuzz/fuzz_rawkey.c tests/fuzz/fuzz.h lib/proto/rawkey.c
tests_fuzz_fuzz_rawkey_CFLAGS = $(AM_CFLAGS) -fsanitize=fuzzer,address,undefined
tests_fuzz_fuzz_rawkey_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer,address,undefined
EXTRA_DIST += \
	tests/fuzz/corpus-rawkey/bad-sum \
	tests/fuzz/corpus-rawkey/followed-by-garbage \
	tests/fuzz/corpus-rawkey/frame-only \
	tests/fuzz/corpus-rawkey/hole \
	tests/fuzz/corpus-rawkey/iova-beyond-page \
	tests/fuzz/corpus-rawkey/mended-on-demand \
	tests/fuzz/corpus-rawkey/mended-one \
	tests/fuzz/corpus-rawkey/mended-sixteen \
	tests/fuzz/corpus-rawkey/mended-virt \
	tests/fuzz/corpus-rawkey/no-bytes \
	tests/fuzz/corpus-rawkey/on-demand \
	tests/fuzz/corpus-rawkey/on-demand-virt \
	tests/fuzz/corpus-rawkey/one \
	tests/fuzz/corpus-rawkey/one-not-compact \
	tests/fuzz/corpus-rawkey/other-version \
	tests/fuzz/corpus-rawkey/padded \
	tests/fuzz/corpus-rawkey/padded-more \
	tests/fuzz/corpus-rawkey/seventeen \
	tests/fuzz/corpus-rawkey/sixteen \
	tests/fuzz/corpus-rawkey/truncated \
	tests/fuzz/corpus-rawkey/two-virt \
	tests/fuzz/corpus-rawkey/unknown-flag \
	tests/fuzz/corpus-rawkey/wraps
