#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every public header compiles alone, with nothing of another libfabric in it: in C
# and C++, with each compiler there is, warnings being errors. With a header missing
# from our tree the compiler would silently take the system's: so the list of files
# that went into each compilation is looked through.
#
#   CC, CXX      compilers to try besides gcc, clang, g++, clang++
#   top_srcdir   default: two levels up from here
#
# Exit: 0, 1 (a line for each fault), 77 when there is no compiler at all.
# Compilers, flags and header lists are words to be split throughout:
# shellcheck disable=SC2086,SC2046,SC2048
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "${top_srcdir:-$here/../..}" && pwd) || exit 1
inc=$top/include
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

faults=0
checks=0

fault()
{
	echo "not ok: $*"
	faults=$((faults + 1))
}

# A file that includes the headers named, and declares something of its own: ISO C
# forbids an empty translation unit, which a header of macros alone would leave.
source_of()
{
	for h in "$@"; do
		echo "#include <$h>"
	done
	echo 'extern int t_headers_something;'
}

# Tools such as CMake's finders read constants with "#define NAME value": one blank, no tab.
# A definition that begins on the next line is no constant.
defines_have_one_blank()
{
	checks=$((checks + 1))
	bad=$(grep -nE '^[[:space:]]*#[[:space:]]*define' -r "$inc/rdma" |
		grep -vE ':#define [A-Za-z0-9_]+(\([^)]*\))?( [^[:space:]].*| +\\)?$') || return 0
	fault "defines without exactly one blank before name and value:"
	echo "$bad" | head -n 20
}

# works COMPILER SUFFIX - is it there, and does it compile anything?
works()
{
	echo 'int t_headers_empty;' >"$tmp/works.$2"
	$1 -c -o "$tmp/works.o" "$tmp/works.$2" >"$tmp/works.log" 2>&1
}

# compile WHAT COMPILER FLAGS... - quietly, or it is a fault
compile()
{
	what=$1
	shift
	checks=$((checks + 1))
	$* >"$tmp/log" 2>&1 && [ ! -s "$tmp/log" ] && return 0
	fault "$what: $*"
	head -n 20 "$tmp/log"
	return 1
}

# foreign FILE-LIST DIRECTORY - the fabric headers in a `-M` output that are not
# below the directory; and fails when none at all is, for then nothing was checked.
foreign()
{
	tr ' ' '\n' <"$1" |
		grep -E '/rdma/(providers/)?(fabric|fi_[a-z0-9_]+)\.h$' >"$tmp/fabric"
	grep -qF "$2/" "$tmp/fabric" || echo "nothing of $2"
	grep -vF "$2/" "$tmp/fabric"
}

# no_foreign WHAT COMPILER - in what compile has just read with -MD -MF $tmp/deps
no_foreign()
{
	checks=$((checks + 1))
	found=$(foreign "$tmp/deps" "$inc")
	[ -z "$found" ] || fault "$1: $2 takes" $found
}

# check_language SUFFIX COMPILER FLAGS STANDARD... - all headers, one by one, each
# twice over, and all together in either order. A standard may have flags of its own behind commas.
check_language()
{
	suffix=$1 by=$2 flags=$3
	shift 3
	for h in $headers; do
		source_of "$h" "$h" >"$tmp/one.$suffix"
		for std in "$@"; do
			compile "$h" "$by" -std="$(echo "$std" | tr , ' ')" $flags -Werror -I"$inc" \
				-MD -MF "$tmp/deps" -fsyntax-only "$tmp/one.$suffix"
		done
		case $h in
		*/fi_ext_psm2.h) ;;	# needs fabric.h before it, and includes nothing
		*) no_foreign "$h" "$by" ;;
		esac
	done
	source_of $headers >"$tmp/all.$suffix"
	source_of $(printf '%s\n' $headers | sort -r) >"$tmp/back.$suffix"
	for order in all back; do
		compile "$order" "$by" -std="${1%%,*}" $flags -Werror -I"$inc" \
			-MD -MF "$tmp/deps" -c -o "$tmp/$order.o" "$tmp/$order.$suffix"
		no_foreign "$order" "$by"
	done
	# nothing in a header may be defined twice when two files include it
	compile "two objects" "$by" -r -nostdlib -o "$tmp/both.o" \
		"$tmp/all.o" "$tmp/back.o"
}

# The library exports the region calls under their own names, too: it must be able
# to rename the inline ones.
check_rename()
{
	{
		for f in $mr_calls; do
			echo "#define $f inline_$f"
		done
		echo '#include <rdma/fi_domain.h>'
		for f in $mr_calls; do
			echo "#undef $f"
			echo "extern __typeof__(inline_$f) $f;"
			echo "void *use_$f(void);"
			echo "void *use_$f(void) { return (void *) inline_$f; }"
		done
		echo 'int fi_close(struct fid *fid) { return inline_fi_close(fid); }'
	} >"$tmp/rename.c"
	compile "rename" "$1" -std=gnu11 -Wall -Wextra -Werror -I"$inc" -c \
		-o "$tmp/rename.o" "$tmp/rename.c"
}

# A tree without one of the headers beside a "system" that has it must be noticed.
check_detection()
{
	rm -rf "$tmp/mine" "$tmp/system"
	mkdir -p "$tmp/mine" "$tmp/system/rdma"
	cp -r "$inc/rdma" "$tmp/mine/rdma"
	mv "$tmp/mine/rdma/fi_rma.h" "$tmp/system/rdma/fi_rma.h"
	source_of rdma/fi_atomic.h >"$tmp/leak.c"
	checks=$((checks + 1))
	$1 -M -I"$tmp/mine" -idirafter "$tmp/system" "$tmp/leak.c" >"$tmp/deps" \
		2>"$tmp/log" || fault "detection: does not compile"
	case $(foreign "$tmp/deps" "$tmp/mine") in
	*/fi_rma.h) ;;
	*) fault "detection: a foreign header went unnoticed with $1" ;;
	esac
}

mr_calls="fi_mr_reg fi_mr_regv fi_mr_regattr fi_mr_desc fi_mr_key fi_mr_raw_attr
	fi_mr_map_raw fi_mr_unmap_key fi_mr_bind fi_mr_refresh fi_mr_enable fi_close"
headers=$(cd "$inc" && find rdma -name '*.h' | sort)
[ "$(echo "$headers" | wc -l)" -ge 14 ] || fault "too few headers in $inc: $headers"

# one compiler per line: it may come with words of its own
compilers()
{
	printf '%s\n' "$@" | awk 'NF && !seen[$0]++'
}

defines_have_one_blank

compilers "${CC:-}" gcc clang >"$tmp/cc"
compilers "${CXX:-}" g++ clang++ >"$tmp/cxx"
used=
while read -r cc; do
	works "$cc" c || continue
	used="$used [$cc]"
	check_language c "$cc" "-Wall -Wextra" c11,-Wpedantic c99,-Wno-unused-function \
		gnu89,-Wno-unused-function
	check_rename "$cc"
	check_detection "$cc"
done <"$tmp/cc"
while read -r cxx; do
	works "$cxx" cpp || continue
	used="$used [$cxx]"
	# -Wpedantic: but for the array at the end of fi_eq_cm_entry, which is not C++
	check_language cpp "$cxx" "-Wall -Wextra" c++11 c++17
done <"$tmp/cxx"

if [ -z "$used" ]; then
	echo "SKIP: no compiler"
	exit 77
fi
echo "t_headers: $checks checks, $faults faults, with$used"
[ "$faults" -eq 0 ]
