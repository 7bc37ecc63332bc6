/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "contract/limits.h"
#include "ep/model/op.h"
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

void mrf_why_rest(const struct mrf_op *op, const struct mrf_why *why, struct mrf_why *more)
{
	/* Where there is no room for both, the reason matters more. */
	*more = *why;
	if (strlen(why->text) < sizeof(why->text) - 64 && op->acked &&
	    op->type->kind != MRF_OP_READ && op->type->kind != MRF_OP_RPC)
		mrf_why_set(more, why->err, why->code,
			    "%" PRIu64 " of %" PRIu64 " bytes were done, then: %s", op->acked,
			    op->total, why->text);
}
