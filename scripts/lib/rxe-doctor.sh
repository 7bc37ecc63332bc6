# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# with-rxe --doctor: one line per thing that is needed, and what to do if it is missing.
# Changes nothing. Status 0 if a command can be run in some way.

doctor_native=yes
doctor_vm=yes

# doctor_line STATUS WAY WHAT ADVICE: STATUS 0: WHAT is there. Without it WAY (native, vm,
# both) cannot be used; a "note" is not vital.
doctor_line() {
	if [ "$1" = 0 ]; then
		printf 'ok: %s\n' "$3"
		return
	fi
	printf 'missing: %s -> %s\n' "$3" "$4"
	case $2 in
	native | both) doctor_native=no ;;&
	vm | both) doctor_vm=no ;;
	esac
}

doctor_module() {
	[ -d /sys/module/rdma_rxe ] || module_exists
	doctor_line $? native "module rdma_rxe for the running kernel $(uname -r)" \
		"a kernel that has it (CONFIG_RDMA_RXE), or the guest"
	[ -d /sys/module/rdma_rxe ]
	doctor_line $? note "rdma_rxe is loaded" "modprobe rdma_rxe (with-rxe does it as root)"
	[ -d /sys/module/rdma_ucm ] || [ -e /dev/infiniband/rdma_cm ]
	doctor_line $? note "rdma_ucm is loaded" "modprobe rdma_ucm (with-rxe does it as root)"
}

doctor_link() {
	local root=1
	[ "$(id -u)" = 0 ] && root=0
	native_find
	doctor_line $? note "an rxe link that can be used${native_link:+: $native_link}" \
		"${native_why} (with-rxe adds one as root)"
	[ "$native_link" ] || [ $root = 0 ]
	doctor_line $? native "an rxe link, or root to add one" \
		"run as root, or let root add one: rdma link add rxe0 type rxe netdev DEVICE"
	case $native_link,$(uname -r) in
	?*,6.1.*)
		echo "note: on Linux 6.1, when its interface was down and is up again, make the rxe" \
			"link anew (rdma link delete, rdma link add): it answers no connection"
		;;
	esac
	have rdma && rdma link show >/dev/null 2>&1
	doctor_line $? note "rdma netlink" "package iproute2, module ib_core"
}

doctor_limits() {
	local provider
	[ "$(ulimit -Hl)" = unlimited ] || [ "$(id -u)" = 0 ]
	doctor_line $? note "locked memory: $(ulimit -l) kB, at most $(ulimit -Hl)" \
		"raise memlock in /etc/security/limits.conf, or run as root"
	provider=$(compgen -G '/usr/lib*/libibverbs/librxe-rdmav*.so' ||
		compgen -G '/usr/lib*/*/libibverbs/librxe-rdmav*.so')
	[ "$provider" ] && [ -e /etc/libibverbs.d/rxe.driver ]
	doctor_line $? both "the verbs library's rxe provider" "package ibverbs-providers"
}

doctor_guest() {
	local missing accel=tcg v kernels=
	missing=$(vm_requirements | paste -sd ' ')
	[ -z "$missing" ]
	doctor_line $? vm "programs for the guest${missing:+: $missing}" "scripts/deps rxe, as root"
	[ -r /usr/share/qemu/qboot.rom ]
	doctor_line $? note "qboot.rom (a faster boot)" "package qemu-system-data"
	for v in "$cache"/*/vmlinux; do
		[ -e "$v" ] && v=${v%/vmlinux} && kernels+=" ${v##*/}"
	done
	[ "$kernels" ]
	doctor_line $? note "kernels in $cache:${kernels:- none}" "fetched when first used (70 MB)"
	[ "$kernels" ] || [ "$(kernel_package 6.1)" ]
	doctor_line $? vm "a kernel, or a package of one" "apt-get update, or give --kernel a package file"
	kvm_usable && accel=kvm
	printf 'ok: accelerator of the guest: %s%s\n' "$accel" \
		"$([ -e "$(kvm_verdict)" ] && echo ' (kvm was tried and failed)')"
	mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]
	doctor_line $? vm "cache folder $cache can be written to" "set MRFAB_RXE_CACHE"
}

doctor() {
	doctor_module
	doctor_link
	doctor_limits
	doctor_guest
	printf 'with-rxe: on this kernel: %s; in a guest: %s\n' "$doctor_native" "$doctor_vm"
	[ "$doctor_native$doctor_vm" != nono ]
}
