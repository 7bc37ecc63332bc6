/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/strict.h"

#include <stddef.h>
#include <stdlib.h>
#include <strings.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/env.h"

enum mrf_strict mrf_strict_read(const char **wrong)
{
	static const char *const words[] = { [MRF_STRICT_OFF] = "off",
					     [MRF_STRICT_ON] = "on",
					     [MRF_STRICT_WARN] = "warn",
					     [MRF_STRICT_ABORT] = "abort" };
	const char *how = mrf_env_str(MRF_PARAM_STRICT);
	size_t i;

	*wrong = NULL;
	if (!how || !*how)
		return MRF_STRICT_UNSET;
	for (i = MRF_STRICT_OFF; i < MRF_ARRAY_SIZE(words); i++) {
		if (!strcasecmp(how, words[i]))
			return (enum mrf_strict)i;
	}
	*wrong = how;
	return MRF_STRICT_UNSET;
}

bool mrf_strict_careful(void)
{
	const char *wrong;

	return mrf_strict_read(&wrong) >= MRF_STRICT_WARN;
}

static bool is_mistake(int err)
{
	static const int mistakes[] = { 0,	    FI_EINVAL, FI_EBADFLAGS, FI_EOPBADSTATE,
					FI_EBUSY,   FI_ENOKEY, FI_EACCES,    FI_EKEYREJECTED,
					FI_EDOMAIN, FI_EPERM,  FI_EFAULT,    FI_ETOOSMALL,
					FI_EMSGSIZE };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(mistakes); i++) {
		if (mistakes[i] == err)
			return true;
	}
	return false;
}

void mrf_strict_stop(int err)
{
	const char *wrong;

	if (mrf_strict_read(&wrong) == MRF_STRICT_ABORT && is_mistake(err))
		abort();
}
