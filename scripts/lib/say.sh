# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Messages of the scripts: one line each, on stderr, with the program's name.
# Variables: prog (name), quiet (yes: say is silent; warn and die never are).

say() {
	[ "${quiet:-no}" = yes ] || printf '%s: %s\n' "$prog" "$*" >&2
}

warn() {
	printf '%s: %s\n' "$prog" "$*" >&2
}

# Exit status 125: the script itself failed, not the command it was to run.
die() {
	warn "$@"
	exit 125
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# A step that says nothing itself is not silent for longer than this.
patience=8		# seconds

# patiently WHAT COMMAND...: runs it, and says every few seconds that it is still at it.
patiently() {
	local what=$1 status=0 beats
	shift
	beat "$what" &
	beats=$!
	"$@" || status=$?
	kill "$beats" 2>/dev/null
	wait "$beats" 2>/dev/null || true
	return $status
}

# beat WHAT: until it is killed. Waits without a process of its own, which would outlive it.
beat() {
	local never
	exec {never}<> <(:)
	SECONDS=0
	while read -rt "$patience" -u "$never" || [ $? -gt 128 ]; do
		say "still $1 ($SECONDS s)"
	done
}
