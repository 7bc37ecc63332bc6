# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# scripts/run-func --hosts: on host 1 each program serves as the target, at a port of its own;
# on host 0 the programs run with these targets. Host 0 holds a connection to host 1 as long as
# it wants the targets, and says at the end how many cases failed.

hosts_port=7470		# that connection's; program N has the port N + 1 further
hosts_patience=180	# seconds for the other host to be ready
hosts_targets=()
hosts_except=		# names, parted by commas

# targets_run: what host 1 does.
targets_run() {
	local n=0 p failed before
	before=$(objects)
	trap 'kill "${hosts_targets[@]}" 2>/dev/null; rm -f "$log"*' EXIT
	for p in "${programs[@]}"; do
		n=$((n + 1))
		"$p" --role target --control "$MRFAB_HOST_ADDR:$((hosts_port + n))" 2>>"$log.targets" &
		hosts_targets+=($!)
	done
	for ((n = 1; n <= ${#programs[@]}; n++)); do
		hosts_reach "$MRFAB_HOST_ADDR" $((hosts_port + n)) || break
		exec {hosts_connection}>&-
	done
	failed=$(hosts_listen | tail -n 1)
	if [ "$failed" != 0 ]; then
		say "the last lines of the targets:"
		tail -n 20 "$log.targets" | sed 's/^/#   /'
	fi
	if [ "$failed" ] && kill -0 "${hosts_targets[@]}"; then
		result 'ok targets_serve_to_the_end (0 ms)\n'
	else
		result 'not ok targets_serve_to_the_end: a target, or the other host, ended early\n'
	fi
	kill "${hosts_targets[@]}"
	leaks_check "$before" _at_the_targets
}

# Lets one connection come and prints what it says until it is closed. A host that has given up
# does not come.
hosts_listen() {
	perl -MIO::Socket::INET -e 'my ($addr, $port, $patience) = @ARGV;
		my $s = IO::Socket::INET->new(LocalAddr => $addr, LocalPort => $port, Listen => 1,
			ReuseAddr => 1, Timeout => $patience)
			or die "cannot listen at $addr:$port: $!\n";
		$s = $s->accept or die "the other host did not come: $@\n";
		print while <$s>' "$MRFAB_HOST_ADDR" "$hosts_port" "$hosts_patience"
}

# hosts_reach ADDRESS PORT: waits until somebody listens there; sets hosts_connection.
hosts_reach() {
	local until=$((SECONDS + hosts_patience))
	until { exec {hosts_connection}<>"/dev/tcp/$1/$2"; } 2>/dev/null; do
		[ "$SECONDS" -lt "$until" ] || return
		sleep 0.2
	done
}

# initiators_run: what host 0 does.
initiators_run() {
	local n=0 p before
	before=$(objects)
	hosts_except_read
	[[ " ${options[*]} " == *" --mode "* ]] || kinds_take
	if ! hosts_reach "$MRFAB_PEER_ADDR" "$hosts_port"; then
		result 'not ok targets_are_ready: not after %d s\n' "$hosts_patience"
		return
	fi
	for p in "${programs[@]}"; do
		n=$((n + 1))
		program_run "$p" --control "$MRFAB_PEER_ADDR:$((hosts_port + n))" \
			--except "$hosts_except"
	done
	leaks_check "$before" _at_the_initiators
	count 'not ok' >&"$hosts_connection"
	exec {hosts_connection}>&-
}

# Says what is left out and why; a name that is no case's is a failure.
hosts_except_read() {
	local name why p cases
	cases=$(for p in "${programs[@]}"; do "$p" --list; done)
	while read -r name why; do
		[[ $name == [a-z]* ]] || continue
		hosts_except+=$name,
		if grep -qE "^$name(\\[.*)?\$" <<<"$cases"; then
			say "left out: $name: $why"
		elif [ "$chosen" = no ]; then
			result 'not ok left_out_case_exists: there is no case %s\n' "$name"
		fi
	done <"${0%/*}/lib/func-hosts-except"
}
