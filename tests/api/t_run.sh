#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mrfab_run: what it takes and refuses, how it ends, and the environment that the program gets; in
# the build folder, installed, and moved. Environment: builddir.
set -u
builddir=$(cd "${builddir:-.}" && pwd -P)
run=$builddir/tools/mrfab_run
tmp=$(mktemp -d) || exit 1
tmp=$(cd "$tmp" && pwd -P)
trap 'rm -rf "$tmp"' EXIT
status=0
# shellcheck disable=SC2046
unset $(env | sed -n 's/^\(FI_[A-Z0-9_]*\)=.*/\1/p')

fault() {
	echo "FAIL: $*"
	status=1
}

# wanted STATUS LINES ARGUMENT...: ends so, with so many lines on standard error.
wanted() {
	want=$1 lines=$2
	shift 2
	"$run" "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
	[ $rc = "$want" ] || fault "mrfab_run $*: exit status $rc, not $want"
	[ "$(wc -l <"$tmp/err")" = "$lines" ] || fault "mrfab_run $*: says $(cat "$tmp/err")"
}

# refused REASON ARGUMENT...
refused() {
	reason=$1
	shift
	wanted 2 1 "$@"
	[ ! -s "$tmp/out" ] || fault "mrfab_run $*: the program ran"
	grep -qF -- "$reason" "$tmp/err" || fault "mrfab_run $*: not '$reason' but $(cat "$tmp/err")"
}

# lists PROFILE TEXT: the text is in the profile's paragraph.
lists() {
	sed -n "/^$1 /,/^            addresses/p" "$tmp/out" | grep -qF "$2" ||
		fault "--profile=list does not say of $1: $2"
}

# gives VARIABLE=VALUE ARGUMENT...: so it is when mrfab_run has these arguments; VARIABLE alone is
# not set.
gives() {
	given=$1
	shift
	wanted 0 1 "$@" env
	got=$(grep "^${given%%=*}=" "$tmp/out" || echo "${given%%=*}")
	[ "$got" = "$given" ] || fault "mrfab_run $*: $got, not $given"
	case $given in
	*=*) grep -qF " $given" "$tmp/err" || fault "mrfab_run $*: does not say $given" ;;
	esac
}

wanted 0 0 --help
grep -q '^Usage: mrfab_run' "$tmp/out" || fault "--help prints no usage"

wanted 0 0 --profile=list
[ "$(grep -c '^[a-z]' "$tmp/out")" = 25 ] || fault "--profile=list does not have 25 profiles"
sed -n '/^tcp /,/^sockets /p' "$tmp/out" | grep -q '128 bytes injected; lacks FI_ATOMIC' ||
	fault "--profile=list does not say what tcp lacks"
lists cxi-client 'keys of 4 bytes up to 4294967295, which the program chooses; 1 segment, mr_cnt 100'
lists cxi-client 'no fi_mr_raw_attr, fi_mr_refresh (-FI_EINVAL)'
lists cxi-client 'no fi_mr_map_raw (-FI_ENOSYS)'
lists cxi-client 'a region closes before what it is bound to'
lists ucx 'raw keys; 1 segment'
lists ucx 'orders: FI_ORDER_SAS'
lists usnic 'no keys; 1 segment'
lists usnic 'fi_domain_bind with FI_REG_MR (-FI_EOPNOTSUPP)'
lists opx 'addresses: FI_ADDR_OPX'
lists rma-event 'all calls'
refused 'there is no such profile' --profile=cxy env
refused '"mr_cnt=0": it must be a number' --profile=custom:mr_cnt=0 env
refused 'cannot be opened: No such file' --profile="file:$tmp/none" env
gives FI_MRFAB_PROFILE=tcp+lenient --profile=tcp+lenient
echo 'key_size=4' >"$tmp/nic"
gives "FI_MRFAB_PROFILE=file:$tmp/nic" --profile="file:$tmp/nic"
# The program may be in another folder when the library reads it.
(cd "$tmp" && gives "FI_MRFAB_PROFILE=file:$tmp/nic" --profile=File:nic
	exit $status) || status=1
