# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Modes of the functional tests: one of each kind, where not all of them are wanted.

func_kinds=mode0,native,raw-native,notify-virt,endpoint,event-2.3
