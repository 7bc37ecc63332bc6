#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests of scripts/with-rxe. Prints "ok NAME" or "not ok NAME" for each and a count;
# exit status 1 if any failed. Usage: t_with_rxe.sh [KERNEL...] (6.1 and 6.12)

# shellcheck disable=SC2016 # what is in single quotes is for the guest
set -u
here=$(dirname "$(readlink -f "$0")")
runner=$here/../../scripts/with-rxe
count=0
failed=0
work=
kernel=

rxe() {
	"$runner" --quiet --kernel "$kernel" "$@"
}

# check NAME STATUS: reports a test whose commands ended with STATUS.
check() {
	count=$((count + 1))
	if [ "$2" = 0 ]; then
		printf 'ok %s %s\n' "$kernel" "$1"
	else
		printf 'not ok %s %s\n' "$kernel" "$1"
		failed=$((failed + 1))
	fi
}

# same NAME WANTED GOT
same() {
	[ "$2" = "$3" ]
	local rc=$?
	[ $rc = 0 ] || printf '  wanted: %q\n  got:    %q\n' "$2" "$3"
	check "$1" $rc
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
	out=$(rxe -- bash -c 'rdma link show; ibv_devices; ip -o addr show dev dummy0
		cat /sys/class/infiniband/rxe0/ports/1/{state,gids/*} | sort -u; ulimit -l
		ls -l /dev/infiniband /dev/fd /dev/shm -d; uname -r; hostname; getent hosts localhost
		: </dev/kmsg && echo kmsg-readable')
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
}

t_rdma_cm() {
	local out
	out=$(rxe -- bash -c 'rping -s -a 10.99.1.1 -C 3 & sleep 2
		rping -c -a 10.99.1.1 -C 3 -v; rc=$?; wait; echo rping $rc' 2>&1)
	grep -q '^rping 0' <<<"$out"
	check "rping over 10.99.1.1" $?
}

t_streams() {
	local out rc
	out=$(rxe -- bash -c 'printf "o\0ut" ; printf "e\1rr" >&2; exit 7' 2>"$work/err" | od -c)
	same "stdout is byte-exact" "$(printf 'o\0ut' | od -c)" "$out"
	same "stderr is separate and byte-exact" $'e\1rr' "$(<"$work/err")"
	rxe -- bash -c 'exit 7'
	rc=$?
	same "exit status" 7 "$rc"
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
	out=$(ODD=$odd EMPTY='' rxe -- env -0 | tr '\0' '\n' | md5sum)
	same "environment" "$(ODD=$odd EMPTY='' env -0 | tr '\0' '\n' | grep -av '^_=' | md5sum)" \
		"$(ODD=$odd EMPTY='' rxe -- env -0 | tr '\0' '\n' | grep -av '^_=' | md5sum)"
	[ "$out" ]
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
	rxe -- cat "$work/big" | cmp - "$work/big"
	check "10 MB of stdout" $?
	rxe -- bash -c 'cat >&2' <"$work/big" 2>"$work/big.err"
	cmp "$work/big" "$work/big.err"
	check "10 MB of stdin to stderr" $?
	same "a pipe as stdin" $'a\nb' "$(printf 'a\nb' | rxe -- cat)"
	same "no stdin" "" "$(rxe -- cat </dev/null)"
	same "closed stdin" "" "$(rxe -- cat <&-)"
	rxe -- sh -c 'yes' | head -n 2 >/dev/null
	same "reader that leaves" 141 "${PIPESTATUS[0]}"
}

t_time() {
	local rc began=$SECONDS
	rxe --timeout 2 -- sleep 100 2>/dev/null
	rc=$?
	same "timeout" 124 $rc
	[ $((SECONDS - began)) -lt 60 ]
	check "timeout in time" $?
	rxe --timeout 2 -- bash -c 'trap "" TERM; while :; do sleep 1; done' 2>/dev/null
	same "timeout of a command that ignores SIGTERM" 124 $?
	leftovers_check "timeout"
	rxe -- bash -c 'kill -SEGV $$'
	same "command that dies of a signal" 139 $?
	out=$(rxe -- bash -c 'sleep 1000 & echo started')
	same "background process does not hold it" started "$out"
}

# signal_test SIGNAL WANTED COMMAND...
signal_test() {
	local sig=$1 wanted=$2 pid rc
	shift 2
	# What an earlier one wrote would have it killed before it is even started.
	rm -f "$work/out"
	# env: a background job of a script ignores SIGINT.
	env --default-signal=INT "$runner" --quiet --kernel "$kernel" -- "$@" >"$work/out" &
	pid=$!
	until grep -qs ready "$work/out" || ! kill -0 $pid; do sleep 0.2; done 2>/dev/null
	kill -s "$sig" $pid
	wait $pid
	rc=$?
	same "SIG$sig is passed on: $*" "$wanted" $rc
	leftovers_check "SIG$sig"
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
	rm -f "$work/out"
	"$runner" --quiet --kernel "$kernel" -- bash -c 'echo ready; sleep 100' >"$work/out" &
	pid=$!
	until grep -qs ready "$work/out" || ! kill -0 $pid; do sleep 0.2; done 2>/dev/null
	kill -KILL $pid
	wait $pid 2>/dev/null
	sleep 1
	same "SIGKILL of the runner leaves no QEMU" 0 "$(qemus)"
	rm -rf "${TMPDIR:?}"/*
}

t_kernel_log() {
	local warned='<4>WARNING: CPU: 0 PID: 1 at made up by a test'
	rxe -- bash -c 'echo "$0" >/dev/kmsg' "$warned" 2>"$work/err"
	same "a kernel warning makes a success status 90" 90 $?
	grep -q 'made up by a test' "$work/err"
	check "the warning is shown" $?
	rxe -- bash -c 'echo "$0" >/dev/kmsg; exit 3' "$warned" 2>/dev/null
	same "a kernel warning keeps a failure's status" 3 $?
	rxe --no-dmesg-check --keep-dmesg "$work/dmesg" -- bash -c 'echo "$0" >/dev/kmsg' "$warned"
	same "--no-dmesg-check" 0 $?
	grep -q 'Linux version' "$work/dmesg" && grep -q 'made up by a test' "$work/dmesg"
	check "--keep-dmesg" $?
	rxe -- bash -c 'echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 100' \
		2>"$work/err"
	same "guest panic" 91 $?
	grep -q 'sysrq triggered crash' "$work/err"
	check "the panic is shown" $?
	leftovers_check "guest panic"
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
	out=$(rxe -- bash -c '"$0" --kernel native -- rdma link; echo $?' "$runner" 2>&1)
	grep -q rxe0/1 <<<"$out" && [ "$(tail -n 1 <<<"$out")" = 0 ]
	check "native with a link" $?
	out=$(rxe -- bash -c 'rdma link delete rxe0; ip link del dummy0
		"$0" -- bash -c "rdma link; ip -o addr; exit 9"; echo status $?
		rdma link; ip -o link; echo end' "$runner" 2>&1)
	[[ $out == *rxe0/1*10.99.1.1/24*"status 9"* ]] && [[ $out != *"status 9"*mrfab* ]] &&
		[[ $out != *"status 9"*rxe0* ]]
	check "native without a link: added and removed" $?
	rxe -- "$runner" --doctor >"$work/out" 2>&1
	same "--doctor" 0 $?
	grep -q '^ok: .*rxe0' "$work/out"
	check "--doctor finds rxe0" $?
	"$runner" --doctor >"$work/out"
	same "--doctor on this machine" 0 $?
}

main() {
	local t tests=(lines device rdma_cm streams environment files build big time signals kernel_log
		refusals parallel native)
	[ $# -gt 0 ] || set -- 6.1 6.12
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	export TMPDIR=$work/tmp
	for kernel in "$@"; do
		rm -rf "${work:?}"/*
		mkdir -p "$work/cwd" "$TMPDIR"
		cd "$work/cwd" || exit 1
		echo in >seen.in
		echo old >appended
		: >gone
		for t in ${MRFAB_RUNNER_TESTS:-"${tests[@]}"}; do
			"t_$t"
		done
		leftovers_check "in the end"
	done
	printf '%d tests, %d failed\n' "$count" "$failed"
	[ "$failed" = 0 ]
}

main "$@"
