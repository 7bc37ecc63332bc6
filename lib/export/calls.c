/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported calls that need nothing but lib/base, where the work is done. */
#include <stdarg.h>
#include "base/compiler.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/param.h"

/* --- fi_log and related calls, for providers and applications that log through the library */

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

/* --- fi_param_define and related calls, and what fi_info -e shows -------------------- */

static const char *prov_name(const struct fi_provider *prov)
{
	return prov ? prov->name : NULL;
}

MRF_EXPORT int fi_param_define(const struct fi_provider *provider, const char *param_name,
			       enum fi_param_type type, const char *help_string_fmt, ...)
{
	va_list ap;
	int ret;

	va_start(ap, help_string_fmt);
	ret = mrf_param_define(prov_name(provider), param_name, type, help_string_fmt, ap);
	va_end(ap);
	return ret;
}

MRF_EXPORT int fi_param_get(struct fi_provider *provider, const char *param_name, void *value)
{
	return mrf_param_get(prov_name(provider), param_name, value);
}

MRF_EXPORT int fi_getparams(struct fi_param **params, int *count)
{
	return mrf_param_list(params, count);
}

MRF_EXPORT void fi_freeparams(struct fi_param *params)
{
	mrf_param_list_free(params);
}

/* --- others --------------------------------------------------------------------------- */

MRF_EXPORT const char *fi_strerror(int errnum)
{
	return mrf_errtext(errnum);
}

/* The API level that the library speaks; its own version is PACKAGE_VERSION. */
MRF_EXPORT uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}
