# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Runs a command on the running kernel's own rxe.
#
# If there is no rxe link, one is made over a dummy device called mrfab0. Everybody who
# uses it holds the lock file shared; who can take it exclusively on leaving is the
# last, and removes it.

native_lock_file=/run/lock/mrfab-rxe.lock
native_dummy=mrfab0
native_lock=
native_link=		# the rxe device found
native_why=		# why there is none that can be used
native_pid=

# native_reason: true if the running kernel's rxe can be used; else native_why says why
# not.
native_reason() {
	local n
	if ! native_module; then
		native_why="Linux $(uname -r) has no rdma_rxe module${native_why:+ ($native_why)}"
		return 1
	fi
	if [ "$(id -u)" = 0 ]; then
		mkdir -p "${native_lock_file%/*}" && exec {native_lock}<>"$native_lock_file"
	elif [ -r "$native_lock_file" ]; then
		exec {native_lock}<"$native_lock_file"
	fi
	for ((n = 0; n < 3; n++)); do
		native_obtain || return 1
		# Between the two kinds of lock somebody may have removed the link.
		[ -z "$native_lock" ] || flock -s "$native_lock"
		[ -e "/sys/class/infiniband/$native_link" ] && return
	done
	native_why="the rxe link comes and goes"
	return 1
}

native_module() {
	[ -d /sys/module/rdma_rxe ] && return
	if [ "$(id -u)" != 0 ]; then
		native_why="not loaded, and only root can load it: modprobe rdma_rxe"
		return 1
	fi
	# modprobe -q succeeds without a module, too.
	have modprobe && module_exists && modprobe -q rdma_rxe && modprobe -q rdma_ucm
}

module_exists() {
	[ "$(modinfo -F name rdma_rxe 2>/dev/null)" = rdma_rxe ]
}

# Finds or makes a link, under the exclusive lock.
native_obtain() {
	[ -z "$native_lock" ] || flock "$native_lock"
	native_find && return
	if [ "$(id -u)" != 0 ]; then
		native_why="$native_why; only root can add one"
		return 1
	fi
	native_add && native_find && return
	native_remove
	return 1
}

# Sets native_link to a usable rxe device, or native_why.
native_find() {
	local d
	native_why="there is no rxe link"
	for d in /sys/class/infiniband/*; do
		# Only rxe (and siw) have a parent network device here.
		[ -r "$d/parent" ] || continue
		native_link_usable "${d##*/}" "$(<"$d/parent")" || continue
		native_link=${d##*/}
		native_why=
		return
	done
	return 1
}

native_link_usable() {
	local dev=$1 netdev=$2 verbs node
	if ! grep -q ACTIVE "/sys/class/infiniband/$dev/ports/1/state"; then
		native_why="$dev is not active: ip link set $netdev up"
	elif ! ip -o addr show dev "$netdev" scope global 2>/dev/null | grep -q inet; then
		native_why="$netdev under $dev has no address but link-local ones: ip addr add ..."
	else
		for verbs in /sys/class/infiniband_verbs/uverbs*; do
			[ "$(<"$verbs/ibdev")" = "$dev" ] || continue
			for node in "${verbs##*/}" rdma_cm; do
				[ -r "/dev/infiniband/$node" ] && [ -w "/dev/infiniband/$node" ] && continue
				native_why="no access to /dev/infiniband/$node (modprobe rdma_ucm, udev rules)"
				return 1
			done
			return 0
		done
		native_why="$dev has no /dev/infiniband/uverbs*: modprobe ib_uverbs"
	fi
	return 1
}

native_add() {
	local name=rxe0
	[ -e /sys/class/infiniband/rxe0 ] && name=rxe_mrfab
	if [ -n "$(ip -o route show 10.99.1.0/24)" ]; then
		native_why="10.99.1.0/24 is in use: add an rxe link yourself (rdma link add)"
		return 1
	fi
	if ! { ip link add "$native_dummy" mtu 4200 type dummy &&
		ip link set "$native_dummy" up && ip addr add 10.99.1.1/24 dev "$native_dummy" &&
		ip addr add 10.99.1.2/24 dev "$native_dummy"; } 2>/dev/null; then
		native_why="cannot add a dummy network device (CAP_NET_ADMIN?)"
		return 1
	fi
	# A machine may have IPv6 switched off.
	ip addr add fd00:99::1/64 dev "$native_dummy" nodad 2>/dev/null
	if ! rdma link add $name type rxe netdev "$native_dummy" 2>/dev/null; then
		native_why="rdma link add $name failed (crc32 missing? another network namespace?)"
		return 1
	fi
	[ -w /dev/infiniband/rdma_cm ] || modprobe -q rdma_ucm
}

# Removes what native_add made, if nobody else uses it.
native_remove() {
	local d
	[ "$native_lock" ] && [ "$(id -u)" = 0 ] && flock -n "$native_lock" || return
	for d in /sys/class/infiniband/*; do
		[ -r "$d/parent" ] || continue
		[ "$(<"$d/parent")" = "$native_dummy" ] || continue
		# The kernel waits for whoever still has the device open.
		timeout 10 rdma link delete "${d##*/}" ||
			warn "cannot remove ${d##*/}: somebody still uses it"
	done
	[ -e "/sys/class/net/$native_dummy" ] && ip link delete "$native_dummy"
	flock -u "$native_lock"
}

native_signal() {
	[ -z "$native_pid" ] || kill -s "$1" "$native_pid" 2>/dev/null
}

# native_run COMMAND...: does not return.
native_run() {
	local rc began log
	say "Linux $(uname -r) itself, $native_link"
	trap native_remove EXIT
	trap 'native_signal INT' INT
	trap 'native_signal TERM' TERM
	trap 'native_signal HUP' HUP
	ulimit -l unlimited 2>/dev/null || warn "cannot lift the locked memory limit ($(ulimit -l) kB)"
	log=$(mktemp) || die "cannot make a temporary file"
	echo "mrfab-rxe: command starts" 2>/dev/null >/dev/kmsg || dmesg_check=no
	began=$EPOCHREALTIME
	native_command "$@"
	native_wait
	rc=$?
	say "command $(seconds "$began" "$EPOCHREALTIME") s, status $rc"
	if dmesg >"$log" 2>/dev/null; then
		[ -z "$keep_dmesg" ] || cp "$log" "$keep_dmesg"
		[ "$dmesg_check" = yes ] && dmesg_warned "$log" && [ $rc = 0 ] && rc=90
	fi
	rm -f "$log"
	exit $rc
}

# A background job of a script ignores SIGINT and reads /dev/null: undo both.
native_command() {
	local limit=()
	[ -z "$vm_timeout" ] || limit=(timeout -k 5 "$vm_timeout")
	if [ -e /dev/fd/3 ]; then
		env --default-signal=INT,QUIT "${limit[@]}" "$@" <&3 3<&- {native_lock}>&- &
	else
		env --default-signal=INT,QUIT "${limit[@]}" "$@" </dev/null {native_lock}>&- &
	fi
	native_pid=$!
}

native_wait() {
	local rc
	while :; do
		wait "$native_pid"
		rc=$?
		kill -0 "$native_pid" 2>/dev/null || return $rc
	done
}