refused 'FI_MRFAB_MR_MODE=LOCAL (--mode) and FI_MRFAB_PROFILE=tcp (--profile) exclude' --mode=LOCAL --profile=tcp env
FI_MRFAB_MR_MODE=RAW refused 'FI_MRFAB_MR_MODE=RAW (--mode) and FI_MRFAB_PROFILE=tcp' --profile=tcp env
FI_MRFAB_PROFILE=tcp refused 'FI_MRFAB_MR_MODE=RAW (--mode) and FI_MRFAB_PROFILE=tcp' --mode=RAW env
# The environment is checked as options are, unless an option replaces it, and shown.
FI_MRFAB_PROFILE=foo refused 'FI_MRFAB_PROFILE=foo: there is no such profile' true
FI_MRFAB_PROFILE=list refused 'FI_MRFAB_PROFILE=list: there is no such profile' true
FI_MRFAB_STRICT=foo refused 'FI_MRFAB_STRICT=foo: the value must be off, on, warn or abort' true
FI_MRFAB_MR_MODE=foo refused 'FI_MRFAB_MR_MODE=foo: "foo" is not the name of a registration mode' true
FI_MRFAB_STRICT=foo gives FI_MRFAB_STRICT=on --strict=on
FI_MRFAB_PROFILE=foo gives FI_MRFAB_PROFILE=tcp --profile=tcp
FI_MRFAB_PROFILE=tcp gives FI_MRFAB_PROFILE=tcp
FI_MRFAB_STRICT=warn gives FI_MRFAB_STRICT=warn
FI_MRFAB_MR_MODE=RAW gives FI_MRFAB_MR_MODE=RAW
FI_MRFAB_LEAKS=fail:x gives FI_MRFAB_LEAKS=fail:x
FI_MRFAB_FAULT=reg:1=EIO gives FI_MRFAB_FAULT=reg:1=EIO
(cd "$tmp" && FI_MRFAB_PROFILE=file:nic gives "FI_MRFAB_PROFILE=file:$tmp/nic"
	exit $status) || status=1
# Set to nothing is not set.
for empty in PROFILE STRICT MR_MODE LEAKS FAULT; do
	(export "FI_MRFAB_$empty=" && wanted 0 1 true
		! grep -q "FI_MRFAB_$empty" "$tmp/err" || fault "an empty FI_MRFAB_$empty is shown"
		exit $status) || status=1
done
FI_MRFAB_MR_MODE='' gives FI_MRFAB_PROFILE=tcp --profile=tcp
wanted 0 0 --version
grep -q '^mrfab_run (libmrfab) [0-9]' "$tmp/out" || fault "--version prints no version"

refused 'no program is named'
refused 'no program is named' --mode RAW --
refused "unrecognized option '--nonsense'" --nonsense true
refused "requires an argument" --mode
refused '--mode=NONSENSE: "NONSENSE" is not the name of a registration mode' --mode NONSENSE true
refused '--mode=HMEM: FI_MR_HMEM cannot be named' --mode HMEM true
refused '--mode=BASIC+RAW: FI_MR_BASIC must be set alone' --mode BASIC+RAW true
refused '--mode=: a name is missing' --mode= true
refused '--strict=maybe: the value must be off, on, warn or abort' --strict maybe true
refused '--log=loud: the value must be none, warn, trace, info or debug' --log loud true

refused '--runtime=opencl: the value must be cuda, rocr or ze' --runtime opencl true

wanted 0 1 true
wanted 7 1 -- sh -c 'exit 7'
wanted 127 2 "$tmp/not-there"
wanted 127 2 mrfab-there-is-no-such-program
wanted 126 2 "$tmp"

