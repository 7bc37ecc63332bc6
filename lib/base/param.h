/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Environment variables. The library's own are rows of one table in param.c (name, type,
 * default, help), so that the parser, fi_getparams and the manual cannot part.
 * Applications and providers add theirs with fi_param_define. Our own are read once, at
 * first use, except FI_MRFAB_MR_MODE, which a program may change from one fi_getinfo to
 * the next; that one and theirs are read whenever they are asked for. Thread-safe, as far
 * as the environment is.
 */
#ifndef MRF_BASE_PARAM_H
#define MRF_BASE_PARAM_H

#include <stdarg.h>
#include <stddef.h>
#include <rdma/providers/fi_prov.h>
#include "base/compiler.h"

/* The library's own variables. */
enum mrf_param {
	MRF_PARAM_LOG_INTERVAL, /* FI_LOG_INTERVAL: ms, of lines that come in floods */
	MRF_PARAM_LOG_LEVEL,	/* FI_LOG_LEVEL */
	MRF_PARAM_LOG_PROV,	/* FI_LOG_PROV */
	MRF_PARAM_LOG_SUBSYS,	/* FI_LOG_SUBSYS */
	MRF_PARAM_PROVIDER,	/* FI_PROVIDER */
	MRF_PARAM_IFACE,	/* FI_MRFAB_IFACE: only this rxe device or net device */
	MRF_PARAM_ACK_TIMEOUT,	/* FI_MRFAB_ACK_TIMEOUT: IB exponent, 4.096 us * 2^n */
	MRF_PARAM_RETRY,	/* FI_MRFAB_RETRY_COUNT: 1..6 */
	MRF_PARAM_CONN_TIMEOUT, /* FI_MRFAB_CONN_TIMEOUT: ms for one connection attempt */
	MRF_PARAM_ANSWER_TIMEOUT, /* FI_MRFAB_ANSWER_TIMEOUT: ms for the peer's agent */
	MRF_PARAM_MR_MODE,	/* FI_MRFAB_MR_MODE: what is required; asked for anew */
	MRF_PARAM_MONITOR,	/* FI_MRFAB_MONITOR: userfaultfd, memhooks or none */
	MRF_PARAM_STRICT,	/* FI_MRFAB_STRICT: on or off; contract/rules.h */
	MRF_PARAM_COUNT
};

/*
 * Value of a text variable, or NULL when unset. Of FI_MRFAB_MR_MODE it is what the
 * environment says now, and belongs to the environment.
 */
const char *mrf_param_str(enum mrf_param which);
/* Value of a number, or its default when unset, malformed or out of range (logged). */
long mrf_param_int(enum mrf_param which);

/*
 * What the variable that is called FI_NAME or, with a provider, FI_PROV_NAME (in
 * capitals) means. The text of a value belongs to the environment. *value is written on
 * success only.
 *
 * define: -FI_EINVAL, -FI_ENOMEM. To define a variable again with the same type replaces
 * its help. get: -FI_ENOENT not defined, -FI_ENODATA not set, -FI_EINVAL not a value of
 * its type.
 */
int mrf_param_define(const char *prov, const char *name, enum fi_param_type type,
		     const char *fmt, va_list ap) MRF_PRINTF(4, 0);
int mrf_param_get(const char *prov, const char *name, void *value);

/*
 * All variables, ours first, in an array that ends with a NULL name and belongs to the
 * caller until mrf_param_list_free (NULL is fine). -FI_EINVAL, -FI_ENOMEM.
 */
int mrf_param_list(struct fi_param **params, int *count);
void mrf_param_list_free(struct fi_param *params);

/*
 * Value of text as the type has it. Numbers may be decimal, 0x... or 0...; "-1" as a
 * size_t is the greatest one. -FI_EINVAL when text is not such a value or does not fit.
 * Pure.
 */
int mrf_param_parse(enum fi_param_type type, const char *text, void *value);

/* Reads our own variables again, for tests: what mrf_param_str gave out is gone. */
void mrf_param_reload(void);

#endif
