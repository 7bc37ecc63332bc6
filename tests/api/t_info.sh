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
exit $status
