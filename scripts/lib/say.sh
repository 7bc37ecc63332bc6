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
