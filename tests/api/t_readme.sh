#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The program in README.md compiles as it stands there, by the command that stands there, and
# links with the library. tests/api/run-examples runs it. Environment: CC, builddir, top_srcdir.
set -u
builddir=$(cd "${builddir:-.}" && pwd)
top=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd)
here=$top/tests/api
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

"$here/readme-program" program "$top/README.md" >"$tmp/program.c"
"$here/readme-program" command "$top/README.md" >"$tmp/command"
grep -q '^int main' "$tmp/program.c" || {
	echo "FAIL: README.md has no program, or not where readme-program looks"
	exit 1
}
# What pkg-config says when the library is installed is said for the build folder.
mkdir "$tmp/bin" "$tmp/include"
cat >"$tmp/bin/pkg-config" <<-END
	#!/bin/sh
	[ "\$*" = "--cflags --libs mrfab" ] || exit 1
	echo "-I'$top/include' -L'$builddir/.libs' -lmrfab" | tr -d "'"
END
printf '#!/bin/sh\nPATH="%s" exec %s -Wall -Wextra -Werror "$@"\n' "$PATH" "${CC:-cc}" >"$tmp/bin/cc"
chmod +x "$tmp/bin/pkg-config" "$tmp/bin/cc"
cd "$tmp" || exit 1
PATH=$tmp/bin:$PATH sh -e ./command || {
	echo "FAIL: README.md's program does not compile by: $(cat command)"
	exit 1
}
[ -x program ] || {
	echo "FAIL: README.md's command makes no program"
	exit 1
}
LD_LIBRARY_PATH=$builddir/.libs ldd ./program | grep -F "$builddir/.libs/libmrfab.so" || {
	echo "FAIL: it was not linked with the library"
	exit 1
}
