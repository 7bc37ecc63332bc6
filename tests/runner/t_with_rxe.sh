#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests of scripts/with-rxe. Prints "ok NAME" or "not ok NAME" for each and a count;
# exit status 1 if any failed. Usage: t_with_rxe.sh [KERNEL...] (6.1 and 6.12)
#
# The kernels run at the same time: a guest that boots uses one processor. What does not
# depend on the kernel is done on one of them only.

# shellcheck disable=SC2016 # what is in single quotes is for the guest
set -u
here=$(dirname "$(readlink -f "$0")")
runner=$here/../../scripts/with-rxe
work=
kernel=
signal_options=()
# shellcheck source=tests/runner/checks.sh
. "$here/checks.sh"

rxe() {
	"$runner" --quiet --kernel "$kernel" "$@"
}

# Whatever QEMU serves our folder: none may be left.
qemus() {
	grep -lsaf <(echo "mrfab.job=$TMPDIR/") /proc/[0-9]*/cmdline | wc -l
}

leftovers_check() {
	local n
	for ((n = 0; n < 20; n++)); do
		[ "$(qemus)" = 0 ] && [ -z "$(ls "$TMPDIR")" ] && break
		sleep 0.1
	done
	same "$1: no QEMU and no folder left" "0 " "$(qemus) $(ls "$TMPDIR")"
}

