#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every page of section 3mrfab has an example, and every example compiles without a warning.
# An example is the body of a function; the objects that it uses without opening them are
# declared here.
#
#   CC           compiler (default: cc)
#   top_srcdir   default: two levels up from here
#
# Exit: 0, 1 (a line for each fault), 77 when there is no compiler.
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "${top_srcdir:-$here/../..}" && pwd) || exit 1
cc=${CC:-cc}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

echo 'int t_examples_empty;' >"$tmp/works.c"
# shellcheck disable=SC2086 # a compiler may come with options
$cc -c -o "$tmp/works.o" "$tmp/works.c" >/dev/null 2>&1 || {
	echo "SKIP: no compiler ($cc)"
	exit 77
}

cat >"$tmp/begin" <<'END'
#include <stdio.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
extern struct fi_info *info;
extern struct fid_fabric *fabric;
extern struct fid_domain *domain;
extern struct fid_ep *ep;
extern struct fid_av *av;
extern struct fid_cq *cq;
extern void *desc;
extern char buf[64];
extern fi_addr_t peer;
extern uint64_t addr, key;
int example(void);
int example(void)
{
END

# example PAGE - its code, without what belongs to the formatter
example()
{
	awk '/^\.SH / { on = /EXAMPLES/ } on && /^\.fi/ { code = 0 } code && !/^\./
		on && /^\.nf/ { code = 1 }' "$1" |
		sed 's/\\-/-/g; s/\\e/\\/g; s/\\(aq/'"'"'/g'
}

faults=0
checks=0
for page in "$top"/docs/man/*.3mrfab; do
	name=${page##*/}
	checks=$((checks + 1))
	example "$page" >"$tmp/code"
	if [ ! -s "$tmp/code" ]; then
		echo "not ok: $name has no example"
		faults=$((faults + 1))
		continue
	fi
	{
		cat "$tmp/begin" "$tmp/code"
		echo '}'
	} >"$tmp/example.c"
	# shellcheck disable=SC2086
	if ! $cc -std=gnu11 -Wall -Wextra -Werror -I"$top/include" -c -o "$tmp/example.o" \
		"$tmp/example.c" >"$tmp/log" 2>&1; then
		echo "not ok: the example of $name does not compile"
		head -n 20 "$tmp/log"
		faults=$((faults + 1))
	fi
done
[ "$checks" -ge 15 ] || {
	echo "not ok: only $checks pages"
	faults=$((faults + 1))
}
echo "t_examples: $checks pages, $faults faults"
[ "$faults" -eq 0 ]
