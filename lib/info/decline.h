/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo finds nothing. That is no mistake, and a program may ask often; but to somebody whose
 * program ends there the reason must not be hidden. So it is a warning the first time that it occurs in
 * the process, and a line at level info from then on. Under another libfabric, which asks every
 * provider, it is at level info always.
 */
#ifndef MRF_INFO_DECLINE_H
#define MRF_INFO_DECLINE_H

#include "base/log.h"

/*
 * The level for it: a warning the first time. what: a string that lives as long as the process, or NULL.
 * Thread-safe.
 */
enum fi_log_level mrf_info_level(unsigned code, const char *what);

/*
 * Logs the refusal and returns -FI_ENODATA. what: the hint's name, if hints with this code have several;
 * as mrf_info_level takes it.
 */
#define mrf_info_decline(code, what, ...)                                                   \
	mrf_refuse_as(mrf_info_level(code, what), NULL, 0, FI_ENODATA, FI_LOG_FABRIC, code, \
		      __VA_ARGS__)

#endif
