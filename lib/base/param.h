/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_param(3): environment variables that applications and providers define, which are
 * read at every request, and the list of all variables, including the library's own
 * (base/env.h). Thread-safe as far as the environment is.
 */
#ifndef MRF_BASE_PARAM_H
#define MRF_BASE_PARAM_H

#include <stdarg.h>
#include <stddef.h>
#include <rdma/providers/fi_prov.h>
#include "base/compiler.h"
#include "base/env.h"

/* The value; log, once, that it is malformed or out of range. */
long mrf_param_int(enum mrf_param which);
size_t mrf_param_size(enum mrf_param which);
bool mrf_param_bool(enum mrf_param which);

/*
 * Define and read the variable FI_NAME or, with a provider, FI_PROV_NAME (in capitals).
 * The text of a value belongs to the environment. *value is written on success only.
 *
 * define: -FI_EINVAL, -FI_ENOMEM. Defining a variable again with the same type replaces
 * its help. get: -FI_ENOENT not defined, -FI_ENODATA not set, -FI_EINVAL not a value of
 * its type.
 */
int mrf_param_define(const char *prov, const char *name, enum fi_param_type type, const char *fmt,
		     va_list ap) MRF_PRINTF(4, 0);
int mrf_param_get(const char *prov, const char *name, void *value);

/*
 * All variables, the library's own first, in an array that ends with a NULL name and
 * belongs to the caller until mrf_param_list_free (which accepts NULL). -FI_EINVAL,
 * -FI_ENOMEM.
 */
int mrf_param_list(struct fi_param **params, int *count);
void mrf_param_list_free(struct fi_param *params);

#endif
