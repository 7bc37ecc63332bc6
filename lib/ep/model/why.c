/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "contract/limits.h"
#include "ep/model/why.h"

_Static_assert(MRF_ERR_TEXT == MRF_LIMIT_ERR_DATA, "what fi_getinfo promises");

void mrf_why_set(struct mrf_why *why, int err, int code, const char *fmt, ...)
{
	va_list ap;

	why->err = err;
	why->code = code;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
}

/* The text that the log has is behind its code. */
void mrf_why_said(struct mrf_why *why, int err, const struct mrf_refusal *said, const char *text)
{
	const char *logged = strstr(said->text, ": ");

	if (logged && strlen(logged + 2) < sizeof(why->text))
		text = logged + 2;
	mrf_why_set(why, err, (int)said->code, "%s", text);
}
