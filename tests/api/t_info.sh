#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mrfab_info takes names as the manual has them and as FI_MRFAB_MR_MODE does. Environment: builddir.
set -u
info=${builddir:-.}/tools/mrfab_info
status=0
# shellcheck disable=SC2046
unset $(env | sed -n 's/^\(FI_[A-Z0-9_]*\)=.*/\1/p')

# wanted STATUS MODE: --list answers where there is no device, too.
wanted() {
	"$info" --list --mr-mode "$2" >/dev/null 2>&1
	rc=$?
	[ $rc = "$1" ] || {
		echo "FAIL: mrfab_info --mr-mode $2: exit status $rc, not $1"
		status=1
	}
}

wanted 0 FI_MR_LOCAL
wanted 0 LOCAL
wanted 0 local
wanted 0 'FI_MR_LOCAL|FI_MR_VIRT_ADDR'
wanted 0 LOCAL+VIRT_ADDR
wanted 0 LOCAL,VIRT_ADDR
wanted 0 0
wanted 2 NONSENSE
wanted 2 FI_LOCAL
wanted 2 LOCAL+
wanted 2 FI_MR_FI_MR_LOCAL

# Listing is not using: who asks for FI_HMEM and names no modes has what goes with it.
lacks_hmem() {
	"$info" --explain --caps 'FI_RMA|FI_HMEM' "$@" 2>&1 | grep -q 'MRF-E1033'
}
lacks_hmem --mr-mode LOCAL || {
	echo "FAIL: mrfab_info does not say that FI_MR_HMEM is missing"
	status=1
}
if lacks_hmem; then
	echo "FAIL: mrfab_info does not offer FI_MR_HMEM"
	status=1
fi
# What the log is to have is not said by what it has otherwise.
FI_LOG_PROV=verbs FI_LOG_SUBSYS=mr lacks_hmem --mr-mode LOCAL || {
	echo "FAIL: mrfab_info --explain is silent with FI_LOG_PROV or FI_LOG_SUBSYS"
	status=1
}
# Under a profile, too, it can have any mode.
if FI_MRFAB_PROFILE=verbs "$info" --explain --caps FI_RMA 2>&1 | grep -q 'MRF-E1032'; then
	echo "FAIL: mrfab_info does not offer what FI_MRFAB_PROFILE requires"
	status=1
fi
# explains STATUS CODE TEXT: what --code says of it, in lines of at most 78 columns.
explains() {
	"$info" --code "$2" >"$tmp" 2>&1
	rc=$?
	if [ $rc != "$1" ] || ! grep -qF -- "$3" "$tmp" || grep -qE '.{79}' "$tmp"; then
		echo "FAIL: mrfab_info --code $2: exit status $rc, $(cat "$tmp")"
		status=1
	fi
}

tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
explains 0 MRF-E4105 'The access is outside the region'
explains 0 e4105 'MRF-E4105'
explains 0 4105 'MRF-E4105'
explains 0 W3010 'A region that peers may access begins at NULL'
explains 1 MRF-W4105 'MRF-W4105 is not the code of a message'
explains 1 '' 'is not the code of a message'
# Each of the page, none empty, and nothing of its markup. libtool's script, which takes ten times as
# long as the program, is passed by.
bin=${builddir:-.}/tools/.libs/mrfab_info
[ -x "$bin" ] || bin=$info
export LD_LIBRARY_PATH="${builddir:-.}/.libs"
: >"$tmp"
for code in $(sed -n 's/^\.B MRF\\-\([EW][0-9]*\)$/\1/p' "${top_srcdir:-.}/docs/man/mrfab_messages.7"); do
	"$bin" --code "$code" >>"$tmp" 2>&1 || {
		echo "FAIL: mrfab_info --code $code: $(tail -n 1 "$tmp")"
		status=1
	}
