# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What the tests here say: "ok KERNEL NAME" or "not ok KERNEL NAME" for each, counted. Variables:
# kernel (a word before the name, or nothing).

count=0
failed=0

# check NAME STATUS: reports a test whose commands ended with STATUS.
check() {
	count=$((count + 1))
	if [ "$2" = 0 ]; then
		printf 'ok %s%s\n' "${kernel:+$kernel }" "$1"
	else
		printf 'not ok %s%s\n' "${kernel:+$kernel }" "$1"
		failed=$((failed + 1))
	fi
}

# same NAME WANTED GOT
same() {
	[ "$2" = "$3" ]
	local rc=$?
	[ $rc = 0 ] || printf '  wanted: %q\n  got:    %q\n' "$2" "$3"
	check "$1" $rc
}
