#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `make check` uses the rxe device that is there, and says so when there can be none. Usage:
# t_check.sh [KERNEL], where build/main is built (6.1). Prints "ok NAME" or "not ok NAME" for each;
# exit status 1 if any failed. In the guest the kernel has a device: what runs there is what a
# machine with one does.

set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
export CHECK_RXE_OPTIONS='--case write_lands_at_some_alignments --mode mode0'
build=build/main
failed=0
make=(make -s -C "$build" check-TESTS TESTS=tests/func/check-rxe)

check() {
	local name=$1
	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name"
		sed 's/^/#   /' <<<"$out"
		failed=1
	fi
}

said() {
	grep -qE "$1" <<<"$out"
}

unset MRFAB_TEST_STRICT
out=$(MRFAB_RXE_KERNEL=/nonexistent "${make[@]}" 2>&1)
check without_a_device_it_skips said '^SKIP: tests/func/check-rxe'
check the_reason_and_the_number_are_one_line \
	said '^functional tests: [1-9][0-9]* cases were not run: --kernel /nonexistent: no such'
out=$(MRFAB_RXE_KERNEL=/nonexistent MRFAB_TEST_STRICT=1 "${make[@]}" 2>&1)
check where_a_device_must_be_that_fails said '^FAIL: tests/func/check-rxe'
# shellcheck disable=SC2016 # for the guest
out=$(scripts/with-rxe --quiet --kernel "${1:-6.1}" -- bash -c '
	counter=/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
	before=$(cat $counter)
	unset MRFAB_RXE_KERNEL
	"$@" 2>&1
	echo "packets: $(($(cat $counter) - before))"' - "${make[@]}" 2>&1)
check with_a_device_it_passes said '^PASS: tests/func/check-rxe'
check the_kernel_is_the_running_one said '^functional tests: .* itself, rxe0$'
check the_device_counts_packets said '^packets: [1-9][0-9]+$'
exit $failed
