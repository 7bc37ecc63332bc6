/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include "ep/model/why.h"

void mrf_why_set(struct mrf_why *why, int err, int code, const char *fmt, ...)
{
	va_list ap;

	why->err = err;
	why->code = code;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
}