done
unset LD_LIBRARY_PATH
if [ "$(grep -c '^MRF-' "$tmp")" -lt 440 ] || grep -nE '^$|\\|^\.[A-Z]' "$tmp"; then
	echo "FAIL: mrfab_info --code prints something that is no text"
	status=1
fi
"$info" --json --env >"$tmp" 2>&1
[ $? = 2 ] && grep -q -- '--json: this option is only for the list of what is offered' "$tmp" || {
	echo "FAIL: mrfab_info --json --env: $(cat "$tmp")"
	status=1
}
"$info" --json --pid $$ >"$tmp" 2>&1
[ $? = 1 ] && grep -q "mrfab_info: process $$ uses no domain" "$tmp" && grep -qx '\[\]' "$tmp" || {
	echo "FAIL: mrfab_info --json --pid: $(cat "$tmp")"
	status=1
}

# hints STATUS TEXT LINE...: what is said of hints that fi_tostr printed so.
hints() {
	wanted=$1 text=$2
	shift 2
	printf '%s\n' fi_info: "$@" | "$info" --explain --hints - >"$tmp" 2>&1
	rc=$?
	[ $rc = "$wanted" ] && grep -qF -- "$text" "$tmp" || {
		echo "FAIL: hints $*: exit status $rc, $(cat "$tmp")"
		status=1
	}
}
hints 1 'these bits are not offered: FI_MULTICAST' '    caps: [ FI_RMA, FI_MULTICAST ]' '    mode: [  ]'
hints 1 'MRF-E1033' '    caps: [ FI_RMA, FI_HMEM ]' '    fi_domain_attr:' '        mr_mode: [ FI_MR_LOCAL ]'
hints 1 'inject_size=1048576' '    caps: [ FI_RMA ]' '    fi_tx_attr:' '        inject_size: 1048576' \
	'        comp_order: [ FI_ORDER_NONE ]'
hints 1 'hints->fabric_attr->prov_name' '    caps: [ FI_RMA ]' '    fi_fabric_attr:' '        prov_name: verbs'
hints 2 '-:3: unknown word: FI_MR_NONSENSE ]' '    fi_domain_attr:' '        mr_mode: [ FI_MR_NONSENSE ]'
hints 2 '-:3: not a number: many' '    fi_ep_attr:' '        max_msg_size: many'
# What fi_tostr prints of the library's own answers is taken, too.
hints 1 'inject_size=1048576' '    fi_tx_attr:' '        inject_size: 1048576' '    fi_ep_attr:' \
	'        type: FI_EP_RDM' '        protocol: Provider specific'
hints 2 'unknown word: Provider specific' '    addr_format: Provider specific'
hints 2 '-:4: a second structure, of which only one can be the hints: fi_info' '    caps: [ FI_RMA ]' --- fi_info:
hints 2 '-:2: not a line of fi_tostr: nothing' 'nothing'
hints 1 '-:3: src_addr is left out' '    caps: [ FI_RMA, FI_MULTICAST ]' '    src_addr: fi_sockaddr_in://10.0.0.1:0'
hints 2 '-:3: unknown word: FI_RM_SOME' '    fi_domain_attr:' '        resource_mgmt: FI_RM_SOME'
# no_hints FILE TEXT: such a file has none.
no_hints() {
	"$info" --list --hints "$1" >"$tmp" 2>&1
	rc=$?
	[ $rc = 2 ] && grep -qF -- "$2" "$tmp" || {
		echo "FAIL: --hints $1: exit status $rc, $(cat "$tmp")"
		status=1
	}
}
no_hints /tmp '/tmp: Is a directory'
no_hints /dev/null '/dev/null: it has none of the lines that fi_tostr prints'
"$info" --list --hints /nowhere >"$tmp" 2>&1
[ $? = 2 ] && grep -q '/nowhere: No such file' "$tmp" || {
	echo "FAIL: --hints /nowhere: $(cat "$tmp")"
	status=1
}
exit $status
