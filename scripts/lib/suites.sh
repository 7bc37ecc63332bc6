# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The test suites, one function each, run in a subshell with stdout and stderr in $out/log.
# A suite reports each of its programs with `counted STATUS LOG`; whatever else fails in
# it makes it fail. Variables: top, out (the suite's own folder).
# A new suite is a function, a name in suites_local or suites_rxe, a name in
# suites_usual or suites_every if every run is to have it, else in one of suites_turns or in
# suites_all_only, and a row in stamped if it takes long.

# What the expensive suites depend on: unchanged, their recorded result stands.
code=(configure.ac Makefile.am m4 lib include tools tests bench examples scripts/test scripts/lib)

suites_local=(unit asan tsan valgrind clang debian13 install dist packages scripts docs crowd)
suites_rxe=(rxe-6.1 rxe-6.1-rest rxe-6.12 rxe-newest hosts late prov runner)
suites_usual=(unit asan install scripts docs rxe-6.1)	# without options
suites_quick=(unit rxe-6.1)
suites_alone=(crowd)		# and, on few processors, those on soft-RoCE
suites_all_only=(crowd)
# With --turn: these, and one row of those that take turns. The rows take about as long.
suites_every=("${suites_usual[@]}" prov)
suites_turns=(
	"rxe-6.12 rxe-newest tsan valgrind"
	"hosts rxe-6.1-rest debian13"
	"runner late dist"
	"clang packages"
)

# Packages that they need beside those to build and to boot guests: groups of scripts/lib/packages.sh.
declare -A suite_packages=(
	[unit]=unit [asan]=unit [tsan]=unit [crowd]=unit [dist]=unit [install]=unit
	[valgrind]="unit valgrind" [clang]="unit clang" [debian13]=tree [packages]=tree [scripts]=lint [docs]=lint
	[prov]=prov [runner]=runner [rxe-6.1-rest]=alloc [rxe-6.12]=alloc
)

declare -A stamped=(
	[asan]=${code[*]} [tsan]=${code[*]} [valgrind]=${code[*]}
	[crowd]=${code[*]} [clang]=${code[*]} [debian13]="${code[*]} scripts" [dist]=. [packages]=. [runner]="scripts tests/runner"
	[hosts]="${code[*]} scripts" [rxe-6.1]="${code[*]} scripts docs"
	[rxe-6.1-rest]="${code[*]} scripts docs"
	[rxe-6.12]="${code[*]} scripts docs" [rxe-newest]="${code[*]} scripts"
	[late]="${code[*]} scripts" [prov]="${code[*]} scripts README.md"
)

# counted STATUS LOG: one program's result, and how long it, or what it ran, took.
counted() {
	tally "$2" "$1" >>"$out/tallies"
	tally_times "$2" "${out##*/}" >>"$out/times"
	[ "$1" = 0 ] || [ "$1" = 77 ] || tally_complaints "$2" || true
}

# counts NAME COMMAND...: runs it with its own log.
counts() {
	local name=${1//\//-} status=0 began=$SECONDS
	local log=$out/$name.log
	shift
	"$@" >"$log" 2>&1 </dev/null || status=$?
	grep -qE "$took" "$log" || echo "test: $name took $((SECONDS - began)) s" >>"$log"
	counted "$status" "$log"
}

# programs_run TREE WRAPPER...: every program named on stdin (a path in the tree), in parallel: jobs
# at a time (as many as there are processors), with the logs in the folder logs (the suite's).
programs_run() {
	local tree=$top/build/$1 program jobs=${jobs:-$jobs_max} logs=${logs:-$out}
	shift
	mkdir -p "$logs"
	export -f program_run
	(cd "$tree" && export srcdir=$top top_srcdir=$top logs && xargs -r -n 1 -P "$jobs" bash -c \
		'p=${@: -1}; program_run "$p" "${@:1:$#-1}"' run "$@") || true
	for program in "$logs"/*.status; do
		counted "$(cat "$program")" "${program%.status}.log"
	done
}

# program_run PROGRAM WRAPPER...: called in a shell of its own; leaves NAME.log and NAME.status.
program_run() {
	local name=${1##*/} status=0 program=$1
	shift
	timeout 600 "$top_srcdir/scripts/lib/timed" "$@" "$program" >"$logs/$name.log" 2>&1 </dev/null ||
		status=$?
	[ $status != 124 ] || echo "not ok $name: no end after 600 s" >>"$logs/$name.log"
	echo $status >"$logs/$name.status"
}

