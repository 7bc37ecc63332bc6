# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Debian packages that the project needs, by group.

package_groups=(build test rxe)
declare -A packages=(
	[build]="gcc g++ make libc6-dev autoconf automake libtool pkg-config check libsubunit-dev
		libibverbs-dev librdmacm-dev libnl-3-dev libnl-route-3-dev libsodium-dev"
	[test]="clang libclang-rt-14-dev llvm valgrind libfabric-dev shellcheck perl procps git rdmacm-utils
		ca-certificates"
	[rxe]="qemu-system-x86 qemu-system-data busybox-static kmod cpio iproute2 rdma-core
		ibverbs-providers ibverbs-utils util-linux xz-utils"
)

# packages_missing GROUP...: the packages of the groups that are not installed, one a
# line.
packages_missing() {
	local group p all=() installed
	for group in "$@"; do
		for p in ${packages[$group]}; do
			all+=("$p")
		done
	done
	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${all[@]}" 2>/dev/null)
	for p in "${all[@]}"; do
		[[ $'\n'"$installed"$'\n' == *$'\n'"installed $p"$'\n'* ]] || printf '%s\n' "$p"
	done
}
