#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The shared library exports exactly what lib/libmrfab.map lists, each in its stanza.
# Arguments: [library [map]]. Environment: builddir, top_srcdir, NM.
set -u
LC_ALL=C
export LC_ALL
nm=${NM:-nm}
lib=${1:-${builddir:-.}/.libs/libmrfab.so}
map=${2:-${top_srcdir:-$(dirname "$0")/../..}/lib/libmrfab.map}

command -v "${nm%% *}" >/dev/null 2>&1 || {
	echo "no $nm here"
	exit 77
}
[ -r "$lib" ] || {
	echo "FAIL: $lib is not there"
	exit 1
}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# name@stanza of the map: the names between "global:" and "local:".
awk '
	/^[[:space:]]*#/ { next }
	/^[A-Z0-9_.]+[[:space:]]*\{/ { stanza = $1; next }
	/^[[:space:]]*global:/ { on = 1; next }
	/^[[:space:]]*local:/ { on = 0; next }
	/^\}/ { on = 0; next }
	on && NF { sub(/;.*/, "", $1); print $1 "@" stanza }
' "$map" | sort >"$tmp/want"

# nm writes the default version as @@; the stanzas themselves are absolute symbols.
$nm -D --defined-only "$lib" >"$tmp/nm" || exit 1
awk '$2 != "A" { sub(/@@/, "@", $3); print $3 }' "$tmp/nm" | sort >"$tmp/have"

if [ "$(wc -l <"$tmp/want")" -lt 20 ]; then
	echo "FAIL: only these names were found in $map:"
	cat "$tmp/want"
	exit 1
fi
if ! cmp -s "$tmp/want" "$tmp/have"; then
	echo "FAIL: < only in $map, > only in $lib"
	diff "$tmp/want" "$tmp/have"
	exit 1
fi
# Unloading it would leak descriptors of librdmacm's: see lib/local.mk.
readelf=${READELF:-readelf}
if command -v "$readelf" >/dev/null 2>&1 && ! $readelf -d "$lib" | grep -q NODELETE; then
	echo "FAIL: dlclose would unload $lib"
	exit 1
fi
echo "$(wc -l <"$tmp/have") symbols, all of them in the map"
