# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The guest's kernel and initramfs, in a cache folder:
#   CACHE/lock            flock: whoever writes below CACHE holds it
#   CACHE/VERSION/vmlinux  unpacked, because emulated unpacking takes 4 s (else the bzImage)
#   CACHE/VERSION/mod/    the modules the guest loads; list: their order; wanted: guest_modules
#   CACHE/VERSION/initrd  made of rxe-guest-init, busybox and mod/
# A VERSION folder appears whole, by rename.

cache=${MRFAB_RXE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/mrfab-rxe}

# rxe computes its packet checksums with the crc32 crypto algorithm: without
# crc32_generic, adding a link fails with ENOENT.
guest_modules=(virtio_pci virtio_console 9pnet_virtio 9p overlay dummy veth crc32_generic
	crc32-pclmul rdma_rxe rdma_ucm virtio_net)

# kernel_prepare WANTED: sets kernel_version, kernel_image and kernel_initrd. WANTED is
# 6.1, 6.12 (any prefix of a version), a folder with boot/vmlinuz-* and lib/modules, or
# a .deb file.
kernel_prepare() {
	local wanted=$1 lock
	mkdir -p "$cache" || die "cannot make the cache folder $cache (set MRFAB_RXE_CACHE)"
	exec {lock}>"$cache/lock" || die "cannot write to $cache (set MRFAB_RXE_CACHE)"
	flock "$lock"
	# What was left by somebody who was killed here.
	rm -rf "$cache"/{fetch,tree,new,root}.??????
	if [[ $wanted == */* || $wanted == *.deb || $wanted == . ]]; then
		kernel_add_path "$wanted"
	else
		[ "${kernel_update:-no}" = yes ] || kernel_version=$(kernel_cached "$wanted")
		[ "${kernel_version:-}" ] || kernel_fetch "$wanted"
	fi
	kernel_image=$cache/$kernel_version/vmlinux
	kernel_initrd=$cache/$kernel_version/initrd
	initrd_refresh "$cache/$kernel_version"
	exec {lock}>&-
}

# The newest cached version that starts with $1 and a dot or dash, if any. Two guests need all
# of guest_modules, one does with what older versions of this script left there.
kernel_cached() {
	local d
	for d in "$cache/$1"[.-]*/vmlinux; do
		[ -e "$d" ] && d=${d%/vmlinux} || continue
		[ "$vm_hosts" = 1 ] || [ "${guest_modules[*]}" = "$(cat "$d/mod/wanted" 2>/dev/null)" ] ||
			continue
		printf '%s\n' "${d##*/}"
	done | sort -V | tail -n 1
}

# The newest package of a stock (not cloud, rt, unsigned) kernel whose version starts
# with $1.
kernel_package() {
	apt-cache --names-only search '^linux-image-[0-9].*-amd64$' |
		sed 's/ - .*//' | grep -Ev -- '-(cloud|rt)-' |
		grep -E "^linux-image-${1//./\\.}(\\.[0-9]+|-[0-9])" | sort -V | tail -n 1
}

kernel_fetch() {
	local wanted=$1 package tmp
	have apt-get || die "no apt-get here: give --kernel a kernel package or its unpacked folder"
	package=$(kernel_package "$wanted")
	if [ -z "$package" ] && [ "$(id -u)" = 0 ]; then
		say "fetching the package lists (apt-get update)"
		apt-get -qq update >&2
		package=$(kernel_package "$wanted")
	fi
	[ "$package" ] || die "apt knows no package linux-image-$wanted*-amd64:" \
		"run 'apt-get update' as root, or give --kernel a .deb file"
	tmp=$(mktemp -d "$cache/fetch.XXXXXX") || die "cannot write to $cache"
	say "fetching $package into $cache"
	# As root apt would rather download as the user _apt, who cannot write there.
	if ! (cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root download "$package" >&2); then
		rm -rf "$tmp"
		die "apt-get download $package failed: no network, or stale lists (apt-get update)"
	fi
	kernel_add_deb "$tmp"/*.deb
	rm -rf "$tmp"
}

kernel_add_path() {
	if [ -d "$1" ]; then
		kernel_add_tree "$1"
	elif [ -r "$1" ]; then
		kernel_add_deb "$1"
	else
		die "--kernel $1: no such folder or package"
	fi
}

kernel_add_deb() {
	local tree
	tree=$(mktemp -d "$cache/tree.XXXXXX") || die "cannot write to $cache"
	if ! dpkg -x "$1" "$tree"; then
		rm -rf "$tree"
		die "cannot unpack $1: damaged package, or no space in $cache"
	fi
	kernel_add_tree "$tree"
	rm -rf "$tree"
}

# kernel_add_tree TREE: copies what the guest needs into CACHE/VERSION, sets
# kernel_version.
kernel_add_tree() {
	local tree=$1 image new
	image=$(printf '%s\n' "$tree"/boot/vmlinuz-* | sort -V | tail -n 1)
	[ -r "$image" ] || die "no readable boot/vmlinuz-* in $tree"
	kernel_version=${image##*/vmlinuz-}
	new=$(mktemp -d "$cache/new.XXXXXX") || die "cannot write to $cache"
	chmod 755 "$new"
	image_unpack "$image" "$new/vmlinux" || cp "$image" "$new/vmlinux"
	if ! modules_copy "$tree" "$new/mod"; then
		rm -rf "$new"
		die "the kernel $kernel_version in $tree lacks a module that rxe needs"
	fi
	rm -rf "${cache:?}/$kernel_version"
	mv "$new" "$cache/$kernel_version"
}

# image_unpack BZIMAGE TO: the ELF file in it, which QEMU can start directly (PVH).
# Fails if that cannot be found, or unpacked with the tools here.
image_unpack() {
	local image=$1 to=$2 setup offset length tool
	setup=$(image_field "$image" 0x1f1 1)
	offset=$(image_field "$image" 0x248 4)
	length=$(image_field "$image" 0x24c 4)
	offset=$(((setup + 1) * 512 + offset))
	case $(image_field "$image" "$offset" 4) in
	1484404733) tool=xz ;;
	4247762216) tool=zstd ;;
	559903) tool=gzip ;;
	*) return 1 ;;
	esac
	have $tool || return 1
	# The last 4 bytes are the unpacked size, no part of the compressed stream.
	tail -c +$((offset + 1)) "$image" | head -c $((length - 4)) | $tool -dc >"$to" || return 1
	[ "$(head -c 4 "$to")" = $'\x7fELF' ]
}

