# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# with-rxe --doctor: one line per thing that is needed, and what to do if it is missing.
# Changes nothing. Status 0 if a command can be run in some way.

doctor_native=yes
doctor_vm=yes

# doctor_line STATUS WAY WHAT ADVICE: STATUS 0: WHAT is there. Without it WAY (native, vm, both)
# cannot be used.
doctor_line() {
	local for=''
	if [ "$1" = 0 ]; then
		printf 'ok: %s\n' "$3"
		return
	fi
	case $2 in
	native) doctor_native=no for=' for this kernel' ;;
	vm) doctor_vm=no for=' for the guest' ;;
	both) doctor_native=no doctor_vm=no ;;
	esac
	printf 'missing%s: %s -> %s\n' "$for" "$3" "$4"
}

# doctor_note STATUS WHAT WITHOUT ADVICE: the same for what is not vital; WITHOUT is said when it is
# not there.
doctor_note() {
	if [ "$1" = 0 ]; then
		printf 'ok: %s\n' "$2"
	else
		printf 'note: %s -> %s\n' "$3" "$4"
	fi
}

doctor_module() {
	local m here=0
	[ -d /sys/module/rdma_rxe ] || module_exists || here=1
	doctor_line $here native "module rdma_rxe for the running kernel $(uname -r)" \
		"a kernel that has it (CONFIG_RDMA_RXE), or the guest"
	[ $here = 0 ] || return 1
	for m in rdma_rxe rdma_ucm; do
		[ -d /sys/module/$m ]
		doctor_note $? "$m is loaded" "$m is not loaded" "modprobe $m (with-rxe does it as root)"
	done
	return 0
}

doctor_link() {
	local root=1
	[ "$(id -u)" = 0 ] && root=0
	native_find
	doctor_note $? "an rxe link that can be used: $native_link" "no rxe link that can be used" \
		"$native_why (with-rxe adds one as root)"
	[ "$native_link" ] || [ $root = 0 ]
	doctor_line $? native "an rxe link, or root to add one" \
		"run as root, or let root add one: rdma link add rxe0 type rxe netdev DEVICE"
	have rdma && rdma link show >/dev/null 2>&1
	doctor_note $? "RDMA netlink answers" "RDMA netlink does not answer" \
		"package iproute2, module ib_core"
	[ "$native_link" ] || return
	doctor_link_down
}

# Linux 6.1, 6.12 and 7.3 are alike in this.
doctor_link_down() {
	local netdev
	netdev=$(<"/sys/class/infiniband/$native_link/parent")
	echo "note: after an attempt to connect while $netdev is down, rxe answers no connection until the link" \
		"is made anew: rdma link delete $native_link; rdma link add $native_link type rxe netdev $netdev"
}

# Nodes that programs open; the link may be there, and its nodes for root only.
doctor_nodes() {
	local node
	[ -d /sys/class/infiniband_verbs ] || return
	for node in /dev/infiniband/rdma_cm $(uverbs_nodes); do
		[ -r "$node" ] && [ -w "$node" ]
		doctor_line $? native "access to $node" "$(node_advice "$node")"
	done
}

uverbs_nodes() {
	local verbs
	for verbs in /sys/class/infiniband_verbs/uverbs*; do
		[ ! -e "$verbs" ] || echo "/dev/infiniband/${verbs##*/}"
	done
}

# node_advice NODE: what root has to do about it.
node_advice() {
	local module=ib_uverbs
	[[ $1 != */rdma_cm ]] || module=rdma_ucm
	if [ -e "$1" ]; then
		echo "it is $(stat -c '%U:%G %a' "$1"): chmod 666 $1, or a udev rule" \
			"(package rdma-core has one)"
	else
		echo "modprobe $module; if it is loaded, udev makes the node"
	fi
}

doctor_limits() {
	local provider
	[ "$(ulimit -Hl)" = unlimited ] || [ "$(id -u)" = 0 ]
	doctor_note $? "locked memory: $(ulimit -l) kB, at most $(ulimit -Hl)" \
		"locked memory: $(ulimit -l) kB, at most $(ulimit -Hl)" \
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
	doctor_line $? vm "programs for the guest${missing:+: $missing}" "$deps rxe, as root"
	[ -r /usr/share/qemu/qboot.rom ]
	doctor_note $? "qboot.rom (a faster boot)" "no qboot.rom (a faster boot)" "package qemu-system-data"
	for v in "$cache"/[0-9]*/vmlinux; do
		[ -e "$v" ] && v=${v%/vmlinux} && kernels+=" ${v##*/}"
	done
	[ "$kernels" ]
	doctor_note $? "kernels in $cache:$kernels" "no kernel in $cache yet" \
		"fetched when first used (70 to 120 MB)"
	[ "$kernels" ] || { have apt-get && have apt-cache; }
	doctor_line $? vm "a kernel, or apt to fetch one" "give --kernel the folder of one that has rdma_rxe:\
 / is the one that is installed here, for instance"
	kvm_usable && accel=kvm
	printf 'ok: accelerator of the guest: %s%s\n' "$accel" \
		"$([ -e "$(kvm_verdict)" ] && echo ' (kvm was tried and failed)')"
	mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]
	doctor_line $? vm "cache folder $cache can be written to" "set MRFAB_RXE_CACHE"
}

doctor() {
	if doctor_module; then
		doctor_link
		doctor_nodes
	fi
	doctor_limits
	doctor_guest
	printf 'with-rxe: on this kernel: %s; in a guest: %s\n' "$doctor_native" "$doctor_vm"
	[ "$doctor_native$doctor_vm" != nono ]
}
