# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Build trees below build/, kept and brought up to date by make. Variables: top (the source tree).
# Safe to be used by several processes at a time. Output goes to a file and is shown on failure; with
# build_told=yes each step says what it is at, and goes on saying so.

jobs_max=$(nproc)

# step WHAT COMMAND...: says so, if that is wanted.
step() {
	if [ "${build_told:-no}" = yes ]; then
		say "$1"
		patiently "$@"
	else
		"${@:2}"
	fi
}

output_to() {
	local log=$1
	shift
	"$@" >"$log" 2>&1
}

# quietly WHAT LOG COMMAND...: shows the end of LOG when COMMAND fails, and fails.
quietly() {
	local what=$1 log=$2
	shift 2
	step "$what" output_to "$log" "$@" && return
	tail -n 60 "$log" >&2
	warn "failed: $* (all of it: $log)"
	return 1
}

# files_of PATH...: the files there that belong to the project, each ended by a NUL.
files_of() {
	git ls-files -co --exclude-standard -z -- "$@" 2>/dev/null ||
		find "$@" \( -path ./build -o -path ./.git \) -prune -o -type f -print0
}

# tree_copy FOLDER: the project as it is here, committed or not, without what was built.
tree_copy() {
	mkdir -p "$1"
	(cd "$top" && files_of . | tar -c --null --no-recursion --ignore-failed-read -T -) |
		tar -x --no-same-owner -C "$1"
}

# The build system itself, made anew when one of its parts is newer.
bootstrap_needed() {
	[ -x "$top/configure" ] && [ -f "$top/Makefile.in" ] || return 0
	find "$top"/{configure.ac,Makefile.am,lib,include,tools,bench,examples,tests,docs,scripts} \
		\( -name '*.mk' -o -name '*.am' -o -name '*.ac' \) \
		-newer "$top/Makefile.in" -print -quit | grep -q .
}

# What is built in a folder below build/ needs this; called before anything else is done.
source_check() {
	[ ! -f "$top/config.status" ] ||
		die "the source folder itself is configured: run 'make distclean' there first"
}

bootstrap() {
	source_check
	mkdir -p "$top/build"
	(
		flock 9
		bootstrap_needed || exit 0
		cd "$top" && quietly "generating configure" build/bootstrap.log autoreconf -fi &&
			touch Makefile.in
	) 9>"$top/build/.bootstrap.lock"
}

# tree_configure NAME OPTION...: build/NAME, configured with exactly these options.
tree_configure() {
	local dir=$top/build/$1 wanted
	shift
	wanted="$*"
	[ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/.options")" != "$wanted" ] || return 0
	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$dir" && quietly "configuring" configure.log "$top/configure" -q "$@") || return
	printf '%s\n' "$wanted" >"$dir/.options"
}

# tree_make NAME TARGET...
tree_make() {
	local dir=$top/build/$1
	shift
	(
		flock 9
		quietly "building" "$dir/make.log" make -C "$dir" -j "$jobs_max" "$@"
	) 9>"$dir/.lock"
}
