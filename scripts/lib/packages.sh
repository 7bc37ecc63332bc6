# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Debian packages that the project needs, by group. a|b: a package that has another name in some
# releases.

package_groups=(build unit clang valgrind tree lint prov runner alloc package rxe)
declare -A packages=(
	[build]="gcc g++ make libc6-dev autoconf automake libtool pkg-config check libsubunit-dev
		libibverbs-dev librdmacm-dev libnl-3-dev libnl-route-3-dev libsodium-dev"
	[rxe]="qemu-system-x86 qemu-system-data busybox-static kmod cpio iproute2 rdma-core
		ibverbs-providers ibverbs-utils util-linux xz-utils"
	# The tests, by what only some of their suites need.
	[unit]="perl procps git libfabric-dev libhsa-runtime64-1 libze1"
	[clang]="clang libclang-rt-14-dev|libclang-rt-dev llvm"
	[valgrind]="valgrind"
	[tree]="mmdebstrap git"
	[lint]="shellcheck perl git groff-base clang-format-14|clang-format"
	[prov]="libfabric-dev libfabric-bin openmpi-bin libopenmpi-dev"
	[runner]="rdmacm-utils ca-certificates"
	[alloc]="libjemalloc2"
	[package]="build-essential dpkg-dev debhelper lintian"
)
# What "test" stands for.
package_groups_test=(unit clang valgrind tree lint prov runner alloc)

# packages_missing GROUP...: the packages of the groups that are not installed, one a line.
packages_missing() {
	local group p installed
	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null)
	for group in "$@"; do
		for p in ${packages[$group]}; do
			grep -qxE "installed (${p//+/[+]})" <<<"$installed" || printf '%s\n' "$p"
		done
	done
}

# packages_offered NAME...: of each a|b the one that apt offers.
packages_offered() {
	local names p
	for names in "$@"; do
		for p in ${names//|/ }; do
			apt-cache show "$p" >/dev/null 2>&1 && break
		done
		printf '%s\n' "$p"
	done
}
