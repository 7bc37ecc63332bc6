/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_STRICT, as the environment has it: how the library takes mistakes that other providers let
 * pass. contract/rules.h says what each value means. Nothing is logged here, because the log itself asks.
 * Any thread.
 */
#ifndef MRF_BASE_STRICT_H
#define MRF_BASE_STRICT_H

#include <stdbool.h>

enum mrf_strict {
	MRF_STRICT_UNSET, /* or not a value */
	MRF_STRICT_OFF,
	MRF_STRICT_ON,
	MRF_STRICT_WARN,
	MRF_STRICT_ABORT
};

/* *wrong: the value, if it is none; NULL otherwise. */
enum mrf_strict mrf_strict_read(const char **wrong);
/* Is what other providers would not take said, too (warn, abort)? */
bool mrf_strict_careful(void);
/*
 * With abort: does not return. err (positive): the error of a call; those that tell of a lack of
 * something, or that a call does not exist, are nobody's mistake and stop nothing. 0: a mistake.
 */
void mrf_strict_stop(int err);

#endif
