# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Runs a command in a guest: QEMU, the stock kernel of rxe-kernel.sh, the machine's root
# file system. The guest's side is scripts/rxe-guest-init and scripts/rxe-guest-run.
#
# The command's stdout and stderr go through virtio ports into files of the job folder,
# and from there, as they grow, to ours: QEMU never has to drop or hold back a byte.
#
# Options (set by with-rxe): vm_cpus, vm_memory, vm_icount, vm_accel, vm_timeout,
# vm_shares[], keep_dmesg; set by rxe-hosts.sh: vm_host ("", or 0 or 1: one of two), vm_lan.
# Results: vm_status (the command's, or 91, 124, 125), vm_dmesg (a file or "").

vm_job=
vm_qemu=
vm_feeder=
vm_tails=()
vm_state=off		# off, boot, run, done, failed
vm_signal=		# the last signal that reached us
vm_signals=0
vm_kill_at=		# when (EPOCHSECONDS) a guest that was told to end is ended
vm_status=125
vm_ended=
vm_boot_limit=180
vm_host=
vm_address=10.99.1.1
vm_lan=			# the file descriptor of this host's end of the network

vm_requirements() {
	[ "$(uname -m)" = x86_64 ] || echo "an x86_64 machine (this is $(uname -m))"
	have qemu-system-x86_64 || echo "qemu-system-x86"
	have busybox || echo "busybox-static"
	have modprobe || echo "kmod"
	have cpio || echo "cpio"
	have ip && have rdma || echo "iproute2"
	[ -e /etc/libibverbs.d/rxe.driver ] || echo "ibverbs-providers"
	have setpriv && have setsid && have flock || echo "util-linux"
}

# What one or two guests need.
vm_prepare() {
	local missing
	missing=$(vm_requirements | tr '\n' ' ')
	[ -z "$missing" ] || die "missing: ${missing}-> run $deps rxe as root"
	share_check
	kernel_prepare "$kernel_wanted"
}

# vm_run COMMAND...: after vm_prepare; returns with vm_status set; everything is cleaned up by
# vm_clean.
vm_run() {
	job_make
	job_write "$@"
	stdin_open
	vm_boot_some_way
	[ "$vm_state" = run ] && vm_serve
	vm_finish
}

