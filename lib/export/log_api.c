/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_log and related calls: for providers and applications that log through the library.
 */
#include "base/compiler.h"
#include "base/log.h"
#include <stdarg.h>

static const char *name_or_core(const struct fi_provider *prov)
{
	return prov && prov->name ? prov->name : "core";
}

MRF_EXPORT int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
			      enum fi_log_subsys subsys)
{
	return mrf_log_prov_enabled(name_or_core(prov), level, subsys);
}

MRF_EXPORT int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level,
			    enum fi_log_subsys subsys, uint64_t *showtime)
{
	return mrf_log_prov_enabled(name_or_core(prov), level, subsys) && mrf_log_due(showtime);
}

MRF_EXPORT void fi_log(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, const char *func, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	mrf_log_prov(name_or_core(prov), level, subsys, func, line, fmt, ap);
	va_end(ap);
}
