# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Kernel packages: which of them apt offers, and fetching them.
#
# A kernel is one package (Debian up to 6.18), or several with the same version in their names:
# linux-image-V, linux-binary-V, linux-modules-V and linux-base-V on newer Debians,
# linux-image-V, linux-modules-V and linux-modules-extra-V on Ubuntu. linux-image-V names the
# others as what it depends on, except linux-modules-extra-V.
#
# What the machine's own package lists do not offer comes from Debian's archive, through a
# second configuration of apt that needs no root and leaves the machine's own alone.

# The kernels that the tests run on. Others are taken if apt offers none of these.
kernels_known=(6.1 6.12 7.2 7.3)
archive=${MRFAB_RXE_MIRROR:-http://deb.debian.org/debian}
archive_newest=trixie-backports		# where `--kernel newest` comes from
apt_options=()
kernel_parts=()		# the packages of the kernel that was found

# archive_suite WANTED: which release of Debian has it.
archive_suite() {
	case $1 in
	6.1 | 6.1.*) echo bookworm ;;
	'' | 6.12 | 6.12.*) echo trixie ;;
	*) echo "$archive_newest" ;;
	esac
}

# version_matches VERSION WANTED: WANTED is a whole version or the beginning of one, "newest", or
# nothing.
version_matches() {
	[[ $2 == newest || -z $2 || $1 == "$2" || $1 == "$2"[.+-]* ]]
}

# versions_best_first WANTED: those of stdin that match, the best first: the newest; where
# nothing is asked for, the newest of kernels_known before all others.
versions_best_first() {
	local v known rank
	while read -r v; do
		version_matches "$v" "$1" || continue
		rank=0
		for known in "${kernels_known[@]}"; do
			[ "$1" ] || ! version_matches "$v" "$known" || rank=1
		done
		printf '%d %s\n' $rank "$v"
	done | sort -k1,1nr -k2,2Vr | cut -d ' ' -f 2
}

# The versions of all stock kernels that apt offers: not cloud, rt, unsigned.
kernel_versions() {
	apt-cache "${apt_options[@]}" --names-only search '^linux-image-[0-9].*-(amd64|generic)$' |
		sed -n 's/^linux-image-\([^ ]*\) - .*/\1/p' | grep -Ev -- '-(cloud|rt)-'
}

# kernel_parts_find VERSION: sets kernel_parts. Fails if one of them is not offered: an archive
# may have lost some of an older kernel's.
kernel_parts_find() {
	local version=$1 relation name
	kernel_parts=("linux-image-$version")
	while read -r relation name; do
		[[ $relation == *Depends: && $name == linux-*-"$version"?(>) ]] || continue
		# apt-cache puts the name of what nobody offers in angle brackets.
		[[ $name != *'>' ]] || return
		kernel_parts+=("$name")
	done < <(apt-cache "${apt_options[@]}" depends "linux-image-$version" | tr -d '|<')
	name=linux-modules-extra-$version
	! apt-cache "${apt_options[@]}" show "$name" >/dev/null 2>&1 || kernel_parts+=("$name")
}

# kernel_offered WANTED: sets kernel_parts to those of the best kernel that is offered whole.
kernel_offered() {
	local version versions
	mapfile -t versions < <(kernel_versions | versions_best_first "$1")
	for version in "${versions[@]}"; do
		kernel_parts_find "$version" && return
	done
	return 1
}

# kernel_find WANTED FOLDER: sets kernel_parts and apt_options; FOLDER is for package lists.
kernel_find() {
	apt_options=()
	if [ "$1" != newest ]; then
		kernel_offered "$1" && return
		if [ "$(id -u)" = 0 ]; then
			say "fetching the package lists (apt-get update)"
			patiently "fetching the package lists" apt-get -qq update >&2
			kernel_offered "$1" && return
		fi
	fi
	archive_open "$(archive_suite "$1")" "$2"
	kernel_offered "$1" || die "neither the package lists here nor $archive" \
		"$(archive_suite "$1") offer a kernel ${1:-that is known}: give --kernel a folder or a package"
}

# archive_open SUITE FOLDER: turns apt_options to a release of Debian's archive.
archive_open() {
	local keyring=/usr/share/keyrings/debian-archive-keyring
	[ -r "$keyring.gpg" ] && keyring+=.gpg || keyring+=.pgp
	[ -r "$keyring" ] || die "the package lists here offer no such kernel, and Debian's keys, to" \
		"trust its archive, are missing (package debian-archive-keyring)"
	mkdir -p "$2/lists/partial"
	echo "deb [signed-by=$keyring] $archive $1 main" >"$2/sources.list"
	apt_options=(-o "Dir::Etc::sourcelist=$2/sources.list" -o Dir::Etc::sourceparts=-
		-o "Dir::State::lists=$2/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
		-o Acquire::Languages=none -o APT::Sandbox::User=root)
	say "fetching the package lists of Debian's $1"
	apt_try "$2" "cannot fetch the package lists of $archive $1" "${apt_options[@]}" update
}

# kernel_download WANTED FOLDER: leaves the packages in FOLDER.
kernel_download() {
	have apt-get && have apt-cache || die "there is no apt here to fetch a kernel with: give" \
		"--kernel the folder of one that has rdma_rxe; / is the one that is installed"
	kernel_find "$1" "$2"
	say "fetching ${kernel_parts[*]}"
	# As root apt would rather download as the user _apt, who cannot write there.
	cd "$2" || die "cannot write to $cache"
	apt_try . "cannot fetch ${kernel_parts[*]}" -o APT::Sandbox::User=root "${apt_options[@]}" \
		download "${kernel_parts[@]}"
}

# apt_try FOLDER COMPLAINT ARGUMENT...: apt's own words say why it fails, but it does not say what
# to do about it. FOLDER is where it writes.
apt_try() {
	local said complaint=$2 folder=$1
	shift 2
	said=$(mktemp)
	patiently "fetching" apt_quietly "$said" "$@" && rm -f "$said" && return
	said=$(cat "$said" && rm -f "$said")
	printf '%s\n' "$said" >&2
	if folder_full "$folder" || grep -qiE 'no space left|enough free space' <<<"$said"; then
		die "$complaint: $(disk_full)"
	fi
	die "$complaint: no network, or stale package lists (run 'apt-get update' as root)"
}

# apt_quietly FILE ARGUMENT...: what apt says goes there.
apt_quietly() {
	local said=$1
	shift
	apt-get -qq "$@" >"$said" 2>&1
}

disk_full() {
	echo "the disk of $cache is full (a kernel needs up to 600 MB there while it is unpacked)"
}

# folder_full FOLDER: nothing more fits on its disk.
folder_full() {
	local full
	! head -c 65536 /dev/zero 2>/dev/null >"$1/.space"
	full=$?
	rm -f "$1/.space"
	return $full
}
