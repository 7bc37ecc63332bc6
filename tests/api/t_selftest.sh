#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Do the comparisons with libfabric's headers see a difference when there is one?
# Runs both on damaged copies of our headers. Environment and exit status as theirs.
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
status=0
for t in t_layout t_inline; do
	"$here/$t" --self-test
	rc=$?
	[ "$rc" -ne 77 ] || exit 77
	[ "$rc" -eq 0 ] || status=1
done
exit "$status"