# One boot answers many questions.
t_device() {
	local out
	out=$(rxe --timeout 120 -- bash -c 'rdma link show; ibv_devices; ip -o addr show dev dummy0
		cat /sys/class/infiniband/rxe0/ports/1/{state,gids/*} | sort -u; ulimit -l
		ls -l /dev/infiniband /dev/fd /dev/shm -d; uname -r; hostname; getent hosts localhost
		: </dev/kmsg && echo kmsg-readable
		echo "<6>traps: prog[9] general protection fault ip:401106 sp:7ffd0 error:0" >/dev/kmsg
		rping -s -a 10.99.1.1 -C 3 &
		until rping -c -a 10.99.1.1 -C 3 -v; do sleep 0.3; done; wait; echo rping over' 2>&1)
	same "a protection fault of a program is no warning of the kernel" 0 $?
	grep -q 'rxe0/1 state ACTIVE' <<<"$out"
	check "rdma link shows rxe0 active" $?
	grep -qE '^ +rxe0' <<<"$out"
	check "ibv_devices shows rxe0" $?
	[[ $out == *10.99.1.1/24*10.99.1.2/24*fd00:99::1/64* ]]
	check "addresses" $?
	grep -qi 'ffff:0a63:0101' <<<"$out" && grep -q '^fd00:0099:' <<<"$out"
	check "IPv4 and IPv6 GIDs" $?
	grep -qx unlimited <<<"$out"
	check "locked memory unlimited" $?
	grep -q "^${kernel/./\\.}\\." <<<"$out"
	check "kernel version" $?
	grep -q localhost <<<"$out" && grep -q kmsg-readable <<<"$out"
	check "localhost and /dev/kmsg" $?
	grep -q '^rping over' <<<"$out"
	check "rping over 10.99.1.1" $?
}

t_streams() {
	rxe -- bash -c 'printf "o\0ut" ; printf "e\1rr" >&2; exit 7' >"$work/out" 2>"$work/err"
	same "exit status" 7 $?
	same "stdout is byte-exact" "$(printf 'o\0ut' | od -c)" "$(od -c "$work/out")"
	same "stderr is separate and byte-exact" $'e\1rr' "$(<"$work/err")"
	rxe -- bash -c 'for i in {1..500}; do echo o$i; echo e$i >&2; done' >"$work/both" 2>&1
	for i in {1..500}; do printf 'o%d\ne%d\n' "$i" "$i"; done | cmp - "$work/both"
	check "stdout and stderr keep their order when they are one file" $?
	rxe -- no-such-command 2>/dev/null
	same "no such command" 127 $?
	rxe -- "$work" 2>/dev/null
	same "not a program" 126 $?
}

t_environment() {
	local odd out
	odd=$'a b\n"c"\t$d \\ \xff*\x01'
	same "environment" "$(ODD=$odd EMPTY='' env -0 | tr '\0' '\n' | grep -av '^_=' | md5sum)" \
		"$(ODD=$odd EMPTY='' rxe -- env -0 | tr '\0' '\n' | grep -av '^_=' | md5sum)"
	out=$(umask 027; ulimit -Sn 777; rxe -- bash -c 'umask; ulimit -Sn; pwd; printf "<%s>" "$@"' \
		0 'a b' '' $'new\nline' '*' -x --quiet '"')
	same "umask, limits, directory, arguments" \
		"0027"$'\n777\n'"$PWD"$'\n<a b><><new\nline><*><-x><--quiet><">' "$out"
}

t_files() {
	local out
	echo machine >"$work/seen"
	mkdir -p sub other
	out=$(rxe --share other -- bash -c 'cat "$1/seen"; echo guest >"$1/hidden"; mkdir sub/d
		echo new >sub/d/f; chmod 640 sub/d/f; mv seen.in sub/; ln -s f sub/d/l; echo x >other/x
		echo y >>appended; rm gone' 0 "$work" 2>&1 <<<'' )
	same "a file in the temporary folder is seen, missing ones are reported" \
		machine "$(head -n 1 <<<"$out")"
	[ ! -e "$work/hidden" ]
	check "writes elsewhere are forgotten" $?
	same "files below the working directory stay" "new 640 $(id -u) f x" \
		"$(cat sub/d/f) $(stat -c '%a %u' sub/d/f) $(readlink sub/d/l) $(cat other/x)"
	[ -e sub/seen.in ] && [ ! -e seen.in ] && [ ! -e gone ]
	check "renames and removals stay" $?
	same "appending keeps what was there" $'old\ny' "$(<appended)"
}

t_build() {
	cat >prog.c <<-'END'
		#include <fcntl.h>
		#include <stdio.h>
		#include <sys/mman.h>
		#include <unistd.h>
		int main(void)
		{
			int fd = open("mapped", O_RDWR | O_CREAT, 0644);
			char c = 0, *p;
			if (fd < 0 || ftruncate(fd, 10000))
				return 1;
			p = mmap(0, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			if (p == MAP_FAILED)
				return 2;
			p[9999] = 'M';
			return pread(fd, &c, 1, 9999) != 1 || c != 'M';
		}
	END
	printf 'prog: prog.c\n\tcc -o $@ $<\n' >Makefile
	rxe -- bash -c 'make -s && ./prog'
	same "make, and a shared writable mapping" 0 $?
	same "the mapping reached the machine" "10000 M" \
		"$(stat -c %s mapped) $(tail -c 1 mapped)"
}

t_big() {
	head -c 10485760 /dev/urandom >"$work/big"
	rxe -- bash -c 'cat "$0" & cat >&2; wait' "$work/big" <"$work/big" >"$work/big.out" \
		2>"$work/big.err"
	cmp "$work/big" "$work/big.out"
	check "10 MB of stdout" $?
	cmp "$work/big" "$work/big.err"
	check "10 MB of stdin to stderr" $?
	same "a pipe as stdin" $'a\nb' "$(printf 'a\nb' | rxe -- cat)"
	same "no stdin" "" "$(rxe -- cat </dev/null)"
	same "closed stdin" "" "$(rxe -- cat <&-)"
	rxe -- sh -c 'yes' | head -n 2 >/dev/null
	same "reader that leaves" 141 "${PIPESTATUS[0]}"
}

t_time() {
	local rc out began=$SECONDS
	rxe --timeout 2 -- sleep 100 2>/dev/null
	rc=$?
	same "timeout" 124 $rc
	[ $((SECONDS - began)) -lt 60 ]
	check "timeout in time" $?
	rxe --timeout 2 -- bash -c 'trap "" TERM; while :; do sleep 1; done' 2>/dev/null
	same "timeout of a command that ignores SIGTERM" 124 $?
	leftovers_check "timeout"
	out=$(rxe -- bash -c 'sleep 1000 & echo started; kill -SEGV $$')
	same "command that dies of a signal" 139 $?
	same "background process does not hold it" started "$out"
}

# signal_test SIGNAL WANTED COMMAND...
signal_test() {
	local sig=$1 wanted=$2 pid rc
	shift 2
	# What an earlier one wrote would have it killed before it is even started.
	rm -f "$work/out"
	# env: a background job of a script ignores SIGINT.
	env --default-signal=INT "$runner" --quiet --kernel "$kernel" "${signal_options[@]}" -- "$@" \
		>"$work/out" &
	pid=$!
	ready_await $pid
	kill -s "$sig" $pid
	wait $pid
	rc=$?
	same "SIG$sig is passed on: ${signal_options[*]} $*" "$wanted" $rc
	leftovers_check "SIG$sig"
}

# ready_await PID: waits for as many lines with "ready" as there are hosts.
ready_await() {
	local hosts=1
	[ "${#signal_options[@]}" = 0 ] || hosts=2
	until [ "$(grep -cs ready "$work/out")" = $hosts ] || ! kill -0 "$1"; do
		sleep 0.2
	done 2>/dev/null
}

# SIGKILL of the runner itself.
signal_kill() {
	local pid n
	rm -f "$work/out"
	"$runner" --quiet --kernel "$kernel" "${signal_options[@]}" -- \
		bash -c 'echo ready; sleep 100' >"$work/out" &
	pid=$!
	ready_await $pid
	kill -KILL $pid
	wait $pid 2>/dev/null
	for ((n = 0; n < 50; n++)); do
		[ "$(qemus)" != 0 ] || break
		sleep 0.2
	done
	same "SIGKILL of the runner leaves no QEMU: ${signal_options[*]}" 0 "$(qemus)"
	rm -rf "${TMPDIR:?}"/*
}

t_signals() {
	signal_test TERM 143 bash -c 'echo ready; exec sleep 100'
	signal_test INT 130 bash -c 'echo ready; exec sleep 100'
	signal_test TERM 5 bash -c 'trap "exit 5" TERM; echo ready; while :; do sleep 0.1; done'
	local pid
	"$runner" --quiet --kernel "$kernel" -- sleep 100 &
	pid=$!
	sleep 2
	kill -TERM $pid
	wait $pid
	same "SIGTERM while it boots" 143 $?
	leftovers_check "SIGTERM while it boots"
	signal_kill
}

warned='<4>WARNING: CPU: 0 PID: 1 at made up by a test'

t_kernel_log() {
	rxe -- bash -c 'echo "$0" >/dev/kmsg' "$warned" 2>"$work/err"
	same "a kernel warning makes a success status 90" 90 $?
	grep -q 'made up by a test' "$work/err"
	check "the warning is shown" $?
	rxe -- bash -c 'echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 100' \
		2>"$work/err"
	same "guest panic" 91 $?
	grep -q 'sysrq triggered crash' "$work/err"
	check "the panic is shown" $?
	leftovers_check "guest panic"
}

t_kernel_log_options() {
	rxe -- bash -c 'echo "$0" >/dev/kmsg; exit 3' "<4>general protection fault, probably made up" \
		2>"$work/err"
	same "a kernel warning keeps a failure's status" 3 $?
	grep -q 'probably made up' "$work/err"
	check "a protection fault of the kernel is a warning" $?
	rxe --no-dmesg-check --keep-dmesg "$work/dmesg" -- bash -c 'echo "$0" >/dev/kmsg' "$warned"
	same "--no-dmesg-check" 0 $?
	grep -q 'Linux version' "$work/dmesg" && grep -q 'made up by a test' "$work/dmesg"
	check "--keep-dmesg" $?
}

t_refusals() {
	(cd / && rxe -- true 2>"$work/err")
	same "the root folder as working directory" 125 $?
	grep -q 'holds the system' "$work/err"
	check "says why" $?
	rxe --cpus none -- true 2>/dev/null
	same "bad number" 125 $?
	rxe --no-such-option 2>/dev/null
	same "bad option" 125 $?
	rxe 2>/dev/null
	same "no command" 125 $?
	kernel=/nonexistent rxe -- true 2>/dev/null
	same "no such kernel" 125 $?
	rxe --hosts 3 -- true 2>/dev/null
	same "three hosts" 125 $?
	rxe --hosts 2 --icount -- true 2>"$work/err"
	same "two hosts that count instructions" 125 $?
	grep -q 'time of their own' "$work/err"
	check "says why" $?
	kernel=native rxe --hosts 2 -- true 2>"$work/err"
	same "two hosts on the running kernel" 125 $?
	grep -q 'needs guests' "$work/err"
	check "says why" $?
}

# A loaded machine delivers a line of the guest in two parts, with a timeout between them.
t_lines() {
	# shellcheck disable=SC2034 # vm_line's
	local ctl_out line vm_partial=
	# shellcheck source=/dev/null
	. "$here/../../scripts/lib/rxe-vm.sh"
	mkfifo "$work/fifo"
	exec {ctl_out}<>"$work/fifo"
	printf 'ru' >&"$ctl_out"
	! vm_line
	check "half a line is no line" $?
	printf 'n\nrc 5\n' >&"$ctl_out"
	vm_line
	same "the other half completes it" run "$line"
	vm_line
	same "the next line" "rc 5" "$line"
	exec {ctl_out}>&-
}

t_parallel() {
	local a b
	rxe -- bash -c 'sleep 1; exit 11' & a=$!
	rxe -- bash -c 'sleep 1; exit 12' & b=$!
	wait $a
	a=$?
	wait $b
	same "two at a time" "11 12" "$a $?"
}

# In the guest the kernel has rxe: the runner there is native.
t_native() {
	local out
	out=$(rxe -- bash -c '"$0" --kernel native -- rdma link; echo status $?
		"$0" --doctor; echo doctor $?; chmod 600 /dev/infiniband/uverbs0
		echo nobody; setpriv --reuid 65534 --clear-groups "$0" --doctor' "$runner" 2>&1)
	[[ $out == *rxe0/1*"status 0"* ]]
	check "native with a link" $?
	[[ $out == *"doctor 0"* ]]
	check "--doctor" $?
	grep -q '^ok: .*rxe0' <<<"$out" && grep -qx 'ok: rdma_rxe is loaded' <<<"$out" &&
		grep -qx 'ok: access to /dev/infiniband/uverbs0' <<<"$out"
	check "--doctor finds rxe0" $?
	grep -q '^missing for this kernel: access to /dev/infiniband/uverbs0 -> it is root:.* 600: chmod' \
		<<<"${out#*nobody}"
	check "--doctor of one who has no access to its node says so" $?
	same "--doctor tells of a link that has to be made anew" 'while dummy0 is down' \
		"$(grep -o '^note: after .*the link is made anew' <<<"${out%nobody*}" | grep -o 'while.*down')"
	out=$(rxe -- bash -c 'rdma link delete rxe0; ip link del dummy0
		"$0" -- bash -c "rdma link; ip -o addr; exit 9"; echo status $?
		rdma link; ip -o link; echo end' "$runner" 2>&1)
	[[ $out == *rxe0/1*10.99.1.1/24*"status 9"* ]] && [[ $out != *"status 9"*mrfab* ]] &&
		[[ $out != *"status 9"*rxe0* ]]
	check "native without a link: added and removed" $?
	"$runner" --doctor >"$work/out"
	same "--doctor on this machine" 0 $?
	grep -q 'in a guest: yes$' "$work/out" && ! grep '^missing: \|guest:.* -> ' "$work/out"
	check "--doctor misses nothing for a guest that can be had" $?
}

# hosts COMMAND...: the same on two hosts.
hosts() {
	rxe --hosts 2 "$@"
}

# of_host N FILE: that host's lines in a file of labelled ones, without the labels.
of_host() {
	sed -n "s/^$1: //p" "$2"
}

# One boot, and a program that tries everything.
t_hosts() {
	local rc n
	cat >two.sh <<-'END'
		for i in {1..300}; do
			printf 'o%d\0%.*d\n' $i $((i * 30)) $MRFAB_HOST
			printf 'e%d %d\n' $i $MRFAB_HOST >&2
		done
		printf '%s\n' "$MRFAB_HOST of $MRFAB_HOSTS $ODD" >env.$MRFAB_HOST
		ip -o addr show dev eth0 | grep -qw "$MRFAB_HOST_ADDR/24" && echo 4 >>env.$MRFAB_HOST
		ip -o addr show dev eth0 | grep -qw "$MRFAB_HOST_ADDR6/64" && echo 6 >>env.$MRFAB_HOST
		ibv_devinfo -d rxe0 | sed -n 's/^.*active_mtu:\s*//p' >>env.$MRFAB_HOST
		if [ $MRFAB_HOST = 1 ]; then
			cat >stdin.1
			rping -s -a $MRFAB_HOST_ADDR -C 3 -S 5000
			rping -s -a $MRFAB_HOST_ADDR6 -C 3 -S 5000
			sleep 3
			# The other one's command has ended; its kernel still refuses connections.
			(: 3<>/dev/tcp/$MRFAB_PEER_ADDR/9) 2>&1 | grep -om 1 refused >alive.1
			printf 'last'
			exit 6
		fi
		cat >stdin.0
		until rping -c -a $MRFAB_PEER_ADDR -C 3 -S 5000; do sleep 0.3; done 2>/dev/null
		until rping -c -a $MRFAB_PEER_ADDR6 -C 3 -S 5000; do sleep 0.3; done 2>/dev/null
		echo over both >rping.0
	END
	ODD='odd one' hosts --timeout 90 --label --keep-dmesg "$work/dmesg" -- bash two.sh >"$work/out" \
		2>"$work/err" <<<'for host 0'
	rc=$?
	same "two hosts: status is that of host 1 if host 0 has 0" 6 $rc
	for n in 0 1; do
		same "host $n: environment, addresses, MTU" "$n of 2 odd one 4 6 4096 (5)" \
			"$(paste -sd ' ' env.$n)"
		for i in {1..300}; do printf 'o%d\0%.*d\n' "$i" $((i * 30)) $n; done >"$work/want"
		of_host $n "$work/out" | grep -a '^o' | cmp - "$work/want"
		check "host $n: stdout comes by whole lines, byte for byte" $?
		for i in {1..300}; do printf 'e%d %d\n' "$i" $n; done >"$work/want"
		of_host $n "$work/err" | grep '^e[0-9]' | cmp - "$work/want"
		check "host $n: stderr" $?
		grep -q 'Linux version' "$work/dmesg.$n"
		check "host $n: --keep-dmesg" $?
	done
	same "a last line without a newline" "1: last" "$(tail -n 1 "$work/out" | od -An -c | tr -d ' \n' |
		sed 's/:/: /')"
	same "stdin is host 0's" "for host 0|" "$(<stdin.0)|$(<stdin.1)"
	same "RDMA connections between the hosts, IPv4 and IPv6" "over both" "$(cat rping.0)"
	same "a host stays up until both commands have ended" refused "$(<alive.1)"
	leftovers_check "two hosts"
}

# What ends one does not end the other.
t_hosts_apart() {
	local out rc
	out=$(hosts --timeout 20 -- bash -c 'cd / && if [ $MRFAB_HOST = 1 ]; then sleep 100; else
		echo 1 >/proc/sys/kernel/sysrq; sleep 1; echo c >/proc/sysrq-trigger; sleep 100
		fi' 2>&1)
	same "guest panic on host 0" 91 $?
	grep -q 'sysrq triggered crash' <<<"$out" && grep -q '^with-rxe: host 0: the guest died' <<<"$out"
	check "the panic is shown, and whose it is" $?
	grep -q '^with-rxe: host 1: the command ran longer than 20 s' <<<"$out"
	rc=$?
	check "host 1 goes on, until its time is over" $rc
	[ $rc = 0 ] || grep '^with-rxe: ' <<<"$out"
	out=$(hosts -- bash -c 'for i in {1..100}; do echo o$i; echo e$i >&2; done
		[ $MRFAB_HOST = 0 ] || exit 3
		echo "$0" >/dev/kmsg' "$warned" 2>&1)
	same "a kernel warning on host 0 makes a success status 90" 90 $?
	for i in {1..100}; do printf 'o%d\no%d\ne%d\ne%d\n' "$i" "$i" "$i" "$i"; done | sort >"$work/want"
	grep '^[oe][0-9]' <<<"$out" | sort | diff "$work/want" - >"$work/diff"
	rc=$?
	head -n 5 "$work/diff"
	check "two hosts: all lines when stdout and stderr are one file" $rc
	leftovers_check "two hosts, apart"
}

t_hosts_signals() {
	signal_options=(--hosts 2 --label --timeout 60)
	signal_test INT 130 bash -c 'trap "echo got INT; exit 5" INT; echo ready $MRFAB_HOST
		[ $MRFAB_HOST = 1 ] || exec sleep 100; while :; do sleep 0.1; done'
	same "the other host gets it too" "1: got INT" "$(grep INT "$work/out")"
	signal_kill
	signal_options=()
}

# run_kernel KERNEL TEST...: leaves "TESTS FAILED" in $work/sum.
run_kernel() {
	local t began
	kernel=$1
	shift
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	export TMPDIR=$work/tmp
	mkdir -p "$work/cwd" "$TMPDIR"
	cd "$work/cwd" || exit 1
	echo in >seen.in
	echo old >appended
	: >gone
	for t in "$@"; do
		began=$SECONDS
		"t_$t"
		echo "t_with_rxe: ${t}[$kernel] took $((SECONDS - began)) s"
	done
	leftovers_check "in the end"
	echo "$count $failed" >&"$sums"
}

# The tests of kernel number $1 of $2 kernels, one a line.
tests_of() {
	local n=0 t
	local each=(device kernel_log)
	# Those next to each other take about as long.
	local once=(streams big time signals hosts_apart hosts_signals native files
		hosts environment parallel build kernel_log_options refusals lines)
	printf '%s\n' "${each[@]}"
	for t in "${once[@]}"; do
		[ $((n++ % $2)) != "$1" ] || printf '%s\n' "$t"
	done
}

main() {
	local n=0 k tests sum sums
	[ $# -gt 0 ] || set -- 6.1 6.12
	sum=$(mktemp)
	exec {sums}>"$sum"
	for k in "$@"; do
		mapfile -t tests < <(tests_of "$n" $#)
		[ -z "${MRFAB_RUNNER_TESTS:-}" ] || read -ra tests <<<"$MRFAB_RUNNER_TESTS"
		(run_kernel "$k" "${tests[@]}") &
		n=$((n + 1))
	done
	wait
	awk -v kernels=$# '{ tests += $1; failed += $2 }
		END {
			printf "%d tests, %d failed\n", tests, failed
			exit failed || NR != kernels
		}' "$sum"
	n=$?
	rm "$sum"
	return $n
}

main "$@"
