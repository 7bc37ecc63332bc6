# The second and the third fuzz target; the first is in tests/unit/ep.mk.
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

unit_programs += tests/unit/t_fuzz_frame
tests_unit_t_fuzz_frame_SOURCES = tests/unit/t_fuzz_frame.c tests/fuzz/fuzz_frame.c \
	tests/fuzz/fuzz.h tests/fuzz/replay.h tests/unit/unit.h
tests_unit_t_fuzz_frame_LDADD = $(UNIT_LDADD)
EXTRA_PROGRAMS += tests/fuzz/fuzz_frame
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c tests/fuzz/fuzz.h lib/proto/frame.c \
	lib/proto/proto.c
tests_fuzz_fuzz_frame_CFLAGS = $(AM_CFLAGS) -fsanitize=fuzzer,address,undefined
tests_fuzz_fuzz_frame_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer,address,undefined
EXTRA_DIST += \
	tests/fuzz/corpus-frame/ask \
	tests/fuzz/corpus-frame/ask-last \
	tests/fuzz/corpus-frame/ask-psn-25-bits \
	tests/fuzz/corpus-frame/ask-truncated \
	tests/fuzz/corpus-frame/ask-unknown-flag \
	tests/fuzz/corpus-frame/bare \
	tests/fuzz/corpus-frame/bare-cq-data \
	tests/fuzz/corpus-frame/grant \
	tests/fuzz/corpus-frame/grant-finished \
	tests/fuzz/corpus-frame/grant-refused \
	tests/fuzz/corpus-frame/grant-refused-with-bytes \
	tests/fuzz/corpus-frame/grant-unknown-flag \
	tests/fuzz/corpus-frame/grant-waits \
	tests/fuzz/corpus-frame/grant-wraps \
	tests/fuzz/corpus-frame/message \
	tests/fuzz/corpus-frame/message-as-offer \
	tests/fuzz/corpus-frame/message-cq-data \
	tests/fuzz/corpus-frame/message-cq-data-says-short \
	tests/fuzz/corpus-frame/message-cq-data-short \
	tests/fuzz/corpus-frame/message-empty \
	tests/fuzz/corpus-frame/message-longer-head \
	tests/fuzz/corpus-frame/message-says-long \
	tests/fuzz/corpus-frame/message-truncated \
	tests/fuzz/corpus-frame/message-unknown-flag \
	tests/fuzz/corpus-frame/note \
	tests/fuzz/corpus-frame/note-offers-only \
	tests/fuzz/corpus-frame/note-truncated \
	tests/fuzz/corpus-frame/note-unknown-flag \
	tests/fuzz/corpus-frame/offer \
	tests/fuzz/corpus-frame/offer-most \
	tests/fuzz/corpus-frame/offer-no-bulk \
	tests/fuzz/corpus-frame/offer-piece \
	tests/fuzz/corpus-frame/offer-qp-25-bits \
	tests/fuzz/corpus-frame/offer-says-short \
	tests/fuzz/corpus-frame/offer-wraps \
	tests/fuzz/corpus-frame/other-version \
	tests/fuzz/corpus-frame/probe-as-note