# image_field FILE OFFSET SIZE: a little-endian number.
image_field() {
	od -An -v -j "$(($2))" -N "$3" -t "u$3" "$1" | tr -d ' '
}

# modules_copy TREE TO: guest_modules and what they depend on, decompressed, in loading
# order.
modules_copy() {
	local tree=$1 to=$2 f base
	mkdir -p "$to"
	[ -e "$tree/lib" ] || ln -s usr/lib "$tree/lib" || return 1
	[ -e "$tree/lib/modules/$kernel_version/modules.dep" ] ||
		depmod -b "$tree" "$kernel_version" || return 1
	modules_order "$tree" >"$to/list.in" || return 1
	while read -r f; do
		base=${f##*/}
		base=${base%.ko*}.ko
		module_unpack "$f" >"$to/$base" || return 1
		printf '%s\n' "$base" >>"$to/list"
	done <"$to/list.in"
	rm "$to/list.in"
	echo "${guest_modules[*]}" >"$to/wanted"
}

# The files of guest_modules and of their dependencies, each after those it needs.
modules_order() {
	local m out=
	for m in "${guest_modules[@]}"; do
		out+=$(modprobe -d "$1" -S "$kernel_version" --show-depends "$m")$'\n' || return 1
	done
	awk '$1 == "insmod" && !seen[$2]++ { print $2 }' <<<"$out"
}

module_unpack() {
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*.gz) gzip -dc "$1" ;;
	*) cat "$1" ;;
	esac
}

# initrd_refresh DIR: (re)makes DIR/initrd when it is older than what it is made of.
initrd_refresh() {
	local dir=$1 root a
	local init=$libdir/../rxe-guest-init
	[ "$dir/initrd" -nt "$init" ] && [ "$dir/initrd" -nt "$dir/mod/list" ] && return
	root=$(mktemp -d "$cache/root.XXXXXX") || die "cannot write to $cache"
	mkdir -p "$root"/{bin,dev,proc,sys,newroot,host,ov}
	cp "$(command -v busybox)" "$root/bin/busybox"
	for a in sh mount insmod mkdir switch_root sed echo sleep; do
		ln -s busybox "$root/bin/$a"
	done
	cp -r "$dir/mod" "$root/mod"
	cp "$init" "$root/init"
	chmod 755 "$root/init" "$root"
	(cd "$root" && find . -print0 | cpio -0 -o -H newc --quiet --owner=0:0) >"$dir/initrd.new" ||
		die "cannot make the initramfs in $dir"
	mv "$dir/initrd.new" "$dir/initrd"
	rm -rf "$root"
}