# The working directory is written to by the guest: refuse the machine's own folders.
share_check() {
	local d s
	for d in "${vm_shares[@]}"; do
		for s in / /bin /boot /dev /etc /lib /lib64 /proc /run /sbin /sys /usr /var; do
			[ "$d" != "$s" ] || die "the folder $d holds the system itself and cannot be" \
				"shared with the guest for writing: start from a folder of your own"
		done
		case $d/ in
		/proc/* | /sys/* | /dev/pts/*) die "cannot share $d with the guest" ;;
		esac
		[ -w "$d" ] || warn "$d is not writable for you: nor for the command"
	done
}

# Where temporary folders go.
job_base() {
	case ${TMPDIR:-/tmp} in
	*[[:space:],\"]* | /run* | /dev* | [!/]*) echo /tmp ;;
	*) echo "${TMPDIR:-/tmp}" ;;
	esac
}

# The guest finds the job folder by its path, given on the kernel command line.
job_make() {
	vm_job=$(mktemp -d "$(job_base)/mrfab-rxe.XXXXXX") || die "cannot make a temporary folder" \
		"in $(job_base) (set TMPDIR)"
	cp "$libdir/../rxe-guest-run" "$vm_job/guest-run" &&
		mkfifo "$vm_job/ctl.in" "$vm_job/ctl.out" "$vm_job/stdin" || job_failed
}

job_failed() {
	job_space_check
	die "cannot write to $vm_job (set TMPDIR)"
}

# QEMU and the guest write there: on a full disk they would fail without a word.
job_space_check() {
	! folder_full "$vm_job" || die "the disk of $(job_base) is full (set TMPDIR)"
}

job_write() {
	local o limits=() merged=no
	[ /dev/fd/1 -ef /dev/fd/2 ] && merged=yes
	for o in c d f n s t v; do
		limits+=("-H$o $(ulimit -H$o)" "-S$o $(ulimit -S$o)")
	done
	printf '%s\0' "$@" >"$vm_job/args" || job_failed
	{
		grep -azv '^MRFAB_RXE_NETWORK=' "/proc/$$/environ"
		[ -z "$vm_host" ] || host_variables
	} >"$vm_job/env" || job_failed
	{
		local uid gid groups mask workdir=$PWD stdin
		local shares=("${vm_shares[@]}") share_options=$vm_share_options hugepages=16
		local host=$vm_host
		uid=$(id -u) gid=$(id -g) groups=$(id -G | tr ' ' ,) mask=$(umask)
		stdin=$(stdin_wanted)
		declare -p uid gid groups mask workdir stdin merged shares share_options \
			hugepages limits host
	} >"$vm_job/meta" || job_failed
	job_space_check
	vm_stdin=$(stdin_wanted)
}

# A terminal stays ours (it cannot be passed on), /dev/null and a closed stdin need no
# port.
stdin_wanted() {
	if [ -t 3 ] || [ /dev/fd/3 -ef /dev/null ] || ! [ -e /dev/fd/3 ]; then
		echo no
	else
		echo yes
	fi
}

# Sets vm_stdin_fd, QEMU's stdin. The pipe keeps what QEMU has not read if it must start
# again.
stdin_open() {
	if [ "$vm_stdin" = no ]; then
		exec {vm_stdin_fd}</dev/null
		return
	fi
	(printf 'mrfab-stdin\n' && exec cat) <&3 >"$vm_job/stdin" 2>/dev/null &
	vm_feeder=$!
	exec {vm_stdin_fd}<"$vm_job/stdin"
}

# --- starting QEMU

# vm_boot_some_way: hardware virtualization where it works, else emulation. A KVM that
# opens but does not run a guest (nested clouds) is remembered. A guest that dies before
# the command was started has done nothing yet: it is started once more.
vm_boot_some_way() {
	local accel try
	for accel in $(accels); do
		for try in 1 2 3; do
			vm_start "$accel" "$try"
			vm_await_boot "$accel"
			[ "$vm_state" = boot ] && [ -z "$vm_signal" ] || return
			vm_stop
			[ "$accel" = kvm ] && kvm_remember_bad && break
			# QEMU itself failed: it will not do better next time.
			[ -s "$vm_job/console" ] || break
			say "the guest died while it booted ($(console_reason)); trying again"
		done
	done
	vm_state=failed
	vm_status=125
	job_space_check
	warn "the guest does not boot; its last console lines:"
	console_tail
}

accels() {
	if [ "$vm_icount" = yes ]; then
		echo tcg
	elif [ "$vm_accel" ]; then
		echo "$vm_accel"
	elif kvm_usable; then
		echo kvm tcg
	else
		echo tcg
	fi
}

kvm_usable() {
	[ -r /dev/kvm ] && [ -w /dev/kvm ] && ! [ -e "$(kvm_verdict)" ]
}

kvm_verdict() {
	printf '%s/kvm-unusable-%s' "$cache" "$(uname -r)"
}

kvm_remember_bad() {
	say "/dev/kvm is there but runs no guest: using emulation from now on" \
		"(remove $(kvm_verdict) to try again)"
	tail -n 3 "$vm_job/qemu.log" >"$(kvm_verdict)"
}

vm_start() {
	local accel=$1 try=$2
	qemu_args "$accel" "$try"
	: >"$vm_job/out"
	: >"$vm_job/err"
	: >"$vm_job/console"
	exec {ctl_in}<>"$vm_job/ctl.in" {ctl_out}<>"$vm_job/ctl.out"
	# The guest must not outlive us, not even when we are killed.
	setsid setpriv --pdeathsig KILL qemu-system-x86_64 "${qemu[@]}" \
		<&"$vm_stdin_fd" >"$vm_job/qemu.log" 2>&1 3<&- &
	vm_qemu=$!
	vm_how="$accel, $vm_cpus cpus, $vm_memory"
	[ "$vm_icount" = no ] || vm_how="icount, 1 cpu, $vm_memory"
	vm_state=boot
	vm_began=$EPOCHREALTIME
	vm_partial=
}

# Sets qemu[], the arguments.
qemu_args() {
	local accel=$1 try=$2 n=0 d bios cpu=max
	[ "$accel" = kvm ] && cpu=host
	qemu=(-nodefaults -no-user-config -display none -no-reboot -machine pc -m "$vm_memory")
	if [ "$vm_icount" = yes ]; then
		# One instruction takes 1 ns; string moves count as many, so none.
		qemu+=(-accel "tcg,thread=single" -smp 1 -icount "shift=0,sleep=on")
		cpu=max,-erms,-fsrm
	elif [ "$accel" = kvm ]; then
		qemu+=(-accel kvm -smp "$vm_cpus")
	else
		# Threads of one QEMU < 8.1 may run stale code while a kernel patches
		# itself: the last try does without. Which it would do, with all that goes by the
		# clock, when its watchdog finds the TSC to be off (tsc=nowatchdog).
		qemu+=(-accel "tcg,thread=$([ "$try" = 3 ] && echo single || echo multi)")
		qemu+=(-smp "$vm_cpus")
	fi
	bios=/usr/share/qemu/qboot.rom
	[ -r "$bios" ] && qemu+=(-bios "$bios")
	qemu+=(-cpu "$cpu" -kernel "$kernel_image" -initrd "$kernel_initrd" -append
		"console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=1 audit=0 tsc=nowatchdog mrfab.job=$vm_job"
		-chardev "file,id=con,path=$vm_job/console" -serial chardev:con)
	qemu_ports
	[ -z "$vm_host" ] || qemu+=(-netdev "socket,id=lan,fd=$vm_lan"
		-device "virtio-net-pci,netdev=lan,mac=52:54:00:99:02:0$vm_host,host_mtu=4200,romfile=")
	qemu+=(-fsdev "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"
		-device "virtio-9p-pci,fsdev=root,mount_tag=root")
	for d in "${vm_shares[@]}"; do
		qemu+=(-fsdev "local,id=share$n,path=${d//,/,,},security_model=none,multidevs=remap"
			-device "virtio-9p-pci,fsdev=share$n,mount_tag=share$n")
		n=$((n + 1))
	done
}

qemu_ports() {
	local p
	qemu+=(-device "virtio-serial-pci,max_ports=8"
		-chardev "pipe,id=ctl,path=$vm_job/ctl"
		-device "virtserialport,chardev=ctl,name=mrfab.ctl")
	for p in out err log; do
		qemu+=(-chardev "file,id=$p,path=$vm_job/$p"
			-device "virtserialport,chardev=$p,name=mrfab.$p")
	done
	[ "$vm_stdin" = yes ] && qemu+=(-chardev "stdio,id=in,signal=off"
		-device "virtserialport,chardev=in,name=mrfab.in")
}

# --- while it runs

# vm_line: waits for a line of the guest, at most half a second; sets line or fails. The time
# may be over in the middle of a line: its beginning is kept for the next call.
vm_line() {
	line=
	if ! read -r -t 0.5 -u "$ctl_out" line; then
		vm_partial+=$line
		[ -z "$vm_host" ] || host_orphaned
		return 1
	fi
	line=$vm_partial$line
	vm_partial=
}

vm_await_boot() {
	local line until=$((EPOCHSECONDS + vm_boot_limit)) told=$EPOCHSECONDS
	# A KVM that works reaches user space in a second or two.
	[ "$1" = kvm ] && until=$((EPOCHSECONDS + 10))
	while [ "$vm_state" = boot ]; do
		if vm_line; then
			case $line in
			boot) until=$((EPOCHSECONDS + vm_boot_limit)) ;;
			ready) vm_meet && until=$((EPOCHSECONDS + vm_boot_limit)) ;;
			run) vm_state=run ;;
			fail*) vm_fail_boot "${line#fail }" ;;
			esac
		else
			kill -0 "$vm_qemu" 2>/dev/null || return
			[ -z "$vm_signal" ] || return
			[ "$EPOCHSECONDS" -lt "$until" ] || return
			if [ $((EPOCHSECONDS - told)) -ge "$patience" ]; then
				say "still booting"
				told=$EPOCHSECONDS
			fi
		fi
	done
}

# Both hosts are ready before the command starts on either.
vm_meet() {
	if host_meet ready; then
		echo go >&"$ctl_in"
	else
		warn "the other host did not boot"
		vm_state=failed
	fi
}

vm_fail_boot() {
	warn "the guest cannot make its rxe: $1; its last console lines:"
	console_tail
	vm_state=failed
}

vm_serve() {
	local line deadline=
	vm_ran=$EPOCHREALTIME
	[ "$vm_timeout" ] && deadline=$((EPOCHSECONDS + vm_timeout))
	say "Linux $kernel_version in QEMU ($vm_how), rxe0 on $vm_address"
	outputs_follow
	vm_status=91
	while [ "$vm_state" = run ]; do
		if vm_line; then
			case $line in
			rc*) vm_status=${line#rc } vm_state="done" vm_ended=$EPOCHREALTIME ;;
			esac
			continue
		fi
		kill -0 "$vm_qemu" 2>/dev/null || break
		signal_pass
		[ -z "$vm_kill_at" ] || [ "$EPOCHSECONDS" -lt "$vm_kill_at" ] || break
		if [ "$deadline" ] && [ "$EPOCHSECONDS" -ge "$deadline" ]; then
			deadline=
			vm_timed_out=yes
			warn "the command ran longer than $vm_timeout s: ending it"
			guest_end TERM
		fi
	done
	# The other one may still have something to say to this one's kernel.
	[ -z "$vm_host" ] || [ "$vm_state" != "done" ] || host_meet ended
}

outputs_follow() {
	tail -c +1 -s 0.1 -f --pid="$vm_qemu" "$vm_job/out" 3<&- &
	vm_tails=($!)
	tail -c +1 -s 0.1 -f --pid="$vm_qemu" "$vm_job/err" >&2 3<&- &
	vm_tails+=($!)
}

# guest_end SIGNAL: tells the guest; if the command is still there 5 s later the guest
# is ended.
guest_end() {
	printf 'kill %s\n' "$1" >&"$ctl_in"
	vm_kill_at=$((EPOCHSECONDS + 10))
}

# Passes a signal that reached us, or a reader that left (SIGPIPE), on to the command.
signal_pass() {
	if [ "$vm_signal" ] && [ "$vm_signals" -gt 0 ]; then
		vm_signals=0
		guest_end "$vm_signal"
	elif [ -z "$vm_signal" ] && ! kill -0 "${vm_tails[0]}" 2>/dev/null; then
		vm_signal=PIPE
		guest_end PIPE
	fi
}

vm_on_signal() {
	vm_signals=$((vm_signals + 1))
	# A second one while the first is being passed on: no more patience.
	[ -z "$vm_signal" ] || vm_kill_at=$EPOCHSECONDS
	vm_signal=$1
}

# --- the end

vm_finish() {
	: "${vm_ended:=$EPOCHREALTIME}"
	vm_stop
	[ "${#vm_tails[@]}" = 0 ] || wait "${vm_tails[@]}" 2>/dev/null
	vm_dmesg=$vm_job/log
	if [ "${vm_timed_out:-no}" = yes ]; then
		vm_status=124
	elif [ "$vm_signal" ] && [ "$vm_state" != done ]; then
		vm_status=$((128 + $(kill -l "$vm_signal")))
	elif [ "$vm_state" = run ]; then
		warn "the guest died while the command ran (status 91); its last console lines:"
		console_tail
	fi
	[ -z "$keep_dmesg" ] || cp "$vm_dmesg" "$keep_dmesg"
}

vm_stop() {
	local n
	[ "$vm_qemu" ] || return 0
	kill -TERM "$vm_qemu" 2>/dev/null
	for ((n = 0; n < 50; n++)); do
		kill -0 "$vm_qemu" 2>/dev/null || break
		sleep 0.05
	done
	kill -KILL "$vm_qemu" 2>/dev/null
	wait "$vm_qemu" 2>/dev/null
	vm_qemu=
	exec {ctl_in}>&- {ctl_out}>&-
}

vm_clean() {
	vm_stop
	[ "$vm_feeder" ] && kill "$vm_feeder" 2>/dev/null
	vm_feeder=
	[ "$vm_job" ] && rm -rf "$vm_job"
	vm_job=
}

console_tail() {
	cat "$vm_job/qemu.log" >&2
	if grep -qE "$console_bad" "$vm_job/console"; then
		grep -m 1 -E -A 120 "$console_bad" "$vm_job/console"
	else
		tail -n 40 "$vm_job/console"
	fi | tr -d '\r' >&2
}

console_bad='Oops: |Kernel panic|BUG: |general protection|rxe-guest-init: '

console_reason() {
	if [ -s "$vm_job/console" ]; then
		grep -m 1 -E "$console_bad" "$vm_job/console" | tr -d '\r'
	fi
}