# watched STATUS LINES ARGUMENT...: as wanted; the lines of ours that it wrote are in the file.
say='echo before; echo "libfabric:1:2::mrfab:mr:mrfab():0<warn> MRF-$0: text" >&2; echo MRF-E1000: no line >&2; exit $1'
: >"$tmp/lines"
wanted 99 4 --fail-on E --log-file "$tmp/lines" sh -c "$say" E3004 0
[ "$(cat "$tmp/out")" = before ] || fault "a watched program's output is $(cat "$tmp/out")"
wanted 99 4 --fail-on=EW sh -c "$say" W3004 7
grep -q 'its own was 7' "$tmp/err" || fault "--fail-on hides the exit status: $(cat "$tmp/err")"
wanted 7 3 --fail-on E --log-file "$tmp/lines" sh -c "$say" W3004 7
wanted 0 3 --fail-on W --log-file "$tmp/lines" sh -c "$say" E3004 0
[ "$(sed 's/.*> //' "$tmp/lines" | paste -sd ' ')" = "MRF-E3004: text MRF-W3004: text MRF-E3004: text" ] ||
	fault "--log-file has $(cat "$tmp/lines")"
wanted 143 1 --fail-on E sh -c 'kill $$'
wanted 127 2 --fail-on E mrfab-there-is-no-such-program
wanted 126 2 --log-file "$tmp/lines" "$tmp"
refused '--fail-on=X: the value must be E, W or EW' --fail-on X true
refused '--fail-on=: the value must be E, W or EW' --fail-on= true
refused '--log=none leaves --fail-on and --log-file nothing' --fail-on E --log none true
"$run" --log-file "$tmp/none/lines" true 2>"$tmp/err"
[ $? = 2 ] && grep -q 'none/lines: No such file' "$tmp/err" || fault "--log-file: $(cat "$tmp/err")"
# What the program leaves behind is not waited for.
began=$(date +%s)
wanted 0 1 --fail-on E sh -c 'sleep 30 & exit 0'
[ $(($(date +%s) - began)) -lt 15 ] || fault "--fail-on waits for what the program started"
FI_LOG_PROV=tcp FI_LOG_SUBSYS=cq FI_LOG_LEVEL=info gives FI_LOG_PROV=mrfab --fail-on E
FI_LOG_PROV=tcp FI_LOG_SUBSYS=cq gives FI_LOG_SUBSYS=^core --log-file "$tmp/lines"

# Options behind the program are the program's.
wanted 0 1 echo --mode NONSENSE
[ "$(cat "$tmp/out")" = "--mode NONSENSE" ] || fault "the program got $(cat "$tmp/out")"

gives FI_PROVIDER=mrfab
runtimes=$builddir/tests/runtime
(unset LD_LIBRARY_PATH && gives "LD_LIBRARY_PATH=$runtimes/cuda/.libs" --runtime cuda
	exit $status) || status=1
LD_LIBRARY_PATH=/somewhere gives "LD_LIBRARY_PATH=$runtimes/ze/.libs:/somewhere" --runtime=ze
long=/$(head -c 20000 /dev/zero | tr '\0' x)
LD_LIBRARY_PATH=$long gives "LD_LIBRARY_PATH=$runtimes/ze/.libs:$long" --runtime=ze
for file in cuda/.libs/libcuda.so.1 rocr/.libs/libhsa-runtime64.so.1 ze/.libs/libze_loader.so.1; do
	[ -r "$runtimes/$file" ] || fault "there is no $file"
done
gives "FI_PROVIDER_PATH=$builddir/.libs"
gives FI_MRFAB_MR_MODE
gives FI_MRFAB_MR_MODE=raw+Endpoint --mode raw+Endpoint
gives FI_MRFAB_MR_MODE=0x30 --mode=0x30
gives FI_MRFAB_STRICT
gives FI_MRFAB_STRICT=on --strict ON
gives FI_MRFAB_STRICT=off --strict=off
gives FI_MRFAB_STRICT=abort --strict=abort
gives IPATH_NO_BACKTRACE
gives IPATH_NO_BACKTRACE=1 --strict=ABORT
FI_MRFAB_STRICT=abort gives IPATH_NO_BACKTRACE=1
gives FI_LOG_LEVEL=warn
gives FI_LOG_LEVEL=trace --log trace
gives FI_LOG_LEVEL --log none
gives FI_LOG_PROV=mrfab
gives FI_LOG_SUBSYS=^core
gives FI_LOG_PROV --log none
gives FI_LOG_SUBSYS --log none
gives FI_LOG_LEVEL=info --explain
gives FI_LOG_LEVEL=info --explain --log warn
gives FI_LOG_LEVEL=debug --explain --log debug

