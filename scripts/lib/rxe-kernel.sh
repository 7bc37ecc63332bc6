# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The guest's kernel and initramfs, in a cache folder:
#   CACHE/lock            flock: whoever writes below CACHE holds it
#   CACHE/VERSION/vmlinux  unpacked, because emulated unpacking takes 4 s (else the bzImage)
#   CACHE/VERSION/mod/    the modules the guest loads; list: their order; wanted: guest_modules
#   CACHE/VERSION/initrd  made of rxe-guest-init, busybox and mod/
#   CACHE/newest          a link to the VERSION that `--kernel newest` found
#   CACHE/tmp.*           where one is being made
# A VERSION folder appears whole, by rename.

cache=${MRFAB_RXE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/mrfab-rxe}

# A module is a file, or built into the kernel. Older kernels' rxe computes its checksums with
# the crc32 crypto algorithm: there adding a link fails with ENOENT without crc32_generic. Newer
# kernels have no such module. veth is for tests.
guest_modules=(virtio_pci virtio_console 9pnet_virtio 9p overlay dummy veth crc32_generic
	crc32-pclmul rdma_rxe rdma_ucm virtio_net)
guest_modules_optional=(veth crc32_generic crc32-pclmul)

# kernel_prepare WANTED: sets kernel_version, kernel_image and kernel_initrd. WANTED is a version
# or its beginning (6.1, 6.12), "newest", a folder, a .deb file, or nothing: the best that is in the
# cache, else the best that can be fetched.
kernel_prepare() {
	local wanted=$1 lock
	mkdir -p "$cache" || die "cannot make the cache folder $cache (set MRFAB_RXE_CACHE)"
	exec {lock}>"$cache/lock" || die "cannot write to $cache (set MRFAB_RXE_CACHE)"
	flock "$lock"
	# What was left by somebody who was killed here.
	rm -rf "$cache"/{fetch,tree,new,root,tmp}.??????
	if kernel_is_path "$wanted"; then
		[ -r "$wanted" ] || die "--kernel $wanted: no such folder or package"
	elif [ "${kernel_update:-no}" = no ]; then
		kernel_version=$(kernel_cached "$wanted")
	fi
	: "${kernel_version:=$(kernel_make "$wanted")}"
	[ "$kernel_version" ] || exit 125
	[ "$wanted" != newest ] || ln -sfn "$kernel_version" "$cache/newest"
	kernel_image=$cache/$kernel_version/vmlinux
	kernel_initrd=$cache/$kernel_version/initrd
	initrd_refresh "$cache/$kernel_version"
	exec {lock}>&-
}

