# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# with-rxe --hosts 2: two guests on one network. Each has a process here that does for it
# what with-rxe does for a single one (rxe-vm.sh); this file starts the two, lets them wait
# for each other, joins what they write and sums up.
#
# The network is a connected pair of datagram sockets: a frame is neither lost nor cut, a full
# buffer holds the sender up, and frames to a guest that is gone are dropped. Its two file
# descriptors come in the environment (hosts_network).
#
# The folder hosts_dir:
#   out.N err.N   fifos, what host N writes; rxe-lines joins them line by line
#   pid.N         the process of host N
#   POINT.N       host N has come to POINT (host_meet)

hosts_dir=
hosts_pids=()
hosts_joins=()

# hosts_network ARGUMENT...: starts with-rxe anew with MRFAB_RXE_NETWORK="FD FD". The shell has
# no way to make such a pair.
hosts_network() {
	have perl || die "missing: perl"
	# shellcheck disable=SC2016 # perl's variables
	exec perl -MSocket -e '$^F = 255;
		socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0) or die "socketpair: $!\n";
		$ENV{MRFAB_RXE_NETWORK} = join " ", fileno $a, fileno $b;
		exec { $ARGV[0] } @ARGV' "$BASH" "$libdir/../with-rxe" "$@"
}

# hosts_run COMMAND...: does not return.
hosts_run() {
	local host rc=0 lan0 lan1
	read -r lan0 lan1 <<<"$MRFAB_RXE_NETWORK"
	vm_prepare
	trap hosts_clean EXIT
	hosts_dir=$(mktemp -d "$(job_base)/mrfab-rxe.XXXXXX") || die "cannot make a temporary folder"
	hosts_join
	# As jobs of their own they do not get the terminal's Ctrl-C: we pass it on, once.
	set -m
	for host in 0 1; do
		host_run "$host" "$@" &
		hosts_pids[host]=$!
		echo $! >"$hosts_dir/pid.$host"
	done
	set +m
	trap 'hosts_signal INT' INT
	trap 'hosts_signal TERM' TERM
	trap 'hosts_signal HUP' HUP
	exec {lan0}>&- {lan1}>&-
	for host in 1 0; do
		host_await "$host" || rc=$?
	done
	wait "${hosts_joins[@]}"
	exit $rc
}

# Makes the fifos and starts what joins the lines: one for each of our streams.
hosts_join() {
	local stream streams=(out)
	[ /dev/fd/1 -ef /dev/fd/2 ] || streams+=(err)
	for stream in "${streams[@]}"; do
		mkfifo "$hosts_dir/$stream".{0,1}
		if [ "$stream" = err ]; then
			exec {hosts_to}>&2
		else
			exec {hosts_to}>&1
		fi
		"$libdir/rxe-lines" "$hosts_label" "$hosts_dir/$stream".{0,1} >&"$hosts_to" \
			3<&- {lan0}>&- {lan1}>&- {hosts_to}>&- &
		hosts_joins+=($!)
		exec {hosts_to}>&-
	done
	if [ "$stream" = out ]; then
		ln -s out.0 "$hosts_dir/err.0"
		ln -s out.1 "$hosts_dir/err.1"
	fi
}

# host_run HOST COMMAND...: in a process of its own, with its end of the network only.
host_run() {
	local dir=$hosts_dir
	set +m
	vm_host=$1
	vm_address=10.99.2.$((vm_host + 1))
	shift
	prog="$prog: host $vm_host"
	exec >"$dir/out.$vm_host" 2>"$dir/err.$vm_host"
	if [ "$vm_host" = 0 ]; then
		vm_lan=$lan0
		exec {lan1}>&-
	else
		vm_lan=$lan1
		exec {lan0}>&- 3</dev/null
	fi
	[ -z "$keep_dmesg" ] || keep_dmesg+=.$vm_host
	run_in_vm "$@"
}

# host_await HOST: its status.
host_await() {
	local pid=${hosts_pids[$1]}
	while kill -0 "$pid" 2>/dev/null; do
		wait "$pid"
	done 2>/dev/null
	wait "$pid"
}

hosts_signal() {
	kill -s "$1" "${hosts_pids[@]}" 2>/dev/null
}

hosts_clean() {
	local pid
	for pid in "${hosts_pids[@]}" "${hosts_joins[@]}"; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in "${hosts_joins[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$hosts_dir"
}

# host_variables: what the command's environment has more, NUL-terminated.
host_variables() {
	local me=$((vm_host + 1)) it=$((2 - vm_host))
	printf '%s\0' "MRFAB_HOSTS=2" "MRFAB_HOST=$vm_host" \
		"MRFAB_HOST_ADDR=10.99.2.$me" "MRFAB_PEER_ADDR=10.99.2.$it" \
		"MRFAB_HOST_ADDR6=fd00:99:2::$me" "MRFAB_PEER_ADDR6=fd00:99:2::$it"
}

# host_meet POINT: waits until the other one has come there too. Fails if it never will.
host_meet() {
	local other=$((1 - vm_host))
	: >"$hosts_dir/$1.$vm_host"
	until [ -e "$hosts_dir/$1.$other" ]; do
		host_orphaned
		kill -0 "$(<"$hosts_dir/pid.$other")" || [ -e "$hosts_dir/$1.$other" ] || return
		sleep 0.1
	done 2>/dev/null
}

# Ends this host when who started it is no more, and nobody waits for it.
host_orphaned() {
	kill -0 $$ 2>/dev/null && return
	rm -rf "$hosts_dir"
	exit 125
}
