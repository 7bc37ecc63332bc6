# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Counting test cases in what test programs print: Check's summary, "ok NAME"/"not ok NAME"/
# "skip NAME: why" lines, or a sum of its own, "N passed, N failed, N skipped", which then counts.
# A program that prints none of these is one test case, told by its exit status (77: skipped).

# tally LOG STATUS: prints "PASSED FAILED SKIPPED".
tally() {
	awk -v status="$2" '
		/^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+/ {
			bad = $5 + $7
			passed += $3 - bad
			failed += bad
		}
		/^([a-z-]+: )?[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped( in [0-9]+ s)?$/ {
			summed = 1
			sub(/^[a-z-]+: /, "")
			sum_passed += $1
			sum_failed += $3
			sum_skipped += $5
		}
		/^skip / || /^ok .*# *[Ss][Kk][Ii][Pp]/ { skipped++; next }
		/^ok / { passed++ }
		/^not ok / { failed++ }
		END {
			if (summed) {
				passed = sum_passed
				failed = sum_failed
				skipped = sum_skipped
			}
			if (status == 77 && passed + failed == 0)
				skipped += skipped == 0
			else if (status != 0 && failed == 0)
				failed = 1
			else if (passed + failed + skipped == 0)
				passed = 1
			print passed + 0, failed + 0, skipped + 0
		}' "$1"
}

# How a log says how long a program took; seconds may have a fraction.
took='^[a-z_-]+: [^ ]+ took [0-9.]+ s$'

# tally_times LOG SUITE: the lines of that kind, as "SECONDS SUITE PROGRAM".
tally_times() {
	sed -nE "/$took/s/^[^ ]+ ([^ ]+) took ([0-9.]+) s\$/\\2 $2 \\1/p" "$1"
}

# tally_sum: adds up such lines from stdin.
tally_sum() {
	awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }'
}

# What of a log tells about a failure: the lines that say so, else how it ends.
tally_complaints() {
	local told='^not ok|^FAIL|:[FE]:|ERROR: AddressSanitizer|runtime error:|^==[0-9]+== '
	told+='|WARNING: ThreadSanitizer|^skip |failed: |: error|: warning:'
	echo "-- $1"
	grep -E -B 3 -A 3 "$told" "$1" | head -n 40 | grep . || tail -n 15 "$1"
}