# kept VARIABLE=VALUE ARGUMENT...: it is not touched, and not spoken of.
kept() {
	given=$1
	shift
	wanted 0 1 "$@" env
	grep -qx "$given" "$tmp/out" || fault "mrfab_run $*: $given is not kept"
	! grep -qF " ${given%%=*}=" "$tmp/err" || fault "mrfab_run $*: speaks of ${given%%=*}"
}

export FI_LOG_LEVEL=trace
kept FI_LOG_LEVEL=trace
gives FI_LOG_PROV
gives FI_LOG_LEVEL --log none
export FI_LOG_PROV=tcp FI_LOG_SUBSYS=mr
kept FI_LOG_PROV=tcp --explain
kept FI_LOG_SUBSYS=mr --log info
unset FI_LOG_LEVEL FI_LOG_PROV FI_LOG_SUBSYS

export FI_MRFAB_PROVIDER_NAME=verbs FI_PROVIDER=tcp FI_PROVIDER_PATH=/nowhere FI_LOG_LEVEL=debug
gives FI_PROVIDER=verbs
gives "FI_PROVIDER_PATH=$builddir/.libs"
gives FI_LOG_PROV=verbs --log warn
gives FI_LOG_LEVEL=debug --explain
FI_MRFAB_PROVIDER_NAME='verbs;ofi_rxm'
refused 'FI_MRFAB_PROVIDER_NAME=verbs;ofi_rxm: the module cannot have a name with a semicolon' true
FI_MRFAB_PROVIDER_NAME=verbs,tcp
refused 'FI_MRFAB_PROVIDER_NAME=verbs,tcp: the module cannot have a name with a comma' true
FI_MRFAB_PROVIDER_NAME='my verbs'
refused 'FI_MRFAB_PROVIDER_NAME=my verbs: the module cannot have a name with a blank' true
FI_MRFAB_PROVIDER_NAME=
gives FI_PROVIDER=mrfab
unset FI_MRFAB_PROVIDER_NAME FI_PROVIDER FI_PROVIDER_PATH FI_LOG_LEVEL

# Alone it has only the folder that was configured, which it names whether the module is there or not.
mkdir -p "$tmp/alone" "$tmp/moved/bin"
cp "$run" "$tmp/alone"
cp "$run" "$tmp/moved/bin"
"$tmp/alone/mrfab_run" true 2>"$tmp/err"
rc=$?
there=$(sed 's/.*[ =]//' "$tmp/err")
case $rc:$(cat "$tmp/err") in
"0:mrfab_run: true: FI_PROVIDER=mrfab FI_PROVIDER_PATH=/"*) ;;
"2:mrfab_run: libmrfab-fi.so is neither in /"*" nor in /"*) ;;
*) fault "alone: exit status $rc, $(cat "$tmp/err")" ;;
esac

# A tree that was installed and has moved since.
case $there in
*/lib/*/provider)
	provider=$tmp/moved/lib/${there##*/lib/}
	mkdir -p "$provider"
	: >"$provider/libmrfab-fi.so"
	run=$tmp/moved/bin/mrfab_run
	gives "FI_PROVIDER_PATH=$provider"
	mv "$tmp/moved" "$tmp/mo:ved"
	run=$tmp/mo:ved/bin/mrfab_run
	refused 'takes no folder with a colon' true
	mv "$tmp/mo:ved" "$tmp/mo;ved"
	run="$tmp/mo;ved/bin/mrfab_run"
	runtime="$tmp/mo;ved/lib/${there##*/lib/}"
	runtime=${runtime%/provider}/runtime/cuda
	mkdir -p "$runtime"
	: >"$runtime/libcuda.so.1"
	refused 'LD_LIBRARY_PATH takes no folder with a colon or semicolon' --runtime cuda true
	;;
esac
exit $status