# Programs of the unit tests, all or those that a pattern in their source picks.
unit_programs() {
	local source
	for source in "$top"/tests/unit/t_*.c; do
		grep -qE "${1:-.}" "$source" || continue
		source=${source##*/}
		echo "tests/unit/${source%.c}"
	done
}

# unit_tree NAME OPTION...: a tree in which the unit programs that stdin names are built, and what
# they run; nothing more.
unit_tree() {
	local programs
	mapfile -t programs
	tree_configure "$@"
	tree_make "$1" all
	tree_make "$1" "${programs[@]}"
}

# What takes every fifth of many cases here takes all in suite_asan, or in three turns of it.
suite_unit() {
	local trs status
	declare -A statuses=([PASS]=0 [SKIP]=77)
	make -C "$top/build/main" -k -j "$jobs_max" check-unit MRFAB_TEST_EVERY=5 LOG_COMPILER="$top/scripts/lib/timed" \
		>"$out/make.log" 2>&1 || true
	while read -r trs; do
		status=$(sed -n 's/^:global-test-result: //p' "$trs")
		counted "${statuses[$status]:-1}" "${trs%.trs}.log"
	done < <(find "$top/build/main/tests" -name '*.trs' -newer "$out/started")
	[ -s "$out/tallies" ] || tail -n 30 "$out/make.log"
	counts check-layers "$top/scripts/check-layers" "$top/build/main"
	counts layers "$top/tests/runner/t_layers.sh"
}

# What is random differs from suite to suite, and is the same every time. Optimisation costs
# more time in the compiler than it saves in the tests.
seed() {
	export MRFAB_SEED=${MRFAB_SEED:-$1}
}

# And the order of locks. In a turn, a third of what takes long.
suite_asan() {
	seed 2
	unit_programs >"$out/programs"
	unit_tree asan --enable-werror --enable-lockrank --enable-sanitize=address,undefined \
		CFLAGS='-g1 -O1' CXXFLAGS='-g1 -O1' <"$out/programs"
	programs_run asan env UBSAN_OPTIONS=print_stacktrace=1 "${thirds[@]}" <"$out/programs"
}

# Those that start threads, except the hooks', which are not there then. With address randomisation
# of some kernels TSan does not start.
suite_tsan() {
	seed 3
	unit_programs 'pthread_create|(ep|device|far)_fixture|"breaks\.h"' | grep -vE '/t_(hook|slots|stub)' >"$out/programs"
	unit_tree tsan --enable-werror --enable-sanitize=thread CFLAGS='-g1 -O1' CXXFLAGS='-g1 -O1' \
		<"$out/programs"
	programs_run tsan setarch -R env TSAN_OPTIONS=halt_on_error=1 MRFAB_MODEL_STEPS=20000 \
		MRFAB_TEST_EVERY=3 <"$out/programs"
}

# What ASan does not see: values that nobody has set. So those run that decode, copy and print
# structures, not those that walk faults, wait, or are long for another reason; nor monitors and
# hooks, because valgrind's allocator takes the place of the C library's. The log shows the check
# that failed even when what it left behind ends the program.
suite_valgrind() {
	seed 4
	unit_programs . |
		grep -E '/t_(addr|apart|ask|atomic|auth|av|cntr|cq|desc|domain|doubt|ep|ep_atomic|eq|event|fabric|face)$|/t_(frame|fuzz_.*|getinfo|group|iov|keyed|local|log|mr_(event|key|locate|raw|register|state)|once|param|proto|rawkey|refresh|resolve)$|/t_(rpc|serve|strerror|swap|tostr|user|version|vmr|vnl|vnode|window)$' |
		programs_run main env CK_FORK=no \
		CK_VERBOSITY=silent CK_LOG_FILE_NAME=- CK_TIMEOUT_MULTIPLIER=20 \
		MRFAB_MODEL_STEPS=5000 MRFAB_TEST_EVERY=9 \
		valgrind -q --fair-sched=yes --error-exitcode=66 --leak-check=no
}

# What waits for some milliseconds is told here from what waits for what it is about: three times
# as many programs run as a machine of two processors has room for. The second time each has others
# beside it.
suite_crowd() {
	seed 5
	export MRFAB_TEST_EVERY=5
	unit_programs >"$out/programs"
	jobs=6 logs=$out/first programs_run main <"$out/programs"
	tac "$out/programs" | jobs=6 logs=$out/second programs_run main
}

suite_clang() {
	tree_configure clang --enable-werror CC=clang CXX=clang++ CFLAGS=-O0 CXXFLAGS=-O0
	counts clang-build tree_make clang check TESTS=
}

# All tests are built there; that they pass is for other suites.
suite_dist() {
	tree_configure dist
	counts dist-again same_dist
	counts distcheck make -C "$top/build/dist" -j "$jobs_max" distcheck \
		TESTS='tests/unit/t_proto tests/api/t_info.sh tests/api/t_readme.sh tests/api/t_run.sh' \
		DISTCHECK_CONFIGURE_FLAGS='CFLAGS=-O0 CXXFLAGS=-O0'
}

# A release has the same bytes when it is made again: from another copy of the tree, in another
# folder, with other rights, where something was built before.
same_dist() {
	local other=$out/other
	make -C "$top/build/dist" dist || return
	rm -rf "$other"
	mkdir -p "$other"
	[ ! -e "$top/.git" ] || git clone -q --no-checkout "$top" "$other"
	(
		umask 027
		tree_copy "$other"
		cd "$other" || exit
		autoreconf -fi
		./configure -q CFLAGS=-O0 CXXFLAGS=-O0
		make scripts/mrfab_with_rxe && touch scripts/check-docs.log scripts/check-docs.trs
		XZ_OPT=-1 TAR_OPTIONS=--verbose make dist
	)
	cmp "$top"/build/dist/libmrfab-*.tar.xz "$other"/libmrfab-*.tar.xz && rm -rf "$other"
}

# The packages of Debian 12 and 13, made in a bare tree, and tried in another one.
suite_packages() {
	local release
	if [ "$(id -u)" != 0 ]; then
		counts packages echo "skip packages: only root can change the root folder"
		return
	fi
	for release in bookworm trixie; do
		counts "made-$release" scripts/in-tree "$release" scripts/lib/in-package make
		counts "tried-$release" scripts/in-tree "$release" scripts/lib/in-package try
	done
}

# What the README says, from nothing, and the unit tests with that compiler.
suite_debian13() {
	if [ "$(id -u)" != 0 ]; then
		counts debian13 echo "skip debian13: only root can change the root folder"
		return
	fi
	counts demo scripts/in-tree trixie scripts/lib/in-release
}

# What plain make builds: no test.
no_tests_built() {
	printf 'include Makefile\nmrf_show:\n\t@echo $(PROGRAMS)\n' |
		make -s -C "$top/build/main" -f - mrf_show | tr ' ' '\n' >"$out/programs"
	grep -q '^tools/mrfab_info' "$out/programs" && ! grep '^tests/' "$out/programs"
}

# The installed library, as a program that knows pkg-config only finds it.
suite_install() {
	local root=$top/build/root
	rm -rf "$root"
	counts plain-make no_tests_built
	counts make-install make -C "$top/build/main" install
	counts installcheck make -C "$top/build/main" installcheck CHECK_RXE=no
	export PKG_CONFIG_PATH=$root/lib/pkgconfig LD_LIBRARY_PATH=$root/lib
	counts flags no_private_flags "$root"
	counts consumer-c consumer "${CC:-cc}" "$top/tests/api/t_consumer.c"
	counts consumer-c++ consumer "${CXX:-c++}" "$top/tests/api/t_consumer.cpp"
	counts examples-build examples "$root/share/doc/libmrfab/examples"
	counts symbols sh "$top/tests/api/t_symbols.sh" "$root/lib/libmrfab.so"
	counts with-rxe "$root/bin/mrfab_with_rxe" --doctor
	counts provider-folder only_file "$root/lib/mrfab/provider" libmrfab-fi.so
	counts make-uninstall make -C "$top/build/main" uninstall
	counts nothing-left nothing_below "$root"
}

# consumer COMPILER SOURCE: builds and runs it; no header may be of another libfabric.
consumer() {
	local flags
	flags=$(pkg-config --cflags --libs mrfab) || return
	# shellcheck disable=SC2086
	{
		! "$1" -M "$2" $flags | tr ' ' '\n' | grep -E '/rdma/(fabric|fi_|providers/)' |
			grep -v "^$top/build/root/" || return
		"$1" -Wall -Werror -o "$out/consumer" "$2" $flags
	} && "$out/consumer"
}

# examples FOLDER: built from a copy by their own Makefile, which leaves nothing when it cleans up.
examples() {
	local copy=$out/examples
	rm -rf "$copy"
	cp -r "$1" "$copy" &&
		make -C "$copy" CC="${CC:-cc}" CFLAGS='-O2 -Wall -Wextra -Werror' &&
		ldd "$copy/rma" | grep -F "$top/build/root/lib/libmrfab.so.1" &&
		make -C "$copy" clean && diff -r "$1" "$copy"
}

# Of what the library itself is built with its users need nothing.
no_private_flags() {
	local flags
	flags=$(pkg-config --cflags mrfab) || return
	[ "$(echo $flags)" = "-I$1/include/mrfab" ] || { echo "cflags: $flags"; false; }
}

# libfabric takes what is in the folder for a provider.
only_file() {
	[ "$(ls "$1")" = "$2" ] && echo "ok $2" || ls "$1" >&2
}

nothing_below() {
	! find "$1" ! -type d | grep .
}

# Each suite runs every time, or in one turn, or with --all only.
turns_cover() {
	diff <(printf '%s\n' "${suites_local[@]}" "${suites_rxe[@]}" | sort) \
		<(tr ' ' '\n' <<<"${suites_every[*]} ${suites_turns[*]} ${suites_all_only[*]}" | sort)
}

# SC2319: that $? is of a condition is what `[ ... ]; check "..." $?` wants.
suite_scripts() {
	local script
	counts turns turns_cover
	while read -r script; do
		counts "shellcheck-${script#"$top"/}" \
			shellcheck -x -S warning -e SC1010,SC2034,SC2154,SC2319 "$script"
	done < <(grep -rlE '^#!/bin/(ba)?sh|shellcheck shell=' "$top"/{scripts,tests,.ci})
}

suite_docs() {
	counts check-conformance timeout 120 "$top/scripts/check-conformance"
	counts conformance "$top/tests/runner/t_conformance.sh"
	counts check-docs timeout 120 "$top/scripts/check-docs"
	counts check-modes "$top/scripts/check-modes"
	counts check-format "$top/scripts/check-format"
	counts mutants timeout 120 "$top/scripts/check-mutants" --apply
}

# suite_rxe KERNEL PART...: the parts of scripts/lib/on-rxe on soft-RoCE.
suite_rxe() {
	local kernel=$1 log=$out/func.log status=0
	shift
	scripts/with-rxe --kernel "$kernel" --timeout 2400 -- scripts/lib/on-rxe "$out" "$@" \
		>"$log" 2>&1 </dev/null || status=$?
	counted "$status" "$log"
	! grep -q '^modes: ' "$log" || counts check-modes "$top/scripts/check-modes" "$log"
	for log in "$out"/demo*.log "$out"/unit-*.log; do
		[ ! -e "$log" ] || counted "$(cat "${log%.log}.status")" "$log"
	done
}

suite_rxe-6.1() {
	seed 1
	suite_rxe 6.1 kinds device hammer patterns srq changes
}

suite_rxe-6.1-rest() {
	seed 6
	suite_rxe 6.1 even
}

suite_rxe-6.12() {
	seed 2
	suite_rxe 6.12 kinds odd patterns srq changes
}

# On the newest kernel of Debian's backports: what kernels may do differently.
suite_rxe-newest() {
	local programs=(build/main/tests/func/f_{modes,memory,refresh,refuse,access,atomics})
	local on=(--kernel newest --timeout 1500 --)
	export MRFAB_TEST_STRICT=1 MRFAB_FUNC_SHARE=quick
	counts func scripts/with-rxe "${on[@]}" scripts/run-func --kinds "${programs[@]}"
}

# Between two hosts; on the second kernel in one mode.
suite_hosts() {
	local on=(--hosts 2 --timeout 1800 --kernel)
	export MRFAB_TEST_STRICT=1 MRFAB_FUNC_SHARE=quick
	counts func-6.1 scripts/with-rxe "${on[@]}" 6.1 -- scripts/run-func --hosts
	counts lost-6.1 scripts/with-rxe "${on[@]}" 6.1 -- build/main/tests/func/lost
	counts patterns-6.1 scripts/with-rxe "${on[@]}" 6.1 -- build/main/tests/patterns/patterns --hosts \
		rdm_pingpong rdm_tagged_pingpong rdm_multi_client unexpected_tagged bw mercury
	counts rma-6.1 tests/api/run-examples build/main --hosts 2 --kernel 6.1 --timeout 120
	counts commit-6.1 tests/runner/t_commit.sh build/main/tests/func/commit 6.1
	counts func-6.12 scripts/with-rxe "${on[@]}" 6.12 -- \
		scripts/run-func --hosts -- --mode native
}

# How long one peer waits for what others want of the same target; in instructions.
suite_late() {
	counts late-6.1 scripts/with-rxe --icount --kernel 6.1 --timeout 400 -- \
		build/main/tests/func/late
}

# The module, under the libfabric that is installed, and under Debian's Open MPI; the examples; the calls of
# Sandia OpenSHMEM.
suite_prov() {
	local mpi=build/main/prov/mpi
	export MRFAB_TEST_STRICT=1
	mkdir -p "$mpi"
	counts mpi-compile tests/prov/run-mpi --compile "$mpi"
	counts prov tests/prov/run-prov build/main --kernel 6.1 --timeout 900 &
	MRFAB_SEED=${MRFAB_SEED:-$(git -C "$top" rev-list --count HEAD 2>/dev/null || echo 0)} \
		counts mpi scripts/with-rxe --kernel 6.1 --timeout 900 -- \
		tests/prov/run-mpi build/main/.libs "$mpi"
	counts examples tests/api/run-examples build/main --kernel 6.1 --timeout 300
	counts shmem tests/prov/run-shmem build/main -- --kernel 6.1 --timeout 400
	wait
}

suite_runner() {
	# Twice what it takes on a slow machine: a hang is a failure, not the end of all.
	counts runner timeout 1500 tests/runner/t_with_rxe.sh
	counts kernel timeout 600 tests/runner/t_kernel.sh &
	counts check timeout 600 tests/runner/t_check.sh
	wait
}
