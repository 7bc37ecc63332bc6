# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What suites and programs take, beside what they took the last time that it was recorded.
# scripts/lib/seconds has rows "SUITE PROGRAM SECONDS"; PROGRAM "-" is the suite as a whole, and a
# program without a row took less than a second. A program that runs several times in a suite has
# the sum. build/test/seconds has what the last run here took, in the same form.

declare -A seconds=()	# SUITE/PROGRAM
declare -A spent=()	# SUITE: what it took in this run

seconds_read() {
	local suite program s
	while read -r suite program s; do
		seconds[$suite/$program]=$s
	done < <(grep -v '^#' scripts/lib/seconds)
}

# Leaves what this run took in build/test/seconds.
seconds_write() {
	local suite
	{
		for suite in "${!spent[@]}"; do
			echo "$suite - ${spent[$suite]}"
		done
		find build/test -mindepth 2 -name times -exec cat {} + | awk '
			{ s[$2 " " $3] += $1 }
			END { for (p in s) if (s[p] >= 1) printf "%s %.1f\n", p, s[p] }'
	} | LC_ALL=C sort >build/test/seconds
}

# The last run's rows take the place of those of the same suites.
seconds_record() {
	local new
	[ -s build/test/seconds ] || die "nothing has run here"
	new=$(
		grep '^#' scripts/lib/seconds
		awk 'FNR == NR { ran[$1]; print; next } !/^#/ && !($1 in ran)' build/test/seconds \
			scripts/lib/seconds | LC_ALL=C sort
	)
	printf '%s\n' "$new" >scripts/lib/seconds
}

# The programs of the last run: "SECONDS LAST SUITE PROGRAM", the slowest first. LAST is - for one
# that has no row, and ? where no program of the suite has.
seconds_beside() {
	awk '
		/^#/ || $2 == "-" { next }
		FNR == NR { last[$1 " " $2] = $3; known[$1]; next }
		{
			none = $1 in known ? "-" : "?"
			print $3, ($1 " " $2) in last ? last[$1 " " $2] : none, $1, $2
		}' scripts/lib/seconds build/test/seconds | sort -rn
}

# The ten slowest, and those that became slower by a second and by 30 % of what they would take if
# all had changed alike: this machine may be another one, or have more to do.
seconds_report() {
	seconds_beside | awk '
		{
			now[NR] = $1
			was[NR] = $2 == "-" ? 1 : $2
			rows[NR] = sprintf("  %6.1f %6s  %s: %s\n", $1, $2, $3, $4)
		}
		$2 == "?" { was[NR] = "" }
		$2 + 0 { sum_now += $1; sum_was += $2 }
		END {
			ratio = sum_was ? sum_now / sum_was : 1
			print "the ten slowest programs, in seconds, and what they took the last time:"
			for (i = 1; i <= NR && i <= 10; i++)
				printf "%s", rows[i]
			printf "all took %.2f times as long as the last time; 30 %% longer than that:\n",
				ratio
			for (i = 1; i <= NR; i++) {
				due = was[i] * ratio
				if (was[i] && now[i] > 1.3 * due && now[i] > due + 1)
					printf "%s", rows[i]
			}
		}'
}
