#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# scripts/check-conformance finds what it is for, in two pages that are right at first.
# Prints "ok NAME" or "not ok NAME" for each; exit status 1 if any failed.

set -u
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd -P)
failed=0
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
mr=$here/docs/CONFORMANCE.md
msg=$here/docs/CONFORMANCE-MSG.md
tagged=$here/docs/CONFORMANCE-TAGGED.md

# page FILE COUNTS ROW...
page() {
	local file=$1 counts=$2
	shift 2
	printf '%s\n' "Counts: $counts." '' '| id | versions | section | what | how we show it |' \
		'|---|---|---|---|---|' "$@" >"$file"
}

make_right() {
	rm -rf "${here:?}"/*
	mkdir -p "$here"/{docs,tests/{unit,func,api,runner}}
	printf '%s\n' 'START_TEST(it_is_so)' '/* START_TEST(it_was_so) */' >"$here/tests/unit/t.c"
	echo 'CASE(it_works)' >"$here/tests/func/f.c"
	touch "$here/tests/api/t_layout"
	page "$mr" '2 rows, 1 shown, 1 open, 0 n/a' '| KEY-001 | 1.7, 1.13 | keys | a | unit:it_is_so |' \
		'| KEY-002 | 1.8 | keys | as KEY-001 | open |'
	page "$msg" '2 rows, 1 shown, 0 open, 1 n/a' \
		'| SEND-001 | 1.17 | fi_send | b | func:it_works, api:t_layout |' \
		'| SEND-002 | 1.17 | fi_send | see KEY-002 | n/a: advice |'
	page "$tagged" '2 rows, 1 shown, 1 open, 0 n/a' \
		'| TAG-001 | 1.17 | fi_tsend | b | func:it_works |' '| TAG-002 | 1.17 | fi_tsend | c | open |'
}

# says NAME STATUS PATTERN OPTION...
says() {
	local name=$1 want=$2 pattern=$3 out status=0
	shift 3
	out=$("$top/scripts/check-conformance" --root "$here" "$@" 2>&1) || status=$?
	if [ "$status" = "$want" ] && grep -qE "$pattern" <<<"$out"; then
		echo "ok $name"
	else
		echo "not ok $name"
		sed 's/^/#   /' <<<"status $status: $out"
		failed=1
	fi
}

make_right
says pages_that_are_right_pass 0 '^$'

for file in "$mr" "$msg"; do
	page=${file##*/}
	id=$(grep -oE '[A-Z]+-001 ' "$file" | head -n 1)
	id=${id% }

	make_right
	sed -i "s/^| ${id%1}2/| $id/" "$file"
	says "an_id_is_used_once_in_$page" 1 "^docs/$page:6: $id is used already, in docs/$page:5$"

	make_right
	sed -i -E 's/(unit|func):it_[a-z]+/\1:it_was/' "$file"
	says "each_test_exists_that_$page""_names" 1 "^docs/$page:5: $id: (unit|func):it_was(_so)?: no "

	make_right
	sed -i 's/^Counts: 2/Counts: 3/' "$file"
	says "each_row_counts_in_$page" 1 "^docs/$page:1: counts are wrong"
	says "counts_are_put_right_in_$page" 0 '^$' --fix
	says "and_are_right_then_in_$page" 0 '^$'

	make_right
	sed -i 's/^Counts/Sums/' "$file"
	says "there_are_counts_in_$page" 1 "^docs/$page: 0 lines start with 'Counts: '"

	make_right
	sed -i '/^| [KS]/d' "$file"
	says "there_are_rows_in_$page" 1 "^docs/$page: no rows at all$"

	make_right
	sed -i "s/| $id | [^|]*|/| $id | 1.9 |/" "$file"
	says "versions_are_those_of_$page" 1 "^docs/$page:5: $id: '1.9' is no list of page versions$"

	make_right
	sed -i 's/as KEY-001\|see KEY-002/see SEND-007/' "$file"
	says "each_row_exists_that_$page""_mentions" 1 "^docs/$page:6: there is no row SEND-007$"

	make_right
	printf '%s\tapi:t_layout\n' "$id" >"$here/map"
	says "a_map_fills_in_$page" 0 '^$' --map "$here/map"
	grep -q "^| $id .*| api:t_layout |$" "$file" && echo "ok ${page}_is_filled_in" ||
		{ echo "not ok ${page}_is_filled_in"; failed=1; }

	make_right
	rm "$file"
	says "$page""_has_to_be_there" 2 "cannot read .*/$page"
done

make_right
sed -i 's/SEND-002/KEY-002/' "$msg"
says an_id_is_used_on_one_page 1 \
	'^docs/CONFORMANCE-MSG.md:6: KEY-002 is used already, in docs/CONFORMANCE.md:6$'

make_right
sed -i 's/| 1.17 /| 1.7, 1.13 /' "$msg"
says a_page_has_no_versions_of_another 1 "^docs/CONFORMANCE-MSG.md:5: SEND-001: '1.7, 1.13' is no list"

make_right
sed -i 's/1.7, 1.13/1.13, 1.7/' "$mr"
says versions_are_in_order 1 "^docs/CONFORMANCE.md:5: KEY-001: '1.13, 1.7' is no list of page versions$"

make_right
cp "$msg" "$here/docs/CONFORMANCE-RMA.md"
says no_page_is_left_unchecked 1 '^docs/CONFORMANCE-RMA.md: is no page that check-conformance knows$'

make_right
printf 'FOO-001\topen\n' >"$here/map"
says a_map_is_of_rows_that_there_are 1 'no page has a row FOO-001$' --map "$here/map"

exit $failed
