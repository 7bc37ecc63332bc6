#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# scripts/check-layers finds what it is for, in a library of three files, or four, that is
# right at first.
# Prints "ok NAME" or "not ok NAME" for each; exit status 1 if any failed.

set -u
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd -P)
failed=0
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# A library whose layer up uses down, and down nothing.
make_right() {
	rm -rf "${here:?}"/*
	sources=(down/low up/high up/beside)
	mkdir -p "$here"/{docs,scripts,lib/{down,up},build/main/lib/{down,up}}
	cp "$top/scripts/check-layers" "$here/scripts"
	printf '%s\n' '## Layers' '| `lib/` | what | uses |' '|---|---|---|' \
		'| `down` | below | |' '| `up` | above | down |' >"$here/docs/ARCHITECTURE.md"
	echo 'int mrf_low(void);' >"$here/lib/down/low.h"
	printf '%s\n' '#include "down/low.h"' 'int mrf_low(void)' '{' 'return 1;' '}' \
		>"$here/lib/down/low.c"
	printf '%s\n' 'int mrf_high(void);' 'extern int (*mrf_table[2])(void);' >"$here/lib/up/high.h"
	printf '%s\n' '#include "down/low.h"' '#include "up/high.h"' \
		'int (*mrf_table[2])(void) = { mrf_low };' 'int mrf_high(void)' '{' \
		'return mrf_low();' '}' >"$here/lib/up/high.c"
	echo 'int mrf_beside(void);' >"$here/lib/up/beside.h"
	printf '%s\n' '#include "up/beside.h"' '#include "up/high.h"' 'int mrf_beside(void)' '{' \
		'return mrf_high();' '}' >"$here/lib/up/beside.c"
}

layers() {
	local source
	for source in "${sources[@]}"; do
		${CC:-gcc} -I"$here/lib" -c "$here/lib/$source.c" -o "$here/build/main/lib/$source.o" || return
	done
	out=$("$here/scripts/check-layers" 2>&1)
}

# says NAME STATUS PATTERN
says() {
	local status=0
	layers || status=$?
	if [ "$status" = "$2" ] && grep -qE "$3" <<<"$out"; then
		echo "ok $1"
	else
		echo "not ok $1"
		sed 's/^/#   /' <<<"status $status: $out"
		failed=1
	fi
}

make_right
says what_is_right_passes 0 '^layers: 2 layers, 3 files, 0 faults$'

make_right
sed -i '1i #include "up/high.h"' "$here/lib/down/low.c"
says a_layer_includes_none_above_it 1 '^lib/down/low.c may not use lib/up/high.h \(includes it\)'

make_right
sed -i -e '1i int mrf_beside(void);' -e 's/return 1/return mrf_beside()/' "$here/lib/down/low.c"
says a_layer_calls_none_above_it 1 '^lib/down/low.c may not use lib/up/beside.c \(calls mrf_beside\)'

make_right
sed -i -e '1i int mrf_beside(void);' -e 's/return mrf_low/return mrf_beside/' "$here/lib/up/high.c"
says files_do_not_call_each_other_in_a_circle 1 \
	'^lib/up/(beside|high).c and lib/up/(beside|high).c use each other in a circle'

make_right
cat "$here/lib/up/high.h" >>"$here/lib/up/beside.h"
says a_header_declares_functions_of_its_own_file 1 \
	'^lib/up/beside.h declares mrf_high, which lib/up/high.c defines$'
says a_header_declares_data_of_its_own_file 1 \
	'^lib/up/beside.h declares mrf_table, which lib/up/high.c defines$'

# Files that define a static function look and put it into a table: the member for each file.
both_define() {
	local at
	for at in "down/low $1" "up/high $2"; do
		printf '%s\n' "struct calls { int (*$1)(void), (*other)(void); };" \
			'static int look(void)' '{' 'return 2;' '}' \
			"static const struct calls calls = { .${at#* } = look };" >>"$here/lib/${at% *}.c"
	done
}

make_right
both_define look other
says static_functions_have_names_of_their_own 1 \
	'^lib/down/low.c and lib/up/high.c both define the static function look$'

make_right
both_define look look
says the_same_member_of_tables_may_have_the_same_name 0 '^layers: 2 layers, 3 files, 0 faults$'

# A function of lib/up/high.c that needs a lock held, and another that calls it after $1.
make_locked() {
	make_right
	printf '%s\n' 'void mrf_lock_take(void), mrf_lock_release(void);' \
		'static void take_it(void)' '{' 'mrf_lock_take();' '}' \
		'static void glance(void)' '{' 'mrf_lock_take();' 'mrf_lock_release();' '}' \
		'static int look_locked(void)' '{' 'return 2;' '}' \
		"int $2(void)" '{' "$1" 'return look_locked();' '}' \
		'void (*mrf_used[])(void) = { take_it, glance };' >>"$here/lib/up/high.c"
}

make_locked '' mrf_look
says a_function_that_needs_a_lock_is_not_called_without 1 \
	'^lib/up/high.c: mrf_look calls look_locked, but takes no lock'

make_locked 'glance(); /* mrf_lock_take(); */' mrf_look
says a_lock_that_was_released_again_does_not_count 1 \
	'^lib/up/high.c: mrf_look calls look_locked, but takes no lock'

make_locked '' mrf_look_locked
says a_function_that_needs_a_lock_may_call_another 0 '^layers: 2 layers, 3 files, 0 faults$'

make_locked 'mrf_lock_take();' mrf_look
says a_function_that_takes_the_lock_may_call_one_that_needs_it 0 \
	'^layers: 2 layers, 3 files, 0 faults$'

make_locked 'take_it();' mrf_look
says a_function_may_let_another_take_the_lock 0 '^layers: 2 layers, 3 files, 0 faults$'

make_right
sed -i 's/| below | |/| below | up |/' "$here/docs/ARCHITECTURE.md"
says the_table_has_no_circle 1 '^layers: (down|up) is in a circle'

make_right
sed -i '/`up`/d' "$here/docs/ARCHITECTURE.md"
says each_folder_has_a_row 1 'no row for up'

make_right
echo '| `middle` | between | |' >>"$here/docs/ARCHITECTURE.md"
says each_row_has_a_folder 1 '^layers: lib/middle does not exist$'

make_right
sed -i '1i #include <pthread.h>\nstatic pthread_mutex_t it = PTHREAD_MUTEX_INITIALIZER;\nvoid *mrf_it = &it;' \
	"$here/lib/down/low.c"
says a_static_mutex_that_stays_held_in_a_child_is_found 1 \
	'^lib/down/low.c: it, a static pthread_mutex_t, may be held for ever in a forked child$'

make_right
sed -i '1i #include <semaphore.h>\nstatic sem_t it;\nvoid mrf_it(void) { sem_init(\&it, 0, 0); }' \
	"$here/lib/down/low.c"
says a_static_semaphore_may_be_made_anew 0 '^layers: 2 layers, 3 files, 0 faults$'

make_right
sed -i '1i #include <pthread.h>\nint mrf_it(void) { return pthread_atfork(0, 0, 0); }' "$here/lib/down/low.c"
says handlers_of_forks_are_in_one_place 1 '^lib/down/low.c: pthread_atfork, where base/renew.h is to be used$'

# The folder up/in is a layer of its own, which up may use and which may not use up.
make_inner() {
	make_right
	mkdir -p "$here"/{lib,build/main/lib}/up/in
	sed -i -e 's/| above | down |/| above | down up\/in |/' "$here/docs/ARCHITECTURE.md"
	echo '| `up/in` | inside | down |' >>"$here/docs/ARCHITECTURE.md"
	echo 'int mrf_inner(void);' >"$here/lib/up/in/inner.h"
	printf '%s\n' '#include "down/low.h"' '#include "up/in/inner.h"' 'int mrf_inner(void)' '{' \
		'return mrf_low();' '}' >"$here/lib/up/in/inner.c"
	sed -i -e '1i #include "up/in/inner.h"' -e 's/return mrf_high()/return mrf_inner()/' \
		"$here/lib/up/beside.c"
	sources+=(up/in/inner)
}

make_inner
says a_folder_inside_a_layer_may_be_one 0 '^layers: 3 layers, 4 files, 0 faults$'

make_inner
sed -i '1i #include "up/high.h"' "$here/lib/up/in/inner.c"
says an_inner_layer_includes_none_above_it 1 \
	'^lib/up/in/inner.c may not use lib/up/high.h \(includes it\): up/in does not name up$'

make_inner
sed -i -e '1i int mrf_high(void);' -e 's/return mrf_low/return mrf_high/' "$here/lib/up/in/inner.c"
says an_inner_layer_calls_none_above_it 1 \
	'^lib/up/in/inner.c may not use lib/up/high.c \(calls mrf_high\): up/in does not name up$'

make_inner
sed -i 's/ up\/in |/ |/' "$here/docs/ARCHITECTURE.md"
says the_outer_layer_names_the_inner_one 1 \
	'^lib/up/beside.c may not use lib/up/in/inner.c \(calls mrf_inner\): up does not name up/in$'

make_inner
sed -i 's/| inside | down |/| inside | down up |/' "$here/docs/ARCHITECTURE.md"
says an_inner_layer_makes_no_circle 1 '^layers: (up|up/in) is in a circle'

make_inner
sed -i '/`up.in`/d' "$here/docs/ARCHITECTURE.md"
sed -i 's/ up\/in |/ |/' "$here/docs/ARCHITECTURE.md"
says a_folder_without_a_row_belongs_to_the_one_around_it 0 '^layers: 2 layers, 4 files, 0 faults$'

exit $failed
