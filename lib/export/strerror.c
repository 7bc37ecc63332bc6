/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "base/errtext.h"
#include <rdma/fi_errno.h>

MRF_EXPORT const char *fi_strerror(int errnum)
{
	return mrf_errtext(errnum);
}
