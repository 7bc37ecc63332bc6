#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests of how scripts/with-rxe finds a kernel: which one it takes, from where, in which shape, and
# what it says and leaves behind when it cannot. apt is made up: nothing here needs a network. The
# kernel is a cached one, put together anew. Usage: t_kernel.sh [KERNEL] (6.1)

# shellcheck disable=SC2030,SC2031 # each case has a shell and variables of its own
set -u
here=$(dirname "$(readlink -f "$0")")
runner=$here/../../scripts/with-rxe
libdir=$here/../../scripts/lib
# shellcheck source=tests/runner/checks.sh
. "$here/checks.sh"
prog=with-rxe
kernel=
vm_hosts=1
for part in say packages rxe-fetch rxe-kernel rxe-native rxe-vm rxe-doctor; do
	# shellcheck source=/dev/null
	. "$libdir/$part.sh"
done
real=$(kernel_cached "${1:-6.1}")
real_at=$cache/$real

# --- the apt that is made up
# $work/offer has a line for each package: its name, and the packages it depends on. What is not
# in it can still be depended on. $work/asked: how apt was called.

apt_make() {
	mkdir -p "$work/bin" "$work/debs"
	cat >"$work/bin/apt-cache" <<-'END'
		#!/bin/bash
		echo "apt-cache $*" >>"$WORK/asked"
		offer=$WORK/offer
		[[ $* != *sourcelist=* ]] || offer=$WORK/offer.archive
		args=()
		while [ $# -gt 0 ]; do
			case $1 in -o) shift ;; -*) ;; *) args+=("$1") ;; esac
			shift
		done
		case ${args[0]} in
		search) awk '{ print $1 }' "$offer" | grep -E "${args[1]}" | sed 's/$/ - a kernel/' ;;
		show) grep -q "^${args[1]//+/[+]}\( \|$\)" "$offer" || exit 100 ;;
		depends)
			read -ra line < <(grep "^${args[1]//+/[+]} " "$offer")
			echo "${args[1]}"
			for d in "${line[@]:1}"; do
				grep -q "^${d//+/[+]}\( \|$\)" "$offer" && echo "  Depends: $d" || echo "  Depends: <$d>"
			done
			;;
		esac
	END
	cat >"$work/bin/apt-get" <<-'END'
		#!/bin/bash
		echo "apt-get $*" >>"$WORK/asked"
		[ ! -e "$WORK/apt-says" ] || { cat "$WORK/apt-says"; exit 100; }
		[[ $* == *" download "* ]] || exit 0
		all=$*
		set -- ${all##* download }
		for p in "$@"; do cp "$WORK/debs/$p.deb" . || exit 100; done
	END
	chmod +x "$work/bin"/*
	: >"$work/offer"
	: >"$work/offer.archive"
	: >"$work/asked"
	export WORK=$work
}

# offers LINE...: what the machine's lists offer.
offers() {
	printf '%s\n' "$@" >"$work/offer"
}

# chosen WANTED: the packages that would be fetched.
chosen() {
	(
		PATH=$work/bin:$PATH
		quiet=yes
		kernel_find "$1" "$work/lists" && echo "${kernel_parts[*]}"
	) 2>&1
}

t_choice() {
	offers linux-image-6.1.0-9-amd64 linux-image-6.1.0-56-amd64 linux-image-6.1.0-56-cloud-amd64 \
		linux-image-6.1.0-56-amd64-dbg linux-image-6.12.117+deb12-amd64 \
		linux-image-6.16.3+deb13-amd64 linux-image-6.12.200+deb12-rt-amd64 linux-image-amd64
	same "the newest of a version" linux-image-6.1.0-56-amd64 "$(chosen 6.1)"
	same "a whole version" linux-image-6.1.0-9-amd64 "$(chosen 6.1.0-9-amd64)"
	same "nothing asked for: the newest that is known, not the newest" \
		linux-image-6.12.117+deb12-amd64 "$(chosen '')"
	offers linux-image-9.9.1-amd64 linux-image-9.10.1-amd64
	same "nothing asked for, none known: the newest" linux-image-9.10.1-amd64 "$(chosen '')"
	local v=7.2.6+deb13-amd64 w=7.2.9+deb13-amd64
	offers "linux-image-$v initramfs-tools linux-base-$v linux-binary-$v linux-modules-$v" \
		initramfs-tools "linux-base-$v" "linux-binary-$v" "linux-modules-$v" \
		"linux-image-$w linux-base-$w linux-binary-$w linux-modules-$w" "linux-binary-$w"
	same "a kernel in parts, and not a newer one of which parts are gone" \
		"linux-image-$v linux-base-$v linux-binary-$v linux-modules-$v" "$(chosen 7.2)"
	v=6.8.0-31-generic
	offers "linux-image-$v linux-modules-$v kmod" "linux-modules-$v" "linux-modules-extra-$v" kmod \
		linux-image-6.8.0-31-lowlatency "linux-image-unsigned-$v"
	same "the names that Ubuntu gives them" \
		"linux-image-$v linux-modules-$v linux-modules-extra-$v" "$(chosen '')"
	same "the archive was not looked at" "" "$(grep sourcelist= "$work/asked")"
	[ -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		[ -r /usr/share/keyrings/debian-archive-keyring.pgp ] || return
	printf '%s\n' linux-image-7.3.4+deb13-amd64 linux-image-6.1.0-60-amd64 >"$work/offer.archive"
	same "what is not offered here comes from the archive" linux-image-6.1.0-60-amd64 "$(chosen 6.1)"
	same "newest: the archive's" linux-image-7.3.4+deb13-amd64 "$(chosen newest)"
	[[ $(chosen 5.10) == *"offer a kernel 5.10: give --kernel"* ]]
	check "a kernel that nobody offers" $?
}

t_packages() {
	offers libclang-rt-dev clang
	same "a package that has another name here" "clang libclang-rt-dev" \
		"$(PATH=$work/bin:$PATH packages_offered clang "libclang-rt-14-dev|libclang-rt-dev" | paste -sd ' ')"
	packages[made_up]="coreutils no-such-package|bash no-such-package libc++"
	same "one of its names is installed" "no-such-package libc++" \
		"$(packages_missing made_up | paste -sd ' ')"
}

# taken WANTED: which version kernel_prepare takes, or what it says.
taken() {
	(
		PATH=$work/bin:$PATH
		cache=$work/cache
		quiet=yes
		kernel_prepare "$1" && echo "$kernel_version"
	) 2>&1
}

# cached VERSION...: the cache has these, and nothing else.
cached() {
	local v
	rm -rf "$work/cache"
	for v in "$@"; do
		mkdir -p "$work/cache/$v/mod"
		echo "${guest_modules[*]}" >"$work/cache/$v/mod/wanted"
		touch "$work/cache/$v"/{vmlinux,mod/list}
	done
}

t_cached() {
	: >"$work/asked"
	cached 6.1.0-9-amd64 6.1.0-56-amd64 6.12.117+deb12-amd64 9.9.1-amd64
	same "cached: the newest of a version" 6.1.0-56-amd64 "$(taken 6.1)"
	same "cached: the newest that is known" 6.12.117+deb12-amd64 "$(taken '')"
	same "cached: one that is not known, asked for" 9.9.1-amd64 "$(taken 9.9)"
	ln -s 9.9.1-amd64 "$work/cache/newest"
	same "cached: what newest was when it was fetched" 9.9.1-amd64 "$(taken newest)"
	cached 9.9.1-amd64
	same "cached: the only one" 9.9.1-amd64 "$(taken '')"
	same "what is cached is taken without a look at the network" "" "$(<"$work/asked")"
}

# --- trees

# tree_make TREE IMAGE MODULES: a tree with the real kernel: IMAGE is its file, MODULES the folder
# lib/modules.
tree_make() {
	local tree=$1 image=$1/$2 modules=$1/$3/$real
	rm -rf "$tree"
	mkdir -p "${image%/*}" "$modules/kernel"
	cp "$real_at/vmlinux" "$image"
	cp "$real_at"/mod/*.ko "$modules/kernel"
	# Dependencies on what the guest does not load are none.
	: >"$modules/modules.order"
	: >"$modules/modules.builtin"
	: >"$modules/modules.builtin.modinfo"
}

# The cache has what it had: this version, and nothing half done.
cache_holds() {
	find "$work/cache" -mindepth 1 -maxdepth 1 ! -name lock ! -name 'kvm-*' -printf '%f ' | sed 's/ $//'
}

t_trees() {
	local layout tree=$work/tree before
	for layout in "boot/vmlinuz-$real lib/modules" "lib/modules/$real/vmlinuz lib/modules" \
		"usr/lib/modules/$real/vmlinuz usr/lib/modules" "boot/vmlinuz-$real usr/lib/modules"; do
		cached
		# shellcheck disable=SC2086 # two words
		tree_make "$tree" $layout
		before=$(find "$tree" | sort)
		same "a folder with $layout" "$real" "$(taken "$tree")"
		cmp -s "$work/cache/$real/vmlinux" "$real_at/vmlinux" &&
			diff <(sort "$real_at/mod/list") <(sort "$work/cache/$real/mod/list")
		check "  the kernel and its modules are in the cache" $?
		same "  nothing is written to the folder" "$before" "$(find "$tree" | sort)"
	done
	same "  nothing else is in the cache" "$real" "$(cache_holds)"
}

t_modules() {
	local tree=$work/tree modules=lib/modules
	tree_make "$tree" "boot/vmlinuz-$real" $modules
	modules=$tree/$modules/$real
	cached
	rm -f "$modules"/kernel/{veth,crc32_generic,crc32-pclmul,virtio_net}.ko
	echo kernel/drivers/net/virtio_net.ko >"$modules/modules.builtin"
	same "a module that is built in, and some that are gone" "$real" "$(taken "$tree")"
	[ -s "$work/cache/$real/mod/list" ] && ! grep -E 'virtio_net|veth|crc32_' "$work/cache/$real/mod/list"
	check "  the guest does not load them" $?
	cached
	rm "$modules/kernel/rdma_rxe.ko"
	[[ $(taken "$tree") == *"lacks the module rdma_rxe"* ]]
	check "without rdma_rxe it is of no use" $?
	same "  nothing is in the cache" "" "$(cache_holds)"
	rm "$tree/boot"/*
	[[ $(taken "$tree") == *"no kernel in $tree: neither boot/vmlinuz-VERSION"* ]]
	check "modules without a kernel" $?
}

# --- packages

# deb_make NAME TREE: a package of the files there.
deb_make() {
	mkdir -p "$2/DEBIAN"
	printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: a test\nDescription: test\n' \
		"$1" >"$2/DEBIAN/control"
	dpkg-deb -Znone -b "$2" "$work/debs/$1.deb" >/dev/null
}

# As Ubuntu parts them: most modules are in one package, rdma_rxe in another.
debs_make() {
	local tree=$work/tree modules=lib/modules/$real
	rm -rf "$work"/{tree,image,modules,extra} "$work"/debs/*
	tree_make "$tree" "boot/vmlinuz-$real" lib/modules
	mkdir -p "$work/image" "$work/modules" "$work/extra/$modules/kernel"
	mv "$tree/boot" "$work/image"
	mv "$tree/$modules/kernel/rdma_rxe.ko" "$work/extra/$modules/kernel"
	mv "$tree/lib" "$work/modules"
	deb_make "linux-image-$real" "$work/image"
	deb_make "linux-modules-$real" "$work/modules"
	deb_make "linux-modules-extra-$real" "$work/extra"
	offers "linux-image-$real linux-modules-$real" "linux-modules-$real" "linux-modules-extra-$real"
}

t_fetched() {
	cached
	debs_make
	same "a kernel in parts boots and has its rxe0" "$real rxe0" "$(PATH=$work/bin:$PATH \
		MRFAB_RXE_CACHE=$work/cache "$runner" --quiet --kernel "${real%%-*}" -- \
		bash -c 'echo "$(uname -r) $(ls /sys/class/infiniband)"')"
	same "only it is in the cache" "$real" "$(cache_holds)"
}

t_failures() {
	local out
	cached
	debs_make
	echo damaged >"$work/debs/linux-modules-extra-$real.deb"
	out=$(taken "$real")
	[[ $out == *"linux-modules-extra-$real.deb: it is not a complete Debian package"* ]]
	check "a damaged package" $?
	same "  nothing is left in the cache" "" "$(cache_holds)"
	echo "E: Could not resolve 'deb.debian.org'" >"$work/apt-says"
	out=$(taken "$real")
	[[ $out == *"Could not resolve"*"no network, or stale package lists"* ]]
	check "no network: apt's own words, and what to do" $?
	echo "E: You don't have enough free space in /var/cache/apt/archives/." >"$work/apt-says"
	out=$(taken "$real")
	[[ $out == *"enough free space"*"the disk of $work/cache is full"* && $out != *"no network"* ]]
	check "apt finds no space: the disk is full, and the network is not blamed" $?
	rm "$work/apt-says"
	same "  nothing is left in the cache" "" "$(cache_holds)"
	out=$(no_apt taken 9.9)
	[[ $out == *"no apt here"*"give --kernel the folder"*"/ is the one that is installed"* ]]
	check "no apt: what to give instead" $?
}

# no_apt COMMAND...: as on a machine where no apt is installed.
no_apt() {
	(
		# shellcheck disable=SC2317,SC2329 # called by what is under test
		have() {
			[[ $1 != apt-* ]] && command -v "$1" >/dev/null
		}
		"$@"
	)
}

# A cache on a disk with little space: what is there fits, or does not.
t_full() {
	local out mb
	debs_make
	if ! unshare -m true 2>/dev/null; then
		echo "skip a full disk: needs root, to mount a small one"
		return
	fi
	cached
	mkdir "$work/cache"
	for mb in 1 100; do
		out=$(unshare -m bash -c 'mount -t tmpfs -o size="$1m" small "$2/cache" && shift 2 && "$@"
			echo "status $?"; ls "$WORK/cache"' small $mb "$work" env PATH="$work/bin:$PATH" \
			MRFAB_RXE_CACHE="$work/cache" "$runner" --kernel "${real%%-*}" -- true 2>&1)
		[[ $out == *"disk of $work/cache is full"*"status 125"$'\nlock' && $out != *network* ]]
		check "a disk of $mb MB is full; nothing is left there" $?
	done
	mkdir "$work/small"
	out=$(unshare -m bash -c 'mount -t tmpfs -o size=48k small "$1" && shift && "$@"
		echo "status $?"; ls "$WORK/small"' small "$work/small" env TMPDIR="$work/small" \
		"$runner" --kernel "${1:-6.1}" -- true 2>&1)
	same "a full TMPDIR: it is said, and nothing is left there" \
		"with-rxe: the disk of $work/small is full (set TMPDIR)"$'\nstatus 125' "$out"
}

main() {
	local t
	[ "$real" ] || die "no kernel ${1:-6.1} in $cache"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	apt_make
	for t in ${MRFAB_RUNNER_TESTS:-packages choice cached trees modules failures full fetched}; do
		"t_$t" "$@"
	done
	echo "$count tests, $failed failed"
	[ "$failed" = 0 ]
}

main "$@"
