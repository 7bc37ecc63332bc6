/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_param_define and related calls, and what fi_info -e shows. The work is done in
 * base/param.
 */
#include "base/compiler.h"
#include "base/param.h"
#include <stdarg.h>

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