kernel_is_path() {
	[[ $1 == */* || $1 == *.deb || $1 == . ]]
}

# The best cached version that matches, if any. Two guests need all of guest_modules, one does
# with what older versions of this script left there.
kernel_cached() {
	local d
	if [ "$1" = newest ]; then
		[ ! -e "$cache/newest/vmlinux" ] || readlink "$cache/newest"
		return
	fi
	for d in "$cache"/[0-9]*/vmlinux; do
		[ -e "$d" ] && d=${d%/vmlinux} || continue
		[ "$vm_hosts" = 1 ] || [ "${guest_modules[*]}" = "$(cat "$d/mod/wanted" 2>/dev/null)" ] ||
			continue
		printf '%s\n' "${d##*/}"
	done | versions_best_first "$1" | head -n 1
}

# kernel_make WANTED: makes CACHE/VERSION, prints VERSION. In a process of its own, which leaves
# nothing else in the cache however it ends.
kernel_make() (
	tmp=$(mktemp -d "$cache/tmp.XXXXXX") || die "cannot write to $cache"
	trap 'rm -rf "$tmp"' EXIT
	mkdir "$tmp/fetched" "$tmp/tree" "$tmp/new"
	if [ -d "$1" ]; then
		kernel_add_tree "$(cd "$1" && pwd -P)"
	elif kernel_is_path "$1"; then
		kernel_add_debs "$1"
	else
		(kernel_download "$1" "$tmp/fetched") || exit
		kernel_add_debs "$tmp"/fetched/*.deb
	fi
)

kernel_add_debs() {
	local deb
	for deb in "$@"; do
		dpkg -x "$deb" "$tmp/tree" && continue
		folder_full "$tmp" && die "cannot unpack $deb: $(disk_full)"
		die "cannot unpack $deb: it is not a complete Debian package"
	done
	kernel_add_tree "$tmp/tree"
}

# kernel_add_tree TREE: makes CACHE/VERSION of the newest kernel there, prints VERSION.
kernel_add_tree() {
	local version image modules why
	tree_search "$1"
	image_unpack "$image" "$tmp/new/vmlinux" || cp "$image" "$tmp/new/vmlinux" || copy_failed
	modules_root "$modules"
	modules_copy "$tmp/new/mod"
	chmod 755 "$tmp/new"
	rm -rf "${cache:?}/$version"
	mv "$tmp/new" "$cache/$version" && echo "$version"
}

copy_failed() {
	folder_full "$tmp" && die "cannot make the guest's kernel: $(disk_full)"
	die "cannot make the guest's kernel in $cache"
}

# tree_search TREE: sets version, image and modules (a folder). A kernel is
# boot/vmlinuz-VERSION or lib/modules/VERSION/vmlinuz, its modules are in lib/modules/VERSION;
# lib may be usr/lib.
tree_search() {
	local m i
	while read -r m; do
		for i in "$1/boot/vmlinuz-${m##*/}" "$m/vmlinuz"; do
			[ -e "$i" ] || continue
			[ -r "$i" ] || die "no access to the kernel $i (root has it)"
			version=${m##*/} image=$i modules=$m
			return
		done
	done < <(printf '%s\n' "$1"/{usr/,}lib/modules/* | awk -F / '{ print $NF, $0 }' |
		sort -rV | cut -d ' ' -f 2-)
	die "no kernel in $1: neither boot/vmlinuz-VERSION nor lib/modules/VERSION/vmlinuz," \
		"with modules in lib/modules/VERSION (or usr/lib/modules/VERSION)"
}

# modules_root MODULES: makes tmp/root, where depmod and modprobe find them. A package has not
# been through depmod; the folder itself is not ours to write to.
modules_root() {
	mkdir -p "$tmp/root/usr/lib/modules"
	ln -s usr/lib "$tmp/root/lib"
	if [ -e "$1/modules.dep.bin" ]; then
		ln -s "$1" "$tmp/root/lib/modules/$version"
	else
		cp -rs "$1" "$tmp/root/lib/modules/$version" &&
			depmod -b "$tmp/root" "$version" || copy_failed
	fi
}

# modules_copy TO: guest_modules and what they depend on, decompressed, in loading order.
modules_copy() {
	local to=$1 f base
	mkdir -p "$to"
	modules_order >"$tmp/list" || exit
	: >"$to/list"
	while read -r f; do
		base=${f##*/}
		base=${base%.ko*}.ko
		module_unpack "$f" >"$to/$base" || copy_failed
		printf '%s\n' "$base" >>"$to/list"
	done <"$tmp/list"
	echo "${guest_modules[*]}" >"$to/wanted"
}

# The files of guest_modules and of their dependencies, each after those it needs.
modules_order() {
	local m steps out=
	for m in "${guest_modules[@]}"; do
		if steps=$(modprobe -d "$tmp/root" -S "$version" --show-depends "$m" 2>&1); then
			out+=$steps$'\n'
		elif [[ " ${guest_modules_optional[*]} " != *" $m "* ]]; then
			die "the kernel $version lacks the module $m, which the guest needs: $steps"
		fi
	done
	awk '$1 == "insmod" && !seen[$2]++ { print $2 }' <<<"$out"
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
	local init=$libdir/../rxe-guest-init
	[ "$1/initrd" -nt "$init" ] && [ "$1/initrd" -nt "$1/mod/list" ] && return
	(initrd_make "$1" "$init") || exit
}

# initrd_make DIR INIT: in a process of its own, as kernel_make.
initrd_make() {
	local dir=$1 root a
	tmp=$(mktemp -d "$cache/tmp.XXXXXX") || die "cannot write to $cache"
	trap 'rm -rf "$tmp"' EXIT
	root=$tmp/root
	mkdir -p "$root"/{bin,dev,proc,sys,newroot,host,ov}
	cp "$(command -v busybox)" "$root/bin/busybox" && cp -r "$dir/mod" "$root/mod" &&
		cp "$2" "$root/init" || copy_failed
	for a in sh mount insmod mkdir switch_root sed echo sleep; do
		ln -s busybox "$root/bin/$a"
	done
	chmod 755 "$root/init" "$root"
	(cd "$root" && find . -print0 | cpio -0 -o -H newc --quiet --owner=0:0) >"$tmp/initrd" ||
		copy_failed
	mv "$tmp/initrd" "$dir/initrd"
}
